// A visitor of the console: a browser tab, with its requests and errors.

import assert from "node:assert/strict";

/** Long enough for a machine that runs other tests. */
const TIMEOUT_MS = 60_000;
const LOADED = { waitUntil: "load", timeout: TIMEOUT_MS };
/** Time without pending requests after which a page is idle: a response can cause another request. */
const IDLE_MS = 100;
/** Time for which the page shows a toast. */
const TOAST_MS = 10_000;

/** Stores a key in the tab's session, as a link does after exchanging its code. */
export async function storeKey(page, base, key) {
  await page.goto(`${base}/console/no.js`, LOADED);
  await page.evaluate((it) => sessionStorage.setItem("waymark.key", it), key);
}

/** Mocks the exchange of link codes: the code is the key. */
export async function mockCodeExchange(page) {
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    if (!request.url().endsWith("/console-codes/exchange")) return request.continue();
    const body = JSON.stringify({ apiKey: JSON.parse(request.postData()).code });
    return request.respond({ status: 200, contentType: "application/json", body });
  });
}

export class Visitor {
  /** Opens the console in a new browser session, with a key. */
  static async enter(browser, base, key, path = "") {
    const visitor = await Visitor.prepare(await browser.createBrowserContext(), base);
    await storeKey(visitor.page, base, key);
    return visitor.begin(path);
  }

  /** Opens the console in a new browser session, without a key. */
  static async arrive(browser, base, path) {
    const visitor = await Visitor.prepare(await browser.createBrowserContext(), base);
    return visitor.begin(path);
  }

  /** Opens the console in another tab of the same browser session. */
  async openTab(path) {
    const visitor = await Visitor.prepare(this.context, this.base);
    return visitor.begin(path);
  }

  async begin(path) {
    this.requests.length = 0;
    this.responses.length = 0;
    this.errors.length = 0;
    await this.open(path);
    return this;
  }

  static async prepare(context, base) {
    const page = await context.newPage();
    const visitor = new Visitor(context, page, base);
    await page.setViewport({ width: 1280, height: 900 });
    await page.evaluateOnNewDocument((toastMs) => {
      // Toasts stay longer, so that a busy machine can still press their buttons.
      const later = window.setTimeout;
      window.setTimeout = (run, ms, ...more) => later(run, ms === toastMs ? 6 * ms : ms, ...more);
      window.violations = [];
      addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    }, TOAST_MS);
    page.on("console", (message) => {
      // Tests provoke 4xx, and 503 responses of a busy machine are retried.
      if (message.type() === "error" && !/status of (4\d\d|503)/.test(message.text())) visitor.errors.push(message.text());
    });
    page.on("pageerror", (error) => visitor.errors.push(String(error)));
    // Puppeteer includes the fragment, which browsers do not send.
    page.on("request", (request) => {
      visitor.requests.push(request.url().split("#")[0]);
      visitor.pending.add(request);
    });
    // Requests of a previous page get no further events.
    page.on("framenavigated", () => visitor.pending.clear());
    page.on("requestfinished", (request) => visitor.pending.delete(request));
    page.on("requestfailed", (request) => visitor.pending.delete(request));
    page.on("response", (response) => visitor.responses.push(response));
    return visitor;
  }

  constructor(context, page, base) {
    this.context = context;
    this.page = page;
    this.base = base;
    this.errors = [];
    this.requests = [];
    this.responses = [];
    this.pending = new Set();
    this.mocks = null;
  }

  /** Sets the theme without animations, and waits until it is drawn. */
  async setTheme(theme) {
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

  /** Mocks responses to requests whose paths end with `ending`; `respond` is `null` to end this. */
  async mock(ending, respond) {
    if (!this.mocks) {
      this.mocks = new Map();
      await this.page.setRequestInterception(true);
      this.page.on("request", async (request) => {
        const path = new URL(request.url()).pathname;
        const found = [...this.mocks].find(([it]) => path.endsWith(it))?.[1];
        const mocked = await found?.(request);
        if (!mocked) return request.continue();
        if (mocked.abort) return request.abort();
        return request.respond({ status: mocked.status ?? 200, headers: { "retry-after": "0" }, contentType: "application/json", body: mocked.text ?? JSON.stringify(mocked.body) });
      });
    }
    this.mocks.set(ending, respond);
  }

  /** Waits until the page is idle. */
  async settle() {
    const ends = Date.now() + TIMEOUT_MS;
    for (let idleSince = Date.now(); Date.now() - idleSince < IDLE_MS; ) {
      if (Date.now() > ends) assert.fail(`still pending: ${[...this.pending].map((it) => it.url())}`);
      await new Promise((resume) => setTimeout(resume, 20));
      // A skeleton without a pending request means that the request is about to start.
      const isBusy = this.pending.size > 0 || (await this.page.$('[aria-busy="true"]')) !== null;
      if (isBusy) idleSince = Date.now();
    }
  }

  async see(selector) {
    return this.page.waitForSelector(selector, { visible: true, timeout: TIMEOUT_MS });
  }

  /** Clicks the button, link or switch with this accessible name. */
  async click(name) {
    const handle = await this.page.waitForSelector(`::-p-aria(${name})`, { timeout: TIMEOUT_MS }).catch(() => assert.fail(`no control is named ${name}`));
    // Buttons are off for a moment after a change.
    await this.until(`${name} is enabled`, () => handle.evaluate((it) => !it.disabled));
    await handle.click();
  }

  async type(label, text) {
    const field = await this.page.waitForSelector(`::-p-aria(${label})`, { timeout: TIMEOUT_MS }).catch(() => assert.fail(`no field is labeled ${label}`));
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

  async until(description, condition) {
    const ends = Date.now() + TIMEOUT_MS;
    while (Date.now() < ends) {
      if (await condition()) return;
      await new Promise((resume) => setTimeout(resume, 50));
    }
    const shown = await this.text("main").catch(() => "");
    assert.fail(`timed out: ${description}; the page shows: ${shown.slice(0, 500)}`);
  }

  /** Checks that no injected script ran, the policy blocked nothing, and all requests went to the console's origin. */
  async leave() {
    assert.deepEqual(this.errors, []);
    assert.deepEqual(await this.page.evaluate(() => window.violations), []);
    assert.equal(await this.page.evaluate(() => window.pwned), undefined, "a hostile text ran as a script");
    assert.deepEqual(this.requests.filter((it) => !it.startsWith(`${this.base}/`) && !it.startsWith("data:")), []);
    assert.ok(this.requests.every((it) => !it.includes("wm_")), "a URL contains a key");
    await this.context.close();
  }
}

/** Returns the accessibility violations of the visible page in both themes. */
export async function violationsOf(axe, visitor, what) {
  const found = [];
  for (const theme of ["light", "dark"]) {
    await visitor.setTheme(theme);
    // Themes differ only in colors. The debugger is not subject to the page's policy.
    if (theme === "light") await visitor.page.evaluate(axe);
    const rules = theme === "dark" ? { runOnly: ["color-contrast"] } : {};
    const { violations } = await visitor.page.evaluate((it) => window.axe.run(document, { ...it, resultTypes: ["violations"] }), rules);
    for (const it of violations) found.push(`${theme} ${what}: ${it.id} ${it.nodes.map((node) => node.target.join(" ")).slice(0, 3)}`);
  }
  return found;
}
