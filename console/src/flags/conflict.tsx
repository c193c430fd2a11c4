/** The message that another user changed the edited flag or segment. */

import { changedFields } from "../drafts";
import { type Difference, differences, type MemberChange, nounOf } from "./history";
import { Differences } from "./history-list";

export interface EditConflict {
  /** `true` if a save was rejected, `false` if the draft was found to be outdated. */
  isSaveRejected: boolean;
  /** The version after the other change. */
  version: number;
  theirs: Difference[];
  /** Names of the fields that both changed. */
  both: string[];
}

/** Compares the changes by others, from `base` to `theirs`, with the draft. */
export function findConflict<D extends object>(
  base: D,
  edited: D,
  theirs: D,
  version: number,
): Omit<EditConflict, "isSaveRejected"> {
  const [changed, ours] = [changedFields(base, theirs), changedFields(base, edited)];
  // Drafts of flags and segments have described members only.
  const members = Object.keys(changed) as (keyof D & MemberChange["member"])[];
  const isBoth = (it: keyof D) =>
    it in ours && JSON.stringify(ours[it]) !== JSON.stringify(changed[it]);
  return {
    version,
    theirs: differences(members.map((it) => ({ member: it, from: base[it], to: theirs[it] }))),
    both: members.filter(isBoth).map(nounOf),
  };
}

interface ConflictProps {
  /** Name of the resource type. */
  noun: string;
  conflict: EditConflict;
  /** `true` if the draft still has unsaved changes. */
  isChanged: boolean;
}

export function Conflict({ noun, conflict, isChanged }: ConflictProps) {
  const { isSaveRejected, version, theirs, both } = conflict;
  return (
    <div class="error-box" role="alert" tabIndex={-1}>
      <p>
        <b>
          {isSaveRejected
            ? `Not saved: another user changed this ${noun}.`
            : `Another user changed this ${noun} while you were editing.`}
        </b>
      </p>
      <p>
        It is now version {version}. The form includes their changes
        {isChanged ? " and your unsaved ones:" : ", and yours are among them:"}
      </p>
      <Differences items={theirs} />
      {isChanged && (
        <p>
          {both.length
            ? `You both changed ${both.join(" and ")}. “Overwrite” saves your version.`
            : "You changed other fields. “Overwrite” keeps both changes."}
        </p>
      )}
    </div>
  );
}
