/** Windowed lists: only rows near the viewport are rendered. */

import type { ComponentChildren, RefObject } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Lists up to this length are rendered whole, so that the browser's search works. */
const MAX_WHOLE = 100;
/** Rows rendered above and below the viewport. */
const OVERSCAN = 24;
/** The window moves in steps of this many rows. */
const STEP = OVERSCAN / 2;

export interface RowWindow {
  body: RefObject<HTMLTableSectionElement | null>;
  /** The rendered rows; `last` is exclusive. */
  first: number;
  last: number;
  /** Height of the rows that are not rendered, in pixels. */
  before: number;
  after: number;
  /** Scrolls to a row, rendered or not. */
  reveal: (index: number) => void;
}

/** Returns which of `count` rows of equal height to render. */
export function useRowWindow(count: number, defaultHeight: number): RowWindow {
  const body = useRef<HTMLTableSectionElement>(null);
  const height = useRef(defaultHeight);
  const [shown, setShown] = useState({ first: 0, last: MAX_WHOLE });
  const measure = useCallback(() => {
    if (!body.current || count <= MAX_WHOLE) return;
    height.current =
      body.current.querySelector<HTMLElement>("[data-row]")?.offsetHeight || height.current;
    const { top } = body.current.getBoundingClientRect();
    const first = Math.floor((-top / height.current - OVERSCAN) / STEP) * STEP;
    const last = Math.ceil(((innerHeight - top) / height.current + OVERSCAN) / STEP) * STEP;
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
    if (!body.current) return;
    const top = scrollY + body.current.getBoundingClientRect().top + index * height.current;
    scrollTo(0, top - innerHeight / 2);
  }, []);
  const isWhole = count <= MAX_WHOLE;
  const first = isWhole ? 0 : Math.max(0, Math.min(shown.first, count));
  const last = isWhole ? count : Math.max(first, Math.min(shown.last, count));
  return {
    body,
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

/** A table body with spacers in place of the rows that are not rendered. */
export function WindowedRows<T>({ items, rows, children }: WindowedRowsProps<T>) {
  const { body, first, last, before, after } = rows;
  return (
    <tbody ref={body}>
      {before > 0 && <tr style={{ height: `${before}px` }} />}
      {items.slice(first, last).map((it, index) => children(it, first + index))}
      {after > 0 && <tr style={{ height: `${after}px` }} />}
    </tbody>
  );
}
