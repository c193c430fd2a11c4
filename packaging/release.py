"""Packs a release into one archive, with which `waymark-deploy` deploys without Rust.

Usage: release.py add ARCHITECTURE   After `make package`: take its zips, and the built waymark command.
       release.py pack               Write target/release/waymark-VERSION.tar.gz.

The archive has a folder for each processor architecture, with the zips, their lists of components, the
waymark command for Linux, and a template that names these zips. Equal files give equal archives.
"""

import gzip
import hashlib
import json
import re
import shutil
import sys
import tarfile
from pathlib import Path

import list_components

ROOT = Path(__file__).resolve().parent.parent
STAGED = ROOT / "target" / "release-archive"
TARGETS = {"arm64": "aarch64-unknown-linux-gnu", "x86_64": "x86_64-unknown-linux-gnu"}
COPIED = [
    "LICENSE",
    "docs/operations.md",
    "packaging/deploy.py",
    "packaging/preflight.py",
    "packaging/releases.py",
    "packaging/uv.txt",
    "requirements-deploy.txt",
]
CODE = re.compile(r"(?m)^( +CodeUri: )target/package/([a-z-]+\.zip)$")


def version() -> str:
    """Returns the version of the workspace."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^version = "([^"]+)"$', manifest, re.MULTILINE)[1]


def add(architecture: str, staged: Path = STAGED) -> None:
    """Copies the packed functions of an architecture."""
    folder = staged / architecture
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    (folder / "template.yaml").write_text(CODE.sub(r"\1\2", template), encoding="utf-8")
    for _, name in CODE.findall(template):
        for packed in (name, name.replace(".zip", ".cdx.json")):
            shutil.copyfile(ROOT / "target" / "package" / packed, folder / packed)
    command = folder / "waymark"
    shutil.copyfile(ROOT / "target" / "lambda" / "waymark" / "bootstrap", command)
    command.chmod(0o755)
    linked = list_components.crates(list_components.tree(["waymark"], TARGETS[architecture]))["waymark"]
    listed = list_components.bill("waymark", command, linked, list_components.checksums(), [])
    (folder / "waymark.cdx.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


def pack(staged: Path = STAGED) -> Path:
    """Writes the archive of the added architectures, with the checksums of all its files."""
    missing = [it for it in TARGETS if not (staged / it / "template.yaml").exists()]
    if missing:
        raise LookupError(f"no functions for {' and '.join(missing)} were added")
    for name in COPIED:
        (staged / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, staged / name)
    shutil.copyfile(ROOT / "packaging" / "waymark-deploy", staged / "waymark-deploy")
    (staged / "waymark-deploy").chmod(0o755)
    sums = staged / "SHA256SUMS"
    sums.unlink(missing_ok=True)
    files = sorted(it for it in staged.rglob("*") if it.is_file())
    lines = [f"{hashlib.sha256(it.read_bytes()).hexdigest()}  {it.relative_to(staged)}\n" for it in files]
    sums.write_text("".join(lines), encoding="utf-8")
    name = f"waymark-{version()}"
    archive = ROOT / "target" / "release" / f"{name}.tar.gz"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.open("wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as zipped:
        with tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as packed:
            for path in [*files, sums]:
                entry = tarfile.TarInfo(f"{name}/{path.relative_to(staged)}")
                entry.size, entry.mode = path.stat().st_size, 0o755 if path.stat().st_mode & 0o100 else 0o644
                with path.open("rb") as content:
                    packed.addfile(entry, content)
    return archive


def main() -> int:
    arguments = sys.argv[1:]
    if len(arguments) == 2 and arguments[0] == "add" and arguments[1] in TARGETS:
        add(arguments[1])
    elif arguments == ["pack"]:
        archive = pack()
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        print(f"{digest}  {archive.relative_to(ROOT)}")
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
