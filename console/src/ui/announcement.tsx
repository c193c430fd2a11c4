/** Announcements for screen readers, such as the number of rows that match a filter. */

import { useEffect, useRef } from "preact/hooks";
import { Store, useStore } from "../store";

const announcement = new Store("");
/** Pause in typing before an announcement. */
const PAUSE_MS = 500;

/** Announces `text` when `filter` changes. `text` is `null` while the list loads. */
export function useAnnouncement(filter: string, text: string | null): void {
  const last = useRef(filter);
  useEffect(() => {
    if (text === null || last.current === filter) return;
    const timer = setTimeout(() => {
      last.current = filter;
      announcement.set(text);
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [filter, text]);
}

/** The live region of the page. It must exist before the first announcement. */
export function LiveRegion() {
  return (
    <p class="hidden" role="status" aria-live="polite">
      {useStore(announcement)}
    </p>
  );
}
