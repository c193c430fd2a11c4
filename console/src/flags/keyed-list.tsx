/** The lists of flags and of segments, which are tabs of one page. */

import type { ComponentChildren } from "preact";
import { go, hrefOf, Link, useAddress } from "../address";
import type { Loaded } from "../api/loaded";
import { useCan } from "../caller";
import { useKeys } from "../keys";
import { keptParams } from "../time/range";
import { Button } from "../ui/button";
import { Pending } from "../ui/states";
import { type Column, Table, useList } from "../ui/table";
import { RelativeTime } from "../ui/time";

const TABS = [
  { page: "flags", name: "Flags" },
  { page: "segments", name: "Segments" },
] as const;

interface KeyedListProps<T> {
  noun: "flag" | "segment";
  loaded: Loaded<T[]>;
  /** The items that the list shows. */
  items: readonly T[];
  /** Columns before and after the name. */
  columns: [before: Column<T>[], after: Column<T>[]];
  /** Shown if there are no items. */
  empty: ComponentChildren;
  /** Controls above the list. */
  children?: ComponentChildren;
}

export function KeyedList<T extends { key: string; name: string; updatedAt: string }>(
  props: KeyedListProps<T>,
) {
  const { noun, loaded, items, columns, empty, children } = props;
  const address = useAddress();
  const canWrite = useCan()("flags:write");
  const kept = keptParams(address);
  const hrefOfItem = (key: string) => hrefOf(noun, { ...kept, key });
  const list = useList(
    items,
    (it) => it.key,
    (key) => go(hrefOfItem(key)),
  );
  const create = hrefOf(noun, { ...kept, new: 1 });
  useKeys(canWrite ? { c: () => go(create) } : {});
  return (
    <>
      <div class="page-head">
        <h1 class="tabs">
          {TABS.map((it) => (
            <Link
              key={it.page}
              href={hrefOf(it.page, kept)}
              aria-current={it.page === address.page ? "page" : undefined}
            >
              {it.name}
            </Link>
          ))}
        </h1>
        {canWrite && (
          <Button class="primary" onClick={() => go(create)} title={`New ${noun} (c)`}>
            New {noun}
          </Button>
        )}
      </div>
      {children}
      <Pending of={loaded} rows={7} />
      {loaded.data && items.length === 0 && empty}
      <Table
        list={list}
        columns={[
          ...columns[0],
          [
            noun === "flag" ? "Flag" : "Segment",
            "",
            (it) => (
              <>
                <Link class="title" href={hrefOfItem(it.key)}>
                  <bdi>{it.name}</bdi>
                </Link>
                <small>
                  <code>{it.key}</code>
                </small>
              </>
            ),
          ],
          ...columns[1],
          ["Changed", "number quiet of-time", (it) => <RelativeTime at={it.updatedAt} />],
        ]}
      />
    </>
  );
}
