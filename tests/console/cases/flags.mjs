// Flags, segments and their history.

import assert from "node:assert/strict";
import { Visitor } from "../visitor.mjs";

export const flags = ({ browser, base, project, key, api }) => {
  const path = `/v0/project/${project}`;
  const getFlag = (name) => api.send("GET", `${path}/feature-flags/${name}`);
  return {
    async "a segment is made, a flag asks for it and serves shares, is tried out and switched on"() {
      const visitor = await Visitor.enter(browser, base, key, "/segments");
      await visitor.click("New segment");
      await visitor.type("Key", "staff");
      await visitor.type("Name", "Staff");
      await visitor.click("Make the segment");
      // Nobody knows of what attribute.
      await visitor.see(".fault");
      await visitor.type("Attribute of condition 1", "email");
      await visitor.choose('[aria-label="Operator of condition 1"]', "ends_with");
      await visitor.type("Values of condition 1", "@shop.example");
      await visitor.click("Make the segment");
      await visitor.until("it has an address", () => visitor.page.url().includes("key=staff"));
      const segment = await api.send("GET", `${path}/segments/staff`);
      assert.deepEqual(segment.conditions, [{ attribute: "email", operator: "ends_with", values: ["@shop.example"] }]);

      await visitor.page.keyboard.press("g");
      await visitor.page.keyboard.press("f");
      await visitor.click("New flag");
      await visitor.type("Key", "not a key!");
      await visitor.type("Name", "From the console");
      await visitor.click("Make the flag");
      await visitor.see(".fault");
      assert.equal(await visitor.page.$eval(".form input", (it) => it.value), "not a key!", "what was typed is kept");
      await visitor.type("Key", "from-console");
      await visitor.click("Add a rule");
      await visitor.type("Attribute of condition 1", "country");
      await visitor.choose('[aria-label="Operator of condition 1"]', "in");
      await visitor.type("Values of condition 1", "DE");
      await visitor.click("Add a condition");
      await visitor.choose('[aria-label="Operator of condition 2"]', "in_segment");
      await visitor.choose('[aria-label="Segment of condition 2"]', "staff");
      await visitor.choose('[aria-label="Rule 1 serves: variant"]', "off");
      await visitor.choose('[aria-label="Everyone else gets"]', "rollout");
      await visitor.type("Everyone else gets: weight of on", "75");
      await visitor.click("Make it 100");
      await visitor.click("Make the flag");
      await visitor.until("it has an address", () => visitor.page.url().includes("key=from-console"));
      const made = await getFlag("from-console");
      assert.deepEqual(made.fallthrough.rollout, [{ variant: "on", weight: 60 }, { variant: "off", weight: 40 }]);
      assert.deepEqual(made.rules[0].conditions, [
        { attribute: "country", operator: "in", values: ["DE"] },
        { attribute: null, operator: "in_segment", values: ["staff"] },
      ]);
      await visitor.click("from-console");
      await visitor.until("it is on", async () => (await getFlag("from-console")).enabled);
      await visitor.type("Value 1", "DE");
      await visitor.click("Add an attribute");
      await visitor.type("Attribute 2", "email");
      await visitor.type("Value 2", "mira@shop.example");
      await visitor.click("Ask");
      await visitor.see(".outcome");
      assert.match(await visitor.text(".outcome"), /^off\b[\s\S]*rule 1/);
      await visitor.type("Value 2", "mira@elsewhere.example");
      await visitor.click("Ask");
      await visitor.until("the rule does not match", async () => /no rule matched/.test(await visitor.text(".outcome")));
      await visitor.leave();
    },

    async "what was done to a flag is told, and taken back"() {
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=from-console");
      await visitor.type("Name", "Renamed");
      await visitor.click("Save");
      const told = () => visitor.texts(".history b");
      await visitor.until("it is told", async () => (await told()).join() === "Changed its name,Switched on,Created");
      assert.match((await visitor.texts(".history li"))[0], /From the console[\s\S]*Renamed/);
      const made = await getFlag("from-console");
      assert.deepEqual([made.name, made.enabled, made.version], ["Renamed", true, 3]);

      await visitor.click("Restore version 1");
      await visitor.see("dialog .differences");
      assert.match(await visitor.text("dialog"), /Renamed[\s\S]*From the console/);
      await visitor.click("Restore");
      await visitor.until("it is as it was", async () => !(await getFlag("from-console")).enabled);
      const back = await getFlag("from-console");
      assert.deepEqual([back.name, back.version], ["From the console", 4]);
      const { items } = await api.send("GET", `${path}/feature-flags/from-console/changes`);
      assert.deepEqual(items.map((it) => it.kind), ["restored", "updated", "updated", "created"]);
      await visitor.until("that is told too", async () => (await told())[0] === "Restored");
      assert.equal(await visitor.page.$eval('[aria-label="Switch off from-console"], [role=switch]', (it) => it.getAttribute("aria-checked")), "false");

      await visitor.open("");
      await visitor.until("its changes are lines on the plot", async () =>
        (await visitor.page.$$eval(".mark-card b", (all) => all.map((it) => it.textContent))).includes("from-console"),
      );
      await visitor.leave();
    },

    async "a segment that a flag uses stays, and why is said; one that none uses goes"() {
      const visitor = await Visitor.enter(browser, base, key, "/segment?key=staff");
      await visitor.until("its flags are told", async () => (await visitor.texts("aside .row-title")).join().includes("from-console"));
      await visitor.type("Name", "Everybody at work");
      await visitor.click("Save");
      await visitor.until("it is saved", async () => (await api.send("GET", `${path}/segments/staff`)).name === "Everybody at work");
      const remove = async () => {
        await visitor.click("Delete");
        await (await visitor.see("dialog button.danger")).click();
      };
      await remove();
      await visitor.see(".refused");
      assert.match(await visitor.text(".refused"), /from-console[\s\S]*rules/);
      await api.send("PATCH", `${path}/feature-flags/from-console`, { rules: [] });
      await remove();
      await visitor.until("the list is shown", () => visitor.page.url().includes("/segments"));
      assert.deepEqual((await api.send("GET", `${path}/segments`)).items.map((it) => it.key), ["hostile"]);
      await visitor.leave();
    },

    async "a flag is archived, comes back by Undo, and is deleted once it is archived again"() {
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=from-console");
      const isArchived = async () => (await getFlag("from-console")).archivedAt !== null;
      await visitor.click("Archive");
      await visitor.until("it is archived", isArchived);
      await visitor.click("Undo");
      await visitor.until("it is back", async () => !(await isArchived()));
      await visitor.click("Archive");
      await visitor.until("it is archived again", isArchived);
      await visitor.click("Delete");
      await (await visitor.see("dialog button.danger")).click();
      await visitor.until("the list is shown", () => visitor.page.url().includes("/flags"));
      const { items } = await api.send("GET", `${path}/feature-flags?archived=true`);
      assert.deepEqual(items.map((it) => it.key), ["hostile"]);
      await visitor.leave();
    },
  };
};
