/** Keyboard shortcuts. They are off while the user types or a dialog is open. */

import { useEffect, useRef } from "preact/hooks";
import { own } from "./own";

export interface Shortcut {
  keys: string;
  action: string;
}

export const SHORTCUTS: Shortcut[] = [
  { keys: "/", action: "Filter or search" },
  { keys: "j k", action: "Next and previous row, or error" },
  { keys: "Enter", action: "Open the row" },
  { keys: "x", action: "Select the row" },
  { keys: "X", action: "Select up to the row" },
  { keys: "e", action: "Resolve" },
  { keys: "i", action: "Ignore" },
  { keys: "o", action: "Reopen" },
  { keys: "c", action: "New flag or segment" },
  { keys: "z", action: "Undo the last change" },
  { keys: "← →", action: "Newer and older event of an error" },
  { keys: "r", action: "Refresh" },
  { keys: "Esc", action: "Zoom out / close" },
  { keys: "g o", action: "Go to Overview" },
  { keys: "g e", action: "Go to Errors" },
  { keys: "g f", action: "Go to Flags" },
  { keys: "g i", action: "Go to Insights" },
  { keys: "g m", action: "Go to Markers" },
  { keys: "g s", action: "Go to Settings" },
  { keys: "⌘ K", action: "Go to a page, project, flag or error" },
  { keys: "?", action: "Show shortcuts" },
];

/** A handler that returns `false` leaves the key to the browser. */
type Handlers = Record<string, (event: KeyboardEvent) => unknown>;

/** Maximum time between `g` and the second key of a shortcut. */
const PREFIX_MS = 1_500;
let lastPrefix = { key: "", at: 0 };
/** The first key of the shortcut that is in progress. */
let prefix = "";

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const isField = target.matches("input:not([type=checkbox]), textarea, select");
  return isField || target.isContentEditable || target.closest("dialog") !== null;
}

/** Handles shortcuts: `e`, `Escape`, or `g e` for a sequence. */
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

/** Tracks `g`, once for the whole page. It captures events, so it runs before all handlers. */
export function watchPrefixes(): () => void {
  const listener = (event: KeyboardEvent) => {
    const counts = !isTyping(event.target) && !event.metaKey && !event.ctrlKey && !event.altKey;
    prefix = counts && event.timeStamp - lastPrefix.at < PREFIX_MS ? lastPrefix.key : "";
    lastPrefix =
      counts && event.key === "g" && !prefix
        ? { key: "g", at: event.timeStamp }
        : { key: "", at: 0 };
  };
  addEventListener("keydown", listener, { capture: true });
  return () => removeEventListener("keydown", listener, { capture: true });
}
