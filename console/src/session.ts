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
export function signOutReason(): string | null {
  return notice;
}

/** Forgets it because somebody wants that, or because of what `why` says: then drafts stay for the next. */
export function signOut(why: string | null = null): void {
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

export const LINK_FAILED =
  "This link could not be opened: it works once, within 60 seconds. Run `waymark console` for another.";

/**
 * Takes over the key of a link, `#code=…`, which browsers do not send to servers. First removes the
 * single-use code from the address, then exchanges it: the browser's history keeps no key and no code that still
 * works. Resolves once the tab has its key, or none: to false if the link failed.
 */
export async function takeKeyFromLink(): Promise<boolean> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(history.state, "", location.pathname + location.search);
  const key = code && (await exchange(code));
  await takeOver(key);
  if (!code || key) return true;
  // Without a key, the form for one shows the notice.
  if (!currentKey()) notice = LINK_FAILED;
  return false;
}

/** Exchanges a code for its key. Resolves to null if the API refuses it or is out of reach. */
async function exchange(code: string): Promise<string | null> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ code });
  const request = fetch("/v0/console-codes/exchange", { method: "POST", headers, body });
  const response = await request.catch(() => null);
  return response?.ok ? ((await response.json()) as { apiKey: string }).apiKey : null;
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
