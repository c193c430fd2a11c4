/** Loaded data by key, cached so that a page shows immediately when the user returns to it. */

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { currentCredential, session } from "../session";
import { ApiError } from "./client";
import { isOutage, isReachable, retryAfterOutage } from "./outage";

export interface Loaded<T> {
  /** The data of this key or, while that loads, of the previous key. */
  data: T | undefined;
  error: ApiError | null;
  loading: boolean;
  reload: () => void;
  /** Changes the data without loading it, such as after an update whose response has it. */
  set: (change: (data: T) => T) => void;
}

const MAX_CACHED = 200;
const cache = new Map<string, unknown>();

function store(key: string, data: unknown): void {
  cache.delete(key);
  cache.set(key, data);
  const oldest = cache.keys().next();
  if (cache.size > MAX_CACHED && !oldest.done) cache.delete(oldest.value);
}

export function clearLoaded(): void {
  cache.clear();
}

function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, "unexpected", error instanceof Error ? error.message : String(error));
}

/**
 * Loads the data of `key`; `null` loads nothing. Requests with `"first"` start before those with
 * `"then"`. Browsers send six requests at a time, and the main content of a page must not wait for
 * its other parts.
 */
export function useLoaded<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  when: "first" | "then" = "then",
): Loaded<T> {
  const [state, setState] = useState<{ key: string | null; data?: T; error: ApiError | null }>({
    key: null,
    error: null,
  });
  const [reloads, setReloads] = useState(0);
  const loader = useRef(load);
  loader.current = load;

  const reload = useCallback(() => setReloads((it) => it + 1), []);
  const start = () => {
    if (key === null) return;
    const stop = new AbortController();
    let withdraw = () => {};
    loader
      .current(stop.signal)
      .then((data) => {
        store(key, data);
        isReachable();
        if (!stop.signal.aborted) setState({ key, data, error: null });
      })
      .catch((cause: unknown) => {
        if (stop.signal.aborted) return;
        const error = asApiError(cause);
        setState((was) => ({ ...was, key, error }));
        if (isOutage(error)) withdraw = retryAfterOutage(error, reload);
      });
    return () => {
      stop.abort();
      withdraw();
    };
  };
  useLayoutEffect(() => (when === "first" ? start() : undefined), [key, reloads]);
  useEffect(() => (when === "then" ? start() : undefined), [key, reloads]);

  // Data that was rejected with 401 is loaded again with the next credential.
  const isUnauthorized = useRef(false);
  isUnauthorized.current = state.error?.status === 401;
  useEffect(
    () => session.watch(() => void (isUnauthorized.current && currentCredential() && reload())),
    [],
  );
  const set = useCallback(
    (change: (data: T) => T) =>
      setState((was) => {
        // The state still has data of another key, so only the cache can change.
        if (was.key !== key) {
          const cached = key === null ? undefined : (cache.get(key) as T | undefined);
          if (key !== null && cached !== undefined) store(key, change(cached));
          return { ...was };
        }
        const data = was.data === undefined ? undefined : change(was.data);
        if (key !== null && data !== undefined) store(key, data);
        return data === undefined ? was : { ...was, data };
      }),
    [key],
  );
  const isCurrent = state.key === key;
  const cached = key === null ? undefined : (cache.get(key) as T | undefined);
  return {
    data: isCurrent ? state.data : (cached ?? state.data),
    error: isCurrent ? state.error : null,
    loading: key !== null && !isCurrent,
    reload,
    set,
  };
}
