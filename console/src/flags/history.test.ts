import { expect, test } from "vitest";
import { changeInWords, detailsOf, differences, type FlagChange, restored } from "./history";

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

test("of a list only what is gone, new or moved is told", () => {
  const [first, second, third] = [rule("one", "on"), rule("two", "on"), rule("three", "off")];
  const told = (from: unknown, to: unknown) => differences([{ member: "rules", from, to }])[0];
  expect(told([first, second], [first, second, third])).toEqual({
    what: "Rules",
    removed: [],
    added: ["three: country is one of DE gets off"],
  });
  expect(told([first, second, third], [third, first, second])).toMatchObject({
    removed: ["three: country is one of DE gets off"],
    added: ["three: country is one of DE gets off"],
  });
  expect(told([first], [first])).toBeUndefined();
});

test("what was nothing before is told, and what every version has is not", () => {
  expect(
    differences([
      { member: "enabled", from: undefined, to: false },
      { member: "type", from: null, to: "boolean" },
      { member: "description", from: null, to: "" },
      { member: "offVariant", from: "off", to: null },
    ]),
  ).toEqual([
    { what: "State", removed: [], added: ["off"] },
    { what: "While it is off", removed: ["off"], added: ["the application’s own default"] },
  ]);
});

test("restoring takes back all that came after a version, and nothing that came back by itself", () => {
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

test("a change has a name of a few words", () => {
  expect(changeInWords(change(2, [{ member: "enabled", from: false, to: true }]))).toBe(
    "Switched on",
  );
  const names = (["name", "rules"] as const).map((member) => ({ member, from: "", to: "x" }));
  expect(changeInWords(change(2, names))).toBe("Changed its name and rules");
  expect(changeInWords({ ...change(2, names), kind: "restored" })).toBe("Restored");
});

test("beside its name a switch has no details, and a flag that was made has only new ones", () => {
  expect(detailsOf(change(2, [{ member: "enabled", from: false, to: true }]))).toEqual([]);
  const made = { member: "offVariant" as const, from: null, to: "off" };
  expect(detailsOf({ ...change(1, [made]), kind: "created" })).toEqual([
    { what: "While it is off", removed: [], added: ["off"] },
  ]);
});
