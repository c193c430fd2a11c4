"""Restores tables of a stack to a point in time, under new names that the functions can switch to.

Usage: restore_tables.py STACK TIME TABLE...

TIME is a UTC time of the last 35 days: 2026-11-21T04:16:00Z. TABLE is a table name without the stack's
prefix: `feature-flags flag-changes`. Tables that are written together must be restored together.

The tables of the stack do not change. DynamoDB does not restore point-in-time recovery, time to live,
deletion protection, ceilings and tags: the script copies them from the old tables. If it is
interrupted, run it again; it resumes. In a restored table `people` it deletes all sessions. At the
end it prints two kinds of commands. The first repeat the key revocations, project deletions, DSN key
rotations, and changes of members that the restore undoes. The others make the functions use the
restored tables. `make restore-tables` runs this script; docs/operations.md has the
whole procedure.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from releases import explain

# Tables that are inconsistent or unsafe if they are restored to different times.
WRITTEN_TOGETHER = [("feature-flags", "flag-changes"), ("projects", "api-keys")]
POLL_SECONDS = 15


def texts_of(item: dict) -> dict[str, str | list[str]]:
    """Returns the strings and the sets of strings of an item."""
    strings = {name: value["S"] for name, value in item.items() if "S" in value}
    return strings | {name: sorted(value["SS"]) for name, value in item.items() if "SS" in value}


def member_of(item: dict) -> tuple[str, str] | None:
    """Returns the user and the organization of an item of table `people`, if it is a member."""
    kind, _, organization = item["sk"].partition("#")
    return (item["user"], organization) if kind == "member" and organization else None


class RestoreError(Exception):
    """The reason why no table was restored."""


def suffix_of(moment: datetime) -> str:
    """Returns the name suffix of tables restored to this time."""
    return f"restored-{moment:%Y%m%dT%H%M%SZ}"


def parse_moment(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        raise RestoreError(f"{text} is not a UTC time such as 2026-11-21T04:16:00Z") from None


def parse_restored(text: str) -> dict[str, str]:
    """Parses the stack's parameter RestoredTables: the name suffix of each replaced table."""
    return dict(entry.split(":") for entry in text.split(",") if entry)


def written_restored(suffixes: dict[str, str]) -> str:
    """Returns the value of RestoredTables that `parse_restored` parses."""
    return ",".join(f"{table}:{suffix}" for table, suffix in sorted(suffixes.items()))


def check_written_together(tables: list[str]) -> None:
    """Rejects a selection that contains only some of the tables that are written together."""
    for group in WRITTEN_TOGETHER:
        missing = set(group) - set(tables)
        if missing and set(group) & set(tables):
            raise RestoreError(f"{' and '.join(group)} are written together: name {missing.pop()} too")


def ceiling_of(described: dict) -> dict[str, int]:
    """Returns the maximum units of a table or index. In DynamoDB -1 means no limit."""
    return {name: units for name, units in described.get("OnDemandThroughput", {}).items() if units > 0}


def update_of(source: dict, target: dict) -> dict:
    """Returns the single UpdateTable call that copies deletion protection and ceilings from the source.

    A second call would have to wait for the first.
    """
    update = {}
    if source.get("DeletionProtectionEnabled") and not target.get("DeletionProtectionEnabled"):
        update["DeletionProtectionEnabled"] = True
    if ceiling_of(source) and ceiling_of(source) != ceiling_of(target):
        update["OnDemandThroughput"] = ceiling_of(source)
    restored = {index["IndexName"]: index for index in target.get("GlobalSecondaryIndexes", [])}
    indexes = [
        {"Update": {"IndexName": index["IndexName"], "OnDemandThroughput": ceiling_of(index)}}
        for index in source.get("GlobalSecondaryIndexes", [])
        if ceiling_of(index) and ceiling_of(index) != ceiling_of(restored.get(index["IndexName"], {}))
    ]
    if indexes:
        update["GlobalSecondaryIndexUpdates"] = indexes
    return update


class Restoration:
    """A restoration of tables of a stack to a point in time."""

    def __init__(self, stack: str, moment: datetime, tables: list[str], dynamodb, cloudformation) -> None:
        check_written_together(tables)
        self.stack, self.moment, self.tables, self.dynamodb = stack, moment, tables, dynamodb
        described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        parameters = {
            it["ParameterKey"]: it["ParameterValue"] for it in described.get("Parameters", [])
        }
        self.release = parameters.get("Release", "").rsplit("-", 1)[-1]
        self.replacements = parse_restored(parameters.get("RestoredTables", ""))

    def source(self, table: str) -> str:
        """Returns the table that the functions use now, which can be a restored one."""
        suffix = self.replacements.get(table)
        return f"{self.stack}-{table}-{suffix}" if suffix else f"{self.stack}-{table}"

    def target(self, table: str) -> str:
        return f"{self.stack}-{table}-{suffix_of(self.moment)}"

    def describe(self, name: str) -> dict | None:
        try:
            return self.dynamodb.describe_table(TableName=name)["Table"]
        except self.dynamodb.exceptions.ResourceNotFoundException:
            return None

    def check(self) -> None:
        """Rejects tables that cannot be restored, before the first restore starts."""
        for table in self.tables:
            source = self.source(table)
            if self.describe(source) is None:
                raise RestoreError(f"table {source} does not exist; is {self.stack} the stack's name?")
            backups = self.dynamodb.describe_continuous_backups(TableName=source)
            recovery = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
            earliest, latest = (recovery.get(f"{which}RestorableDateTime") for which in ("Earliest", "Latest"))
            if earliest is None or latest is None:
                raise RestoreError(f"{source} has no point-in-time recovery")
            if not earliest.replace(microsecond=0) <= self.moment <= latest:
                raise RestoreError(
                    f"{source} can be restored to times from {earliest:%FT%TZ} to {latest:%FT%TZ}"
                )

    def begin(self) -> None:
        for table in self.tables:
            if self.describe(self.target(table)) is None:
                self.dynamodb.restore_table_to_point_in_time(
                    SourceTableName=self.source(table),
                    TargetTableName=self.target(table),
                    RestoreDateTime=self.moment,
                )

    def wait(self, report) -> None:
        """Waits until all tables are active, and reports the pending ones at each poll."""
        begun = time.monotonic()
        while True:
            found = {table: self.describe(self.target(table)) for table in self.tables}
            waiting = [name for name, it in found.items() if it is None or it["TableStatus"] != "ACTIVE"]
            if not waiting:
                return
            report(f"{(time.monotonic() - begun) / 60:.0f} min: restoring {', '.join(waiting)}")
            time.sleep(POLL_SECONDS)

    def finish(self) -> None:
        """Copies the settings that DynamoDB does not restore."""
        for table in self.tables:
            source, target = self.describe(self.source(table)), self.describe(self.target(table))
            name = target["TableName"]
            self.dynamodb.update_continuous_backups(
                TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
            )
            self.copy_time_to_live(source["TableName"], name)
            tags = self.dynamodb.list_tags_of_resource(ResourceArn=source["TableArn"])["Tags"]
            tags = [tag for tag in tags if not tag["Key"].startswith("aws:")]
            if tags:
                self.dynamodb.tag_resource(ResourceArn=target["TableArn"], Tags=tags)
            update = update_of(source, target)
            if update:
                self.dynamodb.update_table(TableName=name, **update)

    def copy_time_to_live(self, source: str, target: str) -> None:
        wanted, found = (
            self.dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
            for name in (source, target)
        )
        is_on = ("ENABLED", "ENABLING")
        if wanted["TimeToLiveStatus"] in is_on and found["TimeToLiveStatus"] not in is_on:
            self.dynamodb.update_time_to_live(
                TableName=target,
                TimeToLiveSpecification={"Enabled": True, "AttributeName": wanted["AttributeName"]},
            )

    def pages(self, name: str) -> Iterator[dict]:
        for page in self.dynamodb.get_paginator("scan").paginate(TableName=name, ConsistentRead=True):
            yield from page["Items"]

    def now_and_then(self, table: str, key: Callable[[dict], object]) -> list[dict]:
        """Returns the current and the restored items of a table, by key. Items without a key are left out."""
        return [
            {found: it for it in map(texts_of, self.pages(name)) if (found := key(it))}
            for name in (self.source(table), self.target(table))
        ]

    def end_sessions(self) -> None:
        """Deletes all sessions of the restored table. Some of them have ended by now."""
        name = self.target("people")
        for item in self.pages(name):
            if item["sk"]["S"] == "session":
                self.dynamodb.delete_item(TableName=name, Key={"pk": item["pk"], "sk": item["sk"]})

    def revocations(self) -> list[str]:
        """Returns the commands that removed access since the restored time and must be repeated."""
        commands = []
        if "api-keys" in self.tables:
            now, then = self.now_and_then("api-keys", lambda it: it["keyId"])
            # Also deleted keys, which an erasure removed.
            commands += [
                f"key revoke {key}"
                for key, it in sorted(then.items())
                if "revokedAt" not in it and (key not in now or "revokedAt" in now[key])
            ]
        if "projects" in self.tables:
            now, then = self.now_and_then("projects", lambda it: it["idOrSlug"])
            # Only the item under a project's id has `createdAt`; its slug can belong to another project now.
            for project, it in sorted(then.items()):
                if it.get("projectId") != project or "createdAt" not in it:
                    continue
                if project not in now:
                    commands.append(f"project delete {project}")
                elif now[project].get("publicKey") != it.get("publicKey"):
                    commands.append(f"project rotate-dsn-key {project}")
        if "people" in self.tables:
            now, then = self.now_and_then("people", member_of)
            for (user, organization), it in sorted(then.items()):
                member = now.get((user, organization))
                if member is None:
                    commands.append(f"member remove {user} --org {organization}")
                elif any(member.get(name) != it.get(name) for name in ("role", "projects")):
                    projects = "".join(f" --project {project}" for project in member.get("projects", []))
                    commands.append(f"member update {user} --org {organization} --role {member['role']}{projects}")
        return commands

    def parameter(self) -> str:
        """Returns the value of RestoredTables that makes the functions use the restored tables."""
        return written_restored(self.replacements | {table: suffix_of(self.moment) for table in self.tables})


def main() -> int:
    match sys.argv[1:]:
        case [stack, moment, *tables] if tables and all(re.fullmatch("[a-z-]+", it) for it in tables):
            pass
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    try:
        cloudformation = boto3.client("cloudformation")
        restoration = Restoration(
            stack, parse_moment(moment), tables, boto3.client("dynamodb"), cloudformation
        )
        restoration.check()
        restoration.begin()
        restoration.wait(lambda text: print(text, file=sys.stderr, flush=True))
        restoration.finish()
        if "people" in tables:
            restoration.end_sessions()
        revocations = restoration.revocations()
    except (RestoreError, BotoCoreError, ClientError) as error:
        print(f"error: {explain(error)}", file=sys.stderr)
        return 1
    for table in tables:
        print(f"{restoration.target(table)} is restored. No function uses it yet.")
    print("To inspect it with waymark, and for all later waymark commands, set:")
    print(f"  export WAYMARK_RESTORED_TABLES={restoration.parameter()}")
    if revocations:
        print("The restore undid these commands. Repeat them before any function uses the tables:")
        for command in revocations:
            print(f"  waymark --table-prefix {stack}- {command}")
    print("Then switch the functions to the restored tables, without downtime:")
    print(f"  make roll-back TO={restoration.release} PARAMETERS=RestoredTables={restoration.parameter()}")
    back = f"PARAMETERS=RestoredTables={written_restored(restoration.replacements)}"
    print("To switch back to the current tables:")
    print(f"  make roll-back TO={restoration.release} {back}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
