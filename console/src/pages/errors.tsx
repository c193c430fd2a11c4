import { useEffect, useMemo, useState } from "preact/hooks";
import { changed, go, hrefOf, Link, useAddress } from "../address";
import { api, type Schemas, unwrapResponse } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { Breakdown } from "../errors/breakdown";
import { STATUSES, type Status, viewKey } from "../errors/filters";
import {
  type ErrorPage as ErrorListPage,
  type ErrorRow,
  loadErrors,
  loadSeries,
} from "../errors/load";
import { rememberListed } from "../errors/neighbours";
import { changeStatus, statusNow, useChanges } from "../errors/status";
import { useCategories, useMarks, useRange, useView, ViewBar } from "../errors/view-bar";
import { useKeys } from "../keys";
import { Plot } from "../plot/plot";
import { Spark } from "../plot/spark";
import { stepNow } from "../steps";
import { counted, number } from "../time/format";
import { keptView, rangeParams } from "../time/range";
import { useAnnouncement } from "../ui/announcement";
import { SelectCell } from "../ui/row-parts";
import { meant, rowAt, useRows } from "../ui/rows";
import { Empty, Refused, SkeletonRows } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast } from "../ui/toast";
import { useRowWindow, WindowedRows } from "../ui/window";
import { Onboarding } from "./onboarding";

type Sort = NonNullable<Schemas["ErrorsQuery"]["sort"]>;
const SORTS: Sort[] = ["lastSeen", "firstSeen", "count", "users"];
const PAGE_SIZE = 50;
const NO_ROWS: ListedError[] = [];
const NO_PAGES: ErrorListPage[] = [];

export const STATUS_NAMES: Record<Status, string> = {
  open: "Open",
  resolved: "Resolved",
  ignored: "Ignored",
};

export function ErrorsPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const mayWrite = useCan()("errors:write");
  const { range, reload } = useRange();
  const view = useView("open");
  const categories = useCategories();
  const { marks, isAll } = useMarks([project], range);
  const asked = address.query.get("sort") as Sort | null;
  const sort = asked && SORTS.includes(asked) ? asked : "lastSeen";
  const base = `${project.id} ${viewKey(view, range)}`;
  const series = useLoaded(
    `series ${base}`,
    (signal) => loadSeries([project], view, range, signal),
    "first",
  );
  const listKey = `errors ${sort} ${base}`;
  const list = useLoaded(
    listKey,
    (signal) => loadErrors(project, view, range, { sort, limit: PAGE_SIZE, series: true }, signal),
    "first",
  );
  const more = useMore(listKey, list.data, (cursor) =>
    loadErrors(project, view, range, { sort, limit: 100, cursor, series: true }),
  );
  const changes = useChanges();
  // What was changed here goes, or stays with its new status, without a list that is loaded anew.
  const items = useMemo(
    () =>
      more.items
        .map((it) => ({ ...it, status: statusNow(it, it.at) }))
        .filter((it) => view.status === null || it.status === view.status),
    [more.items, view.status, changes],
  );
  const ids = useMemo(() => items.map((it) => it.errorId), [items]);
  useEffect(() => rememberListed(ids), [ids]);
  const hrefOfError = (id: string) => hrefOf("error", { ...keptView(address, "error"), id });
  const near = useRowWindow(items.length, 48);
  const rows = useRows(ids, (id) => go(hrefOfError(id)), near.reveal);
  const isFiltered = view.filters.length > 0 || view.search !== "";
  const isFresh = !isFiltered && categories?.every((it) => it.values.length === 0);
  const refresh = (failed: readonly ErrorRow[]) => {
    series.reload();
    if (failed.length) rows.selectAll(failed.map((it) => it.errorId));
  };
  // Where all that were listed are gone, others come; what goes wrong is asked for again by hand.
  const isUsedUp = items.length === 0 && more.cursor !== null;
  useEffect(() => {
    if (isUsedUp) more.load();
  }, [isUsedUp, more.cursor]);
  const change = (status: Status) => {
    const chosen = new Set(meant(rows, ids));
    const errors = items.filter((it) => chosen.has(it.errorId));
    rows.clear();
    void changeStatus(project, errors, status, refresh);
  };
  const many = more.cursor
    ? `${number(items.length)} errors or more`
    : counted(items.length, "error");
  useAnnouncement(JSON.stringify(view), list.data && !list.loading ? many : null);
  useKeys(
    mayWrite
      ? { e: () => change("resolved"), i: () => change("ignored"), o: () => change("open") }
      : {},
  );

  return (
    <>
      <h1 class="hidden">Errors</h1>
      <ViewBar view={view} range={range} categories={categories} onReload={reload} />
      {series.data ? (
        <Plot
          series={series.data}
          marks={marks}
          isAll={isAll}
          height={140}
          stale={series.loading}
          onZoom={(from, to) => go(changed(address, rangeParams({ from, to })))}
        />
      ) : (
        !series.error && <div class="skeleton plot-skeleton" style={{ height: "164px" }} />
      )}
      <div class="with-aside">
        <section>
          <div class="bulk">
            {rows.selected.size > 0 ? (
              <>
                <b>{counted(rows.selected.size, "error")} selected</b>
                <button type="button" onClick={() => change("resolved")}>
                  Resolve
                </button>
                <button type="button" onClick={() => change("ignored")}>
                  Ignore
                </button>
                <button type="button" onClick={() => change("open")}>
                  Reopen
                </button>
                <button type="button" class="link" onClick={rows.clear}>
                  Select none
                </button>
              </>
            ) : (
              <fieldset class="segments">
                <legend class="hidden">Status</legend>
                {[...STATUSES, null].map((it) => (
                  <button
                    type="button"
                    key={it ?? "any"}
                    aria-pressed={view.status === it}
                    onClick={() =>
                      go(changed(address, { status: it === "open" ? null : (it ?? "any") }))
                    }
                  >
                    {it ? STATUS_NAMES[it] : "All"}
                  </button>
                ))}
              </fieldset>
            )}
          </div>
          {list.error && <Refused refusal={list.error} retry={list.reload} />}
          {!list.data && !list.error && <SkeletonRows rows={8} />}
          {list.data &&
            items.length === 0 &&
            !isUsedUp &&
            (isFresh ? (
              <Onboarding />
            ) : (
              <Empty title={`No ${view.status ?? ""} errors in this time`}>
                <p class="quiet">
                  {isFiltered
                    ? "Remove a filter, or choose a longer time or another status."
                    : "Choose a longer time or another status."}
                </p>
              </Empty>
            ))}
          {items.length > 0 && (
            <div class={list.loading ? "table-scroll stale" : "table-scroll"}>
              <table class="table errors-table" aria-rowcount={items.length + 1}>
                <colgroup>
                  {mayWrite && <col class="pick" />}
                  <col />
                  <col class="wide" style={{ width: "112px" }} />
                  <SortColumns />
                </colgroup>
                <thead>
                  <tr>
                    {mayWrite && (
                      <th>
                        <input
                          type="checkbox"
                          aria-label="Select all that are listed"
                          checked={rows.selected.size > 0 && rows.selected.size === ids.length}
                          onChange={(event) =>
                            event.currentTarget.checked ? rows.selectAll(ids) : rows.clear()
                          }
                        />
                      </th>
                    )}
                    <th>Error</th>
                    <th class="wide">Over time</th>
                    <SortHead sort={sort} own="count" name="Events" />
                    <SortHead sort={sort} own="users" name="Users" only="wide" />
                    <SortHead sort={sort} own="firstSeen" name="First" only="roomy" />
                    <SortHead sort={sort} own="lastSeen" name="Last" />
                  </tr>
                </thead>
                <WindowedRows items={items} rows={near}>
                  {(it, index) => (
                    <tr key={it.errorId} {...rowAt(rows, index)}>
                      {mayWrite && (
                        <SelectCell
                          title={it.title}
                          selected={rows.selected.has(it.errorId)}
                          onToggle={() => rows.toggle(it.errorId)}
                        />
                      )}
                      <td>
                        <Link class="title" href={hrefOfError(it.errorId)} title={it.title}>
                          <bdi>{it.title}</bdi>
                        </Link>
                        <small>
                          {view.status === null && (
                            <span class={`status ${it.status}`}>{STATUS_NAMES[it.status]} · </span>
                          )}
                          <bdi>{it.culprit || "nowhere in particular"}</bdi>
                        </small>
                      </td>
                      <td class="wide">
                        <Spark values={it.series ?? []} />
                      </td>
                      <td class="number">{number(it.count)}</td>
                      <td class="number wide">{number(it.users)}</td>
                      <td class="number quiet roomy">
                        <RelativeTime at={it.firstSeen} />
                      </td>
                      <td class="number quiet">
                        <RelativeTime at={it.lastSeen} />
                      </td>
                    </tr>
                  )}
                </WindowedRows>
              </table>
            </div>
          )}
          {more.cursor && (
            <button type="button" class="more" disabled={more.loading} onClick={more.load}>
              {more.loading ? "Loading…" : "Show more"}
            </button>
          )}
        </section>
        <Breakdown projects={[project]} view={view} range={range} categories={categories} />
      </div>
    </>
  );
}

function SortColumns() {
  return (
    <>
      <col class="of-count" />
      <col class="wide" style={{ width: "68px" }} />
      <col class="roomy" style={{ width: "100px" }} />
      <col class="of-time" />
    </>
  );
}

function SortHead({
  sort,
  own,
  name,
  only = "",
}: {
  sort: Sort;
  own: Sort;
  name: string;
  /** How much room there must be for it. */
  only?: "" | "wide" | "roomy";
}) {
  const address = useAddress();
  const isOn = sort === own;
  return (
    <th class={`number ${only}`} aria-sort={isOn ? "descending" : undefined}>
      <button
        type="button"
        onClick={() => go(changed(address, { sort: own === "lastSeen" ? null : own }))}
      >
        {name}
        {isOn && <span aria-hidden="true"> ↓</span>}
      </button>
    </th>
  );
}

type ListedError = ErrorRow & { at: number };

/** The pages after the first, for as long as the list is the same, and for who comes back to it. */
function useMore(
  key: string,
  first: ErrorListPage | undefined,
  load: (cursor: string) => Promise<ErrorListPage>,
) {
  const [, draw] = useState(0);
  const [loading, setLoading] = useState(false);
  const step = stepNow();
  const pages = step.more?.key === key ? (step.more.pages as ErrorListPage[]) : NO_PAGES;
  const cursor = (pages.at(-1) ?? first)?.nextCursor ?? null;
  // A new key begins anew.
  useEffect(() => setLoading(false), [key]);
  const items = useMemo(() => {
    const all = new Map<string, ListedError>();
    for (const page of [first, ...pages]) {
      for (const it of page?.items ?? []) {
        // What moved between two pages while they were loaded is listed once.
        if (page && !all.has(it.errorId)) all.set(it.errorId, { ...it, at: page.at });
      }
    }
    return all.size ? [...all.values()] : NO_ROWS;
  }, [first, pages, key]);
  return {
    items,
    cursor,
    loading,
    load: () => {
      if (!cursor || loading) return;
      setLoading(true);
      load(cursor)
        .then((page) => {
          step.more = { key, pages: [...pages, page] };
          draw((it) => it + 1);
        })
        .catch(showErrorToast)
        .finally(() => setLoading(false));
    },
  };
}

/** An error as get-error tells it. */
export function loadError(slug: string, errorId: string, signal: AbortSignal) {
  const params = { path: { idOrSlug: slug, errorId } };
  return unwrapResponse(api.GET("/v0/projects/{idOrSlug}/errors/{errorId}", { params, signal }));
}
