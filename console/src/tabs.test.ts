import { beforeEach, expect, test, vi } from "vitest";

/** Opens a tab with modules and a session storage of its own. */
async function openTab(key: string | null) {
  const stored = new Map<string, string>(key ? [["waymark.key", key]] : []);
  vi.resetModules();
  vi.stubGlobal("sessionStorage", {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, value: string) => void stored.set(name, value),
    removeItem: (name: string) => void stored.delete(name),
  });
  const tabs = await import("./tabs");
  tabs.shareKeyWithTabs();
  return { stored, tabs };
}

beforeEach(() => vi.unstubAllGlobals());

test("a new tab gets its key from another tab that has one", async () => {
  const { stored, tabs } = await openTab(null);
  expect(await tabs.requestKeyFromTabs()).toBe(false);
  expect(stored.size).toBe(0);

  const other = new BroadcastChannel("waymark.key");
  other.onmessage = ({ data }) => {
    if ("asks" in data) other.postMessage({ answers: data.asks, key: "wm_1" });
  };
  expect(await tabs.requestKeyFromTabs()).toBe(true);
  expect(stored.get("waymark.key")).toBe("wm_1");
  other.close();
});

test("a tab with a key sends it on request", async () => {
  await openTab("wm_2");
  const other = new BroadcastChannel("waymark.key");
  const response = new Promise((resolve) => {
    other.onmessage = ({ data }) => resolve(data);
  });
  other.postMessage({ asks: "me" });
  expect(await response).toEqual({ answers: "me", key: "wm_2" });
  other.close();
});
