import { useEffect, useMemo, useState } from "preact/hooks";
import { currentHref, go, hrefOf, Link, useAddress, usePageGuard } from "../address";
import { useAttempts } from "../api/attempt";
import { ApiError } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { Evidence, SessionFilter, SessionLink } from "../insights/evidence";
import {
  type Insight,
  loadInsight,
  loadPainPoints,
  MAX_SPLIT,
  merge,
  type PainPoint,
  patchInsight,
  split,
  undoMerge,
  useErrorTypes,
  useInsights,
} from "../insights/insight";
import { Trend } from "../insights/trend";
import { Spark } from "../plot/spark";
import { number, pluralize } from "../time/format";
import { keptParams } from "../time/range";
import { Button } from "../ui/button";
import { matchesText } from "../ui/combobox";
import { Confirm, Dialog } from "../ui/confirm";
import { DetailPage } from "../ui/detail-page";
import { Field, FormDialog, FormError, useForm } from "../ui/form";
import { Facts } from "../ui/layout";
import { BulkActions, ListSearch } from "../ui/row-parts";
import { useIsSettled } from "../ui/settled";
import { Pending } from "../ui/states";
import {
  changeStatus,
  doneText,
  STATUS_NAMES,
  type Status,
  StatusActions,
  useStatusKeys,
} from "../ui/status";
import { Table, useList } from "../ui/table";
import { RelativeTime } from "../ui/time";
import { showToast, useAction } from "../ui/toast";

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
  const errorTypes = useErrorTypes(project, all);
  const words = address.query.get("q") ?? "";
  const items = useMemo(
    () =>
      all.filter(
        (it) =>
          (!session || it.sessionId === session) &&
          matchesText(`${it.title} ${it.excerpt} ${it.sessionId} ${it.userId ?? ""}`, words),
      ),
    [all, session, words],
  );
  const isSettled = useIsSettled(insight.status);
  const list = useList(items, (it) => it.id);
  const { rows } = list;
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

  const change = (status: Status) =>
    changeStatus(insight.status === status ? [] : [insight], {
      status,
      noun: "insight",
      message: doneText(status),
      save: ({ id }) => patchInsight(project, id, { status }),
      restore: (it) => patchInsight(project, it.id, { status: it.status as Status }),
      onChange: reload,
    });
  useStatusKeys(canWrite, (status) => void change(status));
  const guardPage = usePageGuard();
  const attempts = useAttempts();
  const undoAttempts = useAttempts();
  const [busy, run] = useAction();
  const chosen = [...rows.selected];
  const splitOff = async (title: string) => {
    setDialog(null);
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
  };
  const mergeInto = async (other: Insight) => {
    setDialog(null);
    const href = hrefOfOther(other.id);
    const isHere = guardPage();
    await merge(project, insight.id, other.id, attempts.keyFor("merge", insight.id, other.id));
    attempts.succeeded();
    const undo = async () => {
      const from = currentHref();
      await undoMerge(project, insight);
      // Shows the restored insight if the user is still on the merge target.
      if (from === href && currentHref() === from) go(hrefOfOther(insight.id));
    };
    const isStillHere = isHere();
    const link = isStillHere ? undefined : { href, text: "Open" };
    showToast(
      `Merged ${pluralize(insight.occurrences, "pain point")} into “${other.title}”.`,
      undo,
      link,
    );
    if (isStillHere) go(href);
  };
  const markUnread = async () => {
    const isHere = guardPage();
    await patchInsight(project, insight.id, { viewed: false });
    if (isHere()) go(hrefOf("insights", keptParams(address)));
  };
  return (
    <>
      <Title key={`${insight.title} ${insight.description}`} {...{ insight, canWrite, reload }} />
      <div class="triage">
        <span class={`status ${insight.status}`}>{STATUS_NAMES[insight.status]}</span>
        {canWrite && (
          <div class="actions">
            <StatusActions
              current={insight.status}
              disabled={!isSettled}
              onChange={(status) => void change(status)}
            />
            <Button disabled={busy} onClick={() => setDialog("merge")}>
              Merge into…
            </Button>
            <Button onClick={() => void run(markUnread)}>Mark as unread</Button>
          </div>
        )}
      </div>
      {insight.mergedInto && (
        <MergedInto
          insight={insight}
          into={insight.mergedInto}
          href={hrefOfOther(insight.mergedInto)}
          onUndone={refresh}
        />
      )}
      {insight.status !== "merged" && (
        <Facts
          rows={[
            [
              "Sessions in 30 days",
              <>
                {number(insight.affectedSessions)}{" "}
                <small>
                  <Trend insight={insight} />
                </small>
              </>,
            ],
            ["Users", number(insight.identifiedUsers)],
            ["Occurrences", number(insight.occurrences)],
            [insight.firstSeen && "First seen", <RelativeTime at={insight.firstSeen ?? 0} />],
            [insight.lastSeen && "Last seen", <RelativeTime at={insight.lastSeen ?? 0} />],
          ]}
        />
      )}
      {points.data && all.length > 0 && <Days points={all} isAll={all.length < MAX_SPLIT} />}
      <div class="bulk">
        <h2>Pain points</h2>
        <ListSearch label="Search pain points" />
        <BulkActions rows={rows} noun="pain point">
          <Button disabled={busy} onClick={() => setDialog("split")}>
            Split off…
          </Button>
        </BulkActions>
      </div>
      <Pending of={points} rows={6} />
      {session && points.data && (
        <SessionFilter points={all} count={items.length} session={session} />
      )}
      <Table
        list={list}
        nameOf={canWrite && ((it) => it.title)}
        columns={[
          [
            "Pain point",
            "",
            (it) => (
              <span title={it.excerpt}>
                <bdi>{it.title}</bdi>
                <Evidence point={it} errorTypes={errorTypes} />
              </span>
            ),
          ],
          ["Session", "wide quiet of-name", (it) => <SessionLink id={it.sessionId} />],
          ["User", "wide quiet of-name", (it) => <bdi>{it.userId ?? "Anonymous"}</bdi>],
          ["Time", "number quiet of-time", (it) => <RelativeTime at={it.occurredAt} />],
        ]}
      />
      {all.length >= MAX_SPLIT && (
        <p class="quiet nothing">Showing the {number(all.length)} newest.</p>
      )}
      {dialog === "split" && (
        <SplitDialog
          count={chosen.length}
          all={chosen.length >= insight.occurrences}
          onClose={() => setDialog(null)}
          onSplit={(title) => void run(() => splitOff(title))}
        />
      )}
      {dialog === "merge" && (
        <MergeDialog
          insight={insight}
          onClose={() => setDialog(null)}
          onMerge={(other) => void run(() => mergeInto(other))}
        />
      )}
    </>
  );
}

interface TitleProps {
  insight: Insight;
  canWrite: boolean;
  reload: () => void;
}

/** The title and description, and a form that changes them. */
function Title({ insight, canWrite, reload }: TitleProps) {
  const { project } = useCurrentProject();
  const [isEditing, setEditing] = useState(false);
  const [title, setTitle] = useState(insight.title);
  const [description, setDescription] = useState(insight.description);
  const form = useForm(async () => {
    await patchInsight(project, insight.id, { title, description });
    setEditing(false);
    reload();
    showToast("Saved.", async () => {
      const { title, description } = insight;
      await patchInsight(project, insight.id, { title, description });
      reload();
    });
  });
  if (!isEditing) {
    return (
      <div class="page-head error-head">
        <div>
          <h1>
            <bdi>{insight.title}</bdi>
          </h1>
          <p class="quiet">
            <bdi>{insight.description}</bdi>
          </p>
        </div>
        {canWrite && <Button onClick={() => setEditing(true)}>Edit</Button>}
      </div>
    );
  }
  return (
    <form class="form" {...form.props}>
      <h1 class="hidden">{insight.title}</h1>
      <Field
        label="Title"
        at="/title"
        form={form}
        maxLength={200}
        autofocus
        value={title}
        onInput={setTitle}
      />
      <Field
        label="Description"
        at="/description"
        form={form}
        maxLength={2000}
        rows={3}
        value={description}
        onInput={setDescription}
      />
      <FormError form={form} />
      <div class="form-row">
        <button type="submit" class="primary">
          Save
        </button>
        <Button onClick={() => setEditing(false)}>Cancel</Button>
      </div>
    </form>
  );
}

const DAY_MS = 86_400_000;
const DAYS = 30;

/** The pain points of each of the last 30 days. */
function Days({ points, isAll }: { points: PainPoint[]; isAll: boolean }) {
  const counts = useMemo(() => {
    const days = Array<number>(DAYS).fill(0);
    const now = Date.now();
    for (const { occurredAt } of points) {
      const day = DAYS - 1 - Math.floor((now - Date.parse(occurredAt)) / DAY_MS);
      if (days[day] !== undefined) days[day]++;
    }
    return days;
  }, [points]);
  return (
    <div class="days">
      <Spark values={counts} width={480} height={48} />
      <p class="quiet small">
        Pain points per day, last 30 days{!isAll && `, of the ${number(points.length)} newest`}
      </p>
    </div>
  );
}

interface MergedIntoProps {
  insight: Insight;
  into: string;
  href: string;
  onUndone: () => void;
}

function MergedInto({ insight, into, href, onUndone }: MergedIntoProps) {
  const { project } = useCurrentProject();
  const canWrite = useCan()("insights:write");
  const { data } = useLoaded(`insight ${project.id} ${into}`, (signal) =>
    loadInsight(project, into, signal),
  );
  const [busy, run] = useAction();
  const [isFinal, setFinal] = useState(false);
  const undo = async () => {
    try {
      await undoMerge(project, insight);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === "insight_merged")) throw error;
      return setFinal(true);
    }
    showToast("The merge is undone.");
    onUndone();
  };
  return (
    <p>
      Merged into <Link href={href}>{data ? `“${data.title}”` : "another insight"}</Link>.{" "}
      {isFinal && "That insight changed later, so the merge cannot be undone. "}
      Read-only.{" "}
      {canWrite && !isFinal && (
        <Button class="link" disabled={busy} onClick={() => void run(undo)}>
          Undo merge
        </Button>
      )}
    </p>
  );
}

interface SplitDialogProps {
  count: number;
  all: boolean;
  onClose: () => void;
  onSplit: (title: string) => void;
}

function SplitDialog({ count, all, onClose, onSplit }: SplitDialogProps) {
  const [title, set] = useState("");
  const form = useForm(async () => onSplit(title.trim()));
  return (
    <FormDialog
      title={`Split off ${pluralize(count, "pain point")}`}
      action="Split off"
      disabled={all || count > MAX_SPLIT}
      form={form}
      onClose={onClose}
    >
      {all && <p>You selected all pain points. Leave at least one.</p>}
      {count > MAX_SPLIT && <p>You can split off up to {MAX_SPLIT} at a time.</p>}
      <Field
        label="Title of the new insight"
        at="/title"
        form={form}
        maxLength={200}
        placeholder="Defaults to the latest pain point’s title"
        value={title}
        onInput={set}
      />
    </FormDialog>
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
          {pluralize(insight.occurrences, "pain point")} of “<bdi>{insight.title}</bdi>” move to “
          <bdi>{into.title}</bdi>”, which then has{" "}
          {pluralize(insight.occurrences + into.occurrences, "pain point")}. “
          <bdi>{insight.title}</bdi>” leaves the list and becomes read-only. Its title and status
          stay as they are.
        </p>
        <p>
          You can undo the merge on this insight’s page until pain points of the other one change.
        </p>
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
      <Pending of={loaded} rows={3} />
      <ul class="rows choices">
        {others.slice(0, MAX_CHOICES).map((it) => (
          <li key={it.id}>
            <Button class="link row" onClick={() => setInto(it)}>
              <bdi>{it.title}</bdi>
            </Button>
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
          <Button class="link" disabled={loaded.busy} onClick={() => void loaded.loadMore()}>
            {loaded.busy ? "Loading…" : "Load more"}
          </Button>
        </p>
      )}
      <div class="actions">
        <Button onClick={onClose}>Cancel</Button>
      </div>
    </Dialog>
  );
}
