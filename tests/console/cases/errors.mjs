// Errors: plots, sentences, zooms, several projects, long lists.

import assert from "node:assert/strict";
import { TWINS } from "../data.mjs";
import { Visitor } from "../visitor.mjs";

export const errors = ({ browser, base, project, other, key, adminKey, known, api, measured, listErrors }) => ({
  async "plots show the values of the API"() {
    const visitor = await Visitor.enter(browser, base, key, "/settings");
    let body;
    const request = visitor.page.waitForRequest(async (it) => {
      if (!it.url().endsWith("/timeseries/query")) return false;
      const read = JSON.parse(await it.fetchPostData());
      // The page also requests the previous period.
      if (!body || read.from > body.from) body = read;
      return true;
    });
    await visitor.click("Overview");
    await request;
    await visitor.settle();
    await visitor.see(".plot canvas");
    const shown = JSON.parse(await visitor.page.$eval(".canvas", (it) => it.dataset.values));
    const expected = await api.send("POST", "/v0/errors/timeseries/query", body);
    assert.deepEqual(shown, expected.map((it) => [it.errors, it.uniqueErrors]));
    const total = expected.reduce((sum, it) => sum + it.errors, 0);
    assert.ok(total > 20);
    assert.equal((await visitor.text(".figure")).replace(/\D/g, ""), String(total));
    await visitor.leave();
  },

  async "sparklines and error pages show the values of the API"() {
    const visitor = await Visitor.enter(browser, base, key, "/settings");
    const request = visitor.page.waitForRequest((it) => it.url().endsWith("/errors/query"));
    await visitor.click("Errors");
    const { series, sort, limit, ...query } = JSON.parse(await (await request).fetchPostData());
    assert.equal(series, true);
    await visitor.settle();
    const seriesOf = async (errorId) => {
      const filters = [{ categoryId: "errorId", operator: "is", value: errorId }];
      const buckets = await api.send("POST", "/v0/errors/timeseries/query", { ...query, projectIds: [project], filters });
      return buckets.map((it) => it.errors);
    };
    const rows = await visitor.page.$$eval(".errors-table tbody tr:has(.title)", (all) =>
      all.map((it) => ({
        id: new URL(it.querySelector(".title").href).searchParams.get("id"),
        title: it.querySelector(".title").innerText,
        values: it.querySelector(".spark").dataset.values.split(" ").map(Number),
        label: it.querySelector(".spark").getAttribute("aria-label"),
      })),
    );
    assert.ok(rows.length >= 4, `${rows.length} rows`);
    for (const row of rows) {
      assert.deepEqual(row.values, await seriesOf(row.id), row.title);
      const total = row.values.reduce((sum, it) => sum + it, 0);
      assert.ok(row.label.startsWith(`${total} event`), row.label);
    }
    const twins = rows.filter((it) => it.title.startsWith(TWINS));
    assert.deepEqual(twins.map((it) => it.values.reduce((sum, one) => sum + one, 0)).sort(), [2, 5]);
    for (const twin of twins) {
      await visitor.open(`/error?id=${twin.id}&from=${query.from}&to=${query.to}`);
      await visitor.see(".plot canvas");
      const shown = JSON.parse(await visitor.page.$eval(".canvas", (it) => it.dataset.values)).map(([events]) => events);
      assert.deepEqual(shown, await seriesOf(twin.id));
    }
    await visitor.leave();
  },

  async "breakdown values become filters, and selected errors are resolved"() {
    const visitor = await Visitor.enter(browser, base, key, "/errors?by=browser");
    await visitor.see(".breakdown .bars button");
    const names = await visitor.texts(".breakdown .bars button span:first-child");
    await (await visitor.page.$$(".breakdown .bars button"))[names.indexOf("Firefox")].click();
    await visitor.until("there is one chip", async () => (await visitor.page.$$(".chip")).length === 1);
    assert.deepEqual(new URL(visitor.page.url()).searchParams.getAll("f"), ["browser.is.Firefox"]);
    await visitor.open("/errors");
    for (const row of await visitor.page.$$(".errors-table tbody tr:has(.title)")) {
      const title = await row.$eval(".title", (it) => it.innerText);
      if (title.startsWith(TWINS)) await (await row.$("input")).click();
    }
    assert.match(await visitor.text(".bulk"), /2 errors selected/);
    const statuses = async () => (await listErrors()).filter((it) => it.type === TWINS).map((it) => it.status);
    await (await visitor.page.$(".bulk button")).click();
    await visitor.until("both are resolved", async () => (await statuses()).join() === "resolved,resolved");
    await visitor.click("Undo");
    await visitor.until("both are open again", async () => (await statuses()).join() === "open,open");
    await visitor.leave();
  },

  async "a sentence becomes filters, and keys resolve an error"() {
    const visitor = await Visitor.enter(browser, base, key, "/errors");
    await visitor.page.keyboard.press("/");
    await visitor.page.keyboard.type("chrome errors in production, zorblax\n");
    await visitor.until("there are two chips", async () => (await visitor.page.$$(".chip")).length === 2);
    assert.deepEqual(await visitor.texts(".ignored-word"), ["zorblax"]);
    assert.deepEqual(new URL(visitor.page.url()).searchParams.getAll("f").sort(), ["browser.is.Chrome", "environment.is.production"]);
    await visitor.settle();
    await visitor.page.evaluate(() => document.activeElement.blur());
    const titles = await visitor.texts(".errors-table .title");
    const wanted = titles.findIndex((it) => it.startsWith("TypeError"));
    assert.ok(wanted >= 0, titles.join());
    for (let row = 0; row <= wanted; row++) await visitor.page.keyboard.press("j");
    await visitor.page.keyboard.press("Enter");
    await visitor.see(".frames");
    assert.match(await visitor.text("h1"), /TypeError/);
    await visitor.page.keyboard.press("e");
    const status = async () => (await listErrors()).find((it) => it.type === "TypeError").status;
    await visitor.until("the error is resolved", async () => (await status()) === "resolved");
    await visitor.see(".toast button.link");
    await visitor.page.keyboard.press("z");
    await visitor.until("the error is open again", async () => (await status()) === "open");
    await visitor.leave();
  },

  async "buttons keep their places after a change, and are off for a moment"() {
    const visitor = await Visitor.enter(browser, base, key, `/error?id=${known.error.errorId}`);
    await visitor.see(".triage .danger");
    const places = () => visitor.page.$$eval(".triage .actions button", (all) => all.map((it) => `${it.innerText} at ${Math.round(it.getBoundingClientRect().x)}`));
    const before = await places();
    await visitor.page.evaluate(() => {
      const button = document.querySelector(".triage .danger");
      window.changes = [];
      new MutationObserver(() => window.changes.push({ isOff: button.disabled, at: performance.now() })).observe(button, { attributeFilter: ["disabled"] });
    });
    for (const name of ["Ignore", "Reopen"]) {
      await visitor.click(name);
      await visitor.until("the buttons are on again", () => visitor.page.evaluate(() => window.changes.length === 2));
      const [off, on] = await visitor.page.evaluate(() => window.changes.splice(0));
      assert.deepEqual([off.isOff, on.isOff], [true, false]);
      assert.ok(on.at - off.at > 500, `${on.at - off.at} ms`);
      assert.deepEqual(await places(), before);
    }
    await visitor.leave();
  },

  async "an error is resolved in the next release, and assigned to a member"() {
    const { errorId } = (await listErrors()).find((it) => it.type === "TimeoutError");
    const read = () => api.send("GET", `/v0/projects/${project}/errors/${errorId}`);
    const visitor = await Visitor.enter(browser, base, adminKey, `/error?id=${errorId}`);
    await visitor.click("Resolve in next release");
    await visitor.until("the error is resolved", async () => (await read()).resolvedIn === "next_release");
    await visitor.until("the page says how", async () => /Resolved in the next release by owner/.test(await visitor.text(".triage .status")));
    await visitor.click("Undo");
    await visitor.until("the error is open again", async () => (await read()).status === "open");
    assert.equal((await read()).resolvedIn, null);

    await visitor.click("Assign");
    await visitor.see("[role=combobox]");
    await visitor.page.keyboard.type("owner@");
    await visitor.until("the member is found", async () => (await visitor.texts("[role=option]")).join().startsWith("owner@"));
    await visitor.page.keyboard.press("Enter");
    await visitor.until("the error is assigned", async () => (await read()).assignee?.startsWith("owner@"));
    await visitor.click(`Assigned to ${(await read()).assignee}`);
    await visitor.click("Remove the assignee");
    await visitor.until("the assignee is removed", async () => (await read()).assignee === null);
    await visitor.leave();
  },

  async "new events are offered, but not counted while the page is hidden"() {
    let sent = 0;
    const send = () => {
      const event_id = `71fe${sent++}`.padStart(32, "0");
      return api.send("POST", api.store, { event_id, exception: { values: [{ type: "LiveError", value: "of this minute" }] } });
    };
    await send();
    const visitor = await Visitor.arrive(browser, base, "/settings", key);
    await visitor.page.evaluateOnNewDocument(() => {
      const start = window.setInterval;
      window.setInterval = (run, ms, ...more) => {
        if (ms === 15_000) window.poll = run;
        return start(run, ms, ...more);
      };
      Object.defineProperty(document, "hidden", { get: () => window.isHidden ?? false });
    });
    await visitor.open("?range=24h&q=LiveError");
    await visitor.until("one event is shown", async () => (await visitor.text(".figure")) === "1");
    const poll = () => visitor.page.evaluate(() => window.poll());
    const offers = (text) => visitor.until(`the page offers ${text}`, async () => (await visitor.text(".new-events")) === text);
    await send();
    await visitor.page.evaluate(() => { window.isHidden = true; });
    visitor.requests.length = 0;
    await poll();
    await visitor.settle();
    assert.deepEqual(visitor.requests, [], "a hidden page polls");
    await visitor.page.evaluate(() => {
      window.isHidden = false;
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await offers("1 new event · Refresh");
    await send();
    await poll();
    await offers("2 new events · Refresh");
    await visitor.click("2 new events · Refresh");
    await visitor.until("all events are shown", async () => (await visitor.text(".figure")) === "3");
    await offers("");
    await visitor.leave();
  },

  async "a zoom is in the address, and Escape zooms out"() {
    const visitor = await Visitor.enter(browser, base, key, "?range=7d");
    const plot = await visitor.see(".plot .u-over");
    const box = await plot.boundingBox();
    const y = box.y + box.height / 2;
    await visitor.page.mouse.move(box.x + box.width * 0.4, y);
    await visitor.page.mouse.down();
    await visitor.page.mouse.move(box.x + box.width * 0.8, y, { steps: 4 });
    await visitor.page.mouse.up();
    await visitor.until("the address has the zoom", () => visitor.page.url().includes("from="));
    await visitor.settle();
    const shown = await visitor.page.$eval(".canvas", (it) => it.dataset.values);
    const other = await Visitor.enter(browser, base, key);
    await other.open(visitor.page.url().slice(`${base}/console`.length));
    await other.see(".plot canvas");
    assert.equal(await other.page.$eval(".canvas", (it) => it.dataset.values), shown);
    await other.leave();
    await visitor.page.keyboard.press("Escape");
    await visitor.until("the address has no zoom", () => !visitor.page.url().includes("from="));
    await visitor.page.goBack();
    await visitor.until("going back restores the zoom", () => visitor.page.url().includes("from="));
    await visitor.leave();
  },

  async "several projects share a plot, and each is listed"() {
    const visitor = await Visitor.enter(browser, base, key, "?range=7d");
    await visitor.click("Add projects");
    const request = visitor.page.waitForRequest(
      async (it) => it.url().endsWith("/timeseries/query") && JSON.parse(await it.fetchPostData()).projectIds.length === 2,
    );
    await (await visitor.page.$(".choices input:not(:checked)")).click();
    const body = JSON.parse(await (await request).fetchPostData());
    assert.deepEqual(body.projectIds, [project, other]);
    assert.equal(new URL(visitor.page.url()).searchParams.get("with"), other);
    await visitor.settle();
    const total = async (projectIds) => (await api.send("POST", "/v0/errors/timeseries/query", { ...body, projectIds })).reduce((sum, it) => sum + it.errors, 0);
    const totals = [await total([project]), await total([other])];
    assert.ok(totals.every((it) => it > 0));
    assert.equal((await visitor.text(".figure")).replace(/\D/g, ""), String(totals[0] + totals[1]));
    const rows = await visitor.texts(".by-project .count");
    assert.deepEqual(rows.map((it) => Number(it.replace(/\D/g, ""))), totals);
    assert.ok((await visitor.texts(".row-title")).some((it) => it.startsWith("StockError")), "errors of both projects are listed");
    await (await visitor.page.$$(".by-project a"))[1].click();
    await visitor.until("only the other project is shown", () => visitor.page.url().includes(`project=${other}`) && !visitor.page.url().includes("with="));
    await visitor.leave();
  },

  performance: {
    async "10,000 errors scroll as smoothly as 1,000"() {
      const row = (number) => ({
        errorId: `00000000-0000-7000-8000-${number.toString(16).padStart(12, "0")}`,
        title: `Error ${number}`, type: "Error", culprit: "/somewhere", status: "open", count: number % 900, users: 3,
        firstSeen: new Date(Date.now() - 9e8).toISOString(), lastSeen: new Date(Date.now() - number * 6e4).toISOString(),
      });
      const visitor = await Visitor.enter(browser, base, key, null);
      await visitor.mock("/timeseries/query", () => ({ body: [] }));
      const scrollThrough = async (count) => {
        const items = Array.from({ length: count }, (_, number) => row(number));
        await visitor.mock("/errors/query", () => ({ body: { items, nextCursor: null } }));
        await visitor.open("/errors");
        await visitor.see(".errors-table tbody tr");
        const scrolled = await visitor.page.evaluate(async () => {
          const height = document.documentElement.scrollHeight;
          const frames = [];
          let most = 0;
          for (let step = 1, last = performance.now(); step <= 30; step++) {
            scrollBy(0, 400);
            await new Promise(requestAnimationFrame);
            frames.push(performance.now() - last);
            last = performance.now();
            most = Math.max(most, document.querySelectorAll(".errors-table tr").length);
          }
          scrollTo(0, height);
          return { height, most, median: frames.sort((one, other) => one - other)[15] };
        });
        assert.ok(scrolled.height > count * 40, `${scrolled.height} px`);
        assert.ok(scrolled.most < 120, `${scrolled.most} rows were rendered at once`);
        return scrolled.median;
      };
      const few = await scrollThrough(1_000);
      const many = await scrollThrough(10_000);
      Object.assign(measured, { frameOf1000Ms: Math.round(few), frameOf10000Ms: Math.round(many) });
      // Other processes on the machine slow both.
      assert.ok(many < 3 * few + 50, `a frame took ${many} ms with 10,000 rows, ${few} ms with 1,000`);
      await visitor.until("the last row is rendered", async () => (await visitor.texts(".errors-table .title")).includes("Error 9999"));
      // Keys still reach the first rows.
      await visitor.page.keyboard.press("j");
      const focused = () => visitor.page.evaluate(() => document.activeElement.textContent);
      await visitor.until("the first row has the focus", async () => (await focused()) === "Error 0");
      for (let step = 0; step < 40; step++) await visitor.page.keyboard.press("j");
      assert.equal(await focused(), "Error 40");
      await visitor.leave();
    },
  },
});
