/** The number of events since the page was loaded, counted while the page is visible. */

import { useEffect, useState } from "preact/hooks";
import type { Project } from "../caller";
import type { Series } from "../plot/plot";
import { pluralize } from "../time/format";
import type { Range } from "../time/range";
import { Button } from "../ui/button";
import type { View } from "./filters";
import { loadSeries, totalOf } from "./load";

const INTERVAL_MS = 15_000;
/** Counting again is cheap for these ranges. */
const LIVE = ["1h", "24h", "7d"];

interface NewEventsProps {
  projects: Project[];
  view: View;
  range: Range;
  /** The events that the page shows. */
  series: Series | undefined;
  onReload: () => void;
}

export function NewEvents({ projects, view, range, series, onReload }: NewEventsProps) {
  const [count, setCount] = useState(0);
  useEffect(() => {
    setCount(0);
    if (!series || !range.preset || !LIVE.includes(range.preset)) return;
    const stop = new AbortController();
    const known = totalOf(series);
    const check = () => {
      if (document.hidden) return;
      const span = { from: range.from, to: Date.now() };
      loadSeries(projects, view, span, stop.signal).then(
        // Events also expire, or are deleted.
        (latest) => setCount(Math.max(0, totalOf(latest) - known)),
        () => {},
      );
    };
    const timer = setInterval(check, INTERVAL_MS);
    // Counts immediately when the page becomes visible again.
    document.addEventListener("visibilitychange", check);
    return () => {
      stop.abort();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", check);
    };
  }, [series]);
  return (
    <p class="new-events" role="status">
      {count > 0 && (
        <Button class="link small" onClick={onReload}>
          {pluralize(count, "new event")} · Refresh
        </Button>
      )}
    </p>
  );
}
