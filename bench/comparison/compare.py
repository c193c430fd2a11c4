"""Sends the same requests to Waymark, Unleash and Bugsink on this machine, and prints the tables of docs/comparison.md.

Run by `make comparison`. Latencies are measured by turns, so that other load affects all products alike.
"""

import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sentry_sdk

from products import BUGSINK, FLAGS, ROOT, UNLEASH, WORK, Bugsink, Product, Unleash, Waymark, run, wait

BUNDLERS = ROOT / "tests" / "sdks" / "bundlers"
CONCURRENT = 20
EVENTS, DUPLICATES, ERRORS = 5_000, 250, 50
STARTED = time.monotonic()


def show(what: str):
    print(f"{time.monotonic() - STARTED:6.0f} s  {what}", file=sys.stderr, flush=True)


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def latencies(milliseconds: list[float]) -> str:
    return f"{percentile(milliseconds, 0.5):.1f} / {percentile(milliseconds, 0.95):.1f} ms"


def by_turns(products: list, rounds: int, measure) -> dict[str, list[float]]:
    """Returns the measured values of all rounds, without the first, by product."""
    values = {it.name: [] for it in products}
    for number in range(rounds + 1):
        for product in products:
            found = measure(product, number)
            if number:
                values[product.name] += found
    return values


def timed(product: Product, connection, request) -> float:
    start = time.perf_counter()
    status, response = product.call(*request, connection=connection)
    if status != 200:
        raise SystemExit(f"error: {product.name}: {request[:2]} returned {status}: {response}")
    return (time.perf_counter() - start) * 1e3


def evaluate_sequentially(product, number: int) -> list[float]:
    connection = product.connect()
    return [timed(product, connection, product.flags_request(f"user-{number}-{it}")) for it in range(100)]


def evaluate_concurrently(product, number: int) -> list[float]:
    """Returns the requests per second."""
    start = time.perf_counter()
    with ThreadPoolExecutor(CONCURRENT) as pool:
        list(pool.map(lambda it: evaluate_sequentially(product, it), range(CONCURRENT)))
    return [CONCURRENT * 100 / (time.perf_counter() - start)]


def flag_change(product, number: int) -> list[float]:
    """Returns the seconds until the API serves a change."""
    request = product.flags_request("user-1")
    flags_on = lambda: product.flags_on(product.call(*request)[1])  # noqa: E731
    flag = min(flags_on())
    times = []
    for enabled in (False, True):
        start = time.perf_counter()
        product.set_flag(flag, enabled)
        wait("the change is visible", lambda: (flag in flags_on()) == enabled)
        times.append(time.perf_counter() - start)
    return times


def envelope(product, event_id: str, kind: str) -> tuple:
    """Returns the request with which a Sentry SDK reports an event of about 4 KB."""
    frames = [{"filename": f"shop/module_{it}.py", "function": f"step_{it}", "lineno": it + 7, "in_app": it > 5,
               "module": f"shop.module_{it}", "context_line": f"    return step_{it + 1}(order, total)",
               "pre_context": ["    order = orders[number]", "    total = order.total"],
               "post_context": ["", "def after(order):"]} for it in range(10)]
    event = {
        "event_id": event_id, "timestamp": time.time(), "platform": "python", "level": "error",
        "environment": "production", "release": "shop@2.4.1", "transaction": "checkout",
        "user": {"id": f"user-{int(event_id[:4], 16) % 500}"}, "tags": {"plan": "gold"},
        "exception": {"values": [{"type": kind, "value": "order 7 cannot be charged",
                                  "stacktrace": {"frames": frames}}]}}
    key, project = product.dsn.split("//")[1].split("@")[0], product.dsn.rpartition("/")[2]
    payload = json.dumps(event)
    head = json.dumps({"event_id": event_id, "dsn": product.dsn})
    body = f'{head}\n{json.dumps({"type": "event", "length": len(payload)})}\n{payload}\n'.encode()
    auth = f"Sentry sentry_version=7, sentry_client=comparison/1, sentry_key={key}"
    headers = {"content-type": "application/x-sentry-envelope", "x-sentry-auth": auth}
    return "POST", f"/api/{project}/envelope/", body, headers


def ingest_sequentially(product, number: int) -> list[float]:
    connection = product.connect()
    return [timed(product, connection, envelope(product, uuid.uuid4().hex, "WarmUpError")) for _ in range(50)]


def readable(product, number: int) -> list[float]:
    """Returns the milliseconds from the SDK's call to the API's count of the event."""
    client = sentry_sdk.Client(dsn=product.dsn, default_integrations=False)
    times = []
    for attempt in range(5):
        kind = f"Readable{number}x{attempt}Error"
        start = time.perf_counter()
        client.capture_event({"exception": {"values": [{"type": kind, "value": "sent by the SDK"}]}})
        wait("the event is readable", lambda: kind in product.counts(), pause=0.005)
        times.append((time.perf_counter() - start) * 1e3)
    client.close()
    return times


def count_events(product) -> dict[str, str]:
    """Sends events concurrently, some twice, and compares the counts with the sent events."""
    random_ = random.Random(41)
    kinds = [f"Counted{number:02}Error" for number in range(ERRORS)]
    events = [(uuid.UUID(int=random_.getrandbits(128), version=4).hex, random_.choice(kinds)) for _ in range(EVENTS)]
    expected = Counter(kind for _, kind in events)
    sent = events + random_.sample(events, DUPLICATES)
    random_.shuffle(sent)
    retries, times = [], []

    def send(part: list):
        connection = product.connect()
        for event_id, kind in part:
            for _ in range(20):
                start = time.perf_counter()
                try:
                    status, _ = product.call(*envelope(product, event_id, kind), connection=connection)
                except OSError:
                    status, connection = 0, product.connect()
                if status == 200:
                    times.append((time.perf_counter() - start) * 1e3)
                    break
                retries.append(status)
                time.sleep(1)

    def counted() -> dict[str, int]:
        return {kind: count for kind, count in product.counts().items() if kind in expected}

    start = time.perf_counter()
    with ThreadPoolExecutor(CONCURRENT) as pool:
        list(pool.map(send, [sent[it::CONCURRENT] for it in range(CONCURRENT)]))
    accepted = time.perf_counter() - start
    found, changed = counted(), time.perf_counter()
    while found != expected and time.perf_counter() - changed < 60:
        time.sleep(0.5)
        if (again := counted()) != found:
            found, changed = again, time.perf_counter()
    return {
        "counted of 5,000": f"{sum(found.values()):,}",
        "errors with an exact count, of 50": str(sum(found.get(kind) == count for kind, count in expected.items())),
        "requests per second": f"{len(times) / accepted:.0f}",
        "request, p50 / p95": latencies(times),
        "repeated requests": str(len(retries)),
        "all counted after the last response": f"{changed - start - accepted:.1f} s",
    }


def map_sources(product) -> str:
    """Uploads a source map with sentry-cli, and returns how a minified frame is shown."""
    folder = WORK / f"shop-{product.name.lower()}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(BUNDLERS / "shop", folder)
    script = folder / "dist" / "checkout.js"
    run(BUNDLERS / "node_modules" / ".bin" / "esbuild", "checkout.js", "--bundle", "--minify", "--sourcemap",
        "--format=esm", f"--outfile={script}", cwd=folder)
    cli = BUNDLERS / "node_modules" / "@sentry" / "cli" / "bin" / "sentry-cli"
    environment = os.environ | product.upload_environment() | {"SENTRY_URL": f"http://127.0.0.1:{product.port}/"}
    run("node", cli, "sourcemaps", "inject", "dist", cwd=folder, env=environment)
    start = time.perf_counter()
    # Bugsink does not report the end to --wait.
    run("node", cli, "sourcemaps", "upload", "dist", cwd=folder, env=environment)
    uploaded = time.perf_counter() - start
    lines = script.read_text().splitlines()
    debug_id = next(it for it in lines if it.startswith("//# debugId=")).partition("=")[2]
    row = next(number for number, it in enumerate(lines, 1) if "cannot be charged" in it)
    frame = {"abs_path": "https://shop.example/checkout.js", "filename": "/checkout.js", "function": "a",
             "lineno": row, "colno": lines[row - 1].index("throw ") + 1, "in_app": True}
    client = sentry_sdk.Client(dsn=product.dsn, default_integrations=False)

    def is_mapped() -> bool:
        client.capture_event({
            "platform": "javascript", "exception": {"values": [
                {"type": "PaymentError", "value": "x", "stacktrace": {"frames": [frame]}}]},
            "debug_meta": {"images": [{"type": "sourcemap", "code_file": frame["abs_path"], "debug_id": debug_id}]}})
        client.flush()
        return "throw new PaymentError" in product.newest_event("PaymentError")

    wait("the source line is shown", is_mapped, seconds=60, pause=0.5)
    return f"{uploaded:.1f} s; the source line is shown after {time.perf_counter() - start - uploaded:.1f} s"


def row(what: str, cells: dict[str, str]) -> tuple[str, dict[str, str]]:
    show(f"{what}: {cells}")
    return what, cells


def table(rows: list[tuple[str, dict[str, str]]], names: list[str]):
    print(f"\n| | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}")
    for what, cells in rows:
        print(f"| {what} | {' | '.join(cells.get(name, 'n/a') for name in names)} |")


def memory(products: list) -> dict[str, str]:
    return {it.name: ", ".join(f"{what} {megabytes:.0f} MB" for what, megabytes in it.memory().items())
            for it in products}


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    waymark, unleash, bugsink = products = [Waymark(9300), Unleash(9310), Bugsink(9320)]
    flags, errors = [waymark, unleash], [waymark, bugsink]
    try:
        for product in products:
            show(f"install {product.name}")
            product.install()
        for product in products:
            show(f"start {product.name}")
            product.begin()
        show("measure flags")
        idle = memory(products)
        flag_rows = [
            row("20 flags of a user, p50 / p95",
                {name: latencies(it) for name, it in by_turns(flags, 10, evaluate_sequentially).items()}),
            row(f"{CONCURRENT} concurrent clients, requests per second",
                {name: f"{statistics.median(it):.0f}" for name, it in by_turns(flags, 3, evaluate_concurrently).items()}),
            row("a change is visible after, median and maximum",
                {name: f"{statistics.median(it):.1f}, {max(it):.1f} s"
                 for name, it in by_turns(flags, 5, flag_change).items()})]
        sources = json.dumps({it.name: it.sdk_source() for it in flags})
        node = WORK / "unleash" / "node_modules"
        figures = run(node / ".bin" / "node", Path(__file__).with_name("flags.mjs"), node,
                      ROOT / "tests" / "sdks" / "node" / "node_modules", input=sources)
        in_process = [json.loads(line) for line in figures.splitlines()]
        flag_rows += [
            row("an evaluation in the process, by the SDK",
                {it["name"]: f"{it['microseconds']:.1f} µs" for it in in_process}),
            row("users with a flag at 50%", {it["name"]: f"{it['on']:.1%}" for it in in_process})]

        show("measure errors")
        error_rows = [
            row("an event's request, p50 / p95",
                {name: latencies(it) for name, it in by_turns(errors, 10, ingest_sequentially).items()}),
            row("from the SDK's call until readable, p50 / p95",
                {name: latencies(it) for name, it in by_turns(errors, 4, readable).items()})]
        counts = {}
        for product in errors:
            show(f"send {EVENTS + DUPLICATES} requests to {product.name}")
            counts[product.name] = count_events(product)
        error_rows += [row(what, {name: it[what] for name, it in counts.items()}) for what in counts["Waymark"]]
        show("upload source maps")
        error_rows.append(row("source map by sentry-cli", {it.name: map_sources(it) for it in errors}))
        rows = [row("memory after the start", idle), row("memory after the load", memory(products))]
    finally:
        show("stop")
        for product in products:
            product.stop()
    commit = run("git", "rev-parse", "--short", "HEAD", cwd=ROOT).strip()
    print(f"Waymark {commit}, {', '.join(UNLEASH)}, {BUGSINK}; {platform.platform()}, {os.cpu_count()} cores, "
          f"load {os.getloadavg()[1]:.1f}")
    table(flag_rows, ["Waymark", "Unleash"])
    table(error_rows, ["Waymark", "Bugsink"])
    table(rows, [it.name for it in products])


if __name__ == "__main__":
    main()
