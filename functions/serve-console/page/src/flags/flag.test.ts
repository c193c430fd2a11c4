import { expect, test } from "vitest";
import { doesInWords, NEW_FLAG, patchOf, serveInWords } from "./flag";
import { read } from "./rules-editor";
import { toHundred } from "./serve-editor";
import { readValue } from "./tester";

test("only what was changed is sent", () => {
  expect(patchOf(NEW_FLAG, structuredClone(NEW_FLAG))).toEqual({});
  expect(patchOf(NEW_FLAG, { ...NEW_FLAG, name: "New", targets: [] })).toEqual({ name: "New" });
});

test("shares that are made 100 keep their proportions and add up, to three decimals", () => {
  for (const weights of [
    [75, 50],
    [1, 1, 1],
    [0, 3],
    [0.001, 1_000_000],
    [7, 11, 13, 17],
  ]) {
    const made = toHundred(weights.map((weight) => ({ variant: "on", weight })));
    expect(made.reduce((sum, it) => sum + it.weight, 0)).toBeCloseTo(100, 9);
    expect(made.every((it) => /^\d+(\.\d{1,3})?$/.test(String(it.weight)))).toBe(true);
  }
  expect(
    toHundred([
      { variant: "on", weight: 75 },
      { variant: "off", weight: 50 },
    ]).map((it) => it.weight),
  ).toEqual([60, 40]);
});

test("what a flag does is said in words", () => {
  const rollout = [
    { variant: "on", weight: 1 },
    { variant: "off", weight: 19 },
    { variant: "x", weight: 0 },
  ];
  expect(serveInWords({ variant: null, rollout })).toBe("on for 5 %, off for 95 %");
  expect(serveInWords({ variant: null, rollout: [] })).toContain("own default");
  const target = { kind: "identifier" as const, value: "u", variant: "on" };
  expect(doesInWords({ ...NEW_FLAG, targets: [target] })).toBe(
    "its own answer for 1 individual; on for everyone else",
  );
});

test("values are lines, and what looks like a value of JSON is one", () => {
  expect(read("a, b\n\n c ", "many")).toEqual(["a, b", "c"]);
  expect(read("", "one")).toEqual([]);
  expect(["true", "42", "-1.5", "2.4.1", "0x1", "[1]", "{", "DE"].map(readValue)).toEqual([
    true,
    42,
    -1.5,
    "2.4.1",
    "0x1",
    [1],
    "{",
    "DE",
  ]);
});
