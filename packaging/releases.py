"""Keeps what was deployed, and brings it back without a build.

Usage: releases.py keep STACK RELEASE     after a deployment, keeps target/package/template.yaml
       releases.py list STACK             shows what is kept, the newest first, and what is deployed
       releases.py fetch STACK [RELEASE]  writes target/package/rolled-back.yaml: that release, or the one
                                          before what is deployed, and prints the number of the release

A release is the template that SAM has packaged: it names the code in the bucket that SAM keeps, by its
content. It is kept in that bucket. `make deploy` and `make roll-back` run this.
"""

import re
import sys
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

ROOT = Path(__file__).resolve().parent.parent
DEPLOYED = ROOT / "target" / "package" / "template.yaml"
ROLLED_BACK = ROOT / "target" / "package" / "rolled-back.yaml"
# The stack that `sam deploy --resolve-s3` makes, once in an account and region.
SAM_STACK = "aws-sam-cli-managed-default"


def code_of(release: str) -> str:
    """Which release's code is deployed: a roll-back has a number of its own, and that one's after it."""
    return release.rsplit("-", 1)[-1]


class Releases:
    """The releases of a stack."""

    def __init__(self, stack: str, cloudformation, s3) -> None:
        self.stack = stack
        self.cloudformation = cloudformation
        self.s3 = s3
        outputs = self.describe(SAM_STACK)["Outputs"]
        self.bucket = next(it["OutputValue"] for it in outputs if it["OutputKey"] == "SourceBucket")

    def describe(self, stack: str) -> dict:
        return self.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]

    def key(self, release: str) -> str:
        return f"{self.stack}/releases/{release}.yaml"

    def deployed(self) -> str:
        """The release whose code the stack runs."""
        parameters = self.describe(self.stack).get("Parameters", [])
        values = [it["ParameterValue"] for it in parameters if it["ParameterKey"] == "Release"]
        return code_of(values[0]) if values else ""

    def kept(self) -> list[str]:
        """The releases that can be brought back, the newest first."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=self.key("").removesuffix(".yaml")
        )
        names = [Path(it["Key"]).stem for page in pages for it in page.get("Contents", [])]
        return sorted((name for name in names if re.fullmatch("[0-9]{10}", name)), reverse=True)

    def keep(self, release: str, template: bytes) -> bool:
        """Keeps what is deployed; not what somebody has looked at and refused."""
        if self.deployed() != release:
            return False
        self.s3.put_object(Bucket=self.bucket, Key=self.key(release), Body=template)
        return True

    def fetch(self, wanted: str | None) -> tuple[str, bytes]:
        """A release, or the one before what is deployed."""
        kept, deployed = self.kept(), self.deployed()
        if wanted is None:
            wanted = next((release for release in kept if release < deployed), None)
            if wanted is None:
                raise LookupError(f"nothing is kept from before the release {deployed} of {self.stack}")
        if wanted not in kept:
            raise LookupError(f"{self.stack} has no release {wanted}; there are {', '.join(kept)}")
        found = self.s3.get_object(Bucket=self.bucket, Key=self.key(wanted))
        return wanted, found["Body"].read()


def main() -> int:
    match sys.argv[1:]:
        case ["keep" | "list" | "fetch" as command, stack, *rest] if len(rest) <= 1:
            releases = Releases(stack, boto3.client("cloudformation"), boto3.client("s3"))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    try:
        if command == "keep":
            if not releases.keep(*rest, DEPLOYED.read_bytes()):
                print("Nothing was deployed, so no release is kept.", file=sys.stderr)
        elif command == "list":
            deployed = releases.deployed()
            for release in releases.kept():
                print(f"{release}{' deployed' if release == deployed else ''}")
        else:
            release, template = releases.fetch(*(rest or [None]))
            ROLLED_BACK.parent.mkdir(parents=True, exist_ok=True)
            ROLLED_BACK.write_bytes(template)
            print(release)
    except (LookupError, BotoCoreError, ClientError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
