import { afterEach, expect, test, vi } from "vitest";

vi.stubGlobal("sessionStorage", { getItem: () => null, removeItem: () => {} });
const { apiErrorOf, unwrapWithHeaders, fetchWithRetries, retryDelay } = await import("./client");

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const rejected = (status: number, retryAfter?: string) =>
  new Response(null, { status, headers: retryAfter ? { "retry-after": retryAfter } : {} });

test("the retry delay follows the API, up to a limit", () => {
  expect(retryDelay(rejected(429))).toBe(1);
  expect(retryDelay(rejected(429, "0"))).toBe(0);
  expect(retryDelay(rejected(429, "5"))).toBe(5);
  expect(retryDelay(rejected(429, "60"))).toBeNull();
  expect(retryDelay(rejected(503, new Date(Date.now() + 60_000).toUTCString()))).toBeNull();
  expect(retryDelay(rejected(503, "soon"))).toBe(1);
});

test("a request is not retried if the API asks for a long delay", async () => {
  const fetch = vi.fn(async () => rejected(429, "60"));
  vi.stubGlobal("fetch", fetch);
  const response = await fetchWithRetries(new Request("http://127.0.0.1/v0/me"));
  expect(response.status).toBe(429);
  expect(fetch).toHaveBeenCalledOnce();
});

test("a rate limit error says when to try again", () => {
  const body = { code: "throttled", detail: "from the API" };
  expect(apiErrorOf(rejected(429, "30"), body).message).toBe(
    "Rate limit reached. Try again in 30 s.",
  );
});

test("a request without a response times out", async () => {
  const timeout = new AbortController();
  vi.spyOn(AbortSignal, "timeout").mockImplementation((after) => {
    expect(after).toBe(30_000);
    return timeout.signal;
  });
  vi.stubGlobal(
    "fetch",
    (_: Request, { signal }: RequestInit) =>
      new Promise((_resolve, reject) =>
        signal?.addEventListener("abort", () => reject(signal.reason)),
      ),
  );
  const request = new Request("http://127.0.0.1/v0/me");
  const outcome = fetchWithRetries(request).then((response) => ({ response }));
  timeout.abort(new DOMException("", "TimeoutError"));
  await expect(unwrapWithHeaders(outcome)).rejects.toMatchObject({ code: "timed_out" });
});
