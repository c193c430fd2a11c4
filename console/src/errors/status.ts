/** Changes the status of errors at once, with the way back. */

import { useEffect, useState } from "preact/hooks";
import { ApiError, inTurn } from "../api/client";
import type { Project } from "../caller";
import { counted } from "../time/format";
import { showErrorToast, showToast, wordsOf } from "../ui/toast";
import type { Status } from "./filters";
import { setStatus } from "./load";

const DONE: Record<Status, string> = { resolved: "Resolved", ignored: "Ignored", open: "Reopened" };

export interface HasStatus {
  errorId: string;
  status: Status;
}

/** What was changed here since a list was loaded, which need not be loaded anew for it. */
const changes = new Map<string, { status: Status; at: number }>();

export function statusNow({ errorId, status }: HasStatus, loadedAt: number): Status {
  const change = changes.get(errorId);
  return change && change.at >= loadedAt ? change.status : status;
}

const watchers = new Set<() => void>();

/** Draws again whenever a status was changed here; answers how often that was. */
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

interface Named extends HasStatus {
  title: string;
}

/** Changes each to what it is to become. Answers those that it went wrong for, and why. */
async function put<T extends HasStatus>(
  project: Project,
  errors: readonly T[],
  statusOf: (error: T) => Status,
): Promise<{ error: T; reason: unknown }[]> {
  const outcomes = await inTurn(errors, 4, async (error) => {
    const at = Date.now();
    const status = statusOf(error);
    try {
      await setStatus(project, error.errorId, status);
    } catch (reason) {
      return { error, reason };
    }
    changes.set(error.errorId, { status, at });
    return null;
  });
  for (const watcher of watchers) watcher();
  return outcomes.filter((it) => it !== null);
}

/** At most so many are named, and counted beyond. */
const MOST_NAMED = 3;

export function namesOf(errors: readonly { title: string }[]): string {
  const named = errors
    .slice(0, MOST_NAMED)
    .map(({ title }) => `“${title.length > 60 ? `${title.slice(0, 60)}…` : title}”`);
  const more = errors.length - named.length;
  return more > 0 ? `${named.join(", ")} and ${more} more` : named.join(", ");
}

const reasonOf = (reason: unknown) =>
  reason instanceof ApiError ? wordsOf(reason) : String(reason);

/**
 * Changes the status of all that it can. `done` is told of those that it went wrong for, and is called again
 * where it is undone.
 */
export async function changeStatus<T extends Named>(
  project: Project,
  errors: readonly T[],
  status: Status,
  done: (failed: readonly T[]) => void,
): Promise<void> {
  const wanted = errors.filter((it) => it.status !== status);
  if (!wanted.length) return;
  const failed = await put(project, wanted, () => status);
  const without = new Set(failed.map((it) => it.error));
  let left = wanted.filter((it) => !without.has(it));
  done([...without]);
  const undo = async () => {
    const stuck = await put(project, left, (it) => it.status);
    left = stuck.map((it) => it.error);
    done([]);
    const [first] = stuck;
    if (!first) return;
    const why = `${namesOf(left)} could not be changed back: ${reasonOf(first.reason)}`;
    throw new ApiError(0, "not_undone", why);
  };
  const [first] = failed;
  if (!first) showToast(`${DONE[status]} ${counted(left.length, "error")}.`, undo);
  else if (!left.length) showErrorToast(first.reason);
  else {
    const all = `${DONE[status]} ${left.length} of ${counted(wanted.length, "error")}`;
    showToast(`${all}, but not ${namesOf([...without])}: ${reasonOf(first.reason)}`, undo);
  }
}
