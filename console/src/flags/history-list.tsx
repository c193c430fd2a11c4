/** Who changed a flag, when, and what; and the way back to an older version. */

import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { Confirm } from "../ui/confirm";
import { Refused, SkeletonRows } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import type { Flag } from "./flag";
import {
  changeInWords,
  type Difference,
  detailsOf,
  differences,
  type FlagChange,
  type FlagChangePage,
  loadChanges,
  restored,
  restoreVersion,
} from "./history";

const PAGE_SIZE = 10;

interface HistoryProps {
  flag: Flag;
  onChange: (flag: Flag) => void;
}

export function History({ flag, onChange }: HistoryProps) {
  const { project } = useCurrentProject();
  const mayRestore = useCan()("flags:write") && !flag.archivedAt;
  const [more, setMore] = useState<FlagChangePage[]>([]);
  const [loading, setLoading] = useState(false);
  const [asked, ask] = useState<number | null>(null);
  const loaded = useLoaded(`changes ${flag.id} ${flag.version}`, (signal) =>
    loadChanges(project, flag.key, { limit: PAGE_SIZE }, signal),
  );
  // A new version is a new first page, after which the others no longer follow.
  useEffect(() => setMore([]), [flag.version]);
  const pages = loaded.data ? [loaded.data, ...more] : [];
  const changes = pages.flatMap((it) => it.items);
  const cursor = pages.at(-1)?.nextCursor;
  const showMore = async () => {
    setLoading(true);
    try {
      const page = await loadChanges(project, flag.key, {
        limit: PAGE_SIZE,
        cursor: cursor ?? null,
      });
      setMore([...more, page]);
    } catch (error) {
      showErrorToast(error);
    } finally {
      setLoading(false);
    }
  };
  const restore = async (version: number) => {
    ask(null);
    try {
      const changed = await restoreVersion(project, flag, version);
      onChange(changed);
      showToast(`It is as version ${version} left it, as version ${changed.version}.`);
    } catch (error) {
      showErrorToast(error);
    }
  };
  return (
    <section class="part history">
      <header>
        <h2>History</h2>
      </header>
      {loaded.error && <Refused refusal={loaded.error} retry={loaded.reload} />}
      {!loaded.data && !loaded.error && <SkeletonRows rows={3} />}
      <ol class={loaded.loading ? "stale" : ""}>
        {changes.map((it) => (
          <Entry
            key={it.version}
            change={it}
            onRestore={mayRestore && it.version < flag.version ? () => ask(it.version) : null}
          />
        ))}
      </ol>
      {cursor && (
        <button type="button" class="more" disabled={loading} onClick={() => void showMore()}>
          {loading ? "Loading…" : "Show more"}
        </button>
      )}
      {loaded.data && changes.length === 0 && (
        <p class="quiet">Nothing was changed in the last 400 days.</p>
      )}
      {asked !== null && (
        <Confirm
          title={`Restore version ${asked}?`}
          action="Restore"
          onClose={() => ask(null)}
          onConfirm={() => void restore(asked)}
        >
          <WillChange version={asked} changes={changes} />
        </Confirm>
      )}
    </section>
  );
}

function Entry({ change, onRestore }: { change: FlagChange; onRestore: (() => void) | null }) {
  return (
    <li>
      <header>
        <span>
          <b>{changeInWords(change)}</b>{" "}
          <span class="quiet small">
            version {change.version} by <bdi>{change.user ?? "an import"}</bdi>,{" "}
            <RelativeTime at={change.at} />
          </span>
        </span>
        {onRestore && (
          <button
            type="button"
            class="link small"
            aria-label={`Restore version ${change.version}`}
            onClick={onRestore}
          >
            Restore
          </button>
        )}
      </header>
      <Differences told={detailsOf(change)} />
    </li>
  );
}

export function Differences({ told }: { told: Difference[] }) {
  return (
    <dl class="differences">
      {told.map((it) => (
        <div key={it.what}>
          <dt>{it.what}</dt>
          <dd>
            {it.removed.map((line, index) => (
              <del key={index}>
                <bdi>{line}</bdi>
              </del>
            ))}
            {it.added.map((line, index) => (
              <ins key={index}>
                <bdi>{line}</bdi>
              </ins>
            ))}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function WillChange({ version, changes }: { version: number; changes: FlagChange[] }) {
  const told = differences(restored(changes, version));
  if (told.length === 0) return <p>The flag already is as that version left it.</p>;
  return (
    <>
      <p>This changes, at once and everywhere within five seconds:</p>
      <Differences told={told} />
      <p class="quiet small">It becomes a new version, so this can be taken back the same way.</p>
    </>
  );
}
