/** What pages about insights ask the API for. */

import type { KeyHeader } from "../api/attempt";
import { answered, api, type Schemas } from "../api/client";
import type { Project } from "../caller";

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

/** Pages of 100 that are loaded of a list at once. */
const MOST_PAGES = 5;

export async function loadInsights(
  project: Project,
  status: InsightStatus | null,
  signal?: AbortSignal,
): Promise<Insight[]> {
  return allPages((cursor) =>
    answered(
      api.GET("/v0/projects/{idOrSlug}/replay-insights", {
        params: {
          path: { idOrSlug: project.slug },
          query: { limit: 100, ...(status && { status }), ...(cursor && { cursor }) },
        },
        ...(signal && { signal }),
      }),
    ),
  );
}

export async function loadPainPoints(
  project: Project,
  insightId: string,
  signal?: AbortSignal,
): Promise<PainPoint[]> {
  return allPages((cursor) =>
    answered(
      api.GET("/v0/projects/{idOrSlug}/replay-insights/{insightId}/pain-points", {
        params: {
          path: { idOrSlug: project.slug, insightId },
          query: { limit: 100, ...(cursor && { cursor }) },
        },
        ...(signal && { signal }),
      }),
    ),
  );
}

async function allPages<T>(
  load: (cursor: string | null) => Promise<{ items: T[]; nextCursor: string | null }>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const loaded: { items: T[]; nextCursor: string | null } = await load(cursor);
    items.push(...loaded.items);
    cursor = loaded.nextCursor;
    if (!cursor) break;
  }
  return items;
}

export function patchInsight(
  project: Project,
  insightId: string,
  body: Schemas["InsightPatch"],
): Promise<Insight> {
  const params = { path: { idOrSlug: project.slug, insightId } };
  return answered(
    api.PATCH("/v0/projects/{idOrSlug}/replay-insights/{insightId}", { params, body }),
  );
}

export function split(
  project: Project,
  insightId: string,
  painPointIds: string[],
  title: string,
  header: KeyHeader,
): Promise<Insight> {
  return answered(
    api.POST("/v0/projects/{idOrSlug}/replay-insights/{insightId}/split", {
      params: { path: { idOrSlug: project.slug, insightId }, header },
      body: { painPointIds, ...(title && { title }) },
    }),
  );
}

export function merge(
  project: Project,
  insightId: string,
  into: string,
  header: KeyHeader,
): Promise<Insight> {
  return answered(
    api.POST("/v0/projects/{idOrSlug}/replay-insights/{insightId}/merge", {
      params: { path: { idOrSlug: project.slug, insightId }, header },
      body: { into },
    }),
  );
}
