import { beforeEach, expect, test, vi } from "vitest";

const storage = () => {
  const items = new Map<string, string>();
  return {
    items,
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
    removeItem: (name: string) => void items.delete(name),
  };
};
let tab: ReturnType<typeof storage>;
let browser: ReturnType<typeof storage>;
let onStorage: (event: { key: string; oldValue: string | null; newValue: string | null }) => void;
const replaceState = vi.fn();

beforeEach(() => {
  vi.resetModules();
  replaceState.mockClear();
  [tab, browser] = [storage(), storage()];
  vi.stubGlobal("sessionStorage", tab);
  vi.stubGlobal("localStorage", browser);
  vi.stubGlobal("location", { pathname: "/console/sign-in", search: "", hash: "" });
  vi.stubGlobal("history", { state: null, replaceState });
  vi.stubGlobal("addEventListener", (_: string, listener: typeof onStorage) => {
    onStorage = listener;
  });
});

const ana = { organization: "acme", user: "ana@example.com" };
const ofTab = (organization: string, user = ana.user) => `${organization} ${user}`;

test("the token of a link leaves the address before anything is sent", async () => {
  const fetch = vi.fn(async () => new Response(null, { status: 401 }));
  vi.stubGlobal("fetch", fetch);
  vi.stubGlobal("location", { pathname: "/console/sign-in", search: "", hash: "#token=secret" });
  const session = await import("./session");
  await session.takeLink();
  expect(replaceState).toHaveBeenCalledWith(null, "", "/console/sign-in");
  expect(session.session.value.token).toBe("secret");
  expect(fetch.mock.calls.map(([path]: unknown[]) => path)).toEqual(["/v0/me"]);
});

test("a tab without a key uses the session of the browser", async () => {
  vi.stubGlobal("fetch", async () => Response.json(ana));
  const session = await import("./session");
  await session.takeLink();
  expect(session.isSession()).toBe(true);
  expect(browser.items.get("waymark.session")).toBe(ofTab("acme"));
  expect(JSON.stringify([...tab.items, ...browser.items])).not.toContain("wm_");
});

test("a key has priority over the session", async () => {
  tab.setItem("waymark.key", "wm_1");
  const fetch = vi.fn();
  vi.stubGlobal("fetch", fetch);
  const session = await import("./session");
  await session.takeLink();
  expect(session.currentCredential()).toBe("wm_1");
  expect(fetch).not.toHaveBeenCalled();
});

test("tabs follow sign-outs, sign-ins and switches of other tabs", async () => {
  const session = await import("./session");
  session.watchSession();
  session.openSession(ana);
  onStorage({ key: "waymark.session", oldValue: ofTab("acme"), newValue: ofTab("beta") });
  expect(session.session.value.elsewhere).toBe("beta");
  tab.setItem("waymark.draft flag", "{}");
  onStorage({ key: "waymark.session", oldValue: ofTab("beta"), newValue: null });
  expect([session.currentCredential(), session.session.value.notice]).toEqual([
    null,
    session.SESSION_ENDED,
  ]);
  onStorage({ key: "waymark.session", oldValue: null, newValue: ofTab("acme") });
  expect(session.isSession()).toBe(true);
  onStorage({ key: "waymark.session", oldValue: ofTab("acme"), newValue: "" });
  expect([session.currentCredential(), session.session.value.notice]).toEqual([null, null]);
});

test("a tab with a key ignores the session of other tabs", async () => {
  tab.setItem("waymark.key", "wm_1");
  const session = await import("./session");
  session.watchSession();
  onStorage({ key: "waymark.session", oldValue: null, newValue: ofTab("acme") });
  onStorage({ key: "waymark.session", oldValue: ofTab("acme"), newValue: ofTab("beta") });
  onStorage({ key: "waymark.session", oldValue: ofTab("beta"), newValue: "" });
  expect(session.currentCredential()).toBe("wm_1");
  expect(session.session.value.elsewhere).toBeNull();
});

test("a failed single sign-on has a reason", async () => {
  vi.stubGlobal("fetch", async () => new Response(null, { status: 401 }));
  const session = await import("./session");
  for (const [code, text] of [
    ["not_a_member", /invitation/],
    ["toString", /Single sign-on failed/],
  ] as const) {
    vi.stubGlobal("location", { pathname: "/console/sign-in", search: "", hash: `#error=${code}` });
    expect(await session.takeLink()).toMatch(text);
  }
});
