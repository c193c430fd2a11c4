// Data that the service derives: frames resolved by source maps, and evidence of session replays.

import assert from "node:assert/strict";
import { Visitor } from "../visitor.mjs";

const uuid = (number) => `00000000-0000-7000-8000-${number.toString(16).padStart(12, "0")}`;

export const derived = ({ browser, base, project, key, api, known }) => ({
  async "resolved frames show their source and the minified position"() {
    const { errorId } = known.error;
    const visitor = await Visitor.enter(browser, base, key, null);
    const minified = { filename: "https://shop.example/a.js", lineno: 1, colno: 2041, function: "t" };
    const frames = [
      { ...minified, in_app: true },
      { filename: "src/cart.ts", function: "total", lineno: 12, colno: 3, in_app: true, contextLine: "return sum(items)", preContext: ["{"], postContext: ["}"], minified },
    ];
    let mapStatus = "missing";
    await visitor.mock(`/${errorId}/events/query`, async (request) => {
      const { pathname } = new URL(request.url());
      const body = await api.send("POST", pathname, JSON.parse(await request.fetchPostData()));
      for (const it of body.items) {
        it.mapStatus = mapStatus;
        it.event.exception = { values: [{ type: "Error", value: "no", stacktrace: { frames } }] };
      }
      return { body };
    });
    await visitor.open(`/error?id=${errorId}`);
    await visitor.see(".frames .source .at");
    assert.match(await visitor.text(".frames .source .at"), /12\s*return sum\(items\)/);
    assert.match(await visitor.text(".frames .minified"), /t in https:\/\/shop\.example\/a\.js:1:2041/);
    assert.equal((await visitor.page.$$(".frames .minified")).length, 1, "the frame without a map has none");
    assert.match(await visitor.text(".map-note"), /no source map was uploaded/);
    mapStatus = "failed";
    await visitor.page.reload();
    await visitor.see(".map-note");
    await visitor.mock("/source-maps", () => ({
      body: {
        items: [{ debugId: uuid(1), release: "shop@2.4.1", dist: null, url: "~/a.js", size: 1_834_000, createdAt: new Date().toISOString(), lastUsedAt: new Date().toISOString() }],
        failures: [{ checksum: "ab".repeat(20), release: "shop@2.4.2", dist: null, detail: "b.js.map: not JSON at line 1", failedAt: new Date().toISOString() }],
        nextCursor: null,
      },
    }));
    await visitor.click("See failed uploads");
    await visitor.see(".failures");
    assert.match(await visitor.text(".failures"), /b\.js\.map: not JSON at line 1/);
    assert.match(await visitor.text("main tbody"), /~\/a\.js[\s\S]*shop@2\.4\.1[\s\S]*1\.8 MB/);
    await visitor.leave();
  },

  async "pain points of replays show their evidence, and filter by session"() {
    const visitor = await Visitor.enter(browser, base, key, null);
    const point = (number, sessionId, kind, errorId) => ({
      id: uuid(number), sessionId, userId: null, occurredAt: new Date(Date.now() - number * 6e4).toISOString(), title: `Point ${number}`, excerpt: "It does nothing",
      evidence: { kind, route: "/checkout", selector: "#pay", element: "#pay", browser: "Chrome 140", release: "shop@2.4.1", errorId },
    });
    const items = [point(1, "one", "rage_click", null), point(2, "one", "error_click", known.error.errorId), point(3, "other", "feedback", null)];
    await visitor.mock("/pain-points", () => ({ body: { items, nextCursor: null } }));
    await visitor.open(`/insight?id=${known.insight}`);
    await visitor.see(".table tbody tr");
    const rows = () => visitor.texts(".table tbody tr");
    await visitor.until("the error is named", async () => /Then TypeError within 1 s/.test(String(await rows())));
    const [rage, error, feedback] = await rows();
    assert.match(rage, /Rage click on #pay at \/checkout · Chrome 140 · shop@2\.4\.1/);
    assert.match(error, /Then TypeError within 1 s · Click before an error/);
    assert.match(feedback, /“It does nothing” · Feedback at \/checkout/);
    await (await visitor.see("td a[title=\"Only session one\"]")).click();
    await visitor.until("the other session is hidden", async () => (await rows()).length === 2);
    assert.match(await visitor.text("main"), /2 pain points of session one\. Show all 2 sessions/);
    await visitor.click("Show all 2 sessions");
    await visitor.until("all sessions show", async () => (await rows()).length === 3);
    await visitor.click("Then TypeError within 1 s");
    await visitor.until("the error opens", () => visitor.page.url().includes(`id=${known.error.errorId}`));
    await visitor.leave();
  },
});
