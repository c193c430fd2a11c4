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

/** Answers the other tabs from now on. */
export function answerTabs(): void {
  if (typeof BroadcastChannel === "undefined") return;
  channel ??= new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    const key = currentKey();
    if ("asks" in data && key) channel?.postMessage({ answers: data.asks, key });
  });
}

/** Asks the other tabs for the key. Answers `false` where none has one. */
export function askTabs(): Promise<boolean> {
  const asked = channel;
  if (currentKey() || !asked) return Promise.resolve(currentKey() !== null);
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
