// Events and addresses by an attacker: the page stays complete and fast.

import assert from "node:assert/strict";
import { HOSTILE } from "../data.mjs";
import { VIEWPORT, Visitor } from "../visitor.mjs";

const EVENTS = 200;
const MAX_MS = 2_000;
/** The API's limit on the size of an event. */
const MAX_BYTES = 1_000_000;

/** Returns a seeded generator of numbers from 0 to 1 (mulberry32). */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let it = Math.imul(state ^ (state >>> 15), state | 1);
    it ^= it + Math.imul(it ^ (it >>> 7), it | 61);
    return ((it ^ (it >>> 14)) >>> 0) / 2 ** 32;
  };
}

const INHERITED = ["__proto__", "constructor", "hasOwnProperty", "toString", "valueOf", "toJSON", "length", "then", "type", "values"];
const NUMBERS = [0, -1, 1e15, -1e15, 1e300, -1e300, 2 ** 53, 1e-300, 8.64e15, 8.64e12 + 1, -62135596801, 253402300800, 1.5];
const nested = (depth, inner = "deep") => (depth ? { a: [nested(depth - 1, inner)] } : inner);

/** Returns an event as JSON, with wrong types, sizes, numbers, names and depths in any field. */
function eventOf(random) {
  const below = (most) => Math.floor(random() * most);
  const pick = (all) => all[below(all.length)];
  const maybe = (share, create) => (random() < share ? create() : undefined);
  // Approximate number of characters left; few events are as large as the API allows.
  let left = random() < 0.05 ? 1_000_000 : 5_000;
  const spend = (most, each) => {
    const count = below(Math.max(0, Math.min(most, left / each)));
    left -= count * each;
    return count;
  };
  const long = (it) => it.repeat(spend(1e6, it.length));
  const text = () => pick([() => pick(HOSTILE), () => pick(INHERITED), () => "", () => "\ud800 \u0000 \u202e\u2066", () => long("x "), () => long("y"), () => "2026-11-20T20:00:00Z", () => "+999999-01-01T00:00:00Z", () => long("\n")])();
  const value = (depth = 3) => pick([() => null, () => true, () => pick(NUMBERS), text, text, () => nested(spend(500, 8)), () => (depth ? list(() => value(depth - 1)) : []), () => (depth ? object(() => value(depth - 1)) : {})])();
  const list = (create) => Array.from({ length: spend(random() < 0.1 ? 1e6 : 6, 50) }, create);
  const object = (create) => Object.fromEntries(list(() => [random() < 0.3 ? pick(INHERITED) : text().slice(0, 40), create()]));
  /** Returns the expected form, or any other value. */
  const or = (create) => (random() < 0.15 ? value() : create());
  const listed = (create) => or(() => (random() < 0.5 ? list(create) : { values: list(create) }));
  const flat = () => pick([null, 7, "x", "constructor", 1e15]);
  const frame = () => or(() => ({
    filename: or(text), abs_path: maybe(0.3, text), function: or(text), module: maybe(0.3, text), lineno: or(() => pick(NUMBERS)), colno: maybe(0.5, value), in_app: pick([true, false, "no", null]),
    context_line: maybe(0.5, () => or(text)), pre_context: maybe(0.3, () => or(() => list(flat))), post_context: maybe(0.3, () => or(() => list(flat))),
  }));
  const exception = () => or(() => ({ type: or(text), value: or(text), mechanism: or(() => ({ handled: pick([true, false, "x", null]) })), stacktrace: or(() => ({ frames: or(() => list(random() < 0.1 ? frame : () => ({ function: "f", in_app: random() < 0.5, context_line: "x", pre_context: ["a"] }))) })) }));
  const crumb = () => or(() => ({ timestamp: or(() => pick(NUMBERS)), category: or(text), message: maybe(0.7, () => or(text)), level: maybe(0.5, () => pick(["error", "fatal", ...INHERITED])), data: maybe(0.5, () => or(() => object(flat))) }));
  const plainCrumb = () => ({ timestamp: pick(NUMBERS), message: "clicked" });
  const whole = {
    message: maybe(0.3, () => or(text)), logentry: maybe(0.2, () => or(() => ({ formatted: value() }))),
    exception: maybe(0.7, () => listed(exception)), breadcrumbs: maybe(0.7, () => listed(random() < 0.5 ? crumb : plainCrumb)),
    tags: maybe(0.6, () => or(() => (random() < 0.5 ? list(() => or(() => [text(), flat()])) : object(flat)))),
    contexts: maybe(0.6, () => or(() => object(() => or(() => object(value))))), user: maybe(0.4, () => or(() => object(value))), request: maybe(0.3, () => or(() => object(value))), extra: maybe(0.4, () => or(() => object(value))),
    environment: maybe(0.3, value), release: maybe(0.3, value), level: maybe(0.3, value), platform: maybe(0.3, value), transaction: maybe(0.3, value), server_name: maybe(0.3, value), timestamp: pick(NUMBERS),
  };
  const json = JSON.stringify(random() < 0.03 ? value() : whole);
  return json.length <= MAX_BYTES ? json : eventOf(random);
}

export const hostile = ({ browser, base, project, key, known, measured }) => {
  const idOf = (number) => number.toString(16).padStart(8, "0").padEnd(32, "e");
  const { error } = known;
  /** Opens the page of an error with these events in JSON. */
  const openEvents = async (visitor, events) => {
    const occurredAt = new Date().toISOString();
    await visitor.mock(`/${error.errorId}/events/query`, async (request) => {
      const { event } = JSON.parse(await request.fetchPostData());
      const start = event ? Number.parseInt(event.slice(0, 8), 16) : 0;
      const items = events.slice(start, start + 2).map((it, index) => `{"eventId":"${idOf(start + index)}","occurredAt":"${occurredAt}","event":${it}}`);
      return { text: `{"items":[${items}],"total":${events.length},"position":${start + 1},"nextCursor":null}` };
    });
    await visitor.open(`/error?id=${error.errorId}`);
  };
  /**
   * Steps through the events by key. Returns the slowest time, and the failures of the first event that has
   * any. Times are those of the page's thread: other programs do not count.
   */
  const stepThrough = async (visitor, ids, maxMs) => {
    const devtools = await visitor.page.createCDPSession();
    await devtools.send("Performance.enable");
    const threadMs = async () => (await devtools.send("Performance.getMetrics")).metrics.find((it) => it.name === "ThreadTime").value * 1_000;
    await visitor.page.evaluate(() => {
      window.failures = [];
      addEventListener("error", (event) => window.failures.push(event.message));
      addEventListener("unhandledrejection", (event) => window.failures.push(String(event.reason)));
    });
    let slowest = 0;
    for (const [number, id] of ids.entries()) {
      const started = await threadMs();
      const failures = await visitor.page.evaluate(
        async (id, isFirst, limitMs) => {
          const shown = () => document.querySelector(".stepper code")?.textContent;
          const started = performance.now();
          if (!isFirst) dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
          do await new Promise((resume) => setTimeout(resume));
          while (shown() !== id && performance.now() - started < limitMs);
          document.querySelector(".raw summary")?.click();
          await new Promise((resume) => setTimeout(resume));
          // Forces the layout, after which the page responds to clicks.
          document.body.getBoundingClientRect();
          for (const it of document.querySelectorAll(".error-box")) window.failures.push(it.innerText);
          if (shown() !== id) window.failures.push("the event is never shown");
          return window.failures;
        },
        id.slice(0, 8),
        number === 0,
        30 * maxMs,
      );
      const ms = Math.round((await threadMs()) - started);
      slowest = Math.max(slowest, ms);
      if (ms >= maxMs) failures.push(`the event takes ${ms} ms`);
      if (failures.length) return { slowest, number, failures };
    }
    return { slowest, failures: [] };
  };

  return {
    async "hostile events display completely and fast"() {
      const seed = Number(process.env.SEED ?? Date.now() % 2 ** 32);
      console.log(`hostile events: SEED=${seed}`);
      const random = randomOf(seed);
      const events = Array.from({ length: EVENTS }, () => eventOf(random));
      const visitor = await Visitor.enter(browser, base, key, null);
      // A low window paints less of each event.
      await visitor.page.setViewport({ ...VIEWPORT, height: 100 });
      await openEvents(visitor, events);
      const { slowest, number, failures } = await stepThrough(visitor, events.map((_, index) => idOf(index)), MAX_MS);
      assert.deepEqual(failures, [], `SEED=${seed}, event ${number}: ${events[number]?.slice(0, 1_000)}`);
      measured.slowestEventMs = slowest;
      await visitor.leave();
    },

    async "long lists of an event are shown 100 at a time"() {
      const crumbs = Array.from({ length: 110_000 }, (_, number) => ({ message: `crumb ${number}`, timestamp: 1e15 }));
      const frames = Array.from({ length: 5_000 }, (_, number) => ({ function: `frame${number}`, in_app: number % 2 === 0 }));
      const values = Array.from({ length: 50 }, (_, number) => ({ type: `Cause${number}`, value: "it", stacktrace: { frames: number === 49 ? frames : [] } }));
      const tags = Object.fromEntries(Array.from({ length: 5_000 }, (_, number) => [`tag${number}`, number]));
      const event = { exception: { values }, breadcrumbs: crumbs, tags, extra: tags };
      const visitor = await Visitor.enter(browser, base, key, null);
      await openEvents(visitor, ["{}", event].map((it) => JSON.stringify(it)));
      const { slowest, failures } = await stepThrough(visitor, [idOf(0), idOf(1)], MAX_MS);
      assert.deepEqual(failures, []);
      measured.longEventMs = slowest;
      const counts = () => Promise.all([".exception", ".exception:nth-of-type(1) .frames li", ".crumbs li", ".pairs tr"].map((it) => visitor.page.$$eval(it, (all) => all.length)));
      assert.deepEqual(await counts(), [10, 100, 100, 200]);
      assert.match((await visitor.texts(".crumbs li")).at(-1), /crumb 109999/, "the last breadcrumb is shown");
      for (const button of await visitor.page.$$("main button.more")) await button.click();
      await visitor.until("more of each list is shown", async () => (await counts()).join() === "20,200,200,400");
      assert.match((await visitor.texts(".crumbs li"))[0], /crumb 109800/);
      await visitor.leave();
    },

    async "a page or section that fails shows an error"() {
      const visitor = await Visitor.enter(browser, base, key, null);
      // Too deep for `JSON.stringify`.
      const deep = `{"message":"deep","tags":{"a":"b"},"extra":{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}}`;
      await openEvents(visitor, [deep]);
      await visitor.click("Raw JSON");
      await visitor.see(".error-box");
      assert.match(await visitor.text(".error-box"), /The raw JSON could not be displayed.[\s\S]+API/);
      assert.match(await visitor.text(".two"), /Tags[\s\S]+b[\s\S]+Context[\s\S]+extra.a/);
      visitor.errors.splice(0);

      await visitor.mock(error.errorId, () => ({ body: { ...error, title: null } }));
      await visitor.open(`/error?id=${error.errorId}`);
      await visitor.see("main > .error-box");
      assert.match(await visitor.text("main"), /This page could not be displayed.[\s\S]+Try again/);
      assert.equal(await visitor.page.$("main h1"), null, "the rest of the page is hidden");
      assert.equal(visitor.errors.length, 1);
      visitor.errors.splice(0);
      await visitor.click("Settings");
      await visitor.until("another page opens", async () => (await visitor.texts("h1")).join() === "Settings");
      assert.equal(await visitor.page.$(".error-box"), null);
      await visitor.leave();
    },

    async "no address breaks the frame"() {
      const visitor = await Visitor.enter(browser, base, key, "/settings");
      const odd = INHERITED.slice(0, 7);
      for (const page of odd) {
        await visitor.goTo(`/${page}`);
        assert.match(await visitor.text("main"), /Page not found/, page);
      }
      const ranges = ["from=1&to=1e300", "from=-1e300&to=1e300", "from=8.64e15&to=9e15", "from=0&to=Infinity"];
      const names = odd.map((it) => `range=${it}&sort=${it}&status=${it}&by=${it}&with=${it}&q=${it}&${it}=1&f=${it}.${it}.x&f=level.${it}.x&f=${it}.is.x`);
      for (const query of [...ranges, ...names]) {
        await visitor.goTo(`/errors?project=${project}&${query}`);
        await visitor.see(".range summary");
        // Links also rebuild the address.
        await visitor.page.evaluate(() => document.querySelectorAll(".range .segments button")[1].click());
        await visitor.until(`the address has another range: ${query}`, () => visitor.page.url().includes("range=24h"));
        assert.deepEqual(visitor.errors, [], query);
      }
      await visitor.open("?from=1&to=1e300");
      await visitor.see(".range summary");
      assert.match(await visitor.text(".range summary"), /1970.* – .*9999/);
      await visitor.leave();
    },
  };
};
