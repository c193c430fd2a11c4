import { expect, test } from "vitest";
import { describeChange, detailsOf, differences, type FlagChange, restored } from "./history";

const rule = (name: string, variant: string) => ({
  id: name,
  name,
  conditions: [{ attribute: "country", operator: "in" as const, values: ["DE"] }],
  serve: { variant, rollout: [] },
});

const change = (version: number, changes: FlagChange["changes"]): FlagChange => ({
  version,
  at: "2026-11-22T00:00:00.000Z",
  user: "mira",
  keyId: "k",
  kind: "updated",
  changes,
});

test("differences of lists have removed, added and moved lines", () => {
  const [first, second, third] = [rule("one", "on"), rule("two", "on"), rule("three", "off")];
  const compare = (from: unknown, to: unknown) => differences([{ member: "rules", from, to }])[0];
  expect(compare([first, second], [first, second, third])).toEqual({
    field: "Rules",
    removed: [],
    added: ["three: country is one of DE gets off"],
  });
  expect(compare([first, second, third], [third, first, second])).toMatchObject({
    removed: ["three: country is one of DE gets off"],
    added: ["three: country is one of DE gets off"],
  });
  expect(compare([first], [first])).toBeUndefined();
});

test("differences include values that were unset, but not key and type", () => {
  expect(
    differences([
      { member: "enabled", from: undefined, to: false },
      { member: "type", from: null, to: "boolean" },
      { member: "description", from: null, to: "" },
      { member: "offVariant", from: "off", to: null },
    ]),
  ).toEqual([
    { field: "State", removed: [], added: ["off"] },
    { field: "When off, serve", removed: ["off"], added: ["the default in code"] },
  ]);
});

test("restoring reverts later changes, except those that were reverted already", () => {
  const changes = [
    change(4, [{ member: "enabled", from: true, to: false }]),
    change(3, [
      { member: "name", from: "A", to: "B" },
      { member: "enabled", from: false, to: true },
    ]),
    change(2, [{ member: "name", from: "Z", to: "A" }]),
  ];
  expect(restored(changes, 2)).toEqual([{ member: "name", from: "B", to: "A" }]);
  expect(restored(changes, 3)).toEqual([{ member: "enabled", from: false, to: true }]);
  expect(restored(changes, 4)).toEqual([]);
});

test("descriptions of changes name the fields", () => {
  expect(describeChange(change(2, [{ member: "enabled", from: false, to: true }]))).toBe(
    "Turned on",
  );
  const names = (["name", "rules"] as const).map((member) => ({ member, from: "", to: "x" }));
  expect(describeChange(change(2, names))).toBe("Changed name and rules");
  expect(describeChange({ ...change(2, names), kind: "restored" })).toBe("Restored");
});

test("switches have no details, and new flags only added lines", () => {
  expect(detailsOf(change(2, [{ member: "enabled", from: false, to: true }]))).toEqual([]);
  const added = { member: "offVariant" as const, from: null, to: "off" };
  expect(detailsOf({ ...change(1, [added]), kind: "created" })).toEqual([
    { field: "When off, serve", removed: [], added: ["off"] },
  ]);
});
