import { beforeEach, expect, test, vi } from "vitest";

/** What a tab keeps, and its modules. */
function tab(key: string | null) {
  const kept = new Map<string, string>(key ? [["waymark.key", key]] : []);
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  };
  return { kept, storage };
}

async function open(key: string | null) {
  const { kept, storage } = tab(key);
  vi.resetModules();
  vi.stubGlobal("sessionStorage", storage);
  const tabs = await import("./tabs");
  tabs.answerTabs();
  return { kept, tabs };
}

beforeEach(() => vi.unstubAllGlobals());

test("a new tab asks the others, and stays without a key where none has one", async () => {
  const { kept, tabs } = await open(null);
  expect(await tabs.askTabs()).toBe(false);
  expect(kept.size).toBe(0);

  // Another tab, with a storage of its own.
  const other = new BroadcastChannel("waymark.key");
  other.onmessage = ({ data }) => {
    if ("asks" in data) other.postMessage({ answers: data.asks, key: "wm_1" });
  };
  expect(await tabs.askTabs()).toBe(true);
  expect(kept.get("waymark.key")).toBe("wm_1");
  other.close();
});

test("a tab with a key answers who asks", async () => {
  await open("wm_2");
  const other = new BroadcastChannel("waymark.key");
  const answer = new Promise((resolve) => {
    other.onmessage = ({ data }) => resolve(data);
  });
  other.postMessage({ asks: "me" });
  expect(await answer).toEqual({ answers: "me", key: "wm_2" });
  other.close();
});
