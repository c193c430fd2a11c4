/** Changes the status of errors, with undo. */

import type { Project } from "../caller";
import { Store } from "../store";
import * as ui from "../ui/status";
import type { Status } from "./filters";
import { patchError } from "./load";

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

/** The number of status changes in this tab. */
export const changeCount = new Store(0);

type ResolvedIn = "next_release" | null;

interface Named extends HasStatus {
  title: string;
  resolvedIn?: ResolvedIn;
}

/** Changes the status of errors. `onChange` gets the failures, and is called again after undo. */
export async function changeStatus<T extends Named>(
  project: Project,
  errors: readonly T[],
  status: Status,
  onChange: (failed: readonly T[]) => void,
  message?: string,
  resolvedIn: ResolvedIn = null,
): Promise<void> {
  const put = async ({ errorId }: T, to: Status, inRelease: ResolvedIn = null) => {
    const at = Date.now();
    await patchError(project, errorId, { status: to, ...(inRelease && { resolvedIn: inRelease }) });
    changes.set(errorId, { status: to, at });
  };
  // A resolved error can still be resolved in another way.
  const targets = errors.filter(
    (it) => it.status !== status || (it.resolvedIn ?? null) !== resolvedIn,
  );
  await ui.changeStatus(targets, {
    status,
    noun: "error",
    message,
    save: (it) => put(it, status, resolvedIn),
    restore: (it) => put(it, it.status, it.resolvedIn),
    onChange: (failed) => {
      changeCount.set(changeCount.value + 1);
      onChange(failed);
    },
  });
}
