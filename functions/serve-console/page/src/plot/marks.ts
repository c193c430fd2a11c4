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
