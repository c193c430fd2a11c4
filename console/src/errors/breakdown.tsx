/** Events by the values of one category. A click on a value filters by it. */

import { changed, go, useAddress } from "../address";
import { api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import type { Project } from "../caller";
import type { Range } from "../time/range";
import { Pending } from "../ui/states";
import { Bars } from "./bars";
import { type Category, queryOf, type View, viewKey } from "./filters";
import { keyOf } from "./projects";

type By = Schemas["ErrorBreakdownQuery"]["by"];
const DEFAULT: By = "release";

interface BreakdownProps {
  projects: readonly Project[];
  view: View;
  range: Range;
  categories: Category[] | undefined;
}

export function Breakdown({ projects, view, range, categories }: BreakdownProps) {
  const address = useAddress();
  const by = (address.query.get("by") as By | null) ?? DEFAULT;
  const key = `breakdown ${by} ${keyOf(projects)} ${viewKey(view, range)}`;
  const loaded = useLoaded(key, (signal) =>
    api.POST("/v0/errors/breakdown/query", {
      body: { projectIds: projects.map((it) => it.slug), by, limit: 10, ...queryOf(view, range) },
      signal,
    }),
  );
  const rows = loaded.data ?? [];
  const peak = Math.max(1, ...rows.map((it) => it.errors));
  return (
    <section class={loaded.loading && loaded.data ? "breakdown stale" : "breakdown"}>
      <header class="aside-head">
        <h2>Group by</h2>
        <select
          aria-label="Group by"
          value={by}
          onChange={(event) => go(changed(address, { by: event.currentTarget.value }), "replace")}
        >
          {(categories ?? [{ id: by, label: by }]).map((it) => (
            <option key={it.id} value={it.id}>
              {it.label}
            </option>
          ))}
        </select>
      </header>
      <Pending small of={loaded} rows={5} />
      {loaded.data && rows.length === 0 && <p class="quiet nothing">Nothing to break down.</p>}
      <Bars categoryId={by} rows={rows} full={peak} view={view} />
    </section>
  );
}
