"""Writes what a new stack needs to import the tables that a deleted one left (docs/operations.md).

Usage: tables_to_import.py STACK

An import into a new stack takes a template of the imported resources alone. `target/import` gets that
template, and the list of the tables that are there.
"""

import json
import sys
from pathlib import Path

from cfnlint.decode import cfn_yaml

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: tables_to_import.py STACK", file=sys.stderr)
        return 2
    stack = sys.argv[1]
    template = cfn_yaml.load(str(ROOT / "template.yaml"))
    tables = {
        # The next deployment sets the template's own policy, and its ceilings.
        name: {
            **resource,
            "DeletionPolicy": "Retain",
            "Properties": {
                member: value
                for member, value in resource["Properties"].items()
                if member != "OnDemandThroughput"
            },
        }
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::DynamoDB::Table"
    }
    parameters = {name: template["Parameters"][name] for name in ("DeletionProtection", "Stage")}
    existing = [
        {
            "ResourceType": resource["Type"],
            "LogicalResourceId": name,
            "ResourceIdentifier": {
                "TableName": resource["Properties"]["TableName"]["Fn::Sub"].replace(
                    "${AWS::StackName}", stack
                )
            },
        }
        for name, resource in tables.items()
    ]
    folder = ROOT / "target" / "import"
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "template.json": {"Parameters": parameters, "Resources": tables},
        "tables.json": existing,
    }
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(f"{folder.relative_to(ROOT)} has what imports {len(existing)} tables of {stack}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
