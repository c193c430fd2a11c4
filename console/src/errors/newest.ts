/** Finds the newest items of a list that the API returns oldest first. */

export interface Timed {
  occurredAt: string;
}

export interface TimedPage<T> {
  items: T[];
  nextCursor: string | null;
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
  load: (from: number, cursor: string | null) => Promise<TimedPage<T>>,
  from: number,
  latest: number,
  maxPages: number,
): Promise<Newest<T>> {
  const timeOf = (it: T | undefined) => (it ? Date.parse(it.occurredAt) : from);
  /** Loads up to `maxPages` pages from a time. */
  const read = async (start: number) => {
    const items: T[] = [];
    let cursor: string | null = null;
    for (let pages = 0; pages < maxPages; pages++) {
      const page: TimedPage<T> = await load(start, cursor);
      items.push(...page.items);
      cursor = page.nextCursor;
      if (!cursor) break;
    }
    return { items, isAll: cursor === null };
  };
  const first = await read(from);
  if (first.isAll) return { ...first, from };
  let [low, high] = [timeOf(first.items.at(-1)), latest];
  let newest: Newest<T> | null = null;
  for (let step = 0; step < MAX_STEPS && high - low > 1; step++) {
    const middle = Math.floor((low + high) / 2);
    const page = await load(middle, null);
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
  const last = await read(low);
  return { items: last.items, from: low, isAll: false };
}
