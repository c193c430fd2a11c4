import { expect, test } from "vitest";
import { newestOf, type Timed } from "./newest";

const PAGE = 100;

/** A list as the API returns it: pages, oldest first. */
function listOf(times: number[]) {
  const requests: number[] = [];
  const load = async (from: number, cursor: string | undefined) => {
    requests.push(from);
    const start = cursor === undefined ? times.findIndex((it) => it >= from) : Number(cursor);
    const items = start < 0 ? [] : times.slice(start, start + PAGE);
    const end = start + items.length;
    return {
      items: items.map((it): Timed => ({ occurredAt: new Date(it).toISOString() })),
      nextCursor: start >= 0 && end < times.length ? String(end) : null,
    };
  };
  return { load, requests };
}
const timesOf = (items: Timed[]) => items.map((it) => Date.parse(it.occurredAt));
const every = (count: number, step: number) =>
  Array.from({ length: count }, (_, index) => index * step);

test("a list of a few pages is loaded in full", async () => {
  const times = every(350, 1000);
  const { load, requests } = listOf(times);
  const found = await newestOf(load, 0, 400_000, 5);
  expect(found.isAll).toBe(true);
  expect(timesOf(found.items)).toEqual(times);
  expect(requests).toHaveLength(4);
});

test("the newest items of a longer list have no gap and take few requests", async () => {
  for (const times of [
    every(20_000, 1000),
    [...every(5_000, 60_000), ...every(900, 1).map((it) => 4e8 + it)],
  ]) {
    const { load, requests } = listOf(times);
    const found = await newestOf(load, 0, (times.at(-1) as number) + 1, 2);
    expect(found.isAll).toBe(false);
    expect(found.items.length).toBeGreaterThan(0);
    expect(timesOf(found.items)).toEqual(times.filter((it) => it >= found.from));
    expect(requests.length).toBeLessThanOrEqual(25);
  }
});

test("many items at one moment or after the assumed end are handled", async () => {
  const { load } = listOf([...every(150, 1), ...Array(300).fill(5_000)]);
  const found = await newestOf(load, 0, 5_001, 1);
  expect(timesOf(found.items).every((it) => it === 5_000)).toBe(true);
  const late = await newestOf(listOf(every(1_000, 1_000)).load, 0, 500_000, 1);
  expect(late.isAll).toBe(false);
  expect(late.items.length).toBeGreaterThan(0);
});
