"""Writes what a new stack needs to import tables that are there already (docs/operations.md).

Usage: tables_to_import.py STACK [TABLE...]

TABLE is a table's name without the stack's: `feature-flags flag-changes`. Without any, it is all tables, as a
deleted stack leaves them; name those that are there where some are not, and the next deployment makes the
others. An import into a new stack takes a template of the imported resources alone. `target/import` gets that
template, and the list of these tables. It asks AWS nothing.
"""

import json
import sys
from pathlib import Path

from cfnlint.decode import cfn_yaml

ROOT = Path(__file__).resolve().parent.parent
STACK = "${AWS::StackName}"


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


def to_import(template: dict, stack: str, wanted: list[str]) -> dict[str, object]:
    """The files by their names. Refuses tables that the template does not know."""
    tables = {
        # The next deployment sets the template's own policy, and its ceilings.
        name_of(resource).removeprefix(f"{STACK}-"): (
            name,
            {**without_ceilings(resource), "DeletionPolicy": "Retain"},
        )
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::DynamoDB::Table"
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
    return {
        "template.json": {"Parameters": parameters, "Resources": dict(chosen)},
        "tables.json": existing,
    }


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: tables_to_import.py STACK [TABLE...]", file=sys.stderr)
        return 2
    stack, *wanted = sys.argv[1:]
    try:
        contents = to_import(cfn_yaml.load(str(ROOT / "template.yaml")), stack, wanted)
    except LookupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    folder = ROOT / "target" / "import"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    count = len(contents["tables.json"])
    print(f"{folder.relative_to(ROOT)} has what imports {count} tables of {stack}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
