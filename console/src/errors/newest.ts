/** The newest of a list that the API tells from the oldest on. */

export interface Timed {
  occurredAt: string;
}

export interface TimedPage<T> {
  items: T[];
  nextCursor: string | null;
}

export interface Newest<T> {
  /** The oldest first. */
  items: T[];
  /** All from here on are among them. */
  from: number;
  /** Whether nothing of the span is missing. */
  isAll: boolean;
}

/** How often the beginning is moved towards the end until what is left fits. */
const MOST_MOVES = 20;
/** So many are enough of them. */
const ENOUGH = 40;

/**
 * All of a span, where at most so many pages hold them; else the newest, to which the beginning is moved
 * by halves. `latest` is the end of the span, or where it has none, a time that few are after.
 */
export async function newestOf<T extends Timed>(
  load: (from: number, cursor: string | null) => Promise<TimedPage<T>>,
  from: number,
  latest: number,
  mostPages: number,
): Promise<Newest<T>> {
  const timeOf = (it: T | undefined) => (it ? Date.parse(it.occurredAt) : from);
  /** From the oldest on, as far as the pages go. */
  const read = async (start: number) => {
    const items: T[] = [];
    let cursor: string | null = null;
    for (let pages = 0; pages < mostPages; pages++) {
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
  for (let moves = 0; moves < MOST_MOVES && high - low > 1; moves++) {
    const middle = Math.floor((low + high) / 2);
    const page = await load(middle, null);
    if (page.nextCursor) {
      low = Math.max(middle, timeOf(page.items.at(-1)));
      continue;
    }
    newest = { items: page.items, from: middle, isAll: false };
    if (page.items.length >= ENOUGH) break;
    high = middle;
  }
  // Where so many are of one moment that no beginning leaves a few, what that moment begins with.
  if (newest?.items.length) return newest;
  const last = await read(low);
  return { items: last.items, from: low, isAll: false };
}
