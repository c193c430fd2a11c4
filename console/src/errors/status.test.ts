import { beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../api/client";
import type { Project } from "../caller";
import { showErrorToast, showToast } from "../ui/toast";
import { setStatus } from "./load";
import { changeStatus, type HasStatus, namesOf, statusNow } from "./status";

vi.mock("./load", () => ({ setStatus: vi.fn() }));
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
const refusing = (id: string) => async (_: Project, errorId: string) => {
  if (errorId === id) throw new ApiError(503, "unavailable", "The service is unavailable.");
  return {} as never;
};

beforeEach(() => vi.clearAllMocks());

test("one that fails stops no other, is named, and the others can be changed back", async () => {
  vi.mocked(setStatus).mockImplementation(refusing("e3"));
  const done = vi.fn();
  await changeStatus(project, six, "ignored", done);
  expect(setStatus).toHaveBeenCalledTimes(6);
  expect(done).toHaveBeenCalledWith([six[2]]);
  const [text, undo] = vi.mocked(showToast).mock.calls[0] ?? [];
  expect(text).toBe("Ignored 5 of 6 errors, but not “Error 3”: The service is unavailable.");
  const statuses = () => six.map((it: HasStatus) => statusNow(it, 0));
  expect(statuses()).toEqual(["ignored", "ignored", "open", "ignored", "ignored", "ignored"]);

  // What could not be changed back is tried again, alone.
  vi.mocked(setStatus).mockClear().mockImplementation(refusing("e5"));
  await expect(undo?.()).rejects.toThrow("“Error 5” could not be changed back");
  expect(setStatus).toHaveBeenCalledTimes(5);
  vi.mocked(setStatus).mockClear().mockImplementation(refusing("none"));
  await undo?.();
  expect(vi.mocked(setStatus).mock.calls.map((it) => it[1])).toEqual(["e5"]);
  expect(statuses().every((it) => it === "open")).toBe(true);
});

test("where nothing was changed there is nothing to undo", async () => {
  vi.mocked(setStatus).mockRejectedValue(new ApiError(403, "insufficient_scope", "No."));
  await changeStatus(project, six.slice(0, 2), "resolved", () => {});
  expect(showToast).not.toHaveBeenCalled();
  expect(showErrorToast).toHaveBeenCalledOnce();
});

test("a list that was loaded after a change knows better", () => {
  expect(statusNow({ errorId: "e1", status: "resolved" }, Date.now() + 1)).toBe("resolved");
});

test("many are counted, and long titles cut", () => {
  expect(namesOf(six)).toBe("“Error 1”, “Error 2”, “Error 3” and 3 more");
  expect(namesOf([{ title: "x".repeat(99) }])).toBe(`“${"x".repeat(60)}…”`);
});
