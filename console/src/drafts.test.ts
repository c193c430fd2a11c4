import { expect, test } from "vitest";
import { rebase, withNewBase } from "./drafts";

test("edits are rebased onto changes by others, field by field", () => {
  const base = { name: "Old", description: "", rules: [1] };
  const edited = { ...base, name: "Mine", rules: [1] };
  const theirs = { name: "Theirs", description: "Why", rules: [2] };
  expect(rebase(base, edited, theirs)).toEqual({ name: "Mine", description: "Why", rules: [2] });
});

test("after a save, only edits made since then remain", () => {
  const sent = { name: "Sent", description: "" };
  const draft = { name: "Sent", description: "typed meanwhile" };
  const saved = { name: "Sent", description: "" };
  expect(rebase(sent, draft, saved)).toEqual(draft);
  expect(rebase(sent, sent, { ...saved, name: "Trimmed" })).toEqual({
    name: "Trimmed",
    description: "",
  });
});

test("only different changes of the same field are a conflict", () => {
  const base = { name: "Old", description: "" };
  const state = { version: "1", base, draft: { ...base, name: "Mine" } };
  const otherField = withNewBase(state, "2", { name: "Old", description: "Why" });
  expect(otherField.draft).toEqual({ name: "Mine", description: "Why" });
  expect(otherField.conflict).toBeNull();
  const sameField = withNewBase(state, "2", { name: "Theirs", description: "" });
  expect(sameField.draft.name).toBe("Mine");
  expect(sameField.conflict).toEqual({ base, edited: state.draft });
  const later = withNewBase(sameField, "3", { name: "Theirs", description: "More" });
  expect(later.conflict?.base).toBe(base);
  expect(withNewBase(state, "2", { name: "Mine", description: "" }).conflict).toBeNull();
});
