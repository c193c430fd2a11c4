/** The tab's API key, stored in `sessionStorage` only, until the tab closes. */

import { dropAllDrafts } from "./drafts";
import { requestKeyFromTabs } from "./tabs";

const NAME = "waymark.key";
/** The last response of `GET /v0/me`: a reloaded page does not wait for a new one. */
const CALLER = "waymark.caller";

type Listener = () => void;
const listeners = new Set<Listener>();
const notifyListeners = () => {
  for (const listener of listeners) listener();
};

export function currentKey(): string | null {
  return sessionStorage.getItem(NAME);
}

export function openWithKey(key: string): void {
  notice = null;
  sessionStorage.setItem(NAME, key);
  sessionStorage.removeItem(CALLER);
  notifyListeners();
}

let notice: string | null = null;

/** Returns why the tab lost its key; `null` if the user signed out. */
export function signOutReason(): string | null {
  return notice;
}

/**
 * Removes the key. With a `reason`, drafts stay for the next key; a user who signs out leaves none.
 */
export function signOut(reason: string | null = null): void {
  notice = reason;
  if (reason === null) dropAllDrafts();
  sessionStorage.removeItem(NAME);
  sessionStorage.removeItem(CALLER);
  if (offered) decideOffer(true);
  else notifyListeners();
}

export function onKeyChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const LINK_FAILED =
  "This link could not be opened. Links work once, for 60 seconds. Run `waymark console` for a new one.";

/**
 * Uses the key of a link, `#code=…`; browsers do not send fragments to servers. Removes the
 * single-use code from the address before exchanging it, so the history holds neither a key nor a
 * working code. Resolves when the tab has a key or none can be had: to `false` if the link failed.
 */
export async function takeKeyFromLink(): Promise<boolean> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(history.state, "", location.pathname + location.search);
  const key = code && (await exchange(code));
  await adoptKey(key);
  if (!code || key) return true;
  // Without a key, the sign-in form shows the notice.
  if (!currentKey()) notice = LINK_FAILED;
  return false;
}

/** Exchanges a code for its key. Resolves to `null` if the API rejects it or cannot be reached. */
async function exchange(code: string): Promise<string | null> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ code });
  const request = fetch("/v0/console-codes/exchange", { method: "POST", headers, body });
  const response = await request.catch(() => null);
  return response?.ok ? ((await response.json()) as { apiKey: string }).apiKey : null;
}

let offered: string | null = null;

/**
 * Returns the key of a link that was opened while another key is in use, until `decideOffer` is
 * called.
 */
export function offeredKey(): string | null {
  return offered;
}

/**
 * Uses the key of a link unless this tab or another one has a key. Then the user decides: no link
 * switches organizations silently.
 */
async function adoptKey(key: string | null): Promise<void> {
  await requestKeyFromTabs();
  const current = currentKey();
  if (!key || key === current) return;
  if (current === null) return openWithKey(key);
  offered = key;
  notifyListeners();
}

export function decideOffer(isAccepted: boolean): void {
  const key = offered;
  offered = null;
  if (key && isAccepted) {
    openWithKey(key);
    // Discards all data that was loaded with the previous key.
    location.reload();
  } else notifyListeners();
}

/** Returns the caller as last loaded in this tab. */
export function cachedCaller<T>(): T | undefined {
  const text = sessionStorage.getItem(CALLER);
  return text === null ? undefined : (JSON.parse(text) as T);
}

export function cacheCaller(caller: unknown): void {
  if (currentKey()) sessionStorage.setItem(CALLER, JSON.stringify(caller));
}
