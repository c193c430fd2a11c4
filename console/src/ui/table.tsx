/** Tables: columns, sorting, and rows with keyboard navigation and selection. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { changed, go, useAddress } from "../address";
import { Button } from "./button";
import { type Rows, rowProps, useRows } from "./rows";
import { type RowWindow, useRowWindow, WindowedRows } from "./window";

/** A column. Its classes set its width, its alignment, and the windows that show it. */
export type Column<T> = [
  name: ComponentChildren,
  classes: string,
  cell: (item: T) => ComponentChildren,
  /** The order of the list that the heading sets. */
  sort?: string,
];

/** The heading of a column of buttons. */
export const ACTIONS = <span class="hidden">Actions</span>;

/** A list whose rows have keyboard navigation. */
export interface List<T> {
  items: readonly T[];
  ids: string[];
  rows: Rows;
  near: RowWindow;
}

const ROW_HEIGHT = 48;

/** `open` is called for a row that the user clicks, or opens by key. */
export function useList<T>(
  items: readonly T[],
  idOf: (item: T) => string,
  open: (id: string) => void = () => {},
): List<T> {
  const ids = useMemo(() => items.map(idOf), [items]);
  const near = useRowWindow(items.length, ROW_HEIGHT);
  return { items, ids, rows: useRows(ids, open, near.reveal), near };
}

interface FrameProps<T> {
  /** `false` omits a column. */
  columns: (Column<T> | false)[];
  class?: string;
  /** `true` while the rows of another list are shown and the current one loads. */
  stale?: boolean;
  /** The current order. The list is in the order `lastSeen` without a parameter in the address. */
  sort?: string | undefined;
}

interface TableProps<T> extends FrameProps<T> {
  list: List<T>;
  /** The name of a row's checkbox. Without it, rows cannot be selected. */
  nameOf?: ((item: T) => string) | false;
}

/** The rows of a list near the viewport. Hidden if the list is empty. */
export function Table<T>({ list, nameOf, ...frame }: TableProps<T>) {
  const { items, ids, rows, near } = list;
  const selectAll = (
    <input
      type="checkbox"
      aria-label="Select all"
      checked={rows.selected.size > 0 && rows.selected.size === ids.length}
      onChange={(event) => (event.currentTarget.checked ? rows.selectAll(ids) : rows.clear())}
    />
  );
  const columns = [nameOf && ([selectAll, "pick", () => null] as Column<T>), ...frame.columns];
  if (items.length === 0) return null;
  return (
    <Frame
      {...frame}
      columns={columns.filter((it) => it !== undefined)}
      rowCount={items.length + 1}
    >
      <WindowedRows items={items} rows={near}>
        {(it, index) => {
          const id = ids[index] ?? "";
          return (
            <tr key={id} {...rowProps(rows, index)}>
              {nameOf && (
                <td>
                  <input
                    type="checkbox"
                    aria-label={`Select ${nameOf(it)}`}
                    checked={rows.selected.has(id)}
                    onClick={(event) => rows.toggle(id, event.shiftKey)}
                  />
                </td>
              )}
              <Cells columns={frame.columns} item={it} />
            </tr>
          );
        }}
      </WindowedRows>
    </Frame>
  );
}

interface PlainTableProps<T> extends FrameProps<T> {
  items: readonly T[] | undefined;
  idOf: (item: T) => string;
}

/** A table without keyboard navigation, whose texts are not cut off. Hidden without items. */
export function PlainTable<T>({ items, idOf, ...frame }: PlainTableProps<T>) {
  if (!items?.length) return null;
  return (
    <Frame {...frame} class="people-table">
      <tbody>
        {items.map((it) => (
          <tr key={idOf(it)}>
            <Cells columns={frame.columns} item={it} />
          </tr>
        ))}
      </tbody>
    </Frame>
  );
}

function Cells<T>({ columns, item }: { columns: FrameProps<T>["columns"]; item: T }) {
  return (
    <>
      {columns.map((it, index) =>
        it ? (
          <td key={index} class={it[1]}>
            {it[2](item)}
          </td>
        ) : null,
      )}
    </>
  );
}

interface HeadedProps<T> extends FrameProps<T> {
  rowCount?: number;
  children: ComponentChildren;
}

function Frame<T>(props: HeadedProps<T>) {
  const { class: more = "", stale = false, sort, rowCount, children } = props;
  const address = useAddress();
  const columns = props.columns.filter((it) => it !== false);
  return (
    <div class={stale ? "table-scroll stale" : "table-scroll"}>
      <table class={`table ${more}`} aria-rowcount={rowCount}>
        <colgroup>
          {columns.map(([, classes], index) => (
            <col key={index} class={classes} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map(([name, classes, , own], index) => (
              <th
                key={index}
                class={classes}
                aria-sort={own && own === sort ? "descending" : undefined}
              >
                {own ? (
                  <Button
                    onClick={() => go(changed(address, { sort: own === "lastSeen" ? null : own }))}
                  >
                    {name}
                    {own === sort && <span aria-hidden="true"> ↓</span>}
                  </Button>
                ) : (
                  name
                )}
              </th>
            ))}
          </tr>
        </thead>
        {children}
      </table>
    </div>
  );
}
