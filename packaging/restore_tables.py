"""Restores tables of a stack to a moment, under names of their own, which the functions can switch to.

Usage: restore_tables.py STACK MOMENT TABLE...

MOMENT is of the last 35 days, in UTC: 2026-11-21T04:16:00Z. TABLE is a table's name without the stack's:
`feature-flags flag-changes`. Tables that are written together have to be restored together.

The tables of the stack stay as they are. What DynamoDB does not bring along (point-in-time recovery, time to
live, deletion protection, ceilings, tags) is set as the old tables have it. The command can be repeated: it goes on
with what it has begun. At its end it prints how to have the functions use what was restored, and before that
which keys were revoked since the moment, and the like: whoever restores undoes it. `make restore-tables` runs
this; docs/operations.md says what comes before and after.
"""

import re
import sys
import time
from datetime import datetime, timezone

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from releases import explained

# Each of these is damaged or unsafe beside one of another moment.
WRITTEN_TOGETHER = [("feature-flags", "flag-changes"), ("projects", "api-keys")]
SECONDS_BETWEEN_LOOKS = 15


class Refused(Exception):
    """Nothing was restored, and why."""


def suffix_of(moment: datetime) -> str:
    """What follows the name of a table that is restored to this moment."""
    return f"restored-{moment:%Y%m%dT%H%M%SZ}"


def parse_moment(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        raise Refused(f"{text} is no moment such as 2026-11-21T04:16:00Z") from None


def parse_restored(text: str) -> dict[str, str]:
    """The stack's parameter RestoredTables: what follows the names of tables that others stand in for."""
    return dict(entry.split(":") for entry in text.split(",") if entry)


def written_restored(suffixes: dict[str, str]) -> str:
    """The value of RestoredTables that `parse_restored` reads."""
    return ",".join(f"{table}:{suffix}" for table, suffix in sorted(suffixes.items()))


def check_company(tables: list[str]) -> None:
    """Refuses some of the tables that are written together without the others."""
    for company in WRITTEN_TOGETHER:
        missing = set(company) - set(tables)
        if missing and set(company) & set(tables):
            raise Refused(f"{' and '.join(company)} are written together: name {missing.pop()} too")


def ceiling_of(described: dict) -> dict[str, int]:
    """What a table, or an index, takes at most. -1 stands for any number."""
    return {name: units for name, units in described.get("OnDemandThroughput", {}).items() if units > 0}


def update_of(source: dict, target: dict) -> dict:
    """What one UpdateTable has to set, so that a restored table is protected and bounded as its source is: a
    second one would have to wait for the first."""
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


def given_to_make(restored: str) -> str:
    """The value of RestoredTables as make takes it in PARAMETERS. SAM takes an empty one in quotes alone, which
    have to be left alone by the shell that make starts, too."""
    return f"PARAMETERS=RestoredTables={restored}" if restored else "PARAMETERS='RestoredTables=\\\"\\\"'"


class Restoration:
    """Tables of a stack, to be restored to a moment."""

    def __init__(self, stack: str, moment: datetime, tables: list[str], dynamodb, cloudformation) -> None:
        check_company(tables)
        self.stack, self.moment, self.tables, self.dynamodb = stack, moment, tables, dynamodb
        described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        parameters = {
            it["ParameterKey"]: it["ParameterValue"] for it in described.get("Parameters", [])
        }
        self.release = parameters.get("Release", "").rsplit("-", 1)[-1]
        self.stand_in = parse_restored(parameters.get("RestoredTables", ""))

    def source(self, table: str) -> str:
        """The table that the functions use now, perhaps a restored one already."""
        suffix = self.stand_in.get(table)
        return f"{self.stack}-{table}-{suffix}" if suffix else f"{self.stack}-{table}"

    def target(self, table: str) -> str:
        return f"{self.stack}-{table}-{suffix_of(self.moment)}"

    def describe(self, name: str) -> dict | None:
        try:
            return self.dynamodb.describe_table(TableName=name)["Table"]
        except self.dynamodb.exceptions.ResourceNotFoundException:
            return None

    def check(self) -> None:
        """Refuses what cannot be restored, before anything is begun."""
        for table in self.tables:
            source = self.source(table)
            if self.describe(source) is None:
                raise Refused(f"there is no table {source}; is {self.stack} the stack's name?")
            backups = self.dynamodb.describe_continuous_backups(TableName=source)
            recovery = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
            earliest, latest = (recovery.get(f"{which}RestorableDateTime") for which in ("Earliest", "Latest"))
            if earliest is None or latest is None:
                raise Refused(f"{source} has no point-in-time recovery")
            if not earliest.replace(microsecond=0) <= self.moment <= latest:
                raise Refused(
                    f"{source} can be restored to moments from {earliest:%FT%TZ} to {latest:%FT%TZ}"
                )

    def begin(self) -> None:
        for table in self.tables:
            if self.describe(self.target(table)) is None:
                self.dynamodb.restore_table_to_point_in_time(
                    SourceTableName=self.source(table),
                    TargetTableName=self.target(table),
                    RestoreDateTime=self.moment,
                )

    def wait(self, tell) -> None:
        """Returns once all are there; `tell` is called with what is not, each time that it looks."""
        begun = time.monotonic()
        while True:
            found = {table: self.describe(self.target(table)) for table in self.tables}
            waiting = [name for name, it in found.items() if it is None or it["TableStatus"] != "ACTIVE"]
            if not waiting:
                return
            tell(f"{(time.monotonic() - begun) / 60:.0f} min: restoring {', '.join(waiting)}")
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def finish(self) -> None:
        """Sets what restoring does not bring along."""
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

    def items(self, name: str, key: str, attributes: list[str]) -> dict[str, dict[str, str]]:
        """The texts that the items of a table have, by their keys."""
        names = {f"#{number}": it for number, it in enumerate([key, *attributes])}
        pages = self.dynamodb.get_paginator("scan").paginate(
            TableName=name,
            ConsistentRead=True,
            ProjectionExpression=",".join(names),
            ExpressionAttributeNames=names,
        )
        texts = (
            {name: value["S"] for name, value in item.items() if "S" in value}
            for page in pages
            for item in page["Items"]
        )
        return {it[key]: it for it in texts}

    def undone(self) -> list[str]:
        """The commands that were given since the moment to keep somebody out, and have to be given again."""
        commands = []
        if "api-keys" in self.tables:
            now, then = (
                self.items(name("api-keys"), "keyId", ["revokedAt"]) for name in (self.source, self.target)
            )
            # Also those that are gone, with who or what was erased.
            commands += [
                f"key revoke {key}"
                for key, it in sorted(then.items())
                if "revokedAt" not in it and (key not in now or "revokedAt" in now[key])
            ]
        if "projects" in self.tables:
            now, then = (
                self.items(name("projects"), "idOrSlug", ["projectId", "publicKey", "createdAt"])
                for name in (self.source, self.target)
            )
            # Of a project's items the one under its id alone has the time, and slugs may be others' by now.
            for project, it in sorted(then.items()):
                if it.get("projectId") != project or "createdAt" not in it:
                    continue
                if project not in now:
                    commands.append(f"project delete {project}")
                elif now[project].get("publicKey") != it.get("publicKey"):
                    commands.append(f"project rotate-dsn-key {project}")
        return commands

    def parameter(self) -> str:
        """The value of RestoredTables with which the functions use what was restored."""
        return written_restored(self.stand_in | {table: suffix_of(self.moment) for table in self.tables})


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
        undone = restoration.undone()
    except (Refused, BotoCoreError, ClientError) as error:
        print(f"error: {explained(error)}", file=sys.stderr)
        return 1
    for table in tables:
        print(f"{restoration.target(table)} is there. Nothing uses it yet.")
    print("Look into it, with what has to be in the environment of the command from now on:")
    print(f"  export WAYMARK_RESTORED_TABLES={restoration.parameter()}")
    if undone:
        print("What was done since to keep somebody out is undone there. Say it again, before anything uses it:")
        for command in undone:
            print(f"  waymark --table-prefix {stack}- {command}")
    print("Then have the functions use it, without a pause:")
    print(f"  make roll-back TO={restoration.release} {given_to_make(restoration.parameter())}")
    back = given_to_make(written_restored(restoration.stand_in))
    print("and back to what they use now, if that was wrong:")
    print(f"  make roll-back TO={restoration.release} {back}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
