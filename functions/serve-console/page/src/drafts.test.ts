import { expect, test } from "vitest";
import { rebased } from "./drafts";

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
