// Flags, segments and history.

import assert from "node:assert/strict";
import { Visitor } from "../visitor.mjs";

export const flags = ({ browser, base, project, key, api }) => {
  const path = `/v0/project/${project}`;
  const getFlag = (name) => api.send("GET", `${path}/feature-flags/${name}`);
  return {
    async "a new flag uses a new segment and a percentage rollout"() {
      const visitor = await Visitor.enter(browser, base, key, "/segments");
      await visitor.click("New segment");
      await visitor.type("Key", "staff");
      await visitor.type("Name", "Staff");
      await visitor.click("Create segment");
      // The condition has no attribute.
      await visitor.see(".field-error");
      await visitor.type("Attribute of condition 1", "email");
      await visitor.choose('[aria-label="Operator of condition 1"]', "ends_with");
      await visitor.type("Values of condition 1", "@shop.example");
      await visitor.click("Create segment");
      await visitor.until("the segment is created", () => visitor.page.url().includes("key=staff"));
      const segment = await api.send("GET", `${path}/segments/staff`);
      assert.deepEqual(segment.conditions, [{ attribute: "email", operator: "ends_with", values: ["@shop.example"] }]);

      await visitor.page.keyboard.press("g");
      await visitor.page.keyboard.press("f");
      await visitor.click("New flag");
      await visitor.type("Key", "not a key!");
      await visitor.type("Name", "From the console");
      await visitor.click("Create flag");
      await visitor.see(".field-error");
      assert.equal(await visitor.page.$eval(".form input", (it) => it.value), "not a key!", "a rejected key stays in its field");
      await visitor.type("Key", "from-console");
      await visitor.click("Add rule");
      await visitor.type("Attribute of condition 1", "country");
      await visitor.choose('[aria-label="Operator of condition 1"]', "in");
      await visitor.type("Values of condition 1", "DE");
      await visitor.click("Add condition");
      await visitor.choose('[aria-label="Operator of condition 2"]', "in_segment");
      await visitor.choose('[aria-label="Segment of condition 2"]', "staff");
      await visitor.choose('[aria-label="Rule 1 serves: variant"]', "off");
      await visitor.choose('[aria-label="Everyone else gets"]', "rollout");
      await visitor.type("Everyone else gets: weight of on", "75");
      assert.equal(await visitor.page.$eval('[aria-label="Everyone else gets: weight of off"]', (it) => it.value), "25");
      await visitor.click("Create flag");
      await visitor.until("the flag is created", () => visitor.page.url().includes("key=from-console"));
      const created = await getFlag("from-console");
      assert.deepEqual(created.fallthrough.rollout, [{ variant: "on", weight: 75 }, { variant: "off", weight: 25 }]);
      assert.deepEqual(created.rules[0].conditions, [
        { attribute: "country", operator: "in", values: ["DE"] },
        { attribute: null, operator: "in_segment", values: ["staff"] },
      ]);
      await visitor.click("from-console");
      await visitor.until("the flag is on", async () => (await getFlag("from-console")).enabled);
      await visitor.type("Value 1", "DE");
      await visitor.click("Add attribute");
      await visitor.type("Attribute 2", "email");
      await visitor.type("Value 2", "mira@shop.example");
      await visitor.click("Evaluate");
      await visitor.see(".outcome");
      assert.match(await visitor.text(".outcome"), /^off\b[\s\S]*rule 1/);
      await visitor.type("Value 2", "mira@elsewhere.example");
      await visitor.click("Evaluate");
      await visitor.until("the rule does not match", async () => /No rule matched/.test(await visitor.text(".outcome")));
      await visitor.leave();
    },

    async "the history of a flag shows its changes and restores versions"() {
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=from-console");
      await visitor.type("Name", "Renamed");
      await visitor.click("Save");
      const entries = () => visitor.texts(".history b");
      await visitor.until("the change is listed", async () => (await entries()).join() === "Changed name,Turned on,Created");
      assert.match((await visitor.texts(".history li"))[0], /From the console[\s\S]*Renamed/);
      const renamed = await getFlag("from-console");
      assert.deepEqual([renamed.name, renamed.enabled, renamed.version], ["Renamed", true, 3]);

      await visitor.click("Restore version 1");
      await visitor.see("dialog .differences");
      assert.match(await visitor.text("dialog"), /Renamed[\s\S]*From the console/);
      await visitor.click("Restore");
      await visitor.until("version 1 is restored", async () => !(await getFlag("from-console")).enabled);
      const restored = await getFlag("from-console");
      assert.deepEqual([restored.name, restored.version], ["From the console", 4]);
      const { items } = await api.send("GET", `${path}/feature-flags/from-console/changes`);
      assert.deepEqual(items.map((it) => it.kind), ["restored", "updated", "updated", "created"]);
      await visitor.until("the restore is listed", async () => (await entries())[0] === "Restored");
      assert.equal(await visitor.page.$eval("[role=switch]", (it) => it.getAttribute("aria-checked")), "false");

      const release = { event_id: "f1a6".padStart(32, "0"), release: "shop@3.0.0", exception: { values: [{ type: "ReleaseError", value: "new" }] } };
      await api.send("POST", api.store, release);
      // A short range, because other tests change flags, too.
      const at = Date.parse(restored.updatedAt);
      await visitor.open(`?from=${at - 30_000}&to=${at + 30_000}`);
      const marked = () => visitor.page.$$eval(".mark-card b", (all) => all.map((it) => it.textContent));
      await visitor.until("the plot shows the changes and the release", async () => {
        const names = await marked();
        return ["from-console", "shop@3.0.0"].every((it) => names.includes(it));
      });
      assert.ok(await visitor.page.$(".rows .dot.release"), "the release is listed");
      await visitor.leave();
    },

    async "only unused segments can be deleted"() {
      const visitor = await Visitor.enter(browser, base, key, "/segment?key=staff");
      await visitor.until("its flags are listed", async () => (await visitor.texts("aside .row-title")).join().includes("from-console"));
      await visitor.type("Name", "All employees");
      await visitor.click("Save");
      await visitor.until("the name is saved", async () => (await api.send("GET", `${path}/segments/staff`)).name === "All employees");
      await visitor.click("Delete");
      await visitor.see("dialog");
      assert.match(await visitor.text("dialog"), /Can’t delete staff[\s\S]*from-console/);
      await (await visitor.see("dialog button")).click();
      await api.send("PATCH", `${path}/feature-flags/from-console`, { rules: [] });
      await visitor.click("Delete");
      await (await visitor.see("dialog button.danger")).click();
      await visitor.until("the list is shown", () => visitor.page.url().includes("/segments"));
      assert.ok((await api.send("GET", `${path}/segments`)).items.every((it) => it.key !== "staff"));
      await visitor.leave();
    },

    async "a flag is archived, unarchived by undo, and deleted"() {
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=from-console");
      const isArchived = async () => (await getFlag("from-console")).archivedAt !== null;
      await visitor.click("Archive");
      await visitor.until("the flag is archived", isArchived);
      await visitor.click("Undo");
      await visitor.until("the flag is unarchived", async () => !(await isArchived()));
      await api.send("PATCH", `${path}/feature-flags/from-console`, { enabled: true });
      await visitor.open("/flag?key=from-console");
      await visitor.click("Archive");
      assert.match(await (await visitor.see("dialog")).evaluate((it) => it.innerText), /no longer exists for applications/);
      await (await visitor.see("dialog button.danger")).click();
      await visitor.until("the flag is archived again", isArchived);
      await visitor.click("Delete");
      await (await visitor.see("dialog button.danger")).click();
      await visitor.until("the list is shown", () => visitor.page.url().includes("/flags"));
      await assert.rejects(getFlag("from-console"), /404/);
      await visitor.leave();
    },
  };
};
