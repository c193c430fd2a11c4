import { expect, test } from "vitest";
import { leftOver, readControls, textOf, withoutSpans } from "./words";

// A Wednesday.
const NOW = new Date(2026, 10, 25, 15, 30).getTime();
const HOUR = 3_600_000;
const NONE = new Set<string>();
const read = (text: string, known = NONE) => readControls(text, NOW, known);
const day = (date: number) => new Date(2026, 10, date).getTime();

test("times set the range", () => {
  expect(read("chrome last 3 hours").range).toEqual({ from: NOW - 3 * HOUR, to: NOW });
  expect(read("in the last 24 hours").range).toBe("24h");
  expect(read("past week").range).toBe("7d");
  expect(read("last week").range).toEqual({ from: day(16), to: day(23) });
  expect(read("payments this week").range).toEqual({ from: day(23), to: NOW });
  expect(read("since Monday").range).toEqual({ from: day(23), to: NOW });
  expect(read("since Wednesday").range).toEqual({ from: day(18), to: NOW });
  expect(read("since 14:00").range).toEqual({ from: NOW - 1.5 * HOUR, to: NOW });
  expect(read("since 2026-11-20").range).toEqual({ from: day(20), to: NOW });
  expect(read("since Nov 20").range).toEqual({ from: day(20), to: NOW });
  expect(read("yesterday").range).toEqual({ from: day(24), to: day(25) });
  expect(read("on tuesday").range).toEqual({ from: day(24), to: day(25) });
  expect(read("today").range).toEqual({ from: day(25), to: NOW });
});

test("statuses set the status, unless a value has this name", () => {
  expect(read("resolved in chrome").status).toBe("resolved");
  expect(read("not resolved").status).toBe("open");
  expect(read("openssl").status).toBeNull();
  expect(read("open", new Set(["open"])).status).toBeNull();
  expect(read("status:open").status).toBeNull();
});

test("controls leave the positions of other words", () => {
  const text = "😀 resolved chrome since yesterday";
  const { spans } = read(text);
  expect(withoutSpans(text, spans)).toBe("😀          chrome                ");
});

test("no word is dropped", () => {
  const left = (text: string, used: { from: number; to: number }[]) =>
    leftOver(text, used, []).map((it) => textOf(text, [it]));
  // “germany” was understood.
  expect(left("payments from germany", [{ from: 14, to: 21 }])).toEqual(["payments"]);
  expect(left("show me the big “payment form” in, germany!", [{ from: 35, to: 42 }])).toEqual([
    "big",
    "payment form",
  ]);
  expect(left("the errors", [])).toEqual([]);
});
