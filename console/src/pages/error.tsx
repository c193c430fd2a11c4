import { useEffect, useState } from "preact/hooks";
import { changed, go, hrefOf, useAddress, usePageGuard } from "../address";
import { ApiError, api, type Schemas, unwrapResponse } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { EventDetails } from "../errors/event-details";
import { type Status, viewKey } from "../errors/filters";
import { loadErrors, loadSeries, viewOfError } from "../errors/load";
import { neighbor } from "../errors/neighbors";
import { changeOneStatus } from "../errors/status";
import { useMarks, useRange } from "../errors/view-bar";
import { useKeys } from "../keys";
import { Plot } from "../plot/plot";
import { number, pluralize } from "../time/format";
import { keptView, rangeParams } from "../time/range";
import { RangeControl } from "../time/range-control";
import { Confirm } from "../ui/confirm";
import { DetailPage } from "../ui/detail-page";
import { Icon } from "../ui/icons";
import { ErrorMessage, SkeletonRows } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import { loadError, STATUS_NAMES } from "./errors";

type ErrorInfo = Schemas["Error"];
type Event = Schemas["ErrorEvent"];

export function ErrorPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const id = (address.query.get("id") ?? "").toLowerCase();
  const loaded = useLoaded(`error ${project.id} ${id}`, (signal) =>
    loadError(project.slug, id, signal),
  );
  const back = hrefOf("errors", keptView(address, "errors"));
  return (
    <DetailPage
      list="Errors"
      back={back}
      loaded={loaded}
      isCurrent={(it) => it.errorId === id}
      noun="Error"
      notFoundHint="It was deleted or belongs to another project."
      rows={10}
    >
      {(error) => <ErrorDetails key={id} error={error} back={back} reload={loaded.reload} />}
    </DetailPage>
  );
}

interface ErrorDetailsProps {
  error: ErrorInfo;
  back: string;
  reload: () => void;
}

function ErrorDetails({ error, back, reload }: ErrorDetailsProps) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const canWrite = useCan()("errors:write");
  const { range, reload: refresh } = useRange();
  const { marks, isAll } = useMarks([project], range);
  const [confirming, setConfirming] = useState(false);
  const view = viewOfError(error.errorId);
  const key = `${project.id} ${error.errorId} ${viewKey(view, range)}`;
  const period = range.preset ?? "selected range";
  const series = useLoaded(`series of ${key}`, (signal) =>
    loadSeries([project], view, range, signal),
  );
  const match = useLoaded(`match of ${key}`, async (signal) => {
    const page = await loadErrors(project, view, range, { limit: 1 }, signal);
    return page.items[0] ?? null;
  });
  const inRange = match.data?.count ?? 0;

  const change = (status: Status) => void changeOneStatus(project, error, status, reload);
  useKeys(
    canWrite
      ? { e: () => change("resolved"), i: () => change("ignored"), o: () => change("open") }
      : {},
  );
  const step = (by: number) => {
    const id = neighbor(error.errorId, by);
    if (id) go(hrefOf("error", { ...keptView(address, "error"), id }));
  };
  useKeys({ j: () => step(1), k: () => step(-1) });
  const guardPage = usePageGuard();
  const remove = async () => {
    const isHere = guardPage();
    setConfirming(false);
    try {
      const params = { path: { idOrSlug: project.slug, errorId: error.errorId } };
      await unwrapResponse(api.DELETE("/v0/projects/{idOrSlug}/errors/{errorId}", { params }));
      showToast("Deleted the error and its events.");
      if (isHere()) go(back);
    } catch (failure) {
      showErrorToast(failure);
    }
  };
  const type = error.type && error.title.startsWith(error.type) ? error.type : "";
  return (
    <>
      <div class="page-head error-head">
        <div>
          <h1 class={error.title.length > 200 ? "long" : ""}>
            <bdi>{type || error.title}</bdi>
          </h1>
          {type && (
            <p class="long">
              <bdi>{error.message || error.title}</bdi>
            </p>
          )}
          <p class="quiet small">
            <bdi>{error.culprit}</bdi>
          </p>
        </div>
        <div class="actions">
          <span class={`status ${error.status}`}>{STATUS_NAMES[error.status]}</span>
          {canWrite && (
            <>
              {error.status !== "resolved" && (
                <button
                  type="button"
                  class="primary"
                  onClick={() => change("resolved")}
                  title="Resolve (e)"
                >
                  Resolve
                </button>
              )}
              {error.status !== "ignored" && (
                <button type="button" onClick={() => change("ignored")} title="Ignore (i)">
                  Ignore
                </button>
              )}
              {error.status !== "open" && (
                <button type="button" onClick={() => change("open")}>
                  Reopen
                </button>
              )}
              <button type="button" class="danger" onClick={() => setConfirming(true)}>
                Delete
              </button>
            </>
          )}
        </div>
      </div>
      <dl class="facts">
        <div>
          <dt>Events ({period})</dt>
          <dd>{match.data === undefined ? "…" : number(inRange)}</dd>
        </div>
        <div>
          <dt>Users ({period})</dt>
          <dd>{match.data === undefined ? "…" : number(match.data?.users ?? 0)}</dd>
        </div>
        <div>
          <dt>Events (last 90 days)</dt>
          <dd>{number(error.count)}</dd>
        </div>
        <div>
          <dt>First seen</dt>
          <dd>
            <RelativeTime at={error.firstSeen} />
          </dd>
        </div>
        <div>
          <dt>Last seen</dt>
          <dd>
            <RelativeTime at={error.lastSeen} />
          </dd>
        </div>
      </dl>
      <RangeControl address={address} range={range} onReload={refresh} />
      {series.error && <ErrorMessage error={series.error} retry={series.reload} />}
      {series.data ? (
        <Plot
          series={series.data}
          marks={marks}
          isAll={isAll}
          height={120}
          single
          stale={series.loading}
          onZoom={(from, to) => go(changed(address, rangeParams({ from, to })))}
        />
      ) : (
        !series.error && <div class="skeleton plot-skeleton" style={{ height: "144px" }} />
      )}
      <Events error={error} />
      {confirming && (
        <Confirm
          title="Delete this error?"
          action="Delete"
          onClose={() => setConfirming(false)}
          onConfirm={() => void remove()}
        >
          <p>
            This permanently deletes the error and {pluralize(error.count, "event")} of the last 90
            days, and lowers the counts. If it occurs again, it is a new error.
          </p>
        </Confirm>
      )}
    </>
  );
}

/** `true` if the arrow keys scroll the focused element, such as a long line of source. */
function scrollsSideways(target: EventTarget | null): boolean {
  for (let it = target instanceof Element ? target : null; it; it = it.parentElement) {
    const isWider = it.scrollWidth > it.clientWidth && it !== document.documentElement;
    if (isWider && /auto|scroll/.test(getComputedStyle(it).overflowX)) return true;
  }
  return false;
}

const PAGE_SIZE = 20;
/** Page size while searching for the event in the address. */
const SEARCH_PAGE_SIZE = 100;
/** Pages to search before the user decides whether to continue. */
const MAX_PAGES = 10;

/** The events of an error, one at a time. The address has the id of the current one. */
function Events({ error }: { error: ErrorInfo }) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const [more, setMore] = useState<{ items: Event[]; next: string | null } | null>(null);
  const [maxPages, setMaxPages] = useState(MAX_PAGES);
  const [searchedPages, setSearchedPages] = useState(0);
  const [searchError, setSearchError] = useState<ApiError | null>(null);
  const load = (cursor?: string | null, limit = PAGE_SIZE, signal?: AbortSignal) =>
    unwrapResponse(
      api.GET("/v0/projects/{idOrSlug}/errors/{errorId}/events", {
        params: {
          path: { idOrSlug: project.slug, errorId: error.errorId },
          query: { limit, ...(cursor && { cursor }) },
        },
        ...(signal && { signal }),
      }),
    );
  const first = useLoaded(`events ${project.id} ${error.errorId}`, (signal) =>
    load(null, PAGE_SIZE, signal),
  );
  const events = [...(first.data?.items ?? []), ...(more?.items ?? [])];
  const next = more ? more.next : (first.data?.nextCursor ?? null);
  const requested = address.query.get("event");
  const found = events.findIndex((it) => it.eventId === requested);
  const isMissing = requested !== null && found < 0;
  const isSearching = isMissing && next !== null && searchedPages < maxPages && !searchError;
  const index = Math.max(0, found);
  const event = events[index];
  const add = (page: { items: Event[]; nextCursor: string | null }) =>
    setMore((was) => ({ items: [...(was?.items ?? []), ...page.items], next: page.nextCursor }));
  // A link can lead to an older event.
  useEffect(() => {
    if (!isSearching) return;
    const stop = new AbortController();
    load(next, SEARCH_PAGE_SIZE, stop.signal).then(
      (page) => {
        if (stop.signal.aborted) return;
        add(page);
        setSearchedPages((it) => it + 1);
      },
      (failure) => {
        if (!stop.signal.aborted && failure instanceof ApiError) setSearchError(failure);
      },
    );
    return () => stop.abort();
  }, [isSearching, next]);
  const show = (it: Event | undefined) =>
    it &&
    go(
      changed(address, { event: it.eventId === events[0]?.eventId ? null : it.eventId }),
      "replace",
    );
  const guardPage = usePageGuard();
  const older = async () => {
    const isHere = guardPage();
    if (index + 1 < events.length) return show(events[index + 1]);
    if (!next) return;
    try {
      const page = await load(next);
      add(page);
      if (isHere()) show(page.items[0]);
    } catch (failure) {
      showErrorToast(failure);
    }
  };
  const newer = () => show(events[index - 1]);
  const hasOlder = index + 1 < events.length || next !== null;
  useKeys({
    ArrowRight: (event) => (scrollsSideways(event.target) ? false : void older()),
    ArrowLeft: (event) => (scrollsSideways(event.target) ? false : void newer()),
  });
  if (first.error) return <ErrorMessage error={first.error} retry={first.reload} />;
  if (!first.data) return <SkeletonRows rows={6} />;
  if (isSearching) return <SkeletonRows rows={6} />;
  if (!event) return <p class="quiet nothing">No events left: they expire after 90 days.</p>;
  return (
    <>
      <div class="stepper">
        <span>
          Event <code>{event.eventId.slice(0, 8)}</code> <RelativeTime at={event.occurredAt} />
          {isMissing && (
            <span class="quiet">
              {" "}
              {next
                ? `(the linked event is not among the newest ${events.length})`
                : "(the linked event no longer exists)"}
            </span>
          )}{" "}
          {isMissing && next && (
            <button
              type="button"
              class="link"
              onClick={() => {
                setSearchError(null);
                setMaxPages(searchedPages + MAX_PAGES);
              }}
            >
              Search older events
            </button>
          )}
        </span>
        <div>
          <button type="button" disabled={index === 0} onClick={() => show(events[0])}>
            Newest
          </button>
          <button type="button" disabled={index === 0} onClick={newer} title="Newer (←)">
            <Icon name="left" /> Newer
          </button>
          <button type="button" disabled={!hasOlder} onClick={() => void older()} title="Older (→)">
            Older <Icon name="right" />
          </button>
        </div>
      </div>
      {searchError && isMissing && <ErrorMessage small error={searchError} />}
      <EventDetails key={event.eventId} event={event.event} />
    </>
  );
}
