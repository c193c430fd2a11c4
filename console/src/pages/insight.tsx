import { useEffect, useState } from "preact/hooks";
import { currentHref, go, hrefOf, Link, useAddress, useStay } from "../address";
import { useAttempts } from "../api/attempt";
import { api, unwrapResponse } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import {
  type Insight,
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
import { counted, number } from "../time/format";
import { keptParams } from "../time/range";
import { Confirm, Dialog } from "../ui/confirm";
import { One } from "../ui/one";
import { SelectCell } from "../ui/row-parts";
import { rowAt, useRows } from "../ui/rows";
import { Refused, SkeletonRows } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import { useRowWindow, WindowedRows } from "../ui/window";

/** The most that one split takes. */
const MOST_SPLIT = 500;
/** How many are offered to be merged into. */
const MOST_CHOICES = 20;
/** The API loads 500 pain points here; more are listed by the command line. */
const NONE: PainPoint[] = [];

export function InsightPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const id = (address.query.get("id") ?? "").toLowerCase();
  const loaded = useLoaded(`insight ${project.id} ${id}`, (signal) =>
    unwrapResponse(
      api.GET("/v0/projects/{idOrSlug}/replay-insights/{insightId}", {
        params: { path: { idOrSlug: project.slug, insightId: id } },
        signal,
      }),
    ),
  );
  return (
    <One
      list="Insights"
      back={hrefOf("insights", keptParams(address))}
      loaded={loaded}
      isIt={(it) => it.id === id}
      what="insight"
      rows={9}
    >
      {(insight) => <Told key={id} insight={insight} reload={loaded.reload} />}
    </One>
  );
}

function Told({ insight, reload }: { insight: Insight; reload: () => void }) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const mayWrite = useCan()("insights:write") && insight.status !== "merged";
  const points = useLoaded(`points ${project.id} ${insight.id}`, (signal) =>
    loadPainPoints(project, insight.id, signal),
  );
  const items = points.data ?? NONE;
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

  // Whoever opens it has looked at it.
  useEffect(() => {
    if (mayWrite && !insight.viewed)
      patchInsight(project, insight.id, { viewed: true }).then(reload, () => {});
  }, [mayWrite, insight.viewed, insight.id, project, reload]);

  const change = async (status: SettableStatus) => {
    const was = insight.status as SettableStatus;
    if (was === status) return;
    try {
      await patchInsight(project, insight.id, { status });
      showToast(`The insight is ${status}.`, async () => {
        await patchInsight(project, insight.id, { status: was });
        reload();
      });
      reload();
    } catch (error) {
      showErrorToast(error);
    }
  };
  useKeys(mayWrite ? { e: () => void change("resolved"), i: () => void change("ignored") } : {});

  const stay = useStay();
  const attempts = useAttempts();
  const undoing = useAttempts();
  const [busy, setBusy] = useState(false);
  const chosen = [...rows.selected];
  const splitOff = async (title: string) => {
    setDialog(null);
    setBusy(true);
    try {
      const key = attempts.keyFor("split", insight.id, chosen, title);
      const made = await split(project, insight.id, chosen, title, key);
      attempts.succeeded();
      rows.clear();
      refresh();
      showToast(
        `Split ${counted(chosen.length, "pain point")} off into “${made.title}”.`,
        async () => {
          await merge(project, made.id, insight.id, undoing.keyFor(made.id, insight.id));
          undoing.succeeded();
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
    const isHere = stay();
    const moved = items.map((it) => it.id);
    setBusy(true);
    try {
      await merge(project, insight.id, other.id, attempts.keyFor("merge", insight.id, other.id));
      attempts.succeeded();
      // Merging is for good; what it did is undone by splitting the same pain points off again.
      const canUndo =
        moved.length > 0 && moved.length <= MOST_SPLIT && moved.length === insight.occurrences;
      const undo = async () => {
        const from = currentHref();
        const again = await split(
          project,
          other.id,
          moved,
          insight.title,
          undoing.keyFor(other.id, moved, insight.title),
        );
        await patchInsight(project, again.id, asItWas(insight));
        undoing.succeeded();
        // Whoever looks at what it was merged into sees what came out of it again.
        if (from === href && currentHref() === from) go(hrefOfOther(again.id));
      };
      const isStill = isHere();
      const link = isStill ? undefined : { href, text: "Open it" };
      showToast(`Merged into “${other.title}”.`, canUndo ? undo : undefined, link);
      if (isStill) go(href);
    } catch (error) {
      showErrorToast(error);
    } finally {
      setBusy(false);
    }
  };

  const putBack = async () => {
    const isHere = stay();
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
          {mayWrite && (
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
              <button type="button" onClick={() => void putBack()}>
                Not viewed
              </button>
            </>
          )}
        </div>
      </div>
      {insight.mergedInto && (
        <p>
          It was merged into <Link href={hrefOfOther(insight.mergedInto)}>another insight</Link>,
          and can only be read.
        </p>
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
            <b>{counted(rows.selected.size, "pain point")} selected</b>
            <button type="button" disabled={busy} onClick={() => setDialog("split")}>
              Split off…
            </button>
            <button type="button" class="link" onClick={rows.clear}>
              Select none
            </button>
          </>
        ) : (
          <h2>Pain points</h2>
        )}
      </div>
      {points.error && <Refused refusal={points.error} retry={points.reload} />}
      {!points.data && !points.error && <SkeletonRows rows={6} />}
      {items.length > 0 && (
        <table class="table" aria-rowcount={items.length + 1}>
          <colgroup>
            {mayWrite && <col class="pick" />}
            <col />
            <col class="wide" style={{ width: "160px" }} />
            <col class="wide" style={{ width: "120px" }} />
            <col style={{ width: "104px" }} />
          </colgroup>
          <thead>
            <tr>
              {mayWrite && (
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
              <th>What happened</th>
              <th class="wide">Session</th>
              <th class="wide">User</th>
              <th class="number">When</th>
            </tr>
          </thead>
          <WindowedRows items={items} rows={near}>
            {(it, index) => (
              <tr key={it.id} {...rowAt(rows, index)}>
                {mayWrite && (
                  <SelectCell
                    title={it.title}
                    selected={rows.selected.has(it.id)}
                    onToggle={() => rows.toggle(it.id)}
                  />
                )}
                <td title={it.excerpt}>
                  <bdi>{it.title}</bdi>
                  <small>
                    <bdi>{it.excerpt}</bdi>
                  </small>
                </td>
                <td class="wide quiet">
                  <bdi>{it.sessionId}</bdi>
                </td>
                <td class="wide quiet">
                  <bdi>{it.userId ?? "nobody known"}</bdi>
                </td>
                <td class="number quiet">
                  <RelativeTime at={it.occurredAt} />
                </td>
              </tr>
            )}
          </WindowedRows>
        </table>
      )}
      {items.length >= MOST_SPLIT && (
        <p class="quiet nothing">These are the newest {number(items.length)}.</p>
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

/** What an insight that is split off anew lacks of what it was before. */
export function asItWas({ description, status, viewed }: Insight) {
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
    <Dialog title={`Split off ${counted(count, "pain point")}`} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          onSplit(title.trim());
        }}
      >
        {all && <p>These are all that it has: leave at least one, or change its title instead.</p>}
        {count > MOST_SPLIT && <p>At most {MOST_SPLIT} can be split off at once.</p>}
        <label class="field">
          Title of the new insight
          <input
            value={title}
            maxLength={200}
            placeholder="That of the latest of them"
            onInput={(event) => set(event.currentTarget.value)}
          />
        </label>
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={all || count > MOST_SPLIT}>
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
  const [words, set] = useState("");
  const [into, setInto] = useState<Insight | null>(null);
  const loaded = useInsights(project, null);
  const others = (loaded.data?.items ?? []).filter(
    (it) =>
      it.id !== insight.id &&
      it.status !== "merged" &&
      it.title.toLowerCase().includes(words.toLowerCase()),
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
          {counted(insight.occurrences, "pain point")} of “<bdi>{insight.title}</bdi>” move there,
          and it can only be read from then on.
        </p>
        {insight.occurrences > MOST_SPLIT && (
          <p>
            <b>This cannot be undone:</b> at most {MOST_SPLIT} can be split off again at once.
          </p>
        )}
      </Confirm>
    );
  }
  return (
    <Dialog title="Merge into" onClose={onClose}>
      <p class="quiet">
        All pain points move into the insight that you choose; this one can only be read then.
      </p>
      <label class="field">
        Find
        <input value={words} onInput={(event) => set(event.currentTarget.value)} />
      </label>
      {loaded.error && <Refused refusal={loaded.error} retry={loaded.reload} />}
      {!loaded.data && !loaded.error && <SkeletonRows rows={3} />}
      <ul class="rows choices">
        {others.slice(0, MOST_CHOICES).map((it) => (
          <li key={it.id}>
            <button type="button" class="link row" onClick={() => setInto(it)}>
              <bdi>{it.title}</bdi>
            </button>
          </li>
        ))}
      </ul>
      {others.length > MOST_CHOICES && (
        <p class="quiet small">and {number(others.length - MOST_CHOICES)} more: find it by words</p>
      )}
      {loaded.data && others.length === 0 && (
        <p class="quiet nothing">There is no other insight of this title.</p>
      )}
      {loaded.next && (
        <p class="quiet small">
          Only the {number(loaded.data?.items.length ?? 0)} that were seen last are looked through.{" "}
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
