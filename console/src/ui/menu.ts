/** A `<details>` menu that closes on Escape and on a click outside. */

import { useCallback, useEffect, useRef } from "preact/hooks";

export function useMenu() {
  const box = useRef<HTMLDetailsElement>(null);
  const close = useCallback(() => box.current?.removeAttribute("open"), []);
  useEffect(() => {
    const listener = (event: PointerEvent) => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) close();
    };
    addEventListener("pointerdown", listener);
    return () => removeEventListener("pointerdown", listener);
  }, [close]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !box.current?.open) return;
    event.preventDefault();
    close();
    box.current.querySelector("summary")?.focus();
  };
  return { box, close, onKeyDown };
}
