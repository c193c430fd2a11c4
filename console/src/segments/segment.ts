/** Segments: named conditions that flag rules use. */

import type { KeyHeader } from "../api/attempt";
import { api } from "../api/client";
import type { Project } from "../caller";
import { type Condition, type Flag, ifMatchOf } from "../flags/flag";

export interface Segment {
  id: string;
  key: string;
  name: string;
  conditions: Condition[];
  version: number;
  updatedAt: string;
}

export interface SegmentDraft {
  key: string;
  name: string;
  conditions: Condition[];
}

/** The API's limit for a project, and one page. */
const MAX_SEGMENTS = 100;

/** Casts a response: the generated types do not distinguish the kinds of conditions. */
function asSegment(segment: Promise<unknown>): Promise<Segment> {
  return segment as Promise<Segment>;
}

export async function loadSegments(project: Project, signal?: AbortSignal): Promise<Segment[]> {
  const params = { path: { idOrSlug: project.slug }, query: { limit: MAX_SEGMENTS } };
  const page = await api.GET("/v0/project/{idOrSlug}/segments", { params, signal });
  return page.items as Segment[];
}

export function loadSegment(project: Project, key: string, signal?: AbortSignal): Promise<Segment> {
  const params = { path: { idOrSlug: project.slug, key } };
  return asSegment(api.GET("/v0/project/{idOrSlug}/segments/{key}", { params, signal }));
}

export function createSegment(
  project: Project,
  draft: SegmentDraft,
  header: KeyHeader,
): Promise<Segment> {
  const params = { path: { idOrSlug: project.slug }, header };
  return asSegment(
    api.POST("/v0/project/{idOrSlug}/segments", { params, body: { ...draft } as never }),
  );
}

/** Changes a segment if it is still at the known version. */
export function patchSegment(
  project: Project,
  known: Segment,
  patch: Partial<Omit<SegmentDraft, "key">>,
): Promise<Segment> {
  const params = {
    path: { idOrSlug: project.slug, key: known.key },
    header: { "If-Match": ifMatchOf(known) },
  };
  return asSegment(
    api.PATCH("/v0/project/{idOrSlug}/segments/{key}", { params, body: patch as never }),
  );
}

export function deleteSegment(project: Project, key: string): Promise<unknown> {
  const params = { path: { idOrSlug: project.slug, key } };
  return api.DELETE("/v0/project/{idOrSlug}/segments/{key}", { params });
}

/** Returns the flags whose rules use a segment. */
export function flagsUsing(key: string, flags: Flag[]): Flag[] {
  return flags.filter((flag) =>
    flag.rules.some((rule) =>
      rule.conditions.some(
        (it) =>
          (it.operator === "in_segment" || it.operator === "not_in_segment") &&
          it.values.includes(key),
      ),
    ),
  );
}
