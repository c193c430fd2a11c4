/** Rows that are walked through by keys: the current one, and those that are selected. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../keys";
import { stepNow } from "../steps";

export interface Rows {
  current: number;
  selected: ReadonlySet<string>;
  toggle: (id: string) => void;
  selectAll: (ids: string[]) => void;
  clear: () => void;
  setCurrent: (index: number) => void;
}

/** What makes a table's row one that keys walk to, of a list of which only a part is in the document. */
export function rowAt(rows: Rows, index: number) {
  return {
    "data-row": index,
    // The head is the first.
    "aria-rowindex": index + 2,
    class: index === rows.current ? "current" : "",
  };
}

/** What is meant when a key is pressed: the selected rows, else the current one. */
export function meant(rows: Rows, ids: readonly string[]): string[] {
  if (rows.selected.size) return ids.filter((id) => rows.selected.has(id));
  const id = ids[rows.current];
  return id === undefined ? [] : [id];
}

/** `reveal` is for lists of which only a part is in the document. */
export function useRows(
  ids: readonly string[],
  open: (id: string) => void,
  reveal?: (index: number) => void,
): Rows {
  const [current, putCurrent] = useState(() => ids.indexOf(stepNow().row ?? ""));
  const listed = useRef(ids);
  listed.current = ids;
  // Who comes back is where he left.
  const setCurrent = useCallback((index: number) => {
    stepNow().row = listed.current[index];
    putCurrent(index);
  }, []);
  useEffect(() => {
    if (current < 0 && ids.length) putCurrent(ids.indexOf(stepNow().row ?? ""));
  }, [ids.length > 0]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const move = (step: number) => {
    const next = Math.max(0, Math.min(ids.length - 1, current + step));
    setCurrent(next);
    if (focusRow(next) || !reveal) return;
    reveal(next);
    // It is drawn once the window has moved.
    setTimeout(() => requestAnimationFrame(() => focusRow(next)));
  };
  // What has the focus is what keys mean, however it came to it.
  useEffect(() => {
    const listener = ({ target }: FocusEvent) => {
      const row = target instanceof Element ? target.closest<HTMLElement>("[data-row]") : null;
      if (row) setCurrent(Number(row.dataset.row));
    };
    addEventListener("focusin", listener);
    return () => removeEventListener("focusin", listener);
  }, []);
  const toggle = (id: string) =>
    setSelected((was) => {
      const next = new Set(was);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: (event) => {
      const id = ids[current];
      // A link or a button that has the focus does what it says.
      if (event.target instanceof HTMLElement && event.target.closest("a, button, summary")) {
        event.target.click();
      } else if (id !== undefined) open(id);
    },
    x: () => {
      const id = ids[current];
      if (id !== undefined) toggle(id);
    },
  });
  // What is gone can neither be current nor selected.
  useEffect(() => {
    putCurrent((was) => Math.min(was, ids.length - 1));
    setSelected((was) => {
      if (was.size === 0) return was;
      const there = new Set(ids);
      const left = [...was].filter((id) => there.has(id));
      return left.length === was.size ? was : new Set(left);
    });
  }, [ids]);
  return {
    current,
    selected,
    toggle,
    selectAll: (all) => setSelected(new Set(all)),
    clear: () => setSelected(new Set()),
    setCurrent,
  };
}

/** Whether the row is there. */
function focusRow(index: number): boolean {
  const row = document.querySelector<HTMLElement>(`[data-row="${index}"]`);
  row?.scrollIntoView({ block: "nearest" });
  row?.querySelector<HTMLElement>("a")?.focus({ preventScroll: true });
  return row !== null;
}
