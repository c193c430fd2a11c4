import { useMemo } from "preact/hooks";
import { changed, go, hrefOf, Link, useAddress } from "../address";
import { mapConcurrently } from "../api/client";
import { useCan, useCurrentProject } from "../caller";
import { namesOf } from "../errors/status";
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
import { matchesText } from "../ui/combobox";
import {
  BulkActions,
  ListSearch,
  More,
  SelectAll,
  SelectCell,
  SortHead,
  StatusActions,
} from "../ui/row-parts";
import { focusRow, rowProps, targetRows, useRows } from "../ui/rows";
import { Segments } from "../ui/segments";
import { Code, Empty, Pending } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import { useRowWindow, WindowedRows } from "../ui/window";

/** Periods in which an insight was last seen. */
const SEEN = ["24h", "7d", "30d"] as const;
const DAYS = { "24h": 1, "7d": 7, "30d": 30 };
const DAY_MS = 86_400_000;
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
  const words = address.query.get("q") ?? "";
  const seen = SEEN.find((it) => it === address.query.get("seen")) ?? null;
  const items = useMemo(() => {
    const from = seen ? Date.now() - DAYS[seen] * DAY_MS : 0;
    return (loaded.data?.items ?? [])
      .filter((it) => it.status === status)
      .filter((it) => !seen || Date.parse(it.lastSeen ?? "") >= from)
      .filter((it) => matchesText(`${it.title} ${it.description} ${it.excerpt}`, words))
      .sort(ORDERS[sort]);
  }, [loaded.data, sort, status, seen, words]);
  const ids = useMemo(() => items.map((it) => it.id), [items]);
  const hrefOfInsight = (id: string) => hrefOf("insight", { ...keptParams(address), id });
  const near = useRowWindow(items.length, 48);
  const rows = useRows(ids, (id) => go(hrefOfInsight(id)), near.reveal);
  /** Changes the selected insights, or else the current one. */
  const change = async (to: SettableStatus) => {
    const chosen = new Set(targetRows(rows, ids));
    const first = items.findIndex((it) => chosen.has(it.id));
    const targets = items.filter(
      (it) => chosen.has(it.id) && it.status !== to && it.status !== "merged",
    );
    const save = (statusOf: (insight: Insight) => SettableStatus) =>
      mapConcurrently(targets, 4, async (insight) => {
        const changed = await patchInsight(project, insight.id, { status: statusOf(insight) });
        loaded.set(({ items, next }) => ({
          items: items.map((it) => (it.id === changed.id ? { ...it, status: changed.status } : it)),
          next,
        }));
      });
    if (!targets.length) return;
    rows.clear();
    try {
      await save(() => to);
      showToast(`${STATUS_NAMES[to]} ${namesOf(targets)}.`, () =>
        save((it) => it.status as SettableStatus),
      );
    } catch (error) {
      showErrorToast(error);
    }
    requestAnimationFrame(() => {
      if (document.activeElement === document.body) focusRow(Math.max(0, first));
    });
  };
  useAnnouncement(
    status,
    loaded.data && !loaded.loading ? pluralize(items.length, "insight") : null,
  );
  useKeys(
    canWrite
      ? {
          e: () => void change("resolved"),
          i: () => void change("ignored"),
          o: () => void change("open"),
        }
      : {},
  );

  return (
    <>
      <div class="page-head">
        <h1>Insights</h1>
        <span class="quiet small">Last 30 days vs previous 30</span>
      </div>
      <div class="page-head">
        <Segments
          name="Status"
          values={SHOWN}
          chosen={status}
          text={(it) => STATUS_NAMES[it]}
          onChoose={(it) => go(changed(address, { status: it === "open" ? null : it }))}
        />
        <Segments
          name="Last seen"
          values={[...SEEN, null]}
          chosen={seen}
          text={(it) => it ?? "Any time"}
          onChoose={(it) => go(changed(address, { seen: it }))}
        />
      </div>
      <div class="bulk">
        <ListSearch label="Search insights" />
        <BulkActions rows={rows} noun="insight">
          <StatusActions onChange={change} />
        </BulkActions>
      </div>
      <Pending of={loaded} rows={6} />
      {loaded.data && items.length === 0 && (
        <NoInsights status={status} isFiltered={Boolean(words || seen)} />
      )}
      {items.length > 0 && (
        <div class={loaded.loading ? "table-scroll stale" : "table-scroll"}>
          <table class="table" aria-rowcount={items.length + 1}>
            <colgroup>
              {canWrite && <col class="pick" />}
              <col />
              <col style={{ width: "88px" }} />
              <col class="wide" style={{ width: "72px" }} />
              <col class="wide" style={{ width: "96px" }} />
              <col style={{ width: "92px" }} />
              <col class="wide" style={{ width: "104px" }} />
            </colgroup>
            <thead>
              <tr>
                {canWrite && <SelectAll rows={rows} ids={ids} />}
                <th>Insight</th>
                <SortHead name="Sessions" own="sessions" sort={sort} />
                <th class="number wide">Users</th>
                <th class="number wide">Occurrences</th>
                <SortHead name="Trend" own="trend" sort={sort} />
                <SortHead name="Last seen" own="lastSeen" sort={sort} only="wide" />
              </tr>
            </thead>
            <WindowedRows items={items} rows={near}>
              {(it, index) => (
                <tr key={it.id} {...rowProps(rows, index)}>
                  {canWrite && (
                    <SelectCell
                      title={it.title}
                      selected={rows.selected.has(it.id)}
                      onToggle={(toLast) => rows.toggle(it.id, toLast)}
                    />
                  )}
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
      {loaded.next && <More busy={loaded.busy} onClick={loaded.loadMore} />}
    </>
  );
}

function NoInsights({ status, isFiltered }: { status: InsightStatus; isFiltered: boolean }) {
  const { project } = useCurrentProject();
  if (isFiltered) {
    return (
      <Empty title="No insights match">
        <p class="quiet">Change the search, the status or the period.</p>
      </Empty>
    );
  }
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
