import { useEffect, useState } from "preact/hooks";
import { changed, go, hrefOf, useAddress, useStay } from "../address";
import { ApiError, api, type Schemas, unwrapResponse } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { EventDetails } from "../errors/event-details";
import { type Status, viewKey } from "../errors/filters";
import { loadErrors, loadSeries, viewOfError } from "../errors/load";
import { neighbour } from "../errors/neighbours";
import { changeStatus } from "../errors/status";
import { useMarks, useRange } from "../errors/view-bar";
import { useKeys } from "../keys";
import { Plot } from "../plot/plot";
import { counted, number } from "../time/format";
import { keptView, rangeParams } from "../time/range";
import { RangeControl } from "../time/range-control";
import { Confirm } from "../ui/confirm";
import { Icon } from "../ui/icons";
import { One } from "../ui/one";
import { Refused, SkeletonRows } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import { loadError, STATUS_NAMES } from "./errors";

type ErrorTold = Schemas["Error"];
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
    <One
      list="Errors"
      back={back}
      loaded={loaded}
      isIt={(it) => it.errorId === id}
      what="error"
      why="It was deleted, or it is another project’s."
      rows={10}
    >
      {(error) => <Told key={id} error={error} back={back} reload={loaded.reload} />}
    </One>
  );
}

function Told({ error, back, reload }: { error: ErrorTold; back: string; reload: () => void }) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const mayWrite = useCan()("errors:write");
  const { range, reload: loadAgain } = useRange();
  const { marks, isAll } = useMarks([project], range);
  const [asking, ask] = useState(false);
  const own = viewOfError(error.errorId);
  const key = `${project.id} ${error.errorId} ${viewKey(own, range)}`;
  const series = useLoaded(`series of ${key}`, (signal) =>
    loadSeries([project], own, range, signal),
  );
  const match = useLoaded(`match of ${key}`, async (signal) => {
    const page = await loadErrors(project, own, range, { limit: 1 }, signal);
    return page.items[0] ?? null;
  });
  const inRange = match.data?.count ?? 0;

  const change = (status: Status) => void changeStatus(project, [error], status, () => reload());
  useKeys(
    mayWrite
      ? { e: () => change("resolved"), i: () => change("ignored"), o: () => change("open") }
      : {},
  );
  const step = (by: number) => {
    const id = neighbour(error.errorId, by);
    if (id) go(hrefOf("error", { ...keptView(address, "error"), id }));
  };
  useKeys({ j: () => step(1), k: () => step(-1) });
  const stay = useStay();
  const remove = async () => {
    const isHere = stay();
    ask(false);
    try {
      const params = { path: { idOrSlug: project.slug, errorId: error.errorId } };
      await unwrapResponse(api.DELETE("/v0/projects/{idOrSlug}/errors/{errorId}", { params }));
      showToast("The error and its events are gone.");
      if (isHere()) go(back);
    } catch (refusal) {
      showErrorToast(refusal);
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
          {mayWrite && (
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
              <button type="button" class="danger" onClick={() => ask(true)}>
                Delete
              </button>
            </>
          )}
        </div>
      </div>
      <dl class="facts">
        <div>
          <dt>Events in this time</dt>
          <dd>{match.data === undefined ? "…" : number(inRange)}</dd>
        </div>
        <div>
          <dt>Users in this time</dt>
          <dd>{match.data === undefined ? "…" : number(match.data?.users ?? 0)}</dd>
        </div>
        <div>
          <dt>Events in 90 days</dt>
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
      <RangeControl address={address} range={range} onReload={loadAgain} />
      {series.error && <Refused refusal={series.error} retry={series.reload} />}
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
      {asking && (
        <Confirm
          title="Delete this error?"
          action="Delete"
          onClose={() => ask(false)}
          onConfirm={() => void remove()}
        >
          <p>
            The error and {counted(error.count, "event")} of the last 90 days are deleted for good,
            and counts go down accordingly. If it occurs again, it is a new error.
          </p>
        </Confirm>
      )}
    </>
  );
}

/** Whether the arrows scroll what has the focus, such as a long line of source. */
function scrollsSideways(target: EventTarget | null): boolean {
  for (let it = target instanceof Element ? target : null; it; it = it.parentElement) {
    const isWider = it.scrollWidth > it.clientWidth && it !== document.documentElement;
    if (isWider && /auto|scroll/.test(getComputedStyle(it).overflowX)) return true;
  }
  return false;
}

/** How many events are asked for at once; of those that are paged through for one, more. */
const PAGE_SIZE = 20;
const PAGE_SIZE_SOUGHT = 100;
/** How many pages are looked through for the event of a link before one is asked. */
const MOST_PAGES = 10;

/** The events, one at a time; which one stands in the address. */
function Events({ error }: { error: ErrorTold }) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const [more, setMore] = useState<{ items: Event[]; next: string | null } | null>(null);
  /** How many pages may be looked through for the event of the address. */
  const [pages, setPages] = useState(MOST_PAGES);
  const [looked, setLooked] = useState(0);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
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
  const asked = address.query.get("event");
  const found = events.findIndex((it) => it.eventId === asked);
  const isMissing = asked !== null && found < 0;
  const isSought = isMissing && next !== null && looked < pages && !refusal;
  const index = Math.max(0, found);
  const event = events[index];
  const add = (page: { items: Event[]; nextCursor: string | null }) =>
    setMore((was) => ({ items: [...(was?.items ?? []), ...page.items], next: page.nextCursor }));
  // The event of a link may be of the older ones.
  useEffect(() => {
    if (!isSought) return;
    const stop = new AbortController();
    load(next, PAGE_SIZE_SOUGHT, stop.signal).then(
      (page) => {
        if (stop.signal.aborted) return;
        add(page);
        setLooked((it) => it + 1);
      },
      (fault) => {
        if (!stop.signal.aborted && fault instanceof ApiError) setRefusal(fault);
      },
    );
    return () => stop.abort();
  }, [isSought, next]);
  const show = (it: Event | undefined) =>
    it &&
    go(
      changed(address, { event: it.eventId === events[0]?.eventId ? null : it.eventId }),
      "replace",
    );
  const stay = useStay();
  const older = async () => {
    const isHere = stay();
    if (index + 1 < events.length) return show(events[index + 1]);
    if (!next) return;
    try {
      const page = await load(next);
      add(page);
      if (isHere()) show(page.items[0]);
    } catch (refusal) {
      showErrorToast(refusal);
    }
  };
  const newer = () => show(events[index - 1]);
  const hasOlder = index + 1 < events.length || next !== null;
  useKeys({
    ArrowRight: (event) => (scrollsSideways(event.target) ? false : void older()),
    ArrowLeft: (event) => (scrollsSideways(event.target) ? false : void newer()),
  });
  if (first.error) return <Refused refusal={first.error} retry={first.reload} />;
  if (!first.data) return <SkeletonRows rows={6} />;
  if (isSought) return <SkeletonRows rows={6} />;
  if (!event) return <p class="quiet nothing">Its events are older than 90 days, and gone.</p>;
  return (
    <>
      <div class="stepper">
        <span>
          Event <code>{event.eventId.slice(0, 8)}</code> <RelativeTime at={event.occurredAt} />
          {isMissing && (
            <span class="quiet">
              {" "}
              (the event of the link is {next ? `not among the newest ${events.length}` : "gone"})
            </span>
          )}{" "}
          {isMissing && next && (
            <button
              type="button"
              class="link"
              onClick={() => {
                setRefusal(null);
                setPages(looked + MOST_PAGES);
              }}
            >
              Look further
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
      {refusal && isMissing && <Refused small refusal={refusal} />}
      <EventDetails key={event.eventId} event={event.event} />
    </>
  );
}
