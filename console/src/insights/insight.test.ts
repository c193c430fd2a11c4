import { expect, test, vi } from "vitest";
import type { Insight } from "./insight";

vi.stubGlobal("addEventListener", () => {});

test("undoing a merge restores the status", async () => {
  const { stateBeforeMerge } = await import("./insight");
  const insight = { description: "", status: "ignored", viewed: true } as Insight;
  expect(stateBeforeMerge(insight)).toEqual({ status: "ignored", viewed: true });
  const described = { ...insight, description: "Why" };
  expect(stateBeforeMerge(described)).toEqual({
    description: "Why",
    status: "ignored",
    viewed: true,
  });
});
