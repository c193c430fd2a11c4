/** API requests of the insight pages. */

import { useState } from "preact/hooks";
import type { KeyHeader } from "../api/attempt";
import { api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { type Project, useCan } from "../caller";
import { currentStep } from "../steps";
import { showErrorToast } from "../ui/toast";

export type Insight = Schemas["Insight"];
export type PainPoint = Schemas["PainPoint"];
export type InsightStatus = Schemas["InsightStatus"];
export type SettableStatus = Exclude<InsightStatus, "merged">;

export const STATUS_NAMES: Record<InsightStatus, string> = {
  open: "Open",
  resolved: "Resolved",
  ignored: "Ignored",
  merged: "Merged",
};

/** Maximum errors whose types a page loads. */
const MAX_ERROR_TYPES = 20;
const NO_TYPES: ReadonlyMap<string, string> = new Map();

/** Pages of 100 items that are loaded at a time. */
export const MAX_PAGES = 5;

/** A part of a list. */
export interface Part<T> {
  items: T[];
  /** Cursor of the next part. */
  next: string | null;
}

export function loadInsight(project: Project, id: string, signal: AbortSignal): Promise<Insight> {
  return api.GET("/v0/projects/{idOrSlug}/replay-insights/{insightId}", {
    params: { path: { idOrSlug: project.slug, insightId: id } },
    signal,
  });
}

export async function loadInsights(
  project: Project,
  status: InsightStatus | null,
  options: { pages?: number; after?: string | null; signal?: AbortSignal } = {},
): Promise<Part<Insight>> {
  const { pages = MAX_PAGES, after = null, signal } = options;
  const load = (cursor: string | null) =>
    api.GET("/v0/projects/{idOrSlug}/replay-insights", {
      params: {
        path: { idOrSlug: project.slug },
        query: { limit: 100, ...(status && { status }), ...(cursor && { cursor }) },
      },
      signal,
    });
  return firstPages(load, pages, after);
}

export async function loadPainPoints(
  project: Project,
  insightId: string,
  signal?: AbortSignal,
  pages = MAX_PAGES,
): Promise<PainPoint[]> {
  const load = (cursor: string | null) =>
    api.GET("/v0/projects/{idOrSlug}/replay-insights/{insightId}/pain-points", {
      params: {
        path: { idOrSlug: project.slug, insightId },
        query: { limit: 100, ...(cursor && { cursor }) },
      },
      signal,
    });
  return (await firstPages(load, pages, null)).items;
}

/** Returns the types of the errors that followed pain points, by ID. Deleted errors have none. */
export function useErrorTypes(
  project: Project,
  points: readonly PainPoint[],
): ReadonlyMap<string, string> {
  const canRead = useCan()("errors:read");
  const all = new Set(points.flatMap((it) => it.evidence?.errorId ?? []));
  const ids = canRead ? [...all].slice(0, MAX_ERROR_TYPES) : [];
  const key = ids.length > 0 ? `error types ${project.id} ${ids.join(" ")}` : null;
  const { data } = useLoaded(key, async (signal) => {
    const load = async (errorId: string) => {
      const params = { path: { idOrSlug: project.slug, errorId } };
      const error = await api.GET("/v0/projects/{idOrSlug}/errors/{errorId}", { params, signal });
      return [errorId, error.type] as const;
    };
    const found = await Promise.allSettled(ids.map(load));
    return new Map(found.flatMap((it) => (it.status === "fulfilled" ? [it.value] : [])));
  });
  return data ?? NO_TYPES;
}

async function firstPages<T>(
  load: (cursor: string | null) => Promise<{ items: T[]; nextCursor: string | null }>,
  limit: number,
  after: string | null,
): Promise<Part<T>> {
  const items: T[] = [];
  let next = after;
  for (let pages = 0; pages < limit; pages++) {
    const page = await load(next);
    items.push(...page.items);
    next = page.nextCursor;
    if (!next) break;
  }
  return { items, next };
}

/** Loads a list of insights, as many pages as before going back, and more on request. */
export function useInsights(project: Project, status: InsightStatus | null) {
  const loaded = useLoaded(`insights ${project.id} ${status}`, (signal) =>
    loadInsights(project, status, { pages: currentStep().pages ?? MAX_PAGES, signal }),
  );
  const [busy, setBusy] = useState(false);
  const next = loaded.loading ? null : (loaded.data?.next ?? null);
  const loadMore = async () => {
    if (!next || busy) return;
    setBusy(true);
    try {
      const part = await loadInsights(project, status, { after: next });
      const step = currentStep();
      step.pages = (step.pages ?? MAX_PAGES) + MAX_PAGES;
      loaded.set((was) => ({ items: [...was.items, ...part.items], next: part.next }));
    } catch (error) {
      showErrorToast(error);
    }
    setBusy(false);
  };
  return { ...loaded, next, loadMore, busy };
}

export function patchInsight(
  project: Project,
  insightId: string,
  body: Schemas["InsightPatch"],
): Promise<Insight> {
  const params = { path: { idOrSlug: project.slug, insightId } };
  return api.PATCH("/v0/projects/{idOrSlug}/replay-insights/{insightId}", { params, body });
}

export function split(
  project: Project,
  insightId: string,
  painPointIds: string[],
  title: string,
  header: KeyHeader,
): Promise<Insight> {
  return api.POST("/v0/projects/{idOrSlug}/replay-insights/{insightId}/split", {
    params: { path: { idOrSlug: project.slug, insightId }, header },
    body: { painPointIds, ...(title && { title }) },
  });
}

export function merge(
  project: Project,
  insightId: string,
  into: string,
  header: KeyHeader,
): Promise<Insight> {
  return api.POST("/v0/projects/{idOrSlug}/replay-insights/{insightId}/merge", {
    params: { path: { idOrSlug: project.slug, insightId }, header },
    body: { into },
  });
}

/** Maximum pain points of one split. */
export const MAX_SPLIT = 500;

/** Undoes a merge, as long as the other insight's pain points have not changed since. */
export function undoMerge(project: Project, { id, status }: Insight): Promise<Insight> {
  return patchInsight(project, id, { status: status === "merged" ? "open" : status });
}
