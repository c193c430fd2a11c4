/** What happened in a span, for lines on plots: event markers, and changes of flags. */

import { answered, api, inTurn, Refusal } from "../api/client";
import type { Project, Scope } from "../caller";
import { type Flag, loadFlags } from "../flags/flag";
import { changeInWords, loadChanges } from "../flags/history";
import type { Mark } from "../plot/marks";
import type { Range } from "../time/range";

type Span = Pick<Range, "from" | "to">;

/*
 * How many requests a plot may bring, which several projects share: one for the collections of each and one
 * for each of the newest collections; three for the first 300 flags of each and one for each of those that
 * were changed last. A page of 100 is all that is asked for of any.
 */
const MOST_COLLECTIONS = 20;
const MOST_HISTORIES = 20;
const MOST_FLAG_PAGES = 3;
const AT_ONCE = 4;

export async function loadMarks(
  projects: readonly Project[],
  span: Span,
  can: (scope: Scope) => boolean,
  signal: AbortSignal,
): Promise<Mark[]> {
  const share = (most: number) => Math.max(1, Math.floor(most / projects.length));
  const all = await Promise.all(
    projects.map(async (project) => {
      const [markers, flags] = await Promise.all([
        can("markers:read") ? loadMarkers(project, span, share(MOST_COLLECTIONS), signal) : [],
        can("flags:read") ? loadFlagMarks(project, span, share(MOST_HISTORIES), signal) : [],
      ]);
      const marks = [...markers, ...flags];
      if (projects.length === 1) return marks;
      return marks.map((it) => ({ ...it, name: `${project.name}: ${it.name}` }));
    }),
  );
  return all.flat().sort((one, other) => one.at - other.at);
}

async function loadMarkers(
  project: Project,
  span: Span,
  most: number,
  signal: AbortSignal,
): Promise<Mark[]> {
  const path = { idOrSlug: project.slug };
  const collections = await answered(
    api.GET("/v0/projects/{idOrSlug}/event-marker-collections", {
      params: { path, query: { limit: most } },
      signal,
    }),
  );
  const { from, to } = { from: Math.floor(span.from), to: Math.ceil(span.to) };
  const filled = collections.items.filter((it) => it.eventCount > 0);
  const pages = await inTurn(filled, AT_ONCE, (it) =>
    answered(
      api.GET("/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}/events", {
        params: { path: { ...path, collectionId: it.id }, query: { from, to, limit: 100 } },
        signal,
      }),
    ),
  );
  return pages.flatMap((page) =>
    page.items.map((it) => ({
      id: it.id,
      kind: "marker" as const,
      at: Date.parse(it.occurredAt),
      name: it.name,
      description: it.description,
    })),
  );
}

async function loadFlagMarks(
  project: Project,
  span: Span,
  most: number,
  signal: AbortSignal,
): Promise<Mark[]> {
  const flags = await loadFlags(project, true, signal, MOST_FLAG_PAGES);
  const changed = flags
    .filter((it) => Date.parse(it.updatedAt) >= span.from)
    .sort((one, other) => Date.parse(other.updatedAt) - Date.parse(one.updatedAt));
  const marks = await inTurn(changed.slice(0, most), AT_ONCE, (it) =>
    historyOf(project, it, signal),
  );
  // Of those beyond, the last change at least.
  const others = changed.slice(most).map(lastChangeOf);
  return [...marks.flat(), ...others].filter((it) => it.at >= span.from && it.at < span.to);
}

async function historyOf(project: Project, flag: Flag, signal: AbortSignal): Promise<Mark[]> {
  try {
    const page = await loadChanges(project, flag.key, { limit: 100 }, signal);
    return page.items.map((it) => ({
      id: `${flag.id} ${it.version}`,
      kind: "flag" as const,
      at: Date.parse(it.at),
      name: flag.key,
      description: `${changeInWords(it)}, by ${it.user ?? "an import"}`,
    }));
  } catch (error) {
    // It was deleted after the list was read.
    if (error instanceof Refusal && error.status === 404) return [lastChangeOf(flag)];
    throw error;
  }
}

function lastChangeOf(flag: Flag): Mark {
  return {
    id: flag.id,
    kind: "flag",
    at: Date.parse(flag.updatedAt),
    name: flag.key,
    description: flag.version === 1 ? "Created" : `Changed, version ${flag.version}`,
  };
}
