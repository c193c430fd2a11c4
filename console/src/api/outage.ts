/**
 * A rate limit or an outage has one cause, so the page shows one message, which retries everything
 * that failed.
 */

import { ApiError } from "./client";

export interface Outage {
  text: string;
  /** Time of the next try, in milliseconds. */
  retryAt: number;
}

/** Delays of consecutive tries without a `retry-after`, in seconds. */
const DELAYS = [5, 10, 20, 30];

let outage: Outage | null = null;
let tries = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
const waiting = new Set<() => void>();
const watchers = new Set<(outage: Outage | null) => void>();

function put(next: Outage | null): void {
  outage = next;
  for (const watcher of watchers) watcher(outage);
}

/** `true` if the error has nothing to do with the request itself. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status === 429 || error.status === 503 || error.code === "unreachable";
}

/** Calls `retry` when the outage may be over. Returns a function that withdraws this. */
export function retryAfterOutage(error: ApiError, retry: () => void): () => void {
  waiting.add(retry);
  if (!outage) {
    const seconds = Number(/(\d+) s\.$/.exec(error.message)?.[1]);
    const delay = seconds || (DELAYS[Math.min(tries, DELAYS.length - 1)] as number);
    tries++;
    put({
      text: TEXTS[error.status] ?? "Waymark can’t be reached.",
      retryAt: Date.now() + delay * 1000,
    });
    timer = setTimeout(retryNow, delay * 1000);
  }
  return () => {
    waiting.delete(retry);
    if (waiting.size === 0 && outage) end();
  };
}

const TEXTS: Record<number, string> = {
  429: "Rate limit reached.",
  503: "Waymark is temporarily unavailable.",
};

function end(): void {
  clearTimeout(timer);
  put(null);
}

/** Retries everything that failed. */
export function retryNow(): void {
  end();
  const all = [...waiting];
  waiting.clear();
  for (const retry of all) retry();
}

/** Called after each success: the next outage starts with the shortest delay. */
export function isReachable(): void {
  tries = 0;
}

export function watchOutage(watcher: (outage: Outage | null) => void): () => void {
  watchers.add(watcher);
  watcher(outage);
  return () => {
    watchers.delete(watcher);
  };
}
