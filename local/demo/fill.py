"""Fills a project of the local stack with 30 days of a fictional shop: `make demo`.

Sends all data through the API, like an application and its team. It can run again: existing data stays
unchanged.
"""

import json
import math
import random
import re
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import shop

DAY = 86_400
# Concurrent requests that the local stack serves without queueing.
AT_ONCE = 6
NAMES = uuid.UUID("6f1c9d2e-4b7a-5c3d-8e9f-0a1b2c3d4e5f")


class Api:
    def __init__(self, base_url, key, dsn):
        public_key, ingest_id = re.fullmatch(r"https?://([0-9a-f]+)@[^/]+/(\d+)", dsn).groups()
        self.base_url = base_url
        self.key = key
        self.store = f"/api/{ingest_id}/store/?sentry_key={public_key}"

    def send(self, method, path, body=None, accept=()):
        """Returns status and body of the response. Statuses in `accept` are not failures."""
        request = urllib.request.Request(self.base_url + path, method=method)
        request.add_header("x-api-key", self.key)
        request.add_header("content-type", "application/json")
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(5):
            try:
                with urllib.request.urlopen(request, data, timeout=60) as response:
                    text = response.read()
                    return response.status, json.loads(text) if text else None
            except urllib.error.HTTPError as error:
                if error.code in accept:
                    return error.code, None
                if error.code not in (429, 503) or attempt == 4:
                    sys.exit(f"error: {method} {path} returned {error.code}: {error.read().decode()}")
                time.sleep(1 + attempt)
        return None, None


def chosen(random_, weighted):
    *rest, weights = zip(*weighted)
    return random_.choices(list(zip(*rest)), weights)[0]


def release_at(days_ago):
    return [name for name, since in shop.RELEASES if since >= days_ago][-1]


def moments(random_, kind):
    """Returns when a kind occurs, in days ago: more often by day, less often at weekends."""
    now = datetime.now(timezone.utc)
    first, last = min(kind.get("from", 29.8), 29.8), kind.get("to", 0.0)
    count = round(kind["daily"] * (first - last))
    found = []
    while len(found) < count:
        days = random_.uniform(last, first)
        at = now - timedelta(days=days)
        by_hour = 0.55 + 0.45 * math.sin((at.hour - 8) / 24 * 2 * math.pi)
        if random_.random() < by_hour * (0.6 if at.weekday() >= 5 else 1.0):
            found.append(days)
    if "peak" in kind:
        middle, width, more = kind["peak"]
        found += [max(0.0, random_.gauss(middle, width)) for _ in range(more)]
    return found


def event(random_, kind, number, days_ago):
    browser, version, system, device, *_ = chosen(random_, shop.BROWSERS)
    in_browser = kind["platform"] == "javascript"
    # A few visitors encounter a bug more than once.
    user = int(random_.paretovariate(1.1)) * 7 % 900 + 1
    at = time.time() - days_ago * DAY
    sent = {
        "event_id": uuid.uuid5(NAMES, f"{kind['type']}{kind['value']}{number}").hex,
        "timestamp": at,
        "platform": kind["platform"],
        "level": kind.get("level", "error"),
        "environment": chosen(random_, shop.ENVIRONMENTS)[0],
        "release": release_at(days_ago),
        "transaction": kind["transaction"],
        "user": {"id": f"user-{user}", "geo": {"country_code": chosen(random_, shop.COUNTRIES)[0]}},
        "tags": {"tenant": random_.choice(["shop-eu", "shop-us"]), "plan": random_.choice(["guest", "member", "gold"])},
        "contexts": {"trace": {"trace_id": uuid.uuid5(NAMES, f"trace {number}").hex}},
        "breadcrumbs": {"values": breadcrumbs(random_, kind, at)},
    }
    if in_browser:
        sent["contexts"] |= {"browser": {"name": browser, "version": version}, "os": {"name": system}}
        if device:
            sent["contexts"]["device"] = {"family": device}
        path = kind["transaction"].replace(":id", str(random_.randint(1000, 9999)))
        sent["request"] = {"url": f"https://shop.example{path}", "headers": {"Referer": "https://shop.example/"}}
    else:
        sent["server_name"] = f"web-{random_.randint(1, 4)}"
        sent["contexts"]["runtime"] = {"name": "CPython" if kind["platform"] == "python" else "node", "version": "3.14.0" if kind["platform"] == "python" else "24.2.0"}
    if not kind["type"]:
        return sent | {"logentry": {"formatted": kind["value"]}}
    thrown = {
        "type": kind["type"],
        "value": kind["value"],
        "mechanism": {"type": "generic", "handled": kind.get("handled", True)},
        "stacktrace": {"frames": kind["frames"]},
    }
    causes = []
    if "cause" in kind:
        of_type, value = kind["cause"]
        frames = [shop.frame("site-packages/requests/models.py", "raise_for_status", 1026, own=False)]
        causes = [{"type": of_type, "value": value, "stacktrace": {"frames": frames}}]
    return sent | {"exception": {"values": [*causes, thrown]}}


def breadcrumbs(random_, kind, at):
    steps = [
        ("navigation", "", {"from": "/", "to": "/product/4711"}, "info"),
        ("ui.click", "button.add-to-cart", None, "info"),
        ("fetch", "", {"method": "PUT", "url": "/api/cart/1", "status_code": 200}, "info"),
        ("navigation", "", {"from": "/product/4711", "to": kind["transaction"]}, "info"),
        ("console", "Voucher WELCOME10 has no cart", None, "warning"),
        ("fetch", "", {"method": "POST", "url": "/api/orders", "status_code": 500}, "error"),
    ]
    seconds = sorted((random_.uniform(0.5, 90) for _ in steps), reverse=True)
    return [
        {"timestamp": at - before, "category": category, "level": level, **({"message": message} if message else {}), **({"data": data} if data else {})}
        for before, (category, message, data, level) in zip(seconds, steps)
    ]


def fill_errors(api, project):
    random_ = random.Random(20261122)
    events = []
    for kind in shop.KINDS:
        times = sorted(moments(random_, kind), reverse=True)
        events += [event(random_, kind, number, days) for number, days in enumerate(times)]
    # In order of time, because an error's first event provides its title.
    events.sort(key=lambda it: it["timestamp"])
    done, lock = 0, threading.Lock()

    def deliver(it):
        nonlocal done
        api.send("POST", api.store, it)
        with lock:
            done += 1
            if done % 100 == 0 or done == len(events):
                print(f"\r{done} of {len(events)} events", end="", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(deliver, events))
    print(file=sys.stderr)
    _, page = api.send("GET", f"/v0/projects/{project}/errors?limit=100")
    for error in page["items"]:
        path = f"/v0/projects/{project}/errors/{error['errorId']}"
        if error["type"] in shop.RESOLVED:
            api.send("PATCH", path, {"status": "resolved"})
        elif error["type"] in shop.IGNORED:
            api.send("PATCH", path, {"status": "ignored"})


def fill_markers(api, project):
    path = f"/v0/projects/{project}/event-marker-collections"
    _, page = api.send("GET", f"{path}?limit=100")
    known = {it["name"] for it in page["items"]}
    releases = [(f"Release {name.removeprefix('shop@')}", days, "", {"version": name}) for name, days in shop.RELEASES if days < 30]
    for name, about, entries in (
        ("Releases", "Created by the pipeline", releases),
        ("Campaigns", "Marketing campaigns", shop.CAMPAIGNS),
        ("Incidents", "", shop.INCIDENTS),
    ):
        if name in known:
            continue
        _, collection = api.send("POST", path, {"name": name, "description": about})
        events = [
            {"name": title, "occurredAt": moment(days), "description": text, "attributes": attributes}
            for title, days, text, attributes in entries
        ]
        api.send("POST", f"{path}/{collection['id']}/events", {"events": events})


def moment(days_ago):
    return (datetime.now(timezone.utc) - timedelta(days=days_ago)).isoformat(timespec="milliseconds")


def fill_flags(api, project):
    for segment in shop.SEGMENTS:
        api.send("POST", f"/v0/project/{project}/segments", segment, accept=(409,))
    path = f"/v0/project/{project}/feature-flags"
    created = set()
    for flag in shop.FLAGS:
        status, _ = api.send("POST", path, flag, accept=(409,))
        if status == 201:
            created.add(flag["key"])
    for key, patch in shop.FLAG_CHANGES:
        if key in created:
            api.send("PATCH", f"{path}/{key}", patch)


def fill_insights(api, project):
    random_ = random.Random(4711)
    for title, about, daily, earlier, steps in shop.INSIGHTS:
        points = []
        for rate, first in ((daily, 0), (earlier, 30)):
            for number in range(round(rate * 30)):
                points.append({
                    "id": str(uuid.uuid5(NAMES, f"{project} {title} {first} {number}")),
                    "sessionId": f"session-{random_.randint(1, 4000)}",
                    "userId": f"user-{random_.randint(1, 900)}" if random_.random() < 0.6 else None,
                    "occurredAt": moment(first + random_.uniform(0.1, 29.9)),
                    "title": random_.choice(steps),
                    "excerpt": f"{random_.choice(['Phone', 'Laptop', 'Tablet'])}, {random_.randint(20, 400)} s into the visit",
                })
        body = {"title": title, "description": about, "painPoints": points}
        api.send("POST", f"/v0/projects/{project}/replay-insights", body, accept=(409,))


def main():
    base_url, project, key, dsn = sys.argv[1:]
    api = Api(base_url, key, dsn)
    fill_flags(api, project)
    fill_markers(api, project)
    fill_insights(api, project)
    fill_errors(api, project)


main()
