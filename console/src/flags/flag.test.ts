import { expect, test } from "vitest";
import { ApiError } from "../api/client";
import { isChangedAt } from "../api/pointer";
import { describeConditions, isComplete, readValues, withOperator } from "./conditions-editor";
import {
  describeFlag,
  describeServe,
  describeUnevenShares,
  ifMatchOf,
  missingWeights,
  NEW_FLAG,
  patchOf,
  unevenRollouts,
} from "./flag";
import { balance, readWeight } from "./serve-editor";
import { readValue } from "./tester";

test("a patch has only the changed fields", () => {
  expect(patchOf(NEW_FLAG, structuredClone(NEW_FLAG))).toEqual({});
  expect(patchOf(NEW_FLAG, { ...NEW_FLAG, name: "New", targets: [] })).toEqual({ name: "New" });
});

test("a change names the known version, with and without the id", () => {
  expect(ifMatchOf({ version: 3, id: "019aa3c5" })).toBe('"3", "3-019aa3c5"');
});

const weigh = (...weights: number[]) =>
  weights.map((weight, index) => ({ variant: `v${index}`, weight }));

test("balanced weights add up to 100 and keep the edited one", () => {
  expect(balance(weigh(10, 50), 0)).toEqual(weigh(10, 90));
  expect(balance(weigh(90, 0.5), 1)).toEqual(weigh(99.5, 0.5));
  expect(balance(weigh(10, 50, 50), 0)).toEqual(weigh(10, 45, 45));
  expect(balance(weigh(10, 30, 60, 20), 0)).toEqual(weigh(10, 24, 50, 16));
  expect(balance(weigh(10, 0, 0), 0)).toEqual(weigh(10, 45, 45));
  expect(balance(weigh(20, Number.NaN), 0)).toEqual(weigh(20, 80));
  expect(balance(weigh(150, 50), 0)).toBeNull();
  expect(balance(weigh(Number.NaN, 50), 0)).toBeNull();
  expect(balance(weigh(100), 0)).toBeNull();
  for (const weights of [
    [75, 50, 1],
    [1, 1, 1],
    [0.001, 99, 1_000_000],
    [7, 11, 13, 17],
  ]) {
    const balanced = balance(weigh(...weights), 0) ?? [];
    if (weights[0] === 75) expect(balanced[0]?.weight).toBe(75);
    expect(balanced.reduce((sum, it) => sum + it.weight, 0)).toBeCloseTo(100, 9);
  }
});

test("only changed rollouts must add up to 100", () => {
  const uneven = { ...NEW_FLAG, fallthrough: { variant: null, rollout: weigh(10, 50) } };
  expect(unevenRollouts(uneven, NEW_FLAG)).toEqual(["/fallthrough/rollout"]);
  expect(unevenRollouts(uneven, uneven)).toEqual([]);
});

test("an error disappears once its field has changed", () => {
  const at = (pointer: string) => ({ pointer, code: "out_of_range" as const, message: "No." });
  const error = new ApiError(400, "validation_failed", "No.", [at("/key"), at("/rules/0/name")]);
  const fixed = error.without((pointer) =>
    isChangedAt(
      pointer,
      { key: "a", rules: [{ name: "b" }] },
      { key: "c", rules: [{ name: "b" }] },
    ),
  );
  expect(fixed?.violations.map((it) => it.pointer)).toEqual(["/rules/0/name"]);
  expect(error.without(() => true)).toBeNull();
});

test("weights have up to three decimals, and an empty weight is not 0", () => {
  expect(["0.5", "99.5", "0.", "0,125", ".5", " 7 "].map(readWeight)).toEqual([
    0.5, 99.5, 0, 0.125, 0.5, 7,
  ]);
  for (const text of ["", ".", "-1", "1e3", "0.0001", "x"]) expect(readWeight(text)).toBeNaN();
});

test("rollouts that do not add up to 100% show the real shares", () => {
  const weigh = (...weights: number[]) => ({
    variant: null,
    rollout: weights.map((weight, index) => ({ variant: `v${index}`, weight })),
  });
  expect(describeUnevenShares({ rules: [], fallthrough: weigh(0.5, 99.5) })).toEqual([]);
  expect(describeUnevenShares({ rules: [], fallthrough: weigh(50, 150) })).toEqual([
    "A rollout does not add up to 100%: everyone else gets v0 25%, v1 75%.",
  ]);
  expect(describeServe(weigh(0.125, 99.875))).toBe("v0 0.125%, v1 99.875%");
  const unfinished = { rules: [], fallthrough: weigh(50, Number.NaN) };
  expect(describeUnevenShares(unfinished)).toEqual([
    "A rollout does not add up to 100%: everyone else gets v0 100%.",
  ]);
  expect(missingWeights(unfinished)).toEqual(["/fallthrough/rollout/1/weight"]);
});

test("descriptions of flags count rules and users", () => {
  const rollout = [
    { variant: "on", weight: 1 },
    { variant: "off", weight: 19 },
    { variant: "x", weight: 0 },
  ];
  expect(describeServe({ variant: null, rollout })).toBe("on 5%, off 95%");
  expect(describeServe({ variant: null, rollout: [] })).toBe("the default in code");
  expect(describeFlag(NEW_FLAG)).toBe("everyone gets “on”");
  const target = { kind: "identifier" as const, value: "u", variant: "on" };
  expect(describeFlag({ ...NEW_FLAG, targets: [target] })).toBe("1 user; everyone else: on");
});

test("values are one per line, and texts that look like JSON are parsed", () => {
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

test("a new operator keeps the values it accepts, but not segments", () => {
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

test("descriptions of conditions are one line", () => {
  const values = ["DE", "AT", "CH", "LI", "LU"];
  expect(
    describeConditions([
      { attribute: "country", operator: "in", values },
      { attribute: null, operator: "in_segment", values: ["staff"] },
      { attribute: "plan", operator: "exists", values: [] },
    ]),
  ).toBe("country is one of DE or AT or CH or 2 more and is in segment staff and plan is set");
  expect(describeConditions([])).toBe("everyone");
  const unfinished = { attribute: "", operator: "equals" as const, values: ["DE"] };
  expect([unfinished, { ...unfinished, attribute: "country" }].map(isComplete)).toEqual([
    false,
    true,
  ]);
});
