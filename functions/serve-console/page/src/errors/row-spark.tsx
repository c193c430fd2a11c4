/** The small plot of a row, loaded once the row is seen. */

import { useEffect, useRef, useState } from "preact/hooks";
import { useLoaded } from "../api/loaded";
import { useHere } from "../caller";
import { Spark } from "../plot/spark";
import type { Range } from "../time/range";
import { type View, viewKey } from "./filters";
import { type ErrorRow, loadSeries, totalOf, viewOfError } from "./load";

/** So many are loaded at once: the plot above them is more urgent. */
const AT_ONCE = 3;
let running = 0;
const waiting: (() => void)[] = [];

async function whenFree<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
  while (running >= AT_ONCE) await new Promise<void>((resume) => waiting.push(resume));
  if (signal.aborted) {
    waiting.shift()?.();
    throw new DOMException("not seen any more", "AbortError");
  }
  running++;
  try {
    return await task();
  } finally {
    running--;
    waiting.shift()?.();
  }
}

export function RowSpark({ error, view, range }: { error: ErrorRow; view: View; range: Range }) {
  const { project } = useHere();
  const place = useRef<HTMLSpanElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (!place.current) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((it) => it.isIntersecting)) {
        setSeen(true);
        observer.disconnect();
      }
    });
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  const own = viewOfError(view, error);
  const key = seen ? `spark ${project.id} ${error.errorId} ${viewKey(own, range)}` : null;
  const { data } = useLoaded(key, (signal) =>
    whenFree(() => loadSeries([project], own, range, signal), signal),
  );
  // Two errors of one title and place are one here; a plot of both would be a lie about each.
  const isOwn = data && totalOf(data) === error.count;
  return (
    <span
      ref={place}
      class="spark-place"
      title={data && !isOwn ? "Not told apart from others of this title" : undefined}
    >
      {isOwn && <Spark values={data.buckets.map((it) => it.errors)} />}
    </span>
  );
}
