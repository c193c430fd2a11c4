"""Deploys the stack into the AWS emulator MiniStack, with IAM enforced, and uses it. Run by `make test-deployment`.

Fails if a step fails, a function is denied access or logs an error, or the emulator lacks a resource of the
template. The output of all commands and of the emulator is in target/deployment.
"""

import datetime
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError, URLError
from zipfile import ZIP_DEFLATED, ZipFile

import boto3
from botocore.exceptions import ClientError

ROOT = Path(__file__).resolve().parents[2]
BINARIES = ROOT / "target" / "debug"
# Functions of an earlier release, which are deployed first.
EARLIER_BINARIES = Path(os.environ.get("EARLIER_BINARIES", BINARIES))
# A copy of the project, so that `make deploy` does not replace the zips in target/package.
COPY = ROOT / "target" / "deployment"
STACK = "waymark"
SENDER, OPERATOR = "waymark@example.com", "ops@example.com"
ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[os.uname().machine]
STARTED = time.monotonic()

# Values that switch on as many conditional resources as possible.
PARAMETERS = {
    "AlarmEmail": OPERATOR,
    "BackupCopyVaultArn": "arn:aws:backup:eu-west-1:000000000000:backup-vault:copies",
    "BedrockModelId": "eu.amazon.nova-micro-v1:0",
    "DomainName": "api.example.com",
    "MailFrom": SENDER,
    "MonthlyBudget": "200",
    "PublicUrl": "https://api.example.com",
}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


AWS_PORT, API_PORT = free_port(), free_port()
BASE_URL = f"http://127.0.0.1:{API_PORT}"
# Variables that change the commands below.
IGNORED = ("AWS_", "MAKE", "MFLAGS", "ORIGIN_SECRET", "PARAMETERS", "SAM_", "WAYMARK_")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(IGNORED)} | {
    # No command can reach an account of the user.
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{AWS_PORT}",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_REGION": "eu-central-1",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "MINISTACK_REGION": "eu-central-1",
    "TMPDIR": str(COPY / "tmp"),
    "STATE_DIR": str(COPY / "tmp" / "state"),
    "S3_DATA_DIR": str(COPY / "tmp" / "s3"),
}


def show(what: str) -> None:
    print(f"{time.monotonic() - STARTED:6.1f} s  {what}", flush=True)


def run(*command: object, log: str | None = None) -> str:
    """Runs a command in the copy and returns its standard output, which goes to a log file as well."""
    done = subprocess.run([str(word) for word in command], cwd=COPY, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    if log:
        (COPY / log).write_text(done.stdout + done.stderr)
    # SAM CLI reports the progress of each upload.
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip() and "Uploading to" not in line]
    assert done.returncode == 0, "\n".join([f"{' '.join(map(str, command))} failed:", *lines[-40:]])
    return done.stdout


# Begin and end of each deployment.
DEPLOYMENTS: list[tuple[str, str]] = []


def make(target: str, log: str, *variables: str) -> None:
    started = now()
    # The functions are packed already. UNCHECKED skips the checks of the account, which is not a real one.
    options = (f"ARCHITECTURE={ARCHITECTURE}", "CONFIG=default", "YES=1", "UNCHECKED=1")
    run("make", "--old-file", "package", target, *options, *variables, log=log)
    DEPLOYMENTS.append((started, now(seconds=-5)))


def waymark(*arguments: str) -> dict | list:
    options = ("--table-prefix", outputs()["TablePrefix"], "--base-url", BASE_URL, "--json")
    printed = run(BINARIES / "waymark", *options, *arguments)
    return json.loads(printed) if printed else {}


def client(service: str):
    names = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
    endpoint, key, secret, region = (ENVIRONMENT[name] for name in names)
    return boto3.client(service, region, endpoint_url=endpoint, aws_access_key_id=key, aws_secret_access_key=secret)


def call(method: str, path: str, body: object = None, *, key: str | None = None, expect: int = 200) -> object:
    """Sends a request to the API and returns the body of the response."""
    headers = {"content-type": "application/json"} | ({"x-api-key": key} if key else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE_URL + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            status, content = response.status, response.read()
            is_json = "json" in response.headers.get("content-type", "")
    except HTTPError as error:
        status, content, is_json = error.code, error.read(), True
    assert status == expect, f"{method} {path} returned {status}, not {expect}: {content[:500]!r}"
    return json.loads(content) if is_json and content else content


def wait(what: str, seconds: float, condition: Callable[[], object]) -> object:
    """Returns the first result of a condition that is true."""
    until = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < until, f"not within {seconds} s: {what}"
        time.sleep(0.5)
    return result


def stack() -> dict:
    return client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]


def outputs() -> dict[str, str]:
    return {it["OutputKey"]: it["OutputValue"] for it in stack()["Outputs"]}


def parameters() -> dict[str, str]:
    return {it["ParameterKey"]: it["ParameterValue"] for it in stack()["Parameters"]}


def pages(service: str, operation: str, field: str, **arguments) -> Iterator:
    for page in client(service).get_paginator(operation).paginate(**arguments):
        yield from page[field]


def resources(resource_type: str) -> set[str]:
    """Returns the physical ids of the stack's resources of a type."""
    found = pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=STACK)
    return {it["PhysicalResourceId"] for it in found if it["ResourceType"] == resource_type}


def log_lines() -> Iterator[tuple[str, dict]]:
    """Returns all lines that functions logged, with their log groups."""
    for group in pages("logs", "describe_log_groups", "logGroups"):
        for event in pages("logs", "filter_log_events", "events", logGroupName=group["logGroupName"]):
            message = event["message"].strip()
            # Lambda's own lines.
            if message and not message.startswith(("START ", "END ", "REPORT ")):
                try:
                    yield group["logGroupName"], json.loads(message)
                except ValueError:
                    yield group["logGroupName"], {"level": "UNKNOWN", "message": message}


def emulator_lines(word: str) -> list[str]:
    return [line for line in (COPY / "emulator.log").read_text().splitlines() if line.startswith(word)]


def now(**ago: float) -> str:
    return (datetime.datetime.now(datetime.UTC) - datetime.timedelta(**ago)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


# Steps

def copy_project() -> None:
    """Links the project's files. Scripts find their folder by their own path, so they are copied."""
    shutil.rmtree(COPY, ignore_errors=True)
    (COPY / "target" / "package").mkdir(parents=True)
    (COPY / "tmp").mkdir()
    for entry in ROOT.iterdir():
        if entry.name == "packaging":
            shutil.copytree(entry, COPY / entry.name)
        elif entry.name not in ("target", ".git"):
            (COPY / entry.name).symlink_to(entry)


def pack(function: str, binaries: Path) -> None:
    """Packs a binary like packaging/zip_functions.py, which compresses more and rejects debug builds."""
    stripped = COPY / "tmp" / function
    # A function without a binary in the earlier release is new.
    binary = next(it for it in (binaries / function, BINARIES / function) if it.exists())
    subprocess.run(["strip", "-o", stripped, binary], check=True)
    with ZipFile(COPY / "target" / "package" / f"{function}.zip", "w", ZIP_DEFLATED, compresslevel=1) as packed:
        packed.write(stripped, "bootstrap")
    stripped.unlink()


def pack_all(binaries: Path) -> None:
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda it: pack(it.name, binaries), sorted((ROOT / "functions").iterdir())))


def start_emulator() -> subprocess.Popen:
    command = [sys.executable, Path(__file__).with_name("emulator.py"), str(AWS_PORT), str(API_PORT)]
    with (COPY / "emulator.log").open("w") as log:
        emulator = subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=subprocess.STDOUT, start_new_session=True)

    def responds() -> bool:
        assert emulator.poll() is None, (COPY / "emulator.log").read_text()[-3000:]
        try:
            with urllib.request.urlopen(ENVIRONMENT["AWS_ENDPOINT_URL"] + "/_ministack/health"):
                return True
        except URLError:
            return False

    wait("the emulator starts", 30, responds)
    return emulator


def check_resources() -> str:
    """Compares the template with the stack, and the stack with the services of the emulator."""
    template = client("cloudformation").get_template(StackName=STACK, TemplateStage="Processed")["TemplateBody"]
    found = list(pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=STACK))
    missing = template["Resources"].keys() - {it["LogicalResourceId"] for it in found}
    without_condition = {name for name in missing if "Condition" not in template["Resources"][name]}
    assert not without_condition, f"in the template, but not in the stack: {without_condition}"
    incomplete = {it["LogicalResourceId"] for it in found if not it["ResourceStatus"].endswith("_COMPLETE")}
    assert not incomplete, f"incomplete: {incomplete}"

    ineffective = Counter(line.removeprefix("WITHOUT EFFECT ") for line in emulator_lines("WITHOUT EFFECT"))
    names = {line.split()[1].rstrip(":") for line in ineffective}
    listed: dict[str, set[str]] = {
        "AWS::Lambda::Function": {it["FunctionName"] for it in pages("lambda", "list_functions", "Functions")},
        "AWS::DynamoDB::Table": set(pages("dynamodb", "list_tables", "TableNames")),
        "AWS::IAM::Role": {it["RoleName"] for it in pages("iam", "list_roles", "Roles")},
        "AWS::Logs::LogGroup": {it["logGroupName"] for it in pages("logs", "describe_log_groups", "logGroups")},
        "AWS::Scheduler::Schedule": {it["Name"] for it in pages("scheduler", "list_schedules", "Schedules")},
        "AWS::SNS::Topic": {it["TopicArn"] for it in pages("sns", "list_topics", "Topics")},
        "AWS::CloudWatch::Alarm": {it["AlarmName"] for it in pages("cloudwatch", "describe_alarms", "MetricAlarms")},
    }
    for resource in found:
        known = listed.get(resource["ResourceType"])
        if known is not None and resource["LogicalResourceId"] not in names:
            assert resource["PhysicalResourceId"] in known, f"the emulator did not create {resource}"
    (api,) = client("apigatewayv2").get_apis()["Items"]
    routes = {it["RouteKey"] for it in pages("apigatewayv2", "get_routes", "Items", ApiId=api["ApiId"])}
    paths = template["Resources"]["Api"]["Properties"]["Body"]["paths"]
    declared = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert routes == declared, f"routes differ: {routes ^ declared}"

    types = Counter(line.split()[0] for line in ineffective)
    for reason in sorted({line.split(": ", 1)[1] for line in ineffective}):
        show(f"  without effect: {reason}")
    show(f"  without effect: {', '.join(f'{count} {name}' for name, count in types.items())}")
    return f"{len(found)} resources, {len(routes)} routes; off by their condition: {len(missing)}"


def check_enforcement() -> None:
    """Shows that the emulator enforces the role of a function and its boundary: a test that cannot fail is none."""
    role = next(it for it in resources("AWS::IAM::Role") if "CreateFeatureFlag" in it)
    arn = client("iam").get_role(RoleName=role)["Role"]["Arn"]
    as_role = client("sts").assume_role(RoleArn=arn, RoleSessionName="control")["Credentials"]
    session = boto3.Session(as_role["AccessKeyId"], as_role["SecretAccessKey"], as_role["SessionToken"], "eu-central-1")
    dynamodb = session.client("dynamodb", endpoint_url=ENVIRONMENT["AWS_ENDPOINT_URL"])
    table = outputs()["TablePrefix"] + "errors"
    try:
        dynamodb.scan(TableName=table)
    except ClientError as error:
        assert error.response["Error"]["Code"] == "AccessDeniedException", error
    else:
        raise AssertionError("the role of create-feature-flag can read errors: IAM is not enforced")
    denied = emulator_lines("DENIED")
    assert len(denied) == 1 and "dynamodb:Scan" in denied[0], denied


def create_project() -> tuple[dict, str]:
    project = waymark("project", "create", "--name", "Shop", "--slug", "shop")
    # Emails go to addresses of users whose keys can read the project.
    key = waymark("key", "create", "--project", "shop", "--scopes", "all", "--user", OPERATOR)["apiKey"]
    waymark("user", "set-address", OPERATOR, "--user", OPERATOR)
    return project, key


def call_operations(project: dict, key: str) -> None:
    """Calls the first operations of the interface."""
    slug = project["slug"]
    flag = {"key": "new-checkout", "name": "New checkout", "type": "boolean", "enabled": True,
            "rules": [{"name": "Staff", "serve": {"variant": "on"},
                       "conditions": [{"attribute": "email", "operator": "ends_with", "values": ["@example.com"]}]}]}
    call("POST", f"/v0/project/{slug}/feature-flags", flag, key=key, expect=201)

    points = [{"id": str(uuid.uuid4()), "sessionId": f"s-{number}", "userId": None, "occurredAt": now(hours=1),
               "title": "Rage click", "excerpt": "x"} for number in range(4)]
    insight = call("POST", f"/v0/projects/{slug}/replay-insights",
                   {"title": "Checkout", "description": "Slow", "painPoints": points}, key=key, expect=201)
    call("POST", f"/v0/projects/{slug}/replay-insights/{insight['id']}/split",
         {"painPointIds": [point["id"] for point in points[:2]]}, key=key, expect=201)

    collections = f"/v0/projects/{slug}/event-marker-collections"
    collection = call("POST", collections, {"name": "Releases", "description": ""}, key=key, expect=201)
    marker = {"name": "1.0", "occurredAt": now(), "description": "", "attributes": {}}
    call("POST", f"{collections}/{collection['id']}/events", {"events": [marker] * 30}, key=key, expect=201)
    call("DELETE", f"{collections}/{collection['id']}", key=key, expect=204)

    category = {"id": "browser", "label": "Browser", "values": ["Chrome", "Firefox"]}
    query = {"projectId": slug, "query": "not firefox", "categories": [category], "currentFilters": []}
    filters = call("POST", "/v0/errors/filters/interpret", query, key=key)["filters"]
    assert filters == [{"categoryId": "browser", "operator": "is_not", "value": "Firefox"}], filters

    preference = {"type": "flag_changed", "emailEnabled": True}
    call("PUT", "/v0/notifications/email-preferences", {"preferences": [preference]}, key=key)

    query = {"projectIds": [slug], "from": None, "to": None}
    call("POST", "/v0/errors/timeseries/query", query, key=key)


def evaluate(slug: str, key: str) -> None:
    """Evaluates the flag as an OpenFeature provider does."""
    context = {"context": {"targetingKey": "user-1", "email": "ada@example.com"}}
    flag = call("POST", f"/v0/project/{slug}/ofrep/v1/evaluate/flags/new-checkout", context, key=key)
    assert (flag["value"], flag["reason"]) == (True, "TARGETING_MATCH"), flag
    flags = call("POST", f"/v0/project/{slug}/ofrep/v1/evaluate/flags", context, key=key)["flags"]
    assert [it["key"] for it in flags] == ["new-checkout"], flags


RAISE = """
import sentry_sdk, sys
sentry_sdk.init(sys.argv[1], release="shop@1.2.3", shutdown_timeout=60)
for number in range(3):
    try:
        raise ValueError(f"order {number} is not found")
    except ValueError:
        sentry_sdk.capture_exception()
"""


def report_errors(project: dict, key: str, reported: int) -> None:
    """Reports three events with the Sentry SDK. Then all `reported` events are counted, also those of other releases."""
    run(ROOT / ".venv" / "sentry-sdk" / "bin" / "python", "-c", RAISE, project["dsn"], log="sentry-sdk.log")
    query = {"projectIds": [project["slug"]], "from": None, "to": None}

    def counted() -> int:
        buckets = call("POST", "/v0/errors/timeseries/query", query, key=key)
        return sum(it["errors"] for it in buckets)

    wait(f"the timeseries counts {reported} events", 15, lambda: counted() == reported)


def open_console() -> None:
    page = call("GET", "/console").decode()
    assert "<script" in page, page[:500]
    script = page.split('src="')[1].split('"')[0]
    assert len(call("GET", script if script.startswith("/") else f"/console/{script}")) > 10_000, script


def emails() -> list[dict]:
    with urllib.request.urlopen(ENVIRONMENT["AWS_ENDPOINT_URL"] + "/_ministack/ses/messages") as response:
        return [it for account in json.load(response)["messages"].values() for it in account]


def scheduled() -> dict[str, str]:
    """Returns the functions that have a schedule, each with its rate."""
    schedules = [client("scheduler").get_schedule(Name=name) for name in resources("AWS::Scheduler::Schedule")]
    return {it["Target"]["Arn"]: it["ScheduleExpression"] for it in schedules}


def invoke(function: str, *, wait_for_end: bool) -> None:
    kind = "RequestResponse" if wait_for_end else "Event"
    response = client("lambda").invoke(FunctionName=function, InvocationType=kind)
    assert "FunctionError" not in response, (function, response["Payload"].read())


def wait_for_jobs() -> None:
    """Waits until each job ran by its schedule, or by hand if that takes longer, and an email arrived."""
    every = scheduled()
    for function, rate in every.items():
        if rate != "rate(1 minute)":
            invoke(function, wait_for_end=True)
    operations = lambda: {line["operation"] for _, line in log_lines() if line.get("message") == "job"}  # noqa: E731
    wait(f"{len(every)} scheduled functions log a run", 100, lambda: len(operations()) == len(every))
    subjects = lambda: " ".join(it["Subject"] for it in emails() if it["To"] == [OPERATOR])  # noqa: E731
    wait("an email about the new error", 75, lambda: "new error" in subjects().lower())
    assert {it["Source"] for it in emails()} == {SENDER}, emails()


def update() -> None:
    if EARLIER_BINARIES != BINARIES:
        pack_all(BINARIES)
    make("deploy", "update.log", "PARAMETERS=LogRetentionInDays=7")
    assert stack()["StackStatus"] == "UPDATE_COMPLETE" and parameters()["LogRetentionInDays"] == "7"
    groups = pages("logs", "describe_log_groups", "logGroups")
    days = {it["logGroupName"]: it.get("retentionInDays") for it in groups}
    assert {days[name] for name in resources("AWS::Logs::LogGroup")} == {7}, days


def roll_back(first: str) -> None:
    make("roll-back", "roll-back.log")
    assert stack()["StackStatus"] == "UPDATE_COMPLETE" and parameters()["Release"].endswith(f"-{first}"), parameters()


def delete_error(slug: str, key: str) -> None:
    errors = call("GET", f"/v0/projects/{slug}/errors", key=key)
    error = errors["items"][0]["errorId"]
    call("DELETE", f"/v0/projects/{slug}/errors/{error}", key=key, expect=204)
    call("GET", f"/v0/projects/{slug}/errors/{error}", key=key, expect=404)


def skip_pause(table: str, key: dict, until: str) -> None:
    """Sets the attribute that a job waits for to an hour ago, if the job still has the item."""
    dynamodb = client("dynamodb")
    try:
        dynamodb.update_item(
            TableName=table, Key=key, UpdateExpression=f"SET {until} = :past",
            ConditionExpression=f"attribute_exists({until})", ExpressionAttributeValues={":past": {"S": now(hours=1)}})
    except dynamodb.exceptions.ConditionalCheckFailedException:
        pass


def erase(project: dict) -> None:
    """Erases the project. Skips each pause of the erasure: together they last 25 hours."""
    waymark("project", "delete", project["slug"], "--yes")
    jobs = scheduled()
    (erase_data,) = (function for function in jobs if "EraseData" in function)
    projects, events = (outputs()["TablePrefix"] + name for name in ("projects", "event-markers"))
    rounds = 0

    def is_done() -> bool:
        nonlocal rounds
        erasures = waymark("erasure", "list")
        if not erasures:
            return True
        if rounds % 8 == 0:
            show(f"  stage {erasures[0]['stage']}")
            # Some stages end when another job has removed its part.
            for function in jobs:
                invoke(function, wait_for_end=False)
        rounds += 1
        skip_pause(projects, {"idOrSlug": {"S": f"erasure#project#{project['id']}"}}, "notBefore")
        # Events of deleted collections stay for a minute.
        for purge in pages("dynamodb", "query", "Items", TableName=events, KeyConditionExpression="pk = :jobs",
                           ExpressionAttributeValues={":jobs": {"S": "purge-jobs"}}):
            skip_pause(events, {"pk": purge["pk"], "sk": purge["sk"]}, "deletedAt")
        invoke(erase_data, wait_for_end=True)
        return False

    wait("the erasure ends", 90, is_done)
    # The audit log keeps who created and deleted the project, and counts per minute expire (docs/erasure.md).
    kept = {f"{STACK}-audit", f"{STACK}-quotas"}
    for name in set(pages("dynamodb", "list_tables", "TableNames")) - kept:
        for row in pages("dynamodb", "scan", "Items", TableName=name):
            assert project["id"] not in repr(row), f"{name} still has the project: {row}"


def is_stall(line: dict) -> bool:
    """Returns whether a job failed because the emulator, which processed a template, did not answer for 2 seconds."""
    text = " ".join(str(line.get(name)) for name in ("cause", "failure", "message"))
    during = any(start <= line.get("timestamp", "") <= end for start, end in DEPLOYMENTS)
    return during and ("request has timed out" in text or "the job failed" in text)


def check_logs() -> int:
    """Fails for each line of a warning, an error, a crash or a response 5xx."""
    lines = [(group, line) for group, line in log_lines() if not is_stall(line)]
    bad = [(group, line) for group, line in lines if line.get("level") != "INFO" or (line.get("status") or 0) >= 500]
    assert lines and not bad, "\n".join(f"{group}: {json.dumps(line)[:1000]}" for group, line in bad[:10])
    return len({line.get("operation") for _, line in lines})


def delete_stack() -> None:
    retained = resources("AWS::DynamoDB::Table")
    functions = resources("AWS::Lambda::Function")
    client("cloudformation").delete_stack(StackName=STACK)

    def is_deleted() -> bool:
        try:
            status = stack()["StackStatus"]
        except ClientError:
            return True
        assert status != "DELETE_FAILED", stack()
        return status == "DELETE_COMPLETE"

    wait("the stack is deleted", 60, is_deleted)
    left = {it["FunctionName"] for it in pages("lambda", "list_functions", "Functions")} & functions
    assert not left, f"functions outlive the stack: {left}"
    assert retained == set(pages("dynamodb", "list_tables", "TableNames")), "tables must outlive the stack"


def main() -> int:
    steps = 0

    def step(what: str, do: Callable, *arguments) -> object:
        nonlocal steps
        show(what)
        result = do(*arguments)
        steps += 1
        return result

    copy_project()
    step("pack the functions", pack_all, EARLIER_BINARIES)
    emulator = step("start the emulator", start_emulator)
    try:
        # Operators do these before the first deployment.
        client("sesv2").create_email_identity(EmailIdentity=SENDER)
        certificate = client("acm").request_certificate(DomainName=PARAMETERS["DomainName"])["CertificateArn"]
        values = PARAMETERS | {"DomainCertificateArn": certificate}
        named = " ".join(f"{name}={value}" for name, value in values.items())
        step("make deploy", make, "deploy", "deploy.log", f"PARAMETERS={named}")
        first = parameters()["Release"]
        show("  " + step("compare template and resources", check_resources))
        step("show that IAM is enforced", check_enforcement)
        project, key = step("create a project and a key with the waymark command", create_project)
        step("call six operations", call_operations, project, key)
        step("evaluate the flag (OFREP)", evaluate, "shop", key)
        step("report errors with the Sentry SDK, and count them", report_errors, project, key, 3)
        step("open the console", open_console)
        step("make deploy with a changed parameter", update)
        step("report errors to the update, and count all", report_errors, project, key, 6)
        step("make roll-back", roll_back, first)
        step("evaluate the flag again", evaluate, "shop", key)
        step("report errors to the earlier release, and count all", report_errors, project, key, 9)
        step("wait for scheduled jobs and an email", wait_for_jobs)
        step("delete an error", delete_error, "shop", key)
        step("erase the project", erase, project)
        show(f"  {step('read the logs', check_logs)} operations and jobs without an error")
        denied = emulator_lines("DENIED")[1:]
        assert not denied, "\n".join(denied)
        step("delete the stack", delete_stack)
    except (AssertionError, ClientError) as failure:
        print(f"FAILED: {failure}\nThe logs are in {COPY.relative_to(ROOT)}.", file=sys.stderr)
        print(*emulator_lines("DENIED")[1:], sep="\n", file=sys.stderr)
        return 1
    finally:
        # With the functions that it started.
        os.killpg(emulator.pid, signal.SIGTERM)
        emulator.wait()
        # Hundreds of megabytes; the logs stay.
        shutil.rmtree(COPY / "target")
        shutil.rmtree(COPY / "tmp", ignore_errors=True)
    show("done")
    print(f"{steps} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
