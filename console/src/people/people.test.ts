import { expect, test, vi } from "vitest";

vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {}, removeItem: () => {} });
vi.stubGlobal("location", { origin: "http://x", pathname: "/console", search: "", hash: "" });
const { actionText } = await import("./audit");
const { browserOf } = await import("./browser");
const { expiryOf } = await import("./new-key");
const { slugOf } = await import("./projects");
const { grantable } = await import("./roles");

test("a slug has only letters, digits and hyphens of ASCII", () => {
  expect(slugOf("My Shop!")).toBe("my-shop");
  expect(slugOf("  Übergrößen & Söhne ")).toBe("ubergrossen-sohne");
  expect(slugOf("x".repeat(80))).toHaveLength(63);
  expect(slugOf(`${"x".repeat(62)} y`)).toBe("x".repeat(62));
  expect(slugOf("日本")).toBe("");
});

test("unknown actions of the audit log are readable", () => {
  expect(actionText("api_key_created")).toBe("Created API key");
  expect(actionText("flag_updated")).toBe("Updated flag");
  expect(actionText("toString")).toBe("ToString");
});

test("browsers are named with their system", () => {
  const chrome = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 Chrome/140.0";
  expect(browserOf(`${chrome} Safari/537.36`)).toBe("Chrome on macOS");
  expect(browserOf(`${chrome} Safari/537.36 Edg/140.0`)).toBe("Edge on macOS");
  const phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1";
  expect(browserOf(phone)).toBe("Safari on iOS");
  expect(browserOf("curl/8.5.0 (x86_64)")).toBe("curl/8.5.0");
  expect(browserOf(null)).toBeNull();
});

test("keys expire after whole days, or never", () => {
  expect(expiryOf(30, 0)).toBe("1970-01-31T00:00:00.000Z");
  expect(expiryOf(0, 0)).toBeNull();
});

test("members can give roles up to their own", () => {
  const rolesOf = (role: "viewer" | "admin" | undefined) =>
    grantable({ role } as Parameters<typeof grantable>[0]).map((it) => it.role);
  expect(rolesOf("viewer")).toEqual(["viewer"]);
  expect(rolesOf("admin")).toEqual(["viewer", "member", "admin"]);
  expect(rolesOf(undefined)).toEqual(["viewer", "member", "admin", "owner"]);
});
