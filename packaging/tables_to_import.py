"""Writes the files with which a new stack imports existing tables (docs/operations.md).

Usage: tables_to_import.py STACK [--vault] [TABLE...]

TABLE is a table name without the stack's prefix: `feature-flags flag-changes`. Without names, all
tables are imported. If some are missing, name the existing ones; the next deployment creates the
others. The option --vault adds the backup vault, which exists if copies in another region were on.

An import into a new stack needs a template with only the imported resources. The script writes that
template and the list of resources to `target/import`. It does not call AWS.
"""

import json
import sys
from pathlib import Path

from cfnlint.decode import cfn_yaml

ROOT = Path(__file__).resolve().parent.parent
STACK = "${AWS::StackName}"
TABLE = "AWS::DynamoDB::Table"
VAULT = "AWS::Backup::BackupVault"
# Properties that depend on conditions.
CONDITIONAL = ("OnDemandThroughput", "SSESpecification")


def unconditional(value):
    """Removes the ceilings and the key of a table and its indexes: they depend on conditions, and imports have
    none."""
    if isinstance(value, dict):
        return {name: unconditional(it) for name, it in value.items() if name not in CONDITIONAL}
    if isinstance(value, list):
        return [unconditional(it) for it in value]
    return value


def name_of(table: dict) -> str:
    """Returns the name of a table, with the expression for the stack's name."""
    return table["Properties"]["TableName"]["Fn::Sub"]


def for_import(resource: dict) -> dict:
    """Returns a resource for the import. The next deployment sets its policy, condition, key and ceilings."""
    alone = {**unconditional(resource), "DeletionPolicy": "Retain"}
    alone.pop("Condition", None)
    return alone


def vaults(template: dict, stack: str) -> tuple[dict, list[dict]]:
    """Returns the backup vault, named like the stack: as a template resource and as an existing one."""
    found = {
        name: for_import(resource)
        for name, resource in template["Resources"].items()
        if resource["Type"] == VAULT
    }
    existing = [
        {
            "ResourceType": VAULT,
            "LogicalResourceId": name,
            "ResourceIdentifier": {"BackupVaultName": stack},
        }
        for name in found
    ]
    return found, existing


def to_import(template: dict, stack: str, wanted: list[str], with_vault: bool = False) -> dict[str, object]:
    """Returns the files by name.

    Raises LookupError for a table that is not in the template.
    """
    tables = {
        name_of(resource).removeprefix(f"{STACK}-"): (name, for_import(resource))
        for name, resource in template["Resources"].items()
        if resource["Type"] == TABLE
    }
    unknown = sorted(set(wanted) - set(tables))
    if unknown:
        raise LookupError(f"no table has the name {' '.join(unknown)}; the tables are {' '.join(tables)}")
    chosen = [it for table, it in tables.items() if not wanted or table in wanted]
    parameters = {name: template["Parameters"][name] for name in ("DeletionProtection", "Stage")}
    existing = [
        {
            "ResourceType": resource["Type"],
            "LogicalResourceId": name,
            "ResourceIdentifier": {"TableName": name_of(resource).replace(STACK, stack)},
        }
        for name, resource in chosen
    ]
    more, existing_more = vaults(template, stack) if with_vault else ({}, [])
    return {
        "template.json": {"Parameters": parameters, "Resources": {**dict(chosen), **more}},
        "tables.json": existing + existing_more,
    }


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--vault"]
    if not arguments or any(argument.startswith("-") for argument in arguments):
        print("usage: tables_to_import.py STACK [--vault] [TABLE...]", file=sys.stderr)
        return 2
    stack, *wanted = arguments
    try:
        template = cfn_yaml.load(str(ROOT / "template.yaml"))
        contents = to_import(template, stack, wanted, with_vault="--vault" in sys.argv)
    except LookupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    folder = ROOT / "target" / "import"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    types = [it["ResourceType"] for it in contents["tables.json"]]
    vault = " and the vault" if VAULT in types else ""
    print(f"{folder.relative_to(ROOT)} has the import files of {types.count(TABLE)} tables{vault} of {stack}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
