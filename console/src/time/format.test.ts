import { expect, test } from "vitest";
import { ago, clampTime, dayOf, hourOf, inFull, minuteOf, rangeInWords, timeOfDay } from "./format";

const year = new Date().getFullYear();
const now = new Date(year, 5, 15, 12).getTime();
const before = new Date(year - 1, 4, 11, 12).getTime();

test("times of another year have it, and a range has both or none", () => {
  expect(dayOf(now)).not.toContain(String(year));
  expect(dayOf(before)).toContain(String(year - 1));
  expect(minuteOf(before)).toContain(String(year - 1));
  expect(rangeInWords({ from: before, to: now })).toMatch(new RegExp(`${year - 1}.* – .*${year}`));
  expect(rangeInWords({ from: now - 1, to: now })).not.toContain(String(year));
});

test("no number is a time that throws", () => {
  for (const at of [1e15 * 1000, -1e18, 1e300, Number.NaN, Infinity, -Infinity]) {
    for (const words of [dayOf, minuteOf, hourOf, timeOfDay, inFull])
      expect(words(at)).toBeTruthy();
    expect(rangeInWords({ from: at, to: at })).toBeTruthy();
    expect(ago(clampTime(at), now)).toBeTruthy();
    expect(() => new Date(clampTime(at)).toISOString()).not.toThrow();
  }
  expect(clampTime(now)).toBe(now);
});
