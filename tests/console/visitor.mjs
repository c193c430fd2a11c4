// A visitor of the console: a browser tab, with its requests and errors.

import assert from "node:assert/strict";

/** Long enough for a machine that runs other tests. */
const TIMEOUT_MS = 60_000;
const LOADED = { waitUntil: "load", timeout: TIMEOUT_MS };
/** Time without pending requests after which a page is idle: a response can cause another request. */
const IDLE_MS = 100;
/** Time for which the page shows a toast. */
const TOAST_MS = 10_000;

/** The window of a visitor. */
export const VIEWPORT = { width: 1280, height: 900 };
/** Widths of windows that pages must fit. */
const WIDTHS = [360, 768, 820, 2560];
/** Events of a tab that visitors and tests listen to. */
const EVENTS = ["console", "pageerror", "request", "framenavigated", "requestfinished", "requestfailed", "response", "dialog"];
/** Tabs of visitors that left, for the next ones: a browser session takes 0.8 seconds of CPU time. */
const tabs = [];

/** Runs in a page. Stores a key in the tab's session, as a link does after exchanging its code. */
export function storeKey(key) {
  sessionStorage.clear();
  sessionStorage.setItem("waymark.key", key);
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
  /** Opens the console with a key, in a tab that the next visitor gets. `null` opens no page yet. */
  static async enter(browser, base, key, path = "") {
    const page = tabs.pop() ?? (await Visitor.newTab(await browser.createBrowserContext()));
    const visitor = new Visitor(page, base, key);
    visitor.isShared = true;
    if (path !== null) await visitor.open(path);
    return visitor;
  }

  /** Opens the console in a new browser session, without a key if it is `undefined`. */
  static async arrive(browser, base, path, key) {
    const visitor = new Visitor(await Visitor.newTab(await browser.createBrowserContext()), base, key);
    await visitor.open(path);
    return visitor;
  }

  /** Opens the console in another tab of the same browser session. */
  async openTab(path) {
    const visitor = new Visitor(await Visitor.newTab(this.context), this.base);
    await visitor.open(path);
    return visitor;
  }

  static async newTab(context) {
    const page = await context.newPage();
    await page.evaluateOnNewDocument((toastMs) => {
      // Toasts stay longer, so that a busy machine can still press their buttons.
      const later = window.setTimeout;
      window.setTimeout = (run, ms, ...more) => later(run, ms === toastMs ? 6 * ms : ms, ...more);
      window.violations = [];
      addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    }, TOAST_MS);
    return page;
  }

  constructor(page, base, key) {
    this.context = page.browserContext();
    this.page = page;
    this.base = base;
    this.key = key;
    this.errors = [];
    this.requests = [];
    this.responses = [];
    this.pending = new Set();
    this.mocks = null;
    page.on("console", (message) => {
      // Tests provoke 4xx, and 503 responses of a busy machine are retried.
      if (message.type() === "error" && !/status of (4\d\d|503)/.test(message.text())) this.errors.push(message.text());
    });
    page.on("pageerror", (error) => this.errors.push(String(error)));
    // Puppeteer includes the fragment, which browsers do not send.
    page.on("request", (request) => {
      this.requests.push(request.url().split("#")[0]);
      this.pending.add(request);
    });
    // Requests of a previous page get no further events.
    page.on("framenavigated", () => this.pending.clear());
    page.on("requestfinished", (request) => this.pending.delete(request));
    page.on("requestfailed", (request) => this.pending.delete(request));
    page.on("response", (response) => this.responses.push(response));
  }

  /** Sets the theme, and waits until it is drawn. */
  async setTheme(theme) {
    await this.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
    await this.page.evaluate(() => new Promise((resume) => requestAnimationFrame(() => requestAnimationFrame(resume))));
  }

  /** Loads a page. The first one finds the visitor's key in the tab's session. */
  async open(path) {
    const entry = this.key && (await this.page.evaluateOnNewDocument(storeKey, this.key));
    this.key = null;
    await this.page.goto(`${this.base}/console${path}`, LOADED);
    if (entry) await this.page.removeScriptToEvaluateOnNewDocument(entry.identifier);
    await this.settle();
  }

  /** Goes to a page without loading it again, as a link does. */
  async goTo(path) {
    await this.page.evaluate((it) => {
      history.pushState(null, "", `/console${it}`);
      dispatchEvent(new PopStateEvent("popstate"));
    }, path);
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
    if (!this.isShared) return this.context.close();
    // Without an argument, `removeAllListeners` closes the tab.
    const removeListeners = () => {
      for (const it of EVENTS) this.page.removeAllListeners(it);
    };
    removeListeners();
    // Unsaved changes show a warning.
    this.page.on("dialog", (it) => it.accept());
    await this.page.goto("about:blank");
    removeListeners();
    await this.page.setRequestInterception(false);
    await this.page.emulateMediaFeatures();
    await this.page.setViewport(VIEWPORT);
    tabs.push(this.page);
  }
}

/** Returns the accessibility violations of the visible page, with the contrasts of a part in both themes. */
export async function violationsOf(axe, visitor, what, part = "html") {
  // The debugger is not subject to the page's policy.
  await visitor.page.evaluate(axe);
  const run = async (context, options, name) => {
    const { violations } = await visitor.page.evaluate((at, it) => window.axe.run(at, { ...it, resultTypes: ["violations"] }), context, options);
    return violations.map((it) => `${name}: ${it.id} ${it.nodes.map((node) => node.target.join(" ")).slice(0, 3)}`);
  };
  const found = await run("html", { rules: { "color-contrast": { enabled: false } } }, what);
  // Themes differ only in colors.
  for (const theme of ["light", "dark"]) {
    await visitor.setTheme(theme);
    found.push(...(await run(part, { runOnly: ["color-contrast"] }, `${theme} ${what}`)));
  }
  return found;
}

/** Returns the accessibility violations of the visible page, and the widths of windows that it does not fit. */
export async function faultsOf(axe, visitor, path) {
  const found = await violationsOf(axe, visitor, path);
  for (const width of WIDTHS) {
    await visitor.page.setViewport({ ...VIEWPORT, width });
    // Plots are resized in later frames.
    const over = await visitor.page.evaluate(async () => {
      const measure = () => document.documentElement.scrollWidth - innerWidth;
      for (let frame = 0; frame < 60 && measure() > 0; frame++) await new Promise(requestAnimationFrame);
      return measure();
    });
    if (over > 0) found.push(`${path} at ${width} px: ${over} px`);
  }
  await visitor.page.setViewport(VIEWPORT);
  return found;
}
