/** Keyboard navigation of rows: the current row and the selection. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../keys";
import { currentStep } from "../steps";

export interface Rows {
  current: number;
  selected: ReadonlySet<string>;
  /** Selects or deselects a row; `toLast` extends this to all rows since the last one. */
  toggle: (id: string, toLast?: boolean) => void;
  selectAll: (ids: string[]) => void;
  clear: () => void;
  setCurrent: (index: number) => void;
  /** Opens a row, for a click anywhere on it. */
  open: (index: number) => void;
}

/**
 * Returns the properties of a table row for keyboard navigation, in a list that is partly rendered.
 */
export function rowProps(rows: Rows, index: number) {
  return {
    "data-row": index,
    // Row 1 is the header.
    "aria-rowindex": index + 2,
    class: index === rows.current ? "current" : "",
    onClick: (event: MouseEvent) => {
      const target = event.target instanceof Element ? event.target : null;
      const isControl = target?.closest("a, button, input, select, label, dialog");
      // A click that ends a text selection is none.
      if (isControl || event.detail > 1 || String(getSelection())) return;
      if (event.metaKey || event.ctrlKey) target?.closest("tr")?.querySelector("a")?.click();
      else rows.open(index);
    },
  };
}

/**
 * Returns the ids of the rows that a shortcut applies to: the selection, or else the current row.
 */
export function targetRows(rows: Rows, ids: readonly string[]): string[] {
  if (rows.selected.size) return ids.filter((id) => rows.selected.has(id));
  const id = ids[rows.current];
  return id === undefined ? [] : [id];
}

/** Handles the keys of a list. `reveal` scrolls to a row that is not rendered. */
export function useRows(
  ids: readonly string[],
  open: (id: string) => void,
  reveal?: (index: number) => void,
): Rows {
  const [current, setIndex] = useState(() => ids.indexOf(currentStep().row ?? ""));
  const listed = useRef(ids);
  listed.current = ids;
  // Going back in the history restores the current row.
  const setCurrent = useCallback((index: number) => {
    currentStep().row = listed.current[index];
    setIndex(index);
  }, []);
  useEffect(() => {
    if (current < 0 && ids.length) setIndex(ids.indexOf(currentStep().row ?? ""));
  }, [ids.length > 0]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const move = (step: number) => {
    const next = Math.max(0, Math.min(ids.length - 1, current + step));
    setCurrent(next);
    if (focusRow(next) || !reveal) return;
    reveal(next);
    // The row is rendered after the scroll.
    setTimeout(() => requestAnimationFrame(() => focusRow(next)));
  };
  // A row that gets the focus by other means becomes the current one.
  useEffect(() => {
    const listener = ({ target }: FocusEvent) => {
      const row = target instanceof Element ? target.closest<HTMLElement>("[data-row]") : null;
      if (row) setCurrent(Number(row.dataset.row));
    };
    addEventListener("focusin", listener);
    return () => removeEventListener("focusin", listener);
  }, []);
  const lastToggled = useRef<string | null>(null);
  const toggle = (id: string, toLast = false) => {
    const [from, to] = [ids.indexOf(lastToggled.current ?? ""), ids.indexOf(id)];
    const others = toLast && from >= 0 ? ids.slice(Math.min(from, to), Math.max(from, to) + 1) : [];
    lastToggled.current = id;
    setSelected((was) => {
      const next = new Set(was);
      const isOn = !next.has(id);
      for (const it of [...others, id]) {
        if (isOn) next.add(it);
        else next.delete(it);
      }
      return next;
    });
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: (event) => {
      const id = ids[current];
      // A focused link or button keeps its own action.
      if (event.target instanceof HTMLElement && event.target.closest("a, button, summary")) {
        event.target.click();
      } else if (id !== undefined) open(id);
    },
    x: () => {
      const id = ids[current];
      if (id !== undefined) toggle(id);
    },
    X: () => {
      const id = ids[current];
      if (id !== undefined) toggle(id, true);
    },
  });
  // Rows that are gone are neither current nor selected.
  useEffect(() => {
    setIndex((was) => Math.min(was, ids.length - 1));
    setSelected((was) => {
      if (was.size === 0) return was;
      const known = new Set(ids);
      const remaining = [...was].filter((id) => known.has(id));
      return remaining.length === was.size ? was : new Set(remaining);
    });
  }, [ids]);
  return {
    current,
    selected,
    toggle,
    selectAll: (all) => setSelected(new Set(all)),
    clear: () => setSelected(new Set()),
    setCurrent,
    open: (index) => {
      const id = ids[index];
      if (id === undefined) return;
      setCurrent(index);
      open(id);
    },
  };
}

/** Focuses a row. Returns `false` if it is not rendered. */
export function focusRow(index: number): boolean {
  const row = document.querySelector<HTMLElement>(`[data-row="${index}"]`);
  row?.scrollIntoView({ block: "nearest" });
  row?.querySelector<HTMLElement>("a")?.focus({ preventScroll: true });
  return row !== null;
}
