/** The API key of this tab: kept until the tab is closed, and nowhere else. */

import { dropAllDrafts } from "./drafts";
import { askTabs } from "./tabs";

const NAME = "waymark.key";
/** What the key was last said to be and to may: a page that is opened again need not wait for it. */
const CALLER = "waymark.caller";

type Listener = () => void;
const listeners = new Set<Listener>();
const tellListeners = () => {
  for (const listener of listeners) listener();
};

export function currentKey(): string | null {
  return sessionStorage.getItem(NAME);
}

export function openWithKey(key: string): void {
  notice = null;
  sessionStorage.setItem(NAME, key);
  sessionStorage.removeItem(CALLER);
  tellListeners();
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
  if (offered) decideOffer(true);
  else tellListeners();
}

export function onKeyChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Takes over the key of a link, `#key=…`, which browsers do not send to servers. First removes the key from the
 * address, so that copied links do not contain it. Resolves once the tab has its key, or none.
 */
export async function takeKeyFromAddress(): Promise<void> {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (key) history.replaceState(history.state, "", location.pathname + location.search);
  await takeOver(key);
}

let offered: string | null = null;

/** Returns the key of a link that was opened while another key is in use, until `decideOffer` is called. */
export function offeredKey(): string | null {
  return offered;
}

/**
 * Uses the key of a link, unless this tab or another one has a key. Then the user decides: no link
 * switches organizations silently.
 */
async function takeOver(key: string | null): Promise<void> {
  await askTabs();
  const now = currentKey();
  if (!key || key === now) return;
  if (now === null) return openWithKey(key);
  offered = key;
  tellListeners();
}

export function decideOffer(isTaken: boolean): void {
  const key = offered;
  offered = null;
  if (key && isTaken) {
    openWithKey(key);
    // Nothing that was loaded for the other key stays.
    location.reload();
  } else tellListeners();
}

/** Who calls, as far as that was told in this tab before. */
export function rememberedCaller<T>(): T | undefined {
  const told = sessionStorage.getItem(CALLER);
  return told === null ? undefined : (JSON.parse(told) as T);
}

export function rememberCaller(caller: unknown): void {
  if (currentKey()) sessionStorage.setItem(CALLER, JSON.stringify(caller));
}
