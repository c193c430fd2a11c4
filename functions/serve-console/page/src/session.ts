/** The API key of this tab: kept until the tab is closed, and nowhere else. */

import { dropAllDrafts } from "./drafts";

const NAME = "waymark.key";
/** What the key was last said to be and to may: a page that is opened again need not wait for it. */
const CALLER = "waymark.caller";

type Listener = () => void;
const listeners = new Set<Listener>();

export function currentKey(): string | null {
  return sessionStorage.getItem(NAME);
}

export function openWithKey(key: string): void {
  notice = null;
  sessionStorage.setItem(NAME, key);
  sessionStorage.removeItem(CALLER);
  for (const listener of listeners) listener();
}

let notice: string | null = null;

/** Why the key is no longer there, if nobody asked for that. */
export function whyForgotten(): string | null {
  return notice;
}

/** Forgets it because somebody wants that, or because of what `why` says: then drafts stay for the next. */
export function forgetKey(why: string | null = null): void {
  notice = why;
  if (why === null) dropAllDrafts();
  sessionStorage.removeItem(NAME);
  sessionStorage.removeItem(CALLER);
  for (const listener of listeners) listener();
}

export function onKeyChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const LINK_FAILED =
  "This link could not be opened: it works once, within 60 seconds. Run `waymark console` for another.";

/**
 * Exchanges the single-use code of a link (`#code=…`) for its key. The code leaves the address first: the
 * browser's history keeps no key, and no code that still works.
 */
export async function takeKeyFromLink(): Promise<"no link" | "same" | "new" | "failed"> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return "no link";
  history.replaceState(history.state, "", location.pathname + location.search);
  const body = JSON.stringify({ code });
  const headers = { "content-type": "application/json" };
  const request = fetch("/v0/console-codes/exchange", { method: "POST", headers, body });
  const response = await request.catch(() => null);
  if (!response?.ok) {
    notice = LINK_FAILED;
    return "failed";
  }
  const { apiKey } = (await response.json()) as { apiKey: string };
  if (apiKey === currentKey()) return "same";
  openWithKey(apiKey);
  return "new";
}

/** Who calls, as far as that was told in this tab before. */
export function rememberedCaller<T>(): T | undefined {
  const told = sessionStorage.getItem(CALLER);
  return told === null ? undefined : (JSON.parse(told) as T);
}

export function rememberCaller(caller: unknown): void {
  if (currentKey()) sessionStorage.setItem(CALLER, JSON.stringify(caller));
}
