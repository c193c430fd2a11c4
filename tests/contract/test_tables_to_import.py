"""Tests the tables that a new stack imports. Run by `make test`."""

import json
import sys
import unittest
from pathlib import Path

from cfnlint.decode import cfn_yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
from tables_to_import import to_import


class TestTablesToImport(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = cfn_yaml.load(str(ROOT / "template.yaml"))

    def test_all_tables_are_imported_by_default(self):
        files = to_import(self.template, "shop", [])
        tables = {it["LogicalResourceId"] for it in files["tables.json"]}
        declared = self.template["Resources"].items()
        self.assertEqual(
            tables, {name for name, it in declared if it["Type"] == "AWS::DynamoDB::Table"}
        )
        self.assertEqual(set(files["template.json"]["Resources"]), tables)

        files = to_import(self.template, "shop", ["errors", "flag-changes"])
        names = [it["ResourceIdentifier"]["TableName"] for it in files["tables.json"]]
        self.assertEqual(sorted(names), ["shop-errors", "shop-flag-changes"])
        self.assertEqual(sorted(files["template.json"]["Resources"]), ["ErrorsTable", "FlagChangesTable"])

    def test_retained_resources_can_be_imported(self):
        outlives = {
            name
            for name, it in self.template["Resources"].items()
            if it.get("DeletionPolicy", "").startswith("Retain")
        }
        imported = to_import(self.template, "shop", [], with_vault=True)
        self.assertEqual(set(imported["template.json"]["Resources"]), outlives)
        existing = {it["LogicalResourceId"]: it["ResourceIdentifier"] for it in imported["tables.json"]}
        self.assertEqual(set(existing), outlives)
        self.assertEqual(existing["BackupVault"], {"BackupVaultName": "shop"})

    def test_import_template_has_no_references(self):
        imported = to_import(self.template, "shop", [], with_vault=True)["template.json"]
        # The import template has no conditions and no other resources.
        self.assertNotIn("Fn::If", json.dumps(imported))
        self.assertNotIn('"Condition"', json.dumps(imported))
        self.assertNotIn("Fn::GetAtt", json.dumps(imported))
        for name, table in imported["Resources"].items():
            self.assertEqual(table["DeletionPolicy"], "Retain", name)

    def test_unknown_tables_are_rejected(self):
        with self.assertRaisesRegex(LookupError, "no table has the name error; the tables are projects"):
            to_import(self.template, "shop", ["error", "errors"])


if __name__ == "__main__":
    unittest.main()
