"""Checks that an account, a region and this computer can deploy a stack, before a deployment starts.

`deploy.py doctor` prints the findings. Each finding has its remedy. An error stops a deployment.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError
from releases import describe, explain
from samtranslator.yaml_helper import yaml_parse

# A console page needs 8 concurrent executions, and each application that evaluates flags needs some.
# Accounts that AWS did not limit have 1,000.
MIN_CONCURRENCY, USUAL_CONCURRENCY = 100, 1_000
# Bytes of code versions that must still fit into the account's storage.
MIN_CODE_BYTES = 1_000_000_000
# Free bytes on the disk: for SAM CLI and its temporary files, and for a build of all functions.
MIN_DISK_BYTES, MIN_DISK_BYTES_TO_BUILD = 500_000_000, 10_000_000_000
# States of a stack that was never created. A failed first creation leaves ROLLBACK_COMPLETE.
NEW = (None, "REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE")
# Remedies of the states in which CloudFormation accepts no deployment.
STUCK = {
    "CREATE_FAILED": "delete-stack",
    "ROLLBACK_FAILED": "delete-stack",
    "DELETE_FAILED": "delete-stack --deletion-mode FORCE_DELETE_STACK",
    "UPDATE_ROLLBACK_FAILED": "continue-update-rollback",
}
# Regions in which CloudFormation has no budgets.
NO_BUDGETS = ("af-south-1", "ap-northeast-3", "ca-west-1", "eu-central-2", "eu-north-1", "eu-south-1")
# No check may wait for minutes: a region can lack a service.
ONE_RETRY = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 2})


class Finding(NamedTuple):
    """A problem and its remedy."""

    is_error: bool
    problem: str
    remedy: str


def error(problem: str, remedy: str) -> Finding:
    return Finding(True, problem, remedy)


def warning(problem: str, remedy: str) -> Finding:
    return Finding(False, problem, remedy)


def quota_request(service: str, code: str, value: int, region: str = "") -> str:
    """Returns the command that requests a higher quota."""
    command = "aws service-quotas request-service-quota-increase"
    return f"{command} --service-code {service} --quota-code {code} --desired-value {value}{region}"


class Preflight:
    """The checks of one deployment."""

    def __init__(self, stack: str, template: Path, parameters: dict[str, str], client: Callable) -> None:
        self.stack = stack
        self.client = client
        self.resources = yaml_parse(template.read_text(encoding="utf-8"))["Resources"].values()
        described = describe(client("cloudformation"), stack) or {}
        self.status = described.get("StackStatus")
        deployed = {it["ParameterKey"]: it["ParameterValue"] for it in described.get("Parameters", [])}
        self.parameters = deployed | parameters

    def names(self, resource_type: str, member: str) -> set[str]:
        """Returns the names that the stack gives to its resources of a type."""
        given = [it["Properties"][member] for it in self.resources if it["Type"] == resource_type]
        return {str(it["Fn::Sub"]).replace("${AWS::StackName}", self.stack) for it in given}

    def pages(self, service: str, operation: str, member: str, **arguments: str) -> list:
        """Returns all items of a list."""
        paginator = self.client(service).get_paginator(operation)
        return [it for page in paginator.paginate(**arguments) for it in page.get(member, [])]

    def concurrency(self) -> Iterator[Finding]:
        settings = self.client("lambda").get_account_settings()
        limit = settings["AccountLimit"]["ConcurrentExecutions"]
        if limit < MIN_CONCURRENCY:
            yield error(
                f"the account runs at most {limit} functions at the same time; one console page needs 8",
                quota_request("lambda", "L-B99A9384", USUAL_CONCURRENCY) + "  # AWS decides within some days",
            )
        free = settings["AccountLimit"]["TotalCodeSize"] - settings["AccountUsage"]["TotalCodeSize"]
        if free < MIN_CODE_BYTES:
            yield error(
                f"{max(free, 0) / 1e9:.1f} GB are left for versions of functions",
                "delete old versions (aws lambda delete-function --function-name NAME --qualifier VERSION)",
            )

    def crowded(self, what: str, needed: int, used: int, limit: int, quota: tuple[str, str]) -> Iterator[Finding]:
        """Compares a quota of the account with the needs of a new stack. An existing stack has its resources."""
        if self.status in NEW and used + needed > limit:
            region = " --region us-east-1" if quota[0] == "iam" else ""
            yield error(
                f"the account has {used} of at most {limit} {what}, and the stack needs {needed}",
                quota_request(*quota, used + 2 * needed, region),
            )

    def count(self, *types: str) -> int:
        return sum(it["Type"] in types for it in self.resources)

    def roles(self) -> Iterator[Finding]:
        summary = self.client("iam").get_account_summary()["SummaryMap"]
        # SAM creates a role for each function.
        needed = self.count("AWS::Serverless::Function", "AWS::IAM::Role")
        yield from self.crowded(
            "roles", needed, summary["Roles"], summary["RolesQuota"], ("iam", "L-FE177D64")
        )

    def stacks(self) -> Iterator[Finding]:
        used = len(self.pages("cloudformation", "describe_stacks", "Stacks"))
        limits = self.pages("cloudformation", "describe_account_limits", "AccountLimits")
        limit = next(it["Value"] for it in limits if it["Name"] == "StackLimit")
        # SAM CLI adds a stack with its bucket.
        yield from self.crowded("stacks", 2, used, limit, ("cloudformation", "L-0485CB21"))

    def tables(self) -> Iterator[Finding]:
        quota = ("dynamodb", "L-F98FE922")
        described = self.client("service-quotas").get_service_quota(ServiceCode=quota[0], QuotaCode=quota[1])
        used = len(self.pages("dynamodb", "list_tables", "TableNames"))
        needed = self.count("AWS::DynamoDB::Table")
        yield from self.crowded("tables", needed, used, int(described["Quota"]["Value"]), quota)

    def state(self) -> Iterator[Finding]:
        status = self.status or ""
        if status in STUCK:
            yield error(
                f"the stack {self.stack} is in state {status}",
                f"aws cloudformation {STUCK[status]} --stack-name {self.stack}",
            )
        elif status.endswith("_IN_PROGRESS") and status not in NEW:
            yield error(f"the stack {self.stack} is in state {status}", "wait until it is complete")

    def collisions(self) -> Iterator[Finding]:
        """Finds resources that the stack would create, such as the tables of a deleted stack."""
        if self.status not in NEW:
            return
        tables = self.names("AWS::DynamoDB::Table", "TableName")
        for name in sorted(tables & set(self.pages("dynamodb", "list_tables", "TableNames"))):
            yield error(
                f"the table {name} already exists, possibly with data of a deleted stack",
                'keep its data: docs/operations.md, "Recreate a deleted stack"; another name: STACK=NAME; delete it: '
                f"aws dynamodb update-table --table-name {name} --no-deletion-protection-enabled && "
                f"aws dynamodb delete-table --table-name {name}",
            )
        groups = self.names("AWS::Logs::LogGroup", "LogGroupName")
        for prefix in sorted({it.rpartition("/")[0] for it in groups}):
            existing = self.pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=prefix)
            for name in sorted(groups & {it["logGroupName"] for it in existing}):
                yield error(
                    f"the log group {name} already exists", f"aws logs delete-log-group --log-group-name {name}"
                )

    def edge(self) -> Iterator[Finding]:
        given = {name: self.parameters.get(name, "").strip('"') for name in ("Edge", "EdgeRequestsPerAddress")}
        if given["Edge"] != "true" or given["EdgeRequestsPerAddress"] in ("", "0"):
            return
        region = self.client("cloudformation").meta.region_name
        if region != "us-east-1" and not self.parameters.get("EdgeWebAclArn", "").strip('"'):
            yield error(
                f"EdgeRequestsPerAddress has no effect in {region}: web ACLs of CloudFront exist only in us-east-1",
                "create a web ACL there (aws wafv2 create-web-acl --scope CLOUDFRONT --region us-east-1), "
                "and set EdgeWebAclArn",
            )

    def budget(self) -> Iterator[Finding]:
        region = self.client("cloudformation").meta.region_name
        if self.parameters.get("MonthlyBudget", "0") != "0" and region in NO_BUDGETS:
            yield error(
                f"CloudFormation cannot create a budget in {region}",
                "leave out MonthlyBudget, and create the budget with aws budgets create-budget",
            )

    def mail(self) -> Iterator[Finding]:
        sender = self.parameters.get("MailFrom", "").strip('"')
        if not sender:
            return
        ses = self.client("sesv2")
        # An identity of a domain also covers its subdomains.
        domain = sender.rpartition("@")[2]
        domains = [domain.split(".", up)[-1] for up in range(domain.count("."))]
        if not any(is_verified(ses, identity) for identity in [sender, *domains]):
            yield error(
                f"SES has no verified identity for {sender}, so it rejects all emails",
                f"aws sesv2 create-email-identity --email-identity {sender}  # then follow the link in its email",
            )
        account = ses.get_account()
        if not account["SendingEnabled"]:
            yield error("SES paused the account", "see the reason in the SES console, Reputation metrics")
        if not account["ProductionAccessEnabled"]:
            yield warning(
                "the account is in the SES sandbox: only verified addresses get emails",
                "aws sesv2 put-account-details --production-access-enabled --mail-type TRANSACTIONAL "
                "--website-url https://YOUR-SITE",
            )

    def findings(self) -> Iterator[Finding]:
        """Runs all checks. A check that the credentials or the region do not allow is a warning."""
        on_account = (self.concurrency, self.roles, self.stacks, self.tables, self.edge, self.budget, self.mail)
        for check in (self.state, self.collisions, *on_account):
            try:
                yield from check()
            except (BotoCoreError, ClientError) as failure:
                yield warning(f"not checked: {check.__name__}", explain(failure))


def is_verified(ses, identity: str) -> bool:
    """Returns `true` if SES sends emails from an address or a domain."""
    try:
        return ses.get_email_identity(EmailIdentity=identity)["VerifiedForSendingStatus"]
    except ses.exceptions.NotFoundException:
        return False


def computer(root: Path, is_built: bool) -> Iterator[Finding]:
    """Checks the disk and, for a build, the tools."""
    is_first_build = is_built and not (root / "target" / "lambda").exists()
    needed = MIN_DISK_BYTES_TO_BUILD if is_first_build else MIN_DISK_BYTES
    free = shutil.disk_usage(root).free
    if free < needed:
        yield error(
            f"{free / 1e9:.1f} GB are free on the disk of {root}; {needed / 1e9:.1f} GB are needed",
            "free space" + ("; a release archive needs no build" if is_first_build else ""),
        )
    if not is_built:
        return
    if shutil.which("cargo") is None:
        yield error("cargo is missing", "install Rust from https://rustup.rs")
    if shutil.which("cc") is None:
        yield error(
            "the C compiler cc is missing, which links build scripts",
            "xcode-select --install" if sys.platform == "darwin" else "apt install build-essential",
        )
    if shutil.which("npm") is None:
        yield warning(
            "npm is missing, so the console is not built", "install Node.js 20 or later from https://nodejs.org"
        )


def preflight(stack: str, template: Path, parameters: dict[str, str], root: Path, is_built: bool) -> bool:
    """Prints all findings, and returns `true` if a deployment can start."""
    session = boto3.Session()
    found = list(computer(root, is_built))
    try:
        if session.region_name is None:
            raise NoRegionError
        caller = session.client("sts", config=ONE_RETRY).get_caller_identity()
        print(f"Account {caller['Account']}, region {session.region_name}, {caller['Arn']}")
        checks = Preflight(stack, template, parameters, lambda name: session.client(name, config=ONE_RETRY))
        found += checks.findings()
    except (BotoCoreError, ClientError) as failure:
        found.append(error("AWS is not accessible", explain(failure)))
    for is_error, problem, remedy in found:
        print(f"{'error' if is_error else 'warning'}: {problem}\n  {remedy}")
    errors = sum(it.is_error for it in found)
    print(f"Errors: {errors}, warnings: {len(found) - errors}", flush=True)
    return errors == 0
