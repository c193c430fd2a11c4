import { beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../api/client";
import type { Project } from "../caller";
import { namesOf } from "../ui/status";
import { showErrorToast, showToast } from "../ui/toast";
import { patchError } from "./load";
import { changeStatus, type HasStatus, statusNow } from "./status";

vi.mock("./load", () => ({ patchError: vi.fn() }));
vi.mock("../ui/toast", async (original) => ({
  ...(await original<typeof import("../ui/toast")>()),
  showToast: vi.fn(),
  showErrorToast: vi.fn(),
}));

const project = { slug: "shop" } as Project;
const six = [1, 2, 3, 4, 5, 6].map((it) => ({
  errorId: `e${it}`,
  title: `Error ${it}`,
  status: "open" as const,
}));
const failingFor = (id: string) => async (_: Project, errorId: string) => {
  if (errorId === id) throw new ApiError(503, "unavailable", "The service is unavailable.");
  return {} as never;
};

beforeEach(() => vi.clearAllMocks());

test("a failed change is named, and the others can be undone", async () => {
  vi.mocked(patchError).mockImplementation(failingFor("e3"));
  const done = vi.fn();
  await changeStatus(project, six, "ignored", done);
  expect(patchError).toHaveBeenCalledTimes(6);
  expect(done).toHaveBeenCalledWith([six[2]]);
  const [text, undo] = vi.mocked(showToast).mock.calls[0] ?? [];
  expect(text).toBe("Ignored 5 of 6 errors, but not “Error 3”: The service is unavailable.");
  const statuses = () => six.map((it: HasStatus) => statusNow(it, 0));
  expect(statuses()).toEqual(["ignored", "ignored", "open", "ignored", "ignored", "ignored"]);

  // A second undo retries only the failure.
  vi.mocked(patchError).mockClear().mockImplementation(failingFor("e5"));
  await expect(undo?.()).rejects.toThrow("Couldn’t undo “Error 5”");
  expect(patchError).toHaveBeenCalledTimes(5);
  vi.mocked(patchError).mockClear().mockImplementation(failingFor("none"));
  await undo?.();
  expect(vi.mocked(patchError).mock.calls.map((it) => it[1])).toEqual(["e5"]);
  expect(statuses().every((it) => it === "open")).toBe(true);
});

test("nothing can be undone if no change succeeded", async () => {
  vi.mocked(patchError).mockRejectedValue(new ApiError(403, "insufficient_scope", "No."));
  await changeStatus(project, six.slice(0, 2), "resolved", () => {});
  expect(showToast).not.toHaveBeenCalled();
  expect(showErrorToast).toHaveBeenCalledOnce();
});

test("lists loaded after a change are not affected by it", () => {
  expect(statusNow({ errorId: "e1", status: "resolved" }, Date.now() + 1)).toBe("resolved");
});

test("names are limited in number and length", () => {
  expect(namesOf(six)).toBe("“Error 1”, “Error 2”, “Error 3” and 3 more");
  expect(namesOf([{ title: "x".repeat(99) }])).toBe(`“${"x".repeat(60)}…”`);
});
