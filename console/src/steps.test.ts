import { expect, test } from "vitest";
import { sameAddress } from "./steps";

test("the order of parameters does not matter", () => {
  expect(sameAddress("/console/errors?a=1&f=x&f=y", "/console/errors?f=x&f=y&a=1")).toBe(true);
  expect(sameAddress("/console/errors", "/console/errors")).toBe(true);
  expect(sameAddress("/console/errors?a=1", "/console/errors")).toBe(false);
  expect(sameAddress("/console/errors?a=1", "/console/flags?a=1")).toBe(false);
});
