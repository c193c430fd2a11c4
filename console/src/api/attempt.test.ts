import { expect, test } from "vitest";
import { Attempts } from "./attempt";

test("content keeps its key until it succeeds", () => {
  const attempts = new Attempts();
  const key = (...content: unknown[]) => attempts.keyFor(...content)["Idempotency-Key"];
  const first = key("releases", { name: "1.0" });
  expect(key("releases", { name: "1.0" })).toBe(first);
  const edited = key("releases", { name: "1.1" });
  expect(edited).not.toBe(first);
  expect(key("incidents", { name: "1.1" })).not.toBe(edited);
  const last = key("releases", { name: "1.1" });
  attempts.succeeded();
  expect(key("releases", { name: "1.1" })).not.toBe(last);
});
