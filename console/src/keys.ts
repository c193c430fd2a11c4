/** Keys that do something wherever one is, as long as one does not type. */

import { useEffect, useRef } from "preact/hooks";
import { own } from "./own";

export interface Shortcut {
  keys: string;
  what: string;
}

export const SHORTCUTS: Shortcut[] = [
  { keys: "/", what: "Filter in words, or search" },
  { keys: "j k", what: "Next and previous row, or error" },
  { keys: "Enter", what: "Open the row" },
  { keys: "x", what: "Select the row" },
  { keys: "e", what: "Resolve" },
  { keys: "i", what: "Ignore" },
  { keys: "o", what: "Reopen" },
  { keys: "c", what: "New flag" },
  { keys: "z", what: "Undo the last change" },
  { keys: "← →", what: "Newer and older event of an error" },
  { keys: "r", what: "Load again" },
  { keys: "Esc", what: "Back from a zoom; close" },
  { keys: "g o", what: "Go to Overview" },
  { keys: "g e", what: "Go to Errors" },
  { keys: "g f", what: "Go to Flags" },
  { keys: "g i", what: "Go to Insights" },
  { keys: "g m", what: "Go to Markers" },
  { keys: "g s", what: "Go to Settings" },
  { keys: "?", what: "Show these" },
];

/** One that answers `false` leaves the key to the browser. */
type Handlers = Record<string, (event: KeyboardEvent) => unknown>;

/** How long after `g` the second key counts. */
const PREFIX_MS = 1_500;
let noted = { key: "", at: 0 };
/** What was pressed before the key that is handled now, if the two are one shortcut. */
let prefix = "";

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const isField = target.matches("input:not([type=checkbox]), textarea, select");
  return isField || target.isContentEditable || target.closest("dialog") !== null;
}

/** Calls the handler of a key: `e`, `Escape`, or `g e` for one after the other. */
export function useKeys(handlers: Handlers): void {
  const current = useRef(handlers);
  current.current = handlers;
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
      if (isTyping(event.target)) return;
      const name = prefix ? `${prefix} ${event.key}` : event.key;
      const handler = own(current.current, name);
      if (!handler) return;
      if (handler(event) !== false) event.preventDefault();
    };
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
}

/** Notes `g`. Once for the whole page and before all handlers, so that each of them knows of it. */
export function watchPrefixes(): () => void {
  const listener = (event: KeyboardEvent) => {
    const counts = !isTyping(event.target) && !event.metaKey && !event.ctrlKey && !event.altKey;
    prefix = counts && event.timeStamp - noted.at < PREFIX_MS ? noted.key : "";
    noted =
      counts && event.key === "g" && !prefix
        ? { key: "g", at: event.timeStamp }
        : { key: "", at: 0 };
  };
  addEventListener("keydown", listener, { capture: true });
  return () => removeEventListener("keydown", listener, { capture: true });
}
