"""What `make roll-back` brings back. Run by `make test`."""

import io
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging"))
from releases import SAM_STACK, Releases, code_of


class Account:
    """CloudFormation and S3, as far as releases use them."""

    def __init__(self, release: str | None) -> None:
        self.release = release
        self.objects = {}

    def describe_stacks(self, StackName):
        if StackName == SAM_STACK:
            return {"Stacks": [{"Outputs": [{"OutputKey": "SourceBucket", "OutputValue": "b"}]}]}
        value = {"ParameterKey": "Release", "ParameterValue": self.release}
        return {"Stacks": [{"Parameters": [value] if self.release else []}]}

    def put_object(self, Bucket, Key, Body):
        self.objects[Bucket, Key] = Body

    def get_object(self, Bucket, Key):
        return {"Body": io.BytesIO(self.objects[Bucket, Key])}

    def get_paginator(self, name):
        assert name == "list_objects_v2"
        return self

    def paginate(self, Bucket, Prefix):
        keys = [key for bucket, key in self.objects if bucket == Bucket and key.startswith(Prefix)]
        # A page may be empty, and has no contents then.
        return [{}, *({"Contents": [{"Key": key}]} for key in keys)]


class TestReleases(unittest.TestCase):
    def releases(self, deployed, kept=("1700000001", "1700000002", "1700000003")):
        account = Account(None)
        releases = Releases("shop", account, account)
        for release in kept:
            account.release = release
            self.assertTrue(releases.keep(release, release.encode()))
        account.release = "1700000009"
        Releases("shop-staging", account, account).keep("1700000009", b"another stack's")
        account.release = deployed
        return releases

    def test_what_was_not_deployed_is_not_kept(self):
        releases = self.releases("1700000003")
        self.assertFalse(releases.keep("1700000004", b"refused"))
        self.assertEqual(releases.kept()[0], "1700000003")

    def test_the_one_before_what_is_deployed_is_brought_back(self):
        self.assertEqual(self.releases("1700000003").fetch(None), ("1700000002", b"1700000002"))

    def test_what_was_brought_back_counts_as_what_it_is(self):
        # Rolled back once, so the next one is the release before that, and not the one that failed.
        self.assertEqual(self.releases("1700000008-1700000002").fetch(None)[0], "1700000001")
        self.assertEqual(code_of("1700000008-1700000002"), "1700000002")

    def test_a_release_may_be_named(self):
        self.assertEqual(self.releases("1700000002").fetch("1700000003")[1], b"1700000003")
        with self.assertRaisesRegex(LookupError, "no release 1700000009; there are 1700000003"):
            self.releases("1700000002").fetch("1700000009")

    def test_where_there_is_nothing_before_it_says_so(self):
        for deployed in ("1700000001", None):
            with self.assertRaisesRegex(LookupError, "nothing is kept from before"):
                self.releases(deployed).fetch(None)


if __name__ == "__main__":
    unittest.main()
