/** Lists that are loaded whole, up to a limit. */

/** Pages of 100 items. */
const MAX_PAGES = 10;

export interface WholeList<T> {
  items: T[];
  /** `true` if the list has more items than were loaded. */
  isCut: boolean;
}

/** Loads all pages of a list, up to 1,000 items. */
export async function loadAll<T>(
  load: (query: { limit: number; cursor?: string }) => Promise<{
    items: T[];
    nextCursor: string | null;
  }>,
): Promise<WholeList<T>> {
  const items: T[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await load({ limit: 100, ...(cursor && { cursor }) });
    items.push(...page.items);
    cursor = page.nextCursor;
    if (!cursor) break;
  }
  return { items, isCut: cursor !== null };
}
