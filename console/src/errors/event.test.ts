import { expect, test } from "vitest";
import {
  contextsOf,
  crumbsOf,
  exceptionsOf,
  groupsOf,
  messageOf,
  sourceOf,
  tagsOf,
  traceAsText,
} from "./event";

test("events of any form are readable", () => {
  const odd = [
    null,
    7,
    "x",
    [],
    {},
    { exception: 3 },
    { exception: { values: [null, 5] } },
    { tags: 1, contexts: [], breadcrumbs: { values: "x" } },
  ];
  for (const event of odd) {
    for (const read of [exceptionsOf, crumbsOf, tagsOf, contextsOf, messageOf])
      expect(() => read(event)).not.toThrow();
    expect(() => traceAsText(exceptionsOf(event))).not.toThrow();
  }
});

test("long or deep values are truncated, and invalid breadcrumb times omitted", () => {
  let deep: unknown = 1;
  for (let depth = 0; depth < 50_000; depth++) deep = [deep];
  const [[, long] = [], ...pairs] = tagsOf({ tags: { long: "x".repeat(1e6), deep, other: 1 } });
  expect(long?.length).toBeLessThan(20_000);
  expect(pairs.at(-1)).toEqual(["other", "1"]);
  const crumbs = crumbsOf({ breadcrumbs: [{ timestamp: 1e15 }, { timestamp: 1 }, {}] }, 2);
  expect(crumbs.map((it) => it.at)).toEqual([1_000, null]);
  expect(crumbsOf({ breadcrumbs: [{ timestamp: 1e15 }] }).map((it) => it.at)).toEqual([null]);
});

test("the thrown exception and its innermost frame come first", () => {
  const frames = [
    { function: "main", in_app: true },
    { function: "inner", in_app: true },
  ];
  const event = {
    exception: { values: [{ type: "Cause" }, { type: "Thrown", stacktrace: { frames } }] },
  };
  const [thrown, cause] = exceptionsOf(event);
  expect([thrown?.type, cause?.type]).toEqual(["Thrown", "Cause"]);
  expect(thrown?.frames.map((it) => it.function)).toEqual(["inner", "main"]);
});

test("consecutive library frames are grouped", () => {
  const frame = (file: string, own: boolean) => ({ filename: file, in_app: own });
  const frames = [
    frame("node_modules/a/x.js", false),
    frame("node_modules/b/y.js", false),
    frame("src/a.ts", true),
  ];
  const [exception] = exceptionsOf({ exception: [{ stacktrace: { frames } }] });
  const groups = groupsOf(exception?.frames ?? []);
  expect(groups.map((it) => [it.own, it.frames.length])).toEqual([
    [true, 1],
    [false, 2],
  ]);
  expect(sourceOf(groups[1]?.frames ?? [])).toBe("node_modules");
});

test("source lines are numbered from the line of the frame", () => {
  const frame = { lineno: 41, pre_context: ["a", "b"], context_line: "c", post_context: ["d"] };
  const [exception] = exceptionsOf({ exception: [{ stacktrace: { frames: [frame] } }] });
  expect(exception?.frames[0]?.source.map((it) => [it.line, it.isAt])).toEqual([
    [39, false],
    [40, false],
    [41, true],
    [42, false],
  ]);
});

test("tags are pairs or an object, and standard fields are tags too", () => {
  expect(
    tagsOf({
      tags: [
        ["a", "1"],
        ["release", "other"],
      ],
      release: "shop@1",
    }),
  ).toEqual([
    ["release", "shop@1"],
    ["a", "1"],
  ]);
  expect(tagsOf({ tags: { a: 1 } })).toEqual([["a", "1"]]);
});

test("resolved frames show the source, and where the browser was", () => {
  const frame = {
    filename: "src/cart.ts",
    function: "total",
    lineno: 12,
    colno: 3,
    in_app: true,
    contextLine: "return sum(items)",
    preContext: ["function total() {"],
    postContext: ["}"],
    minified: { filename: "https://x.example/a.js", lineno: 1, colno: 2041, function: "t" },
  };
  const stacktrace = { frames: [{ ...frame, minified: { filename: null, lineno: 1 } }, frame] };
  const event = { exception: { values: [{ type: "Error", stacktrace }] } };
  const [inner, outer] = exceptionsOf(event)[0]?.frames ?? [];
  expect(inner?.source.map((it) => [it.line, it.text, it.isAt])).toEqual([
    [11, "function total() {", false],
    [12, "return sum(items)", true],
    [13, "}", false],
  ]);
  expect(inner?.minified).toBe("t in https://x.example/a.js:1:2041");
  expect(outer?.minified).toBe("1");
});
