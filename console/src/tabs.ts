/**
 * Shares the credential with new tabs of the same origin. A link that opens in a new tab has no key: each
 * tab keeps its key in memory and in its own session only. A tab that was signed out does not
 * request one.
 */

import { currentCredential, openWithKey } from "./session";

const CHANNEL = "waymark.key";
/** Time that a new tab waits for the others. */
const TIMEOUT_MS = 250;

type Message = { asks: string } | { answers: string; key: string };

let channel: BroadcastChannel | null = null;

/** Returns `true` if another tab is open. Each tab holds a lock, so a single tab does not wait. */
async function hasOthers(): Promise<boolean> {
  const locks = await globalThis.navigator?.locks?.query();
  return !locks || (locks.held ?? []).filter((it) => it.name === CHANNEL).length > 1;
}

/** Starts to send the key to tabs that request it. */
export function shareKeyWithTabs(): void {
  if (typeof BroadcastChannel === "undefined") return;
  channel ??= new BroadcastChannel(CHANNEL);
  void globalThis.navigator?.locks?.request(
    CHANNEL,
    { mode: "shared" },
    () => new Promise(() => {}),
  );
  channel.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    const key = currentCredential();
    if ("asks" in data && key) channel?.postMessage({ answers: data.asks, key });
  });
}

/** Requests the key from the other tabs. Resolves to `false` if this tab has no key afterwards. */
export async function requestKeyFromTabs(): Promise<boolean> {
  const tabs = channel;
  if (currentCredential() || !tabs || !(await hasOthers())) return currentCredential() !== null;
  const id = crypto.randomUUID();
  return new Promise((resolve) => {
    const end = (found: boolean) => {
      tabs.removeEventListener("message", listener);
      resolve(found);
    };
    const listener = ({ data }: MessageEvent<Message>) => {
      if (!("answers" in data) || data.answers !== id) return;
      // A key that the user entered in the meantime has priority.
      if (!currentCredential()) openWithKey(data.key);
      end(true);
    };
    tabs.addEventListener("message", listener);
    tabs.postMessage({ asks: id });
    setTimeout(() => end(currentCredential() !== null), TIMEOUT_MS);
  });
}
