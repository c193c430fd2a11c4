/** Long lists: only the rows that are near the window are in the document. */

import type { ComponentChildren, RefObject } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Lists up to this length are there as a whole, so that the browser finds words in them. */
const SHORT = 100;
/** Rows beyond the edges of the window. What is shown changes in steps of half of that. */
const SPARE = 24;
const STEP = SPARE / 2;

export interface RowWindow {
  place: RefObject<HTMLTableSectionElement | null>;
  /** Which rows are there: from the first to before the last. */
  first: number;
  last: number;
  /** The room of those that are not, in pixels. */
  before: number;
  after: number;
  /** Brings a row into the window, which may be one that is not there yet. */
  reveal: (index: number) => void;
}

/** What of `count` rows of one height is to be there. */
export function useRowWindow(count: number, usualHeight: number): RowWindow {
  const place = useRef<HTMLTableSectionElement>(null);
  const height = useRef(usualHeight);
  const [shown, setShown] = useState({ first: 0, last: SHORT });
  const measure = useCallback(() => {
    if (!place.current || count <= SHORT) return;
    height.current =
      place.current.querySelector<HTMLElement>("[data-row]")?.offsetHeight || height.current;
    const { top } = place.current.getBoundingClientRect();
    const first = Math.floor((-top / height.current - SPARE) / STEP) * STEP;
    const last = Math.ceil(((innerHeight - top) / height.current + SPARE) / STEP) * STEP;
    setShown((was) => (was.first === first && was.last === last ? was : { first, last }));
  }, [count]);
  useLayoutEffect(() => {
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [measure]);
  const reveal = useCallback((index: number) => {
    if (!place.current) return;
    const top = scrollY + place.current.getBoundingClientRect().top + index * height.current;
    scrollTo(0, top - innerHeight / 2);
  }, []);
  const isWhole = count <= SHORT;
  const first = isWhole ? 0 : Math.max(0, Math.min(shown.first, count));
  const last = isWhole ? count : Math.max(first, Math.min(shown.last, count));
  return {
    place,
    first,
    last,
    before: first * height.current,
    after: (count - last) * height.current,
    reveal,
  };
}

interface WindowedRowsProps<T> {
  items: readonly T[];
  rows: RowWindow;
  children: (item: T, index: number) => ComponentChildren;
}

/** The body of a table, with room in place of the rows that are not there. */
export function WindowedRows<T>({ items, rows, children }: WindowedRowsProps<T>) {
  const { place, first, last, before, after } = rows;
  return (
    <tbody ref={place}>
      {before > 0 && <tr style={{ height: `${before}px` }} />}
      {items.slice(first, last).map((it, index) => children(it, first + index))}
      {after > 0 && <tr style={{ height: `${after}px` }} />}
    </tbody>
  );
}
