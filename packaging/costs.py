"""Computes the tables of docs/operations.md, "Costs", from the template, list prices and measured request units.

Usage: costs.py           Write the tables into the page.
       costs.py --check   Fail if the page has other figures.

docs/capacity.md, "Prices", states the prices and the assumptions.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs/operations.md"
DAYS = 30
# Dollars. Volume prices are tuples of (volume, price of each unit up to it); the last volume is infinite.
REST = float("inf")
PER_WRITE_UNIT, PER_READ_UNIT = 0.625e-6, 0.125e-6
PER_GB_STORED = 0.25 + 0.20
PER_REQUEST = ((300e6, 1.00e-6), (REST, 0.90e-6))
PER_INVOCATION, PER_GB_SECOND = 0.20e-6, 0.0000133334
PER_GB_LOGGED = 0.50 + 0.03
PER_GB_OUT = 0.09
PER_ALARM_METRIC, PER_METRIC, PER_DASHBOARD = 0.10, 0.30, 3.00
REQUEST_METRICS = 8
# Age metrics that jobs publish at every run, which also prove that the jobs run.
HEARTBEATS = 4
# An event of a known error, with packing and `lastSeen` at 1,000 events a day and error, and its quota.
WRITE_UNITS_PER_EVENT, READ_UNITS_PER_EVENT = 7.19, 1.0
# Two kB for 90 days and 10 bytes for 400 days.
STORED_BYTES_PER_DAILY_EVENT = 2_000 * 90 + 10 * 400
# 15 ms of 256 MB; one in a hundred is a cold start of 200 ms.
GB_SECONDS_PER_REQUEST = 0.25 * (0.015 + 0.01 * 0.2)
LOGGED_BYTES_PER_REQUEST, LOGGED_BYTES_OF_FUNCTION, BYTES_OUT_PER_REQUEST = 1_400, 870, 1_000
# A job's run: an invocation of 100 ms, and 1.5 kB of logs with its metrics.
GB_SECONDS_PER_RUN, LOGGED_BYTES_PER_RUN = 0.25 * 0.1, 1_500
# CloudFront's prices, without the 10 million requests of an account that are free; bytes of a 304 with its headers;
# and the seconds that flags are fresh in the distribution, at each of its places.
PER_EDGE_REQUEST, PER_EDGE_GB_OUT, BYTES_OUT_PER_POLL = 1.00e-6, 0.085, 500
SECONDS_AT_EDGE, EDGE_PLACES = 2, 10
SENTRY_PLAN = 29
SENTRY_ERRORS = ((50e3, 0), (100e3, 0.00029), (500e3, 0.000175), (10e6, 0.00015), (20e6, 0.00013), (REST, 0.00012))
POSTHOG_ERRORS = ((100e3, 0), (325e3, 0.00037), (10e6, 0.00014), (REST, 0.000115))
POSTHOG_FLAGS = ((1e6, 0), (2e6, 0.0001), (10e6, 0.000045), (50e6, 0.000025), (REST, 0.00001))
LAUNCHDARKLY_CONNECTION, LAUNCHDARKLY_USER = 10, 8.33e-3
EVALUATIONS_PER_USER = 300


@dataclass
class Load:
    """Evaluations and error events of a day, and servers with a flag SDK."""

    name: str
    evaluations: int
    events: int
    servers: int


LOADS = (
    Load("idle", 0, 0, 0),
    Load("100,000 evaluations, 10,000 events a day", 100_000, 10_000, 5),
    Load("20 million evaluations, 2 million events a day", 20_000_000, 2_000_000, 50),
)


def price(volume: float, prices: tuple[tuple[float, float], ...]) -> float:
    """Returns the price of a volume under volume prices."""
    total = start = 0.0
    for end, each in prices:
        total += max(0.0, min(volume, end) - start) * each
        start = end
    return total


def alarm_metrics(template: str) -> int:
    """Returns the number of billed metrics of all alarms. A query has none until an operation fails."""
    alarms = re.findall(r"(?ms)^  \w+:\n    Type: AWS::CloudWatch::Alarm\n(.*?)(?=^  \S|\Z)", template)
    return sum(alarm.count("MetricStat:") if "      Metrics:" in alarm else 1 for alarm in alarms)


def runs(template: str) -> float:
    """Returns the scheduled runs of a month."""
    minutes = [int(text) for text in re.findall(r"ScheduleExpression: rate\((\d+) minutes?\)", template)]
    return sum(DAYS * 24 * 60 / each for each in minutes)


def month(load: Load, template: str) -> dict[str, float]:
    """Returns the dollars of a month by item."""
    evaluations, events = load.evaluations * DAYS, load.events * DAYS
    requests = evaluations + events
    scheduled = runs(template)
    gb_seconds = requests * GB_SECONDS_PER_REQUEST + scheduled * GB_SECONDS_PER_RUN
    logged = requests * LOGGED_BYTES_PER_REQUEST + scheduled * LOGGED_BYTES_PER_RUN
    metrics = HEARTBEATS + (REQUEST_METRICS if requests else 0)
    return {
        "DynamoDB writes": events * WRITE_UNITS_PER_EVENT * PER_WRITE_UNIT,
        "DynamoDB reads": events * READ_UNITS_PER_EVENT * PER_READ_UNIT,
        "DynamoDB storage and restoring": load.events * STORED_BYTES_PER_DAILY_EVENT / 1e9 * PER_GB_STORED,
        "HTTP API": price(requests, PER_REQUEST),
        "Lambda": (requests + scheduled) * PER_INVOCATION + gb_seconds * PER_GB_SECOND,
        "logs": logged / 1e9 * PER_GB_LOGGED,
        "data out": requests * BYTES_OUT_PER_REQUEST / 1e9 * PER_GB_OUT,
        "alarms": alarm_metrics(template) * PER_ALARM_METRIC,
        "metrics": metrics * PER_METRIC,
    }


def edge_month(polls: int) -> float:
    """Returns the dollars of a month for daily polls for the flags of one project and key, with Edge. The API then gets
    at most one request of each place in two seconds."""
    through = min(polls, EDGE_PLACES * 24 * 3600 // SECONDS_AT_EDGE) * DAYS
    return (
        polls * DAYS * (PER_EDGE_REQUEST + BYTES_OUT_PER_POLL / 1e9 * PER_EDGE_GB_OUT)
        + price(through, PER_REQUEST)
        + through * (PER_INVOCATION + GB_SECONDS_PER_REQUEST * PER_GB_SECOND)
        + through * LOGGED_BYTES_PER_REQUEST / 1e9 * PER_GB_LOGGED
    )


def dollars(amount: float) -> str:
    """Returns an amount with two decimals below 100 dollars and none above."""
    return f"{amount:,.2f}" if amount < 100 else f"{amount:,.0f}"


def row(name: str, amounts: list[float]) -> str:
    """Returns a row of a Markdown table."""
    return f"| {name} | " + " | ".join(map(dollars, amounts)) + " |"


def tables(template: str) -> str:
    """Returns both tables as Markdown."""
    months = [month(load, template) for load in LOADS]
    head = ["| | " + " | ".join(load.name for load in LOADS) + " |", "| --- |" + " --- |" * len(LOADS)]
    mine = [row(item, [one[item] for one in months]) for item in months[0]]
    total = [sum(one.values()) for one in months]
    saved = [load.evaluations * DAYS * LOGGED_BYTES_OF_FUNCTION / 1e9 * PER_GB_LOGGED for load in LOADS]
    polls = [sum(month(Load("", load.servers * 2880, load.events, 0), template).values()) for load in LOADS]
    errors = [load.events * DAYS for load in LOADS]
    evaluations = [load.evaluations * DAYS for load in LOADS]
    others = [
        ("Waymark", total),
        ("Waymark, `LoggedSuccesses=0`", [one - less for one, less in zip(total, saved, strict=True)]),
        ("Waymark, servers evaluate with flagd", polls),
        ("Sentry Team, errors", [SENTRY_PLAN + price(count, SENTRY_ERRORS) for count in errors]),
        ("LaunchDarkly Foundation, flags", [
            load.servers * LAUNCHDARKLY_CONNECTION + count / EVALUATIONS_PER_USER * LAUNCHDARKLY_USER
            for load, count in zip(LOADS, evaluations, strict=True)
        ]),
        ("PostHog, errors and flags", [
            price(count, POSTHOG_ERRORS) + price(flags, POSTHOG_FLAGS)
            for count, flags in zip(errors, evaluations, strict=True)
        ]),
    ]
    alone = month(LOADS[0], template)
    of_polls = [sum(month(Load("", load.evaluations, 0, 0), template).values()) - sum(alone.values()) for load in LOADS]
    lines = [*head, *mine, row("**a month**", total), "", *head, *(row(name, amounts) for name, amounts in others)]
    polled = [f"{load.evaluations:,}" for load in LOADS[1:]]
    lines += ["", "| polls for flags a day | " + " | ".join(polled) + " |", "| --- |" + " --- |" * len(polled)]
    lines += [
        row("to the API", of_polls[1:]),
        row("to the distribution, `Edge=true`", [edge_month(load.evaluations) for load in LOADS[1:]]),
    ]
    return "\n".join(lines)


def main() -> None:
    """Writes the tables, or checks them."""
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    guide = GUIDE.read_text(encoding="utf-8")
    region = re.compile(r"(?s)(<!-- costs: make costs -->\n).*?(<!-- end of costs -->)")
    written = region.sub(lambda found: f"{found[1]}{tables(template)}\n{found[2]}", guide)
    if "--check" in sys.argv[1:]:
        if written != guide:
            sys.exit("error: the costs in docs/operations.md are outdated; run make costs")
    else:
        GUIDE.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
