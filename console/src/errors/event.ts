/** Reads an event as SDKs send it. Applications control it, so any field can have any type. */

import { clampTime } from "../time/format";

type Json = unknown;

function fields(value: Json): Record<string, Json> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, Json>)
    : {};
}

function items(value: Json): Json[] {
  return Array.isArray(value) ? value : [];
}

/** Returns a list, or the list in the field `values`: SDKs use both forms. */
function valuesOf(value: Json): Json[] {
  return Array.isArray(value) ? value : items(fields(value).values);
}

/** Longer texts are truncated. The raw JSON has them in full. */
const MAX_CHARACTERS = 10_000;
const truncate = (text: string) =>
  text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;

export function textOf(value: Json): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return truncate(String(value));
  try {
    return truncate(JSON.stringify(value));
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
  /** The location in the minified file, if a source map gave this frame its other fields. */
  minified: string | null;
}

export interface Exception {
  type: string;
  value: string;
  isHandled: boolean;
  /** Innermost call first. */
  frames: Frame[];
}

/** Maximum lines of source before and after a frame's line. */
const MAX_LINES = 20;

function frameOf(value: Json): Frame {
  const it = fields(value);
  const line = typeof it.lineno === "number" ? it.lineno : null;
  // SDKs send the lines of some frames. Frames that a source map resolved have other names.
  const at = textOf(it.contextLine ?? it.context_line);
  const pre = items(it.preContext ?? it.pre_context).slice(-MAX_LINES);
  const post = items(it.postContext ?? it.post_context).slice(0, MAX_LINES);
  const source = at
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
    isOwn: (it.inApp ?? it.in_app) !== false,
    source,
    minified: it.minified ? minifiedOf(fields(it.minified)) : null,
  };
}

function minifiedOf(it: Record<string, Json>): string {
  const place = [it.filename, it.lineno, it.colno].map(textOf).filter(Boolean).join(":");
  const name = textOf(it.function);
  return name ? `${name} in ${place}` : place;
}

/** The reason that minified frames of an event have no source. */
export type MapStatus = "missing" | "failed";

/** Returns the exceptions of an event: the thrown one, then its causes. */
export function exceptionsOf(event: Json): Exception[] {
  return valuesOf(fields(event).exception)
    .map((value) => {
      const it = fields(value);
      return {
        type: textOf(it.type),
        value: textOf(it.value),
        isHandled: fields(it.mechanism).handled !== false,
        frames: items(fields(it.stacktrace).frames).map(frameOf).reverse(),
      };
    })
    .reverse();
}

/**
 * Consecutive frames to show together: a single frame of the application, or frames of libraries.
 */
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

/**
 * Returns the source of library frames: the package folder of a language, or else the first path
 * segment.
 */
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
  isError: boolean;
}

/** Returns the last `limit` breadcrumbs of an event, oldest first. */
export function crumbsOf(event: Json, limit = Number.MAX_SAFE_INTEGER): Crumb[] {
  const all = valuesOf(fields(event).breadcrumbs);
  return all.slice(-limit).map((value) => {
    const it = fields(value);
    const data = it.data === undefined || it.data === null ? "" : describeData(it.data);
    const at =
      typeof it.timestamp === "number" ? it.timestamp * 1000 : Date.parse(textOf(it.timestamp));
    return {
      at: clampTime(at) === at ? at : null,
      category: textOf(it.category) || textOf(it.type),
      message: [textOf(it.message), data].filter(Boolean).join(" "),
      isError: ["error", "fatal"].includes(textOf(it.level)),
    };
  });
}

export function countCrumbs(event: Json): number {
  return valuesOf(fields(event).breadcrumbs).length;
}

function describeData(data: Json): string {
  const words = Object.entries(fields(data)).map(([name, value]) => `${name}: ${textOf(value)}`);
  return truncate(words.join(", "));
}

export type NamedValues = [name: string, value: string][];

/**
 * Returns the tags of an event, an object or a list of pairs, after standard fields such as
 * `release`.
 */
export function tagsOf(event: Json): NamedValues {
  const it = fields(event);
  const tags = it.tags;
  const pairs: NamedValues = Array.isArray(tags)
    ? tags.map((pair) => [textOf(items(pair)[0]), textOf(items(pair)[1])])
    : Object.entries(fields(tags)).map(([name, value]) => [name, textOf(value)]);
  const own: NamedValues = [
    "environment",
    "release",
    "level",
    "platform",
    "transaction",
    "server_name",
  ].flatMap((name) => (it[name] ? [[name, textOf(it[name])]] : []));
  return [...own, ...pairs.filter(([name]) => !own.some(([known]) => known === name))];
}

/** Returns user, request, contexts and extra data as pairs, such as `user.id`. */
export function contextsOf(event: Json): NamedValues {
  const { user, request, contexts, extra } = fields(event);
  const groups = [...Object.entries({ user, request }), ...Object.entries(fields(contexts))];
  return [...groups, ["extra", extra] as const].flatMap(([name, value]) =>
    Object.entries(fields(value))
      .filter(([key, inner]) => key !== "type" && inner !== null && inner !== "")
      .map(([key, inner]): [string, string] => [`${name}.${key}`, textOf(inner)]),
  );
}

/** Returns the message of an event without exceptions. */
export function messageOf(event: Json): string {
  const it = fields(event);
  const entry = fields(it.logentry);
  return textOf(entry.formatted) || textOf(entry.message) || textOf(it.message);
}

/** Formats a stack trace for the clipboard. */
export function traceAsText(exceptions: Exception[]): string {
  return exceptions
    .map((it) => {
      const lines = it.frames.map(
        (frame) => `    at ${frame.function || "?"} (${locationOf(frame)})`,
      );
      return [`${it.type}: ${it.value}`, ...lines].join("\n");
    })
    .join("\nCaused by: ");
}

export function locationOf(frame: Frame): string {
  const place = frame.file || frame.module || "unknown";
  return [place, frame.line, frame.column].filter((part) => part !== null).join(":");
}
