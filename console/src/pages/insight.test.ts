import { expect, test, vi } from "vitest";
import type { Insight } from "../insights/insight";

vi.stubGlobal("addEventListener", () => {});

test("what is undone has the status that it had", async () => {
  const { asItWas } = await import("./insight");
  const insight = { description: "", status: "ignored", viewed: true } as Insight;
  expect(asItWas(insight)).toEqual({ status: "ignored", viewed: true });
  const described = { ...insight, description: "Why" };
  expect(asItWas(described)).toEqual({ description: "Why", status: "ignored", viewed: true });
});
