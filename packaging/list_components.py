"""Writes a CycloneDX SBOM for the archive of each packed function.

Usage: list_components.py TARGET FUNCTION...

Name all functions of one build: they share the features that one of them enables in a crate.
`target/package/FUNCTION.cdx.json` contains the SHA-256 of the archive and all crates linked into it.
Each crate has its version, license and checksum from `Cargo.lock`. The list of serve-console also
contains the npm packages of its page. Equal archives have equal lists.
"""

import argparse
import base64
import hashlib
import json
import re
import subprocess
import sys
import uuid
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
CONSOLE = ROOT / "console"
SERVE_CONSOLE = ROOT / "functions" / "serve-console"
# Namespace of the serial numbers.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:waymark:sbom")


def checksums() -> dict[tuple[str, str], str]:
    """Returns the SHA-256 of each registry crate, from Cargo.lock."""
    sums = {}
    for package in (ROOT / "Cargo.lock").read_text(encoding="utf-8").split("[[package]]"):
        # Python has a TOML parser only since 3.11.
        members = dict(re.findall(r'^(name|version|checksum) = "([^"]*)"$', package, re.MULTILINE))
        if "checksum" in members:
            sums[members["name"], members["version"]] = members["checksum"]
    return sums


def tree(functions: list[str], target: str) -> str:
    """Returns cargo's tree of the crates linked into functions that are built together."""
    command = ["cargo", "tree", "--locked", "--target", target]
    command += [f"--package={function}" for function in functions]
    command += ["--edges", "normal,no-proc-macro", "--prefix", "depth", "--no-dedupe", "--format", "{p}|{l}"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def crates(tree: str) -> dict[str, list[tuple[str, str, str]]]:
    """Returns name, version and license of the crates linked into each function, without build-only ones."""
    functions: dict[str, set] = {}
    found: set = set()
    for line in tree.splitlines():
        described = re.fullmatch(r"(\d+)(\S+) v(\S+)[^|]*\|(.*)", line)
        if described is None:
            continue  # A blank line between two functions.
        depth, name, version, license = described.groups()
        if depth == "0":
            found = functions.setdefault(name, set())
        found.add((name, version, license))
    return {function: sorted(found) for function, found in functions.items()}


def component(name: str, version: str, license: str, checksum: str | None) -> dict:
    """Returns the CycloneDX component of a crate."""
    purl = f"pkg:cargo/{name}@{version}"
    described = {"type": "library", "bom-ref": purl, "name": name, "version": version}
    if license:
        # Some manifests still use `MIT/Apache-2.0`, which is not an SPDX expression.
        described["licenses"] = [{"expression": license.replace("/", " OR ")}]
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    # The workspace's own crates are in no registry.
    return described | ({"purl": purl} if checksum else {})


def packages_of_page(lock: dict) -> list[dict]:
    """Returns the npm packages in the console's page, from `package-lock.json`, without development ones."""
    listed = []
    for path, package in sorted(lock["packages"].items()):
        if path == "" or package.get("dev"):
            continue
        name = package.get("name", path.rpartition("node_modules/")[2])
        version = package["version"]
        algorithm, _, digest = package["integrity"].partition("-")
        purl = f"pkg:npm/{quote(name)}@{version}"
        listed.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "licenses": [{"expression": package["license"]}],
                "hashes": [
                    {
                        "alg": algorithm.upper().replace("SHA", "SHA-"),
                        "content": base64.b64decode(digest).hex(),
                    }
                ],
                "purl": purl,
            }
        )
    return listed


def packages(function: str) -> list[dict]:
    """Returns a function's npm packages: those of the console's page, if it was built."""
    if function != SERVE_CONSOLE.name or not (SERVE_CONSOLE / "built" / "index.html").exists():
        return []
    return packages_of_page(json.loads((CONSOLE / "package-lock.json").read_text(encoding="utf-8")))


def bill(
    function: str, archive: Path, found: list[tuple[str, str, str]], sums: dict, others_than_crates: list[dict]
) -> dict:
    """Returns the SBOM of a function's archive."""
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
        "components": [component(*it, sums.get(it[:2])) for it in others] + others_than_crates,
    }


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2].removeprefix("Usage: "))
    parser.add_argument("target")
    parser.add_argument("functions", nargs="+")
    arguments = parser.parse_args()
    functions = arguments.functions
    sums = checksums()
    linked = crates(tree(functions, arguments.target))
    for function in functions:
        archive = ROOT / "target" / "package" / f"{function}.zip"
        listed = bill(function, archive, linked[function], sums, packages(function))
        text = json.dumps(listed, indent=1) + "\n"
        archive.with_suffix(".cdx.json").write_text(text, encoding="utf-8")
    print(f"Wrote {len(functions)} lists of components: target/package/*.cdx.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
