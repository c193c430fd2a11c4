import { expect, test } from "vitest";
import { describePointer, fieldMessage } from "./pointer";

test("pointers count from 1 and name fields in words", () => {
  expect(describePointer("/rules/0/conditions/1/values/2")).toBe("rule 1, condition 2, value 3");
  expect(describePointer("/prerequisites/0/flagKey")).toBe("prerequisite 1, flag key");
  expect(describePointer("query:limit")).toBe("limit");
  expect(describePointer("")).toBe("request");
});

test("empty fields ask for input, other violations keep the API's message", () => {
  const violation = { pointer: "/name", code: "too_short", message: "from the API" };
  expect(fieldMessage(violation)).toBe("Enter a name.");
  expect(fieldMessage({ ...violation, code: "too_long" })).toBe("from the API");
});
