import { expect, test } from "vitest";
import {
  keptView,
  previousName,
  previousRange,
  type Range,
  rangeParams,
  readRange,
  zoomStack,
} from "./range";

const NOW = Date.UTC(2026, 10, 22, 12);
const HOUR = 3_600_000;
const read = (text: string) => readRange(new URLSearchParams(text), NOW);

test("presets end now, and invalid ranges are the default", () => {
  expect(read("range=24h")).toEqual({ preset: "24h", from: NOW - 24 * HOUR, to: NOW });
  for (const text of [
    "",
    "range=2y",
    "from=5",
    "from=x&to=y",
    "from=20&to=10",
    "from=0&to=59999",
  ]) {
    expect(read(text).preset).toBe("7d");
  }
});

test("custom ranges round-trip through the address in whole minutes", () => {
  const params = rangeParams({ from: NOW + 1, to: NOW + HOUR + 1 });
  expect(params).toEqual({ range: null, from: NOW, to: NOW + HOUR + 60_000 });
  expect(read(`from=${params.from}&to=${params.to}`)).toEqual({
    preset: null,
    from: params.from,
    to: params.to,
  });
  const least = rangeParams({ from: NOW, to: NOW });
  expect(read(`from=${least.from}&to=${least.to}`).preset).toBeNull();
});

test("ranges are clamped to the years 1 to 9999", () => {
  const { from, to } = read("from=1&to=1e300");
  expect([from, new Date(to).getUTCFullYear()]).toEqual([1, 9999]);
});

test("the default range has no parameter", () => {
  expect(rangeParams("7d").range).toBeNull();
  expect(rangeParams("30d").range).toBe("30d");
});

test("the previous range has the same length and ends where the range begins", () => {
  expect(previousRange(read("range=1h"))).toEqual({ from: NOW - 2 * HOUR, to: NOW - HOUR });
  expect(previousName(read(""))).toBe("previous 7 days");
  expect(previousName(read("from=0&to=60000"))).toBe("previous period");
});

test("only error pages share filters, search, status and order", () => {
  const text =
    "project=shop&range=30d&f=browser.is.Chrome&f=os.is.iOS&q=cart&status=any&sort=users&id=7";
  const query = new URLSearchParams(text);
  const kept = { project: "shop", with: null, range: "30d", from: null, to: null };
  const view = { f: ["browser.is.Chrome", "os.is.iOS"], q: "cart", status: "any", sort: "users" };
  expect(keptView({ page: "errors", query }, "error")).toEqual({ ...kept, ...view, by: null });
  expect(keptView({ page: "error", query }, "errors")).toEqual({ ...kept, ...view, by: null });
  expect(keptView({ page: "errors", query }, "flags")).toEqual(kept);
  expect(keptView({ page: "insights", query }, "errors")).toEqual(kept);
});

test("zooming out returns to the previous range", () => {
  const [day, zoom, closer] = [
    read("range=24h"),
    read(`from=${NOW - 9 * HOUR}&to=${NOW - 3 * HOUR}`),
    read(`from=${NOW - 8 * HOUR}&to=${NOW - 7 * HOUR}`),
  ];
  const through = (...ranges: Range[]) => ranges.reduce(zoomStack, [] as Range[]);
  expect(through(day, zoom, closer)).toEqual([day, zoom, closer]);
  expect(through(day, zoom, closer, zoom)).toEqual([day, zoom]);
  expect(through(day, zoom, day)).toEqual([day]);
  expect(through(closer)).toEqual([closer]);
  const elsewhere = read(`from=${NOW - 90 * HOUR}&to=${NOW - 80 * HOUR}`);
  expect(through(day, zoom, elsewhere)).toEqual([day, elsewhere]);
});
