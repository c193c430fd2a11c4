import { expect, test } from "vitest";
import { carried, rebased } from "./drafts";

test("what was typed stands over what others changed, member by member", () => {
  const base = { name: "Old", description: "", rules: [1] };
  const typed = { ...base, name: "Mine", rules: [1] };
  const theirs = { name: "Theirs", description: "Why", rules: [2] };
  expect(rebased(base, typed, theirs)).toEqual({ name: "Mine", description: "Why", rules: [2] });
});

test("of what was sent and then typed on, only what was typed since stays", () => {
  const sent = { name: "Sent", description: "" };
  const now = { name: "Sent", description: "typed meanwhile" };
  const became = { name: "Sent", description: "" };
  expect(rebased(sent, now, became)).toEqual(now);
  expect(rebased(sent, sent, { ...became, name: "Trimmed" })).toEqual({
    name: "Trimmed",
    description: "",
  });
});

test("it is told where others changed the same, and only there", () => {
  const base = { name: "Old", description: "" };
  const was = { of: "1", base, draft: { ...base, name: "Mine" } };
  const beside = carried(was, "2", { name: "Old", description: "Why" });
  expect(beside.draft).toEqual({ name: "Mine", description: "Why" });
  expect(beside.overtaken).toBeNull();
  const same = carried(was, "2", { name: "Theirs", description: "" });
  expect(same.draft.name).toBe("Mine");
  expect(same.overtaken).toEqual({ base, typed: was.draft });
  const later = carried(same, "3", { name: "Theirs", description: "More" });
  expect(later.overtaken?.base).toBe(base);
  expect(carried(was, "2", { name: "Mine", description: "" }).overtaken).toBeNull();
});
