/** An error's events divided by release, browser and other categories. A click filters. */

import { api, type Schemas } from "../api/client";
import { type Loaded, useLoaded } from "../api/loaded";
import { useCurrentProject } from "../caller";
import type { Range } from "../time/range";
import { ErrorMessage } from "../ui/states";
import { Bars } from "./bars";
import { type Category, type View, viewKey } from "./filters";
import { queryOfError } from "./load";

const BY = ["release", "browser", "os", "environment"] as const;
/** The categories of every project. Others are tags of its applications. */
const BUILT_IN = new Set(
  "environment release level handled browser os device country platform transaction bot url type culprit user errorId".split(
    " ",
  ),
);
/** The API's limit. */
const MAX_CATEGORIES = 6;
const MAX_VALUES = 4;

type Summary = Schemas["ErrorSummary"];

/** Loads the numbers of an error once the categories are known. */
export function useSummary(
  errorId: string,
  view: View,
  range: Range,
  categories: Category[] | undefined,
): Loaded<Summary> {
  const { project } = useCurrentProject();
  const tags = (categories ?? []).map((it) => it.id).filter((it) => !BUILT_IN.has(it));
  const by = [...BY, ...tags].slice(0, MAX_CATEGORIES) as (typeof BY)[number][];
  const key = `summary ${errorId} ${by} ${project.id} ${viewKey(view, range)}`;
  return useLoaded(categories ? key : null, (signal) =>
    api.POST("/v0/projects/{idOrSlug}/errors/{errorId}/summary/query", {
      params: { path: { idOrSlug: project.slug, errorId } },
      body: { ...queryOfError(view, range), by, limit: MAX_VALUES },
      signal,
    }),
  );
}

interface SharesProps {
  summary: Loaded<Summary>;
  view: View;
  categories: Category[];
}

export function Shares({ summary, view, categories }: SharesProps) {
  const { data, error, loading, reload } = summary;
  if (error) return <ErrorMessage small error={error} retry={reload} />;
  const shares = data?.shares.filter((it) => it.rows.some((row) => row.value !== null)) ?? [];
  if (data && shares.length === 0) return null;
  return (
    <div class={loading && data ? "shares stale" : "shares"} aria-busy={!data}>
      {shares.map(({ categoryId, rows }) => {
        const label = categories.find((it) => it.id === categoryId)?.label ?? categoryId;
        return (
          <section key={categoryId} aria-label={label}>
            <h2>{label}</h2>
            <Bars categoryId={categoryId} rows={rows} view={view} />
          </section>
        );
      })}
    </div>
  );
}
