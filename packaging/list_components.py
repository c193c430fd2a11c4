"""Lists what each packed function is made of: a CycloneDX SBOM beside each archive.

Usage: list_components.py TARGET FUNCTION...

`target/package/FUNCTION.cdx.json` names the archive by its SHA-256, and all crates that are linked into it,
each with its version, licence and the checksum of `Cargo.lock`. Equal archives have equal lists.
"""

import hashlib
import json
import re
import subprocess
import sys
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What the serial numbers of these lists are made under.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:waymark:sbom")


def checksums() -> dict[tuple[str, str], str]:
    """The SHA-256 of each crate of a registry, as cargo checks it."""
    sums = {}
    for package in (ROOT / "Cargo.lock").read_text(encoding="utf-8").split("[[package]]"):
        # Python reads TOML by itself from 3.11 on only.
        members = dict(re.findall(r'^(name|version|checksum) = "([^"]*)"$', package, re.MULTILINE))
        if "checksum" in members:
            sums[members["name"], members["version"]] = members["checksum"]
    return sums


def crates(function: str, target: str) -> list[tuple[str, str, str]]:
    """Name, version and licence of what is linked into a function, and not only run to build it."""
    command = ["cargo", "tree", "--locked", "--package", function, "--target", target]
    command += ["--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"]
    tree = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = set()
    for line in tree.splitlines():
        package, _, licence = line.partition("|")
        name, version = package.split()[:2]
        found.add((name, version.removeprefix("v"), licence))
    return sorted(found)


def component(name: str, version: str, licence: str, checksum: str | None) -> dict:
    """A crate, as CycloneDX describes a component."""
    purl = f"pkg:cargo/{name}@{version}"
    described = {"type": "library", "bom-ref": purl, "name": name, "version": version}
    if licence:
        # Some manifests still say `MIT/Apache-2.0`, which is no SPDX expression.
        described["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    # The workspace's own are in no registry.
    return described | ({"purl": purl} if checksum else {})


def bill(function: str, archive: Path, found: list[tuple[str, str, str]], sums: dict) -> dict:
    """The list of a function's archive."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    version = next(version for name, version, _ in found if name == function)
    others = [it for it in found if it[0] != function]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, digest)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": archive.name,
                "name": function,
                "version": version,
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
        },
        "components": [component(*it, sums.get(it[:2])) for it in others],
    }


def main() -> int:
    if len(sys.argv) < 3:
        print("usage: list_components.py TARGET FUNCTION...", file=sys.stderr)
        return 2
    target, *functions = sys.argv[1:]
    sums = checksums()
    for function in functions:
        archive = ROOT / "target" / "package" / f"{function}.zip"
        listed = bill(function, archive, crates(function, target), sums)
        text = json.dumps(listed, indent=1) + "\n"
        archive.with_suffix(".cdx.json").write_text(text, encoding="utf-8")
    print(f"{len(functions)} lists of components, as target/package/*.cdx.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
