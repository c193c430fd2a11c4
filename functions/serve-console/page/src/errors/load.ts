/** What pages about errors ask the API for. */

import { answered, answeredWithHeaders, api, inTurn, type Schemas } from "../api/client";
import type { Project, Scope } from "../caller";
import type { Mark } from "../plot/marks";
import type { Series } from "../plot/plot";
import type { Range } from "../time/range";
import { type Category, queryOf, type View } from "./filters";

export type ErrorRow = Schemas["ErrorMatch"];
type Span = Pick<Range, "from" | "to">;

export async function loadSeries(
  project: Project,
  view: View,
  span: Span,
  signal?: AbortSignal,
): Promise<Series> {
  const { data, headers } = await answeredWithHeaders(
    api.POST("/v0/errors/timeseries/query", {
      body: { projectIds: [project.slug], ...queryOf(view, span) },
      ...(signal && { signal }),
    }),
  );
  return {
    buckets: data,
    bucketMs: Number(headers.get("x-bucket-seconds") ?? 3600) * 1000,
    from: Number(headers.get("x-range-from") ?? span.from),
    to: Number(headers.get("x-range-to") ?? span.to),
  };
}

export function totalOf(series: Series): number {
  return series.buckets.reduce((sum, it) => sum + it.errors, 0);
}

export function loadCategories(project: Project, signal: AbortSignal): Promise<Category[]> {
  const params = { path: { idOrSlug: project.slug } };
  return answered(api.GET("/v0/projects/{idOrSlug}/errors/categories", { params, signal }));
}

export function loadErrors(
  project: Project,
  view: View,
  span: Span,
  more: { sort?: Schemas["ErrorsQuery"]["sort"]; limit?: number; cursor?: string | null },
  signal?: AbortSignal,
): Promise<Schemas["ErrorMatchPage"]> {
  return answered(
    api.POST("/v0/projects/{idOrSlug}/errors/query", {
      params: { path: { idOrSlug: project.slug } },
      body: { ...queryOf(view, span), ...more },
      ...(signal && { signal }),
    }),
  );
}

/** Collections whose events are drawn: the newest ones. */
const MOST_COLLECTIONS = 20;

/** What happened in a span: event markers, and changes of flags. */
export async function loadMarks(
  project: Project,
  span: Span,
  can: (scope: Scope) => boolean,
  signal: AbortSignal,
): Promise<Mark[]> {
  const [markers, flags] = await Promise.all([
    can("markers:read") ? loadMarkers(project, span, signal) : [],
    can("flags:read") ? loadFlagMarks(project, span, signal) : [],
  ]);
  return [...markers, ...flags].sort((one, other) => one.at - other.at);
}

async function loadMarkers(project: Project, span: Span, signal: AbortSignal): Promise<Mark[]> {
  const path = { idOrSlug: project.slug };
  const collections = await answered(
    api.GET("/v0/projects/{idOrSlug}/event-marker-collections", {
      params: { path, query: { limit: MOST_COLLECTIONS } },
      signal,
    }),
  );
  const { from, to } = { from: Math.floor(span.from), to: Math.ceil(span.to) };
  const filled = collections.items.filter((it) => it.eventCount > 0);
  const pages = await inTurn(filled, 4, (it) =>
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

async function loadFlagMarks(project: Project, span: Span, signal: AbortSignal): Promise<Mark[]> {
  const params = { path: { idOrSlug: project.slug }, query: { limit: 100 } };
  const page = await answered(api.GET("/v0/project/{idOrSlug}/feature-flags", { params, signal }));
  return page.items
    .map((it) => ({
      id: it.id,
      kind: "flag" as const,
      at: Date.parse(it.updatedAt),
      name: `Flag ${it.key}`,
      description:
        it.version === 1
          ? "created"
          : `changed; ${it.enabled ? "on" : "off"} since version ${it.version} or before`,
    }))
    .filter((it) => it.at >= span.from && it.at < span.to);
}

export function setStatus(project: Project, errorId: string, status: Schemas["ErrorStatus"]) {
  return answered(
    api.PATCH("/v0/projects/{idOrSlug}/errors/{errorId}", {
      params: { path: { idOrSlug: project.slug, errorId } },
      body: { status },
    }),
  );
}

/**
 * The view of one error's events: no filter names an error, so they are found by its type, its culprit
 * and its title. Whoever draws them compares their number with the error's own.
 */
export function viewOfError(view: View, error: Pick<ErrorRow, "type" | "culprit" | "title">): View {
  const quoted = error.title
    .split('"')
    .reduce((longest, part) => (part.length > longest.length ? part : longest), "")
    .replace(/…$/, "");
  const filters = [...view.filters];
  if (error.type) filters.push({ categoryId: "type", operator: "is", value: error.type });
  if (error.culprit) filters.push({ categoryId: "culprit", operator: "is", value: error.culprit });
  const search = [view.search, quoted && `"${quoted.slice(0, 200)}"`].filter(Boolean).join(" ");
  return { filters, search, status: view.status };
}
