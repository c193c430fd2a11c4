/** What was just done, and for ten seconds the way back. */

import { useEffect, useState } from "preact/hooks";
import { Refusal } from "../api/client";

interface Toast {
  id: number;
  text: string;
  wrong: boolean;
  undo?: Undo | undefined;
}

/** The way back. With `false` it was not gone, and why was told already. */
export type Undo = () => Promise<unknown>;

const SHOWN_MS = 10_000;
/** How many are shown at once, and can be undone. */
const MOST_SHOWN = 4;
/** The newest first. */
let toasts: Toast[] = [];
let nextId = 1;
const watchers = new Set<(toasts: Toast[]) => void>();

function put(next: Toast[]): void {
  toasts = next;
  for (const watcher of watchers) watcher(toasts);
}

function show(toast: Omit<Toast, "id">): void {
  const id = nextId++;
  // What only said something makes room; what can be undone stays for its time.
  put([{ ...toast, id }, ...toasts.filter((it) => it.undo)].slice(0, MOST_SHOWN));
  setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  put(toasts.filter((it) => it.id !== id));
}

export function tell(text: string, undo?: Undo): void {
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

function undo(toast: Toast): void {
  dismiss(toast.id);
  toast.undo?.().then(
    (done) => done !== false && tell("Undone."),
    (error: unknown) => {
      // Nobody knows whether it was done; the same way back can be tried again.
      const mayHelp = error instanceof Refusal && (error.status === 0 || error.status >= 429);
      if (mayHelp) show({ text: wordsOf(error), undo: toast.undo, wrong: true });
      else tellRefusal(error);
    },
  );
}

/** Undoes the last thing, if it can be. */
export function undoLast(): boolean {
  const last = toasts.find((it) => it.undo);
  if (last) undo(last);
  return last !== undefined;
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
          <span id={`toast-${toast.id}`}>{toast.text}</span>
          {toast.undo && (
            <button
              type="button"
              class="link"
              aria-describedby={`toast-${toast.id}`}
              onClick={() => undo(toast)}
            >
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
