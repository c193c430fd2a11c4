// The frame of the console: its size, what a key may do, accessibility, widths, and what goes wrong.

import assert from "node:assert/strict";
import { keepKey, Visitor } from "../visitor.mjs";

/** Of scripts and styles together, compressed. */
const MOST_BYTES = 120_000;
const FIRST_VIEW_MS = 1_000;

export const frame = ({ browser, base, project, other, key, readOnlyKey, known, axe, measured }) => ({
  alone: {
    async "the page is small, soon there and kept to itself"() {
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

      // Who comes for the first time has nothing remembered: neither scripts nor who calls.
      const context = await browser.createBrowserContext();
      const stranger = await context.newPage();
      await keepKey(stranger, base, key);
      const first = performance.now();
      await stranger.goto(`${base}/console`, { waitUntil: "domcontentloaded" });
      await stranger.waitForSelector(".plot canvas", { visible: true });
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
      assert.ok(measured.bytes > 10_000 && measured.bytes <= MOST_BYTES, `${measured.bytes} bytes of scripts and styles`);
      const document = visitor.responses.find((it) => it.request().resourceType() === "document");
      const policy = document.headers()["content-security-policy"];
      assert.ok(!/unsafe-(inline|eval)/.test(policy) && policy.includes("frame-ancestors 'none'"), policy);
      await visitor.leave();
    },
  },

  async "a key that may only read is offered nothing else"() {
    const visitor = await Visitor.enter(browser, base, readOnlyKey);
    const { error } = known;
    for (const path of ["/errors", `/error?id=${error.errorId}`, "/flags", "/flag?key=hostile", "/segments", "/segment?key=hostile", `/insight?id=${known.insight}`, "/markers", "/settings"]) {
      await visitor.open(path);
      const offered = await visitor.texts("main button, main [role=switch]");
      const changes = offered.filter((it) => /Resolve$|Ignore$|Delete|New flag|New segment|Save|Set the address|Send the mail|Restore|Archive$|Split|Merge|^Add$|Make it/.test(it));
      assert.deepEqual(changes, [], path);
      assert.equal((await visitor.page.$$("main [role=switch], main input[type=checkbox]")).length, 0, path);
    }
    await visitor.leave();
  },

  async "no page has a serious fault of accessibility, in either theme"() {
    const { error } = known;
    const pages = [`?with=${other}`, "/errors", `/error?id=${error.errorId}`, "/flags", "/flag?key=hostile", "/flag?new=1", "/segments", "/segment?key=hostile", "/segment?new=1", "/insights", `/insight?id=${known.insight}`, "/markers", "/settings", "/nowhere"];
    const found = [];
    const visitor = await Visitor.enter(browser, base, key);
    for (const path of pages) {
      await visitor.wear("light");
      await visitor.open(path);
      // Through the debugger, which the page's policy does not bind.
      await visitor.page.evaluate(axe);
      for (const theme of ["light", "dark"]) {
        await visitor.wear(theme);
        // Themes differ in colours alone.
        const rules = theme === "dark" ? { runOnly: ["color-contrast"] } : {};
        const { violations } = await visitor.page.evaluate((it) => window.axe.run(document, { ...it, resultTypes: ["violations"] }), rules);
        for (const it of violations.filter((one) => ["serious", "critical"].includes(one.impact))) {
          found.push(`${theme} ${path}: ${it.id} ${it.nodes.map((node) => node.target.join(" ")).slice(0, 3)}`);
        }
      }
    }
    await visitor.leave();
    assert.deepEqual(found, []);
  },

  async "nothing is wider than the window, from 360 to 2,560 px"() {
    const { error } = known;
    const wide = [];
    const visitor = await Visitor.enter(browser, base, key);
    for (const path of ["", "/errors", `/error?id=${error.errorId}`, "/flag?key=hostile", "/segment?key=hostile", `/insight?id=${known.insight}`, "/markers", "/settings"]) {
      await visitor.open(path);
      for (const width of [360, 820, 2560]) {
        await visitor.page.setViewport({ width, height: 900 });
        // What is drawn to measure, as plots are, is drawn again in the frames after.
        const over = await visitor.page.evaluate(async () => {
          const measure = () => document.documentElement.scrollWidth - innerWidth;
          for (let frame = 0; frame < 60 && measure() > 0; frame++) await new Promise(requestAnimationFrame);
          return measure();
        });
        if (over > 0) wide.push(`${path} at ${width} px: ${over} px`);
      }
    }
    await visitor.leave();
    assert.deepEqual(wide, []);
  },

  async "what goes wrong is said with what to do, and trying again helps"() {
    const visitor = await Visitor.enter(browser, base, key, "/flags");
    const problem = (status, code, detail) => ({ status, body: { type: `/problems/${code}`, title: code, status, detail, code, requestId: "r-1" } });
    const list = "/feature-flags";
    for (const [answer, words] of [
      [{ abort: true }, /cannot be reached[\s\S]*Try again/],
      [problem(429, "throttled", "Too many requests."), /next minute/],
      [problem(403, "insufficient_scope", "The key lacks flags:read."), /lacks flags:read[\s\S]*waymark key create/],
      [problem(500, "internal", "It failed."), /r-1/],
    ]) {
      await visitor.answer(list, () => answer);
      await visitor.page.reload();
      await visitor.see(".refused");
      assert.match(await visitor.text(".refused"), words);
    }
    visitor.faults.length = 0;
    await visitor.answer(list, null);
    await visitor.click("Try again");
    await visitor.see(".table tbody tr");
    await visitor.leave();
  },

  async "numbers and times are the reader's, and every time has its UTC"() {
    const visitor = await Visitor.enter(browser, base, key, "/errors");
    const devtools = await visitor.page.createCDPSession();
    await devtools.send("Emulation.setLocaleOverride", { locale: "de-DE" });
    await visitor.page.emulateTimezone("Asia/Kolkata");
    const bucketStart = "2026-11-20T20:00:00.000Z";
    await visitor.answer("/timeseries/query", () => ({ body: [{ date: "2026-11-20", bucketStart, errors: 1234567, uniqueErrors: 1 }] }));
    await visitor.open("");
    assert.equal(await visitor.text(".figure"), "1.234.567");
    const { error } = known;
    await visitor.open(`/error?id=${error.errorId}`);
    await visitor.see(".facts time");
    const { told, at } = await visitor.page.$eval(".facts time", (it) => ({ told: it.title, at: it.dateTime }));
    const [local, utc] = told.split("\n");
    assert.match(local, /GMT\+5:30|IST|indische/i, told);
    const inUtc = new Intl.DateTimeFormat("de-DE", { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC" });
    assert.equal(utc, `${inUtc.format(new Date(at))} UTC`);
    await visitor.leave();
  },

  async "every control is reached by Tab, in the order of reading, and shows that it is"() {
    const visitor = await Visitor.enter(browser, base, key, "/flag?key=hostile");
    await visitor.see(".editor");
    const controls = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary";
    const wanted = await visitor.page.evaluate((it) => {
      window.controls = [...document.querySelectorAll(it)].filter((one) => one.checkVisibility());
      return window.controls.length;
    }, controls);
    for (let step = 0; step < wanted; step++) {
      await visitor.page.keyboard.press("Tab");
      const { at, is, outlined } = await visitor.page.evaluate(() => {
        const it = document.activeElement;
        return { at: window.controls.indexOf(it), is: it.outerHTML.slice(0, 120), outlined: getComputedStyle(it).outlineStyle !== "none" };
      });
      assert.equal(at, step, is);
      assert.ok(outlined, `the focus is not seen: ${is}`);
    }
    assert.ok(wanted > 20, `${wanted} controls`);
    await visitor.leave();
  },
});
