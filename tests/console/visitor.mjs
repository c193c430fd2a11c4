// A visitor of the console: a tab of a browser, and what went wrong in it.

import assert from "node:assert/strict";

/** A machine that is busy with other tests takes its time. */
const PATIENCE_MS = 60_000;
const LOADED = { waitUntil: "load", timeout: PATIENCE_MS };
/** For how long nothing must be underway: an answer may lead to the next request. */
const IDLE_MS = 100;

/** Puts a key into the session of a tab, as a link does once its code is exchanged. */
export async function keepKey(page, base, key) {
  await page.goto(`${base}/console/no.js`, LOADED);
  await page.evaluate((it) => sessionStorage.setItem("waymark.key", it), key);
}

/** Answers the exchange of a link's code with a key of the test's choice: the code itself. */
export async function exchangeCodesForThemselves(page) {
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    if (!request.url().endsWith("/console-codes/exchange")) return request.continue();
    const body = JSON.stringify({ apiKey: JSON.parse(request.postData()).code });
    return request.respond({ status: 200, contentType: "application/json", body });
  });
}

export class Visitor {
  static async enter(browser, base, key, path = "") {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    const visitor = new Visitor(context, page, base);
    await page.setViewport({ width: 1280, height: 900 });
    await page.evaluateOnNewDocument(() => {
      window.violations = [];
      addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    page.on("console", (message) => {
      // A refusal that is shown is no fault, nor is what a busy machine has no time for and is asked again.
      if (message.type() === "error" && !/status of (4\d\d|503)/.test(message.text())) visitor.faults.push(message.text());
    });
    page.on("pageerror", (error) => visitor.faults.push(String(error)));
    // What stands behind `#` is told by the browser's own tools, but sent to nobody.
    page.on("request", (request) => {
      visitor.requests.push(request.url().split("#")[0]);
      visitor.underway.add(request);
    });
    // Of what a page that was left has asked for, nothing is told any more.
    page.on("framenavigated", () => visitor.underway.clear());
    page.on("requestfinished", (request) => visitor.underway.delete(request));
    page.on("requestfailed", (request) => visitor.underway.delete(request));
    page.on("response", (response) => visitor.responses.push(response));
    await keepKey(page, base, key);
    visitor.requests.length = 0;
    visitor.responses.length = 0;
    visitor.faults.length = 0;
    await page.goto(`${base}/console${path}`, LOADED);
    await visitor.settle();
    return visitor;
  }

  constructor(context, page, base) {
    this.context = context;
    this.page = page;
    this.base = base;
    this.faults = [];
    this.requests = [];
    this.responses = [];
    this.underway = new Set();
    this.answers = null;
  }

  /** Prefers a theme, and waits until it is drawn. What appears slowly would have other colours meanwhile. */
  async wear(theme) {
    await this.page.emulateMediaFeatures([
      { name: "prefers-color-scheme", value: theme },
      { name: "prefers-reduced-motion", value: "reduce" },
    ]);
    await this.page.evaluate(() => new Promise((resume) => requestAnimationFrame(() => requestAnimationFrame(resume))));
  }

  async open(path) {
    await this.page.goto(`${this.base}/console${path}`, LOADED);
    await this.settle();
  }

  /** Answers requests whose paths end so in place of the API, which is asked again once `answer` is `null`. */
  async answer(ending, answer) {
    if (!this.answers) {
      this.answers = new Map();
      await this.page.setRequestInterception(true);
      this.page.on("request", async (request) => {
        const path = new URL(request.url()).pathname;
        const found = [...this.answers].find(([it]) => path.endsWith(it))?.[1];
        const answered = await found?.(request);
        if (!answered) return request.continue();
        if (answered.abort) return request.abort();
        return request.respond({ status: answered.status ?? 200, headers: { "retry-after": "0" }, contentType: "application/json", body: answered.text ?? JSON.stringify(answered.body) });
      });
    }
    this.answers.set(ending, answer);
  }

  /** Waits until nothing is loading any more, nor about to be. */
  async settle() {
    const ends = Date.now() + PATIENCE_MS;
    for (let idleSince = Date.now(); Date.now() - idleSince < IDLE_MS; ) {
      if (Date.now() > ends) assert.fail(`still underway: ${[...this.underway].map((it) => it.url())}`);
      await new Promise((resume) => setTimeout(resume, 20));
      // Where a skeleton stands and nothing is underway, the request for what it stands for is to come.
      const isBusy = this.underway.size > 0 || (await this.page.$('[aria-busy="true"]')) !== null;
      if (isBusy) idleSince = Date.now();
    }
  }

  async see(selector) {
    return this.page.waitForSelector(selector, { visible: true, timeout: PATIENCE_MS });
  }

  /** Clicks the button, link or switch of a name. */
  async click(name) {
    const handle = await this.page.waitForSelector(`::-p-aria(${name})`, { timeout: PATIENCE_MS }).catch(() => assert.fail(`nothing is called ${name}`));
    await handle.click();
  }

  async type(label, text) {
    const field = await this.page.waitForSelector(`::-p-aria(${label})`, { timeout: PATIENCE_MS }).catch(() => assert.fail(`no field is called ${label}`));
    await field.focus();
    await this.page.keyboard.down("Control");
    await this.page.keyboard.press("a");
    await this.page.keyboard.up("Control");
    await this.page.keyboard.type(text);
  }

  async choose(selector, value) {
    await this.see(selector);
    await this.page.select(selector, value);
  }

  text(selector) {
    return this.page.$eval(selector, (it) => it.innerText);
  }

  texts(selector) {
    return this.page.$$eval(selector, (all) => all.map((it) => it.innerText));
  }

  async until(what, condition) {
    const ends = Date.now() + PATIENCE_MS;
    while (Date.now() < ends) {
      if (await condition()) return;
      await new Promise((resume) => setTimeout(resume, 50));
    }
    assert.fail(`it never came true that ${what}`);
  }

  /** Nothing ran that should not, nothing was blocked, and nobody else was asked for anything. */
  async leave() {
    assert.deepEqual(this.faults, []);
    assert.deepEqual(await this.page.evaluate(() => window.violations), []);
    assert.equal(await this.page.evaluate(() => window.pwned), undefined, "a text was run");
    assert.deepEqual(this.requests.filter((it) => !it.startsWith(`${this.base}/`) && !it.startsWith("data:")), []);
    assert.ok(this.requests.every((it) => !it.includes("wm_")), "a key stands in an address");
    await this.context.close();
  }
}
