/**
 * A rate limit or an outage has one cause, so the page shows one message, which retries everything
 * that failed.
 */

import { Store } from "../store";
import { ApiError } from "./client";

interface Outage {
  text: string;
  /** Time of the next try, in milliseconds. */
  retryAt: number;
}

/** Delays of consecutive tries without a `retry-after`, in seconds. */
const DELAYS = [5, 10, 20, 30];

/** The outage that the banner shows. */
export const outage = new Store<Outage | null>(null);
let tries = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
const waiting = new Set<() => void>();

/** `true` if the error has nothing to do with the request itself. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status === 429 || error.status === 503 || error.code === "unreachable";
}

/** Calls `retry` when the outage may be over. Returns a function that withdraws this. */
export function retryAfterOutage(error: ApiError, retry: () => void): () => void {
  waiting.add(retry);
  if (!outage.value) {
    const seconds = Number(/(\d+) s\.$/.exec(error.message)?.[1]);
    const delay = seconds || (DELAYS[Math.min(tries, DELAYS.length - 1)] as number);
    tries++;
    outage.set({
      text: TEXTS[error.status] ?? "Waymark can’t be reached.",
      retryAt: Date.now() + delay * 1000,
    });
    timer = setTimeout(retryNow, delay * 1000);
  }
  return () => {
    waiting.delete(retry);
    if (waiting.size === 0 && outage.value) end();
  };
}

const TEXTS: Record<number, string> = {
  429: "Rate limit reached.",
  503: "Waymark is temporarily unavailable.",
};

function end(): void {
  clearTimeout(timer);
  outage.set(null);
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
