/** Finds the newest items of a list that the API returns oldest first. */

import { loadPages, type Page } from "../api/pages";

export interface Timed {
  occurredAt: string;
}

export interface Newest<T> {
  /** Oldest first. */
  items: T[];
  /** `items` has every item since this time. */
  from: number;
  /** `true` if `items` has every item of the span. */
  isAll: boolean;
}

/** Maximum bisection steps. */
const MAX_STEPS = 20;
/** Bisection ends with at least this many items. */
const MIN_ITEMS = 40;

/**
 * Loads all items of a span that `maxPages` pages can hold, or else finds the newest ones by
 * bisection. `latest` is the end of the span or, if it is open, a time with few items after it.
 */
export async function newestOf<T extends Timed>(
  load: (from: number, cursor: string | undefined) => Promise<Page<T>>,
  from: number,
  latest: number,
  maxPages: number,
): Promise<Newest<T>> {
  const timeOf = (it: T | undefined) => (it ? Date.parse(it.occurredAt) : from);
  const read = (start: number) => loadPages((query) => load(start, query.cursor), maxPages);
  const first = await read(from);
  if (!first.nextCursor) return { items: first.items, from, isAll: true };
  let [low, high] = [timeOf(first.items.at(-1)), latest];
  let newest: Newest<T> | null = null;
  for (let step = 0; step < MAX_STEPS && high - low > 1; step++) {
    const middle = Math.floor((low + high) / 2);
    const page = await load(middle, undefined);
    if (page.nextCursor) {
      low = Math.max(middle, timeOf(page.items.at(-1)));
      continue;
    }
    newest = { items: page.items, from: middle, isAll: false };
    if (page.items.length >= MIN_ITEMS) break;
    high = middle;
  }
  // Too many items at one moment: returns the first pages of that moment.
  if (newest?.items.length) return newest;
  return { items: (await read(low)).items, from: low, isAll: false };
}
