/** The bar that says what a page is about: the sentence and the time. */

import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { useAddress } from "../address";
import { useLoaded } from "../api/loaded";
import { type Project, useCan, useCurrentProject } from "../caller";
import type { Mark } from "../plot/marks";
import { stepNow } from "../steps";
import { type Range, readRange } from "../time/range";
import { RangeControl } from "../time/range-control";
import { type Category, readView, type Status, type View } from "./filters";
import { loadCategories } from "./load";
import { loadMarks } from "./marks";
import { keyOf } from "./projects";
import { Sentence } from "./sentence";

/** The range of the address, with a now that stays until it is loaded again, also for who comes back. */
export function useRange(): { range: Range; reload: () => void } {
  const { query } = useAddress();
  const [, draw] = useState(0);
  const last = useRef<number | undefined>(undefined);
  const step = stepNow();
  step.now ??= last.current ?? Date.now();
  last.current = step.now;
  const { now } = step;
  const asked = `${query.get("range")} ${query.get("from")} ${query.get("to")}`;
  // Of the query only these three count.
  const range = useMemo(() => readRange(query, now), [asked, now]);
  const reload = useCallback(() => {
    stepNow().now = Date.now();
    draw((it) => it + 1);
  }, []);
  return { range, reload };
}

export function useView(usual: Status | null): View {
  const { query } = useAddress();
  const text = query.toString();
  // The same text is the same view.
  return useMemo(() => readView(query, usual), [text, usual]);
}

export function useCategories(): Category[] | undefined {
  const { project } = useCurrentProject();
  return useLoaded(`categories ${project.id}`, (signal) => loadCategories(project, signal)).data;
}

const NONE: Mark[] = [];

/** What happened in the projects; where that cannot be told, why. */
export function useMarks(projects: readonly Project[], range: Range) {
  const can = useCan();
  const key = `marks ${keyOf(projects)} ${range.from} ${range.to}`;
  const loaded = useLoaded(key, (signal) => loadMarks(projects, range, can, signal));
  const { data, error, reload } = loaded;
  return {
    marks: data?.marks ?? NONE,
    isAll: data?.isAll ?? true,
    isThere: data !== undefined,
    error,
    reload,
  };
}

interface ViewBarProps {
  view: View;
  range: Range;
  categories: Category[] | undefined;
  onReload: () => void;
}

export function ViewBar({ view, range, categories, onReload }: ViewBarProps) {
  const address = useAddress();
  return (
    <div class="view-bar">
      <Sentence view={view} categories={categories} />
      <RangeControl address={address} range={range} onReload={onReload} />
    </div>
  );
}
