/** A small plot of counts, without axes. */

import { counted, number } from "../time/format";

/** More than one line for two pixels cannot be told apart. */
const MOST_POINTS = 48;

/** Counts, several of which are one where there are more than so many. */
export function gathered(values: readonly number[], most: number): number[] {
  const size = Math.ceil(values.length / most);
  if (size <= 1) return [...values];
  const sums: number[] = [];
  // The newest are whole: what is left over is the oldest.
  for (let end = values.length; end > 0; end -= size) {
    sums.unshift(values.slice(Math.max(0, end - size), end).reduce((sum, it) => sum + it, 0));
  }
  return sums;
}

/** What a plot shows, for who does not see it. */
function inWords(values: readonly number[]): string {
  const total = values.reduce((sum, it) => sum + it, 0);
  const most = values.reduce((one, other) => Math.max(one, other), 0);
  const last = values.findLastIndex((it) => it > 0);
  const ended = values.length - 1 - last;
  const end =
    ended === 0
      ? "up to the end"
      : `none in the last ${Math.round((ended / values.length) * 100)} % of the time`;
  if (total === 0) return "No events";
  return `${counted(total, "event")}, at most ${number(most)} at a time, ${end}`;
}

interface SparkProps {
  values: readonly number[];
  width?: number;
  height?: number;
}

export function Spark({ values, width = 96, height = 24 }: SparkProps) {
  if (values.length === 0) return null;
  const shown = gathered(values, MOST_POINTS);
  const most = Math.max(1, ...shown);
  const step = width / shown.length;
  const points = shown.flatMap((value, index) => {
    const y = (height - 1 - (value / most) * (height - 3)).toFixed(1);
    return [`${(index * step).toFixed(1)},${y}`, `${((index + 1) * step).toFixed(1)},${y}`];
  });
  const words = inWords(values);
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={words}
      data-values={values.join(" ")}
    >
      <title>{words}</title>
      <path class="spark-fill" d={`M0,${height} L${points.join(" L")} L${width},${height}Z`} />
      <path class="spark-line" d={`M${points.join(" L")}`} />
    </svg>
  );
}
