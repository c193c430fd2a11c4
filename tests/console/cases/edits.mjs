// Concurrent edits, late responses and expired keys.

import assert from "node:assert/strict";
import { Visitor } from "../visitor.mjs";

export const edits = ({ browser, base, project, key, api }) => {
  const path = `/v0/project/${project}`;
  const flagPath = (name) => `${path}/feature-flags/${name}`;
  const getFlag = (name) => api.send("GET", flagPath(name));
  const createFlag = (name, more = {}) => api.send("POST", `${path}/feature-flags`, { key: name, name: `Flag ${name}`, type: "boolean", ...more });
  const valueOf = (visitor, label) => visitor.page.$eval(`::-p-aria(${label})`, (it) => it.value);
  const focused = (visitor) => visitor.page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.closest("label")?.textContent);
  const isOn = (visitor, name) => visitor.page.$eval(`[role=switch][aria-label="${name}"]`, (it) => it.getAttribute("aria-checked") === "true");

  /** Holds the next request with a method and a path ending until `window.release()`. */
  const hold = (visitor, method, ending = "") =>
    visitor.page.evaluate((held, end) => {
      const send = window.fetch;
      window.held = 0;
      window.fetch = async (request) => {
        if (!window.held && request.method === held && new URL(request.url).pathname.endsWith(end)) {
          window.held = 1;
          await new Promise((resume) => {
            window.release = resume;
          });
        }
        return send(request);
      };
    }, method, ending);
  const isHeld = (visitor) => visitor.until("the request is held", () => visitor.page.evaluate(() => window.held > 0));
  const release = (visitor) => visitor.page.evaluate(() => window.release());

  return {
    async "weights keep the typed text, and empty weights are errors"() {
      await createFlag("shares");
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=shares");
      await visitor.choose('[aria-label="Everyone else gets"]', "rollout");
      const [on, off] = ["Everyone else gets: weight of on", "Everyone else gets: weight of off"];
      await visitor.type(on, "0.5");
      assert.equal(await valueOf(visitor, on), "0.5");
      assert.equal(await valueOf(visitor, off), "99.5", "two percentages add up to 100");
      await visitor.type(off, "9");
      await visitor.page.keyboard.press("Backspace");
      assert.equal(await valueOf(visitor, off), "");
      await visitor.click("Save");
      await visitor.see(".error-box");
      await visitor.until("the empty weight has the focus", async () => (await focused(visitor)) === off);
      assert.equal((await getFlag("shares")).version, 1);
      await visitor.type(off, "99.5");
      assert.equal(await visitor.page.$(".error-box"), null, "the error is gone once its field has changed");
      assert.doesNotMatch(await visitor.text(".save-bar"), /does not add up/);
      await visitor.click("Save");
      await visitor.until("the flag is saved", async () => (await getFlag("shares")).version === 2);
      assert.deepEqual((await getFlag("shares")).fallthrough.rollout, [{ variant: "on", weight: 0.5 }, { variant: "off", weight: 99.5 }]);
      await visitor.leave();
    },

    async "three percentages are balanced only by a button"() {
      const variants = ["a", "b", "c"].map((it) => ({ key: it, name: it, value: it }));
      const rollout = [50, 30, 20].map((weight, index) => ({ variant: variants[index].key, weight }));
      await createFlag("thirds", { type: "string", variants, fallthrough: { variant: null, rollout } });
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=thirds");
      await visitor.see(".save-bar, .history");
      const shown = () => Promise.all(variants.map((it) => valueOf(visitor, `Everyone else gets: weight of ${it.key}`)));
      await visitor.type("Everyone else gets: weight of a", "10");
      assert.deepEqual(await shown(), ["10", "30", "20"]);
      await visitor.click("Save");
      await visitor.see(".error-box");
      assert.equal((await getFlag("thirds")).version, 1);
      await (await visitor.see("button::-p-text(Balance)")).click();
      await visitor.until("the others are balanced", async () => (await shown()).join() === "10,54,36");
      await visitor.click("Save");
      await visitor.until("the flag is saved", async () => (await getFlag("thirds")).version === 2);
      assert.deepEqual((await getFlag("thirds")).fallthrough.rollout.map((it) => it.weight), [10, 54, 36]);
      await visitor.leave();
    },

    async "changes by others show before a switch, archive or undo"() {
      await createFlag("contested");
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=contested");
      await api.send("PATCH", flagPath("contested"), { fallthrough: { variant: "off" } });
      await visitor.click("contested");
      await visitor.see("dialog");
      assert.match(await visitor.text("dialog"), /another user changed[\s\S]*version 2[\s\S]*everyone gets “off”/);
      assert.equal((await getFlag("contested")).enabled, false);
      await (await visitor.see("dialog button.danger")).click();
      await visitor.until("the flag is on", async () => (await getFlag("contested")).enabled);
      await visitor.until("the page shows it", () => isOn(visitor, "contested"));
      assert.equal(await focused(visitor), "contested", "the focus returns to the switch");

      await api.send("PATCH", flagPath("contested"), { description: "theirs" });
      await visitor.click("Undo");
      await visitor.until("undo reports the change", async () => (await visitor.texts(".toast")).some((it) => /Not undone: another user changed contested/.test(it)));
      assert.equal((await getFlag("contested")).enabled, true);
      await visitor.click("Undo");
      await visitor.until("the change is undone", async () => !(await getFlag("contested")).enabled);

      await visitor.until("the page shows it", async () => !(await isOn(visitor, "contested")));
      await api.send("PATCH", flagPath("contested"), { description: "theirs again" });
      await visitor.click("Archive");
      await visitor.see("dialog");
      assert.equal((await getFlag("contested")).archivedAt, null);
      await (await visitor.see("dialog button.danger")).click();
      await visitor.until("the flag is archived", async () => (await getFlag("contested")).archivedAt !== null);
      await visitor.click("Undo");
      await visitor.until("the flag is unarchived", async () => (await getFlag("contested")).archivedAt === null);
      await visitor.leave();
    },

    async "edits are merged with changes by others"() {
      await createFlag("shared");
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=shared");
      await visitor.type("Name", "Mine");
      await api.send("PATCH", flagPath("shared"), { description: "Theirs", enabled: true });
      await visitor.click("Save");
      await visitor.see(".error-box .differences");
      assert.match(await visitor.text(".error-box"), /version 2[\s\S]*Theirs/);
      assert.equal(await valueOf(visitor, "Name"), "Mine");
      await visitor.click("Overwrite");
      await visitor.until("both are saved", async () => (await getFlag("shared")).version === 3);
      const { name, description, enabled } = await getFlag("shared");
      assert.deepEqual([name, description, enabled], ["Mine", "Theirs", true]);

      // A conflict also shows without a rejected save.
      await visitor.type("Name", "Mine again");
      await visitor.click("Flags");
      await visitor.until("another page is open", () => visitor.page.url().includes("/flags"));
      await api.send("PATCH", flagPath("shared"), { name: "Theirs again" });
      await visitor.page.goBack();
      await visitor.see(".error-box .differences");
      assert.match(await visitor.text(".error-box"), /Theirs again[\s\S]*both changed name/);
      assert.equal(await valueOf(visitor, "Name"), "Mine again");
      await visitor.click("Discard");
      await visitor.until("the saved name is shown", async () => (await valueOf(visitor, "Name")) === "Theirs again");

      const conditions = [{ attribute: "plan", operator: "equals", values: ["pro"] }];
      await api.send("POST", `${path}/segments`, { key: "shared", name: "Shared", conditions });
      await visitor.open("/segment?key=shared");
      await visitor.type("Values of condition 1", "team");
      await api.send("PATCH", `${path}/segments/shared`, { name: "Theirs" });
      await visitor.click("Save");
      await visitor.see(".error-box .differences");
      await visitor.click("Overwrite");
      const segment = () => api.send("GET", `${path}/segments/shared`);
      await visitor.until("both are saved", async () => (await segment()).version === 3);
      assert.deepEqual([(await segment()).name, (await segment()).conditions[0].values], ["Theirs", ["team"]]);
      await visitor.leave();
    },

    async "edits survive an expired key, navigation and a pending save"() {
      await createFlag("typed");
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=typed");
      await visitor.type("Name", "Typed");
      let isExpired = true;
      const body = { code: "unauthorized", detail: "The API key has expired.", status: 401, title: "Unauthorized" };
      await visitor.mock("/feature-flags/typed", (request) => isExpired && request.method() === "PATCH" && { status: 401, body });
      await visitor.click("Save");
      await visitor.see("dialog #key");
      assert.match(await visitor.text("dialog"), /expired/);
      isExpired = false;
      await visitor.type("API key", key);
      await visitor.page.keyboard.press("Enter");
      await visitor.until("the dialog is closed", async () => (await visitor.page.$("dialog")) === null);
      assert.equal(await valueOf(visitor, "Name"), "Typed");

      await visitor.click("Flags");
      await visitor.until("another page is open", () => visitor.page.url().includes("/flags"));
      await visitor.page.goBack();
      await visitor.see(".save-bar");
      assert.equal(await valueOf(visitor, "Name"), "Typed");
      let warnings = 0;
      visitor.page.on("dialog", (it) => {
        warnings++;
        void it.accept();
      });
      await visitor.page.reload();
      await visitor.settle();
      assert.equal(warnings, 1, "leaving with unsaved changes shows a warning");
      assert.equal(await valueOf(visitor, "Name"), "Typed");

      await hold(visitor, "PATCH");
      await visitor.click("Save");
      await isHeld(visitor);
      await visitor.type("Description", "typed meanwhile");
      await release(visitor);
      await visitor.until("the flag is saved", async () => (await getFlag("typed")).name === "Typed");
      await visitor.until("the page shows it", async () => (await visitor.text("h1")) === "Typed");
      assert.equal(await valueOf(visitor, "Description"), "typed meanwhile");
      await visitor.click("Save");
      await visitor.until("the rest is saved", async () => (await getFlag("typed")).description === "typed meanwhile");
      await visitor.leave();
    },

    async "a double click switches one flag, and all switches are undone"() {
      for (const name of ["twice-a", "twice-b"]) await createFlag(name);
      const visitor = await Visitor.enter(browser, base, key, "/flags?show=off&q=twice");
      const state = async () => Promise.all(["twice-a", "twice-b"].map(async (it) => (await getFlag(it)).enabled));
      const first = await visitor.see('[role=switch][aria-label="twice-a"]');
      const { x, y } = await first.clickablePoint();
      // A slow double click: the first click has been applied before the second.
      await visitor.page.mouse.click(x, y);
      await visitor.until("the first flag is on", async () => (await state())[0]);
      await visitor.until("the page shows it", () => isOn(visitor, "twice-a"));
      await visitor.page.mouse.down({ clickCount: 2 });
      await visitor.page.mouse.up({ clickCount: 2 });
      await visitor.settle();
      assert.deepEqual(await state(), [true, false]);
      assert.equal(await focused(visitor), "twice-a");
      // Key presses have no click count. The second one comes while the first is pending.
      let sent = 0;
      visitor.page.on("request", (it) => {
        if (it.method() === "PATCH") sent++;
      });
      await hold(visitor, "PATCH");
      const second = await visitor.see('[role=switch][aria-label="twice-b"]');
      await second.focus();
      await visitor.page.keyboard.press("Enter");
      await isHeld(visitor);
      await visitor.page.keyboard.press("Enter");
      await release(visitor);
      await visitor.settle();
      assert.equal(sent, 1, "the second press sends no request");
      await visitor.until("both are on", async () => (await state()).every(Boolean));
      await visitor.until("both can be undone", async () => (await visitor.texts(".toast .link")).length === 2);
      await visitor.page.keyboard.press("z");
      await visitor.until("the second flag is off", async () => !(await state())[1]);
      await visitor.page.keyboard.press("z");
      await visitor.until("both are off", async () => !(await state())[0]);
      await visitor.leave();
    },

    async "a request whose response was lost is applied once"() {
      const collections = `/v0/projects/${project}/event-marker-collections`;
      const { id } = await api.send("POST", collections, { name: "Deploys" });
      const visitor = await Visitor.enter(browser, base, key, `/markers?collection=${id}`);
      await visitor.type("Title", "Once");
      await visitor.page.evaluate(() => {
        const send = window.fetch;
        window.fetch = async (request) => {
          const response = await send(request);
          if (request.method !== "POST") return response;
          window.fetch = send;
          throw new TypeError("response lost");
        };
      });
      await visitor.click("Add");
      await visitor.see(".error-box");
      await visitor.click("Add");
      await visitor.until("the marker is shown", async () => (await visitor.texts(".row-title")).some((it) => it.startsWith("Once")));
      assert.equal((await api.send("GET", `${collections}/${id}`)).eventCount, 1);
      await api.send("DELETE", `${collections}/${id}`);
      await visitor.leave();
    },

    async "late responses do not navigate away"() {
      const visitor = await Visitor.enter(browser, base, key, "/flag?new=1");
      await visitor.type("Key", "late");
      await visitor.type("Name", "Late");
      await hold(visitor, "POST");
      await visitor.click("Create flag");
      await isHeld(visitor);
      await visitor.click("Settings");
      await visitor.until("another page is open", () => visitor.page.url().includes("/settings"));
      await release(visitor);
      await visitor.see(".toast a");
      assert.match(visitor.page.url(), /\/settings/);
      await (await visitor.see(".toast a")).click();
      await visitor.until("the link opens the flag", () => visitor.page.url().includes("key=late"));
      await visitor.open("/flag?new=1");
      assert.equal(await valueOf(visitor, "Key"), "", "a created flag leaves no draft");

      await visitor.open("/errors?range=7d");
      await visitor.type("Filter errors", "unhandled errors");
      await hold(visitor, "POST", "/interpret");
      await visitor.page.keyboard.press("Enter");
      await isHeld(visitor);
      await visitor.type("Filter errors", "in staging");
      await visitor.click("24h");
      await visitor.until("another range is shown", () => visitor.page.url().includes("24h"));
      await visitor.settle();
      await release(visitor);
      await visitor.see(".toast a");
      assert.match(visitor.page.url(), /range=24h/);
      assert.equal(await valueOf(visitor, "Filter errors"), "in staging");
      await visitor.leave();
    },

    async "errors focus their field, and rules keep names and order"() {
      await createFlag("ruled");
      const visitor = await Visitor.enter(browser, base, key, "/flag?new=1");
      await visitor.type("Key", "ruled");
      await visitor.type("Name", "Ruled");
      await visitor.click("Create flag");
      await visitor.see(".field-error");
      const described = await visitor.page.$eval('[aria-invalid="true"]', (it) => [it === document.activeElement, it.value, document.getElementById(it.getAttribute("aria-describedby"))?.textContent]);
      assert.deepEqual(described.slice(0, 2), [true, "ruled"]);
      assert.match(described[2], /ruled|exists|key/i);
      await visitor.click("Discard");
      await visitor.until("the draft is discarded", async () => (await valueOf(visitor, "Key")) === "");

      await visitor.open("/flag?key=ruled");
      for (const number of [1, 2, 3]) {
        await visitor.click("Add rule");
        await visitor.type(`Name of rule ${number}`, `R${number}`);
      }
      const names = () => visitor.page.$$eval(".rule > header input", (all) => all.map((it) => it.value));
      assert.deepEqual(await visitor.page.$$eval("fieldset.rule legend", (all) => all.map((it) => it.textContent)), ["Rule 1: R1", "Rule 2: R2", "Rule 3: R3"]);
      await (await visitor.see('[aria-label="Move rule 3 up"]')).focus();
      await visitor.page.keyboard.press("Enter");
      await visitor.until("the rule moved up", async () => (await names()).join() === "R1,R3,R2");
      assert.equal(await focused(visitor), "Move rule 2 up");
      await visitor.page.keyboard.press("Enter");
      await visitor.until("the rule moved up again", async () => (await names()).join() === "R3,R1,R2");
      assert.equal(await focused(visitor), "Move rule 1 down");
      await visitor.click("Save");
      // The new rules have empty conditions.
      await visitor.until("the first error has the focus", async () => (await focused(visitor)) === "Attribute of condition 1");
      await visitor.click("Discard");
      await visitor.leave();
    },

    async "test results disappear with a new version"() {
      await createFlag("tested");
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=tested");
      await visitor.click("Evaluate");
      await visitor.see(".outcome");
      await visitor.click("tested");
      await visitor.until("the result is gone", async () => (await visitor.page.$(".outcome")) === null);
      await visitor.until("the flag is on", async () => (await getFlag("tested")).enabled);
      await visitor.type("Name", "Edited");
      assert.match(await visitor.text('[aria-label="Test targeting"]'), /Includes your unsaved changes/);
      await visitor.click("Discard");
      await visitor.leave();
    },
  };
};
