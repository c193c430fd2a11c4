import { useEffect, useMemo, useState } from "preact/hooks";
import { go, hrefOf, Link, useAddress } from "../address";
import { api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { Breakdown } from "../errors/breakdown";
import { EventsPlot } from "../errors/events-plot";
import { viewKey } from "../errors/filters";
import {
  type ErrorPage as ErrorListPage,
  type ErrorRow,
  loadErrors,
  loadSeries,
} from "../errors/load";
import { setListed } from "../errors/neighbors";
import { NewEvents } from "../errors/new-events";
import { changeCount, changeStatus, statusNow } from "../errors/status";
import { useCategories, useMarks, useRange, useView, ViewBar } from "../errors/view-bar";
import { Spark } from "../plot/spark";
import { currentStep } from "../steps";
import { useStore } from "../store";
import { number, pluralize } from "../time/format";
import { keptView } from "../time/range";
import { useAnnouncement } from "../ui/announcement";
import { BulkActions, More } from "../ui/row-parts";
import { Empty, Pending } from "../ui/states";
import { STATUS_NAMES, StatusActions, useBulkStatus } from "../ui/status";
import { Table, useList } from "../ui/table";
import { RelativeTime } from "../ui/time";
import { showErrorToast } from "../ui/toast";
import { Onboarding } from "./onboarding";

type Sort = NonNullable<Schemas["ErrorsQuery"]["sort"]>;
const SORTS: Sort[] = ["lastSeen", "firstSeen", "count", "users"];
const PAGE_SIZE = 50;
const NO_ROWS: ListedError[] = [];
const NO_PAGES: ErrorListPage[] = [];

export function ErrorsPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const canWrite = useCan()("errors:write");
  const { range, reload } = useRange();
  const view = useView("open");
  const categories = useCategories();
  const marks = useMarks([project], range);
  const requested = address.query.get("sort") as Sort | null;
  const sort = requested && SORTS.includes(requested) ? requested : "lastSeen";
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
  const changes = useStore(changeCount);
  // Applies status changes made in this tab without loading the list again.
  const items = useMemo(
    () =>
      more.items
        .map((it) => ({ ...it, status: statusNow(it, it.at) }))
        .filter((it) => view.status === null || it.status === view.status),
    [more.items, view.status, changes],
  );
  const hrefOfError = (id: string) => hrefOf("error", { ...keptView(address, "error"), id });
  const table = useList(
    items,
    (it) => it.errorId,
    (id) => go(hrefOfError(id)),
  );
  const { ids, rows } = table;
  useEffect(() => setListed(ids), [ids]);
  const isFiltered = view.filters.length > 0 || view.search !== "";
  const isFresh = !isFiltered && categories?.every((it) => it.values.length === 0);
  const refresh = (failed: readonly ErrorRow[]) => {
    series.reload();
    if (failed.length) rows.selectAll(failed.map((it) => it.errorId));
  };
  // Loads the next page if no error of the loaded pages is left. After a failure, the user retries.
  const isExhausted = items.length === 0 && more.cursor !== null;
  useEffect(() => {
    if (isExhausted) more.load();
  }, [isExhausted, more.cursor]);
  const change = useBulkStatus(table, canWrite, (errors, status) =>
    changeStatus(project, errors, status, refresh),
  );
  const state = view.status ? `${view.status} ` : "";
  const count = more.cursor
    ? `${number(items.length)} or more ${state}errors`
    : pluralize(items.length, `${state}error`);
  useAnnouncement(JSON.stringify(view), list.data && !list.loading ? count : null);
  return (
    <>
      <h1 class="hidden">Errors</h1>
      <ViewBar
        view={view}
        range={range}
        categories={categories}
        defaultStatus="open"
        onReload={reload}
      />
      <NewEvents
        projects={[project]}
        view={view}
        range={range}
        series={series.data}
        onReload={reload}
      />
      <EventsPlot series={series} marks={marks} height={140} />
      <div class="with-aside">
        <section>
          <div class="bulk">
            {list.data && !list.loading ? <h2>{count}</h2> : <h2 class="quiet">Errors</h2>}
            <BulkActions rows={rows} noun="error">
              <StatusActions onChange={change} />
            </BulkActions>
          </div>
          <Pending of={list} rows={8} />
          {list.data &&
            items.length === 0 &&
            !isExhausted &&
            (isFresh ? (
              <Onboarding />
            ) : (
              <Empty title={`No ${view.status ? `${view.status} ` : ""}errors in this period`}>
                <p class="quiet">
                  {isFiltered
                    ? "Remove a filter, or choose a longer period or another status."
                    : "Choose a longer period or another status."}
                </p>
              </Empty>
            ))}
          <Table
            class="errors-table"
            list={table}
            nameOf={canWrite && ((it) => it.title)}
            sort={sort}
            stale={list.loading}
            columns={[
              [
                "Error",
                "",
                (it) => (
                  <>
                    <Link class="title" href={hrefOfError(it.errorId)} title={it.title}>
                      <bdi>{it.title}</bdi>
                    </Link>
                    <small>
                      {view.status === null && (
                        <span class={`status ${it.status}`}>{STATUS_NAMES[it.status]} · </span>
                      )}
                      <bdi>{it.culprit || "Unknown location"}</bdi>
                    </small>
                  </>
                ),
              ],
              ["Trend", "wide of-trend", (it) => <Spark values={it.series ?? []} />],
              ["Events", "number of-count", (it) => number(it.count), "count"],
              ["Users", "number wide of-count", (it) => number(it.users), "users"],
              [
                "First seen",
                "number quiet roomy of-time",
                (it) => <RelativeTime at={it.firstSeen} />,
                "firstSeen",
              ],
              [
                "Last seen",
                "number quiet of-time",
                (it) => <RelativeTime at={it.lastSeen} />,
                "lastSeen",
              ],
            ]}
          />
          {more.cursor && <More busy={more.loading} onClick={more.load} />}
        </section>
        <Breakdown projects={[project]} view={view} range={range} categories={categories} />
      </div>
    </>
  );
}

type ListedError = ErrorRow & { at: number };

/** Loads further pages of a list. They stay until the list changes, also after going back. */
function useMore(
  key: string,
  first: ErrorListPage | undefined,
  load: (cursor: string) => Promise<ErrorListPage>,
) {
  const [, draw] = useState(0);
  const [loading, setLoading] = useState(false);
  const step = currentStep();
  const pages = step.more?.key === key ? (step.more.pages as ErrorListPage[]) : NO_PAGES;
  const cursor = (pages.at(-1) ?? first)?.nextCursor ?? null;
  // Another list is not loading yet.
  useEffect(() => setLoading(false), [key]);
  const items = useMemo(() => {
    const all = new Map<string, ListedError>();
    for (const page of [first, ...pages]) {
      for (const it of page?.items ?? []) {
        // An error that moved between two pages is listed once.
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

export function loadError(slug: string, errorId: string, signal: AbortSignal) {
  const params = { path: { idOrSlug: slug, errorId } };
  return api.GET("/v0/projects/{idOrSlug}/errors/{errorId}", { params, signal });
}
