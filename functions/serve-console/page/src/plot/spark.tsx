/** A small plot of counts, without axes. */

export function Spark({
  values,
  width = 96,
  height = 24,
}: {
  values: number[];
  width?: number;
  height?: number;
}) {
  if (values.length === 0) return null;
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length);
  const points = values.flatMap((value, index) => {
    const y = (height - 1 - (value / most) * (height - 3)).toFixed(1);
    return [`${(index * step).toFixed(1)},${y}`, `${((index + 1) * step).toFixed(1)},${y}`];
  });
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      aria-hidden="true"
    >
      <path class="spark-fill" d={`M0,${height} L${points.join(" L")} L${width},${height}Z`} />
      <path class="spark-line" d={`M${points.join(" L")}`} />
    </svg>
  );
}
