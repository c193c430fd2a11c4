import { expect, test, vi } from "vitest";

vi.stubGlobal("sessionStorage", { getItem: () => null });
vi.stubGlobal("location", { pathname: "/console", search: "" });
const { describeEvidence } = await import("./evidence");

const click = {
  kind: "rage_click",
  route: "/checkout",
  selector: "body > button#pay",
  element: "“Pay now”",
  browser: "Chrome 140",
  release: "shop@2.4.1",
  errorId: null,
} as const;

test("evidence says what happened, where, and in which browser and release", () => {
  expect(describeEvidence(click)).toEqual([
    "Rage click on “Pay now” at /checkout",
    "Chrome 140",
    "shop@2.4.1",
  ]);
  const sparse = {
    ...click,
    kind: "feedback",
    element: null,
    browser: null,
    release: null,
  } as const;
  expect(describeEvidence(sparse)).toEqual(["Feedback at /checkout"]);
  const unknown = { ...click, kind: "toString", route: null } as unknown as typeof click;
  expect(describeEvidence(unknown)[0]).toBe("toString on “Pay now”");
});
