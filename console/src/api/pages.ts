/** Lists that are loaded page by page. */

export interface Page<T, C = string> {
  items: T[];
  /** `null` after the last item. */
  nextCursor: C | null;
}

/** Pages of 100 items. */
const MAX_PAGES = 10;

/** Loads the pages of a list after a cursor, up to a limit. */
export async function loadPages<T>(
  load: (query: { limit: number; cursor?: string | undefined }) => Promise<Page<T>>,
  maxPages = MAX_PAGES,
  after: string | null = null,
): Promise<Page<T>> {
  const items: T[] = [];
  let nextCursor = after;
  for (let pages = 0; pages < maxPages; pages++) {
    const page = await load({ limit: 100, cursor: nextCursor ?? undefined });
    items.push(...page.items);
    nextCursor = page.nextCursor;
    if (!nextCursor) break;
  }
  return { items, nextCursor };
}
