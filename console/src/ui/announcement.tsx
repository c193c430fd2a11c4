/** What is said to who does not see it: how many rows a filter left. */

import { useEffect, useRef, useState } from "preact/hooks";

let say: (text: string) => void = () => {};
/** Who types is told once he pauses. */
const PAUSE_MS = 500;

/** Says a text whenever that of a list changes because it was filtered; `null` while it is loading. */
export function useAnnouncement(filter: string, text: string | null): void {
  const last = useRef(filter);
  useEffect(() => {
    if (text === null || last.current === filter) return;
    const timer = setTimeout(() => {
      last.current = filter;
      say(text);
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [filter, text]);
}

/** The one place for it, which is there before anything is said. */
export function LiveRegion() {
  const [text, set] = useState("");
  useEffect(() => {
    say = set;
  }, []);
  return (
    <p class="hidden" role="status" aria-live="polite">
      {text}
    </p>
  );
}
