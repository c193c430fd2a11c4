// Links, history, focus, and incomplete lists.

import assert from "node:assert/strict";
import { mockCodeExchange, Visitor } from "../visitor.mjs";

const HOUR = 3_600_000;
const uuid = (number) => `00000000-0000-7000-8000-${number.toString(16).padStart(12, "0")}`;

export const kept = ({ browser, base, project, key, readOnlyKey, foreignKey, linkCode, api, known, listErrors }) => {
  const row = (number) => ({
    errorId: uuid(number), title: `Error ${number}`, type: "Error", culprit: "/somewhere", status: "open", count: 9, users: 3,
    firstSeen: new Date(Date.now() - 9e8).toISOString(), lastSeen: new Date(Date.now() - number * 6e4).toISOString(), series: [1, 2],
  });
  const params = (request) => new URL(request.url()).searchParams;
  /** Mocks two pages of errors: 50, then 100. Returns the cursors of the requests. */
  const mockTwoPages = async (visitor) => {
    const cursors = [];
    await visitor.mock("/errors/query", async (request) => {
      const { cursor, limit } = JSON.parse(await request.fetchPostData());
      if (limit === 1) return { body: { items: [], nextCursor: null } };
      cursors.push(cursor);
      const [first, count] = cursor ? [50, 100] : [0, 50];
      return { body: { items: Array.from({ length: count }, (_, index) => row(first + index)), nextCursor: cursor ? null : "more" } };
    });
    return cursors;
  };

  return {
    async "the newest of many markers show, and the plot says so"() {
      const visitor = await Visitor.enter(browser, base, key, null);
      const [count, now] = [5_000, Date.now()];
      const at = (number) => now - (count - number) * 60_000;
      const name = (number) => `Marker ${number}`;
      const collection = { id: uuid(1), name: "Many", description: "", eventCount: count, createdAt: new Date().toISOString(), updatedAt: new Date().toISOString() };
      await visitor.mock("/activity", () => {
        const items = Array.from({ length: 100 }, (_, index) => count - 1 - index).map((it) => (
          { kind: "marker", id: uuid(it), at: new Date(at(it)).toISOString(), name: name(it), description: "", user: null, collectionId: collection.id }
        ));
        return { body: { items, leftOut: { markers: count - 100, flagChanges: 0, releases: 0, isExact: true } } };
      });
      await visitor.mock("/event-marker-collections", () => ({ body: { items: [collection], nextCursor: null } }));
      await visitor.mock(`/${collection.id}/events`, (request) => {
        const [from, to, cursor] = ["from", "to", "cursor"].map((it) => params(request).get(it));
        const all = Array.from({ length: count }, (_, number) => number).filter((it) => at(it) >= Number(from ?? 0) && (!to || at(it) < Number(to)));
        const start = cursor ? all.indexOf(Number(cursor)) : 0;
        const items = all.slice(start, start + 100).map((it) => ({ id: uuid(it), name: name(it), description: "", occurredAt: new Date(at(it)).toISOString(), attributes: {} }));
        const next = all[start + 100];
        return { body: { items, nextCursor: next === undefined ? null : String(next) } };
      });
      await visitor.open("?range=7d");
      // Rows outside the viewport have no rendered text.
      const titles = (rows) => visitor.page.$$eval(`${rows} .row-title`, (all) => all.map((it) => it.textContent));
      await visitor.until("the newest marker is listed", async () => (await titles("li")).includes(name(count - 1)));
      assert.match(await visitor.text(".plot figcaption"), /4,900 older ones not shown/);
      await visitor.open("/markers");
      await visitor.see(".rows .row-title");
      const shown = () => titles(".editor > div li");
      const newest = await shown();
      assert.equal(newest[0], name(count - 1));
      await (await visitor.see("button.more")).click();
      await visitor.until("more markers are shown", async () => (await shown()).length > newest.length);
      const more = await shown();
      assert.deepEqual(more, more.map((_, index) => name(count - 1 - index)), "no marker is missing");
      await visitor.leave();
    },

    async "links keep project, event and filters"() {
      const { error } = known;
      const path = `/v0/projects/${project}/errors/${error.errorId}`;
      const [event] = (await api.send("GET", `${path}/events?limit=1`)).items;
      const visitor = await Visitor.enter(browser, base, key, `/errors?range=90d&f=level.is_set.&status=any&sort=count`);
      await visitor.until("the project is in the address", () => params(visitor.page).get("project") === project);
      const before = visitor.page.url();
      const title = await visitor.see(".errors-table a.title");
      await title.click();
      await visitor.see("a.back");
      await visitor.until("the error is open", () => visitor.page.url().includes("/error?"));
      // Without history, the link cannot just go back.
      await visitor.open(visitor.page.url().slice(`${base}/console`.length));
      await (await visitor.see("a.back")).click();
      const kept = (url) => ["project", "range", "f", "status", "sort"].map((it) => new URL(url).searchParams.get(it));
      await visitor.until("the list is open", () => visitor.page.url().includes("/errors?"));
      assert.deepEqual(kept(visitor.page.url()), kept(before));
      await visitor.click("Overview");
      await visitor.until("the overview is open", () => !visitor.page.url().includes("/errors"));
      assert.deepEqual(kept(visitor.page.url()), kept(before));

      const events = Array.from({ length: 60 }, (_, index) => ({ ...event, eventId: uuid(7_000 + index).replaceAll("-", "") }));
      await visitor.mock(`/${error.errorId}/events/query`, async (request) => {
        const { event: requested } = JSON.parse(await request.fetchPostData());
        const start = requested ? events.findIndex((it) => it.eventId === requested) : 0;
        return { body: { items: events.slice(start, start + 2), total: events.length, position: start + 1, nextCursor: null } };
      });
      await visitor.open(`/error?id=${error.errorId}&event=${events[25].eventId}`);
      await visitor.until("the page can step to the newest event", async () => (await visitor.page.$(".stepper button:not(:disabled)")) !== null);
      assert.equal(params(visitor.page).get("event"), events[25].eventId);
      assert.match(await visitor.text(".stepper"), /Event 26 of 60/);
      assert.doesNotMatch(await visitor.text(".stepper"), /no longer exists/);
      await visitor.leave();
    },

    async "going back restores the list, and changed rows leave it"() {
      const visitor = await Visitor.enter(browser, base, key, null);
      const cursors = await mockTwoPages(visitor);
      await visitor.open("/errors");
      await (await visitor.see("button.more")).click();
      const last = () => visitor.page.$$eval(".errors-table tr", (all) => Number(all.at(-1).closest("table").getAttribute("aria-rowcount")) - 1);
      await visitor.until("150 are listed", async () => (await last()) === 150);
      await visitor.page.evaluate(() => scrollTo(0, 4000));
      const findRow = () =>
        visitor.page.evaluate(() => [...document.querySelectorAll("[data-row]")].find((it) => it.getBoundingClientRect().top > 300)?.dataset.row);
      await visitor.until("the rows there are rendered", async () => (await findRow()) !== undefined);
      const index = await findRow();
      const before = await visitor.page.evaluate(() => scrollY);
      await (await visitor.see(`[data-row="${index}"] a.title`)).click();
      await visitor.see("a.back");
      await (await visitor.see("a.back")).click();
      await visitor.until("the scroll position is restored", async () => Math.abs((await visitor.page.evaluate(() => scrollY)) - before) < 5);
      assert.equal(await last(), 150);
      await visitor.until("the row has the focus", () => visitor.page.evaluate((it) => document.activeElement.closest("[data-row]")?.dataset.row === it, index));
      assert.deepEqual(cursors.filter(Boolean), ["more"], "the second page is not loaded again");

      await visitor.mock(uuid(Number(index)), () => ({ body: { ...row(Number(index)), status: "resolved" } }));
      const requests = cursors.length;
      await visitor.page.keyboard.press("e");
      await visitor.until("the row is gone", async () => (await last()) === 149);
      assert.ok(Math.abs((await visitor.page.evaluate(() => scrollY)) - before) < 60);
      await visitor.click("Undo");
      await visitor.until("the row is back", async () => (await last()) === 150);
      assert.equal(cursors.length, requests, "the list is not loaded again");
      await visitor.leave();
    },

    async "a failed change is named, and the others are undone"() {
      const visitor = await Visitor.enter(browser, base, key, null);
      await mockTwoPages(visitor);
      const saved = [];
      for (let number = 0; number < 6; number++) {
        await visitor.mock(uuid(number), async (request) => {
          const { status } = JSON.parse(await request.fetchPostData());
          if (number === 2 && status === "ignored") return { status: 503, body: { status: 503, code: "unavailable", detail: "The service is unavailable." } };
          saved.push(`${number} ${status}`);
          return { body: { ...row(number), status } };
        });
      }
      await visitor.open("/errors");
      await visitor.see('[data-row="5"] input');
      for (let number = 0; number < 6; number++) await (await visitor.page.$(`[data-row="${number}"] input`)).click();
      await visitor.click("Ignore");
      await visitor.see(".toast");
      assert.match(await visitor.text(".toast"), /Ignored 5 of 6 errors, but not “Error 2”: The service is unavailable/);
      assert.match(await visitor.text(".bulk"), /1 error selected/);
      await visitor.click("Undo");
      await visitor.until("the others are open again", async () => saved.filter((it) => it.endsWith("open")).length === 5);
      visitor.errors.length = 0;
      await visitor.leave();
    },

    async "insights beyond the first 500 can be loaded"() {
      const visitor = await Visitor.enter(browser, base, key, null);
      const insight = await api.send("GET", `/v0/projects/${project}/replay-insights/${known.insight}`);
      await visitor.mock("/replay-insights", (request) => {
        const start = Number(params(request).get("cursor") ?? 0);
        const items = Array.from({ length: 100 }, (_, index) => ({ ...insight, id: uuid(start + index), title: `Insight ${start + index}`, status: "open" }));
        return { body: { items, nextCursor: start + 100 < 700 ? String(start + 100) : null } };
      });
      await visitor.open("/insights?sort=trend");
      await visitor.until("the limit is shown", async () => /Sorted within the 500 most recent/.test(await visitor.text("main")));
      await visitor.click("Show more");
      await visitor.until("all insights are listed", () => visitor.page.$eval(".table", (it) => it.getAttribute("aria-rowcount") === "701"));
      assert.equal(await visitor.page.$("button.more"), null);
      await visitor.mock("/replay-insights", () => ({ status: 500, body: { status: 500, code: "internal", detail: "It failed." } }));
      await visitor.open(`/insight?id=${known.insight}`);
      await visitor.click("Merge into…");
      await visitor.see("dialog .error-box");
      visitor.errors.length = 0;
      await visitor.leave();
    },

    async "a link works once, and new tabs share its key"() {
      const visitor = await Visitor.arrive(browser, base, "/settings", key);
      await visitor.page.evaluate((it) => { location.hash = `code=${it}`; }, linkCode);
      await visitor.until("the code is removed from the address", () => !visitor.page.url().includes("#"));
      const keyNow = () => visitor.page.evaluate(() => sessionStorage.getItem("waymark.key")).catch(() => null);
      await visitor.until("the tab has the key", async () => (await keyNow()) === readOnlyKey);
      await visitor.settle();
      const tab = await visitor.context.newPage();
      await tab.goto(`${base}/console/errors`);
      await tab.waitForSelector(".side nav a", { visible: true });
      assert.equal(await tab.evaluate(() => sessionStorage.getItem("waymark.key")), readOnlyKey);
      // The key is only in the session storage.
      assert.deepEqual(await tab.evaluate(() => [localStorage.length, document.cookie]), [0, ""]);
      await tab.close();

      const steps = await visitor.page.createCDPSession();
      const { entries } = await steps.send("Page.getNavigationHistory");
      assert.deepEqual(entries.filter((it) => /wm_|code=/.test(it.url)), [], "the history contains a secret");
      const context = await browser.createBrowserContext();
      const late = await context.newPage();
      await late.goto(`${base}/console#code=${linkCode}`);
      await late.waitForSelector(".sign-in .field-error", { visible: true });
      assert.match(await late.$eval(".sign-in .field-error", (it) => it.innerText), /work once/);
      assert.equal(late.url(), `${base}/console`);
      await context.close();
      await visitor.leave();
    },

    async "a key of another organization needs confirmation in every tab"() {
      const visitor = await Visitor.arrive(browser, base, "/settings", key);
      const keyOf = (tab) => tab.evaluate(() => sessionStorage.getItem("waymark.key")).catch(() => null);
      const dialogIn = async (tab) => (await tab.waitForSelector("dialog[open]")).evaluate((it) => it.innerText);
      const question = /Switch to another API key\?[\s\S]*In use\s+owner of default\s+From the link\s+eve of elsewhere/;
      const linkWith = (it) => `#code=${it}`;
      await mockCodeExchange(visitor.page);
      const button = (tab, name) => tab.waitForSelector(`::-p-aria(${name})`).then((it) => it.click());

      await visitor.page.evaluate((it) => { location.hash = it; }, linkWith(foreignKey));
      assert.match(await dialogIn(visitor.page), question);
      assert.ok(!visitor.page.url().includes("#"));
      assert.equal(await keyOf(visitor.page), key);
      await visitor.page.keyboard.press("Escape");
      await visitor.until("the dialog is closed", async () => (await visitor.page.$("dialog")) === null);
      assert.equal(await keyOf(visitor.page), key);

      // A new tab has no key yet, but another tab has one.
      const tab = await visitor.context.newPage();
      await mockCodeExchange(tab);
      await tab.goto(`${base}/console/settings${linkWith(foreignKey)}`);
      assert.match(await dialogIn(tab), question);
      await button(tab, "Keep your key");
      await tab.waitForSelector("dialog", { hidden: true });
      await tab.reload();
      await tab.waitForSelector(".side nav a");
      assert.equal(await keyOf(tab), key);

      await tab.goto(`${base}/console/errors${linkWith(foreignKey)}`);
      await dialogIn(tab);
      await button(tab, "Switch key");
      await visitor.until("the tab uses the other key", async () => (await keyOf(tab)) === foreignKey);
      await tab.waitForFunction(() => /No projects yet/.test(document.querySelector("main")?.innerText));
      assert.equal(await keyOf(visitor.page), key);

      // Rejected keys need no confirmation, whether from the link or in use.
      await tab.close();
      const wrong = `${key.slice(0, -1)}${key.endsWith("1") ? 2 : 1}`;
      await visitor.page.evaluate((it) => { location.hash = it; }, linkWith(wrong));
      await visitor.see(".toast");
      assert.match(await visitor.text(".toast"), /rejected the link’s key/);
      assert.equal(await keyOf(visitor.page), key);
      await visitor.page.evaluate((it) => sessionStorage.setItem("waymark.key", it), wrong);
      const another = await visitor.context.newPage();
      await mockCodeExchange(another);
      await another.goto(`${base}/console/settings${linkWith(foreignKey)}`);
      await visitor.until("the rejected key is replaced", async () => (await keyOf(another)) === foreignKey);
      await another.close();
      await visitor.leave();
    },

    async "the focus follows navigation, and keys apply to the focused row"() {
      const visitor = await Visitor.enter(browser, base, key, "/settings");
      await mockTwoPages(visitor);
      const changed = [];
      for (const number of [0, 1, 2]) {
        await visitor.mock(uuid(number), (request) => {
          if (request.method() === "PATCH") changed.push(number);
          return { body: { ...row(number), status: "resolved" } };
        });
      }
      const focused = (text) => visitor.page.evaluate((it) => document.activeElement.matches(it), text);
      await visitor.click("Errors");
      await visitor.until("the heading has the focus", () => focused("h1"));
      await visitor.see('[data-row="2"] a');
      await visitor.page.keyboard.press("j");
      await visitor.page.focus('[data-row="2"] a');
      await visitor.page.keyboard.press("e");
      await visitor.until("one error is changed", () => changed.length > 0);
      assert.deepEqual(changed, [2]);

      await visitor.mock("/errors/query", null);
      await visitor.open("/flags");
      await visitor.see(".table tbody tr");
      await visitor.page.focus("[type=search]");
      await visitor.page.keyboard.type("hostile");
      await visitor.until("the count is announced", async () => (await visitor.texts("p[role=status]")).includes("1 flag"));
      await visitor.open("/flag?key=hostile");
      await visitor.until("the title names the flag", async () => /^<img.*· Flags · Waymark$/.test(await visitor.page.title()));

      const { error } = known;
      await visitor.open(`/error?id=${error.errorId}`);
      await visitor.until("the title names the error", async () => (await visitor.page.title()).startsWith(error.title.slice(0, 10)));
      const remove = await visitor.see("button.danger");
      await remove.focus();
      await visitor.page.keyboard.press("Enter");
      await visitor.see("dialog[open]");
      await visitor.click("Cancel");
      await visitor.until("the focus is restored", () => focused("button.danger"));
      await visitor.page.keyboard.press("?");
      await visitor.see("dialog[open]");
      const listed = await visitor.texts(".keys dt");
      for (const it of ["o", "r", "c"]) assert.ok(listed.includes(it), it);
      await visitor.leave();
    },

    async "zooming out restores the range, and invalid ranges show an error"() {
      const visitor = await Visitor.enter(browser, base, key, "/errors?range=24h");
      const plot = await (await visitor.see(".plot .u-over")).boundingBox();
      const touch = await visitor.page.createCDPSession();
      const y = plot.y + plot.height / 2;
      const point = (share) => [{ x: plot.x + plot.width * share, y }];
      await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: point(0.3) });
      for (const share of [0.4, 0.5, 0.6]) await touch.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: point(share) });
      await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
      await visitor.until("a touch drag zooms", () => params(visitor.page).has("from"));
      const [from, to] = ["from", "to"].map((it) => Number(params(visitor.page).get(it)));
      assert.ok(Math.abs(to - from - 7.2 * HOUR) < HOUR, `${(to - from) / HOUR} hours`);
      await visitor.settle();
      await visitor.page.keyboard.press("Escape");
      await visitor.until("the previous range is shown", () => params(visitor.page).get("range") === "24h");

      const now = Date.now();
      await visitor.open(`/errors?from=${now - 400 * 24 * HOUR}&to=${now}`);
      await (await visitor.see(".range summary")).click();
      assert.match(await visitor.text(".range summary"), /\d{4}.*–.*\d{4}/);
      await visitor.page.$eval("[name=to]", (it) => { it.value = "2020-01-01T00:00"; });
      await visitor.click("Apply");
      await visitor.see(".range .field-error");
      assert.ok(await visitor.page.evaluate(() => document.activeElement.matches("[name=to][aria-invalid=true]")));
      await visitor.leave();
    },

    async "arrow keys scroll long source lines, else step through events"() {
      const error = (await listErrors()).find((it) => it.count > 1);
      const visitor = await Visitor.enter(browser, base, key, `/error?id=${error.errorId}&range=90d`);
      await visitor.see(".stepper");
      await visitor.page.evaluate(() => {
        const line = document.createElement("pre");
        line.tabIndex = 0;
        line.textContent = "x".repeat(5_000);
        Object.assign(line.style, { overflowX: "auto", width: "100px" });
        document.querySelector("main").append(line);
        line.focus();
      });
      await visitor.page.keyboard.press("ArrowRight");
      await visitor.settle();
      assert.ok(!params(visitor.page).has("event"));
      await visitor.page.evaluate(() => document.activeElement.blur());
      await visitor.page.keyboard.press("ArrowRight");
      await visitor.until("the older event is shown", () => params(visitor.page).has("event"));
      await visitor.leave();
    },

    async "the project switch fits, and forced colors keep controls visible"() {
      const visitor = await Visitor.arrive(browser, base, "/flags", key);
      for (const width of [610, 760, 900]) {
        await visitor.page.setViewport({ width, height: 900 });
        const select = await (await visitor.see(".project-switch select")).boundingBox();
        assert.ok(select.width >= 200, `${select.width} px of ${width}`);
        const over = await visitor.page.evaluate(() => {
          const { right, bottom, left } = document.querySelector(".project-switch select").getBoundingClientRect();
          return [...document.querySelectorAll("main *, .side nav *")].some((it) => {
            const box = it.getBoundingClientRect();
            return box.width > 0 && !it.classList.contains("hidden") && box.top < bottom && box.left < right && box.right > left && box.bottom > 0 && it.children.length === 0;
          });
        });
        assert.ok(!over, `an element overlaps it at ${width} px`);
      }
      const devtools = await visitor.page.createCDPSession();
      await devtools.send("Emulation.setEmulatedMedia", { features: [{ name: "forced-colors", value: "active" }] });
      const drawn = await visitor.page.$eval(".switch", (it) => {
        const [ground, knob] = [getComputedStyle(it), getComputedStyle(it, "::after")];
        return { border: ground.borderTopWidth, ground: ground.backgroundColor, knob: knob.backgroundColor };
      });
      assert.equal(drawn.border, "1px");
      assert.notEqual(drawn.ground, drawn.knob);
      await visitor.leave();
    },
  };
};
