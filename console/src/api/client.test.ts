import { afterEach, expect, test, vi } from "vitest";

vi.stubGlobal("sessionStorage", { getItem: () => null, removeItem: () => {} });
const { unwrapResponse, counted, waitOf } = await import("./client");

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const refused = (status: number, retryAfter?: string) =>
  new Response(null, { status, headers: retryAfter ? { "retry-after": retryAfter } : {} });

test("one waits as long as is asked for, or not at all", () => {
  expect(waitOf(refused(429))).toBe(1);
  expect(waitOf(refused(429, "0"))).toBe(0);
  expect(waitOf(refused(429, "5"))).toBe(5);
  expect(waitOf(refused(429, "60"))).toBeNull();
  expect(waitOf(refused(503, new Date(Date.now() + 60_000).toUTCString()))).toBeNull();
  expect(waitOf(refused(503, "soon"))).toBe(1);
});

test("what is not to be asked for in a minute is not asked for again before", async () => {
  const fetch = vi.fn(async () => refused(429, "60"));
  vi.stubGlobal("fetch", fetch);
  const response = await counted(new Request("http://127.0.0.1/v0/me"));
  expect(response.status).toBe(429);
  expect(fetch).toHaveBeenCalledOnce();
});

test("a request that hangs ends, and says so", async () => {
  const ended = new AbortController();
  vi.spyOn(AbortSignal, "timeout").mockImplementation((after) => {
    expect(after).toBe(30_000);
    return ended.signal;
  });
  vi.stubGlobal(
    "fetch",
    (_: Request, { signal }: RequestInit) =>
      new Promise((_resolve, reject) =>
        signal?.addEventListener("abort", () => reject(signal.reason)),
      ),
  );
  const asked = counted(new Request("http://127.0.0.1/v0/me")).then((response) => ({ response }));
  ended.abort(new DOMException("", "TimeoutError"));
  await expect(unwrapResponse(asked)).rejects.toMatchObject({ code: "timed_out" });
});
