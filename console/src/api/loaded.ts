/** What was loaded for a key, and is shown again at once when one comes back. */

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { currentKey, onKeyChange } from "../session";
import { ApiError } from "./client";

export interface Loaded<T> {
  /** What was loaded last: for this key, or while that is on its way, for the one before. */
  data: T | undefined;
  error: ApiError | null;
  loading: boolean;
  reload: () => void;
  /** Shows something before the API does, as after a change that was answered. */
  set: (change: (data: T) => T) => void;
}

const MOST_KEPT = 200;
const kept = new Map<string, unknown>();

function keep(key: string, data: unknown): void {
  kept.delete(key);
  kept.set(key, data);
  const oldest = kept.keys().next();
  if (kept.size > MOST_KEPT && !oldest.done) kept.delete(oldest.value);
}

export function forgetLoaded(): void {
  kept.clear();
}

function asRefusal(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, "fault", error instanceof Error ? error.message : String(error));
}

/**
 * Loads what `key` stands for; `null` loads nothing. What a page is about is asked for first: browsers send
 * six requests at once, and without it the parts of a page would ask before the page does.
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
  const [turn, setTurn] = useState(0);
  const loader = useRef(load);
  loader.current = load;

  const start = () => {
    if (key === null) return;
    const stop = new AbortController();
    loader
      .current(stop.signal)
      .then((data) => {
        keep(key, data);
        if (!stop.signal.aborted) setState({ key, data, error: null });
      })
      .catch((error: unknown) => {
        if (!stop.signal.aborted) setState((was) => ({ ...was, key, error: asRefusal(error) }));
      });
    return () => stop.abort();
  };
  // A new turn loads the same again.
  useLayoutEffect(() => (when === "first" ? start() : undefined), [key, turn]);
  useEffect(() => (when === "then" ? start() : undefined), [key, turn]);

  const reload = useCallback(() => setTurn((it) => it + 1), []);
  // What a key was refused, the next one may get.
  const isWithoutKey = useRef(false);
  isWithoutKey.current = state.error?.status === 401;
  useEffect(() => onKeyChange(() => void (isWithoutKey.current && currentKey() && reload())), []);
  const set = useCallback(
    (change: (data: T) => T) =>
      setState((was) => {
        // What is there is still of another key, or what was remembered of this one.
        if (was.key !== key) {
          const remembered = key === null ? undefined : (kept.get(key) as T | undefined);
          if (key !== null && remembered !== undefined) keep(key, change(remembered));
          return { ...was };
        }
        const data = was.data === undefined ? undefined : change(was.data);
        if (key !== null && data !== undefined) keep(key, data);
        return data === undefined ? was : { ...was, data };
      }),
    [key],
  );
  const isCurrent = state.key === key;
  const remembered = key === null ? undefined : (kept.get(key) as T | undefined);
  return {
    data: isCurrent ? state.data : (remembered ?? state.data),
    error: isCurrent ? state.error : null,
    loading: key !== null && !isCurrent,
    reload,
    set,
  };
}
