/** The API client, with types from `openapi.yaml`. */

import createClient, {
  type Client,
  type ClientPathsWithMethod,
  type MaybeOptionalInit,
  type MethodResponse,
} from "openapi-fetch";
import { own } from "../own";
import { CONSOLE_HEADER, currentCredential, isSession, SESSION_ENDED, signOut } from "../session";
import { Store } from "../store";
import { fieldMessage } from "./pointer";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];
export type Violation = Schemas["Violation"];

/** An error response of the API, or the lack of a response. */
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

  /** Returns the messages for one field of the body, or `null`. */
  at(pointer: string): string | null {
    const found = this.violations.filter((it) => it.pointer === pointer);
    return found.length ? found.map(fieldMessage).join(" ") : null;
  }

  /** Returns the error without the violations that the user has fixed; `null` if none is left. */
  without(isFixed: (pointer: string) => boolean): ApiError | null {
    const left = this.violations.filter((it) => !isFixed(it.pointer));
    if (left.length === this.violations.length) return this;
    if (left.length === 0) return null;
    return new ApiError(this.status, this.code, this.message, left, this.requestId);
  }
}

/** The number of pending requests. */
export const pendingCount = new Store(0);

/** Maximum tries of a request that only reads. */
const MAX_TRIES = 3;
const READS = /\/(query|interpret)$/;
/** Longest delay before a retry. After a longer one, the user decides whether to retry. */
const MAX_RETRY_DELAY_SECONDS = 5;
const TIMEOUT_MS = 30_000;

function retryAfter(response: Response): number | null {
  const value = response.headers.get("retry-after");
  if (value === null) return null;
  // Not a number: a date.
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? null : Math.max(0, seconds);
}

/** Returns the delay before a retry, in seconds; `null` if it is too long to wait. */
export function retryDelay(response: Response): number | null {
  const seconds = retryAfter(response) ?? 1;
  return seconds > MAX_RETRY_DELAY_SECONDS ? null : seconds;
}

export async function fetchWithRetries(request: Request): Promise<Response> {
  pendingCount.set(pendingCount.value + 1);
  try {
    const isRead = request.method === "GET" || READS.test(new URL(request.url).pathname);
    for (let tries = 1; ; tries++) {
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      const response = await fetch(isRead ? request.clone() : request, { signal });
      if (!isRead || tries === MAX_TRIES || ![429, 503].includes(response.status)) return response;
      const seconds = retryDelay(response);
      if (seconds === null) return response;
      await new Promise((resume) => setTimeout(resume, seconds * 1000 * tries));
      request.signal.throwIfAborted();
    }
  } finally {
    pendingCount.set(pendingCount.value - 1);
  }
}

export const client = createClient<paths>({ fetch: fetchWithRetries });
client.use({
  onRequest({ request }) {
    const credential = currentCredential();
    // The browser adds the cookie of a session.
    for (const [name, value] of Object.entries(CONSOLE_HEADER)) request.headers.set(name, value);
    if (credential && !isSession()) request.headers.set("x-api-key", credential);
    return request;
  },
});

interface Outcome<T> {
  data?: T | undefined;
  error?: unknown;
  response: Response;
}

/** Fields of what exists already. The API names none in these errors. */
const DUPLICATES: Record<string, string> = {
  flag_exists: "/key",
  segment_exists: "/key",
  member_exists: "/email",
  invitation_exists: "/email",
  project_exists: "/slug",
};

export function apiErrorOf(response: Response, body: unknown): ApiError {
  const it = (typeof body === "object" && body !== null ? body : {}) as Partial<Problem> & {
    errorCode?: string;
    errorDetails?: string;
    message?: string;
  };
  const { status } = response;
  const code = it.code ?? it.errorCode ?? `status_${status}`;
  const seconds = Math.max(1, Math.ceil(retryAfter(response) ?? 60));
  const text =
    code === "throttled"
      ? `Rate limit reached. Try again in ${seconds} s.`
      : (it.detail ?? it.errorDetails ?? it.message ?? `The API returned ${status}.`);
  const field = own(DUPLICATES, code);
  const violations =
    it.errors ?? (field ? [{ pointer: field, code: "duplicate", message: text }] : []);
  return new ApiError(status, code, text, violations, it.requestId ?? null);
}

/** Returns the body and headers of a successful response. Throws an `ApiError` for any other. */
export async function unwrapWithHeaders<T>(
  outcome: Promise<Outcome<T>>,
): Promise<{ data: T; headers: Headers }> {
  let settled: Outcome<T>;
  try {
    settled = await outcome;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    if (error instanceof DOMException && error.name === "TimeoutError") {
      throw new ApiError(0, "timed_out", `No response within ${TIMEOUT_MS / 1000} seconds.`);
    }
    throw new ApiError(
      0,
      "unreachable",
      "The API cannot be reached. Is it running, and are you online?",
    );
  }
  const { data, error, response } = settled;
  if (response.ok) return { data: data as T, headers: response.headers };
  const apiError = apiErrorOf(response, error);
  // A tab without a credential has nothing to lose.
  if (apiError.status === 401 && currentCredential())
    signOut(isSession() ? SESSION_ENDED : apiError.message);
  throw apiError;
}

type Method = "get" | "post" | "put" | "patch" | "delete";

type Send<M extends Method> = <P extends ClientPathsWithMethod<Client<paths>, M>>(
  path: P,
  init: MaybeOptionalInit<paths[P], M>,
) => Promise<MethodResponse<Client<paths>, M, P>>;

const sender =
  <M extends Method>(method: M): Send<M> =>
  async (path, init) =>
    (await unwrapWithHeaders(client.request(method, path as never, init as never))).data as never;

/** The requests of the API. They return the body of the response, or throw an `ApiError`. */
export const api = {
  GET: sender("get"),
  POST: sender("post"),
  PUT: sender("put"),
  PATCH: sender("patch"),
  DELETE: sender("delete"),
};

/** Runs a task for each item, at most `concurrency` at a time. */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  concurrency: number,
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
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
  return results;
}
