import { expect, test } from "vitest";
import { layOut, type Mark, placeCard } from "./marks";

const mark = (at: number): Mark => ({ id: `${at}`, kind: "marker", at, name: "", description: "" });

test("overlapping lines are grouped, and labels end at the next line", () => {
  const groups = layOut([mark(200), mark(10), mark(20), mark(100)], (at) => at, 260);
  expect(groups.map((it) => [it.x, it.width, it.marks.map((one) => one.at)])).toEqual([
    [10, 90, [10, 20]],
    [100, 100, [100]],
    [200, 60, [200]],
  ]);
  expect(layOut([], (at) => at, 100)).toEqual([]);
});

test("cards stay between the edges", () => {
  const edges = { left: -44, right: 284 };
  expect(placeCard(10, edges, false)).toEqual({ left: 4, width: 260 });
  // In the middle, the card fits on neither side.
  expect(placeCard(150, edges, false)).toEqual({ left: 24 - 150, width: 260 });
  expect(placeCard(200, edges, true)).toEqual({ left: -44 - 200, width: 260 });
  expect(placeCard(280, edges, true)).toEqual({ left: -264, width: 260 });
  expect(placeCard(10, { left: 0, right: 200 }, false)).toEqual({ left: -10, width: 200 });
});
