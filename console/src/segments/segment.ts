/** A segment: conditions with a name, which rules of flags ask for. */

import type { KeyHeader } from "../api/attempt";
import { api, unwrapResponse } from "../api/client";
import type { Project } from "../caller";
import { differing } from "../drafts";
import { conditionInWords } from "../flags/conditions-editor";
import { type Met, same } from "../flags/conflict";
import { type Condition, type Flag, ifMatchOf } from "../flags/flag";
import { compared } from "../flags/history";

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

/** As many as a project may have, which is one page of them. */
const MOST_SEGMENTS = 100;

/** As with flags, the types made of the description do not tell conditions apart. */
function told(segment: Promise<unknown>): Promise<Segment> {
  return segment as Promise<Segment>;
}

export async function loadSegments(project: Project, signal?: AbortSignal): Promise<Segment[]> {
  const params = { path: { idOrSlug: project.slug }, query: { limit: MOST_SEGMENTS } };
  const page = await unwrapResponse(
    api.GET("/v0/project/{idOrSlug}/segments", { params, ...(signal && { signal }) }),
  );
  return page.items as Segment[];
}

export function loadSegment(project: Project, key: string, signal?: AbortSignal): Promise<Segment> {
  const params = { path: { idOrSlug: project.slug, key } };
  return told(
    unwrapResponse(
      api.GET("/v0/project/{idOrSlug}/segments/{key}", { params, ...(signal && { signal }) }),
    ),
  );
}

export function createSegment(
  project: Project,
  draft: SegmentDraft,
  header: KeyHeader,
): Promise<Segment> {
  const params = { path: { idOrSlug: project.slug }, header };
  return told(
    unwrapResponse(
      api.POST("/v0/project/{idOrSlug}/segments", { params, body: { ...draft } as never }),
    ),
  );
}

/** Changes a segment, if it still is as it is known. */
export function patchSegment(
  project: Project,
  known: Segment,
  patch: Partial<Omit<SegmentDraft, "key">>,
): Promise<Segment> {
  const params = {
    path: { idOrSlug: project.slug, key: known.key },
    header: { "If-Match": ifMatchOf(known) },
  };
  return told(
    unwrapResponse(
      api.PATCH("/v0/project/{idOrSlug}/segments/{key}", { params, body: patch as never }),
    ),
  );
}

export function deleteSegment(project: Project, key: string): Promise<unknown> {
  const params = { path: { idOrSlug: project.slug, key } };
  return unwrapResponse(api.DELETE("/v0/project/{idOrSlug}/segments/{key}", { params }));
}

/** What others made of a segment that was known as `base`, and what of it was changed here too. */
export function meetSegment(
  base: SegmentDraft,
  typed: SegmentDraft,
  theirs: SegmentDraft,
  version: number,
): Omit<Met, "isRefused"> {
  const [changed, own] = [differing(base, theirs), differing(base, typed)];
  const isBoth = (it: "name" | "conditions") =>
    it in changed && it in own && !same(own[it], changed[it]);
  const lines = (it: SegmentDraft) => it.conditions.map(conditionInWords);
  return {
    version,
    theirs: [
      { what: "Name", ...compared([base.name], [theirs.name]) },
      { what: "Conditions", ...compared(lines(base), lines(theirs)) },
    ].filter((it) => it.removed.length + it.added.length > 0),
    both: [
      ...(isBoth("name") ? ["its name"] : []),
      ...(isBoth("conditions") ? ["conditions"] : []),
    ],
  };
}

/** The flags that ask for a segment. */
export function usersOf(key: string, flags: Flag[]): Flag[] {
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
