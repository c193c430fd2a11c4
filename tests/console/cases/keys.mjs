// The console of a deployment without email and single sign-on.

import assert from "node:assert/strict";
import { Visitor } from "../visitor.mjs";

export const keys = ({ browser, base, key, known }) => ({
  async "without email and single sign-on, the page takes API keys only"() {
    const visitor = await Visitor.arrive(browser, base, "/errors?range=30d");
    await visitor.see("#key");
    assert.doesNotMatch(await visitor.text("main"), /without a key|single sign-on/);
    assert.equal(await visitor.page.$("#sign-in-email"), null);
    await visitor.type("API key", "wm_short");
    await visitor.click("Sign in");
    await visitor.until("the key is refused", async () => /isn’t an API key/.test(await visitor.text("main")));
    await visitor.type("API key", key);
    await visitor.click("Sign in");
    await visitor.see(".errors-table .title");
    assert.match(visitor.page.url(), /errors\?range=30d/);
    await visitor.open(`/error?id=${known.error.errorId}`);
    await visitor.see(".exception");
    await visitor.leave();
  },

  async "an expired key is replaced without leaving the page"() {
    const visitor = await Visitor.enter(browser, base, key, "/flags");
    const problem = { type: "/problems/invalid_api_key", title: "Invalid key", status: 401, detail: "The key expired.", code: "invalid_api_key" };
    await visitor.mock("/feature-flags", () => ({ status: 401, body: problem }));
    await visitor.page.evaluate(() => document.querySelector(".side nav a[href*='/insights']").click());
    await visitor.page.evaluate(() => document.querySelector(".side nav a[href*='/flags']").click());
    await visitor.see("dialog #key");
    assert.doesNotMatch(await visitor.text("dialog"), /without a key|single sign-on|Email me/);
    await visitor.mock("/feature-flags", null);
    await visitor.type("API key", key);
    await visitor.page.keyboard.press("Enter");
    await visitor.until("the dialog is closed", async () => (await visitor.page.$("dialog")) === null);
    await visitor.see(".table tbody tr");
    await visitor.leave();
  },
});
