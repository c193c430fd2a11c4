/** Numbers and dates in the viewer's locale. */

const whole = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const utc = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium",
  timeStyle: "medium",
  timeZone: "UTC",
});
const MINUTE = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" } as const;
const WITH_YEAR = { ...MINUTE, year: "numeric" } as const;
const WITH_ZONE = { ...WITH_YEAR, second: "2-digit", timeZoneName: "short" } as const;
const zoned = new Intl.DateTimeFormat(undefined, WITH_ZONE);
const minute = new Intl.DateTimeFormat(undefined, MINUTE);
const minuteWithYear = new Intl.DateTimeFormat(undefined, WITH_YEAR);
const dayWithYear = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const hour = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** The years 1 to 9999, which date fields and the API also accept. */
const EARLIEST = Date.parse("0001-01-01T00:00:00Z");
const LATEST = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Clamps a time in milliseconds to the years 1 to 9999: `Date` and `Intl` throw beyond their
 * limits.
 */
export const clampTime = (at: number) => Math.min(LATEST, Math.max(EARLIEST, at)) || 0;
const format = (style: Intl.DateTimeFormat, at: number) => style.format(clampTime(at));

export const number = (value: number) => whole.format(value);
export const short = (value: number) =>
  Math.abs(value) < 10_000 ? whole.format(value) : compact.format(value);
const yearOf = (at: number) => new Date(clampTime(at)).getFullYear();
export const isThisYear = (at: number) => yearOf(at) === yearOf(Date.now());
/** Formats a day, with the year if it is not the current one. */
export const formatDay = (at: number) => format(isThisYear(at) ? day : dayWithYear, at);
export const formatMinute = (at: number) => format(isThisYear(at) ? minute : minuteWithYear, at);
/** Formats a range, with both years if one is not the current one. */
export function formatRange({ from, to }: { from: number; to: number }): string {
  const style = isThisYear(from) && isThisYear(to) ? minute : minuteWithYear;
  return `${format(style, from)} – ${format(style, to)}`;
}
/** Formats a time of day, or the day at midnight, for the labels of an axis. */
export function formatHour(at: number): string {
  const date = new Date(clampTime(at));
  return date.getHours() === 0 && date.getMinutes() === 0 ? formatDay(at) : format(hour, at);
}
export const formatTimeOfDay = (at: number) => format(clock, at);

/** Formats a count with its noun: `1 error`, `12 errors`. */
export function pluralize(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

const UNITS: [unit: string, seconds: number][] = [
  ["w", 604_800],
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
];
/** Times further away than 4 weeks show as dates. */
const MAX_RELATIVE_SECONDS = 5 * 604_800;

/** Formats a time relative to `now`: `2h ago`, `in 3d`, `4w ago`, or a date such as `Oct 26`. */
export function formatRelative(at: number, now: number): string {
  const seconds = Math.abs(at - now) / 1000;
  if (seconds >= MAX_RELATIVE_SECONDS) return formatDay(at);
  for (const [unit, size] of UNITS) {
    if (seconds < size) continue;
    const count = `${Math.trunc(seconds / size)}${unit}`;
    return at < now ? `${count} ago` : `in ${count}`;
  }
  return "just now";
}

/** Formats a time in full: in the viewer's time zone, with its name, and in UTC. */
export function formatFull(at: number): string {
  return `${format(full, at)}\n${format(utc, at)} UTC`;
}

/** Formats a time in the viewer's time zone, with its name: `Nov 27, 2026, 12:10:31 GMT+1`. */
export const formatZoned = (at: number) => format(zoned, at);

/** Returns the value of a `datetime-local` field: local time in minutes. */
export function fieldOf(at: number): string {
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** Formats a relative change in percent, with its sign. */
export function percent(value: number): string {
  const sign = value > 0 ? "+" : value < 0 ? "−" : "±";
  return `${sign}${whole.format(Math.abs(Math.round(value)))}%`;
}

export const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
