/** Numbers and times in the words of the reader's locale. */

const whole = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const inUtc = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium",
  timeStyle: "medium",
  timeZone: "UTC",
});
const minute = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
});
const minuteOfYear = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
});
const dayOfYear = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const hour = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** The years 1 to 9999, which date fields and the API take as well. */
const EARLIEST = Date.parse("0001-01-01T00:00:00Z");
const LATEST = Date.parse("9999-12-31T23:59:59.999Z");

/** Clamps a time in milliseconds to the years 1 to 9999: `Date` and `Intl` throw beyond their limits. */
export const clampTime = (at: number) => Math.min(LATEST, Math.max(EARLIEST, at)) || 0;
const say = (words: Intl.DateTimeFormat, at: number) => words.format(clampTime(at));

export const number = (value: number) => whole.format(value);
export const short = (value: number) =>
  Math.abs(value) < 10_000 ? whole.format(value) : compact.format(value);
const yearOf = (at: number) => new Date(clampTime(at)).getFullYear();
export const isOfThisYear = (at: number) => yearOf(at) === yearOf(Date.now());
/** A day; of another year than this with it. */
export const dayOf = (at: number) => say(isOfThisYear(at) ? day : dayOfYear, at);
export const minuteOf = (at: number) => say(isOfThisYear(at) ? minute : minuteOfYear, at);
/** From when until when, both with their years where one is not this year. */
export function rangeInWords({ from, to }: { from: number; to: number }): string {
  const words = isOfThisYear(from) && isOfThisYear(to) ? minute : minuteOfYear;
  return `${say(words, from)} – ${say(words, to)}`;
}
/** A time of day; at midnight the day, so that an axis tells days apart. */
export function hourOf(at: number): string {
  const date = new Date(clampTime(at));
  return date.getHours() === 0 && date.getMinutes() === 0 ? dayOf(at) : say(hour, at);
}
export const timeOfDay = (at: number) => say(clock, at);

/** A count and its noun: `1 error`, `12 errors`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

export function ago(at: number, now: number): string {
  const seconds = (at - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return "just now";
}

/** A time in full, in the reader's zone and in UTC. */
export function inFull(at: number): string {
  return `${say(full, at)}\n${say(inUtc, at)} UTC`;
}

export function percent(value: number): string {
  const sign = value > 0 ? "+" : value < 0 ? "−" : "±";
  return `${sign}${whole.format(Math.abs(Math.round(value)))} %`;
}
