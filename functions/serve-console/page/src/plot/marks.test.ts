import { expect, test } from "vitest";
import { layOut, type Mark } from "./marks";

const mark = (at: number): Mark => ({ id: `${at}`, kind: "marker", at, name: "", description: "" });

test("lines that would cover each other are one, and labels end where the next line stands", () => {
  const groups = layOut([mark(200), mark(10), mark(20), mark(100)], (at) => at, 260);
  expect(groups.map((it) => [it.x, it.room, it.marks.map((one) => one.at)])).toEqual([
    [10, 90, [10, 20]],
    [100, 100, [100]],
    [200, 60, [200]],
  ]);
  expect(layOut([], (at) => at, 100)).toEqual([]);
});
