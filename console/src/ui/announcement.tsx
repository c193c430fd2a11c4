/** Announcements for screen readers, such as the number of rows that match a filter. */

import { useEffect, useRef, useState } from "preact/hooks";

let announce: (text: string) => void = () => {};
/** Pause in typing before an announcement. */
const PAUSE_MS = 500;

/** Announces `text` when `filter` changes. `text` is `null` while the list loads. */
export function useAnnouncement(filter: string, text: string | null): void {
  const last = useRef(filter);
  useEffect(() => {
    if (text === null || last.current === filter) return;
    const timer = setTimeout(() => {
      last.current = filter;
      announce(text);
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [filter, text]);
}

/** The live region of the page. It must exist before the first announcement. */
export function LiveRegion() {
  const [text, set] = useState("");
  useEffect(() => {
    announce = set;
  }, []);
  return (
    <p class="hidden" role="status" aria-live="polite">
      {text}
    </p>
  );
}
