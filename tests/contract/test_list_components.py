"""Tests the component lists. Run by `make test`."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
from list_components import bill, checksums, crates, packages_of_page, tree

TARGET = "aarch64-unknown-linux-gnu"
PAGE = ROOT / "console"


class TestListComponents(unittest.TestCase):
    def test_crates_of_a_function_are_its_linked_crates(self):
        functions = ["get-error", "interpret-error-filters"]
        linked = crates(tree(functions, TARGET))
        names = lambda function: {name for name, _, _ in linked[function]}
        model_client = "aws-sdk-bedrockruntime"
        self.assertEqual(sorted(linked), functions)
        self.assertIn(model_client, names("interpret-error-filters"))
        self.assertNotIn(model_client, names("get-error"))
        self.assertLessEqual({"get-error", "shared", "aws-sdk-dynamodb"}, names("get-error"))
        self.assertNotIn("serde_derive", names("get-error"), "a macro is not linked")

    def test_page_components_are_dependencies_without_build_tools(self):
        lock = json.loads((PAGE / "package-lock.json").read_text(encoding="utf-8"))
        manifest = json.loads((PAGE / "package.json").read_text(encoding="utf-8"))
        listed = {it["name"]: it for it in packages_of_page(lock)}
        self.assertLessEqual(set(manifest["dependencies"]), set(listed))
        self.assertFalse(set(manifest["devDependencies"]) & set(listed))
        preact = listed["preact"]
        self.assertEqual(preact["purl"], f"pkg:npm/preact@{manifest['dependencies']['preact']}")
        self.assertEqual(preact["licenses"], [{"expression": "MIT"}])
        self.assertEqual((preact["hashes"][0]["alg"], len(preact["hashes"][0]["content"])), ("SHA-512", 128))

    def test_scoped_packages_have_the_scope_in_the_address(self):
        package = {"version": "1.0.0", "integrity": "sha512-AA==", "license": "MIT"}
        (listed,) = packages_of_page({"packages": {"": {}, "node_modules/a/node_modules/@b/c": package}})
        self.assertEqual((listed["name"], listed["purl"]), ("@b/c", "pkg:npm/%40b/c@1.0.0"))

    def test_list_has_the_archive_and_components_without_the_function(self):
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "get-error.zip"
            archive.write_bytes(b"packed")
            found = [("get-error", "0.1.0", "Apache-2.0"), ("serde", "1.0.228", "MIT/Apache-2.0")]
            sums = {("serde", "1.0.228"): "ab"}
            page = [{"name": "preact"}]
            listed = bill("get-error", archive, found, sums, page)
        self.assertEqual(listed["metadata"]["component"]["name"], "get-error")
        self.assertEqual([it["name"] for it in listed["components"]], ["serde", "preact"])
        serde = listed["components"][0]
        self.assertEqual(serde["purl"], "pkg:cargo/serde@1.0.228")
        self.assertEqual(serde["licenses"], [{"expression": "MIT OR Apache-2.0"}])
        self.assertEqual(serde["hashes"], [{"alg": "SHA-256", "content": "ab"}])

    def test_registry_crates_have_checksums(self):
        sums = checksums()
        for name, version, _ in crates(tree(["get-error"], TARGET))["get-error"]:
            if name not in ("get-error", "shared", "errors", "notifications"):
                self.assertIn((name, version), sums)


if __name__ == "__main__":
    unittest.main()
