/** An event as SDKs send it. Nothing in it is certain: applications put into it what they like. */

import { clampTime } from "../time/format";

type Json = unknown;

function members(value: Json): Record<string, Json> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, Json>)
    : {};
}

function items(value: Json): Json[] {
  return Array.isArray(value) ? value : [];
}

/** A list, or the list in its member `values`, which is how SDKs of some ages write it. */
function valuesOf(value: Json): Json[] {
  return Array.isArray(value) ? value : items(members(value).values);
}

/** Longer texts are cut; the raw JSON has them whole. */
const MOST_CHARACTERS = 10_000;
const cut = (text: string) =>
  text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;

export function textOf(value: Json): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return cut(String(value));
  try {
    return cut(JSON.stringify(value));
  } catch {
    return "(nested too deeply)";
  }
}

export interface Frame {
  file: string;
  function: string;
  module: string;
  line: number | null;
  column: number | null;
  isOwn: boolean;
  source: { line: number; text: string; isAt: boolean }[];
}

export interface Exception {
  type: string;
  value: string;
  isHandled: boolean;
  /** What was called last comes first. */
  frames: Frame[];
}

/** Lines of source to show before and after a frame's own. */
const MOST_LINES = 20;

function frameOf(value: Json): Frame {
  const it = members(value);
  const line = typeof it.lineno === "number" ? it.lineno : null;
  const at = textOf(it.context_line);
  const pre = items(it.pre_context).slice(-MOST_LINES);
  const post = items(it.post_context).slice(0, MOST_LINES);
  const source = it.context_line
    ? [...pre, at, ...post].map((text, index) => ({
        line: (line ?? 0) - pre.length + index,
        text: textOf(text),
        isAt: index === pre.length,
      }))
    : [];
  return {
    file: textOf(it.filename) || textOf(it.abs_path),
    function: textOf(it.function),
    module: textOf(it.module),
    line,
    column: typeof it.colno === "number" ? it.colno : null,
    isOwn: it.in_app !== false,
    source,
  };
}

/** The exceptions of an event: what was thrown first, then its causes. */
export function exceptionsOf(event: Json): Exception[] {
  return valuesOf(members(event).exception)
    .map((value) => {
      const it = members(value);
      return {
        type: textOf(it.type),
        value: textOf(it.value),
        isHandled: members(it.mechanism).handled !== false,
        frames: items(members(it.stacktrace).frames).map(frameOf).reverse(),
      };
    })
    .reverse();
}

/** Frames in a row that belong together: the application's each by itself, others folded. */
export interface FrameGroup {
  own: boolean;
  frames: Frame[];
}

export function groupsOf(frames: Frame[]): FrameGroup[] {
  const groups: FrameGroup[] = [];
  for (const frame of frames) {
    const last = groups.at(-1);
    if (!frame.isOwn && last && !last.own) last.frames.push(frame);
    else groups.push({ own: frame.isOwn, frames: [frame] });
  }
  return groups;
}

/** Where folded frames are from: the folder that packages of a language are in, else their first part. */
export function sourceOf(frames: Frame[]): string {
  const first = frames[0];
  const place = first?.file || first?.module || "";
  const known = /node_modules|site-packages|\.cargo\/registry|vendor|gems/.exec(place);
  return known ? known[0] : place.split(/[/.]/).find(Boolean) || "libraries";
}

export interface Crumb {
  at: number | null;
  category: string;
  message: string;
  isWrong: boolean;
}

/** Returns the last `most` breadcrumbs of an event, the oldest of them first. */
export function crumbsOf(event: Json, most = Number.MAX_SAFE_INTEGER): Crumb[] {
  const all = valuesOf(members(event).breadcrumbs);
  return all.slice(-most).map((value) => {
    const it = members(value);
    const data = it.data === undefined || it.data === null ? "" : wordsOf(it.data);
    const at =
      typeof it.timestamp === "number" ? it.timestamp * 1000 : Date.parse(textOf(it.timestamp));
    return {
      at: clampTime(at) === at ? at : null,
      category: textOf(it.category) || textOf(it.type),
      message: [textOf(it.message), data].filter(Boolean).join(" "),
      isWrong: ["error", "fatal"].includes(textOf(it.level)),
    };
  });
}

export function countCrumbs(event: Json): number {
  return valuesOf(members(event).breadcrumbs).length;
}

function wordsOf(data: Json): string {
  const words = Object.entries(members(data)).map(([name, value]) => `${name}: ${textOf(value)}`);
  return cut(words.join(", "));
}

export type Pairs = [name: string, value: string][];

/** Tags, as an object or as a list of pairs. */
export function tagsOf(event: Json): Pairs {
  const it = members(event);
  const tags = it.tags;
  const pairs: Pairs = Array.isArray(tags)
    ? tags.map((pair) => [textOf(items(pair)[0]), textOf(items(pair)[1])])
    : Object.entries(members(tags)).map(([name, value]) => [name, textOf(value)]);
  const own: Pairs = [
    "environment",
    "release",
    "level",
    "platform",
    "transaction",
    "server_name",
  ].flatMap((name) => (it[name] ? [[name, textOf(it[name])]] : []));
  return [...own, ...pairs.filter(([name]) => !own.some(([known]) => known === name))];
}

/** Returns user, request and contexts as pairs, such as `user.id`. */
export function contextsOf(event: Json): Pairs {
  const { user, request, contexts, extra } = members(event);
  const groups = [...Object.entries({ user, request }), ...Object.entries(members(contexts))];
  return [...groups, ["extra", extra] as const].flatMap(([name, value]) =>
    Object.entries(members(value))
      .filter(([key, inner]) => key !== "type" && inner !== null && inner !== "")
      .map(([key, inner]): [string, string] => [`${name}.${key}`, textOf(inner)]),
  );
}

/** The message of an event that is no exception. */
export function messageOf(event: Json): string {
  const it = members(event);
  const entry = members(it.logentry);
  return textOf(entry.formatted) || textOf(entry.message) || textOf(it.message);
}

/** A trace as one pastes it into a chat. */
export function traceAsText(exceptions: Exception[]): string {
  return exceptions
    .map((it) => {
      const lines = it.frames.map((frame) => `    at ${frame.function || "?"} (${placeOf(frame)})`);
      return [`${it.type}: ${it.value}`, ...lines].join("\n");
    })
    .join("\nCaused by: ");
}

export function placeOf(frame: Frame): string {
  const place = frame.file || frame.module || "unknown";
  return [place, frame.line, frame.column].filter((part) => part !== null).join(":");
}
