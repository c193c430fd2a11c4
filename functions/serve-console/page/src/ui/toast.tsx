/** What was just done, and for ten seconds the way back. */

import { useEffect, useState } from "preact/hooks";
import { Refusal } from "../api/client";

interface Toast {
  id: number;
  text: string;
  wrong: boolean;
  undo?: (() => Promise<void>) | undefined;
}

const SHOWN_MS = 10_000;
let toasts: Toast[] = [];
let nextId = 1;
const watchers = new Set<(toasts: Toast[]) => void>();

function put(next: Toast[]): void {
  toasts = next;
  for (const watcher of watchers) watcher(toasts);
}

function show(toast: Omit<Toast, "id">): void {
  const id = nextId++;
  // One at a time: what came before is no longer what one would undo.
  put([{ ...toast, id }]);
  setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  put(toasts.filter((it) => it.id !== id));
}

export function tell(text: string, undo?: () => Promise<void>): void {
  show({ text, undo, wrong: false });
}

export function tellRefusal(error: unknown): void {
  const text = error instanceof Refusal ? wordsOf(error) : String(error);
  show({ text, wrong: true });
}

/** A refusal in words: the violations, where there are any. */
export function wordsOf(refusal: Refusal): string {
  const details = refusal.violations.map((it) => `${it.pointer || "body"}: ${it.message}`);
  return details.length ? details.join(" ") : refusal.message;
}

/** Undoes the last thing, if it can be. */
export function undoLast(): boolean {
  const last = toasts.find((it) => it.undo);
  if (!last?.undo) return false;
  dismiss(last.id);
  last.undo().then(() => tell("Undone."), tellRefusal);
  return true;
}

export function Toasts() {
  const [shown, set] = useState(toasts);
  useEffect(() => {
    watchers.add(set);
    return () => {
      watchers.delete(set);
    };
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} class={toast.wrong ? "toast wrong" : "toast"}>
          <span>{toast.text}</span>
          {toast.undo && (
            <button type="button" class="link" onClick={undoLast}>
              Undo
            </button>
          )}
          <button type="button" class="bare" aria-label="Close" onClick={() => dismiss(toast.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
