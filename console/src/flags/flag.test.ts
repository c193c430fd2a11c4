import { expect, test } from "vitest";
import { conditionsInWords, readValues, withOperator } from "./conditions-editor";
import {
  doesInWords,
  ifMatchOf,
  missingWeights,
  NEW_FLAG,
  patchOf,
  serveInWords,
  sharesInWords,
} from "./flag";
import { readWeight, toHundred } from "./serve-editor";
import { readValue } from "./tester";

test("only what was changed is sent", () => {
  expect(patchOf(NEW_FLAG, structuredClone(NEW_FLAG))).toEqual({});
  expect(patchOf(NEW_FLAG, { ...NEW_FLAG, name: "New", targets: [] })).toEqual({ name: "New" });
});

test("a change is meant for the flag that is known, whether or not its key was another's", () => {
  expect(ifMatchOf({ version: 3, id: "019aa3c5" })).toBe('"3", "3-019aa3c5"');
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

test("a weight is what was typed, and nothing is none", () => {
  expect(["0.5", "99.5", "0.", "0,125", ".5", " 7 "].map(readWeight)).toEqual([
    0.5, 99.5, 0, 0.125, 0.5, 7,
  ]);
  for (const text of ["", ".", "-1", "1e3", "0.0001", "x"]) expect(readWeight(text)).toBeNaN();
});

test("shares that do not add up to 100 are said as what they are", () => {
  const weigh = (...weights: number[]) => ({
    variant: null,
    rollout: weights.map((weight, index) => ({ variant: `v${index}`, weight })),
  });
  expect(sharesInWords({ rules: [], fallthrough: weigh(0.5, 99.5) })).toEqual([]);
  expect(sharesInWords({ rules: [], fallthrough: weigh(50, 150) })).toEqual([
    "The shares do not add up to 100. Everyone else gets v0 for 25 %, v1 for 75 %.",
  ]);
  expect(serveInWords(weigh(0.125, 99.875))).toBe("v0 for 0.125 %, v1 for 99.875 %");
  const unfinished = { rules: [], fallthrough: weigh(50, Number.NaN) };
  expect(sharesInWords(unfinished)).toEqual([
    "The shares do not add up to 100. Everyone else gets v0 for 100 %.",
  ]);
  expect(missingWeights(unfinished)).toEqual(["/fallthrough/rollout/1/weight"]);
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
  expect(readValues("a, b\n\n c ", "many")).toEqual(["a, b", "c"]);
  expect(readValues("", "one")).toEqual([]);
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

test("another operator keeps the values that it can take, but no segments as values", () => {
  const was = { attribute: "country", operator: "in" as const, values: ["DE", "AT"] };
  expect(withOperator(was, "equals").values).toEqual(["DE", "AT"]);
  expect(withOperator(was, "before").values).toEqual(["DE"]);
  expect(withOperator(was, "exists").values).toEqual([]);
  const ofSegment = withOperator(was, "in_segment");
  expect(ofSegment).toEqual({ attribute: null, operator: "in_segment", values: [] });
  expect(withOperator({ ...ofSegment, values: ["staff"] }, "in")).toEqual({
    attribute: "",
    operator: "in",
    values: [],
  });
});

test("conditions are said in a line", () => {
  const values = ["DE", "AT", "CH", "LI", "LU"];
  expect(
    conditionsInWords([
      { attribute: "country", operator: "in", values },
      { attribute: null, operator: "in_segment", values: ["staff"] },
      { attribute: "plan", operator: "exists", values: [] },
    ]),
  ).toBe(
    "country is one of DE or AT or CH or 2 more and is in the segment staff and plan is there",
  );
  expect(conditionsInWords([])).toBe("everyone");
});
