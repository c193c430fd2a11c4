"""Keeps deployed releases, so that they can be restored without a build.

A release is a template packaged by SAM. It names its code in SAM's bucket by content. The release is
kept in the same bucket, with the number of the release that it replaced and its processor
architecture. `deploy.py` uses this module.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from botocore.exceptions import ClientError, NoCredentialsError, NoRegionError, PartialCredentialsError

# The stack that `sam deploy --resolve-s3` creates once in each account and region.
SAM_STACK = "aws-sam-cli-managed-default"
# Metadata value of a release that replaced none.
NONE = "none"
# States of stacks that have parameters but run nothing: creation failed, or the stack is deleted.
RUNS_NOTHING = ("ROLLBACK_", "CREATE_FAILED", "DELETE_")
# States in which the deployed release is unknown or incomplete.
UNSETTLED = ("UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED")


def explain(error: Exception) -> str:
    """Returns an error message, with a remedy if the region or the credentials are missing."""
    if isinstance(error, NoRegionError):
        return f"{error} Set AWS_REGION to the stack's."
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return f"{error}. Sign in to the stack's account as for the AWS command line, or set AWS_PROFILE."
    return str(error)


def describe(cloudformation, stack: str) -> dict | None:
    """Returns the description of a stack, or `None` if it does not exist."""
    try:
        return cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise


def code_of(release: str) -> str:
    """Returns the release whose code runs: in a roll-back, the number after the hyphen."""
    return release.rsplit("-", 1)[-1]


class Deployed(NamedTuple):
    """The release that a stack runs."""

    # The stack's parameter: start of the deployment and, in a roll-back, the restored release.
    release: str
    # True if the release can still change.
    is_changing: bool

    @property
    def code(self) -> str:
        return code_of(self.release)


class NothingDeployed(LookupError):
    """SAM has deployed nothing in the account and region, so its bucket does not exist."""


class Releases:
    """The releases of a stack."""

    def __init__(self, stack: str, cloudformation, s3) -> None:
        self.stack = stack
        self.cloudformation = cloudformation
        self.s3 = s3
        described = describe(cloudformation, SAM_STACK)
        if described is None:
            raise NothingDeployed(f"nothing was deployed with SAM in this account and region: no {SAM_STACK}")
        outputs = described["Outputs"]
        self.bucket = next(it["OutputValue"] for it in outputs if it["OutputKey"] == "SourceBucket")

    def key(self, release: str) -> str:
        return f"{self.stack}/releases/{release}.yaml"

    def key_of_begun(self, release: str) -> str:
        return self.key(f"{release}.begun")

    def deployed(self) -> Deployed:
        described = describe(self.cloudformation, self.stack) or {}
        values = [
            it["ParameterValue"] for it in described.get("Parameters", []) if it["ParameterKey"] == "Release"
        ]
        status = described.get("StackStatus", "")
        # The cleanup after a deployment or a failure removes only old code.
        is_changing = status.endswith("_IN_PROGRESS") and "CLEANUP" not in status
        if not values or status.startswith(RUNS_NOTHING):
            return Deployed("", is_changing)
        return Deployed(values[0], is_changing or status in UNSETTLED)

    def stored(self, pattern: str) -> list[str]:
        """Returns the releases whose object names match, the newest first."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=self.key("").removesuffix(".yaml")
        )
        names = [Path(it["Key"]).stem for page in pages for it in page.get("Contents", [])]
        found = (re.fullmatch(pattern, name) for name in names)
        return sorted((match[1] for match in found if match), reverse=True)

    def kept(self) -> list[str]:
        """Returns the releases that can be restored, the newest first."""
        return self.stored("([0-9]{10})")

    def begun(self) -> list[str]:
        """Returns the releases that may never have been deployed."""
        return self.stored(r"([0-9]{10})\.begun")

    def metadata_of(self, release: str) -> dict[str, str]:
        """Returns the metadata of a kept release; empty for releases of earlier Waymark versions."""
        if release not in self.kept():
            return {}
        return self.s3.head_object(Bucket=self.bucket, Key=self.key(release))["Metadata"]

    def begin(self, release: str, architecture: str, template: bytes) -> None:
        """Stores a release before its deployment, because `settle` may not run after it."""
        self.settle()
        known = {
            "replaces": self.deployed().code or NONE,
            "architecture": architecture,
        }
        key = self.key_of_begun(release)
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=template, Metadata=known)

    def settle(self, own: str | None = None) -> list[str]:
        """Keeps the begun release that is deployed. Deletes `own` if it is not deployed, and older ones.

        Returns the deleted releases.
        """
        deployed = self.deployed()
        if deployed.is_changing:
            return []
        deleted = []
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
            # A newer release can belong to a concurrent deployment that waits for confirmation.
            elif release == own or release < deployed.release:
                deleted.append(release)
            else:
                continue
            self.s3.delete_object(**begun)
        return deleted

    def before(self, deployed: str) -> str:
        """Returns the release that the deployed one replaced."""
        kept, replaced = self.kept(), self.metadata_of(deployed).get("replaces")
        if replaced is None:
            replaced = next((release for release in kept if release < deployed), NONE)
        if replaced not in kept:
            raise LookupError(
                f"no release before {deployed or 'the deployed one'} of {self.stack} is kept"
                + (f"; that one replaced {replaced}" if replaced != NONE else "")
            )
        return replaced

    def fetch(self, wanted: str | None) -> tuple[str, bytes, dict[str, str]]:
        """Returns the template and metadata of a release, by default of the previous one."""
        self.settle()
        if wanted is None:
            wanted = self.before(self.deployed().code)
        kept = self.kept()
        if wanted not in kept:
            raise LookupError(f"{self.stack} has no release {wanted}; the kept ones are {', '.join(kept)}")
        found = self.s3.get_object(Bucket=self.bucket, Key=self.key(wanted))
        return wanted, found["Body"].read(), found["Metadata"]

    def list(self) -> list[str]:
        """Returns a line for each release that can be restored."""
        deployed = self.deployed()
        marks = {deployed.code: " deployed"}
        try:
            marks[self.before(deployed.code)] = " previous: make roll-back"
        except LookupError:
            pass
        begun = [f"{release} begun, possibly not deployed" for release in self.begun()]
        return begun + [f"{release}{marks.get(release, '')}" for release in self.kept()]
