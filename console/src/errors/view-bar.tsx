/** The bar at the top of error pages: filters and the time range. */

import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { changed, go, useAddress } from "../address";
import { type Loaded, useLoaded } from "../api/loaded";
import { type Project, useCurrentProject } from "../caller";
import type { Marks } from "../plot/marks";
import { currentStep } from "../steps";
import { type Range, readRange } from "../time/range";
import { RangeControl } from "../time/range-control";
import { Segments } from "../ui/button";
import { STATUS_NAMES } from "../ui/status";
import { type Category, readView, STATUSES, type Status, type View } from "./filters";
import { loadCategories } from "./load";
import { loadMarks } from "./marks";
import { keyOf } from "./projects";
import { Sentence } from "./sentence";

/**
 * Returns the range in the address. Relative ranges end at the last reload, also after going back.
 */
export function useRange(): { range: Range; reload: () => void } {
  const { query } = useAddress();
  const [, draw] = useState(0);
  const last = useRef<number | undefined>(undefined);
  const step = currentStep();
  step.now ??= last.current ?? Date.now();
  last.current = step.now;
  const { now } = step;
  const text = `${query.get("range")} ${query.get("from")} ${query.get("to")}`;
  // Other parameters do not change the range.
  const range = useMemo(() => readRange(query, now), [text, now]);
  const reload = useCallback(() => {
    currentStep().now = Date.now();
    draw((it) => it + 1);
  }, []);
  return { range, reload };
}

export function useView(defaultStatus: Status | null): View {
  const { query } = useAddress();
  const text = query.toString();
  // Each navigation creates a new `query`.
  return useMemo(() => readView(query, defaultStatus), [text, defaultStatus]);
}

export function useCategories(): Category[] | undefined {
  const { project } = useCurrentProject();
  return useLoaded(`categories ${project.id}`, (signal) => loadCategories(project, signal)).data;
}

/** Loads the marks of the projects. */
export function useMarks(projects: readonly Project[], range: Range): Loaded<Marks> {
  const key = `marks ${keyOf(projects)} ${range.from} ${range.to}`;
  return useLoaded(key, (signal) => loadMarks(projects, range, signal));
}

interface ViewBarProps {
  view: View;
  range: Range;
  categories: Category[] | undefined;
  /** The status without a parameter in the address. */
  defaultStatus: Status | null;
  onReload: () => void;
}

export function ViewBar({ view, range, categories, defaultStatus, onReload }: ViewBarProps) {
  const address = useAddress();
  return (
    <div class="view-bar">
      <Sentence view={view} categories={categories} />
      <div class="view-controls">
        <Segments
          name="Status"
          values={[...STATUSES, null]}
          chosen={view.status}
          text={(it) => (it ? STATUS_NAMES[it] : "All")}
          onChoose={(it) =>
            go(changed(address, { status: it === defaultStatus ? null : (it ?? "any") }))
          }
        />
        <RangeControl address={address} range={range} onReload={onReload} />
      </div>
    </div>
  );
}
