import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { changed, go, useAddress } from "../address";
import type { Loaded } from "../api/loaded";
import type { Page } from "../api/pages";
import { useKeys } from "../keys";
import { pluralize } from "../time/format";
import { Button } from "./button";
import type { Rows } from "./rows";
import { useAction } from "./toast";

/** A row's name and description. */
export function RowTitle(props: { name: string; description: ComponentChildren }) {
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

/** The button that loads the next page of a list. */
export function More({ busy, onClick }: { busy: boolean; onClick: () => unknown }) {
  return (
    <Button class="more" disabled={busy} onClick={() => void onClick()}>
      {busy ? "Loading…" : "Show more"}
    </Button>
  );
}

/** Returns a function that appends the next page, and whether it is loading. */
export function useNextPage<P extends Page<unknown, unknown>>(
  loaded: Loaded<P>,
  load: (cursor: NonNullable<P["nextCursor"]>) => Promise<P>,
): { busy: boolean; loadMore: () => void } {
  const [busy, run] = useAction();
  const cursor = loaded.loading ? null : loaded.data?.nextCursor;
  const append = async (after: NonNullable<P["nextCursor"]>) => {
    const page = await load(after);
    loaded.set((was) => ({ ...page, items: [...was.items, ...page.items] }));
  };
  return { busy, loadMore: () => cursor && !busy && void run(() => append(cursor)) };
}
