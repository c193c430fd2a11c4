"""Keeps what is deployed, and brings it back without a build.

Usage: releases.py begin STACK RELEASE ARCHITECTURE
                                              before a deployment, puts target/package/template.yaml aside
       releases.py settle STACK RELEASE       after it, however it ended: keeps it if it is deployed
       releases.py list STACK                 shows what is kept, the newest first, and what is deployed
       releases.py fetch STACK [RELEASE]      writes target/package/rolled-back.yaml: that release, or the one
                                              that the deployed one replaced, and prints its parameters

A release is the template that SAM has packaged: it names the code in the bucket that SAM keeps, by its
content. It is kept in that bucket, with the release that it replaced, the processor that it
was built for. `make deploy` and `make roll-back` run this.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import boto3
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

ROOT = Path(__file__).resolve().parent.parent
DEPLOYED = ROOT / "target" / "package" / "template.yaml"
ROLLED_BACK = ROOT / "target" / "package" / "rolled-back.yaml"
# The stack that `sam deploy --resolve-s3` makes, once in an account and region.
SAM_STACK = "aws-sam-cli-managed-default"
# Stands for nothing in what is noted of a release.
NONE = "none"
# Stacks that were never made, or are gone, have parameters and run nothing.
RUNS_NOTHING = ("ROLLBACK_", "CREATE_FAILED", "DELETE_")
# Nobody knows what it will be, or whether all of it is so.
UNSETTLED = ("UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED")


def explained(error: Exception) -> str:
    """An error, and what to do where somebody has forgotten what all commands need."""
    match error:
        case NoRegionError():
            return f"{error} Set AWS_REGION to the stack's."
        case NoCredentialsError() | PartialCredentialsError():
            return f"{error}. Sign in to the stack's account as for the AWS command line, or set AWS_PROFILE."
    return str(error)


def code_of(release: str) -> str:
    """Which release's code is deployed: a roll-back has a number of its own, and that one's after it."""
    return release.rsplit("-", 1)[-1]


class Deployed(NamedTuple):
    """What a stack runs."""

    # Its parameter: when the deployment began and, of a roll-back, the release that it brought back.
    release: str
    # Whether that may be another one in a moment.
    is_changing: bool

    @property
    def code(self) -> str:
        return code_of(self.release)


class NothingDeployed(LookupError):
    """SAM has deployed nothing in the account and region, so there is no bucket."""


class Releases:
    """The releases of a stack."""

    def __init__(self, stack: str, cloudformation, s3) -> None:
        self.stack = stack
        self.cloudformation = cloudformation
        self.s3 = s3
        described = self.describe(SAM_STACK)
        if described is None:
            raise NothingDeployed(f"nothing was deployed with SAM in this account and region: no {SAM_STACK}")
        outputs = described["Outputs"]
        self.bucket = next(it["OutputValue"] for it in outputs if it["OutputKey"] == "SourceBucket")

    def describe(self, stack: str) -> dict | None:
        try:
            return self.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise

    def key(self, release: str) -> str:
        return f"{self.stack}/releases/{release}.yaml"

    def key_of_begun(self, release: str) -> str:
        return self.key(f"{release}.begun")

    def deployed(self) -> Deployed:
        described = self.describe(self.stack) or {}
        values = [
            it["ParameterValue"] for it in described.get("Parameters", []) if it["ParameterKey"] == "Release"
        ]
        status = described.get("StackStatus", "")
        # What is cleaned up after a deployment, or after one that failed, is old code.
        is_changing = status.endswith("_IN_PROGRESS") and "CLEANUP" not in status
        if not values or status.startswith(RUNS_NOTHING):
            return Deployed("", is_changing)
        return Deployed(values[0], is_changing or status in UNSETTLED)

    def stored(self, pattern: str) -> list[str]:
        """The releases whose objects are called so, the newest first."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=self.key("").removesuffix(".yaml")
        )
        names = [Path(it["Key"]).stem for page in pages for it in page.get("Contents", [])]
        found = (re.fullmatch(pattern, name) for name in names)
        return sorted((match[1] for match in found if match), reverse=True)

    def kept(self) -> list[str]:
        """The releases that can be brought back, the newest first."""
        return self.stored("([0-9]{10})")

    def begun(self) -> list[str]:
        """Those of which it is not known whether they were ever deployed."""
        return self.stored(r"([0-9]{10})\.begun")

    def known_of(self, release: str) -> dict[str, str]:
        """What was noted of a release that is kept; nothing of those of earlier versions of Waymark."""
        if release not in self.kept():
            return {}
        return self.s3.head_object(Bucket=self.bucket, Key=self.key(release))["Metadata"]

    def begin(self, release: str, architecture: str, template: bytes) -> None:
        """Puts aside what is to be deployed: whoever deploys it may not see the end of that."""
        self.settle()
        known = {
            "replaces": self.deployed().code or NONE,
            "architecture": architecture,
        }
        key = self.key_of_begun(release)
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=template, Metadata=known)

    def settle(self, own: str | None = None) -> list[str]:
        """Keeps what was begun and is deployed, and forgets what was not: one's own, and what is older than the
        last deployment. Answers what it has forgotten."""
        deployed = self.deployed()
        if deployed.is_changing:
            return []
        forgotten = []
        for release in self.begun():
            begun = {"Bucket": self.bucket, "Key": self.key_of_begun(release)}
            if release == deployed.release:
                found = self.s3.get_object(**begun)
                self.s3.put_object(
                    Bucket=self.bucket,
                    Key=self.key(release),
                    Body=found["Body"].read(),
                    Metadata=found["Metadata"],
                )
            # A newer one may be somebody else's, who looks at what it will change.
            elif release == own or release < deployed.release:
                forgotten.append(release)
            else:
                continue
            self.s3.delete_object(**begun)
        return forgotten

    def before(self, deployed: str) -> str:
        """The release that the deployed one replaced."""
        kept, replaced = self.kept(), self.known_of(deployed).get("replaces")
        if replaced is None:
            replaced = next((release for release in kept if release < deployed), NONE)
        if replaced not in kept:
            raise LookupError(
                f"nothing is kept from before the release {deployed or 'that is deployed'} of {self.stack}"
                + (f", which replaced {replaced}" if replaced != NONE else "")
            )
        return replaced

    def fetch(self, wanted: str | None) -> tuple[str, bytes, dict[str, str]]:
        """A release, or the one that the deployed one replaced: its template, and what is known of it."""
        self.settle()
        if wanted is None:
            wanted = self.before(self.deployed().code)
        kept = self.kept()
        if wanted not in kept:
            raise LookupError(f"{self.stack} has no release {wanted}; there are {', '.join(kept)}")
        found = self.s3.get_object(Bucket=self.bucket, Key=self.key(wanted))
        return wanted, found["Body"].read(), found["Metadata"]

    def list(self) -> list[str]:
        """A line for each release that can be brought back."""
        deployed = self.deployed()
        marks = {deployed.code: " deployed"}
        try:
            marks[self.before(deployed.code)] = " before it: make roll-back"
        except LookupError:
            pass
        begun = [f"{release} begun, perhaps not deployed" for release in self.begun()]
        return begun + [f"{release}{marks.get(release, '')}" for release in self.kept()]


def roll_back(releases: Releases, wanted: str | None) -> None:
    """Writes the template, and prints the parameters that go with it."""
    release, template, known = releases.fetch(wanted)
    ROLLED_BACK.parent.mkdir(parents=True, exist_ok=True)
    ROLLED_BACK.write_bytes(template)
    architecture = known.get("architecture")
    what = f"Rolling {releases.stack} back from {releases.deployed().code} to {release}"
    if architecture is None:
        what += "; it is not known for which processor that was built (PARAMETERS=Architecture=… tells it)"
    print(what + ".", file=sys.stderr)
    print(release, *([f"Architecture={architecture}"] if architecture else []))


def main() -> int:
    command, *arguments = sys.argv[1:] or [""]
    takes = {"begin": (3,), "settle": (2,), "list": (1,), "fetch": (1, 2)}
    if len(arguments) not in takes.get(command, ()):
        print(__doc__, file=sys.stderr)
        return 2
    stack, *rest = arguments
    try:
        releases = Releases(stack, boto3.client("cloudformation"), boto3.client("s3"))
        if command == "begin":
            releases.begin(*rest, DEPLOYED.read_bytes())
        elif command == "settle":
            if rest[0] in releases.settle(*rest):
                print("Nothing was deployed, so no release is kept.", file=sys.stderr)
        elif command == "list":
            print(*releases.list(), sep="\n")
        else:
            roll_back(releases, *(rest or [None]))
    except NothingDeployed as nothing:
        print(f"note: {nothing}", file=sys.stderr)
        return 1
    except (LookupError, BotoCoreError, ClientError) as error:
        print(f"error: {explained(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
