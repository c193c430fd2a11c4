// Insights, markers and settings.

import assert from "node:assert/strict";
import { Visitor } from "../visitor.mjs";

export const others = ({ browser, base, project, key, readOnlyKey, api, known }) => ({
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

  async "one insight is merged into another, and comes back"() {
    const insights = `/v0/projects/${project}/replay-insights`;
    const make = (title, number) => {
      const [id, occurredAt] = [`00000000-0000-4000-8000-0000000009${number}`, new Date().toISOString()];
      const point = { id, sessionId: `session-${number}`, userId: null, occurredAt, title, excerpt: "" };
      return api.send("POST", insights, { title, painPoints: [point] });
    };
    const [one, other] = [await make("Rage clicks on pay", "01"), await make("Dead pay button", "02")];
    await api.send("PATCH", `${insights}/${one.id}`, { status: "ignored" });
    const visitor = await Visitor.enter(browser, base, key, `/insight?id=${one.id}`);
    await visitor.click("Merge into…");
    await visitor.see("dialog .choices button");
    const choices = await visitor.page.$$("dialog .choices button");
    const titles = await visitor.texts("dialog .choices button");
    await choices[titles.findIndex((it) => it.startsWith("Dead pay button"))].click();
    const read = (it) => api.send("GET", `${insights}/${it.id}`);
    await visitor.until("it is asked first", async () => /Merge into “Dead pay button”/.test(await visitor.text("dialog")));
    assert.equal((await read(one)).status, "ignored");
    await (await visitor.see("dialog button.danger")).click();
    await visitor.until("it is merged", async () => (await read(one)).status === "merged" && (await read(other)).occurrences === 2);
    await visitor.click("Undo");
    await visitor.until("each has its own again", async () => (await read(other)).occurrences === 1);
    const again = () => api.send("GET", `${insights}?status=ignored`);
    await visitor.until("it is ignored as before", async () => (await again()).items.some((it) => it.title === "Rage clicks on pay"));
    await visitor.leave();
  },

  async "errors are taken under the DSN that settings show, which a click copies"() {
    const visitor = await Visitor.enter(browser, base, key, "/settings");
    await visitor.context.overridePermissions(base, ["clipboard-read", "clipboard-sanitized-write"]);
    await visitor.see(".snippets pre");
    const [dsn] = await visitor.texts(".snippets pre");
    await visitor.click("Copy the DSN");
    await visitor.until("it is copied", async () => (await visitor.page.evaluate(() => navigator.clipboard.readText())) === dsn);
    for (const name of ["Browser", "Node.js", "Python", "Rust"]) {
      await visitor.click(name);
      await visitor.until(`the lines for ${name} have it`, async () => (await visitor.texts(".snippets pre"))[1].includes(`"${dsn}"`));
    }
    const { protocol, host, username, pathname } = new URL(dsn);
    const payload = JSON.stringify({ message: "sent under what settings show", level: "error" });
    const event_id = "d5".repeat(16);
    const envelope = `${JSON.stringify({ event_id, dsn })}\n${JSON.stringify({ type: "event", length: payload.length })}\n${payload}\n`;
    const response = await fetch(`${protocol}//${host}/api${pathname}/envelope/?sentry_key=${username}`, { method: "POST", body: envelope });
    assert.equal(response.status, 200);
    const { items } = await api.send("GET", `/v0/projects/${project}/errors?limit=100`);
    const sent = items.find((it) => it.title === "sent under what settings show");
    assert.ok(sent);

    await visitor.open(`/error?id=${sent.errorId}`);
    await visitor.click("Delete");
    assert.match(await visitor.text("dialog"), /1 event of the last 90 days/);
    await (await visitor.see("dialog button.danger")).click();
    await visitor.until("the list is shown", () => visitor.page.url().includes("/errors"));
    await assert.rejects(api.send("GET", `/v0/projects/${project}/errors/${sent.errorId}`), /404/);
    await visitor.leave();
  },

  async "an address is set, and waits to be confirmed"() {
    const visitor = await Visitor.enter(browser, base, key, "/settings");
    await visitor.see(".address input");
    assert.match(await visitor.text(".address"), /No address is set/);
    await visitor.type("Your address", "mira at shop");
    await visitor.click("Set the address");
    await visitor.see(".address .fault");
    assert.equal(await visitor.page.$eval("#email", (it) => it.value), "mira at shop", "what was typed is kept");
    const detail = "The key lists projects. Use a key for all projects.";
    const refused = { status: 403, body: { type: "/problems/insufficient_scope", title: "Insufficient scope", status: 403, detail, code: "insufficient_scope" } };
    await visitor.answer("/email-address", (request) => request.method() === "PUT" && refused);
    await visitor.click("Set the address");
    await visitor.see(".address .refused");
    assert.match(await visitor.text(".address .refused"), /lists projects[\s\S]*waymark key create/);
    await visitor.answer("/email-address", null);
    await visitor.type("Your address", "mira@shop.example");
    await visitor.page.keyboard.press("Enter");
    await visitor.see(".address .pairs");
    assert.match(await visitor.text(".address .pairs"), /mira@shop\.example not confirmed yet/);
    const address = await api.send("GET", "/v0/notifications/email-address");
    assert.deepEqual(address, { email: null, pendingEmail: "mira@shop.example" });
    // Another tab knows of it too, and one that may only read.
    const other = await Visitor.enter(browser, base, readOnlyKey, "/settings");
    await other.see(".address .pairs");
    assert.match(await other.text(".address"), /mira@shop\.example not confirmed yet[\s\S]*notifications:write/);
    await other.leave();
    await visitor.leave();
  },
});
