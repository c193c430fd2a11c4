import { beforeEach, expect, test, vi } from "vitest";

beforeEach(() => vi.useFakeTimers());

test("each of several changes can be undone, the last first", async () => {
  const { showToast, undoLast } = await import("./toast");
  const undone: string[] = [];
  for (const name of ["one", "two", "three"]) {
    showToast(`${name} is on.`, async () => undone.push(name));
  }
  // What only says something takes no way back away.
  showToast("Saved.");
  expect(undoLast()).toBe(true);
  expect(undoLast()).toBe(true);
  expect(undone).toEqual(["three", "two"]);
  vi.advanceTimersByTime(10_000);
  expect(undoLast()).toBe(false);
});
