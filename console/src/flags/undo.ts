/** The way back from a change of a flag, as long as nobody changed it since. */

import type { Project } from "../caller";
import { showToast, type Undo } from "../ui/toast";
import { doesInWords, type Flag, type FlagPatch, patchAsKnown } from "./flag";

/** Undoes what made `known`. Where somebody changed the flag since, it says so and offers it once more. */
export function undoOf(
  project: Project,
  known: Flag,
  patch: FlagPatch,
  onChange: (flag: Flag) => void,
): Undo {
  return async () => {
    const { flag, isDone } = await patchAsKnown(project, known, patch);
    onChange(flag);
    if (!isDone) showToast(changedSince(flag), undoOf(project, flag, patch, onChange));
    return isDone;
  };
}

function changedSince(flag: Flag): string {
  const state = flag.archivedAt ? "archived" : flag.enabled ? "on" : "off";
  return `Somebody changed ${flag.key} since, so it was not undone. It is ${state} as version ${flag.version}; once on, it serves ${doesInWords(flag)}. Undo it still?`;
}
