import { beforeEach, expect, test, vi } from "vitest";

beforeEach(() => vi.useFakeTimers());

test("several changes are undone in reverse order", async () => {
  const { showToast, undoLast } = await import("./toast");
  const undone: string[] = [];
  for (const name of ["one", "two", "three"]) {
    showToast(`${name} is on.`, async () => undone.push(name));
  }
  // A message without undo does not remove the others.
  showToast("Saved.");
  expect(undoLast()).toBe(true);
  expect(undoLast()).toBe(true);
  expect(undone).toEqual(["three", "two"]);
  vi.advanceTimersByTime(10_000);
  expect(undoLast()).toBe(false);
});
