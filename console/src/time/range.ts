/** The time that a page is about. */

import type { Address, Params } from "../address";
import { clampTime } from "./format";

export const PRESETS = ["1h", "24h", "7d", "30d", "90d"] as const;
export type Preset = (typeof PRESETS)[number];

const HOUR = 3_600_000;
const LENGTHS: Record<Preset, number> = {
  "1h": HOUR,
  "24h": 24 * HOUR,
  "7d": 168 * HOUR,
  "30d": 720 * HOUR,
  "90d": 2_160 * HOUR,
};
const DEFAULT: Preset = "7d";
/** The shortest that the API tells apart. */
const MINUTE = 60_000;

export interface Range {
  /** `null` for one that was chosen by hand. */
  preset: Preset | null;
  /** Milliseconds since the epoch, half-open. */
  from: number;
  to: number;
}

export function readRange(query: URLSearchParams, now: number): Range {
  const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
  if (query.has("from") && Number.isFinite(from) && to - from >= MINUTE) {
    return { preset: null, from: clampTime(from), to: clampTime(to) };
  }
  const asked = query.get("range") as Preset | null;
  const preset = asked && PRESETS.includes(asked) ? asked : DEFAULT;
  return { preset, from: now - LENGTHS[preset], to: now };
}

/** What of an address says the range; the usual one is not written. */
export function rangeParams(range: Preset | { from: number; to: number }) {
  if (typeof range === "string") {
    return { range: range === DEFAULT ? null : range, from: null, to: null };
  }
  const [from, to] = [Math.floor(range.from / MINUTE), Math.ceil(range.to / MINUTE)];
  return { range: null, from: from * MINUTE, to: Math.max(to, from + 1) * MINUTE };
}

/** The parameters that links to other pages keep. */
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

/** The pages that look at errors by the same filters, words, status and order. */
const PAGES_OF_ERRORS = ["", "errors", "error"];

/** What links between pages about errors keep besides: going there and back again loses nothing. */
export function keptView(address: Address, page: string): Params {
  const kept = keptParams(address);
  if (!PAGES_OF_ERRORS.includes(address.page) || !PAGES_OF_ERRORS.includes(page)) return kept;
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

/** The range of the same length before it. */
export function before(range: Range): { from: number; to: number } {
  return { from: range.from - (range.to - range.from), to: range.from };
}

/**
 * The ranges that zooms lead back through, the widest first and the one that is shown last: one within the
 * one before is a zoom into it, any other one begins anew.
 */
export function zoomed(ranges: readonly Range[], shown: Range): Range[] {
  const isIn = (it: Range) => it.from <= shown.from && shown.to <= it.to;
  const isSame = (it: Range) =>
    it.preset === shown.preset &&
    (it.preset || (isIn(it) && it.from === shown.from && it.to === shown.to));
  if (shown.preset) return [shown];
  const known = ranges.findIndex(isSame);
  if (known >= 0) return ranges.slice(0, known + 1);
  const outer = ranges.filter((it, index) => index === 0 || isIn(it));
  return [...outer, shown];
}
