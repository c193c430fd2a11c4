"""Tests the release archive of `make release` and its `waymark-deploy`. Run by `make test`."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import release

TREE = "0waymark v0.1.0 (/waymark/cli)|Apache-2.0\n1serde v1.0.0|MIT OR Apache-2.0\n"


class TestRelease(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        self.staged = self.root / "target" / "release-archive"
        for name in [*release.COPIED, "packaging/waymark-deploy", "template.yaml", "Cargo.toml"]:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.root / name)
        self.functions = sorted(it.parent.name for it in (ROOT / "functions").glob("*/Cargo.toml"))
        for it in [
            mock.patch("release.ROOT", self.root),
            mock.patch("release.list_components.tree", return_value=TREE),
        ]:
            it.start()
            self.addCleanup(it.stop)

    def build(self, architecture):
        """Writes what `make package` and the build of the command write."""
        package = self.root / "target" / "package"
        package.mkdir(parents=True, exist_ok=True)
        for function in self.functions:
            (package / f"{function}.zip").write_text(f"{function} for {architecture}")
            (package / f"{function}.cdx.json").write_text(f"crates of {function}")
        command = self.root / "target" / "lambda" / "waymark" / "bootstrap"
        command.parent.mkdir(parents=True, exist_ok=True)
        command.write_text(f"waymark for {architecture}")

    def pack(self):
        for architecture in ("arm64", "x86_64"):
            self.build(architecture)
            release.add(architecture, self.staged)
        return release.pack(self.staged)

    def extract(self):
        folder = self.root / "extracted"
        archive = self.pack()
        with tarfile.open(archive) as packed:
            packed.extractall(folder)
        return folder / archive.name[: -len(".tar.gz")]

    def test_archive_has_all_functions_for_both_processors(self):
        folder = self.extract()
        self.assertEqual(folder.name, f"waymark-{release.version()}")
        for architecture in ("arm64", "x86_64"):
            template = (folder / architecture / "template.yaml").read_text()
            self.assertNotIn("target/", template.split("\nResources:")[1])
            for function in self.functions:
                self.assertIn(f"\n      CodeUri: {function}.zip\n", template)
                archive = folder / architecture / f"{function}.zip"
                self.assertEqual(archive.read_text(), f"{function} for {architecture}")
                self.assertTrue(archive.with_suffix(".cdx.json").exists())
            command = folder / architecture / "waymark"
            self.assertTrue(os.access(command, os.X_OK))
            listed = json.loads((folder / architecture / "waymark.cdx.json").read_text())
            digest = hashlib.sha256(command.read_bytes()).hexdigest()
            self.assertEqual(listed["metadata"]["component"]["hashes"][0]["content"], digest)

    def test_checksums_cover_all_other_files(self):
        folder = self.extract()
        lines = (folder / "SHA256SUMS").read_text().splitlines()
        sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
        files = {str(it.relative_to(folder)): it for it in folder.rglob("*") if it.is_file()}
        self.assertEqual(set(sums), set(files) - {"SHA256SUMS"})
        for name, digest in sums.items():
            self.assertEqual(hashlib.sha256(files[name].read_bytes()).hexdigest(), digest)

    def test_equal_files_give_equal_archives(self):
        packed = self.pack().read_bytes()
        self.assertEqual(packed, self.pack().read_bytes())
        self.assertEqual(packed[4:8], bytes(4), "gzip must store no time")

    def test_incomplete_releases_are_rejected(self):
        self.build("arm64")
        release.add("arm64", self.staged)
        with self.assertRaisesRegex(LookupError, "no functions for x86_64"):
            release.pack(self.staged)
        (self.root / "target" / "package" / f"{self.functions[0]}.zip").unlink()
        with self.assertRaises(FileNotFoundError):
            release.add("x86_64", self.staged)

    def test_waymark_deploy_needs_no_other_tools(self):
        """With installed tools, the script only starts `deploy.py`, which finds its modules in the archive."""
        folder = self.extract()
        tools = folder / ".venv"
        (tools / "sam" / "bin").mkdir(parents=True)
        (tools / "installed").touch()
        python = tools / "sam" / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        command = [folder / "waymark-deploy", "deploy", "--help"]
        run = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, cwd="/", capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("usage: waymark-deploy", run.stdout)


if __name__ == "__main__":
    unittest.main()
