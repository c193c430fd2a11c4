/** The history of a flag, with a button to restore each version. */

import { useState } from "preact/hooks";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { Part } from "../ui/layout";
import { More, useNextPage } from "../ui/row-parts";
import { Pending } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showToast, useAction } from "../ui/toast";
import type { Flag } from "./flag";
import {
  type Difference,
  describeChange,
  describeFields,
  detailsOf,
  differences,
  type FlagChange,
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
  const [restoring, setRestoring] = useState<number | null>(null);
  const load = (cursor?: string, signal?: AbortSignal) =>
    loadChanges(project, flag.key, { limit: PAGE_SIZE, cursor }, signal);
  const loaded = useLoaded(`changes ${flag.id} ${flag.version}`, (signal) =>
    load(undefined, signal),
  );
  const { busy, loadMore } = useNextPage(loaded, load);
  const changes = loaded.data?.items ?? [];
  const [, run] = useAction();
  const restore = async (version: number) => {
    setRestoring(null);
    const changed = await restoreVersion(project, flag, version);
    onChange(changed);
    showToast(`Restored version ${version} (now version ${changed.version}).`);
  };
  return (
    <Part title="History" class="history">
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
      {loaded.data?.nextCursor && <More busy={busy} onClick={loadMore} />}
      {loaded.data && changes.length === 0 && <p class="quiet">No changes in the last 400 days.</p>}
      {restoring !== null && (
        <Confirm
          title={`Restore version ${restoring}?`}
          action="Restore"
          onClose={() => setRestoring(null)}
          onConfirm={() => void run(() => restore(restoring))}
        >
          <RestorePreview version={restoring} changes={changes} />
        </Confirm>
      )}
    </Part>
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
          <Button
            class="link small"
            aria-label={`Restore version ${change.version}`}
            onClick={onRestore}
          >
            Restore
          </Button>
        )}
      </header>
      <Differences items={detailsOf(change)} />
    </li>
  );
}

/** A flag as text, for users who cannot change it. */
export function FlagText({ flag }: { flag: Flag }) {
  return describeFields(flag).map(({ field, added }) => (
    <Part key={field} title={field}>
      <ul class="flag-text">
        {added.map((line, index) => (
          <li key={index}>
            <bdi>{line}</bdi>
          </li>
        ))}
      </ul>
    </Part>
  ));
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
