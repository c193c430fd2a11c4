"""Tests the releases that `make roll-back` deploys again. Run by `make test`."""

import io
import sys
import unittest
from pathlib import Path

from botocore.exceptions import ClientError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging"))
from releases import SAM_STACK, Releases, code_of

STACK = "shop"


class Account:
    """A fake of CloudFormation and S3 with the operations that releases use."""

    def __init__(self) -> None:
        self.release = None
        self.parameters = {}
        self.status = "UPDATE_COMPLETE"
        self.objects = {}

    def describe_stacks(self, StackName):
        if StackName == SAM_STACK:
            return {"Stacks": [{"Outputs": [{"OutputKey": "SourceBucket", "OutputValue": "b"}]}]}
        if self.release is None:
            message = f"Stack with id {StackName} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DescribeStacks")
        values = {**self.parameters, "Release": self.release}.items()
        values = [{"ParameterKey": name, "ParameterValue": value} for name, value in values]
        return {"Stacks": [{"Parameters": values, "StackStatus": self.status}]}

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
        # Empty pages have no contents.
        return [{}, *({"Contents": [{"Key": key}]} for key in keys)]


class TestReleases(unittest.TestCase):
    def setUp(self):
        self.account = Account()
        self.releases = Releases(STACK, self.account, self.account)
        Releases("shop-staging", self.account, self.account).begin("1700000009", "arm64", b"another's")

    def begin(self, release, architecture="arm64"):
        self.releases.begin(release, architecture, release.encode())

    def deploy(self, release, architecture="arm64"):
        """Deploys like `make deploy`."""
        self.begin(release, architecture)
        self.account.release = release
        self.assertEqual(self.releases.settle(release), [])

    def roll_back(self, now, wanted=None):
        """Rolls back like `make roll-back`."""
        release, _, _ = self.releases.fetch(wanted)
        self.account.release = f"{now}-{release}"
        return release

    def test_roll_back_restores_the_replaced_release(self):
        self.deploy("1700000001")
        self.deploy("1700000002")
        self.assertEqual(self.roll_back("1700000003"), "1700000001")
        self.assertEqual(code_of("1700000003-1700000001"), "1700000001")
        self.deploy("1700000004")
        # The second release is newer, but was rolled back.
        self.assertEqual(self.roll_back("1700000005"), "1700000001")
        with self.assertRaisesRegex(LookupError, "no release before 1700000001 of shop is kept"):
            self.releases.fetch(None)

    def test_second_roll_back_goes_one_release_further(self):
        for release in ("1700000001", "1700000002", "1700000003"):
            self.deploy(release)
        self.assertEqual(self.roll_back("1700000004"), "1700000002")
        self.assertEqual(self.roll_back("1700000005"), "1700000001")

    def test_releases_without_predecessor_are_restored_by_number(self):
        for release in ("1700000001", "1700000002", "1700000003"):
            self.account.put_object("b", f"shop/releases/{release}.yaml", release.encode(), {})
        self.account.release = "1700000008-1700000002"
        self.assertEqual(self.releases.fetch(None), ("1700000001", b"1700000001", {}))
        self.account.release = None
        with self.assertRaisesRegex(LookupError, "no release before"):
            self.releases.fetch(None)

    def test_failed_deployments_are_not_kept(self):
        self.deploy("1700000001")
        for status in ("UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"):
            self.begin("1700000002")
            self.account.status = status
            self.assertEqual(self.releases.settle("1700000002"), ["1700000002"])
        self.account.status = "UPDATE_COMPLETE"
        self.assertEqual((self.releases.kept(), self.releases.begun()), (["1700000001"], []))

    def test_stacks_that_were_never_created_run_nothing(self):
        self.begin("1700000001")
        self.account.release, self.account.status = "1700000001", "ROLLBACK_COMPLETE"
        self.assertEqual(self.releases.settle("1700000001"), ["1700000001"])
        self.assertEqual(self.releases.kept(), [])

    def test_unconfirmed_deployments_are_kept_if_deployed(self):
        self.deploy("1700000001")
        self.begin("1700000002")
        self.account.release, self.account.status = "1700000002", "UPDATE_IN_PROGRESS"
        self.assertEqual(self.releases.settle("1700000002"), [])
        self.assertEqual(self.releases.kept(), ["1700000001"], "the deployment can still be rolled back")
        self.assertEqual(self.releases.list()[0], "1700000002 begun, possibly not deployed")
        self.account.status = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
        self.assertEqual(self.roll_back("1700000003"), "1700000001")
        self.assertEqual(self.releases.fetch("1700000002")[1], b"1700000002")

        # The next successful deployment discards a failed one.
        self.begin("1700000004")
        self.account.status = "UPDATE_ROLLBACK_COMPLETE"
        self.begin("1700000005")
        self.account.release, self.account.status = "1700000005", "UPDATE_COMPLETE"
        self.assertEqual(self.releases.settle("1700000005"), ["1700000004"])
        self.assertEqual(self.releases.begun(), [])
        self.assertEqual(
            self.releases.list(),
            ["1700000005 deployed", "1700000002", "1700000001 previous: make roll-back"],
        )

    def test_roll_back_accepts_a_release_number(self):
        for release in ("1700000001", "1700000002"):
            self.deploy(release)
        self.assertEqual(self.roll_back("1700000003", "1700000002"), "1700000002")
        with self.assertRaisesRegex(LookupError, "no release 1700000009; the kept ones are 1700000002"):
            self.releases.fetch("1700000009")

    def test_releases_have_their_architecture(self):
        self.deploy("1700000001", "x86_64")
        self.deploy("1700000002", "arm64")
        self.assertEqual(self.releases.fetch(None)[2]["architecture"], "x86_64")


if __name__ == "__main__":
    unittest.main()
