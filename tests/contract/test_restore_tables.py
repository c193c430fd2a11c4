"""Tests `make restore-tables` with moto's DynamoDB and CloudFormation. Run by `make test`."""

import json
import os
import socket
import subprocess
import sys
import time
import unittest
from datetime import timezone
from pathlib import Path

import boto3

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
from restore_tables import RestoreError, Restoration, parse_moment, update_of

SCRIPT = ROOT / "packaging" / "restore_tables.py"
SERVER = ROOT / ".venv" / "moto" / "bin" / "moto_server"
RELEASE = "1795234560"


def environment(endpoint: str) -> dict[str, str]:
    return {
        **os.environ,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class TestRestoreTables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.server = subprocess.Popen(
            [SERVER, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.terminate)
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        cls.environment = environment(f"http://127.0.0.1:{port}")
        options = {
            "region_name": "eu-central-1",
            "endpoint_url": f"http://127.0.0.1:{port}",
            "aws_access_key_id": "id",
            "aws_secret_access_key": "secret",
        }
        cls.dynamodb = boto3.client("dynamodb", **options)
        cls.cloudformation = boto3.client("cloudformation", **options)

    def stack(self, name: str, restored: str = "", tables=("errors", "feature-flags", "flag-changes")):
        template = {
            "Parameters": {
                "Release": {"Type": "String"},
                "RestoredTables": {"Type": "String", "Default": ""},
            },
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        }
        parameters = {"Release": f"1795234999-{RELEASE}", "RestoredTables": restored}
        self.cloudformation.create_stack(
            StackName=name,
            TemplateBody=json.dumps(template),
            Parameters=[
                {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
            ],
        )
        names = [f"{name}-{table}" for table in tables]
        for table in names:
            self.table(table)
        # moto restores a table only to the second of its recovery's activation, so all tables share one.
        while len({self.latest(table) for table in names}) > 1:
            for table in names:
                self.turn_recovery(table, on=False)
                self.turn_recovery(table, on=True)

    def turn_recovery(self, table: str, on: bool):
        self.dynamodb.update_continuous_backups(
            TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": on}
        )

    def table(self, name: str):
        keys = {"pk": "HASH", "sk": "RANGE"} if "-people" in name else {"pk": "HASH"}
        self.dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
            Tags=[{"Key": "stage", "Value": "production"}],
            DeletionProtectionEnabled=True,
        )
        self.turn_recovery(name, on=True)
        if name.endswith(("-errors", "-errors-restored-1")):
            self.dynamodb.update_time_to_live(
                TableName=name,
                TimeToLiveSpecification={"Enabled": True, "AttributeName": "expiresAt"},
            )
        self.dynamodb.put_item(TableName=name, Item={key: {"S": name} for key in keys})

    def restore(self, *arguments: str):
        return subprocess.run(
            [sys.executable, SCRIPT, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def latest(self, table: str) -> str:
        """Returns the latest time for a restore. In moto, it is the time of the recovery's activation."""
        backups = self.dynamodb.describe_continuous_backups(TableName=table)
        recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        return f"{recovery['LatestRestorableDateTime'].astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"

    def names(self, stack: str) -> list[str]:
        names = self.dynamodb.list_tables()["TableNames"]
        return sorted(name for name in names if name.startswith(f"{stack}-"))

    def suffix(self, moment: str) -> str:
        return "restored-" + moment.replace("-", "").replace(":", "")

    def test_restored_tables_have_items_and_settings_of_their_source(self):
        self.stack("shop")
        moment = self.latest("shop-errors")
        run = self.restore("shop", moment, "errors")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        name = f"shop-errors-{self.suffix(moment)}"
        self.assertIn(
            f"make roll-back TO={RELEASE} PARAMETERS=RestoredTables=errors:{self.suffix(moment)}\n",
            run.stdout,
        )
        back = f"  make roll-back TO={RELEASE} PARAMETERS=RestoredTables="
        self.assertEqual(run.stdout.splitlines()[-1], back)
        items = self.dynamodb.scan(TableName=name)["Items"]
        self.assertEqual(items, [{"pk": {"S": "shop-errors"}}])
        table = self.dynamodb.describe_table(TableName=name)["Table"]
        self.assertTrue(table["DeletionProtectionEnabled"])
        tags = self.dynamodb.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
        self.assertEqual(tags, [{"Key": "stage", "Value": "production"}])
        backups = self.dynamodb.describe_continuous_backups(TableName=name)
        recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        self.assertEqual(recovery["PointInTimeRecoveryStatus"], "ENABLED")
        lives = self.dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        self.assertEqual(lives, {"TimeToLiveStatus": "ENABLED", "AttributeName": "expiresAt"})

        again = self.restore("shop", moment, "errors")
        self.assertEqual((again.returncode, again.stdout), (0, run.stdout))

    def test_revocations_after_the_restored_time_are_listed(self):
        self.stack("leaked", tables=("projects", "api-keys"))
        moment = self.latest("leaked-projects")
        suffix = self.suffix(moment)
        text = lambda **texts: {name: {"S": value} for name, value in texts.items()}
        project = lambda name, key: text(
            pk=name, idOrSlug=name, projectId=name, publicKey=key, createdAt="2026-11-01T00:00:00.000Z"
        )
        now = {
            "projects": [project("p-1", "new"), project("p-2", "same"), project("p-4", "later")],
            "api-keys": [
                text(pk="K1", keyId="K1", revokedAt="2026-11-21T05:00:00.000Z"),
                text(pk="K2", keyId="K2"),
                text(pk="K3", keyId="K3", revokedAt="2026-11-20T05:00:00.000Z"),
                text(pk="K5", keyId="K5", revokedAt="2026-11-21T05:00:00.000Z"),
            ],
        }
        then = {
            "projects": [
                project("p-1", "old"),
                project("p-2", "same"),
                project("p-3", "deleted"),
                text(pk="shop-3", idOrSlug="shop-3", projectId="p-3"),
            ],
            "api-keys": [
                text(pk="K1", keyId="K1"),
                text(pk="K2", keyId="K2"),
                text(pk="K3", keyId="K3", revokedAt="2026-11-20T05:00:00.000Z"),
                text(pk="K4", keyId="K4"),
            ],
        }
        # moto restores current items, so the earlier items are put into existing tables.
        for name, items in then.items():
            self.table(f"leaked-{name}-{suffix}")
        for tables, end in ((now, ""), (then, f"-{suffix}")):
            for name, items in tables.items():
                self.dynamodb.delete_item(
                    TableName=f"leaked-{name}{end}", Key=text(pk=f"leaked-{name}{end}")
                )
                for item in items:
                    self.dynamodb.put_item(TableName=f"leaked-{name}{end}", Item=item)
        run = self.restore("leaked", moment, "projects", "api-keys")
        self.assertEqual(run.returncode, 0, run.stderr)
        printed = [line.strip() for line in run.stdout.splitlines()]
        self.assertEqual(
            [line for line in printed if line.startswith("waymark ")],
            [
                "waymark --table-prefix leaked- key revoke K1",
                "waymark --table-prefix leaked- key revoke K4",
                "waymark --table-prefix leaked- project rotate-dsn-key p-1",
                "waymark --table-prefix leaked- project delete p-3",
            ],
        )
        self.assertIn(f"export WAYMARK_RESTORED_TABLES=api-keys:{suffix},projects:{suffix}", printed)

    def test_sessions_end_and_changes_of_members_are_listed(self):
        self.stack("staff", tables=("people",))
        moment = self.latest("staff-people")
        suffix = self.suffix(moment)
        member = lambda name, role, *projects: {  # noqa: E731
            "pk": {"S": f"user#{name}"}, "sk": {"S": "member#default"}, "user": {"S": name}, "role": {"S": role},
            **({"projects": {"SS": list(projects)}} if projects else {}),
        }
        other = lambda pk, sk: {"pk": {"S": pk}, "sk": {"S": sk}}  # noqa: E731
        tables = {
            "staff-people": [member("ada", "owner"), member("cy", "viewer", "p-2", "p-1"), member("new", "admin"),
                             other("session#1", "session")],
            f"staff-people-{suffix}": [member("ada", "owner"), member("bob", "admin"), member("cy", "member"),
                                       other("session#1", "session"), other("session#2", "session"),
                                       other("member#1", "member")],
        }
        # moto restores current items, so the earlier items are put into an existing table.
        self.table(f"staff-people-{suffix}")
        for name, items in tables.items():
            for item in items:
                self.dynamodb.put_item(TableName=name, Item=item)
        run = self.restore("staff", moment, "people")
        self.assertEqual(run.returncode, 0, run.stderr)
        printed = [line.strip() for line in run.stdout.splitlines()]
        self.assertEqual(
            [line for line in printed if line.startswith("waymark ")],
            [
                "waymark --table-prefix staff- member remove bob --org default",
                "waymark --table-prefix staff- member update cy --org default --role viewer --project p-1 --project p-2",
            ],
        )
        left = self.dynamodb.scan(TableName=f"staff-people-{suffix}")["Items"]
        kinds = sorted(it["sk"]["S"].partition("#")[0] for it in left if it["pk"]["S"] != f"staff-people-{suffix}")
        self.assertEqual(kinds, ["member"] * 4)

    def test_table_in_use_is_restored_and_others_stay(self):
        self.stack("twice", restored="errors:restored-1,quotas:restored-7", tables=("errors",))
        self.table("twice-errors-restored-1")
        moment = self.latest("twice-errors-restored-1")
        run = self.restore("twice", moment, "errors")
        self.assertEqual(run.returncode, 0, run.stderr)
        items = self.dynamodb.scan(TableName=f"twice-errors-{self.suffix(moment)}")["Items"]
        self.assertEqual(items, [{"pk": {"S": "twice-errors-restored-1"}}])
        self.assertIn(f"=errors:{self.suffix(moment)},quotas:restored-7\n", run.stdout)
        self.assertTrue(run.stdout.endswith("=RestoredTables=errors:restored-1,quotas:restored-7\n"))

    def test_invalid_restores_are_rejected_before_any_change(self):
        self.stack("refusing")
        before = self.names("refusing")
        moment = self.latest("refusing-errors")
        for moment, tables, message in [
            (moment, ["feature-flags"], "written together: name flag-changes too"),
            (moment, ["flag-changes", "errors"], "written together: name feature-flags too"),
            (moment, ["errors", "quotas"], "table refusing-quotas does not exist"),
            ("yesterday", ["errors"], "yesterday is not a UTC time such as"),
            ("2026-01-01T00:00:00Z", ["errors"], "can be restored to times from"),
            ("2126-01-01T00:00:00Z", ["errors"], "can be restored to times from"),
        ]:
            with self.assertRaisesRegex(RestoreError, message):
                clients = (self.dynamodb, self.cloudformation)
                Restoration("refusing", parse_moment(moment), tables, *clients).check()
        run = self.restore("refusing", moment, "errors")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertRegex(run.stderr, "^error: refusing-errors can be restored to times from")
        self.assertEqual(self.names("refusing"), before)

    def test_restored_tables_have_the_limits_of_their_source(self):
        index = {"IndexName": "byStatus", "OnDemandThroughput": {"MaxReadRequestUnits": 9}}
        ceiling = {"MaxWriteRequestUnits": 7, "MaxReadRequestUnits": -1}
        source = {
            "DeletionProtectionEnabled": True,
            "OnDemandThroughput": ceiling,
            "GlobalSecondaryIndexes": [index, {"IndexName": "byLastSeen"}],
        }
        target = {"GlobalSecondaryIndexes": [{"IndexName": "byLastSeen"}, {"IndexName": "byStatus"}]}
        update = update_of(source, target)
        self.assertEqual(
            update,
            {
                "DeletionProtectionEnabled": True,
                "OnDemandThroughput": {"MaxWriteRequestUnits": 7},
                "GlobalSecondaryIndexUpdates": [{"Update": index}],
            },
        )
        # DynamoDB rejects updates without changes, so none is sent.
        self.assertEqual(update_of(source, source), {})
        self.assertEqual(update_of({}, {}), {})


if __name__ == "__main__":
    unittest.main()
