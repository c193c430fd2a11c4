// Tags as categories, projects in production, and undone merges.

import assert from "node:assert/strict";
import { Visitor } from "../visitor.mjs";

export const tags = ({ browser, base, project, key, adminKey, api }) => ({
  async "tags are filtered, broken down and searched"() {
    const tenants = ["tag-acme", "tag-acme", "tag-umbrella"];
    for (const [number, tenant] of tenants.entries()) {
      await api.send("POST", api.store, {
        event_id: `7a9${number}`.padStart(32, "0"),
        exception: { values: [{ type: "TagError", value: "of a tenant" }] },
        tags: { tenant },
      });
    }
    const visitor = await Visitor.enter(browser, base, key, "/errors?by=tags.tenant");
    await visitor.until("values are shown", async () => (await visitor.texts(".breakdown .bars button")).some((it) => it.startsWith("tag-acme")));
    const bars = await visitor.page.$$(".breakdown .bars button");
    const texts = await visitor.texts(".breakdown .bars button");
    await bars[texts.findIndex((it) => it.startsWith("tag-umbrella"))].click();
    const filters = () => new URL(visitor.page.url()).searchParams.getAll("f");
    await visitor.until("the value is a filter", () => filters().includes("tags.tenant.is.tag-umbrella"));
    await visitor.until("one error is left", async () => (await visitor.texts(".errors-table .title")).length === 1);

    await visitor.open("/errors?q=tenant:tag-acme");
    await visitor.until("the search finds the error", async () => (await visitor.texts(".errors-table .title")).join().includes("TagError"));
    await visitor.open("/errors?q=tenant:tag-nobody");
    await visitor.settle();
    assert.deepEqual(await visitor.texts(".errors-table .title"), []);

    const found = await api.send("POST", `/v0/projects/${project}/errors/query`, { searchQuery: "tenant:tag-acme" });
    await visitor.open(`/error?id=${found.items[0].errorId}`);
    await visitor.see('.shares [aria-label="tenant"]');
    assert.match(await visitor.text('.shares [aria-label="tenant"]'), /tag-acme\s+67%\s+tag-umbrella\s+33%/);
    await visitor.click("tag-acme 67%");
    await visitor.until("the share is a filter", () => filters().includes("tags.tenant.is.tag-acme"));
    await visitor.leave();
  },

  async "flags of projects in production need a confirmation"() {
    const path = `/v0/project/${project}/feature-flags`;
    await api.send("POST", path, { key: "in-production", name: "In production", type: "boolean", enabled: false });
    const visitor = await Visitor.enter(browser, base, adminKey, "/projects");
    const { name } = (await api.send("GET", "/v0/projects")).items.find((it) => it.slug === project || it.id === project);
    const set = async (production) => {
      await visitor.open("/projects");
      await visitor.click(`Edit ${name}`);
      await visitor.click("Production");
      await visitor.click("Save");
      await visitor.until("the setting is saved", async () => ((await api.send("GET", "/v0/projects")).items.find((it) => it.name === name).production ?? false) === production);
    };
    await set(true);
    try {
      await visitor.open("/flags");
      await visitor.click("in-production");
      await visitor.see("dialog");
      assert.match(await visitor.text("dialog"), /Turn on in-production/);
      assert.equal((await api.send("GET", `${path}/in-production`)).enabled, false);
      await visitor.click("Cancel");
    } finally {
      await set(false);
    }
    await visitor.open("/flags");
    await (await visitor.see('[role="switch"][aria-label="in-production"]')).click();
    await visitor.until("the flag is on", async () => (await api.send("GET", `${path}/in-production`)).enabled);
    await visitor.leave();
  },

  async "merges are undone on the page of the merged insight"() {
    const insights = `/v0/projects/${project}/replay-insights`;
    const create = (title, number, count) => {
      const point = (it) => ({
        id: `00000000-0000-4000-8000-0000007a${String(number + it).padStart(4, "0")}`,
        sessionId: `tag-session-${it}`,
        userId: null,
        occurredAt: new Date().toISOString(),
        title,
        excerpt: "",
      });
      return api.send("POST", insights, { title, painPoints: Array.from({ length: count }, (_, it) => point(it)) });
    };
    const [one, other] = [await create("Undone later", 0, 500), await create("Receives", 1000, 2)];
    await api.send("POST", `${insights}/${one.id}/merge`, { into: other.id });
    const read = (it) => api.send("GET", `${insights}/${it.id}`);
    const visitor = await Visitor.enter(browser, base, key, `/insight?id=${one.id}`);
    await visitor.click("Undo merge");
    await visitor.until("the merge is undone", async () => (await read(one)).status === "open");
    assert.deepEqual([(await read(one)).occurrences, (await read(other)).occurrences], [500, 2]);

    await api.send("POST", `${insights}/${one.id}/merge`, { into: other.id });
    await api.send("POST", `${insights}/${other.id}/pain-points`, {
      painPoints: [{ id: "00000000-0000-4000-8000-0000007a9999", sessionId: "tag-late", userId: null, occurredAt: new Date().toISOString(), title: "Late", excerpt: "" }],
    });
    await visitor.open(`/insight?id=${one.id}`);
    await visitor.click("Undo merge");
    await visitor.until("the page shows the reason", async () => /cannot be undone/.test(await visitor.text("main")));
    await visitor.leave();
  },
});
