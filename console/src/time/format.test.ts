import { expect, test } from "vitest";
import {
  clampTime,
  formatDay,
  formatFull,
  formatHour,
  formatMinute,
  formatRange,
  formatRelative,
  formatTimeOfDay,
} from "./format";

const year = new Date().getFullYear();
const now = new Date(year, 5, 15, 12).getTime();
const lastYear = new Date(year - 1, 4, 11, 12).getTime();

test("dates of other years include the year", () => {
  expect(formatDay(now)).not.toContain(String(year));
  expect(formatDay(lastYear)).toContain(String(year - 1));
  expect(formatMinute(lastYear)).toContain(String(year - 1));
  expect(formatRange({ from: lastYear, to: now })).toMatch(new RegExp(`${year - 1}.* – .*${year}`));
  expect(formatRange({ from: now - 1, to: now })).not.toContain(String(year));
});

test("relative times are short, and dates beyond 4 weeks", () => {
  const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
  const before = (ms: number) => formatRelative(now - ms, now);
  expect(before(59_000)).toBe("just now");
  expect([5 * minute, 2 * hour, 6 * day].map(before)).toEqual(["5m ago", "2h ago", "6d ago"]);
  expect([10 * day, 28 * day].map(before)).toEqual(["1w ago", "4w ago"]);
  expect(before(-8 * hour)).toBe("in 8h");
  expect(before(35 * day)).toBe(formatDay(now - 35 * day));
});

test("full times name the viewer's time zone and UTC", () => {
  const style = new Intl.DateTimeFormat(undefined, { timeStyle: "long" });
  const zone = style.formatToParts(now).find((it) => it.type === "timeZoneName")?.value;
  const [local, utc] = formatFull(now).split("\n");
  expect(zone).toBeTruthy();
  expect(local).toContain(zone);
  expect(utc).toMatch(/ UTC$/);
});

test("no number is too large to format as a time", () => {
  for (const at of [1e15 * 1000, -1e18, 1e300, Number.NaN, Infinity, -Infinity]) {
    for (const style of [formatDay, formatMinute, formatHour, formatTimeOfDay, formatFull])
      expect(style(at)).toBeTruthy();
    expect(formatRange({ from: at, to: at })).toBeTruthy();
    expect(formatRelative(clampTime(at), now)).toBeTruthy();
    expect(() => new Date(clampTime(at)).toISOString()).not.toThrow();
  }
  expect(clampTime(now)).toBe(now);
});
