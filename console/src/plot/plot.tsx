/** Events over time: events as a filled area, errors as a line, marks as dashed vertical lines. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Schemas } from "../api/client";
import {
  formatDay,
  formatHour,
  formatMinute,
  isThisYear,
  number,
  pluralize,
  short,
} from "../time/format";
import { Button } from "../ui/button";
import { PlainTable } from "../ui/table";
import { layOut, type Mark, type Marks, placeCard } from "./marks";

export type Bucket = Schemas["ErrorTimeseriesBucket"];

export interface Series {
  buckets: Bucket[];
  /** Length of a bucket, in milliseconds. */
  bucketMs: number;
  from: number;
  to: number;
}

/** The plot area without axes, and the width with them, in pixels. */
interface Box {
  left: number;
  width: number;
  top: number;
  height: number;
  whole: number;
}

interface PlotProps {
  series: Series;
  marks: Marks;
  height: number;
  /** `true` for the events of one error: the line of errors is hidden. */
  single: boolean;
  /** `true` while the data of another view is shown and the current one loads. */
  stale: boolean;
  onZoom: (from: number, to: number) => void;
}

/** Returns a color of the theme: a canvas cannot use CSS variables. */
function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Returns bucket starts in seconds, with the end of the last bucket, and the values. */
function dataOf(series: Series): uPlot.AlignedData {
  const starts = series.buckets.map((it) => Date.parse(it.bucketStart) / 1000);
  const last = starts.at(-1);
  const end = last === undefined ? [] : [Math.min(last + series.bucketMs / 1000, series.to / 1000)];
  const values = (of: (bucket: Bucket) => number) => {
    const all = series.buckets.map(of);
    return last === undefined ? all : [...all, all.at(-1) as number];
  };
  return [[...starts, ...end], values((it) => it.errors), values((it) => it.uniqueErrors)];
}

/** Shorter drags are taps, in pixels. */
const MIN_DRAG = 6;

/**
 * Adds selection by touch, which uPlot lacks. Vertical drags still scroll the page. Returns a
 * cleanup.
 */
function enableTouch(chart: uPlot): () => void {
  let start: number | null = null;
  const at = (event: PointerEvent) =>
    Math.max(
      0,
      Math.min(event.clientX - chart.over.getBoundingClientRect().left, chart.over.clientWidth),
    );
  const select = (left: number, width: number, isDone: boolean) =>
    chart.setSelect({ left, width, top: 0, height: chart.over.clientHeight }, isDone);
  const listener = (event: PointerEvent) => {
    if (event.pointerType === "mouse") return;
    const x = at(event);
    if (event.type === "pointerdown") {
      start = event.isPrimary ? x : null;
      chart.over.setPointerCapture(event.pointerId);
    } else if (start !== null) {
      const [left, width] = [Math.min(start, x), Math.abs(x - start)];
      const isDrag = width >= MIN_DRAG;
      if (event.type === "pointermove") select(left, isDrag ? width : 0, false);
      else {
        start = null;
        if (event.type === "pointerup" && isDrag) select(left, width, true);
        else select(0, 0, false);
      }
    }
    chart.setCursor({ left: x, top: 0 });
  };
  const names = ["pointerdown", "pointermove", "pointerup", "pointercancel"] as const;
  for (const name of names) chart.over.addEventListener(name, listener);
  return () => {
    for (const name of names) chart.over.removeEventListener(name, listener);
  };
}

export function Plot(props: PlotProps) {
  const { series, height, single, stale, onZoom } = props;
  const { marks, more, isExact } = props.marks;
  const place = useRef<HTMLDivElement>(null);
  const [box, setBox] = useState<Box | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const [theme, setTheme] = useState(0);
  const zoom = useRef(onZoom);
  zoom.current = onZoom;

  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const listener = () => setTheme((it) => it + 1);
    dark.addEventListener("change", listener);
    return () => dark.removeEventListener("change", listener);
  }, []);

  // A theme change redraws the chart with other colors.
  useLayoutEffect(() => {
    const parent = place.current;
    if (!parent) return;
    const paths = uPlot.paths.stepped?.({ align: 1 }) as uPlot.Series.PathBuilder;
    const axis = {
      font: "11px system-ui, sans-serif",
      stroke: color("--quiet"),
      grid: { stroke: color("--line"), width: 1 },
      ticks: { show: false },
      space: 36,
    };
    const values = (_: uPlot, splits: number[]) =>
      splits.map((it) => (Number.isInteger(it) ? short(it) : ""));
    const times = (_: uPlot, splits: number[], _axis: number, _space: number, step: number) =>
      splits.map((it) => (step >= 86_400 ? formatDay(it * 1000) : formatHour(it * 1000)));
    const line = { paths, points: { show: false } };
    const range = (_: uPlot, _min: number, max: number): [number, number] => [
      0,
      Math.max(4, max * 1.08),
    ];
    // Labels with a year need more space.
    const isLong = !isThisYear(series.from);
    const chart = new uPlot(
      {
        width: parent.clientWidth || 600,
        height,
        // Without a right axis, the last label and marker need space.
        padding: [8, single ? 24 : 0, 0, 0],
        legend: { show: false },
        cursor: {
          y: false,
          points: { show: false },
          drag: { x: true, y: false, setScale: false, dist: 6 },
        },
        scales: {
          x: { time: true, range: () => [series.from / 1000, series.to / 1000] },
          y: { range },
          distinct: { range },
        },
        axes: [
          { ...axis, size: 28, space: isLong ? 96 : 64, values: times, grid: { show: false } },
          { ...axis, size: 44, values },
          {
            ...axis,
            size: 36,
            values,
            show: !single,
            scale: "distinct",
            side: 1,
            grid: { show: false },
          },
        ],
        series: [
          {},
          { ...line, stroke: color("--red"), fill: color("--red-fill"), width: 1.5 },
          {
            ...line,
            show: !single,
            scale: "distinct",
            stroke: color("--distinct"),
            width: 1,
            alpha: 0.5,
          },
        ],
        hooks: {
          setCursor: [
            ({ cursor: { left = -1, idx } }) => setPointed(left >= 0 ? (idx ?? null) : null),
          ],
          draw: [
            (it) => {
              const ratio = devicePixelRatio;
              const next = {
                left: it.bbox.left / ratio,
                width: it.bbox.width / ratio,
                top: it.bbox.top / ratio,
                height: it.bbox.height / ratio,
                whole: it.width,
              };
              setBox((was) =>
                was && was.left === next.left && was.width === next.width ? was : next,
              );
            },
          ],
          setSelect: [
            (it) => {
              if (it.select.width < 6) return;
              const [from, to] = [it.select.left, it.select.left + it.select.width].map(
                (at) => it.posToVal(at, "x") * 1000,
              );
              it.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              if (from !== undefined && to !== undefined) zoom.current(from, to);
            },
          ],
        },
      },
      dataOf(series),
      parent,
    );
    const disableTouch = enableTouch(chart);
    const observer = new ResizeObserver(() => {
      if (parent.clientWidth) chart.setSize({ width: parent.clientWidth, height });
    });
    observer.observe(parent);
    return () => {
      observer.disconnect();
      disableTouch();
      chart.destroy();
    };
  }, [series, height, single, theme]);

  const bucket =
    pointed === null ? undefined : series.buckets[Math.min(pointed, series.buckets.length - 1)];
  const total = series.buckets.reduce((sum, it) => sum + it.errors, 0);
  return (
    <figure class={stale ? "plot stale" : "plot"}>
      <figcaption>
        <span class="key events">Events</span>
        {!single && <span class="key distinct">Errors</span>}
        {marks.length + more > 0 && (
          <span class="key marks-key">
            Markers, flags and releases
            {more > 0 && (
              <b title="Narrow the range to see older ones">
                {" "}
                ({pluralize(more, "older one")}
                {!isExact && " or more"} not shown)
              </b>
            )}
          </span>
        )}
        <span class="pointed">
          {bucket ? (
            <>
              {formatMinute(Date.parse(bucket.bucketStart))} {pluralize(bucket.errors, "event")}
              {!single && `, ${pluralize(bucket.uniqueErrors, "error")}`}
            </>
          ) : (
            <span class="quiet">Drag to zoom</span>
          )}
        </span>
      </figcaption>
      <div class="plot-area">
        <div
          ref={place}
          class="canvas"
          style={{ height: `${height}px` }}
          role="img"
          aria-label={`${pluralize(total, "event")} from ${formatMinute(series.from)} to ${formatMinute(series.to)}`}
          data-values={JSON.stringify(series.buckets.map((it) => [it.errors, it.uniqueErrors]))}
        />
        {box && <Lines marks={marks} series={series} box={box} />}
      </div>
      <Values series={series} marks={marks} single={single} />
    </figure>
  );
}

interface ValuesProps {
  series: Series;
  marks: Mark[];
  single: boolean;
}

/** The values as tables, for keyboards and screen readers. */
function Values({ series, marks, single }: ValuesProps) {
  const [isOpen, setOpen] = useState(false);
  const filled = series.buckets.filter((it) => it.errors > 0);
  return (
    <details class="values-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Table</summary>
      {isOpen && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach scrollable content.
        <section tabIndex={0} aria-label="Values of the chart">
          <PlainTable
            items={filled}
            idOf={(it) => it.bucketStart}
            columns={[
              ["Time", "", (it) => formatMinute(Date.parse(it.bucketStart))],
              ["Events", "number", (it) => number(it.errors)],
              !single && ["Errors", "number", (it) => number(it.uniqueErrors)],
            ]}
          />
          {filled.length === 0 && <p class="quiet">No events in this period.</p>}
          <PlainTable
            items={marks}
            idOf={(it) => it.id}
            columns={[
              ["Time", "of-name", (it) => formatMinute(it.at)],
              [
                "Marker, flag or release",
                "",
                (it) => (
                  <>
                    <bdi>{it.name}</bdi> <span class="quiet">{it.description}</span>
                  </>
                ),
              ],
            ]}
          />
        </section>
      )}
    </details>
  );
}

interface LinesProps {
  marks: Mark[];
  series: Series;
  box: Box;
}

/** The marks, as lines with labels. */
function Lines({ marks, series, box }: LinesProps) {
  const x = (at: number) => ((at - series.from) / (series.to - series.from)) * box.width;
  const groups = layOut(
    marks.filter((it) => it.at >= series.from && it.at < series.to),
    x,
    box.width,
  );
  return (
    <div
      class="marks"
      style={{
        left: `${box.left}px`,
        width: `${box.width}px`,
        top: `${box.top}px`,
        height: `${box.height}px`,
      }}
    >
      {groups.map((group) => {
        const first = group.marks[0] as Mark;
        const many = group.marks.length > 1;
        const edges = { left: -box.left, right: box.whole - box.left };
        const card = placeCard(group.x, edges, group.x > box.width * 0.7);
        return (
          <div key={first.id} class="mark" style={{ left: `${Math.round(group.x)}px` }}>
            <Button
              class={`mark-head ${first.kind}`}
              aria-label={
                many
                  ? `× ${group.marks.length}: ${group.marks.map((it) => it.name).join(", ")}`
                  : first.name
              }
            >
              {group.width >= (many ? 36 : 60) && (
                <span
                  class="mark-name"
                  style={{ maxWidth: `${Math.min(140, group.width - 14)}px` }}
                >
                  {many ? `× ${group.marks.length}` : first.name}
                </span>
              )}
            </Button>
            <ul
              class="mark-card"
              style={{ left: `${Math.round(card.left)}px`, width: `${card.width}px` }}
            >
              {group.marks.length > 8 && (
                <li class="quiet">{group.marks.length - 8} before these</li>
              )}
              {group.marks.slice(-8).map((it) => (
                <li key={it.id}>
                  <b>{it.name}</b> <span class="quiet">{formatMinute(it.at)}</span>
                  {it.description && <p>{it.description}</p>}
                </li>
              ))}
            </ul>
          </div>
        );
      })}
    </div>
  );
}
