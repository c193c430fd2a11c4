import { expect, test } from "vitest";
import { downsample } from "./spark";

test("downsampling keeps the sum and aligns to the newest count", () => {
  expect(downsample([1, 2, 3], 3)).toEqual([1, 2, 3]);
  expect(downsample([1, 2, 3, 4, 5], 3)).toEqual([1, 5, 9]);
  expect(downsample([], 3)).toEqual([]);
  const many = Array.from({ length: 401 }, (_, index) => index % 7);
  const few = downsample(many, 48);
  expect(few.length).toBeLessThanOrEqual(48);
  const sum = (values: number[]) => values.reduce((one, other) => one + other, 0);
  expect(sum(few)).toBe(sum(many));
});
