/** The status of errors and insights: actions, keys, and changes with undo. */

import type { ComponentChildren } from "preact";
import { ApiError, mapConcurrently } from "../api/client";
import { useKeys } from "../keys";
import { pluralize } from "../time/format";
import { Button } from "./button";
import { focusRow, targetRows } from "./rows";
import type { List } from "./table";
import { errorText, showErrorToast, showToast } from "./toast";

export type Status = "open" | "resolved" | "ignored";

export const STATUS_NAMES = {
  open: "Open",
  resolved: "Resolved",
  ignored: "Ignored",
  merged: "Merged",
};

const DONE: Record<Status, string> = { resolved: "Resolved", ignored: "Ignored", open: "Reopened" };

export const doneText = (status: Status) => `${DONE[status]}.`;

interface StatusActionsProps {
  /** The status of a single item, whose own button is off. */
  current?: string;
  disabled?: boolean;
  onChange: (status: Status) => void;
  /** Other ways to resolve. */
  children?: ComponentChildren;
}

export function StatusActions({ current, disabled, onChange, children }: StatusActionsProps) {
  return (
    <>
      <Button
        class={current === "open" ? "primary" : ""}
        disabled={disabled || current === "resolved"}
        onClick={() => onChange("resolved")}
        title="Resolve (e)"
      >
        Resolve
      </Button>
      {children}
      <Button
        disabled={disabled || current === "ignored"}
        onClick={() => onChange("ignored")}
        title="Ignore (i)"
      >
        Ignore
      </Button>
      <Button
        disabled={disabled || current === "open"}
        onClick={() => onChange("open")}
        title="Reopen (o)"
      >
        Reopen
      </Button>
    </>
  );
}

export function useStatusKeys(isOn: boolean, change: (status: Status) => void): void {
  const keys = { e: () => change("resolved"), i: () => change("ignored"), o: () => change("open") };
  useKeys(isOn ? keys : {});
}

/** Returns a function that changes the selected rows, or else the current one. Keys call it, too. */
export function useBulkStatus<T>(
  { items, ids, rows }: List<T>,
  canWrite: boolean,
  save: (items: T[], status: Status) => Promise<void>,
): (status: Status) => void {
  const change = async (status: Status) => {
    const chosen = new Set(targetRows(rows, ids));
    const first = ids.findIndex((id) => chosen.has(id));
    rows.clear();
    await save(
      items.filter((_, index) => chosen.has(ids[index] ?? "")),
      status,
    );
    // The focus moves to the row that follows, instead of getting lost with a button.
    requestAnimationFrame(() => {
      const isLost = !document.activeElement || document.activeElement === document.body;
      if (isLost) focusRow(Math.max(0, Math.min(first, ids.length - chosen.size - 1)));
    });
  };
  useStatusKeys(canWrite, (status) => void change(status));
  return (status) => void change(status);
}

/** Maximum items named in a message; others are counted. */
const MAX_NAMED = 3;

export function namesOf(items: readonly { title: string }[]): string {
  const named = items
    .slice(0, MAX_NAMED)
    .map(({ title }) => `“${title.length > 60 ? `${title.slice(0, 60)}…` : title}”`);
  const more = items.length - named.length;
  return more > 0 ? `${named.join(", ")} and ${more} more` : named.join(", ");
}

const reasonOf = (reason: unknown) =>
  reason instanceof ApiError ? errorText(reason) : String(reason);

interface StatusChange<T> {
  status: Status;
  noun: string;
  /** The message after success. By default, it has the number of items. */
  message?: string | undefined;
  save: (item: T) => Promise<unknown>;
  /** Saves the status that the item had. */
  restore: (item: T) => Promise<unknown>;
  /** Called with the items that failed, and again after undo. */
  onChange: (failed: readonly T[]) => void;
}

/** Runs a task for each item. Returns the failures. */
async function failuresOf<T>(items: readonly T[], task: (item: T) => Promise<unknown>) {
  const outcomes = await mapConcurrently(items, 4, (item) =>
    task(item).then(
      () => null,
      (reason: unknown) => ({ item, reason }),
    ),
  );
  return outcomes.filter((it) => it !== null);
}

/** Changes the status of items. A failure does not affect the others. */
export async function changeStatus<T extends { title: string }>(
  items: readonly T[],
  { status, noun, message, save, restore, onChange }: StatusChange<T>,
): Promise<void> {
  if (!items.length) return;
  const failures = await failuresOf(items, save);
  const failed = failures.map((it) => it.item);
  let toUndo = items.filter((it) => !failed.includes(it));
  onChange(failed);
  const undo = async () => {
    const undoFailures = await failuresOf(toUndo, restore);
    toUndo = undoFailures.map((it) => it.item);
    onChange([]);
    const [first] = undoFailures;
    if (!first) return;
    const text = `Couldn’t undo ${namesOf(toUndo)}: ${reasonOf(first.reason)}`;
    throw new ApiError(0, "not_undone", text);
  };
  const [first] = failures;
  if (!first) {
    showToast(message ?? `${DONE[status]} ${pluralize(toUndo.length, noun)}.`, undo);
  } else if (!toUndo.length) showErrorToast(first.reason);
  else {
    const count = `${DONE[status]} ${toUndo.length} of ${pluralize(items.length, noun)}`;
    showToast(`${count}, but not ${namesOf(failed)}: ${reasonOf(first.reason)}`, undo);
  }
}
