/** The history of a flag, with a button to restore each version. */

import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { Confirm } from "../ui/confirm";
import { More } from "../ui/row-parts";
import { Pending } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import type { Flag } from "./flag";
import {
  type Difference,
  describeChange,
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
  const [restoring, setRestoring] = useState<number | null>(null);
  const loaded = useLoaded(`changes ${flag.id} ${flag.version}`, (signal) =>
    loadChanges(project, flag.key, { limit: PAGE_SIZE }, signal),
  );
  // A new version shifts the pages, so the loaded ones no longer fit.
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
    setRestoring(null);
    try {
      const changed = await restoreVersion(project, flag, version);
      onChange(changed);
      showToast(`Restored version ${version} (now version ${changed.version}).`);
    } catch (error) {
      showErrorToast(error);
    }
  };
  return (
    <section class="part history">
      <header>
        <h2>History</h2>
      </header>
      <Pending of={loaded} rows={3} />
      <ol class={loaded.loading ? "stale" : ""}>
        {changes.map((it) => (
          <Entry
            key={it.version}
            change={it}
            onRestore={
              mayRestore && it.version < flag.version ? () => setRestoring(it.version) : null
            }
          />
        ))}
      </ol>
      {cursor && <More busy={loading} onClick={showMore} />}
      {loaded.data && changes.length === 0 && <p class="quiet">No changes in the last 400 days.</p>}
      {restoring !== null && (
        <Confirm
          title={`Restore version ${restoring}?`}
          action="Restore"
          onClose={() => setRestoring(null)}
          onConfirm={() => void restore(restoring)}
        >
          <RestorePreview version={restoring} changes={changes} />
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
          <b>{describeChange(change)}</b>{" "}
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
      <Differences items={detailsOf(change)} />
    </li>
  );
}

export function Differences({ items }: { items: Difference[] }) {
  return (
    <dl class="differences">
      {items.map((it) => (
        <div key={it.field}>
          <dt>{it.field}</dt>
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

function RestorePreview({ version, changes }: { version: number; changes: FlagChange[] }) {
  const items = differences(restored(changes, version));
  if (items.length === 0) return <p>The flag already matches version {version}.</p>;
  return (
    <>
      <p>Takes effect everywhere within 5 seconds:</p>
      <Differences items={items} />
      <p class="quiet small">This creates a new version, so you can undo it.</p>
    </>
  );
}
