/** The evidence of session replays at pain points, and the filter by session. */

import type { ComponentChildren } from "preact";
import { changed, hrefOf, Link, useAddress } from "../address";
import { useCan } from "../caller";
import { own } from "../own";
import { pluralize } from "../time/format";
import { keptParams } from "../time/range";
import type { PainPoint } from "./insight";

type EvidenceOf = NonNullable<PainPoint["evidence"]>;

const KINDS: Record<string, string> = {
  dead_click: "Dead click",
  rage_click: "Rage click",
  error_click: "Click before an error",
  feedback: "Feedback",
};

/** Returns the words for evidence: the click and its place, browser, release. */
export function describeEvidence(it: EvidenceOf): string[] {
  const kind = own(KINDS, it.kind) ?? it.kind;
  const place = it.route && `at ${it.route}`;
  const element = it.element && (it.kind === "feedback" ? null : `on ${it.element}`);
  const click = [kind, element, place].filter(Boolean).join(" ");
  return [click, it.browser, it.release].filter((part): part is string => Boolean(part));
}

interface EvidenceProps {
  point: PainPoint;
  /** The types of errors, by ID. */
  errorTypes: ReadonlyMap<string, string>;
}

/** The second line of a pain point. Without evidence, people or applications wrote the excerpt. */
export function Evidence({ point: { evidence, excerpt }, errorTypes }: EvidenceProps) {
  const address = useAddress();
  const canReadErrors = useCan()("errors:read");
  if (!evidence) {
    return (
      <small>
        <bdi>{excerpt}</bdi>
      </small>
    );
  }
  const words = describeEvidence(evidence);
  // Feedback has the user's own words.
  if (evidence.kind === "feedback") words.unshift(`“${excerpt}”`);
  const error = hrefOf("error", { ...keptParams(address), id: evidence.errorId });
  return (
    <small title={evidence.selector ?? ""}>
      {evidence.errorId && canReadErrors && (
        <>
          <Link href={error}>
            Then <bdi>{errorTypes.get(evidence.errorId) || "an error"}</bdi> within 1 s
          </Link>
          {" · "}
        </>
      )}
      <bdi>{words.join(" · ")}</bdi>
    </small>
  );
}

/** A session ID that filters the list by its session. */
export function SessionLink({ id }: { id: string }) {
  const address = useAddress();
  return (
    <Link href={changed(address, { session: id })} title={`Only session ${id}`}>
      <bdi>{id}</bdi>
    </Link>
  );
}

interface SessionFilterProps {
  points: readonly PainPoint[];
  /** The number of pain points that match. */
  count: number;
  session: string;
}

/** Says which session the list shows, and links to all of them. */
export function SessionFilter({ points, count, session }: SessionFilterProps): ComponentChildren {
  const address = useAddress();
  return (
    <p class="nothing" role="status">
      {pluralize(count, "pain point")} of session <bdi class="session-id">{session}</bdi>.{" "}
      <Link href={changed(address, { session: null })}>
        Show all {pluralize(new Set(points.map((it) => it.sessionId)).size, "session")}
      </Link>
    </p>
  );
}
