import { useEffect, useMemo, useState } from "preact/hooks";
import { currentHref, go, hrefOf, Link, useAddress, usePageGuard } from "../address";
import { useAttempts } from "../api/attempt";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { Evidence, SessionFilter, SessionLink } from "../insights/evidence";
import {
  type Insight,
  loadInsight,
  loadPainPoints,
  merge,
  type PainPoint,
  patchInsight,
  type SettableStatus,
  STATUS_NAMES,
  split,
  useInsights,
} from "../insights/insight";
import { Trend } from "../insights/trend";
import { useKeys } from "../keys";
import { number, pluralize } from "../time/format";
import { keptParams } from "../time/range";
import { Confirm, Dialog } from "../ui/confirm";
import { DetailPage } from "../ui/detail-page";
import { SelectCell } from "../ui/row-parts";
import { rowProps, useRows } from "../ui/rows";
import { ErrorMessage, SkeletonRows } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import { useRowWindow, WindowedRows } from "../ui/window";

/** Maximum pain points of one split, and of those loaded here. */
const MAX_SPLIT = 500;
/** Maximum merge targets listed. */
const MAX_CHOICES = 20;
const NONE: PainPoint[] = [];

export function InsightPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const id = (address.query.get("id") ?? "").toLowerCase();
  const loaded = useLoaded(`insight ${project.id} ${id}`, (signal) =>
    loadInsight(project, id, signal),
  );
  return (
    <DetailPage
      list="Insights"
      back={hrefOf("insights", keptParams(address))}
      loaded={loaded}
      isCurrent={(it) => it.id === id}
      noun="Insight"
      rows={9}
    >
      {(insight) => <InsightDetails key={id} insight={insight} reload={loaded.reload} />}
    </DetailPage>
  );
}

function InsightDetails({ insight, reload }: { insight: Insight; reload: () => void }) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const canWrite = useCan()("insights:write") && insight.status !== "merged";
  const points = useLoaded(`points ${project.id} ${insight.id}`, (signal) =>
    loadPainPoints(project, insight.id, signal),
  );
  const session = address.query.get("session");
  const all = points.data ?? NONE;
  const items = useMemo(
    () => (session ? all.filter((it) => it.sessionId === session) : all),
    [all, session],
  );
  const [ids, setIds] = useState<string[]>([]);
  useEffect(() => setIds(items.map((it) => it.id)), [items]);
  const near = useRowWindow(items.length, 48);
  const rows = useRows(ids, () => {}, near.reveal);
  const [dialog, setDialog] = useState<"split" | "merge" | null>(null);
  const hrefOfOther = (id: string) => hrefOf("insight", { ...keptParams(address), id });
  const refresh = () => {
    reload();
    points.reload();
  };

  // Opening an insight marks it as read.
  useEffect(() => {
    if (canWrite && !insight.viewed)
      patchInsight(project, insight.id, { viewed: true }).then(reload, () => {});
  }, [canWrite, insight.viewed, insight.id, project, reload]);

  const change = async (status: SettableStatus) => {
    const was = insight.status as SettableStatus;
    if (was === status) return;
    try {
      await patchInsight(project, insight.id, { status });
      showToast(`${STATUS_NAMES[status]}.`, async () => {
        await patchInsight(project, insight.id, { status: was });
        reload();
      });
      reload();
    } catch (error) {
      showErrorToast(error);
    }
  };
  useKeys(canWrite ? { e: () => void change("resolved"), i: () => void change("ignored") } : {});

  const guardPage = usePageGuard();
  const attempts = useAttempts();
  const undoAttempts = useAttempts();
  const [busy, setBusy] = useState(false);
  const chosen = [...rows.selected];
  const splitOff = async (title: string) => {
    setDialog(null);
    setBusy(true);
    try {
      const key = attempts.keyFor("split", insight.id, chosen, title);
      const created = await split(project, insight.id, chosen, title, key);
      attempts.succeeded();
      rows.clear();
      refresh();
      showToast(
        `Split ${pluralize(chosen.length, "pain point")} off into “${created.title}”.`,
        async () => {
          await merge(project, created.id, insight.id, undoAttempts.keyFor(created.id, insight.id));
          undoAttempts.succeeded();
          refresh();
        },
      );
    } catch (error) {
      showErrorToast(error);
    } finally {
      setBusy(false);
    }
  };
  const mergeInto = async (other: Insight) => {
    setDialog(null);
    const href = hrefOfOther(other.id);
    const isHere = guardPage();
    const moved = all.map((it) => it.id);
    setBusy(true);
    try {
      await merge(project, insight.id, other.id, attempts.keyFor("merge", insight.id, other.id));
      attempts.succeeded();
      // The API cannot undo a merge. Splitting off the same pain points restores them in a new
      // insight.
      const canUndo =
        moved.length > 0 && moved.length <= MAX_SPLIT && moved.length === insight.occurrences;
      const undo = async () => {
        const from = currentHref();
        const restored = await split(
          project,
          other.id,
          moved,
          insight.title,
          undoAttempts.keyFor(other.id, moved, insight.title),
        );
        await patchInsight(project, restored.id, stateBeforeMerge(insight));
        undoAttempts.succeeded();
        // Shows the restored insight if the user is still on the merge target.
        if (from === href && currentHref() === from) go(hrefOfOther(restored.id));
      };
      const isStillHere = isHere();
      const link = isStillHere ? undefined : { href, text: "Open" };
      showToast(`Merged into “${other.title}”.`, canUndo ? undo : undefined, link);
      if (isStillHere) go(href);
    } catch (error) {
      showErrorToast(error);
    } finally {
      setBusy(false);
    }
  };

  const markUnread = async () => {
    const isHere = guardPage();
    try {
      await patchInsight(project, insight.id, { viewed: false });
      if (isHere()) go(hrefOf("insights", keptParams(address)));
    } catch (error) {
      showErrorToast(error);
    }
  };

  return (
    <>
      <div class="page-head error-head">
        <div>
          <h1>
            <bdi>{insight.title}</bdi>
          </h1>
          <p class="quiet">
            <bdi>{insight.description}</bdi>
          </p>
        </div>
        <div class="actions">
          <span class={`status ${insight.status}`}>{STATUS_NAMES[insight.status]}</span>
          {canWrite && (
            <>
              {insight.status !== "resolved" && (
                <button
                  type="button"
                  class="primary"
                  onClick={() => void change("resolved")}
                  title="Resolve (e)"
                >
                  Resolve
                </button>
              )}
              {insight.status !== "ignored" && (
                <button type="button" onClick={() => void change("ignored")} title="Ignore (i)">
                  Ignore
                </button>
              )}
              {insight.status !== "open" && (
                <button type="button" onClick={() => void change("open")}>
                  Reopen
                </button>
              )}
              <button type="button" disabled={busy} onClick={() => setDialog("merge")}>
                Merge into…
              </button>
              <button type="button" onClick={() => void markUnread()}>
                Mark as unread
              </button>
            </>
          )}
        </div>
      </div>
      {insight.mergedInto && (
        <MergedInto id={insight.mergedInto} href={hrefOfOther(insight.mergedInto)} />
      )}
      {insight.status !== "merged" && (
        <dl class="facts">
          <div>
            <dt>Sessions in 30 days</dt>
            <dd>
              {number(insight.affectedSessions)}{" "}
              <small>
                <Trend insight={insight} />
              </small>
            </dd>
          </div>
          <div>
            <dt>Users</dt>
            <dd>{number(insight.identifiedUsers)}</dd>
          </div>
          <div>
            <dt>Occurrences</dt>
            <dd>{number(insight.occurrences)}</dd>
          </div>
          {insight.firstSeen && (
            <div>
              <dt>First seen</dt>
              <dd>
                <RelativeTime at={insight.firstSeen} />
              </dd>
            </div>
          )}
          {insight.lastSeen && (
            <div>
              <dt>Last seen</dt>
              <dd>
                <RelativeTime at={insight.lastSeen} />
              </dd>
            </div>
          )}
        </dl>
      )}
      <div class="bulk">
        {rows.selected.size > 0 ? (
          <>
            <b>{pluralize(rows.selected.size, "pain point")} selected</b>
            <button type="button" disabled={busy} onClick={() => setDialog("split")}>
              Split off…
            </button>
            <button type="button" class="link" onClick={rows.clear}>
              Clear selection
            </button>
          </>
        ) : (
          <h2>Pain points</h2>
        )}
      </div>
      {points.error && <ErrorMessage error={points.error} retry={points.reload} />}
      {!points.data && !points.error && <SkeletonRows rows={6} />}
      {session && points.data && (
        <SessionFilter points={all} count={items.length} session={session} />
      )}
      {items.length > 0 && (
        <table class="table" aria-rowcount={items.length + 1}>
          <colgroup>
            {canWrite && <col class="pick" />}
            <col />
            <col class="wide" style={{ width: "160px" }} />
            <col class="wide" style={{ width: "120px" }} />
            <col style={{ width: "104px" }} />
          </colgroup>
          <thead>
            <tr>
              {canWrite && (
                <th>
                  <input
                    type="checkbox"
                    aria-label="Select all"
                    checked={rows.selected.size === ids.length}
                    onChange={(event) =>
                      event.currentTarget.checked ? rows.selectAll(ids) : rows.clear()
                    }
                  />
                </th>
              )}
              <th>Pain point</th>
              <th class="wide">Session</th>
              <th class="wide">User</th>
              <th class="number">Time</th>
            </tr>
          </thead>
          <WindowedRows items={items} rows={near}>
            {(it, index) => (
              <tr key={it.id} {...rowProps(rows, index)}>
                {canWrite && (
                  <SelectCell
                    title={it.title}
                    selected={rows.selected.has(it.id)}
                    onToggle={() => rows.toggle(it.id)}
                  />
                )}
                <td title={it.excerpt}>
                  <bdi>{it.title}</bdi>
                  <Evidence point={it} />
                </td>
                <td class="wide quiet">
                  <SessionLink id={it.sessionId} />
                </td>
                <td class="wide quiet">
                  <bdi>{it.userId ?? "Anonymous"}</bdi>
                </td>
                <td class="number quiet">
                  <RelativeTime at={it.occurredAt} />
                </td>
              </tr>
            )}
          </WindowedRows>
        </table>
      )}
      {all.length >= MAX_SPLIT && (
        <p class="quiet nothing">Showing the {number(all.length)} newest.</p>
      )}
      {dialog === "split" && (
        <SplitDialog
          count={chosen.length}
          all={chosen.length >= insight.occurrences}
          onClose={() => setDialog(null)}
          onSplit={(title) => void splitOff(title)}
        />
      )}
      {dialog === "merge" && (
        <MergeDialog
          insight={insight}
          onClose={() => setDialog(null)}
          onMerge={(other) => void mergeInto(other)}
        />
      )}
    </>
  );
}

interface MergedIntoProps {
  id: string;
  href: string;
}

function MergedInto({ id, href }: MergedIntoProps) {
  const { project } = useCurrentProject();
  const { data } = useLoaded(`insight ${project.id} ${id}`, (signal) =>
    loadInsight(project, id, signal),
  );
  return (
    <p>
      Merged into <Link href={href}>{data ? `“${data.title}”` : "another insight"}</Link>.
      Read-only.
    </p>
  );
}

/** Returns the fields that a split does not restore after a merge. */
export function stateBeforeMerge({ description, status, viewed }: Insight) {
  return {
    viewed,
    ...(description && { description }),
    ...(status !== "merged" && { status }),
  };
}

interface SplitDialogProps {
  count: number;
  all: boolean;
  onClose: () => void;
  onSplit: (title: string) => void;
}

function SplitDialog({ count, all, onClose, onSplit }: SplitDialogProps) {
  const [title, set] = useState("");
  return (
    <Dialog title={`Split off ${pluralize(count, "pain point")}`} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          onSplit(title.trim());
        }}
      >
        {all && <p>You selected all pain points. Leave at least one.</p>}
        {count > MAX_SPLIT && <p>You can split off up to {MAX_SPLIT} at a time.</p>}
        <label class="field">
          Title of the new insight
          <input
            value={title}
            maxLength={200}
            placeholder="Defaults to the latest pain point’s title"
            onInput={(event) => set(event.currentTarget.value)}
          />
        </label>
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={all || count > MAX_SPLIT}>
            Split off
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface MergeDialogProps {
  insight: Insight;
  onClose: () => void;
  onMerge: (other: Insight) => void;
}

function MergeDialog({ insight, onClose, onMerge }: MergeDialogProps) {
  const { project } = useCurrentProject();
  const [search, setSearch] = useState("");
  const [into, setInto] = useState<Insight | null>(null);
  const loaded = useInsights(project, null);
  const others = (loaded.data?.items ?? []).filter(
    (it) =>
      it.id !== insight.id &&
      it.status !== "merged" &&
      it.title.toLowerCase().includes(search.toLowerCase()),
  );
  if (into) {
    return (
      <Confirm
        title={`Merge into “${into.title}”?`}
        action="Merge"
        onClose={onClose}
        onConfirm={() => onMerge(into)}
      >
        <p>
          {pluralize(insight.occurrences, "pain point")} of “<bdi>{insight.title}</bdi>” move there,
          and this insight becomes read-only.
        </p>
        {insight.occurrences > MAX_SPLIT && (
          <p>
            <b>This cannot be undone:</b> an undo can move only {MAX_SPLIT} pain points back.
          </p>
        )}
      </Confirm>
    );
  }
  return (
    <Dialog title="Merge into" onClose={onClose}>
      <p class="quiet">
        All pain points move to the insight you choose, and this insight becomes read-only.
      </p>
      <label class="field">
        Search
        <input value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      {loaded.error && <ErrorMessage error={loaded.error} retry={loaded.reload} />}
      {!loaded.data && !loaded.error && <SkeletonRows rows={3} />}
      <ul class="rows choices">
        {others.slice(0, MAX_CHOICES).map((it) => (
          <li key={it.id}>
            <button type="button" class="link row" onClick={() => setInto(it)}>
              <bdi>{it.title}</bdi>
            </button>
          </li>
        ))}
      </ul>
      {others.length > MAX_CHOICES && (
        <p class="quiet small">{number(others.length - MAX_CHOICES)} more; type to filter</p>
      )}
      {loaded.data && others.length === 0 && <p class="quiet nothing">No other insights match.</p>}
      {loaded.next && (
        <p class="quiet small">
          Searching the {number(loaded.data?.items.length ?? 0)} most recent.{" "}
          <button
            type="button"
            class="link"
            disabled={loaded.busy}
            onClick={() => void loaded.loadMore()}
          >
            {loaded.busy ? "Loading…" : "Load more"}
          </button>
        </p>
      )}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}
