/** Errors over time: events as a filled area, distinct errors as a line, happenings as dashed lines. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Schemas } from "../api/client";
import { dayOf, hourOf, isOfThisYear, minuteOf, number, short } from "../time/format";
import { layOut, type Mark, placeCard } from "./marks";

export type Bucket = Schemas["ErrorTimeseriesBucket"];

export interface Series {
  buckets: Bucket[];
  /** How long a bucket is. */
  bucketMs: number;
  from: number;
  to: number;
}

/** Where the plot is without its axes, and how wide it is with them. */
interface Box {
  left: number;
  width: number;
  top: number;
  height: number;
  whole: number;
}

interface PlotProps {
  series: Series;
  marks?: Mark[];
  /** Whether these are all that happened. */
  isAll?: boolean;
  height: number;
  /** Whether it is of one error alone, of which there are no distinct ones. */
  single?: boolean;
  /** Whether it shows what was asked for before, while that is on its way. */
  stale?: boolean;
  onZoom?: (from: number, to: number) => void;
}

/** Colours are those of the theme, which the canvas cannot read for itself. */
function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Times in seconds, and each bucket's value up to its end. */
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

/** Less is a tap. */
const LEAST_DRAG = 6;

/** Selects by a finger what uPlot selects by a mouse; up and down the page is scrolled. */
function dragByTouch(made: uPlot): () => void {
  let start: number | null = null;
  const at = (event: PointerEvent) =>
    Math.max(
      0,
      Math.min(event.clientX - made.over.getBoundingClientRect().left, made.over.clientWidth),
    );
  const select = (left: number, width: number, isDone: boolean) =>
    made.setSelect({ left, width, top: 0, height: made.over.clientHeight }, isDone);
  const listener = (event: PointerEvent) => {
    if (event.pointerType === "mouse") return;
    const x = at(event);
    if (event.type === "pointerdown") {
      start = event.isPrimary ? x : null;
      made.over.setPointerCapture(event.pointerId);
    } else if (start !== null) {
      const [left, width] = [Math.min(start, x), Math.abs(x - start)];
      const isDrag = width >= LEAST_DRAG;
      if (event.type === "pointermove") select(left, isDrag ? width : 0, false);
      else {
        start = null;
        if (event.type === "pointerup" && isDrag) select(left, width, true);
        else select(0, 0, false);
      }
    }
    made.setCursor({ left: x, top: 0 });
  };
  const names = ["pointerdown", "pointermove", "pointerup", "pointercancel"] as const;
  for (const name of names) made.over.addEventListener(name, listener);
  return () => {
    for (const name of names) made.over.removeEventListener(name, listener);
  };
}

export function Plot({
  series,
  marks = [],
  isAll = true,
  height,
  single = false,
  stale,
  onZoom,
}: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
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

  // Colours are read anew for another theme.
  useLayoutEffect(() => {
    const parent = place.current;
    if (!parent) return;
    const stepped = uPlot.paths.stepped?.({ align: 1 });
    const axis = {
      stroke: colour("--quiet"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
    };
    const font = "11px system-ui, sans-serif";
    const values = (_: uPlot, splits: number[]) =>
      splits.map((it) => (Number.isInteger(it) ? short(it) : ""));
    const times = (_: uPlot, splits: number[], _axis: number, _space: number, step: number) =>
      splits.map((it) => (step >= 86_400 ? dayOf(it * 1000) : hourOf(it * 1000)));
    // Days of another year are told with it, which needs room.
    const isLong = !isOfThisYear(series.from);
    const made = new uPlot(
      {
        width: parent.clientWidth || 600,
        height,
        // What stands at the right end, a time or a marker, needs room where no axis leaves it some.
        padding: [8, single ? 24 : 0, 0, 0],
        legend: { show: false },
        cursor: {
          y: false,
          points: { show: false },
          drag: { x: Boolean(zoom.current), y: false, setScale: false, dist: 6 },
        },
        scales: {
          x: { time: true, range: () => [series.from / 1000, series.to / 1000] },
          y: { range: (_u, _min, max) => [0, Math.max(4, max * 1.08)] },
          distinct: { range: (_u, _min, max) => [0, Math.max(4, max * 1.08)] },
        },
        axes: [
          {
            ...axis,
            font,
            size: 28,
            space: isLong ? 96 : 64,
            values: times,
            grid: { show: false },
          },
          { ...axis, font, size: 44, values, space: 36 },
          {
            ...axis,
            font,
            size: 36,
            values,
            space: 36,
            show: !single,
            scale: "distinct",
            side: 1,
            grid: { show: false },
          },
        ],
        series: [
          {},
          {
            label: "errors",
            stroke: colour("--red"),
            fill: colour("--red-fill"),
            width: 1.5,
            points: { show: false },
            ...(stepped && { paths: stepped }),
          },
          {
            label: "distinct",
            show: !single,
            scale: "distinct",
            stroke: colour("--distinct"),
            width: 1,
            points: { show: false },
            ...(stepped && { paths: stepped }),
          },
        ],
        hooks: {
          setCursor: [
            (it) =>
              setPointed(
                it.cursor.left !== undefined && it.cursor.left >= 0
                  ? (it.cursor.idx ?? null)
                  : null,
              ),
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
              if (from !== undefined && to !== undefined) zoom.current?.(from, to);
            },
          ],
        },
      },
      dataOf(series),
      parent,
    );
    plot.current = made;
    const letGo = dragByTouch(made);
    const observer = new ResizeObserver(() => {
      if (parent.clientWidth) made.setSize({ width: parent.clientWidth, height });
    });
    observer.observe(parent);
    return () => {
      observer.disconnect();
      letGo();
      made.destroy();
      plot.current = null;
    };
  }, [series, height, single, theme]);

  const bucket =
    pointed === null ? undefined : series.buckets[Math.min(pointed, series.buckets.length - 1)];
  const total = series.buckets.reduce((sum, it) => sum + it.errors, 0);
  return (
    <figure class={stale ? "plot stale" : "plot"}>
      <figcaption>
        <span class="key errors">Errors</span>
        {!single && <span class="key distinct">Distinct errors</span>}
        {(marks.length > 0 || !isAll) && (
          <span class="key happening">
            Markers and flags{!isAll && <b> (not all: choose a shorter time)</b>}
          </span>
        )}
        <span class="pointed">
          {bucket ? (
            <>
              {minuteOf(Date.parse(bucket.bucketStart))} <b>{number(bucket.errors)}</b> errors,{" "}
              <b>{number(bucket.uniqueErrors)}</b> distinct
            </>
          ) : onZoom ? (
            <span class="quiet">Drag to zoom</span>
          ) : null}
        </span>
      </figcaption>
      <div class="plot-area">
        <div
          ref={place}
          class="canvas"
          style={{ height: `${height}px` }}
          role="img"
          aria-label={`${number(total)} errors from ${minuteOf(series.from)} to ${minuteOf(series.to)}`}
          data-values={JSON.stringify(series.buckets.map((it) => [it.errors, it.uniqueErrors]))}
        />
        {box && <Marks marks={marks} series={series} box={box} />}
      </div>
    </figure>
  );
}

interface MarksProps {
  marks: Mark[];
  series: Series;
  box: Box;
}

function Marks({ marks, series, box }: MarksProps) {
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
            <button
              type="button"
              class={`mark-head ${first.kind}`}
              aria-label={group.marks.map((it) => it.name).join(", ")}
            >
              {group.room >= (many ? 36 : 60) && (
                <span class="mark-name" style={{ maxWidth: `${Math.min(140, group.room - 14)}px` }}>
                  {many ? `× ${group.marks.length}` : first.name}
                </span>
              )}
            </button>
            <ul
              class="mark-card"
              style={{ left: `${Math.round(card.left)}px`, width: `${card.width}px` }}
            >
              {group.marks.slice(0, 8).map((it) => (
                <li key={it.id}>
                  <b>{it.name}</b> <span class="quiet">{minuteOf(it.at)}</span>
                  {it.description && <p>{it.description}</p>}
                </li>
              ))}
              {group.marks.length > 8 && <li class="quiet">and {group.marks.length - 8} more</li>}
            </ul>
          </div>
        );
      })}
    </div>
  );
}
