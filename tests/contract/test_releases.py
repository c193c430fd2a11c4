"""What `make roll-back` brings back. Run by `make test`."""

import io
import os
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from botocore.exceptions import ClientError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging"))
from releases import SAM_STACK, Releases, code_of, roll_back

SCRIPT = Path(__file__).resolve().parents[2] / "packaging" / "releases.py"
STACK = "shop"


class Account:
    """CloudFormation and S3, as far as releases use them."""

    def __init__(self) -> None:
        self.release = None
        self.status = "UPDATE_COMPLETE"
        self.objects = {}

    def describe_stacks(self, StackName):
        if StackName == SAM_STACK:
            return {"Stacks": [{"Outputs": [{"OutputKey": "SourceBucket", "OutputValue": "b"}]}]}
        if self.release is None:
            message = f"Stack with id {StackName} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DescribeStacks")
        value = {"ParameterKey": "Release", "ParameterValue": self.release}
        return {"Stacks": [{"Parameters": [value], "StackStatus": self.status}]}

    def put_object(self, Bucket, Key, Body, Metadata):
        self.objects[Bucket, Key] = (Body, Metadata)

    def head_object(self, Bucket, Key):
        return {"Metadata": self.objects[Bucket, Key][1]}

    def get_object(self, Bucket, Key):
        body, metadata = self.objects[Bucket, Key]
        return {"Body": io.BytesIO(body), "Metadata": metadata}

    def delete_object(self, Bucket, Key):
        del self.objects[Bucket, Key]

    def get_paginator(self, name):
        assert name == "list_objects_v2"
        return self

    def paginate(self, Bucket, Prefix):
        keys = [key for bucket, key in self.objects if bucket == Bucket and key.startswith(Prefix)]
        # A page may be empty, and has no contents then.
        return [{}, *({"Contents": [{"Key": key}]} for key in keys)]


class TestReleases(unittest.TestCase):
    def setUp(self):
        self.account = Account()
        self.releases = Releases(STACK, self.account, self.account)
        Releases("shop-staging", self.account, self.account).begin("1700000009", "arm64", b"another's")

    def begin(self, release, architecture="arm64"):
        self.releases.begin(release, architecture, release.encode())

    def deploy(self, release, architecture="arm64"):
        """What `make deploy` does."""
        self.begin(release, architecture)
        self.account.release = release
        self.assertEqual(self.releases.settle(release), [])

    def roll_back(self, now, wanted=None):
        """What `make roll-back` does."""
        release, _, _ = self.releases.fetch(wanted)
        self.account.release = f"{now}-{release}"
        return release

    def test_what_the_deployed_release_replaced_is_brought_back(self):
        self.deploy("1700000001")
        self.deploy("1700000002")
        self.assertEqual(self.roll_back("1700000003"), "1700000001")
        self.assertEqual(code_of("1700000003-1700000001"), "1700000001")
        self.deploy("1700000004")
        # Not the second one, which was bad and is newer.
        self.assertEqual(self.roll_back("1700000005"), "1700000001")
        with self.assertRaisesRegex(LookupError, "nothing is kept from before the release 1700000001"):
            self.releases.fetch(None)

    def test_once_more_goes_one_further_back(self):
        for release in ("1700000001", "1700000002", "1700000003"):
            self.deploy(release)
        self.assertEqual(self.roll_back("1700000004"), "1700000002")
        self.assertEqual(self.roll_back("1700000005"), "1700000001")

    def test_what_was_kept_without_what_it_replaced_is_taken_by_its_number(self):
        for release in ("1700000001", "1700000002", "1700000003"):
            self.account.put_object("b", f"shop/releases/{release}.yaml", release.encode(), {})
        self.account.release = "1700000008-1700000002"
        self.assertEqual(self.releases.fetch(None), ("1700000001", b"1700000001", {}))
        self.account.release = None
        with self.assertRaisesRegex(LookupError, "nothing is kept from before"):
            self.releases.fetch(None)

    def test_what_was_not_deployed_is_not_kept(self):
        self.deploy("1700000001")
        for status in ("UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"):
            self.begin("1700000002")
            self.account.status = status
            self.assertEqual(self.releases.settle("1700000002"), ["1700000002"])
        self.account.status = "UPDATE_COMPLETE"
        self.assertEqual((self.releases.kept(), self.releases.begun()), (["1700000001"], []))

    def test_a_stack_that_was_never_made_runs_nothing(self):
        self.begin("1700000001")
        self.account.release, self.account.status = "1700000001", "ROLLBACK_COMPLETE"
        self.assertEqual(self.releases.settle("1700000001"), ["1700000001"])
        self.assertEqual(self.releases.kept(), [])

    def test_a_deployment_whose_end_nobody_saw_is_kept_if_it_is_deployed(self):
        self.deploy("1700000001")
        self.begin("1700000002")
        self.account.release, self.account.status = "1700000002", "UPDATE_IN_PROGRESS"
        self.assertEqual(self.releases.settle("1700000002"), [])
        self.assertEqual(self.releases.kept(), ["1700000001"], "it may yet be rolled back")
        self.assertEqual(self.releases.list()[0], "1700000002 begun, perhaps not deployed")
        self.account.status = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
        self.assertEqual(self.roll_back("1700000003"), "1700000001")
        self.assertEqual(self.releases.fetch("1700000002")[1], b"1700000002")

        # One that failed meanwhile is forgotten by the next that succeeds.
        self.begin("1700000004")
        self.account.status = "UPDATE_ROLLBACK_COMPLETE"
        self.begin("1700000005")
        self.account.release, self.account.status = "1700000005", "UPDATE_COMPLETE"
        self.assertEqual(self.releases.settle("1700000005"), ["1700000004"])
        self.assertEqual(self.releases.begun(), [])
        self.assertEqual(
            self.releases.list(),
            ["1700000005 deployed", "1700000002", "1700000001 before it: make roll-back"],
        )

    def test_a_release_may_be_named(self):
        for release in ("1700000001", "1700000002"):
            self.deploy(release)
        self.assertEqual(self.roll_back("1700000003", "1700000002"), "1700000002")
        with self.assertRaisesRegex(LookupError, "no release 1700000009; there are 1700000002"):
            self.releases.fetch("1700000009")

    def test_a_release_goes_with_its_processor(self):
        self.deploy("1700000001", "x86_64")
        self.deploy("1700000002", "arm64")
        self.assertEqual(self.releases.fetch(None)[2]["architecture"], "x86_64")

    def test_it_is_said_from_which_release_to_which(self):
        for release in ("1700000001", "1700000002"):
            self.deploy(release, "x86_64")
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "rolled-back.yaml"
            with (
                mock.patch("releases.ROLLED_BACK", written),
                redirect_stdout(io.StringIO()) as given,
                redirect_stderr(io.StringIO()) as told,
            ):
                roll_back(self.releases, None)
            self.assertEqual(written.read_bytes(), b"1700000001")
        self.assertEqual(given.getvalue(), "1700000001 Architecture=x86_64\n")
        self.assertEqual(told.getvalue(), "Rolling shop back from 1700000002 to 1700000001.\n")

    def test_without_region_or_credentials_it_says_what_to_do(self):
        bare = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"}
        for variables, message in [
            ({}, "Set AWS_REGION"),
            ({"AWS_DEFAULT_REGION": "eu-central-1"}, "Sign in to the stack's account"),
        ]:
            command = [sys.executable, SCRIPT, "list", STACK]
            run = subprocess.run(command, env=bare | variables, capture_output=True, text=True, timeout=60)
            self.assertEqual((run.returncode, run.stdout), (1, ""))
            self.assertRegex(run.stderr, f"^error: .*{message}")


class TestRecipes(unittest.TestCase):
    """The recipes, with stand-ins for SAM and for releases.py."""

    def run_goal(self, goal: str, *more: str) -> tuple[str, str]:
        """What is printed, and what SAM is given."""
        with tempfile.TemporaryDirectory() as folder:
            sam, python, given = (Path(folder) / name for name in ("sam", "python", "given"))
            sam.write_text(f'#!/bin/sh\necho "$@" >> {given}\n')
            python.write_text('#!/bin/sh\n[ "$2" != fetch ] || echo 1700000001 Architecture=x86_64\n')
            for it in (sam, python):
                it.chmod(0o755)
            parameters = "PARAMETERS=OriginSecret=letmein LogLevel=INFO"
            run = subprocess.run(
                ["make", "--assume-old=package", f"SAM={sam}", goal, parameters, *more],
                cwd=SCRIPT.parents[1],
                env=os.environ | {"ORIGIN_SECRET": "hush"},
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertEqual(run.returncode, 0, run.stderr)
            return run.stdout + run.stderr, given.read_text()

    def test_no_value_of_a_parameter_is_printed(self):
        for goal in ("deploy", "roll-back"):
            told, given = self.run_goal(goal)
            for secret in ("letmein", "hush"):
                self.assertNotIn(secret, told)
                self.assertIn(f" OriginSecret={secret} ", given)
            self.assertTrue(goal != "deploy" or "with OriginSecret LogLevel\n" in told, told)

    def test_alarms_are_heeded_unless_somebody_says_so_each_time(self):
        for more, expected in ((), "false"), (("REGARDLESS_OF_ALARMS=yes",), "true"):
            given = self.run_goal("deploy", *more)[1]
            self.assertIn(f" ShiftRegardlessOfAlarms={expected} ", given)

    def test_a_roll_back_has_the_processor_of_the_release(self):
        self.assertRegex(
            self.run_goal("roll-back")[1], "Release=[0-9]{10}-1700000001 Architecture=x86_64 "
        )


if __name__ == "__main__":
    unittest.main()
