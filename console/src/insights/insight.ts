/** API requests of the insight pages. */

import type { KeyHeader } from "../api/attempt";
import { api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { loadPages } from "../api/pages";
import { type Project, useCan } from "../caller";
import { currentStep } from "../steps";
import { useNextPage } from "../ui/row-parts";

export type Insight = Schemas["Insight"];
export type PainPoint = Schemas["PainPoint"];
export type InsightStatus = Schemas["InsightStatus"];

/** Maximum errors whose types a page loads. */
const MAX_ERROR_TYPES = 20;
const NO_TYPES: ReadonlyMap<string, string> = new Map();

/** Pages of 100 items that are loaded at a time. */
const MAX_PAGES = 5;

export function loadInsight(project: Project, id: string, signal: AbortSignal): Promise<Insight> {
  return api.GET("/v0/projects/{idOrSlug}/replay-insights/{insightId}", {
    params: { path: { idOrSlug: project.slug, insightId: id } },
    signal,
  });
}

export async function loadPainPoints(
  { slug }: Project,
  insightId: string,
  signal?: AbortSignal,
): Promise<PainPoint[]> {
  const path = { idOrSlug: slug, insightId };
  const load = (query: { limit: number; cursor?: string | undefined }) =>
    api.GET("/v0/projects/{idOrSlug}/replay-insights/{insightId}/pain-points", {
      params: { path, query },
      signal,
    });
  return (await loadPages(load, MAX_PAGES)).items;
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

/** Loads a list of insights, as many pages as before going back, and more on request. */
export function useInsights(project: Project, status: InsightStatus | null) {
  const load = (pages: number, after: string | null, signal?: AbortSignal) =>
    loadPages(
      (query) =>
        api.GET("/v0/projects/{idOrSlug}/replay-insights", {
          params: {
            path: { idOrSlug: project.slug },
            query: { ...query, status: status ?? undefined },
          },
          signal,
        }),
      pages,
      after,
    );
  const loaded = useLoaded(`insights ${project.id} ${status}`, (signal) =>
    load(currentStep().pages ?? MAX_PAGES, null, signal),
  );
  const more = useNextPage(loaded, async (cursor: string) => {
    const page = await load(MAX_PAGES, cursor);
    const step = currentStep();
    step.pages = (step.pages ?? MAX_PAGES) + MAX_PAGES;
    return page;
  });
  return { ...loaded, ...more, next: loaded.loading ? null : loaded.data?.nextCursor };
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
