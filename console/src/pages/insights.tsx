import { useMemo } from "preact/hooks";
import { changed, go, hrefOf, Link, useAddress } from "../address";
import { useCan, useCurrentProject } from "../caller";
import {
  type Insight,
  type InsightStatus,
  patchInsight,
  type SettableStatus,
  STATUS_NAMES,
  useInsights,
} from "../insights/insight";
import { Trend } from "../insights/trend";
import { useKeys } from "../keys";
import { number, pluralize } from "../time/format";
import { keptParams } from "../time/range";
import { useAnnouncement } from "../ui/announcement";
import { rowProps, useRows } from "../ui/rows";
import { Code, Empty, ErrorMessage, SkeletonRows } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import { useRowWindow, WindowedRows } from "../ui/window";

const SHOWN: InsightStatus[] = ["open", "resolved", "ignored", "merged"];
type Sort = "lastSeen" | "trend" | "sessions";

const ORDERS: Record<Sort, (one: Insight, other: Insight) => number> = {
  lastSeen: () => 0,
  trend: (one, other) => other.trendPercent - one.trendPercent,
  sessions: (one, other) => other.affectedSessions - one.affectedSessions,
};

export function InsightsPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const canWrite = useCan()("insights:write");
  const status = SHOWN.find((it) => it === address.query.get("status")) ?? "open";
  const sort =
    (Object.keys(ORDERS) as Sort[]).find((it) => it === address.query.get("sort")) ?? "lastSeen";
  const loaded = useInsights(project, status);
  // Insights whose status was changed here leave the list without loading it again.
  const items = useMemo(
    () => (loaded.data?.items ?? []).filter((it) => it.status === status).sort(ORDERS[sort]),
    [loaded.data, sort, status],
  );
  const ids = useMemo(() => items.map((it) => it.id), [items]);
  const hrefOfInsight = (id: string) => hrefOf("insight", { ...keptParams(address), id });
  const near = useRowWindow(items.length, 48);
  const rows = useRows(ids, (id) => go(hrefOfInsight(id)), near.reveal);
  const change = async (to: SettableStatus) => {
    const insight = items[rows.current];
    if (!insight || insight.status === "merged" || insight.status === to) return;
    const was = insight.status as SettableStatus;
    const save = async (status: SettableStatus) => {
      const changed = await patchInsight(project, insight.id, { status });
      loaded.set(({ items, next }) => ({
        items: items.map((it) => (it.id === changed.id ? { ...it, status: changed.status } : it)),
        next,
      }));
    };
    try {
      await save(to);
      showToast(`${STATUS_NAMES[to]} “${insight.title}”.`, () => save(was));
    } catch (error) {
      showErrorToast(error);
    }
  };
  useAnnouncement(
    status,
    loaded.data && !loaded.loading ? pluralize(items.length, "insight") : null,
  );
  useKeys(canWrite ? { e: () => void change("resolved"), i: () => void change("ignored") } : {});

  return (
    <>
      <div class="page-head">
        <h1>Insights</h1>
        <span class="quiet small">Last 30 days vs previous 30</span>
      </div>
      <div class="page-head">
        <fieldset class="segments">
          <legend class="hidden">Status</legend>
          {SHOWN.map((it) => (
            <button
              type="button"
              key={it}
              aria-pressed={it === status}
              onClick={() => go(changed(address, { status: it === "open" ? null : it }))}
            >
              {STATUS_NAMES[it]}
            </button>
          ))}
        </fieldset>
      </div>
      {loaded.error && <ErrorMessage error={loaded.error} retry={loaded.reload} />}
      {!loaded.data && !loaded.error && <SkeletonRows rows={6} />}
      {loaded.data && items.length === 0 && <NoInsights status={status} />}
      {items.length > 0 && (
        <div class={loaded.loading ? "table-scroll stale" : "table-scroll"}>
          <table class="table" aria-rowcount={items.length + 1}>
            <colgroup>
              <col />
              <col style={{ width: "88px" }} />
              <col class="wide" style={{ width: "72px" }} />
              <col class="wide" style={{ width: "96px" }} />
              <col style={{ width: "92px" }} />
              <col class="wide" style={{ width: "104px" }} />
            </colgroup>
            <thead>
              <tr>
                <th>Insight</th>
                <Head name="Sessions" own="sessions" sort={sort} />
                <th class="number wide">Users</th>
                <th class="number wide">Occurrences</th>
                <Head name="Trend" own="trend" sort={sort} />
                <Head name="Last seen" own="lastSeen" sort={sort} wide />
              </tr>
            </thead>
            <WindowedRows items={items} rows={near}>
              {(it, index) => (
                <tr key={it.id} {...rowProps(rows, index)}>
                  <td>
                    <Link class={it.viewed ? "title" : "title unread"} href={hrefOfInsight(it.id)}>
                      <bdi>{it.title}</bdi>
                      {!it.viewed && <span class="hidden"> (unread)</span>}
                    </Link>
                    <small>
                      <bdi>{it.description || it.excerpt || " "}</bdi>
                    </small>
                  </td>
                  <td class="number">{number(it.affectedSessions)}</td>
                  <td class="number wide">{number(it.identifiedUsers)}</td>
                  <td class="number wide">{number(it.occurrences)}</td>
                  <td class="number">{it.status === "merged" ? "" : <Trend insight={it} />}</td>
                  <td class="number quiet wide">
                    {it.lastSeen && <RelativeTime at={it.lastSeen} />}
                  </td>
                </tr>
              )}
            </WindowedRows>
          </table>
        </div>
      )}
      {loaded.next && (
        <p class="quiet nothing">
          {sort === "lastSeen" ? "Showing" : "Sorted within"} the{" "}
          {number(loaded.data?.items.length ?? 0)} most recent.
        </p>
      )}
      {loaded.next && (
        <button
          type="button"
          class="more"
          disabled={loaded.busy}
          onClick={() => void loaded.loadMore()}
        >
          {loaded.busy ? "Loading…" : "Show more"}
        </button>
      )}
    </>
  );
}

function Head({ name, own, sort, wide }: { name: string; own: Sort; sort: Sort; wide?: boolean }) {
  const address = useAddress();
  return (
    <th class={wide ? "number wide" : "number"} aria-sort={sort === own ? "descending" : undefined}>
      <button
        type="button"
        onClick={() => go(changed(address, { sort: own === "lastSeen" ? null : own }))}
      >
        {name}
        {sort === own && <span aria-hidden="true"> ↓</span>}
      </button>
    </th>
  );
}

function NoInsights({ status }: { status: InsightStatus }) {
  const { project } = useCurrentProject();
  if (status !== "open") return <Empty title={`No ${status} insights`} />;
  return (
    <Empty title="No open insights">
      <p>
        An insight groups problems in session replays and counts the affected users. Send some with
        the API:
      </p>
      <Code
        text={`curl ${location.origin}/v0/projects/${project.slug}/replay-insights \\\n  -H "x-api-key: $KEY" -H 'content-type: application/json' \\\n  -d '{"title": "Pay button does nothing", "painPoints": [{"id": "'$(uuidgen)'",\n    "sessionId": "s-1", "occurredAt": "${new Date().toISOString()}", "title": "Clicked five times"}]}'`}
      />
    </Empty>
  );
}
