"""Deploys Waymark with SAM CLI.

`make doctor`, `make deploy`, `make roll-back` and `make releases` run this script, as does `waymark-deploy` in
a release archive.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from preflight import NEW, preflight
from releases import NothingDeployed, Releases, describe, explain

ROOT = Path(__file__).resolve().parent.parent
PACKAGED = ROOT / "target" / "package" / "template.yaml"
ROLLED_BACK = ROOT / "target" / "package" / "rolled-back.yaml"
SAM = Path(sys.executable).parent / "sam"
MAX_STACK_NAME = 50


def name_and_value(argument: str) -> tuple[str, str]:
    """Returns a parameter's name and value. SAM accepts empty values and blanks only in quotes."""
    name, separator, value = argument.partition("=")
    if not separator or not name.isalnum():
        raise argparse.ArgumentTypeError(f"{argument!r} is not of the form NAME=VALUE")
    is_plain = value and (value.startswith('"') or not any(it.isspace() for it in value))
    return name, value if is_plain else f'"{value}"'


def stack_name(text: str) -> str:
    """Returns the name of a stack. Names of resources add to it, and a backup vault's has at most 50 characters."""
    if len(text) > MAX_STACK_NAME:
        raise argparse.ArgumentTypeError(f"{text!r} has more than {MAX_STACK_NAME} characters")
    return text


def template_of(architecture: str) -> Path:
    """Returns the template whose functions have an architecture. An archive has one for each."""
    in_archive = ROOT / architecture / "template.yaml"
    return in_archive if in_archive.exists() else ROOT / "template.yaml"


def sam(command: str, *arguments: object) -> bool:
    """Runs SAM CLI, and returns `true` if it succeeds."""
    variables = os.environ | {"SAM_CLI_TELEMETRY": "0"}
    return subprocess.run([SAM, command, *map(str, arguments)], env=variables).returncode == 0


def sam_deploy(
    options: argparse.Namespace, template: Path, parameters: dict[str, str], *, asks: bool = False
) -> bool:
    """Deploys a packaged template. An omitted parameter keeps the stack's value."""
    return sam(
        *("deploy", "--template-file", template, "--stack-name", options.stack),
        *("--resolve-s3", "--s3-prefix", options.stack, "--capabilities", "CAPABILITY_IAM"),
        "--confirm-changeset" if asks else "--no-confirm-changeset",
        "--no-fail-on-empty-changeset",
        *("--tags", "application=waymark", f"stage={options.stage}"),
        *("--parameter-overrides", *(f"{name}={value}" for name, value in parameters.items())),
    )


def status_of(cloudformation, stack: str) -> str | None:
    return (describe(cloudformation, stack) or {}).get("StackStatus")


def edge_secret(options: argparse.Namespace, cloudformation) -> dict[str, str]:
    """Returns the secret of the distribution when a deployment turns it on. Later deployments keep it."""
    described = (describe(cloudformation, options.stack) or {}).get("Parameters", [])
    was_on = {"ParameterKey": "Edge", "ParameterValue": "true"} in described
    turns_on = options.parameters.get("Edge") == "true" and not was_on
    return {"EdgeSecret": secrets.token_hex(32)} if turns_on else {}


def deploy(options: argparse.Namespace, cloudformation, s3) -> bool:
    """Packages and deploys. Protects the tables of a new stack after it is created.

    CloudFormation cannot delete protected tables, so a failed creation would end as ROLLBACK_FAILED.
    """
    stack, release = options.stack, str(int(time.time()))
    template = template_of(options.architecture)
    PACKAGED.parent.mkdir(parents=True, exist_ok=True)
    if not sam(
        *("package", "--template-file", template, "--output-template-file", PACKAGED),
        *("--resolve-s3", "--s3-prefix", stack),
    ):
        return False
    status = status_of(cloudformation, stack)
    if status == "ROLLBACK_COMPLETE":
        print(f"Deleting the stack {stack}, whose first deployment failed. It has no resources.")
        cloudformation.delete_stack(StackName=stack)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack)
    parameters = {
        "Architecture": options.architecture,
        "Stage": options.stage,
        "Release": release,
        "ShiftRegardlessOfAlarms": "true" if options.regardless_of_alarms else "false",
        "DeletionProtection": "true",
        **edge_secret(options, cloudformation),
        **options.parameters,
    }
    releases = Releases(stack, cloudformation, s3)
    releases.begin(release, options.architecture, PACKAGED.read_bytes())
    # The names of the parameters, without their values: one is a secret. SAM does not print its value.
    named = f", with {' '.join(options.parameters)}" if options.parameters else ""
    print(f"Deploying {stack}, release {release}, for {options.architecture}{named}", flush=True)
    try:
        if status not in NEW:
            return sam_deploy(options, PACKAGED, parameters, asks=not options.yes)
        unprotected = parameters | {"DeletionProtection": "false"}
        if not sam_deploy(options, PACKAGED, unprotected, asks=not options.yes):
            if status_of(cloudformation, stack) in NEW:
                print("The failed deployment left no resources. Remove its cause and deploy again.")
            return False
        # If the user rejected the change set, SAM succeeds too.
        if status_of(cloudformation, stack) != "CREATE_COMPLETE" or parameters == unprotected:
            return True
        print("Protecting the tables from deletion", flush=True)
        return sam_deploy(options, PACKAGED, parameters)
    finally:
        if release in releases.settle(release):
            print("Nothing was deployed, so the release is not kept.", file=sys.stderr)


def roll_back(options: argparse.Namespace, cloudformation, s3) -> bool:
    """Deploys a kept release again, without a build."""
    releases = Releases(options.stack, cloudformation, s3)
    release, template, known = releases.fetch(options.to)
    ROLLED_BACK.parent.mkdir(parents=True, exist_ok=True)
    ROLLED_BACK.write_bytes(template)
    parameters = {"Release": f"{int(time.time())}-{release}"}
    what = f"Rolling {options.stack} back from {releases.deployed().code} to {release}"
    if "architecture" in known:
        parameters["Architecture"] = known["architecture"]
    else:
        what += "; its processor architecture is unknown (set it with Architecture=…)"
    print(what + ".", flush=True)
    return sam_deploy(options, ROLLED_BACK, parameters | options.parameters)


def list_releases(options: argparse.Namespace, cloudformation, s3) -> bool:
    """Lists the releases that can be rolled back to, the newest first, and the deployed one."""
    print(*Releases(options.stack, cloudformation, s3).list(), sep="\n")
    return True


def doctor(options: argparse.Namespace) -> bool:
    """Checks the account, the region and this computer. Each finding has its remedy."""
    template = template_of(options.architecture)
    is_built = template.parent == ROOT
    return preflight(options.stack, template, options.parameters, ROOT, is_built)


COMMANDS = {"doctor": doctor, "deploy": deploy, "roll-back": roll_back, "releases": list_releases}


def parse(arguments: list[str]) -> argparse.Namespace:
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:{width}}{run.__doc__.splitlines()[0]}" for name, run in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="waymark-deploy",
        description="\n".join(["Deploys Waymark with SAM CLI.", "", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument(
        "parameters", metavar="NAME=VALUE", nargs="*", type=name_and_value, help="parameters of template.yaml"
    )
    parser.add_argument("--stack", default="waymark", type=stack_name, help="name of the stack (waymark)")
    parser.add_argument("--stage", default="production", help="purpose of the stack (production)")
    parser.add_argument(
        "--architecture", default="arm64", choices=["arm64", "x86_64"], help="processor of the functions (arm64)"
    )
    parser.add_argument("--yes", action="store_true", help="deploy without confirmation, as in CI")
    parser.add_argument("--unchecked", action="store_true", help="deploy without the checks of doctor")
    parser.add_argument("--regardless-of-alarms", action="store_true", help="let no alarm stop the deployment")
    parser.add_argument("--to", metavar="RELEASE", help="release to restore (the previous one)")
    options = parser.parse_intermixed_args(arguments)
    options.run = COMMANDS[options.command]
    options.parameters = dict(options.parameters)
    # Read from the environment, so that the secret is in no command and no output.
    secret = os.environ.get("ORIGIN_SECRET")
    if secret:
        options.parameters.setdefault("OriginSecret", secret)
    return options


def main() -> int:
    options = parse(sys.argv[1:])
    # SAM CLI and boto3 read AWS_DEFAULT_REGION; other tools read AWS_REGION first.
    region = os.environ.get("AWS_REGION") or os.environ.pop("AWS_DEFAULT_REGION", None)
    if region:
        os.environ["AWS_DEFAULT_REGION"] = region
    try:
        if options.run is doctor or (options.run is deploy and not options.unchecked):
            is_ready = doctor(options)
            if options.run is doctor or not is_ready:
                return 0 if is_ready else 1
        is_done = options.run(options, boto3.client("cloudformation"), boto3.client("s3"))
        return 0 if is_done else 1
    except NothingDeployed as nothing:
        print(f"note: {nothing}", file=sys.stderr)
    except (LookupError, BotoCoreError, ClientError) as error:
        print(f"error: {explain(error)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
