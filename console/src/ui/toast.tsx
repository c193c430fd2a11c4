/** Messages about completed actions, with an undo button, for ten seconds. */

import { useState } from "preact/hooks";
import { go } from "../address";
import { ApiError } from "../api/client";
import { describePointer } from "../api/pointer";
import { Store, useStore } from "../store";
import { Button } from "./button";

interface Toast {
  id: number;
  text: string;
  isError: boolean;
  undo?: Undo | undefined;
  /** The subject of the message, for a user who has left its page. */
  link?: { href: string; text: string } | undefined;
}

/** Undoes an action. Resolves to `false` if it did not, and has shown why. */
export type Undo = () => Promise<unknown>;

const SHOWN_MS = 10_000;
const MAX_SHOWN = 4;
/** Newest first. */
const toasts = new Store<Toast[]>([]);
let nextId = 1;

function show(toast: Omit<Toast, "id">): void {
  const id = nextId++;
  // Messages without a button make room for a new one; the others stay for their time.
  const kept = toasts.value.filter((it) => it.undo || it.link);
  toasts.set([{ ...toast, id }, ...kept].slice(0, MAX_SHOWN));
  setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  toasts.set(toasts.value.filter((it) => it.id !== id));
}

export function showToast(text: string, undo?: Undo, link?: Toast["link"]): void {
  show({ text, undo, link, isError: false });
}

export function showErrorToast(error: unknown): void {
  const text = error instanceof ApiError ? errorText(error) : String(error);
  show({ text, isError: true });
}

/** Returns the violations of an error, or its message if there are none. */
export function errorText(error: ApiError): string {
  const details = error.violations.map((it) => `${describePointer(it.pointer)}: ${it.message}`);
  return details.length ? details.join(" ") : error.message;
}

function undo(toast: Toast): void {
  dismiss(toast.id);
  toast.undo?.().then(
    (done) => done !== false && showToast("Undone."),
    (error: unknown) => {
      // Without a response, or if the API was busy, the user can try again.
      const canRetry = error instanceof ApiError && (error.status === 0 || error.status >= 429);
      if (canRetry) show({ text: errorText(error), undo: toast.undo, isError: true });
      else showErrorToast(error);
    },
  );
}

/** Returns whether an action is running, and a function that runs one. Errors show as toasts. */
export function useAction() {
  const [busy, setBusy] = useState(false);
  const run = async (action: () => Promise<unknown>) => {
    setBusy(true);
    await action().catch(showErrorToast);
    setBusy(false);
  };
  return [busy, run] as const;
}

/** Undoes the newest action that can be undone. Returns `false` if there is none. */
export function undoLast(): boolean {
  const last = toasts.value.find((it) => it.undo);
  if (last) undo(last);
  return last !== undefined;
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {useStore(toasts).map((toast) => (
        <div key={toast.id} class={toast.isError ? "toast is-error" : "toast"}>
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
            <Button class="link" aria-describedby={`toast-${toast.id}`} onClick={() => undo(toast)}>
              Undo
            </Button>
          )}
          <Button class="bare" aria-label="Close" onClick={() => dismiss(toast.id)}>
            ×
          </Button>
        </div>
      ))}
    </div>
  );
}
