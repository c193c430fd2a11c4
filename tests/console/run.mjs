// Does with the console what people do, by clicks and keys alone, and then asks the API whether it was
// done: node run.mjs BASE_URL CHROMIUM PROJECT KEY READ_ONLY_KEY STORE_PATH
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";
import { Api, fill } from "./data.mjs";
import { Visitor } from "./visitor.mjs";

const [base, executablePath, project, key, readOnlyKey, store] = process.argv.slice(2);
const api = new Api(base, key, store);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Of scripts and styles together, compressed. */
const MOST_BYTES = 120_000;
const FIRST_VIEW_MS = 1_000;

const known = await fill(api, project);
const listErrors = async () => (await api.send("GET", `/v0/projects/${project}/errors?limit=100`)).items;
const getFlag = (name) => api.send("GET", `/v0/project/${project}/feature-flags/${name}`);

// Chromium's sandbox needs rights that containers do not give.
const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
const browser = await puppeteer.launch({ executablePath, args });
const measured = {};

const tests = {
  async "the key leaves the address, and the page is small, soon there and kept to itself"() {
    const visitor = await Visitor.enter(browser, base, key);
    const { page } = visitor;
    assert.equal(page.url(), `${base}/console`);
    const again = performance.now();
    await page.reload({ waitUntil: "domcontentloaded" });
    await visitor.see(".side nav a");
    measured.frameMs = Math.round(performance.now() - again);
    await visitor.see(".plot canvas");
    measured.firstViewMs = Math.round(performance.now() - again);
    measured.firstPaintMs = Math.round(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0));
    assert.ok(measured.firstPaintMs < FIRST_VIEW_MS, `the first paint took ${measured.firstPaintMs} ms`);

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
    const policy = visitor.responses[0].headers()["content-security-policy"];
    assert.ok(!/unsafe-(inline|eval)/.test(policy) && policy.includes("frame-ancestors 'none'"), policy);
    await visitor.leave();
  },

  async "plotted values are the API's"() {
    const visitor = await Visitor.enter(browser, base, key);
    const asked = visitor.page.waitForRequest((it) => it.url().endsWith("/timeseries/query") && it.method() === "POST");
    await visitor.open("?range=7d");
    const body = JSON.parse(await (await asked).fetchPostData());
    await visitor.see(".plot canvas");
    const shown = JSON.parse(await visitor.page.$eval(".canvas", (it) => it.dataset.values));
    const answered = await api.send("POST", "/v0/errors/timeseries/query", body);
    assert.deepEqual(shown, answered.map((it) => [it.errors, it.uniqueErrors]));
    const total = answered.reduce((sum, it) => sum + it.errors, 0);
    assert.ok(total > 20);
    assert.equal((await visitor.text(".figure")).replace(/\D/g, ""), String(total));
    await visitor.leave();
  },

  async "a sentence becomes filters, these lead to an error, and it is resolved and reopened by keys"() {
    const visitor = await Visitor.enter(browser, base, key);
    await visitor.open("/errors");
    await visitor.page.keyboard.press("/");
    await visitor.page.keyboard.type("chrome errors in production, zorblax\n");
    await visitor.until("there are two chips", async () => (await visitor.page.$$(".chip")).length === 2);
    assert.deepEqual(await visitor.texts(".lost"), ["zorblax"]);
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
    await visitor.until("it is resolved", async () => (await status()) === "resolved");
    await visitor.see(".toast button.link");
    await visitor.page.keyboard.press("z");
    await visitor.until("it is open again", async () => (await status()) === "open");
    await visitor.leave();
  },

  async "a zoom is a link that shows the same to others, and Escape leaves it"() {
    const visitor = await Visitor.enter(browser, base, key);
    await visitor.open("?range=7d");
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
    await visitor.until("the zoom is left", () => !visitor.page.url().includes("from="));
    await visitor.page.goBack();
    await visitor.until("back leads to the zoom", () => visitor.page.url().includes("from="));
    await visitor.leave();
  },

  async "three of ten pain points are split off, and come back"() {
    const visitor = await Visitor.enter(browser, base, key);
    await visitor.open(`/insight?id=${known.insight}`);
    await visitor.see(".table tbody tr");
    for (const row of [0, 1, 2]) await (await visitor.page.$$(".table tbody input"))[row].click();
    await visitor.click("Split off…");
    await visitor.type("Title of the new insight", "Three of them");
    await visitor.page.keyboard.press("Enter");
    const read = () => api.send("GET", `/v0/projects/${project}/replay-insights/${known.insight}`);
    await visitor.until("seven are left", async () => (await read()).occurrences === 7);
    const list = await api.send("GET", `/v0/projects/${project}/replay-insights?status=open`);
    assert.equal(list.items.find((it) => it.title === "Three of them").occurrences, 3);
    await visitor.click("Undo");
    await visitor.until("all ten are back", async () => (await read()).occurrences === 10);
    assert.equal((await read()).viewed, true);
    await visitor.leave();
  },

  async "a flag is made with a rule and shares, tried out and switched on"() {
    const visitor = await Visitor.enter(browser, base, key);
    await visitor.open("/flags");
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
    await visitor.choose('[aria-label="Rule 1 serves: variant"]', "off");
    await visitor.choose('[aria-label="Everyone else gets"]', "rollout");
    await visitor.type("Everyone else gets: weight of on", "75");
    await visitor.click("Make it 100");
    await visitor.click("Make the flag");
    await visitor.until("it has an address", () => visitor.page.url().includes("key=from-console"));
    const made = await getFlag("from-console");
    assert.deepEqual(made.fallthrough.rollout, [{ variant: "on", weight: 60 }, { variant: "off", weight: 40 }]);
    assert.deepEqual(made.rules[0].conditions, [{ attribute: "country", operator: "in", values: ["DE"] }]);
    await visitor.click("from-console");
    await visitor.until("it is on", async () => (await getFlag("from-console")).enabled);
    await visitor.type("Value 1", "DE");
    await visitor.click("Ask");
    await visitor.see(".outcome");
    assert.match(await visitor.text(".outcome"), /^off\b[\s\S]*rule 1/);
    await visitor.type("Name", "Renamed");
    await visitor.click("Save");
    await visitor.until("it is saved", async () => (await getFlag("from-console")).name === "Renamed");
    await visitor.leave();
  },

  async "markers are added and deleted, and a preference is turned off"() {
    const visitor = await Visitor.enter(browser, base, key);
    await visitor.open("/markers");
    await visitor.type("New collection", "Releases");
    await visitor.click("Make it");
    await visitor.until("it is chosen", async () => (await visitor.texts("h2")).some((it) => it.startsWith("Releases")));
    await visitor.type("What happened", "Release 7");
    await visitor.click("Add");
    const collections = async () => (await api.send("GET", `/v0/projects/${project}/event-marker-collections`)).items;
    await visitor.until("it has an event", async () => (await collections()).some((it) => it.name === "Releases" && it.eventCount === 1));
    await visitor.until("it is shown", async () => (await visitor.texts(".row-title")).some((it) => it.startsWith("Release 7")));
    await visitor.click("Delete the collection");
    assert.match(await visitor.text("dialog"), /1 event/);
    await visitor.click("Delete");
    await visitor.until("it is gone", async () => (await collections()).every((it) => it.name !== "Releases"));

    await visitor.open("/settings");
    const toggle = await visitor.see('[aria-labelledby="type-weekly_digest"]');
    await toggle.click();
    const digest = async () => (await api.send("GET", "/v0/notifications/email-preferences")).find((it) => it.type === "weekly_digest");
    await visitor.until("it is off", async () => (await digest()).emailEnabled === false);
    await visitor.leave();
  },

  async "a key that may only read is offered nothing else"() {
    const visitor = await Visitor.enter(browser, base, readOnlyKey);
    const [error] = await listErrors();
    for (const path of ["/errors", `/error?id=${error.errorId}`, "/flags", "/flag?key=hostile", `/insight?id=${known.insight}`, "/markers", "/settings"]) {
      await visitor.open(path);
      const offered = await visitor.texts("main button, main [role=switch]");
      const changes = offered.filter((it) => /Resolve$|Ignore$|Delete|New flag|Save|Archive$|Split|Merge|^Add$|Make it/.test(it));
      assert.deepEqual(changes, [], path);
      assert.equal((await visitor.page.$$("main [role=switch], main input[type=checkbox]")).length, 0, path);
    }
    await visitor.leave();
  },

  async "no page has a serious fault of accessibility, in either theme"() {
    const [error] = await listErrors();
    const pages = ["", "/errors", `/error?id=${error.errorId}`, "/flags", "/flag?key=hostile", "/flag?new=1", "/insights", `/insight?id=${known.insight}`, "/markers", "/settings", "/nowhere"];
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
    const [error] = await listErrors();
    const wide = [];
    const visitor = await Visitor.enter(browser, base, key);
    for (const path of ["", "/errors", `/error?id=${error.errorId}`, "/flag?key=hostile", `/insight?id=${known.insight}`, "/markers", "/settings"]) {
      await visitor.open(path);
      for (const width of [360, 820, 2560]) {
        await visitor.page.setViewport({ width, height: 900 });
        const over = await visitor.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (over > 0) wide.push(`${path} at ${width} px: ${over} px`);
      }
    }
    await visitor.leave();
    assert.deepEqual(wide, []);
  },
};

let failed = 0;
const only = process.env.ONLY;
try {
  for (const [name, test] of Object.entries(tests)) {
    if (only && !name.includes(only)) continue;
    const started = performance.now();
    try {
      await test();
      console.log(`ok ${name} (${Math.round(performance.now() - started)} ms)`);
    } catch (error) {
      failed++;
      console.error(`FAILED ${name}\n${error.stack}`);
    }
  }
  console.log(JSON.stringify(measured));
} finally {
  await browser.close();
}
process.exitCode = failed ? 1 : 0;
