/** What happened in a span, for lines on plots: event markers, and changes of flags. */

import { ApiError, api, inTurn, unwrapResponse } from "../api/client";
import type { Project, Scope } from "../caller";
import { type Flag, type FlagList, listFlags } from "../flags/flag";
import { changeInWords, loadChanges } from "../flags/history";
import type { Mark } from "../plot/marks";
import { onKeyChange } from "../session";
import type { Range } from "../time/range";
import { newestOf } from "./newest";

type Span = Pick<Range, "from" | "to">;

/*
 * How many requests a plot may bring, which several projects share: one for the collections of each and one
 * for each of the newest collections, and a few more where one has more than a page; those that the flags
 * take, which for more than a few are remembered for a minute, and one for each flag that was changed last.
 */
const MOST_COLLECTIONS = 20;
const MOST_PAGES = 3;
const MOST_HISTORIES = 20;
const AT_ONCE = 4;
/** A list of flags of more pages than these is not read anew for each plot. */
const FEW_PAGES = 3;
const REMEMBERED_MS = 60_000;

export interface Marks {
  marks: Mark[];
  /** Whether nothing that happened is missing. */
  isAll: boolean;
}
const NOTHING: Marks = { marks: [], isAll: true };

function together(all: Marks[]): Marks {
  return { marks: all.flatMap((it) => it.marks), isAll: all.every((it) => it.isAll) };
}

export async function loadMarks(
  projects: readonly Project[],
  span: Span,
  can: (scope: Scope) => boolean,
  signal: AbortSignal,
): Promise<Marks> {
  const share = (most: number) => Math.max(1, Math.floor(most / projects.length));
  const all = await Promise.all(
    projects.map(async (project) => {
      const happened = await Promise.all([
        can("markers:read") ? loadMarkers(project, span, share(MOST_COLLECTIONS), signal) : NOTHING,
        can("flags:read") ? loadFlagMarks(project, span, share(MOST_HISTORIES), signal) : NOTHING,
      ]);
      const { marks, isAll } = together(happened);
      if (projects.length === 1) return { marks, isAll };
      return { marks: marks.map((it) => ({ ...it, name: `${project.name}: ${it.name}` })), isAll };
    }),
  );
  const { marks, isAll } = together(all);
  return { marks: marks.sort((one, other) => one.at - other.at), isAll };
}

async function loadMarkers(
  project: Project,
  span: Span,
  most: number,
  signal: AbortSignal,
): Promise<Marks> {
  const path = { idOrSlug: project.slug };
  const collections = await unwrapResponse(
    api.GET("/v0/projects/{idOrSlug}/event-marker-collections", {
      params: { path, query: { limit: most } },
      signal,
    }),
  );
  const [from, to] = [Math.floor(span.from), Math.ceil(span.to)];
  const filled = collections.items.filter((it) => it.eventCount > 0);
  const found = await inTurn(filled, AT_ONCE, (it) =>
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
      MOST_PAGES,
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

const rememberedFlags = new Map<string, { at: number; list: FlagList }>();
onKeyChange(() => rememberedFlags.clear());

async function allFlags(project: Project, signal: AbortSignal): Promise<FlagList> {
  const remembered = rememberedFlags.get(project.id);
  if (remembered && Date.now() - remembered.at < REMEMBERED_MS) return remembered.list;
  const list = await listFlags(project, true, signal);
  if (list.pages > FEW_PAGES) rememberedFlags.set(project.id, { at: Date.now(), list });
  return list;
}

async function loadFlagMarks(
  project: Project,
  span: Span,
  most: number,
  signal: AbortSignal,
): Promise<Marks> {
  const { flags, isAll } = await allFlags(project, signal);
  const changed = flags
    .filter((it) => Date.parse(it.updatedAt) >= span.from)
    .sort((one, other) => Date.parse(other.updatedAt) - Date.parse(one.updatedAt));
  const histories = await inTurn(changed.slice(0, most), AT_ONCE, (it) =>
    historyOf(project, it, span, signal),
  );
  // Of those beyond, the last change at least.
  const beyond = changed.slice(most);
  const found = together([
    ...histories,
    { marks: beyond.map(lastChangeOf), isAll: beyond.every((it) => it.version === 1) },
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
      description: `${changeInWords(it)}, by ${it.user ?? "an import"}`,
    }));
    // The newest come first.
    return { marks, isAll: page.nextCursor === null || (marks.at(-1)?.at ?? 0) < span.from };
  } catch (error) {
    // It was deleted after the list was read.
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
