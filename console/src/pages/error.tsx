import { useState } from "preact/hooks";
import { changed, go, hrefOf, Link, useAddress, usePageGuard } from "../address";
import { ApiError, api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { Assignee } from "../errors/assignee";
import { EventDetails } from "../errors/event-details";
import { EventsPlot } from "../errors/events-plot";
import { describeFilter, type Status, type View, viewKey } from "../errors/filters";
import { loadSeries, queryOfError, viewOfError } from "../errors/load";
import { neighbor } from "../errors/neighbors";
import { Shares, useSummary } from "../errors/shares";
import { changeStatus } from "../errors/status";
import { useCategories, useMarks, useRange, useView } from "../errors/view-bar";
import { useKeys } from "../keys";
import { formatZoned, number, pluralize } from "../time/format";
import { keptView, type Range } from "../time/range";
import { RangeControl } from "../time/range-control";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { DetailPage } from "../ui/detail-page";
import { Icon } from "../ui/icons";
import { Facts } from "../ui/layout";
import { useIsSettled } from "../ui/settled";
import { CopyButton, ErrorMessage, SkeletonRows } from "../ui/states";
import { doneText, STATUS_NAMES, StatusActions, useStatusKeys } from "../ui/status";
import { RelativeTime, Time } from "../ui/time";
import { showToast, useAction } from "../ui/toast";
import { loadError } from "./errors";

type ErrorInfo = Schemas["Error"];

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
  const { range, reload: refresh } = useRange();
  const marks = useMarks([project], range);
  const categories = useCategories();
  // The filters of the list from which the user came; the status is this error's own.
  const listed = useView(null);
  const view = viewOfError(error.errorId, listed);
  const period = range.preset ?? "selected range";
  const series = useLoaded(
    `series of ${project.id} ${viewKey(view, range)}`,
    (signal) => loadSeries([project], view, range, signal),
    "first",
  );
  const summary = useSummary(error.errorId, listed, range, categories);
  const step = (by: number) => {
    const id = neighbor(error.errorId, by);
    if (id) go(hrefOf("error", { ...keptView(address, "error"), id }));
  };
  useKeys({ j: () => step(1), k: () => step(-1) });
  const type = error.type && error.title.startsWith(error.type) ? error.type : "";
  const of = (value: number | undefined) => (value === undefined ? "…" : number(value));
  return (
    <>
      <div class="error-head">
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
      <Triage error={error} back={back} reload={reload} />
      <div class="error-range">
        <Filtered view={listed} />
        <RangeControl address={address} range={range} onReload={refresh} />
      </div>
      <Facts
        rows={[
          [`Events (${period})`, of(summary.data?.count)],
          [`Users (${period})`, of(summary.data?.users)],
          ["Events (last 90 days)", number(error.count)],
          ["First seen", <Seen at={error.firstSeen} release={summary.data?.firstRelease} />],
          ["Last seen", <Seen at={error.lastSeen} release={summary.data?.lastRelease} />],
        ]}
      />
      <EventsPlot series={series} marks={marks} height={120} single />
      <Shares summary={summary} view={listed} categories={categories ?? []} />
      <Events error={error} view={listed} range={range} />
    </>
  );
}

function Seen({ at, release }: { at: string; release: string | null | undefined }) {
  return (
    <>
      <RelativeTime at={at} />
      <small>
        <bdi>{release ?? ""}</bdi>
      </small>
    </>
  );
}

/** The status, the assignee, and the actions, which keep their places when the status changes. */
function Triage({ error, back, reload }: ErrorDetailsProps) {
  const { project } = useCurrentProject();
  const canWrite = useCan()("errors:write");
  const [confirming, setConfirming] = useState(false);
  const isSettled = useIsSettled(error.status);
  const change = (status: Status, resolvedIn: "next_release" | null = null) => {
    const message = resolvedIn ? "Resolved in the next release." : doneText(status);
    void changeStatus(project, [error], status, reload, message, resolvedIn);
  };
  useStatusKeys(canWrite, change);
  const guardPage = usePageGuard();
  const [busy, run] = useAction();
  const remove = async () => {
    const isHere = guardPage();
    setConfirming(false);
    const params = { path: { idOrSlug: project.slug, errorId: error.errorId } };
    await api.DELETE("/v0/projects/{idOrSlug}/errors/{errorId}", { params });
    showToast("Deleted the error and its events.");
    if (isHere()) go(back);
  };
  const isNext = error.resolvedIn === "next_release";
  const { status } = error;
  return (
    <div class="triage">
      <p>
        <span class={`status ${status}`}>
          {STATUS_NAMES[status]}
          {isNext && " in the next release"}
          {error.resolvedBy && ` by ${error.resolvedBy}`}
        </span>{" "}
        {error.resolvedAt && (
          <span class="quiet small">
            <RelativeTime at={error.resolvedAt} />
          </span>
        )}
        <Assignee error={error} canWrite={canWrite} reload={reload} />
      </p>
      {canWrite && (
        <div class="actions">
          <StatusActions current={isNext ? "" : status} disabled={!isSettled} onChange={change}>
            <Button
              disabled={!isSettled || isNext}
              onClick={() => change("resolved", "next_release")}
              title="Only an event of a later release reopens it"
            >
              Resolve in next release
            </Button>
          </StatusActions>
          <Button class="danger" disabled={!isSettled || busy} onClick={() => setConfirming(true)}>
            Delete
          </Button>
        </div>
      )}
      {confirming && (
        <Confirm
          title="Delete this error?"
          action="Delete"
          onClose={() => setConfirming(false)}
          onConfirm={() => void run(remove)}
        >
          <p>
            This permanently deletes the error and {pluralize(error.count, "event")} of the last 90
            days, and lowers the counts. If it occurs again, it is a new error.
          </p>
        </Confirm>
      )}
    </div>
  );
}

/** The filters that apply to everything below, and a link that removes them. */
function Filtered({ view }: { view: View }) {
  const address = useAddress();
  const names = view.filters.map((it) =>
    it.operator === "is" && it.categoryId !== "handled" ? it.value : describeFilter(it),
  );
  if (view.search) names.push(`Title contains ${view.search}`);
  if (!names.length) return <span />;
  return (
    <p class="filtered">
      Filtered: <bdi>{names.join(", ")}</bdi> ·{" "}
      <Link href={changed(address, { f: null, q: null })}>Show all</Link>
    </p>
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

interface EventsProps {
  error: ErrorInfo;
  view: View;
  range: Range;
}

/** The events of an error, one at a time. The address has the id of the current one. */
function Events({ error, view, range }: EventsProps) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const requested = address.query.get("event");
  const query = (body: Partial<Schemas["ErrorEventsQuery"]>, signal?: AbortSignal) =>
    api.POST("/v0/projects/{idOrSlug}/errors/{errorId}/events/query", {
      params: { path: { idOrSlug: project.slug, errorId: error.errorId } },
      body: { ...queryOfError(view, range), ...body },
      signal,
    });
  const key = `event ${requested} ${project.id} ${error.errorId} ${viewKey(view, range)}`;
  // The second event is the next older one.
  const loaded = useLoaded(key, async (signal) => {
    try {
      return { ...(await query({ event: requested, limit: 2 }, signal)), isMissing: false };
    } catch (failure) {
      const isMissing = failure instanceof ApiError && failure.at("/event") !== null;
      if (!isMissing) throw failure;
      return { ...(await query({ limit: 2 }, signal)), isMissing };
    }
  });
  const page = loaded.data;
  const [event, older] = page?.items ?? [];
  const guardPage = usePageGuard();
  const show = (id: string | null | undefined) =>
    id !== undefined && go(changed(address, { event: id }), "replace");
  const [, run] = useAction();
  /** Shows the event that a query finds. */
  const find = async (body: Partial<Schemas["ErrorEventsQuery"]>, index: number) => {
    const isHere = guardPage();
    const found = (await query({ order: "oldest", ...body })).items[index];
    if (isHere()) show(found?.eventId);
  };
  const position = page?.position ?? null;
  const total = page?.total ?? 0;
  const isFirst = position === 1;
  const showNewer = () => {
    if (event && !isFirst) void run(() => find({ event: event.eventId, limit: 2 }, 1));
  };
  const showOlder = () => show(older?.eventId);
  useKeys({
    ArrowRight: (it) => (scrollsSideways(it.target) ? false : showOlder()),
    ArrowLeft: (it) => (scrollsSideways(it.target) ? false : showNewer()),
  });
  if (loaded.error) return <ErrorMessage error={loaded.error} retry={loaded.reload} />;
  if (!page) return <SkeletonRows rows={6} />;
  if (!event) {
    return (
      <p class="quiet nothing">
        No events {view.filters.length || view.search ? "under this filter " : ""}in this period.
        Events are kept for 90 days.
      </p>
    );
  }
  const at = Date.parse(event.occurredAt);
  const link = hrefOf("error", { project: project.slug, id: error.errorId, event: event.eventId });
  return (
    <section aria-label="Event" class={loaded.loading ? "stale" : ""}>
      <div class="stepper">
        <span>
          <b>
            {position === null
              ? "Event outside this view"
              : `Event ${number(position)} of ${number(total)}`}
          </b>{" "}
          <code class="quiet">{event.eventId.slice(0, 8)}</code>{" "}
          <Time at={at}>{formatZoned(at)}</Time>{" "}
          <span class="quiet">
            <RelativeTime at={at} />
          </span>{" "}
          <CopyButton text={location.origin + link} label="Copy link to this event" />
          {page.isMissing && (
            <span class="quiet"> The linked event no longer exists. This is the newest one.</span>
          )}
        </span>
        <div>
          <Button disabled={isFirst} onClick={() => show(null)}>
            Newest
          </Button>
          <Button disabled={isFirst} onClick={showNewer} title="Newer (←)">
            <Icon name="left" /> Newer
          </Button>
          <Button disabled={!older} onClick={showOlder} title="Older (→)">
            Older <Icon name="right" />
          </Button>
          <Button disabled={!older} onClick={() => void run(() => find({}, 0))}>
            Oldest
          </Button>
        </div>
      </div>
      <EventDetails key={event.eventId} event={event.event} mapStatus={event.mapStatus} />
    </section>
  );
}
