// Insights, markers and settings.

import assert from "node:assert/strict";
import { Visitor } from "../visitor.mjs";

export const others = ({ browser, base, project, key, api, known }) => ({
  async "three of ten pain points are split off, and come back"() {
    const visitor = await Visitor.enter(browser, base, key, `/insight?id=${known.insight}`);
    await visitor.see(".table tbody tr");
    for (const row of [0, 1, 2]) await (await visitor.page.$$(".table tbody input"))[row].click();
    await visitor.click("Split off…");
    await visitor.type("Title of the new insight", "Three of them");
    await visitor.page.keyboard.press("Enter");
    const read = () => api.send("GET", `/v0/projects/${project}/replay-insights/${known.insight}`);
    await visitor.until("seven are left", async () => (await read()).occurrences === 7);
    const list = await api.send("GET", `/v0/projects/${project}/replay-insights?status=open`);
    assert.equal(list.items.find((it) => it.title === "Three of them").occurrences, 3);
    await visitor.click("Undo");
    await visitor.until("all ten are back", async () => (await read()).occurrences === 10);
    assert.equal((await read()).viewed, true);
    await visitor.leave();
  },

  async "markers are added and deleted, and a preference is turned off"() {
    const visitor = await Visitor.enter(browser, base, key, "/markers");
    await visitor.type("New collection", "Releases");
    await visitor.click("Make it");
    await visitor.until("it is chosen", async () => (await visitor.texts("h2")).some((it) => it.startsWith("Releases")));
    await visitor.type("What happened", "Release 7");
    await visitor.click("Add");
    const collections = async () => (await api.send("GET", `/v0/projects/${project}/event-marker-collections`)).items;
    await visitor.until("it has an event", async () => (await collections()).some((it) => it.name === "Releases" && it.eventCount === 1));
    await visitor.until("it is shown", async () => (await visitor.texts(".row-title")).some((it) => it.startsWith("Release 7")));
    await visitor.click("Delete the collection");
    assert.match(await visitor.text("dialog"), /1 event/);
    await visitor.click("Delete");
    await visitor.until("it is gone", async () => (await collections()).every((it) => it.name !== "Releases"));

    await visitor.open("/settings");
    const toggle = await visitor.see('[aria-labelledby="type-weekly_digest"]');
    await toggle.click();
    const digest = async () => (await api.send("GET", "/v0/notifications/email-preferences")).find((it) => it.type === "weekly_digest");
    await visitor.until("it is off", async () => (await digest()).emailEnabled === false);
    await visitor.leave();
  },

  async "an address is set, and waits to be confirmed"() {
    const visitor = await Visitor.enter(browser, base, key, "/settings");
    await visitor.type("Your address", "mira at shop");
    await visitor.click("Set the address");
    await visitor.see(".address .fault");
    assert.equal(await visitor.page.$eval("#email", (it) => it.value), "mira at shop", "what was typed is kept");
    await visitor.type("Your address", "mira@shop.example");
    await visitor.page.keyboard.press("Enter");
    await visitor.see(".address .pairs");
    assert.match(await visitor.text(".address .pairs"), /mira@shop\.example not confirmed yet/);
    const address = await api.send("PUT", "/v0/notifications/email-address", { email: "mira@shop.example" });
    assert.deepEqual(address, { email: null, pendingEmail: "mira@shop.example" });
    await visitor.leave();
  },
});
