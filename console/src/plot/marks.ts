/** Vertical lines on a plot: event markers, flag changes and releases. */

export interface Mark {
  id: string;
  kind: "marker" | "flag" | "release";
  at: number;
  name: string;
  description: string;
}

/** The newest marks of a range. */
export interface Marks {
  /** Oldest first. */
  marks: Mark[];
  /** Number of older marks that are not loaded. */
  more: number;
  /** `false` if `more` is a lower bound. */
  isExact: boolean;
}

export interface MarkGroup {
  /** Position of the line, in pixels. */
  x: number;
  /** Width available to the label, up to the next line or the end. */
  width: number;
  /** At least one mark, oldest first. */
  marks: Mark[];
}

/** Lines closer than this are grouped into one, in pixels. */
const MIN_GAP = 14;

const CARD_WIDTH = 260;
const CARD_GAP = 4;

/** Groups marks whose lines would overlap. */
export function layOut(marks: Mark[], x: (at: number) => number, width: number): MarkGroup[] {
  const groups: MarkGroup[] = [];
  for (const mark of [...marks].sort((one, other) => one.at - other.at)) {
    const at = x(mark.at);
    const last = groups.at(-1);
    if (last && at - last.x < MIN_GAP) last.marks.push(mark);
    else groups.push({ x: at, width: 0, marks: [mark] });
  }
  groups.forEach((group, index) => {
    group.width = (groups[index + 1]?.x ?? width) - group.x;
  });
  return groups;
}

/**
 * Places the card of a line at `x`: on the right, or on the left if `isLeft`, moved to stay between
 * the edges. `left` is relative to the line.
 */
export function placeCard(
  x: number,
  edges: { left: number; right: number },
  isLeft: boolean,
): { left: number; width: number } {
  const width = Math.min(CARD_WIDTH, edges.right - edges.left);
  const wanted = isLeft ? x - width - CARD_GAP : x + CARD_GAP;
  const left = Math.max(edges.left, Math.min(wanted, edges.right - width));
  return { left: left - x, width };
}
