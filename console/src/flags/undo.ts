/** Undo of a flag change, if no other change followed. */

import type { Project } from "../caller";
import { showToast, type Undo } from "../ui/toast";
import { describeFlag, type Flag, type FlagPatch, patchIfUnchanged, stateOf } from "./flag";

/**
 * Undoes the change that led to `known`. If another change followed, reports it and offers undo
 * again.
 */
export function createUndo(
  project: Project,
  known: Flag,
  patch: FlagPatch,
  onChange: (flag: Flag) => void,
): Undo {
  return async () => {
    const { flag, isDone } = await patchIfUnchanged(project, known, patch);
    onChange(flag);
    if (!isDone) showToast(changedSince(flag), createUndo(project, flag, patch, onChange));
    return isDone;
  };
}

function changedSince(flag: Flag): string {
  return `Not undone: another user changed ${flag.key} to version ${flag.version}. It is ${stateOf(flag)}. When on: ${describeFlag(flag)}. Undo anyway?`;
}
