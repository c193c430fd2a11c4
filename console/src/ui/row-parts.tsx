import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { changed, go, useAddress } from "../address";
import { useKeys } from "../keys";
import { pluralize } from "../time/format";
import { Button } from "./button";
import type { Rows } from "./rows";

interface SelectCellProps {
  title: string;
  selected: boolean;
  /** `toLast` is `true` for a click with Shift. */
  onToggle: (toLast: boolean) => void;
}

/** A table cell with the row's checkbox. */
export function SelectCell(props: SelectCellProps) {
  return (
    <td>
      <input
        type="checkbox"
        aria-label={`Select ${props.title}`}
        checked={props.selected}
        onClick={(event) => props.onToggle(event.shiftKey)}
      />
    </td>
  );
}

/** The head of the cells with checkboxes. */
export function SelectAll({ rows, ids }: { rows: Rows; ids: string[] }) {
  return (
    <th>
      <input
        type="checkbox"
        aria-label="Select all"
        checked={rows.selected.size > 0 && rows.selected.size === ids.length}
        onChange={(event) => (event.currentTarget.checked ? rows.selectAll(ids) : rows.clear())}
      />
    </th>
  );
}

/** A row's name and description. */
export function RowTitle(props: { name: string; description: string | null | undefined }) {
  return (
    <span class="row-title">
      <bdi>{props.name}</bdi>
      {props.description && (
        <small>
          <bdi>{props.description}</bdi>
        </small>
      )}
    </span>
  );
}

interface SortHeadProps {
  name: string;
  own: string;
  /** The current order. The list is in the order `lastSeen` without a parameter in the address. */
  sort: string;
  /** CSS class that hides the column in narrow windows. */
  only?: "" | "wide" | "roomy";
}

/** The head of a column of numbers, which sorts the list. */
export function SortHead({ name, own, sort, only = "" }: SortHeadProps) {
  const address = useAddress();
  const isOn = sort === own;
  return (
    <th class={`number ${only}`} aria-sort={isOn ? "descending" : undefined}>
      <Button onClick={() => go(changed(address, { sort: own === "lastSeen" ? null : own }))}>
        {name}
        {isOn && <span aria-hidden="true"> ↓</span>}
      </Button>
    </th>
  );
}

/** A search within the list, by the address. The key `/` focuses it. */
export function ListSearch({ label, hint = label }: { label: string; hint?: string }) {
  const address = useAddress();
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus() });
  return (
    <input
      ref={field}
      type="search"
      size={28}
      aria-label={label}
      placeholder={`${hint}  /`}
      value={address.query.get("q") ?? ""}
      onInput={(event) => go(changed(address, { q: event.currentTarget.value || null }), "replace")}
    />
  );
}

interface BulkActionsProps {
  rows: Rows;
  noun: string;
  children: ComponentChildren;
}

/** The number of selected rows, and actions on them. */
export function BulkActions({ rows, noun, children }: BulkActionsProps) {
  if (rows.selected.size === 0) return null;
  return (
    <div class="bulk-actions">
      <b>{pluralize(rows.selected.size, noun)} selected</b>
      {children}
      <Button class="link" onClick={rows.clear}>
        Clear selection
      </Button>
    </div>
  );
}

type SettableStatus = "open" | "resolved" | "ignored";

/** The actions of errors and insights. */
export function StatusActions({ onChange }: { onChange: (status: SettableStatus) => void }) {
  return (
    <>
      <Button onClick={() => onChange("resolved")}>Resolve</Button>
      <Button onClick={() => onChange("ignored")}>Ignore</Button>
      <Button onClick={() => onChange("open")}>Reopen</Button>
    </>
  );
}

/** The button that loads the next page of a list. */
export function More({ busy, onClick }: { busy: boolean; onClick: () => unknown }) {
  return (
    <Button class="more" disabled={busy} onClick={() => void onClick()}>
      {busy ? "Loading…" : "Show more"}
    </Button>
  );
}
