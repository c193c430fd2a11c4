import { expect, test } from "vitest";
import { type Filter, readFilter, readView, withFilter, writeFilter } from "./filters";

const is = (categoryId: Filter["categoryId"], value: string): Filter => ({
  categoryId,
  operator: "is",
  value,
});

test("filters with any value round-trip through the address", () => {
  for (const value of ["Chrome", "shop@2.4.1", "", "a.b&c=d#e?f", "<script>"]) {
    for (const category of ["release", "tags.tenant", "tags.feature.flag-1"])
      expect(readFilter(writeFilter(is(category, value)))).toEqual(is(category, value));
  }
});

test("invalid filters are ignored", () => {
  for (const text of ["", "browser", "browser.equals.x", "browser.toString.x", ".is.x"]) {
    expect(readFilter(text)).toBeNull();
  }
  const query = new URLSearchParams("f=nonsense&f=os.is.iOS&status=odd&q=hi");
  expect(readView(query, "open")).toEqual({
    filters: [is("os", "iOS")],
    search: "hi",
    status: "open",
  });
  expect(readView(new URLSearchParams("status=any"), "open").status).toBeNull();
});

test("a filter replaces one with the same category and operator", () => {
  const both = [is("os", "iOS"), is("browser", "Chrome")];
  expect(withFilter(both, is("browser", "Firefox"))).toEqual([
    is("os", "iOS"),
    is("browser", "Firefox"),
  ]);
  expect(withFilter(both, is("os", "iOS"))).toBe(both);
});
