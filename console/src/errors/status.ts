/** Changes the status of errors, with undo. */

import { useEffect, useState } from "preact/hooks";
import { ApiError, mapConcurrently } from "../api/client";
import type { Project } from "../caller";
import { pluralize } from "../time/format";
import { errorText, showErrorToast, showToast } from "../ui/toast";
import type { Status } from "./filters";
import { patchError } from "./load";

const DONE: Record<Status, string> = { resolved: "Resolved", ignored: "Ignored", open: "Reopened" };

export interface HasStatus {
  errorId: string;
  status: Status;
}

/** Changes made in this tab. They apply to lists loaded before, without loading these again. */
const changes = new Map<string, { status: Status; at: number }>();

export function statusNow({ errorId, status }: HasStatus, loadedAt: number): Status {
  const change = changes.get(errorId);
  return change && change.at >= loadedAt ? change.status : status;
}

const watchers = new Set<() => void>();

/** Renders again after each status change in this tab. Returns the number of changes. */
export function useChanges(): number {
  const [count, set] = useState(0);
  useEffect(() => {
    const watcher = () => set((it) => it + 1);
    watchers.add(watcher);
    return () => {
      watchers.delete(watcher);
    };
  }, []);
  return count;
}

type ResolvedIn = "next_release" | null;

interface Named extends HasStatus {
  title: string;
  resolvedIn?: ResolvedIn;
}

/** Sets the status of each error. Returns the failures. */
async function setStatuses<T extends HasStatus>(
  project: Project,
  errors: readonly T[],
  statusOf: (error: T) => Status,
  resolvedIn: ResolvedIn = null,
): Promise<{ error: T; reason: unknown }[]> {
  const outcomes = await mapConcurrently(errors, 4, async (error) => {
    const at = Date.now();
    const status = statusOf(error);
    try {
      await patchError(project, error.errorId, { status, ...(resolvedIn && { resolvedIn }) });
    } catch (reason) {
      return { error, reason };
    }
    changes.set(error.errorId, { status, at });
    return null;
  });
  for (const watcher of watchers) watcher();
  return outcomes.filter((it) => it !== null);
}

/** Maximum errors named in a message; others are counted. */
const MAX_NAMED = 3;

export function namesOf(errors: readonly { title: string }[]): string {
  const named = errors
    .slice(0, MAX_NAMED)
    .map(({ title }) => `“${title.length > 60 ? `${title.slice(0, 60)}…` : title}”`);
  const more = errors.length - named.length;
  return more > 0 ? `${named.join(", ")} and ${more} more` : named.join(", ");
}

const reasonOf = (reason: unknown) =>
  reason instanceof ApiError ? errorText(reason) : String(reason);

/** Changes the status of one error, on its page. `onChange` is called again after undo. */
export async function changeOneStatus(
  project: Project,
  error: Named,
  status: Status,
  onChange: () => void,
  resolvedIn: ResolvedIn = null,
): Promise<void> {
  const message = resolvedIn ? "Resolved in the next release." : `${DONE[status]}.`;
  await changeStatus(project, [error], status, onChange, message, resolvedIn);
}

/**
 * Changes the status of errors. A failure does not affect the others. `onChange` gets the errors
 * that failed, and is called again after undo.
 */
export async function changeStatus<T extends Named>(
  project: Project,
  errors: readonly T[],
  status: Status,
  onChange: (failed: readonly T[]) => void,
  message?: string,
  resolvedIn: ResolvedIn = null,
): Promise<void> {
  // A resolved error can still be resolved in another way.
  const targets = errors.filter(
    (it) => it.status !== status || (it.resolvedIn ?? null) !== resolvedIn,
  );
  if (!targets.length) return;
  const failures = await setStatuses(project, targets, () => status, resolvedIn);
  const failed = new Set(failures.map((it) => it.error));
  let toUndo = targets.filter((it) => !failed.has(it));
  onChange([...failed]);
  const undo = async () => {
    const undoFailures = await setStatuses(project, toUndo, (it) => it.status);
    toUndo = undoFailures.map((it) => it.error);
    onChange([]);
    const [first] = undoFailures;
    if (!first) return;
    const text = `Couldn’t undo ${namesOf(toUndo)}: ${reasonOf(first.reason)}`;
    throw new ApiError(0, "not_undone", text);
  };
  const [first] = failures;
  if (!first) {
    showToast(message ?? `${DONE[status]} ${pluralize(toUndo.length, "error")}.`, undo);
  } else if (!toUndo.length) showErrorToast(first.reason);
  else {
    const count = `${DONE[status]} ${toUndo.length} of ${pluralize(targets.length, "error")}`;
    showToast(`${count}, but not ${namesOf([...failed])}: ${reasonOf(first.reason)}`, undo);
  }
}
