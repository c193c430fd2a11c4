// The frame of the console: size, scopes, accessibility, widths and errors.

import assert from "node:assert/strict";
import { Api } from "../data.mjs";
import { faultsOf, storeKey, violationsOf, Visitor } from "../visitor.mjs";

/** Maximum size of scripts and styles, compressed. */
const MAX_BYTES = 130_000;
const FIRST_VIEW_MS = 1_000;
/** Maximum API requests of a page. */
const MAX_REQUESTS = 8;
/** Maximum time until a page stops changing, with functions of a release build. */
const MAX_SETTLED_MS = 500;
/** Loads of each page, of which the median counts. */
const LOADS = 5;

const pagesOf = (known) => ["", "/errors", `/error?id=${known.error.errorId}`, "/flags", "/flag?key=hostile", "/segments", "/segment?key=hostile", "/insights", `/insight?id=${known.insight}`, "/markers", "/settings"];

export const frame = ({ browser, base, project, other, key, adminKey, readOnlyKey, known, axe, measured }) => ({
  performance: {
    async "the page is small and opens within a second"() {
      const visitor = await Visitor.enter(browser, base, key);
      const { page } = visitor;
      assert.equal(page.url(), `${base}/console?project=${project}`);
      const again = performance.now();
      await page.reload({ waitUntil: "domcontentloaded" });
      await visitor.see(".side nav a");
      measured.frameMs = Math.round(performance.now() - again);
      await visitor.see(".plot canvas");
      measured.firstViewMs = Math.round(performance.now() - again);
      assert.ok(measured.firstViewMs < FIRST_VIEW_MS, `the first view took ${measured.firstViewMs} ms`);
      measured.firstPaintMs = Math.round(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0));
      assert.ok(measured.firstPaintMs < FIRST_VIEW_MS, `the first paint took ${measured.firstPaintMs} ms`);
      await visitor.settle();

      // A first visit has neither cached scripts nor a cached caller.
      const context = await browser.createBrowserContext();
      const firstVisit = await context.newPage();
      await firstVisit.goto(`${base}/console/no.js`);
      await firstVisit.evaluate(storeKey, key);
      const first = performance.now();
      await firstVisit.goto(`${base}/console`, { waitUntil: "domcontentloaded" });
      await firstVisit.waitForSelector(".plot canvas", { visible: true });
      measured.firstVisitMs = Math.round(performance.now() - first);
      await context.close();
      assert.ok(measured.firstVisitMs < FIRST_VIEW_MS, `the first visit took ${measured.firstVisitMs} ms`);

      const names = [...new Set(visitor.requests.filter((it) => /\.(js|css)$/.test(it)))];
      const sizes = await Promise.all(
        names.map(async (url) => {
          const response = await fetch(url, { headers: { "accept-encoding": "gzip" } });
          assert.equal(response.headers.get("content-encoding"), "gzip");
          assert.match(response.headers.get("cache-control"), /immutable/);
          return Number(response.headers.get("content-length"));
        }),
      );
      measured.bytes = sizes.reduce((sum, it) => sum + it, 0);
      assert.ok(measured.bytes > 10_000 && measured.bytes <= MAX_BYTES, `${measured.bytes} bytes of scripts and styles`);
      const document = visitor.responses.find((it) => it.request().resourceType() === "document");
      const policy = document.headers()["content-security-policy"];
      assert.ok(!/unsafe-(inline|eval)/.test(policy) && policy.includes("frame-ancestors 'none'"), policy);
      await visitor.leave();
    },

    /** Only in a release build: functions of a debug build take several times as long. */
    ...(process.env.RELEASE && {
      async "pages settle within half a second"() {
        const visitor = await Visitor.arrive(browser, base, "/settings", key);
        await visitor.page.evaluateOnNewDocument(() => {
          const observer = new MutationObserver(() => {
            window.changedAt = performance.now();
          });
          observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
        });
        measured.settledMs = {};
        for (const path of pagesOf(known)) {
          // Starts the functions of the page.
          await visitor.open(path);
          const times = [];
          for (let load = 0; load < LOADS; load++) {
            await visitor.page.reload();
            await visitor.settle();
            times.push(Math.round(await visitor.page.evaluate(() => window.changedAt)));
          }
          measured.settledMs[path] = times.sort((one, other) => one - other)[(LOADS - 1) / 2];
        }
        const slow = Object.entries(measured.settledMs).filter(([, ms]) => ms > MAX_SETTLED_MS);
        assert.deepEqual(slow, []);
        await visitor.leave();
      },
    }),
  },

  async "a read-only key hides controls that change data"() {
    const visitor = await Visitor.enter(browser, base, readOnlyKey);
    const { error } = known;
    for (const path of ["/errors", `/error?id=${error.errorId}`, "/flags", "/flag?key=hostile", "/segments", "/segment?key=hostile", `/insight?id=${known.insight}`, "/markers", "/settings"]) {
      await visitor.goTo(path);
      const offered = await visitor.texts("main button, main [role=switch]");
      const changes = offered.filter((it) => /Resolve$|Ignore$|Delete|New flag|New segment|Save|Resend|Restore|Archive$|Split|Merge|^Add$|^Create/.test(it));
      assert.deepEqual(changes, [], path);
      assert.equal((await visitor.page.$$("main [role=switch], main input[type=checkbox]")).length, 0, path);
    }
    await visitor.leave();
  },

  async "a key without errors:read starts with the first page it can read"() {
    const body = { name: "Flags only", scopes: ["flags:read"], projects: [project] };
    const { apiKey } = await new Api(base, adminKey).send("POST", "/v0/api-keys", body);
    const visitor = await Visitor.enter(browser, base, apiKey);
    await visitor.until("the flags are open", () => visitor.page.url() === `${base}/console/flags?project=${project}`);
    await visitor.see(".table tbody tr");
    assert.deepEqual(await visitor.texts(".side nav a"), ["Flags", "Settings"]);
    await visitor.leave();
  },

  async "pages take at most eight requests, are accessible in both themes, and fit windows from 360 to 2,560 px"() {
    const found = [];
    measured.requests = {};
    const visitor = await Visitor.enter(browser, base, key, "/nowhere");
    for (const path of [...pagesOf(known), `?with=${other}`, "/flag?new=1", "/segment?new=1", "/nowhere"]) {
      visitor.requests.length = 0;
      await visitor.open(path);
      const count = visitor.requests.filter((it) => /\/v0\//.test(it)).length;
      measured.requests[path] = count;
      // Each further project of an overview adds requests.
      const limit = path.includes("with=") ? Number.POSITIVE_INFINITY : MAX_REQUESTS;
      if (count === 0 || count > limit) found.push(`${path}: ${count} requests`);
      found.push(...(await faultsOf(axe, visitor, path)));
    }
    await visitor.leave();
    const visitors = await Visitor.arrive(browser, base, "/sign-in");
    found.push(...(await faultsOf(axe, visitors, "/sign-in")));
    await visitors.leave();
    assert.deepEqual(found, []);
  },

  async "no menu, list or dialog has accessibility violations"() {
    const found = [];
    const visitor = await Visitor.enter(browser, base, key);
    const { page } = visitor;
    // The test of pages covers the contrasts around an opened part.
    const opened = async (path, what, open, part) => {
      await visitor.open(path);
      await open();
      await visitor.see(part);
      found.push(...(await violationsOf(axe, visitor, what, part)));
    };
    await opened("/errors", "a sentence", async () => {
      await page.keyboard.press("/");
      await page.keyboard.type("chrome payments since yesterday");
    }, ".preview");
    await opened("/errors", "a filter", () => visitor.click("+ Filter"), "[role=combobox]");
    await opened("/errors", "selected errors", () => page.click(".errors-table tbody input"), ".bulk-actions");
    await opened("/errors", "a range", async () => (await visitor.see(".range summary")).click(), ".range .popover");
    await opened("/flags", "the palette", async () => {
      await page.keyboard.down("Control");
      await page.keyboard.press("k");
      await page.keyboard.up("Control");
    }, "dialog [role=combobox]");
    await opened("/flags", "the shortcuts", () => page.keyboard.press("?"), "dialog .keys");
    await opened("/flag?key=hostile", "an outcome", () => visitor.click("Evaluate"), ".outcome");
    await opened(`/insight?id=${known.insight}`, "a merge", () => visitor.click("Merge into…"), "dialog");
    await opened("/markers", "a deletion", () => visitor.click("Delete collection"), "dialog");
    await opened("", "values of the plot", async () => (await visitor.see(".values-table summary")).click(), ".values-table table");
    await visitor.leave();
    assert.deepEqual(found, []);
  },

  async "an outage shows one message, which retries by itself"() {
    const visitor = await Visitor.enter(browser, base, key, "/settings");
    const lists = ["/errors/query", "/timeseries/query", "/breakdown/query"];
    for (const [response, text] of [
      [{ abort: true }, /can’t be reached\.[\s\S]*Retrying in \d+ s/],
      [{ status: 429, body: { code: "throttled", detail: "Too many requests." } }, /Rate limit reached\.[\s\S]*Retrying in \d+ s/],
      [{ status: 503, body: { code: "unavailable", detail: "Not now." } }, /temporarily unavailable\.[\s\S]*Retrying in \d+ s/],
    ]) {
      for (const it of lists) await visitor.mock(it, () => response);
      await visitor.page.goto(`${base}/console/errors`);
      await visitor.see(".banner");
      assert.match(await visitor.text(".banner"), text);
      assert.deepEqual(await visitor.texts(".error-box"), []);
      for (const it of lists) await visitor.mock(it, null);
      await visitor.see(".errors-table");
      await visitor.until("the message is gone", async () => (await visitor.page.$(".banner")) === null);
    }
    visitor.errors.length = 0;
    await visitor.leave();
  },

  async "errors show a remedy, and a retry succeeds"() {
    const visitor = await Visitor.enter(browser, base, key, "/flags");
    const problem = (status, code, detail) => ({ status, body: { type: `/problems/${code}`, title: code, status, detail, code, requestId: "r-1" } });
    const list = "/feature-flags";
    for (const [response, text] of [
      [problem(403, "insufficient_scope", "The key lacks flags:read."), /lacks flags:read[\s\S]*waymark key create/],
      [problem(500, "internal", "It failed."), /r-1/],
    ]) {
      await visitor.mock(list, () => response);
      await visitor.page.reload();
      await visitor.see(".error-box");
      assert.match(await visitor.text(".error-box"), text);
    }
    visitor.errors.length = 0;
    await visitor.mock(list, null);
    await visitor.click("Try again");
    await visitor.see(".table tbody tr");
    await visitor.leave();
  },

  async "numbers and times use the viewer's locale and time zone"() {
    const visitor = await Visitor.arrive(browser, base, "/errors", key);
    const devtools = await visitor.page.createCDPSession();
    await devtools.send("Emulation.setLocaleOverride", { locale: "de-DE" });
    await visitor.page.emulateTimezone("Asia/Kolkata");
    const bucketStart = "2026-11-20T20:00:00.000Z";
    await visitor.mock("/timeseries/query", () => ({ body: [{ date: "2026-11-20", bucketStart, errors: 1234567, uniqueErrors: 1 }] }));
    await visitor.open("");
    assert.equal(await visitor.text(".figure"), "1.234.567");
    const { error } = known;
    await visitor.open(`/error?id=${error.errorId}`);
    await visitor.see(".facts time");
    const { title, at } = await visitor.page.$eval(".facts time", (it) => ({ title: it.title, at: it.dateTime }));
    const [local, utc] = title.split("\n");
    assert.match(local, /GMT\+5:30|IST|indische/i, title);
    const inUtc = new Intl.DateTimeFormat("de-DE", { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC" });
    assert.equal(utc, `${inUtc.format(new Date(at))} UTC`);
    await visitor.leave();
  },

  async "Tab reaches every control in order, with a visible focus"() {
    const visitor = await Visitor.enter(browser, base, key, "/flag?key=hostile");
    await visitor.see(".editor");
    const controls = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary";
    const count = await visitor.page.evaluate((it) => {
      window.controls = [...document.querySelectorAll(it)].filter((one) => one.checkVisibility());
      return window.controls.length;
    }, controls);
    for (let step = 0; step < count; step++) {
      await visitor.page.keyboard.press("Tab");
      const { at, element, outlined } = await visitor.page.evaluate(() => {
        const it = document.activeElement;
        return { at: window.controls.indexOf(it), element: it.outerHTML.slice(0, 120), outlined: getComputedStyle(it).outlineStyle !== "none" };
      });
      assert.equal(at, step, element);
      assert.ok(outlined, `the focus is not visible: ${element}`);
    }
    assert.ok(count > 20, `${count} controls`);
    await visitor.leave();
  },
});
