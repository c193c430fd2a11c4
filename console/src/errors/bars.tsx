/** Values of a category as bars, with their shares of the events. A click filters by a value. */

import { changed, go, useAddress } from "../address";
import type { Schemas } from "../api/client";
import { pluralize } from "../time/format";
import { Button } from "../ui/button";
import { type Filter, filterParams, type View, withFilter } from "./filters";

interface BarsProps {
  categoryId: string;
  rows: Schemas["ErrorBreakdown"];
  /** The number of events for which a bar has its full width; by default, all of the rows. */
  full?: number;
  view: View;
}

export function Bars({ categoryId, rows, full, view }: BarsProps) {
  const address = useAddress();
  const total = Math.max(
    1,
    rows.reduce((sum, it) => sum + it.errors, 0),
  );
  const filterBy = (value: string | null) => {
    const operator = value === null ? "is_not_set" : "is";
    const filter = { categoryId, operator, value: value ?? "" } as Filter;
    go(changed(address, filterParams(withFilter(view.filters, filter))));
  };
  return (
    <ul class="bars">
      {rows.map(({ value, errors, uniqueErrors, other }) => {
        const counts = [pluralize(errors, "event")];
        if (uniqueErrors > 1) counts.push(pluralize(uniqueErrors, "error"));
        const percent = Math.round((errors / total) * 100);
        const line = (
          <>
            <span>
              <bdi>{other ? "All others" : (value ?? "not set")}</bdi>
            </span>
            <span class="quiet">{percent === 0 ? "<1" : percent}%</span>
          </>
        );
        return (
          <li key={other ? "other" : `=${value}`} title={counts.join(", ")}>
            <i style={{ width: `${(errors / (full ?? total)) * 100}%` }} />
            {other ? (
              <span class="bar">{line}</span>
            ) : (
              <Button class={value === null ? "quiet" : ""} onClick={() => filterBy(value)}>
                {line}
              </Button>
            )}
          </li>
        );
      })}
    </ul>
  );
}
