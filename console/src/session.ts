/**
 * The tab's credential: an API key, stored in `sessionStorage` until the tab closes, or the session
 * of the browser's cookie, which scripts cannot read.
 */

import { dropAllDrafts } from "./drafts";
import { own } from "./own";
import { Store } from "./store";
import { requestKeyFromTabs } from "./tabs";

const NAME = "waymark.key";
/** The last response of `GET /v0/me`: a reloaded page does not wait for a new one. */
const CALLER = "waymark.caller";
/** The credential of a tab that uses the cookie. */
const SESSION = "session";
/**
 * The organization and user of the cookie's session, in `localStorage`. Not a credential: it
 * notifies other tabs when the user signs in, switches or signs out.
 */
const SIGNED_IN = "waymark.session";
/** The value of `SIGNED_IN` after the user signed out. */
const SIGNED_OUT = "";
/** The API accepts the cookie for changes only from its own pages, which can send this header. */
export const CONSOLE_HEADER = { "x-waymark-console": "1" };

interface SessionState {
  /** Increases when the session switches, so that nothing of the previous organization stays. */
  generation: number;
  /** The reason for the lost credential, for the sign-in page; `null` if the user signed out. */
  notice: string | null;
  /** The organization that another tab switched to; `null` if this tab shows it. */
  elsewhere: string | null;
  /** The single-use token of a sign-in link, until it is used or dropped. */
  token: string | null;
  /** The key of a link that was opened while another credential is in use, until `decideOffer`. */
  offered: string | null;
}

/** The state beside the credential, set again after each change of the credential. */
export const session = new Store<SessionState>({
  generation: 0,
  notice: null,
  elsewhere: null,
  token: null,
  offered: null,
});
const change = (changes: Partial<SessionState> = {}) =>
  session.set({ ...session.value, ...changes });

/** Returns the tab's key, `SESSION` if it uses the cookie, or `null`. */
export function currentCredential(): string | null {
  return sessionStorage.getItem(NAME);
}

export function isSession(): boolean {
  return currentCredential() === SESSION;
}

export function openWithKey(key: string): void {
  sessionStorage.setItem(NAME, key);
  sessionStorage.removeItem(CALLER);
  change({ notice: null });
}

interface SignedIn {
  organization: string;
  user: string | null;
}

/** Uses the cookie's session in this tab, in place of a key. */
export function openSession(caller: SignedIn, generation = session.value.generation): void {
  sessionStorage.setItem(NAME, SESSION);
  cacheCaller(caller);
  localStorage.setItem(SIGNED_IN, `${caller.organization} ${caller.user}`);
  change({ notice: null, generation });
}

/** Like `openSession`, for a tab that shows another organization or user. */
export function switchSession(caller: SignedIn): void {
  openSession(caller, session.value.generation + 1);
}

/** Shows a message on the sign-in page. */
export function showSignInNotice(notice: string): void {
  change({ notice });
}

/**
 * Removes the credential. With a `reason`, drafts stay for the next one; a user who signs out
 * leaves none.
 */
export function signOut(reason: string | null = null): void {
  if (isSession()) {
    if (reason === null) localStorage.setItem(SIGNED_IN, SIGNED_OUT);
    else localStorage.removeItem(SIGNED_IN);
  }
  closeTab(reason);
}

function closeTab(reason: string | null): void {
  if (reason === null) dropAllDrafts();
  sessionStorage.removeItem(NAME);
  sessionStorage.removeItem(CALLER);
  if (session.value.offered) decideOffer(true);
  else change({ notice: reason });
}

export const SESSION_ENDED = "Your session ended. Sign in again.";

/** Follows the session of other tabs: all tabs have the same cookie. */
export function watchSession(): void {
  addEventListener("storage", ({ key, oldValue, newValue }) => {
    if (key !== SIGNED_IN || newValue === oldValue) return;
    if (!isSession()) {
      // Another tab signed in, such as the one that opened the link of an email.
      if (newValue && currentCredential() === null) openWithKey(SESSION);
    } else if (!newValue) {
      closeTab(newValue === SIGNED_OUT ? null : SESSION_ENDED);
    } else if (oldValue) {
      // Drafts belong to the user.
      if (newValue.split(" ")[1] !== oldValue.split(" ")[1]) dropAllDrafts();
      change({ elsewhere: newValue.split(" ")[0] ?? "" });
    }
  });
}

/** Opens the first page with the session as another tab changed it. */
export function followSession(): void {
  sessionStorage.removeItem(CALLER);
  location.assign("/console");
}

const LINK_FAILED =
  "This link could not be opened. Links work once, for 60 seconds. Run `waymark console` for a new one.";

const OIDC_FAILED = "Single sign-on failed. Try again, or sign in by email.";
const OIDC_FAILURES: Record<string, string> = {
  email_unverified: "Your identity provider has not verified your email address.",
  not_a_member: "No organization has invited this email address. Ask an admin for an invitation.",
};

export function dropSignInToken(): void {
  change({ token: null });
}

/**
 * Reads the fragment of a link, which browsers do not send to servers: `#code=…` for a key,
 * `#token=…` to sign in, `#error=…` after a failed sign-in. Removes it from the address first, so
 * the history holds neither a key nor a working code. Resolves when the tab has a credential or
 * none can be had: to a message if the link failed.
 */
export async function takeLink(): Promise<string | null> {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const [code, found, error] = ["code", "token", "error"].map((it) => fragment.get(it));
  if (code || found || error) {
    history.replaceState(history.state, "", location.pathname + location.search);
  }
  if (found) change({ token: found });
  const key = code ? await exchange(code) : null;
  await adopt(key);
  if (error) return own(OIDC_FAILURES, error) ?? OIDC_FAILED;
  return code && !key ? LINK_FAILED : null;
}

/** Exchanges a code for its key. Resolves to `null` if the API rejects it or cannot be reached. */
async function exchange(code: string): Promise<string | null> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ code });
  const request = fetch("/v0/console-codes/exchange", { method: "POST", headers, body });
  const response = await request.catch(() => null);
  return response?.ok ? ((await response.json()) as { apiKey: string }).apiKey : null;
}

/**
 * Uses the key of a link unless this tab or another one has a credential. Then the user decides: no
 * link switches organizations silently.
 */
async function adopt(key: string | null): Promise<void> {
  await requestKeyFromTabs();
  if (currentCredential() === null && !key) await adoptSession();
  const current = currentCredential();
  if (!key || key === current) return;
  if (current === null) return openWithKey(key);
  change({ offered: key });
}

/** Uses the cookie's session, if there is one. */
async function adoptSession(): Promise<void> {
  // The page opens with the session without waiting for a response, and reports if it has ended.
  if (localStorage.getItem(SIGNED_IN)) return openWithKey(SESSION);
  const response = await fetch("/v0/me", { headers: CONSOLE_HEADER }).catch(() => null);
  // An unread body would keep the connection busy.
  const caller = (await response?.json().catch(() => null)) as SignedIn | null;
  if (!response?.ok || !caller) return;
  // A key that the user entered in the meantime has priority.
  if (currentCredential() === null) openSession(caller);
}

export function decideOffer(isAccepted: boolean): void {
  const key = session.value.offered;
  change({ offered: null });
  if (!key || !isAccepted) return;
  openWithKey(key);
  // Discards all data that was loaded with the previous key.
  location.reload();
}

/** Returns the caller as last loaded in this tab. */
export function cachedCaller<T>(): T | undefined {
  const text = sessionStorage.getItem(CALLER);
  return text === null ? undefined : (JSON.parse(text) as T);
}

export function cacheCaller(caller: unknown): void {
  if (currentCredential()) sessionStorage.setItem(CALLER, JSON.stringify(caller));
}
