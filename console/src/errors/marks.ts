/** Loads the marks of a time range: event markers and flag changes. */

import { ApiError, api, mapConcurrently, unwrapResponse } from "../api/client";
import type { Project, Scope } from "../caller";
import { type Flag, type FlagList, listFlags } from "../flags/flag";
import { describeChange, loadChanges } from "../flags/history";
import type { Mark } from "../plot/marks";
import { onCredentialChange } from "../session";
import type { Range } from "../time/range";
import { newestOf } from "./newest";

type Span = Pick<Range, "from" | "to">;

/*
 * Limits on the requests of a plot, which its projects share. Markers take one request for the
 * collections of each project, and up to `MAX_PAGES` for each of the newest collections. A longer
 * collection takes more, to find its newest markers. Flags take one for each page, and one for each
 * of the last changed flags.
 */
const MAX_COLLECTIONS = 20;
const MAX_PAGES = 3;
const MAX_HISTORIES = 20;
const CONCURRENCY = 4;
/** Flag lists with more pages than this are cached. */
const UNCACHED_PAGES = 3;
const FLAG_CACHE_MS = 60_000;

export interface Marks {
  marks: Mark[];
  /** `false` if marks are missing. */
  isAll: boolean;
}
const NONE: Marks = { marks: [], isAll: true };

function combine(all: Marks[]): Marks {
  return { marks: all.flatMap((it) => it.marks), isAll: all.every((it) => it.isAll) };
}

export async function loadMarks(
  projects: readonly Project[],
  span: Span,
  can: (scope: Scope) => boolean,
  signal: AbortSignal,
): Promise<Marks> {
  const share = (limit: number) => Math.max(1, Math.floor(limit / projects.length));
  const all = await Promise.all(
    projects.map(async (project) => {
      const sources = await Promise.all([
        can("markers:read") ? loadMarkers(project, span, share(MAX_COLLECTIONS), signal) : NONE,
        can("flags:read") ? loadFlagMarks(project, span, share(MAX_HISTORIES), signal) : NONE,
      ]);
      const { marks, isAll } = combine(sources);
      if (projects.length === 1) return { marks, isAll };
      return { marks: marks.map((it) => ({ ...it, name: `${project.name}: ${it.name}` })), isAll };
    }),
  );
  const { marks, isAll } = combine(all);
  return { marks: marks.sort((one, other) => one.at - other.at), isAll };
}

async function loadMarkers(
  project: Project,
  span: Span,
  limit: number,
  signal: AbortSignal,
): Promise<Marks> {
  const path = { idOrSlug: project.slug };
  const collections = await unwrapResponse(
    api.GET("/v0/projects/{idOrSlug}/event-marker-collections", {
      params: { path, query: { limit } },
      signal,
    }),
  );
  const [from, to] = [Math.floor(span.from), Math.ceil(span.to)];
  const filled = collections.items.filter((it) => it.eventCount > 0);
  const found = await mapConcurrently(filled, CONCURRENCY, (it) =>
    newestOf(
      (start, cursor) =>
        unwrapResponse(
          api.GET("/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}/events", {
            params: {
              path: { ...path, collectionId: it.id },
              query: { from: start, to, limit: 100, ...(cursor && { cursor }) },
            },
            signal,
          }),
        ),
      from,
      to,
      MAX_PAGES,
    ),
  );
  return {
    marks: found.flatMap(({ items }) =>
      items.map((it) => ({
        id: it.id,
        kind: "marker" as const,
        at: Date.parse(it.occurredAt),
        name: it.name,
        description: it.description,
      })),
    ),
    isAll: collections.nextCursor === null && found.every((it) => it.isAll),
  };
}

const flagCache = new Map<string, { at: number; list: FlagList }>();
onCredentialChange(() => flagCache.clear());

async function allFlags(project: Project, signal: AbortSignal): Promise<FlagList> {
  const cached = flagCache.get(project.id);
  if (cached && Date.now() - cached.at < FLAG_CACHE_MS) return cached.list;
  const list = await listFlags(project, true, signal);
  if (list.pages > UNCACHED_PAGES) flagCache.set(project.id, { at: Date.now(), list });
  return list;
}

async function loadFlagMarks(
  project: Project,
  span: Span,
  limit: number,
  signal: AbortSignal,
): Promise<Marks> {
  const { flags, isAll } = await allFlags(project, signal);
  const changed = flags
    .filter((it) => Date.parse(it.updatedAt) >= span.from)
    .sort((one, other) => Date.parse(other.updatedAt) - Date.parse(one.updatedAt));
  const histories = await mapConcurrently(changed.slice(0, limit), CONCURRENCY, (it) =>
    historyOf(project, it, span, signal),
  );
  // The histories of further flags are not loaded; only their last change is known.
  const others = changed.slice(limit);
  const found = combine([
    ...histories,
    { marks: others.map(lastChangeOf), isAll: others.every((it) => it.version === 1) },
  ]);
  return {
    marks: found.marks.filter((it) => it.at >= span.from && it.at < span.to),
    isAll: isAll && found.isAll,
  };
}

async function historyOf(
  project: Project,
  flag: Flag,
  span: Span,
  signal: AbortSignal,
): Promise<Marks> {
  try {
    const page = await loadChanges(project, flag.key, { limit: 100 }, signal);
    const marks = page.items.map((it) => ({
      id: `${flag.id} ${it.version}`,
      kind: "flag" as const,
      at: Date.parse(it.at),
      name: flag.key,
      description: `${describeChange(it)}, by ${it.user ?? "an import"}`,
    }));
    // Newest first.
    return { marks, isAll: page.nextCursor === null || (marks.at(-1)?.at ?? 0) < span.from };
  } catch (error) {
    // The flag was deleted after the list was loaded.
    if (error instanceof ApiError && error.status === 404)
      return { marks: [lastChangeOf(flag)], isAll: true };
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
