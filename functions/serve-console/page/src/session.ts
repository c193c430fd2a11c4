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

/**
 * The first visit may bring the key as `#key=…`, which browsers send to nobody. It is taken out of the
 * address before anything else happens, so that it is in no link that is copied from there. Answers whether
 * it is another one than before.
 */
export function takeKeyFromAddress(): boolean {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return false;
  const isOther = key !== currentKey();
  if (isOther) sessionStorage.removeItem(CALLER);
  sessionStorage.setItem(NAME, key);
  history.replaceState(history.state, "", location.pathname + location.search);
  return isOther;
}

/** Who calls, as far as that was told in this tab before. */
export function rememberedCaller<T>(): T | undefined {
  const told = sessionStorage.getItem(CALLER);
  return told === null ? undefined : (JSON.parse(told) as T);
}

export function rememberCaller(caller: unknown): void {
  if (currentKey()) sessionStorage.setItem(CALLER, JSON.stringify(caller));
}
