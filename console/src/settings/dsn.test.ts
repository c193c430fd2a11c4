import { expect, test } from "vitest";
import { dsnOf } from "./dsn";

test("a DSN has the public key before the host and the ingest id at the end", () => {
  const ids = { ingestId: 42, publicKey: "ab".repeat(16) };
  expect(dsnOf("https://x.example", ids)).toBe(`https://${"ab".repeat(16)}@x.example/42`);
  expect(dsnOf("http://127.0.0.1:9000", ids)).toBe(`http://${"ab".repeat(16)}@127.0.0.1:9000/42`);
});
