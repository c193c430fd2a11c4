/** Loads further pages of a list. */

import { useState } from "preact/hooks";
import type { Loaded } from "../api/loaded";
import { showErrorToast } from "./toast";

interface Page<T> {
  items: T[];
  nextCursor: string | null;
}

/** Returns a function that appends the next page, and whether it is loading. */
export function useNextPage<T, P extends Page<T>>(
  loaded: Loaded<P>,
  load: (cursor: string) => Promise<P>,
): { busy: boolean; loadMore: () => Promise<void> } {
  const [busy, setBusy] = useState(false);
  const cursor = loaded.data?.nextCursor;
  const loadMore = async () => {
    if (!cursor || busy) return;
    setBusy(true);
    try {
      const page = await load(cursor);
      loaded.set((was) => ({ ...page, items: [...was.items, ...page.items] }));
    } catch (error) {
      showErrorToast(error);
    }
    setBusy(false);
  };
  return { busy, loadMore };
}
