/**
 * The words of a sentence that the page reads itself: times and statuses. They set the range and
 * the status, which the interpreter does not know. All positions are in Unicode code points.
 */

import { lengthOf, PRESETS, type Preset } from "../time/range";
import type { Status } from "./filters";

export interface Span {
  from: number;
  /** Exclusive. */
  to: number;
}

export interface Controls {
  /** The range, if the sentence names one. */
  range: Preset | { from: number; to: number } | null;
  /** The status, if the sentence names one; `"any"` for all. */
  status: Status | "any" | null;
  /** The words that set them. */
  spans: Span[];
}

const MINUTE = 60_000;
const UNITS: Record<string, number> = {
  m: MINUTE,
  min: MINUTE,
  minute: MINUTE,
  h: 60 * MINUTE,
  hr: 60 * MINUTE,
  hour: 60 * MINUTE,
  d: 1_440 * MINUTE,
  day: 1_440 * MINUTE,
  week: 10_080 * MINUTE,
  month: 43_200 * MINUTE,
};
const DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const DAY_NAMES = DAYS.map((it) => `${it}|${it.slice(0, 3)}`).join("|");
const MONTH_NAMES =
  "january|february|march|april|june|july|august|september|october|november|december";

/** A moment after `since`, or a day after `on`. */
const MOMENT = `yesterday|today|this morning|last night|noon|midnight|${DAY_NAMES}|\\d{4}-\\d\\d-\\d\\d|(?:${MONTH_NAMES}|${MONTHS.join("|")}) \\d{1,2}|\\d{1,2} (?:${MONTH_NAMES}|${MONTHS.join("|")})|\\d{1,2}:\\d\\d`;
const LEAD = "(?:(?:in|during|over|within|for|from|of) )?(?:the )?";
const TIMES: [pattern: RegExp, read: (match: string[], now: number) => Controls["range"]][] = [
  [
    new RegExp(`(?:since|after|from) (${MOMENT})`),
    ([, moment = ""], now) => {
      const from = readMoment(moment, now);
      return from === null ? null : { from, to: now };
    },
  ],
  [
    new RegExp(`on (${MOMENT})`),
    ([, moment = ""], now) => {
      const from = readMoment(moment, now);
      return from === null ? null : { from, to: Math.min(now, startOf("day", from, 1)) };
    },
  ],
  [
    new RegExp(
      `${LEAD}(?:last|past|previous) (\\d{1,4}|an?|few)? ?(minute|min|hour|hr|day|week|month)s?`,
    ),
    ([, count, unit = ""], now) => {
      if (count === "few") return null;
      const number = Number(count);
      // “last week” is the calendar week; “last 7 days” and “past week” end now.
      return atPreset((number || 1) * (UNITS[unit] ?? 0), now);
    },
  ],
  [
    /(\d{1,3}) ?(h|d|m|min)\b/,
    ([, count, unit = ""], now) => atPreset(Number(count) * (UNITS[unit] ?? 0), now),
  ],
  [
    new RegExp(`${LEAD}this (hour|morning|week|month)|${LEAD}today`),
    ([, unit = "day"], now) => ({ from: startOf(unit, now), to: now }),
  ],
  [
    new RegExp(`${LEAD}yesterday`),
    (_, now) => ({ from: startOf("day", now, -1), to: startOf("day", now) }),
  ],
];

function atPreset(length: number, now: number): Controls["range"] {
  const preset = PRESETS.find((it) => lengthOf(it) === length);
  if (preset) return preset;
  return length > 0 ? { from: now - length, to: now } : null;
}

/** Returns the local start of a unit, `by` days later. Weeks start on Monday. */
function startOf(unit: string, at: number, by = 0): number {
  const date = new Date(at);
  if (unit === "hour") return date.setMinutes(0, 0, 0);
  date.setHours(0, 0, 0, 0);
  if (unit === "week") date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
  if (unit === "month") date.setDate(1);
  date.setDate(date.getDate() + by);
  return date.getTime();
}

/** Returns the latest such moment that is not in the future. */
function readMoment(text: string, now: number): number | null {
  const today = startOf("day", now);
  if (text === "today" || text === "midnight" || text === "this morning") return today;
  if (text === "yesterday") return startOf("day", now, -1);
  if (text === "last night") return startOf("day", now, -1) + 18 * 60 * MINUTE;
  const clock = text === "noon" ? "12:00" : text;
  const [, hours, minutes] = /^(\d{1,2}):(\d\d)$/.exec(clock) ?? [];
  if (hours && minutes) {
    if (Number(hours) > 23 || Number(minutes) > 59) return null;
    const at = new Date(now).setHours(Number(hours), Number(minutes), 0, 0);
    return at < now ? at : at - 1_440 * MINUTE;
  }
  const weekday = DAYS.findIndex((it) => it.slice(0, 3) === text.slice(0, 3));
  if (weekday >= 0 && !/\d/.test(text)) {
    const days = (new Date(now).getDay() - weekday + 7) % 7 || 7;
    return startOf("day", now, -days);
  }
  const iso = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (iso) {
    const at = new Date(Number(iso[1]), Number(iso[2]) - 1, Number(iso[3])).getTime();
    return at < now ? at : null;
  }
  const number = Number(/\d+/.exec(text)?.[0]);
  const month = MONTHS.findIndex((it) => new RegExp(`\\b${it}`).test(text));
  if (month < 0 || number < 1 || number > 31) return null;
  const date = new Date(new Date(now).getFullYear(), month, number);
  if (date.getTime() >= now) date.setFullYear(date.getFullYear() - 1);
  return date.getTime();
}

const STATUSES: [pattern: RegExp, status: Status | "any"][] = [
  [/any status|all statuses|with any state/, "any"],
  [/not resolved|unresolved/, "open"],
  [/resolved/, "resolved"],
  [/ignored/, "ignored"],
  [/open/, "open"],
];

/** `\b` splits at letters of other alphabets, so words end at anything but letters and digits. */
const whole = (pattern: RegExp) =>
  new RegExp(
    `(?<![\\p{L}\\p{N}_.:=@/-])(?:${pattern.source})(?![\\p{L}\\p{N}_:=@/-]|\\.\\p{N})`,
    "u",
  );

/**
 * Reads times and statuses. `known` are the values of the project: a word that is a value, such as
 * a release named `open`, is left to the interpreter.
 */
export function readControls(text: string, now: number, known: ReadonlySet<string>): Controls {
  const lower = text.toLowerCase();
  const found: Controls = { range: null, status: null, spans: [] };
  // Lower case can change the length of a text, and so its positions.
  if (lower.length !== text.length) return found;
  const add = (index: number, length: number) => {
    const from = [...text.slice(0, index)].length;
    found.spans.push({ from, to: from + [...text.slice(index, index + length)].length });
  };
  for (const [pattern, read] of TIMES) {
    const match = whole(pattern).exec(lower);
    if (!match || known.has(match[0])) continue;
    const range = read([...match], now);
    if (!range || (typeof range !== "string" && range.to - range.from < MINUTE)) continue;
    found.range = lastPeriod(match[0], now) ?? range;
    add(match.index, match[0].length);
    break;
  }
  for (const [pattern, status] of STATUSES) {
    const match = whole(pattern).exec(lower);
    if (!match || known.has(match[0])) continue;
    found.status = status;
    add(match.index, match[0].length);
    break;
  }
  return found;
}

/** Returns the calendar week or month of “last week” and “last month”. */
function lastPeriod(text: string, now: number): { from: number; to: number } | null {
  const unit = /\blast (week|month)$/.exec(text)?.[1];
  if (!unit) return null;
  const to = startOf(unit, now);
  return { from: startOf(unit, to - MINUTE), to };
}

/** Replaces words by spaces, so that the positions of the others stay. */
export function withoutSpans(text: string, spans: readonly Span[]): string {
  return [...text]
    .map((it, at) => (spans.some(({ from, to }) => at >= from && at < to) ? " " : it))
    .join("");
}

/** Words that say nothing about events. */
const FUNCTION_WORDS = new Set(
  "a all an and any are as at be but by can could did do does during error errors event events every everything exception exceptions find for from get give had has have i in is issue issues it its just let list me my not of on only or our please show that the their them there these they this those to us was we were what when where which who why with without you".split(
    " ",
  ),
);

/** Returns the meaningful words outside of `used`, in order, neighbors joined. */
export function leftOver(text: string, used: readonly Span[], ignored: readonly Span[]): Span[] {
  const characters = [...text];
  const isUsed = ({ from, to }: Span) => used.some((it) => it.from < to && from < it.to);
  const words: Span[] = [];
  for (let at = 0; at < characters.length; ) {
    if (/\s/u.test(characters[at] ?? "")) at++;
    else {
      const from = at;
      while (at < characters.length && !/\s/u.test(characters[at] ?? "")) at++;
      words.push(trim(characters, { from, to: at }));
    }
  }
  const left = words.filter((it) => {
    if (it.from === it.to || isUsed(it)) return false;
    const word = characters.slice(it.from, it.to).join("").toLowerCase();
    return (
      !FUNCTION_WORDS.has(word) || ignored.some((one) => one.from <= it.from && it.to <= one.to)
    );
  });
  const joined: Span[] = [];
  for (const it of left) {
    const last = joined.at(-1);
    const between = last && characters.slice(last.to, it.from).join("");
    if (last && between?.trim() === "") last.to = it.to;
    else joined.push({ ...it });
  }
  return joined;
}

/** Removes punctuation around a word. */
function trim(characters: string[], { from, to }: Span): Span {
  const isPunctuation = (it: string | undefined) => it !== undefined && /[\p{P}\p{S}]/u.test(it);
  let [start, end] = [from, to];
  while (start < end && isPunctuation(characters[start])) start++;
  while (end > start && isPunctuation(characters[end - 1])) end--;
  return { from: start, to: end };
}

export function textOf(text: string, spans: readonly Span[]): string {
  const characters = [...text];
  return spans.map(({ from, to }) => characters.slice(from, to).join("")).join(" ");
}
