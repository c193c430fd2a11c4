/** The time range of a page. */

import type { Address, Params } from "../address";
import { clampTime } from "./format";

export const PRESETS = ["1h", "24h", "7d", "30d", "90d"] as const;
export type Preset = (typeof PRESETS)[number];

const HOUR = 3_600_000;
/** The length of each preset in milliseconds, and its name. */
const LENGTHS: Record<Preset, [length: number, name: string]> = {
  "1h": [HOUR, "hour"],
  "24h": [24 * HOUR, "24 hours"],
  "7d": [168 * HOUR, "7 days"],
  "30d": [720 * HOUR, "30 days"],
  "90d": [2_160 * HOUR, "90 days"],
};

export const lengthOf = (preset: Preset) => LENGTHS[preset][0];

const DEFAULT: Preset = "7d";
/** The API's resolution. */
const MINUTE = 60_000;

export interface Range {
  /** `null` for a custom range. */
  preset: Preset | null;
  /** Milliseconds since the epoch; `to` is exclusive. */
  from: number;
  to: number;
}

export function readRange(query: URLSearchParams, now: number): Range {
  const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
  if (query.has("from") && Number.isFinite(from) && to - from >= MINUTE) {
    return { preset: null, from: clampTime(from), to: clampTime(to) };
  }
  const requested = query.get("range") as Preset | null;
  const preset = requested && PRESETS.includes(requested) ? requested : DEFAULT;
  return { preset, from: now - lengthOf(preset), to: now };
}

/** Returns the parameters of a range; the default range has none. */
export function rangeParams(range: Preset | { from: number; to: number }) {
  if (typeof range === "string") {
    return { range: range === DEFAULT ? null : range, from: null, to: null };
  }
  const [from, to] = [Math.floor(range.from / MINUTE), Math.ceil(range.to / MINUTE)];
  return { range: null, from: from * MINUTE, to: Math.max(to, from + 1) * MINUTE };
}

/** Returns the parameters that links to other pages keep. */
export function keptParams(address: Address): Record<string, string | null> {
  const { query } = address;
  return {
    project: query.get("project"),
    with: query.get("with"),
    range: query.get("range"),
    from: query.get("from"),
    to: query.get("to"),
  };
}

/** Pages that share filters, search, status and order. */
const ERROR_PAGES = ["", "errors", "error"];

/** Returns `keptParams` and, between error pages, the parameters that these share. */
export function keptView(address: Address, page: string): Params {
  const kept = keptParams(address);
  if (!ERROR_PAGES.includes(address.page) || !ERROR_PAGES.includes(page)) return kept;
  const { query } = address;
  return {
    ...kept,
    f: query.getAll("f"),
    q: query.get("q"),
    status: query.get("status"),
    sort: query.get("sort"),
    by: query.get("by"),
  };
}

/** Returns the range of the same length that ends where this one begins. */
export function previousRange(range: Range): { from: number; to: number } {
  return { from: range.from - (range.to - range.from), to: range.from };
}

/** Returns the name of the previous range, such as `previous 7 days`. */
export function previousName(range: Range): string {
  return `previous ${range.preset ? LENGTHS[range.preset][1] : "period"}`;
}

/**
 * Returns the ranges to zoom out through, the widest first, `shown` last. A range within the last
 * one is a zoom into it; any other custom range starts over from the first.
 */
export function zoomStack(ranges: readonly Range[], shown: Range): Range[] {
  const contains = (it: Range) => it.from <= shown.from && shown.to <= it.to;
  const isSame = (it: Range) =>
    it.preset === shown.preset &&
    (it.preset || (contains(it) && it.from === shown.from && it.to === shown.to));
  if (shown.preset) return [shown];
  const known = ranges.findIndex(isSame);
  if (known >= 0) return ranges.slice(0, known + 1);
  const outer = ranges.filter((it, index) => index === 0 || contains(it));
  return [...outer, shown];
}
