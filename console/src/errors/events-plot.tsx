/** The plot of error pages, with its placeholder and its error. A zoom changes the range. */

import { changed, go, useAddress } from "../address";
import type { Loaded } from "../api/loaded";
import type { Marks } from "../plot/marks";
import { Plot, type Series } from "../plot/plot";
import { rangeParams } from "../time/range";
import { ErrorMessage } from "../ui/states";

const NO_MARKS: Marks = { marks: [], more: 0, isExact: true };
/** Height of the legend and the table's summary, in pixels. */
const LEGEND = 24;

interface EventsPlotProps {
  series: Loaded<Series>;
  marks: Loaded<Marks>;
  height: number;
  /** `true` for the events of one error. */
  single?: boolean;
}

export function EventsPlot({ series, marks, height, single = false }: EventsPlotProps) {
  const address = useAddress();
  const { data, error, loading, reload } = series;
  return (
    <>
      {error && <ErrorMessage error={error} retry={reload} />}
      {data && (
        <Plot
          series={data}
          marks={marks.data ?? NO_MARKS}
          height={height}
          single={single}
          stale={loading}
          onZoom={(from, to) => go(changed(address, rangeParams({ from, to })))}
        />
      )}
      {!data && !error && (
        <div class="skeleton" style={{ height: `${height + LEGEND}px` }} aria-busy="true" />
      )}
    </>
  );
}
