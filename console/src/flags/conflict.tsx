/** The message that another user changed the edited flag or segment. */

import { changedFields } from "../drafts";
import type { Draft } from "./flag";
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
export function findConflict(
  base: Draft,
  edited: Draft,
  theirs: Draft,
  version: number,
): Omit<EditConflict, "isSaveRejected"> {
  const [changed, ours] = [changedFields(base, theirs), changedFields(base, edited)];
  const fields = Object.keys(changed) as (keyof Draft)[];
  const changes = fields.map(
    (member): MemberChange => ({
      member,
      from: base[member],
      to: theirs[member],
    }),
  );
  return {
    version,
    theirs: differences(changes),
    both: fields.filter((it) => it in ours && !same(ours[it], changed[it])).map(nounOf),
  };
}

/** Compares two values by their JSON. */
export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
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
