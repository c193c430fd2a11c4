/** An error's events divided by release, browser and other categories. A click filters. */

import { changed, go, useAddress } from "../address";
import { api, type Schemas } from "../api/client";
import { type Loaded, useLoaded } from "../api/loaded";
import { useCurrentProject } from "../caller";
import { number, pluralize } from "../time/format";
import type { Range } from "../time/range";
import { ErrorMessage } from "../ui/states";
import {
  type Category,
  type Filter,
  filterParams,
  type View,
  viewKey,
  withFilter,
} from "./filters";
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
  const address = useAddress();
  const { data, error, loading, reload } = summary;
  if (error) return <ErrorMessage small error={error} retry={reload} />;
  const filterBy = (categoryId: string, value: string | null) => {
    const filter = {
      categoryId,
      operator: value === null ? "is_not_set" : "is",
      value: value ?? "",
    } as Filter;
    go(changed(address, filterParams(withFilter(view.filters, filter))));
  };
  const shares = data?.shares.filter((it) => it.rows.some((row) => row.value !== null)) ?? [];
  if (data && shares.length === 0) return null;
  return (
    <div class={loading && data ? "shares stale" : "shares"} aria-busy={!data}>
      {shares.map(({ categoryId, rows }) => {
        const label = categories.find((it) => it.id === categoryId)?.label ?? categoryId;
        const total = rows.reduce((sum, it) => sum + it.errors, 0);
        return (
          <section key={categoryId} aria-label={label}>
            <h2>{label}</h2>
            <ul class="bars">
              {rows.map((it) => {
                const share = total ? (it.errors / total) * 100 : 0;
                const line = (
                  <>
                    <span>
                      <bdi>{it.other ? "All others" : (it.value ?? "not set")}</bdi>
                    </span>
                    <span class="quiet">{number(Math.round(share))}%</span>
                  </>
                );
                return (
                  <li
                    key={it.other ? "other" : `=${it.value}`}
                    title={pluralize(it.errors, "event")}
                  >
                    <i style={{ width: `${share}%` }} />
                    {it.other ? (
                      <span class="bar">{line}</span>
                    ) : (
                      <button type="button" onClick={() => filterBy(categoryId, it.value)}>
                        {line}
                      </button>
                    )}
                  </li>
                );
              })}
            </ul>
          </section>
        );
      })}
    </div>
  );
}
