/** Keeps buttons off for a moment after a change, so that a second click does not hit another one. */

import { useEffect, useRef, useState } from "preact/hooks";

const SETTLE_MS = 600;

/** Returns `false` for 600 ms after `state` changes. */
export function useIsSettled(state: unknown): boolean {
  const last = useRef(state);
  const [settled, setSettled] = useState(state);
  useEffect(() => {
    if (last.current === state) return;
    last.current = state;
    const timer = setTimeout(() => setSettled(state), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [state]);
  return settled === state;
}
