/** A small plot of counts, without axes. */

import { number, pluralize } from "../time/format";

/** Maximum points: one per two pixels. */
const MAX_POINTS = 48;

/** Sums neighboring counts so that at most `limit` remain. */
export function downsample(values: readonly number[], limit: number): number[] {
  const size = Math.ceil(values.length / limit);
  if (size <= 1) return [...values];
  const sums: number[] = [];
  // Starts at the newest count, so only the oldest group can be incomplete.
  for (let end = values.length; end > 0; end -= size) {
    sums.unshift(values.slice(Math.max(0, end - size), end).reduce((sum, it) => sum + it, 0));
  }
  return sums;
}

/** Describes a sparkline for screen readers. */
function describe(values: readonly number[]): string {
  const total = values.reduce((sum, it) => sum + it, 0);
  const peak = values.reduce((one, other) => Math.max(one, other), 0);
  const last = values.findLastIndex((it) => it > 0);
  const quiet = values.length - 1 - last;
  const end =
    quiet === 0
      ? "still occurring"
      : `none in the last ${Math.round((quiet / values.length) * 100)}% of the period`;
  if (total === 0) return "No events";
  return `${pluralize(total, "event")}, peak ${number(peak)}, ${end}`;
}

interface SparkProps {
  values: readonly number[];
  width?: number;
  height?: number;
}

export function Spark({ values, width = 96, height = 24 }: SparkProps) {
  if (values.length === 0) return null;
  const shown = downsample(values, MAX_POINTS);
  const peak = Math.max(1, ...shown);
  const step = width / shown.length;
  const points = shown.flatMap((value, index) => {
    const y = (height - 1 - (value / peak) * (height - 3)).toFixed(1);
    return [`${(index * step).toFixed(1)},${y}`, `${((index + 1) * step).toFixed(1)},${y}`];
  });
  const description = describe(values);
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={description}
      data-values={values.join(" ")}
    >
      <title>{description}</title>
      <path class="spark-fill" d={`M0,${height} L${points.join(" L")} L${width},${height}Z`} />
      <path class="spark-line" d={`M${points.join(" L")}`} />
    </svg>
  );
}
