/** The API, typed by its description. */

import createClient from "openapi-fetch";
import { currentKey, signOut } from "../session";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];
export type Violation = Schemas["Violation"];

/** Why a request was not carried out, in the words of the API. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly violations: readonly Violation[];
  readonly requestId: string | null;

  constructor(
    status: number,
    code: string,
    message: string,
    violations: readonly Violation[] = [],
    requestId: string | null = null,
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.violations = violations;
    this.requestId = requestId;
  }

  /** What is wrong at a place of the body, if anything is. */
  at(pointer: string): string | null {
    const found = this.violations.filter((it) => it.pointer === pointer);
    return found.length ? found.map((it) => it.message).join(" ") : null;
  }
}

let underway = 0;
const watchers = new Set<(underway: number) => void>();

export function onUnderway(watcher: (underway: number) => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

function count(change: number): void {
  underway += change;
  for (const watcher of watchers) watcher(underway);
}

/** What only reads may be sent again where there was no room for it. */
const MOST_TRIES = 3;
const READS = /\/(query|interpret)$/;
/** Longer than this nobody waits without being told; it is for people to try again then. */
const LONGEST_WAIT_SECONDS = 5;
/** After so long without an answer there will be none. */
const TIME_OUT_MS = 30_000;

/** How long to wait before a request is sent again, in seconds; `null` where that is too long. */
export function waitOf(response: Response): number | null {
  const told = response.headers.get("retry-after");
  if (told === null) return 1;
  // Not a number: a date.
  const seconds = /^\d+$/.test(told) ? Number(told) : (Date.parse(told) - Date.now()) / 1000;
  if (Number.isNaN(seconds)) return 1;
  return seconds > LONGEST_WAIT_SECONDS ? null : Math.max(0, seconds);
}

export async function counted(request: Request): Promise<Response> {
  count(1);
  try {
    const isRead = request.method === "GET" || READS.test(new URL(request.url).pathname);
    for (let tries = 1; ; tries++) {
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TIME_OUT_MS)]);
      const response = await fetch(isRead ? request.clone() : request, { signal });
      if (!isRead || tries === MOST_TRIES || ![429, 503].includes(response.status)) return response;
      const seconds = waitOf(response);
      if (seconds === null) return response;
      await new Promise((resume) => setTimeout(resume, seconds * 1000 * tries));
      request.signal.throwIfAborted();
    }
  } finally {
    count(-1);
  }
}

export const api = createClient<paths>({ fetch: counted });
api.use({
  onRequest({ request }) {
    const key = currentKey();
    if (key) request.headers.set("x-api-key", key);
    return request;
  },
});

interface Outcome<T> {
  data?: T | undefined;
  error?: unknown;
  response: Response;
}

export function refusalOf(status: number, body: unknown): ApiError {
  const it = (typeof body === "object" && body !== null ? body : {}) as Partial<Problem> & {
    errorCode?: string;
    errorDetails?: string;
    message?: string;
  };
  const code = it.code ?? it.errorCode ?? `status_${status}`;
  const text = it.detail ?? it.errorDetails ?? it.message ?? `The API answered ${status}.`;
  // A key that is taken is said without a place; it has one all the same.
  const isTaken = code === "flag_exists" || code === "segment_exists";
  const taken: Violation[] = [{ pointer: "/key", code: "duplicate", message: text }];
  const violations = it.errors ?? (isTaken ? taken : []);
  return new ApiError(status, code, text, violations, it.requestId ?? null);
}

/** The body of an answer. Throws a `ApiError` for all that is no success. */
export async function unwrapResponse<T>(outcome: Promise<Outcome<T>>): Promise<T> {
  return (await answeredWithHeaders(outcome)).data;
}

export async function answeredWithHeaders<T>(
  outcome: Promise<Outcome<T>>,
): Promise<{ data: T; headers: Headers }> {
  let settled: Outcome<T>;
  try {
    settled = await outcome;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    if (error instanceof DOMException && error.name === "TimeoutError") {
      throw new ApiError(0, "timed_out", `There was no answer in ${TIME_OUT_MS / 1000} seconds.`);
    }
    throw new ApiError(
      0,
      "unreachable",
      "The API cannot be reached. Is it running, and are you online?",
    );
  }
  const { data, error, response } = settled;
  if (response.ok) return { data: data as T, headers: response.headers };
  const refusal = refusalOf(response.status, error);
  // A key that has ended is of no use to anybody.
  if (refusal.status === 401) signOut(refusal.message);
  throw refusal;
}

/** Carries out tasks, so many at once. */
export async function inTurn<T, R>(
  items: readonly T[],
  atOnce: number,
  task: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await task(items[index] as T);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return results;
}
