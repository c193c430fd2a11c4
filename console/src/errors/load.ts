/** API requests of the error pages. */

import { api, client, type Schemas, unwrapWithHeaders } from "../api/client";
import type { Project } from "../caller";
import type { Series } from "../plot/plot";
import type { Range } from "../time/range";
import { type Category, MAX_FILTERS, queryOf, type View } from "./filters";

export type ErrorRow = Schemas["ErrorMatch"];
type Span = Pick<Range, "from" | "to">;

/** Loads events over time, summed over the projects. */
export async function loadSeries(
  projects: readonly Project[],
  view: View,
  span: Span,
  signal?: AbortSignal,
): Promise<Series> {
  const { data, headers } = await unwrapWithHeaders(
    client.POST("/v0/errors/timeseries/query", {
      body: { projectIds: projects.map((it) => it.slug), ...queryOf(view, span) },
      signal,
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

export function loadCategories(project: Project, signal?: AbortSignal): Promise<Category[]> {
  const params = { path: { idOrSlug: project.slug } };
  return api.GET("/v0/projects/{idOrSlug}/errors/categories", { params, signal });
}

export interface ErrorPage {
  items: ErrorRow[];
  nextCursor: string | null;
  /** Time of the request, in milliseconds. */
  at: number;
}

export async function loadErrors(
  project: Project,
  view: View,
  span: Span,
  options: Pick<Schemas["ErrorsQuery"], "sort" | "limit" | "cursor" | "series">,
  signal?: AbortSignal,
): Promise<ErrorPage> {
  const at = Date.now();
  const page = await api.POST("/v0/projects/{idOrSlug}/errors/query", {
    params: { path: { idOrSlug: project.slug } },
    body: { ...queryOf(view, span), ...options },
    signal,
  });
  return { ...page, at };
}

export function patchError(project: Project, errorId: string, body: Schemas["ErrorPatch"]) {
  return api.PATCH("/v0/projects/{idOrSlug}/errors/{errorId}", {
    params: { path: { idOrSlug: project.slug, errorId } },
    body,
  });
}

/** Returns the view of a single error under the filters of a list. */
export function viewOfError(errorId: string, { filters, search }: View): View {
  const filter = { categoryId: "errorId", operator: "is", value: errorId } as const;
  return { filters: [...filters.slice(0, MAX_FILTERS - 1), filter], search, status: null };
}

/** Returns the fields of queries about a single error, whose id is in the path. */
export function queryOfError(view: View, range: Span) {
  return { ...queryOf(view, range), status: null };
}
