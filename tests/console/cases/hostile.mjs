// Events and addresses that only an attacker sends: the page stays whole and quick.

import assert from "node:assert/strict";
import { HOSTILE } from "../data.mjs";
import { Visitor } from "../visitor.mjs";

const EVENTS = 500;
const PAGE_SIZE = 20;
const MOST_MS = 2_000;
/** The largest event that the API takes. */
const MOST_BYTES = 1_000_000;

/** Returns a generator of numbers from 0 to 1 that a seed determines (mulberry32). */
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

/** Returns an event as JSON, with wrong types, sizes, numbers, names and depths in any of its members. */
function eventOf(random) {
  const below = (most) => Math.floor(random() * most);
  const pick = (all) => all[below(all.length)];
  const maybe = (share, make) => (random() < share ? make() : undefined);
  // About as many characters as are left; few events are as large as the API takes them.
  let left = random() < 0.05 ? 1_000_000 : 5_000;
  const spend = (most, each) => {
    const count = below(Math.max(0, Math.min(most, left / each)));
    left -= count * each;
    return count;
  };
  const long = (it) => it.repeat(spend(1e6, it.length));
  const text = () => pick([() => pick(HOSTILE), () => pick(INHERITED), () => "", () => "\ud800 \u0000 \u202e\u2066", () => long("x "), () => long("y"), () => "2026-11-20T20:00:00Z", () => "+999999-01-01T00:00:00Z", () => long("\n")])();
  const value = (depth = 3) => pick([() => null, () => true, () => pick(NUMBERS), text, text, () => nested(spend(500, 8)), () => (depth ? list(() => value(depth - 1)) : []), () => (depth ? members(() => value(depth - 1)) : {})])();
  const list = (make) => Array.from({ length: spend(random() < 0.1 ? 1e6 : 6, 50) }, make);
  const members = (make) => Object.fromEntries(list(() => [random() < 0.3 ? pick(INHERITED) : text().slice(0, 40), make()]));
  /** Returns the expected form, or any other value. */
  const or = (make) => (random() < 0.15 ? value() : make());
  const listed = (make) => or(() => (random() < 0.5 ? list(make) : { values: list(make) }));
  const flat = () => pick([null, 7, "x", "constructor", 1e15]);
  const frame = () => or(() => ({
    filename: or(text), abs_path: maybe(0.3, text), function: or(text), module: maybe(0.3, text), lineno: or(() => pick(NUMBERS)), colno: maybe(0.5, value), in_app: pick([true, false, "no", null]),
    context_line: maybe(0.5, () => or(text)), pre_context: maybe(0.3, () => or(() => list(flat))), post_context: maybe(0.3, () => or(() => list(flat))),
  }));
  const exception = () => or(() => ({ type: or(text), value: or(text), mechanism: or(() => ({ handled: pick([true, false, "x", null]) })), stacktrace: or(() => ({ frames: or(() => list(random() < 0.1 ? frame : () => ({ function: "f", in_app: random() < 0.5, context_line: "x", pre_context: ["a"] }))) })) }));
  const crumb = () => or(() => ({ timestamp: or(() => pick(NUMBERS)), category: or(text), message: maybe(0.7, () => or(text)), level: maybe(0.5, () => pick(["error", "fatal", ...INHERITED])), data: maybe(0.5, () => or(() => members(flat))) }));
  const plainCrumb = () => ({ timestamp: pick(NUMBERS), message: "clicked" });
  const whole = {
    message: maybe(0.3, () => or(text)), logentry: maybe(0.2, () => or(() => ({ formatted: value() }))),
    exception: maybe(0.7, () => listed(exception)), breadcrumbs: maybe(0.7, () => listed(random() < 0.5 ? crumb : plainCrumb)),
    tags: maybe(0.6, () => or(() => (random() < 0.5 ? list(() => or(() => [text(), flat()])) : members(flat)))),
    contexts: maybe(0.6, () => or(() => members(() => or(() => members(value))))), user: maybe(0.4, () => or(() => members(value))), request: maybe(0.3, () => or(() => members(value))), extra: maybe(0.4, () => or(() => members(value))),
    environment: maybe(0.3, value), release: maybe(0.3, value), level: maybe(0.3, value), platform: maybe(0.3, value), transaction: maybe(0.3, value), server_name: maybe(0.3, value), timestamp: pick(NUMBERS),
  };
  const json = JSON.stringify(random() < 0.03 ? value() : whole);
  return json.length <= MOST_BYTES ? json : eventOf(random);
}

export const hostile = ({ browser, base, project, key, known, measured }) => {
  const idOf = (number) => number.toString(16).padStart(8, "0").padEnd(32, "e");
  const { error } = known;
  /** Opens the page of an error with these events, each of them JSON. */
  const openEvents = async (visitor, events) => {
    const occurredAt = new Date().toISOString();
    await visitor.answer(`/${error.errorId}/events`, (request) => {
      const start = Number(new URL(request.url()).searchParams.get("cursor") ?? 0);
      const items = events.slice(start, start + PAGE_SIZE).map((it, index) => `{"eventId":"${idOf(start + index)}","occurredAt":"${occurredAt}","event":${it}}`);
      const next = start + PAGE_SIZE < events.length ? start + PAGE_SIZE : null;
      return { text: `{"items":[${items}],"nextCursor":${next && `"${next}"`}}` };
    });
    await visitor.open(`/error?id=${error.errorId}`);
  };
  /** Steps through the events as keys do. Returns the slowest, and what the first that was not displayed left. */
  const stepThrough = (visitor, ids, most) =>
    visitor.page.evaluate(
      async (ids, most) => {
        const shown = () => document.querySelector(".stepper code")?.textContent;
        const wrong = [];
        addEventListener("error", (event) => wrong.push(event.message));
        addEventListener("unhandledrejection", (event) => wrong.push(String(event.reason)));
        let slowest = 0;
        for (const [number, id] of ids.entries()) {
          const started = performance.now();
          if (number > 0) dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
          let ms = 0;
          do {
            await new Promise((resume) => setTimeout(resume));
            ms = performance.now() - started;
          } while (shown() !== id && ms < 10 * most);
          document.querySelector(".raw summary")?.click();
          await new Promise((resume) => setTimeout(resume));
          // Forces the layout, after which the page answers clicks.
          document.body.getBoundingClientRect();
          ms = performance.now() - started;
          slowest = Math.max(slowest, Math.round(ms));
          for (const it of document.querySelectorAll(".refused")) wrong.push(it.innerText);
          if (shown() !== id) wrong.push("it is never shown");
          if (ms >= most) wrong.push(`it takes ${Math.round(ms)} ms`);
          if (wrong.length) return { slowest, number, wrong };
        }
        return { slowest, wrong };
      },
      ids.map((it) => it.slice(0, 8)),
      most,
    );

  return {
    async "500 hostile events leave the page whole and quick"() {
      const seed = Number(process.env.SEED ?? Date.now() % 2 ** 32);
      console.log(`hostile events: SEED=${seed}`);
      const random = randomOf(seed);
      const events = Array.from({ length: EVENTS }, () => eventOf(random));
      const visitor = await Visitor.enter(browser, base, key, "/settings");
      await openEvents(visitor, events);
      const { slowest, number, wrong } = await stepThrough(visitor, events.map((_, index) => idOf(index)), MOST_MS);
      assert.deepEqual(wrong, [], `SEED=${seed}, event ${number}: ${events[number]?.slice(0, 1_000)}`);
      measured.slowestEventMs = slowest;
      await visitor.leave();
    },

    async "long lists of an event are shown 100 at a time"() {
      const crumbs = Array.from({ length: 110_000 }, (_, number) => ({ message: `crumb ${number}`, timestamp: 1e15 }));
      const frames = Array.from({ length: 5_000 }, (_, number) => ({ function: `frame${number}`, in_app: number % 2 === 0 }));
      const values = Array.from({ length: 50 }, (_, number) => ({ type: `Cause${number}`, value: "it", stacktrace: { frames: number === 49 ? frames : [] } }));
      const tags = Object.fromEntries(Array.from({ length: 5_000 }, (_, number) => [`tag${number}`, number]));
      const event = { exception: { values }, breadcrumbs: crumbs, tags, extra: tags };
      const visitor = await Visitor.enter(browser, base, key, "/settings");
      await openEvents(visitor, ["{}", event].map((it) => JSON.stringify(it)));
      const { slowest, wrong } = await stepThrough(visitor, [idOf(0), idOf(1)], MOST_MS);
      assert.deepEqual(wrong, []);
      measured.longEventMs = slowest;
      const counts = () => Promise.all([".exception", ".exception:nth-of-type(1) .frames li", ".crumbs li", ".pairs tr"].map((it) => visitor.page.$$eval(it, (all) => all.length)));
      assert.deepEqual(await counts(), [10, 100, 100, 200]);
      assert.match((await visitor.texts(".crumbs li")).at(-1), /crumb 109999/, "the last before the error is shown");
      for (const button of await visitor.page.$$("main button.more")) await button.click();
      await visitor.until("there are more of each", async () => (await counts()).join() === "20,200,200,400");
      assert.match((await visitor.texts(".crumbs li"))[0], /crumb 109800/);
      await visitor.leave();
    },

    async "a page, or a part of it, that cannot be displayed says so, and others can"() {
      const visitor = await Visitor.enter(browser, base, key, "/settings");
      // Deeper than `JSON.stringify` goes.
      const deep = `{"message":"deep","tags":{"a":"b"},"extra":{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}}`;
      await openEvents(visitor, [deep]);
      await visitor.click("Raw JSON");
      await visitor.see(".refused");
      assert.match(await visitor.text(".refused"), /The raw JSON could not be displayed.[\s\S]+API/);
      assert.match(await visitor.text(".two"), /Tags[\s\S]+b[\s\S]+Context[\s\S]+extra.a/);
      visitor.faults.splice(0);

      await visitor.answer(error.errorId, () => ({ body: { ...error, title: null } }));
      await visitor.open(`/error?id=${error.errorId}`);
      await visitor.see("main > .refused");
      assert.match(await visitor.text("main"), /This page could not be displayed.[\s\S]+Try again/);
      assert.equal(await visitor.page.$("main h1"), null, "nothing of the page is left");
      assert.equal(visitor.faults.length, 1);
      visitor.faults.splice(0);
      await visitor.click("Settings");
      await visitor.until("another page is there", async () => (await visitor.texts("h1")).join() === "Settings");
      assert.equal(await visitor.page.$(".refused"), null);
      await visitor.leave();
    },

    async "no address breaks the frame"() {
      const visitor = await Visitor.enter(browser, base, key, "/settings");
      const goTo = async (path) => {
        await visitor.page.evaluate((it) => {
          history.pushState(null, "", `/console${it}`);
          dispatchEvent(new PopStateEvent("popstate"));
        }, path);
        await visitor.settle();
      };
      const odd = INHERITED.slice(0, 7);
      for (const page of odd) {
        await goTo(`/${page}`);
        assert.match(await visitor.text("main"), /There is no such page/, page);
      }
      const ranges = ["from=1&to=1e300", "from=-1e300&to=1e300", "from=8.64e15&to=9e15", "from=0&to=Infinity"];
      const names = odd.map((it) => `range=${it}&sort=${it}&status=${it}&by=${it}&with=${it}&q=${it}&${it}=1&f=${it}.${it}.x&f=level.${it}.x&f=${it}.is.x`);
      for (const query of [...ranges, ...names]) {
        await goTo(`/errors?project=${project}&${query}`);
        await visitor.see(".range summary");
        // Links also write the address again.
        await visitor.page.evaluate(() => document.querySelectorAll(".range .segments button")[1].click());
        await visitor.until(`another range is in the address: ${query}`, () => visitor.page.url().includes("range=24h"));
        assert.deepEqual(visitor.faults, [], query);
      }
      await visitor.open("?from=1&to=1e300");
      await visitor.see(".range summary");
      assert.match(await visitor.text(".range summary"), /1970.* – .*9999/);
      await visitor.leave();
    },
  };
};
