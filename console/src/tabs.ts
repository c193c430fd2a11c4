/**
 * Hands the key to new tabs of the same origin: a link that is opened in one has none, and what has it keeps
 * it in memory and in its own session alone. Tabs that were signed out of do not ask.
 */

import { currentKey, openWithKey } from "./session";

const CHANNEL = "waymark.key";
/** How long a new tab waits for the others. */
const PATIENCE_MS = 250;

type Message = { asks: string } | { answers: string; key: string };

let channel: BroadcastChannel | null = null;

/** Returns `true` if another tab is open. Each holds a lock: a single tab does not wait for answers. */
async function hasOthers(): Promise<boolean> {
  const locks = await globalThis.navigator?.locks?.query();
  return !locks || (locks.held ?? []).filter((it) => it.name === CHANNEL).length > 1;
}

/** Answers the other tabs from now on. */
export function answerTabs(): void {
  if (typeof BroadcastChannel === "undefined") return;
  channel ??= new BroadcastChannel(CHANNEL);
  void globalThis.navigator?.locks?.request(
    CHANNEL,
    { mode: "shared" },
    () => new Promise(() => {}),
  );
  channel.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    const key = currentKey();
    if ("asks" in data && key) channel?.postMessage({ answers: data.asks, key });
  });
}

/** Asks the other tabs for the key. Answers `false` where none has one. */
export async function askTabs(): Promise<boolean> {
  const asked = channel;
  if (currentKey() || !asked || !(await hasOthers())) return currentKey() !== null;
  const id = crypto.randomUUID();
  return new Promise((resolve) => {
    const end = (found: boolean) => {
      asked.removeEventListener("message", listener);
      resolve(found);
    };
    const listener = ({ data }: MessageEvent<Message>) => {
      if (!("answers" in data) || data.answers !== id) return;
      // Whoever brought a key meanwhile means that one.
      if (!currentKey()) openWithKey(data.key);
      end(true);
    };
    asked.addEventListener("message", listener);
    asked.postMessage({ asks: id });
    setTimeout(() => end(currentKey() !== null), PATIENCE_MS);
  });
}
