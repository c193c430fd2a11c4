import { useMemo } from "preact/hooks";
import { changed, go, hrefOf, Link, useAddress } from "../address";
import { useCan, useCurrentProject } from "../caller";
import { type Insight, type InsightStatus, patchInsight, useInsights } from "../insights/insight";
import { Trend } from "../insights/trend";
import { number, pluralize } from "../time/format";
import { keptParams } from "../time/range";
import { useAnnouncement } from "../ui/announcement";
import { Segments } from "../ui/button";
import { matchesText } from "../ui/combobox";
import { BulkActions, ListSearch, More } from "../ui/row-parts";
import { Code, Empty, Pending } from "../ui/states";
import {
  changeStatus,
  STATUS_NAMES,
  type Status,
  StatusActions,
  useBulkStatus,
} from "../ui/status";
import { Table, useList } from "../ui/table";
import { RelativeTime } from "../ui/time";

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
  const hrefOfInsight = (id: string) => hrefOf("insight", { ...keptParams(address), id });
  const list = useList(
    items,
    (it) => it.id,
    (id) => go(hrefOfInsight(id)),
  );
  const put = async ({ id }: Insight, to: Status) => {
    const { status } = await patchInsight(project, id, { status: to });
    loaded.set((was) => ({
      ...was,
      items: was.items.map((it) => (it.id === id ? { ...it, status } : it)),
    }));
  };
  const change = useBulkStatus(list, canWrite, (chosen, to) =>
    changeStatus(
      chosen.filter((it) => it.status !== to && it.status !== "merged"),
      {
        status: to,
        noun: "insight",
        save: (it) => put(it, to),
        restore: (it) => put(it, it.status as Status),
        onChange: () => {},
      },
    ),
  );
  useAnnouncement(
    status,
    loaded.data && !loaded.loading ? pluralize(items.length, "insight") : null,
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
        <BulkActions rows={list.rows} noun="insight">
          <StatusActions onChange={change} />
        </BulkActions>
      </div>
      <Pending of={loaded} rows={6} />
      {loaded.data && items.length === 0 && (
        <NoInsights status={status} isFiltered={Boolean(words || seen)} />
      )}
      <Table
        list={list}
        nameOf={canWrite && ((it) => it.title)}
        sort={sort}
        stale={loaded.loading}
        columns={[
          [
            "Insight",
            "",
            (it) => (
              <>
                <Link class={it.viewed ? "title" : "title unread"} href={hrefOfInsight(it.id)}>
                  <bdi>{it.title}</bdi>
                  {!it.viewed && <span class="hidden"> (unread)</span>}
                </Link>
                <small>
                  <bdi>{it.description || it.excerpt || " "}</bdi>
                </small>
              </>
            ),
          ],
          ["Sessions", "number of-count", (it) => number(it.affectedSessions), "sessions"],
          ["Users", "number wide of-count", (it) => number(it.identifiedUsers)],
          ["Occurrences", "number medium of-time", (it) => number(it.occurrences)],
          [
            "Trend",
            "number of-change",
            (it) => it.status !== "merged" && <Trend insight={it} />,
            "trend",
          ],
          [
            "Last seen",
            "number quiet wide of-time",
            (it) => it.lastSeen && <RelativeTime at={it.lastSeen} />,
            "lastSeen",
          ],
        ]}
      />
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
