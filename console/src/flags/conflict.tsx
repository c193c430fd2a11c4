/** What stands where somebody else was faster: what they did, beside what one typed. */

import { differing } from "../drafts";
import type { Draft } from "./flag";
import { type Difference, differences, type MemberChange, nounOf } from "./history";
import { Differences } from "./history-list";

export interface Met {
  /** Whether it came out when one saved. */
  isRefused: boolean;
  /** The version that the other change made. */
  version: number;
  theirs: Difference[];
  /** What both changed, in words. */
  both: string[];
}

/** What others made of a flag that was known as `base`, and what of it was changed here too. */
export function meet(
  base: Draft,
  typed: Draft,
  theirs: Draft,
  version: number,
): Omit<Met, "isRefused"> {
  const [changed, own] = [differing(base, theirs), differing(base, typed)];
  const members = Object.keys(changed) as (keyof Draft)[];
  const changes = members.map(
    (member): MemberChange => ({
      member,
      from: base[member],
      to: theirs[member],
    }),
  );
  return {
    version,
    theirs: differences(changes),
    both: members.filter((it) => it in own && !same(own[it], changed[it])).map(nounOf),
  };
}

/** Whether two values are written alike. */
export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

export function Conflict({ what, met, isLeft }: { what: string; met: Met; isLeft: boolean }) {
  return (
    <div class="refused" role="alert" tabIndex={-1}>
      <p>
        <b>
          {met.isRefused
            ? `Somebody changed this ${what} in the meantime, so nothing was saved.`
            : `This ${what} was changed since you began to type.`}
        </b>
      </p>
      <p>
        It is version {met.version} now. What was changed is taken over
        {isLeft ? ", and what you typed is still here:" : "; what you typed is among them:"}
      </p>
      <Differences told={met.theirs} />
      {isLeft && (
        <p>
          {met.both.length
            ? `You changed ${met.both.join(" and ")} too: “Save over it” puts yours in its place.`
            : "You changed other things: “Save over it” keeps both."}
        </p>
      )}
    </div>
  );
}
