"""Writes what a new stack needs to import tables that are there already (docs/operations.md).

Usage: tables_to_import.py STACK [--vault] [TABLE...]

TABLE is a table's name without the stack's: `feature-flags flag-changes`. Without any, it is all tables, as a
deleted stack leaves them; name those that are there where some are not, and the next deployment makes the
others. With --vault, it is the vault of backups too, which is there if copies in another region were on. An import
into a new stack takes a template of the imported resources alone. `target/import` gets that template, and the list
of these resources. It asks AWS nothing.
"""

import json
import sys
from pathlib import Path

from cfnlint.decode import cfn_yaml

ROOT = Path(__file__).resolve().parent.parent
STACK = "${AWS::StackName}"
TABLE = "AWS::DynamoDB::Table"
VAULT = "AWS::Backup::BackupVault"


def without_ceilings(value):
    """A table as it is imported, and its indexes: ceilings depend on conditions, which an import has none of."""
    if isinstance(value, dict):
        return {name: without_ceilings(it) for name, it in value.items() if name != "OnDemandThroughput"}
    if isinstance(value, list):
        return [without_ceilings(it) for it in value]
    return value


def name_of(table: dict) -> str:
    """The name of a table, with an expression for the stack's."""
    return table["Properties"]["TableName"]["Fn::Sub"]


def standing_alone(resource: dict) -> dict:
    """A resource as it is imported. The next deployment sets the template's own policy, condition and ceilings."""
    alone = {**without_ceilings(resource), "DeletionPolicy": "Retain"}
    alone.pop("Condition", None)
    return alone


def vaults(template: dict, stack: str) -> tuple[dict, list[dict]]:
    """The vault of backups, which is called as the stack: as a resource, and as what there is."""
    found = {
        name: standing_alone(resource)
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
    """The files by their names. Refuses tables that the template does not know."""
    tables = {
        name_of(resource).removeprefix(f"{STACK}-"): (name, standing_alone(resource))
        for name, resource in template["Resources"].items()
        if resource["Type"] == TABLE
    }
    unknown = sorted(set(wanted) - set(tables))
    if unknown:
        raise LookupError(f"there is no table {' '.join(unknown)}; there are {' '.join(tables)}")
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
    print(f"{folder.relative_to(ROOT)} has what imports {types.count(TABLE)} tables{vault} of {stack}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
