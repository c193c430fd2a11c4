// Insights, markers and settings.

import assert from "node:assert/strict";
import { Api } from "../data.mjs";
import { Visitor } from "../visitor.mjs";

export const others = ({ browser, base, project, key, adminKey, readOnlyKey, api, known }) => ({
  async "pain points are split off, and undo merges them"() {
    const visitor = await Visitor.enter(browser, base, key, `/insight?id=${known.insight}`);
    await visitor.see(".table tbody tr");
    const [first, , third] = await visitor.page.$$(".table tbody input");
    await first.click();
    await visitor.page.keyboard.down("Shift");
    await third.click();
    await visitor.page.keyboard.up("Shift");
    assert.match(await visitor.text(".bulk-actions"), /3 pain points selected/);
    await visitor.click("Split off…");
    await visitor.type("Title of the new insight", "Three of them");
    await visitor.page.keyboard.press("Enter");
    const read = () => api.send("GET", `/v0/projects/${project}/replay-insights/${known.insight}`);
    await visitor.until("seven remain", async () => (await read()).occurrences === 7);
    const list = await api.send("GET", `/v0/projects/${project}/replay-insights?status=open`);
    assert.equal(list.items.find((it) => it.title === "Three of them").occurrences, 3);
    await visitor.click("Undo");
    await visitor.until("all ten are merged", async () => (await read()).occurrences === 10);
    assert.equal((await read()).viewed, true);
    await visitor.leave();
  },

  async "markers are added and deleted, and notifications turned off"() {
    const visitor = await Visitor.enter(browser, base, key, "/markers");
    await visitor.type("New collection", "Releases");
    await visitor.click("Create");
    await visitor.until("the collection is open", async () => (await visitor.texts("h2")).some((it) => it.startsWith("Releases")));
    await visitor.type("Title", "Release 7");
    await visitor.click("Add");
    const collections = async () => (await api.send("GET", `/v0/projects/${project}/event-marker-collections`)).items;
    await visitor.until("the collection has a marker", async () => (await collections()).some((it) => it.name === "Releases" && it.eventCount === 1));
    await visitor.until("the marker is shown", async () => (await visitor.texts(".row-title")).some((it) => it.startsWith("Release 7")));
    await visitor.click("Delete collection");
    assert.match(await visitor.text("dialog"), /1 marker/);
    await visitor.click("Delete");
    await visitor.until("the collection is deleted", async () => (await collections()).every((it) => it.name !== "Releases"));

    await visitor.open("/settings");
    const toggle = await visitor.see('[aria-labelledby="type-weekly_digest"]');
    await toggle.click();
    const digest = async () => (await api.send("GET", "/v0/notifications/email-preferences")).find((it) => it.type === "weekly_digest");
    await visitor.until("the digest is off", async () => (await digest()).emailEnabled === false);
    await visitor.leave();
  },

  async "insights are merged, and undo splits them"() {
    const insights = `/v0/projects/${project}/replay-insights`;
    const create = (title, number) => {
      const [id, occurredAt] = [`00000000-0000-4000-8000-0000000009${number}`, new Date().toISOString()];
      const point = { id, sessionId: `session-${number}`, userId: null, occurredAt, title, excerpt: "" };
      return api.send("POST", insights, { title, painPoints: [point] });
    };
    const [one, other] = [await create("Rage clicks on pay", "01"), await create("Dead pay button", "02")];
    await api.send("PATCH", `${insights}/${one.id}`, { status: "ignored" });
    const visitor = await Visitor.enter(browser, base, key, `/insight?id=${one.id}`);
    await visitor.click("Merge into…");
    await visitor.see("dialog .choices button");
    const choices = await visitor.page.$$("dialog .choices button");
    const titles = await visitor.texts("dialog .choices button");
    await choices[titles.findIndex((it) => it.startsWith("Dead pay button"))].click();
    const read = (it) => api.send("GET", `${insights}/${it.id}`);
    await visitor.until("the merge needs confirmation", async () => /Merge into “Dead pay button”/.test(await visitor.text("dialog")));
    assert.equal((await read(one)).status, "ignored");
    await (await visitor.see("dialog button.danger")).click();
    await visitor.until("the insights are merged", async () => (await read(one)).status === "merged" && (await read(other)).occurrences === 2);
    await visitor.click("Undo");
    await visitor.until("the pain points are split", async () => (await read(other)).occurrences === 1);
    const ignored = () => api.send("GET", `${insights}?status=ignored`);
    await visitor.until("the insight is ignored again", async () => (await ignored()).items.some((it) => it.title === "Rage clicks on pay"));
    await visitor.leave();
  },

  async "insights are listed by period, and their texts are edited"() {
    const insights = `/v0/projects/${project}/replay-insights`;
    const occurredAt = new Date(Date.now() - 3 * 86_400_000).toISOString();
    const point = { id: "00000000-0000-4000-8000-000000000950", sessionId: "three-days", userId: null, occurredAt, title: "Slow", excerpt: "" };
    const before = { title: "Three days ago", description: "" };
    const { id } = await api.send("POST", insights, { ...before, painPoints: [point] });
    const visitor = await Visitor.enter(browser, base, key, "/insights?q=three+days");
    const isListed = async () => (await visitor.texts(".table .title")).some((it) => it.startsWith(before.title));
    await visitor.until("the insight is listed", isListed);
    await visitor.click("24h");
    await visitor.until("the insight is older", async () => !(await isListed()));
    assert.equal(new URL(visitor.page.url()).searchParams.get("seen"), "24h");
    await visitor.click("7d");
    await visitor.until("the insight is listed again", isListed);

    await visitor.open(`/insight?id=${id}`);
    await visitor.see(".days svg");
    const after = { title: "Slow checkout", description: "The button reacts after 4 s" };
    const has = async (texts) => {
      const { title, description } = await api.send("GET", `${insights}/${id}`);
      return title === texts.title && description === texts.description;
    };
    await visitor.click("Edit");
    await visitor.type("Title", after.title);
    await visitor.type("Description", after.description);
    await visitor.click("Save");
    await visitor.until("the texts are saved", () => has(after));
    await visitor.until("the page shows them", async () => (await visitor.texts("h1")).join() === after.title);
    await visitor.click("Undo");
    await visitor.until("the texts are restored", () => has(before));
    await visitor.leave();
  },

  async "the flag snippet gets a key that can only evaluate flags"() {
    const visitor = await Visitor.enter(browser, base, adminKey, "/settings");
    const code = async () => (await visitor.texts(".snippets pre")).join("\n");
    await visitor.see(".snippets pre");
    assert.match(await code(), /"x-api-key", "YOUR_KEY"/);
    await visitor.click("Create a key for this snippet");
    await visitor.until("the snippet has a key", async () => /"x-api-key", "wm_/.test(await code()));
    const created = new Api(base, /"x-api-key", "([^"]+)"/.exec(await code())[1]);
    const flags = `/v0/project/${project}`;
    await created.send("POST", `${flags}/ofrep/v1/evaluate/flags/hostile`, { context: { targetingKey: "ana" } });
    await assert.rejects(created.send("GET", `${flags}/feature-flags`), /403/);
    await visitor.leave();
  },

  async "the copied DSN accepts errors"() {
    const visitor = await Visitor.enter(browser, base, key, "/settings");
    await visitor.context.overridePermissions(base, ["clipboard-read", "clipboard-sanitized-write"]);
    await visitor.see(".snippets pre");
    const [dsn] = await visitor.texts(".snippets pre");
    await visitor.click("Copy DSN");
    await visitor.until("the DSN is copied", async () => (await visitor.page.evaluate(() => navigator.clipboard.readText())) === dsn);
    for (const name of ["Browser", "Node.js", "Python", "Rust"]) {
      await visitor.click(name);
      await visitor.until(`the ${name} code contains the DSN`, async () => (await visitor.texts(".snippets pre"))[2].includes(`"${dsn}"`));
    }
    const { protocol, host, username, pathname } = new URL(dsn);
    const payload = JSON.stringify({ message: "sent with the copied DSN", level: "error" });
    const event_id = "d5".repeat(16);
    const envelope = `${JSON.stringify({ event_id, dsn })}\n${JSON.stringify({ type: "event", length: payload.length })}\n${payload}\n`;
    const response = await fetch(`${protocol}//${host}/api${pathname}/envelope/?sentry_key=${username}`, { method: "POST", body: envelope });
    assert.equal(response.status, 200);
    const { items } = await api.send("GET", `/v0/projects/${project}/errors?limit=100`);
    const sent = items.find((it) => it.title === "sent with the copied DSN");
    assert.ok(sent);

    await visitor.open(`/error?id=${sent.errorId}`);
    await visitor.click("Delete");
    assert.match(await visitor.text("dialog"), /1 event of the last 90 days/);
    await (await visitor.see("dialog button.danger")).click();
    await visitor.until("the list is shown", () => visitor.page.url().includes("/errors"));
    await assert.rejects(api.send("GET", `/v0/projects/${project}/errors/${sent.errorId}`), /404/);
    await visitor.leave();
  },

  async "a new email address awaits confirmation"() {
    const visitor = await Visitor.enter(browser, base, key, "/settings");
    await visitor.see(".address input");
    assert.match(await visitor.text(".address"), /No address yet/);
    await visitor.type("Your address", "mira at shop");
    await visitor.click("Save");
    await visitor.see(".address .field-error");
    assert.equal(await visitor.page.$eval("#email", (it) => it.value), "mira at shop", "a rejected address stays in the field");
    const detail = "The key lists projects. Use a key for all projects.";
    const rejected = { status: 403, body: { type: "/problems/insufficient_scope", title: "Insufficient scope", status: 403, detail, code: "insufficient_scope" } };
    await visitor.mock("/email-address", (request) => request.method() === "PUT" && rejected);
    await visitor.click("Save");
    await visitor.see(".address .error-box");
    assert.match(await visitor.text(".address .error-box"), /lists projects[\s\S]*waymark key create/);
    await visitor.mock("/email-address", null);
    await visitor.type("Your address", "mira@shop.example");
    await visitor.page.keyboard.press("Enter");
    await visitor.see(".address .pairs");
    assert.match(await visitor.text(".address .pairs"), /mira@shop\.example not confirmed/);
    const address = await api.send("GET", "/v0/notifications/email-address");
    assert.deepEqual(address, { email: null, pendingEmail: "mira@shop.example" });
    // A read-only key also shows the pending address.
    const other = await Visitor.enter(browser, base, readOnlyKey, "/settings");
    await other.see(".address .pairs");
    assert.match(await other.text(".address"), /mira@shop\.example not confirmed[\s\S]*notifications:write/);
    await other.leave();
    await visitor.leave();
  },
});
