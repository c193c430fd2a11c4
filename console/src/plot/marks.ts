/** What happened at a moment, as a line on a plot. */

export interface Mark {
  id: string;
  kind: "marker" | "flag";
  at: number;
  name: string;
  description: string;
}

export interface MarkGroup {
  /** Where the line stands. */
  x: number;
  /** How much room its label has until the next line, or the end. */
  room: number;
  /** At least one, the oldest first. */
  marks: Mark[];
}

/** How close two lines may come before they are one. */
const CLOSEST = 14;

const CARD_WIDTH = 260;
const CARD_GAP = 4;

/** Puts marks that would cover each other into one line, and gives each the room up to the next. */
export function layOut(marks: Mark[], x: (at: number) => number, width: number): MarkGroup[] {
  const groups: MarkGroup[] = [];
  for (const mark of [...marks].sort((one, other) => one.at - other.at)) {
    const at = x(mark.at);
    const last = groups.at(-1);
    if (last && at - last.x < CLOSEST) last.marks.push(mark);
    else groups.push({ x: at, room: 0, marks: [mark] });
  }
  groups.forEach((group, index) => {
    group.room = (groups[index + 1]?.x ?? width) - group.x;
  });
  return groups;
}

/**
 * Where the card of a line at `x` begins, as far from the line as it must be to stay between the edges, and
 * how wide it is. It stands right of the line, or left of one near the end.
 */
export function placeCard(
  x: number,
  edges: { left: number; right: number },
  isBefore: boolean,
): { left: number; width: number } {
  const width = Math.min(CARD_WIDTH, edges.right - edges.left);
  const wanted = isBefore ? x - width - CARD_GAP : x + CARD_GAP;
  const left = Math.max(edges.left, Math.min(wanted, edges.right - width));
  return { left: left - x, width };
}
