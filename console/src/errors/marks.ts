/** Loads the marks of a time range: event markers, flag changes and releases. */

import { api } from "../api/client";
import type { Project } from "../caller";
import type { Mark, Marks } from "../plot/marks";
import { capitalize } from "../time/format";
import type { Range } from "../time/range";

const KINDS = { marker: "marker", flag_change: "flag", release: "release" } as const;

/** The API's limit for one project. */
const MAX_MARKS = 100;

/** Loads the newest marks, one request per project. */
export async function loadMarks(
  projects: readonly Project[],
  range: Pick<Range, "from" | "to">,
  signal: AbortSignal,
): Promise<Marks> {
  const limit = Math.max(10, Math.floor(MAX_MARKS / projects.length));
  const all = await Promise.all(
    projects.map(async (project) => {
      const { items, leftOut } = await api.GET("/v0/projects/{idOrSlug}/activity", {
        params: {
          path: { idOrSlug: project.slug },
          query: { from: Math.floor(range.from), to: Math.ceil(range.to), limit },
        },
        signal,
      });
      const marks = items.map((it): Mark => {
        const by = it.user ? `${it.description}, by ${it.user}` : it.description;
        return {
          id: `${project.id} ${it.id}`,
          // The API can add kinds.
          kind: KINDS[it.kind] ?? "marker",
          at: Date.parse(it.at),
          name: projects.length > 1 ? `${project.name}: ${it.name}` : it.name,
          description: it.kind === "release" ? "First seen" : capitalize(by),
        };
      });
      return { marks, leftOut };
    }),
  );
  return {
    marks: all.flatMap((it) => it.marks).sort((one, other) => one.at - other.at),
    more: all.reduce(
      (sum, { leftOut }) => sum + leftOut.markers + leftOut.flagChanges + leftOut.releases,
      0,
    ),
    isExact: all.every((it) => it.leftOut.isExact),
  };
}
