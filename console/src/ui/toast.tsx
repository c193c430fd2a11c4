/** What was just done, and for ten seconds the way back. */

import { useEffect, useState } from "preact/hooks";
import { go } from "../address";
import { ApiError } from "../api/client";

interface Toast {
  id: number;
  text: string;
  wrong: boolean;
  undo?: Undo | undefined;
  /** What it is about, for whoever is elsewhere by now. */
  link?: { href: string; text: string } | undefined;
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
  // What only said something makes room; what leads somewhere stays for its time.
  put([{ ...toast, id }, ...toasts.filter((it) => it.undo || it.link)].slice(0, MOST_SHOWN));
  setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  put(toasts.filter((it) => it.id !== id));
}

export function showToast(text: string, undo?: Undo, link?: Toast["link"]): void {
  show({ text, undo, link, wrong: false });
}

export function showErrorToast(error: unknown): void {
  const text = error instanceof ApiError ? wordsOf(error) : String(error);
  show({ text, wrong: true });
}

/** A refusal in words: the violations, where there are any. */
export function wordsOf(refusal: ApiError): string {
  const details = refusal.violations.map((it) => `${it.pointer || "body"}: ${it.message}`);
  return details.length ? details.join(" ") : refusal.message;
}

function undo(toast: Toast): void {
  dismiss(toast.id);
  toast.undo?.().then(
    (done) => done !== false && showToast("Undone."),
    (error: unknown) => {
      // Nobody knows whether it was done; the same way back can be tried again.
      const mayHelp = error instanceof ApiError && (error.status === 0 || error.status >= 429);
      if (mayHelp) show({ text: wordsOf(error), undo: toast.undo, wrong: true });
      else showErrorToast(error);
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
          {toast.link && (
            <a
              href={toast.link.href}
              onClick={(event) => {
                if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
                event.preventDefault();
                dismiss(toast.id);
                if (toast.link) go(toast.link.href);
              }}
            >
              {toast.link.text}
            </a>
          )}
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
