// What is typed and changed while others change the same, answers come late, and keys end.

import assert from "node:assert/strict";
import { Visitor } from "../visitor.mjs";

export const edits = ({ browser, base, project, key, api }) => {
  const path = `/v0/project/${project}`;
  const flagPath = (name) => `${path}/feature-flags/${name}`;
  const getFlag = (name) => api.send("GET", flagPath(name));
  const makeFlag = (name, more = {}) => api.send("POST", `${path}/feature-flags`, { key: name, name: `Flag ${name}`, type: "boolean", ...more });
  const valueOf = (visitor, label) => visitor.page.$eval(`::-p-aria(${label})`, (it) => it.value);
  const focused = (visitor) => visitor.page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.closest("label")?.textContent);
  const isOn = (visitor, name) => visitor.page.$eval(`[role=switch][aria-label="${name}"]`, (it) => it.getAttribute("aria-checked") === "true");

  /** Holds the next request of a method until `window.release()`, of those whose paths end so. */
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
  const isHeld = (visitor) => visitor.until("it is underway", () => visitor.page.evaluate(() => window.held > 0));
  const release = (visitor) => visitor.page.evaluate(() => window.release());

  return {
    async "a share is what was typed, and an empty one is none"() {
      await makeFlag("shares");
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=shares");
      await visitor.choose('[aria-label="Everyone else gets"]', "rollout");
      const [on, off] = ["Everyone else gets: weight of on", "Everyone else gets: weight of off"];
      await visitor.type(on, "0.5");
      assert.equal(await valueOf(visitor, on), "0.5");
      assert.match(await visitor.text(".save-bar"), /do not add up to 100[\s\S]*on for 0\.99 %, off for 99\.01 %/);
      await visitor.type(off, "9");
      await visitor.page.keyboard.press("Backspace");
      assert.equal(await valueOf(visitor, off), "", "an empty field is empty");
      await visitor.click("Save");
      await visitor.see(".refused");
      await visitor.until("what is missing has the focus", async () => (await focused(visitor)) === off);
      assert.equal((await getFlag("shares")).version, 1);
      await visitor.type(off, "99.5");
      assert.doesNotMatch(await visitor.text(".save-bar"), /do not add up/);
      await visitor.click("Save");
      await visitor.until("it is saved", async () => (await getFlag("shares")).version === 2);
      assert.deepEqual((await getFlag("shares")).fallthrough.rollout, [{ variant: "on", weight: 0.5 }, { variant: "off", weight: 99.5 }]);
      await visitor.leave();
    },

    async "what somebody else changed is neither switched, archived nor undone before it was shown"() {
      await makeFlag("contested");
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=contested");
      await api.send("PATCH", flagPath("contested"), { fallthrough: { variant: "off" } });
      await visitor.click("contested");
      await visitor.see("dialog");
      assert.match(await visitor.text("dialog"), /Somebody changed[\s\S]*version 2[\s\S]*serve off/);
      assert.equal((await getFlag("contested")).enabled, false);
      await (await visitor.see("dialog button.danger")).click();
      await visitor.until("it is on", async () => (await getFlag("contested")).enabled);
      await visitor.until("that is shown", () => isOn(visitor, "contested"));
      assert.equal(await focused(visitor), "contested", "the switch has the focus again");

      await api.send("PATCH", flagPath("contested"), { description: "theirs" });
      await visitor.click("Undo");
      await visitor.until("it asks again", async () => (await visitor.texts(".toast")).some((it) => /Somebody changed contested since/.test(it)));
      assert.equal((await getFlag("contested")).enabled, true);
      await visitor.click("Undo");
      await visitor.until("it is undone", async () => !(await getFlag("contested")).enabled);

      await visitor.until("that is shown", async () => !(await isOn(visitor, "contested")));
      await api.send("PATCH", flagPath("contested"), { description: "theirs again" });
      await visitor.click("Archive");
      await visitor.see("dialog");
      assert.equal((await getFlag("contested")).archivedAt, null);
      await (await visitor.see("dialog button.danger")).click();
      await visitor.until("it is archived", async () => (await getFlag("contested")).archivedAt !== null);
      await visitor.click("Undo");
      await visitor.until("it is back", async () => (await getFlag("contested")).archivedAt === null);
      await visitor.leave();
    },

    async "what one types stays beside what others saved, and both are saved"() {
      await makeFlag("shared");
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=shared");
      await visitor.type("Name", "Mine");
      await api.send("PATCH", flagPath("shared"), { description: "Theirs", enabled: true });
      await visitor.click("Save");
      await visitor.see(".refused .differences");
      assert.match(await visitor.text(".refused"), /version 2[\s\S]*Theirs/);
      assert.equal(await valueOf(visitor, "Name"), "Mine");
      await visitor.click("Save over it");
      await visitor.until("both are saved", async () => (await getFlag("shared")).version === 3);
      const { name, description, enabled } = await getFlag("shared");
      assert.deepEqual([name, description, enabled], ["Mine", "Theirs", true]);

      // What comes in by another way than a refused save is told as well, before it is saved over.
      await visitor.type("Name", "Mine again");
      await visitor.click("Flags");
      await visitor.until("it is elsewhere", () => visitor.page.url().includes("/flags"));
      await api.send("PATCH", flagPath("shared"), { name: "Theirs again" });
      await visitor.page.goBack();
      await visitor.see(".refused .differences");
      assert.match(await visitor.text(".refused"), /Theirs again[\s\S]*its name too/);
      assert.equal(await valueOf(visitor, "Name"), "Mine again");
      await visitor.click("Discard");
      await visitor.until("theirs is shown", async () => (await valueOf(visitor, "Name")) === "Theirs again");

      const conditions = [{ attribute: "plan", operator: "equals", values: ["pro"] }];
      await api.send("POST", `${path}/segments`, { key: "shared", name: "Shared", conditions });
      await visitor.open("/segment?key=shared");
      await visitor.type("Values of condition 1", "team");
      await api.send("PATCH", `${path}/segments/shared`, { name: "Theirs" });
      await visitor.click("Save");
      await visitor.see(".refused .differences");
      await visitor.click("Save over it");
      const segment = () => api.send("GET", `${path}/segments/shared`);
      await visitor.until("both are saved", async () => (await segment()).version === 3);
      assert.deepEqual([(await segment()).name, (await segment()).conditions[0].values], ["Theirs", ["team"]]);
      await visitor.leave();
    },

    async "a key that ends, another page and a save underway take nothing that was typed"() {
      await makeFlag("typed");
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=typed");
      await visitor.type("Name", "Typed");
      let isEnded = true;
      const body = { code: "unauthorized", detail: "The API key has expired.", status: 401, title: "Unauthorized" };
      await visitor.answer("/feature-flags/typed", (request) => isEnded && request.method() === "PATCH" && { status: 401, body });
      await visitor.click("Save");
      await visitor.see("dialog #key");
      assert.match(await visitor.text("dialog"), /expired/);
      isEnded = false;
      await visitor.type("API key", key);
      await visitor.page.keyboard.press("Enter");
      await visitor.until("it goes on", async () => (await visitor.page.$("dialog")) === null);
      assert.equal(await valueOf(visitor, "Name"), "Typed");

      await visitor.click("Flags");
      await visitor.until("it is elsewhere", () => visitor.page.url().includes("/flags"));
      await visitor.page.goBack();
      await visitor.see(".save-bar");
      assert.equal(await valueOf(visitor, "Name"), "Typed");
      let asked = 0;
      visitor.page.on("dialog", (it) => {
        asked++;
        void it.accept();
      });
      await visitor.page.reload();
      await visitor.settle();
      assert.equal(asked, 1, "whoever leaves with what is not saved is asked");
      assert.equal(await valueOf(visitor, "Name"), "Typed");

      await hold(visitor, "PATCH");
      await visitor.click("Save");
      await isHeld(visitor);
      await visitor.type("What it is for", "typed meanwhile");
      await release(visitor);
      await visitor.until("it is saved", async () => (await getFlag("typed")).name === "Typed");
      await visitor.until("that is shown", async () => (await visitor.text("h1")) === "Typed");
      assert.equal(await valueOf(visitor, "What it is for"), "typed meanwhile");
      await visitor.click("Save");
      await visitor.until("the rest is saved", async () => (await getFlag("typed")).description === "typed meanwhile");
      await visitor.leave();
    },

    async "a double click in a filtered list switches one flag, and several switches are undone"() {
      for (const name of ["twice-a", "twice-b"]) await makeFlag(name);
      const visitor = await Visitor.enter(browser, base, key, "/flags?show=off&q=twice");
      const state = async () => Promise.all(["twice-a", "twice-b"].map(async (it) => (await getFlag(it)).enabled));
      const first = await visitor.see('[role=switch][aria-label="twice-a"]');
      const { x, y } = await first.clickablePoint();
      // As slow as a double click may be: the first click has been answered by then.
      await visitor.page.mouse.click(x, y);
      await visitor.until("it is on", async () => (await state())[0]);
      await visitor.until("that is shown", () => isOn(visitor, "twice-a"));
      await visitor.page.mouse.down({ clickCount: 2 });
      await visitor.page.mouse.up({ clickCount: 2 });
      await visitor.settle();
      assert.deepEqual(await state(), [true, false]);
      assert.equal(await focused(visitor), "twice-a");
      // Keys count no clicks: the second comes while the first is underway.
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
      assert.equal(sent, 1, "the second is not sent");
      await visitor.until("both are on", async () => (await state()).every(Boolean));
      await visitor.until("both can be undone", async () => (await visitor.texts(".toast .link")).length === 2);
      await visitor.page.keyboard.press("z");
      await visitor.until("one is off", async () => !(await state())[1]);
      await visitor.page.keyboard.press("z");
      await visitor.until("both are off", async () => !(await state())[0]);
      await visitor.leave();
    },

    async "what is sent again after its answer was lost is carried out once"() {
      const collections = `/v0/projects/${project}/event-marker-collections`;
      const { id } = await api.send("POST", collections, { name: "Deploys" });
      const visitor = await Visitor.enter(browser, base, key, `/markers?collection=${id}`);
      await visitor.type("What happened", "Once");
      await visitor.page.evaluate(() => {
        const send = window.fetch;
        window.fetch = async (request) => {
          const response = await send(request);
          if (request.method !== "POST") return response;
          window.fetch = send;
          throw new TypeError("the answer was lost");
        };
      });
      await visitor.click("Add");
      await visitor.see(".refused");
      await visitor.click("Add");
      await visitor.until("it is shown", async () => (await visitor.texts(".row-title")).some((it) => it.startsWith("Once")));
      assert.equal((await api.send("GET", `${collections}/${id}`)).eventCount, 1);
      await api.send("DELETE", `${collections}/${id}`);
      await visitor.leave();
    },

    async "an answer that comes late pulls nobody away"() {
      const visitor = await Visitor.enter(browser, base, key, "/flag?new=1");
      await visitor.type("Key", "late");
      await visitor.type("Name", "Late");
      await hold(visitor, "POST");
      await visitor.click("Make the flag");
      await isHeld(visitor);
      await visitor.click("Settings");
      await visitor.until("it is elsewhere", () => visitor.page.url().includes("/settings"));
      await release(visitor);
      await visitor.see(".toast a");
      assert.match(visitor.page.url(), /\/settings/);
      await (await visitor.see(".toast a")).click();
      await visitor.until("the link leads there", () => visitor.page.url().includes("key=late"));
      await visitor.open("/flag?new=1");
      assert.equal(await valueOf(visitor, "Key"), "", "what was made is no draft any more");

      await visitor.open("/errors?range=7d");
      await visitor.type("Filter errors in words", "unhandled errors");
      await hold(visitor, "POST", "/interpret");
      await visitor.page.keyboard.press("Enter");
      await isHeld(visitor);
      await visitor.type("Filter errors in words", "in staging");
      await visitor.click("24h");
      await visitor.until("another time is shown", () => visitor.page.url().includes("24h"));
      await visitor.settle();
      await release(visitor);
      await visitor.see(".toast a");
      assert.match(visitor.page.url(), /range=24h/);
      assert.equal(await valueOf(visitor, "Filter errors in words"), "in staging");
      await visitor.leave();
    },

    async "a refusal leads to its field, and rules keep their names and places"() {
      await makeFlag("ruled");
      const visitor = await Visitor.enter(browser, base, key, "/flag?new=1");
      await visitor.type("Key", "ruled");
      await visitor.type("Name", "Ruled");
      await visitor.click("Make the flag");
      await visitor.see(".fault");
      const described = await visitor.page.$eval('[aria-invalid="true"]', (it) => [it === document.activeElement, it.value, document.getElementById(it.getAttribute("aria-describedby"))?.textContent]);
      assert.deepEqual(described.slice(0, 2), [true, "ruled"]);
      assert.match(described[2], /ruled|exists|key/i);
      await visitor.click("Discard");
      await visitor.until("nothing is left of it", async () => (await valueOf(visitor, "Key")) === "");

      await visitor.open("/flag?key=ruled");
      for (const number of [1, 2, 3]) {
        await visitor.click("Add a rule");
        await visitor.type(`Name of rule ${number}`, `R${number}`);
      }
      const names = () => visitor.page.$$eval(".rule > header input", (all) => all.map((it) => it.value));
      assert.deepEqual(await visitor.page.$$eval("fieldset.rule legend", (all) => all.map((it) => it.textContent)), ["Rule 1: R1", "Rule 2: R2", "Rule 3: R3"]);
      await (await visitor.see('[aria-label="Move rule 3 up"]')).focus();
      await visitor.page.keyboard.press("Enter");
      await visitor.until("it moved", async () => (await names()).join() === "R1,R3,R2");
      assert.equal(await focused(visitor), "Move rule 2 up");
      await visitor.page.keyboard.press("Enter");
      await visitor.until("it moved on", async () => (await names()).join() === "R3,R1,R2");
      assert.equal(await focused(visitor), "Move rule 1 down");
      await visitor.click("Save");
      // The second condition that is wrong is not the first that is.
      await visitor.until("the first fault has the focus", async () => (await focused(visitor)) === "Attribute of condition 1");
      await visitor.click("Discard");
      await visitor.leave();
    },

    async "an answer of the tester goes with the version that gave it"() {
      await makeFlag("tested");
      const visitor = await Visitor.enter(browser, base, key, "/flag?key=tested");
      await visitor.click("Ask");
      await visitor.see(".outcome");
      await visitor.click("tested");
      await visitor.until("it is gone", async () => (await visitor.page.$(".outcome")) === null);
      await visitor.until("it is on", async () => (await getFlag("tested")).enabled);
      await visitor.type("Name", "Edited");
      assert.match(await visitor.text('[aria-label="Who gets what"]'), /as it is saved, version 2/);
      await visitor.click("Discard");
      await visitor.leave();
    },
  };
};
