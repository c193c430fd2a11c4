import { expect, test } from "vitest";
import { dsnOf } from "./dsn";

test("a DSN has the key before the host and the id at the end", () => {
  const halves = { ingestId: 42, publicKey: "ab".repeat(16) };
  expect(dsnOf("https://x.example", halves)).toBe(`https://${"ab".repeat(16)}@x.example/42`);
  expect(dsnOf("http://127.0.0.1:9000", halves)).toBe(
    `http://${"ab".repeat(16)}@127.0.0.1:9000/42`,
  );
});
