/** Loads further pages of a list. */

import type { Loaded } from "../api/loaded";
import type { Page } from "../api/pages";
import { useAction } from "./toast";

/** Returns a function that appends the next page, and whether it is loading. */
export function useNextPage<P extends Page<unknown, unknown>>(
  loaded: Loaded<P>,
  load: (cursor: NonNullable<P["nextCursor"]>) => Promise<P>,
): { busy: boolean; loadMore: () => void } {
  const [busy, run] = useAction();
  const cursor = loaded.loading ? null : loaded.data?.nextCursor;
  const append = async (after: NonNullable<P["nextCursor"]>) => {
    const page = await load(after);
    loaded.set((was) => ({ ...page, items: [...was.items, ...page.items] }));
  };
  return { busy, loadMore: () => cursor && !busy && void run(() => append(cursor)) };
}
