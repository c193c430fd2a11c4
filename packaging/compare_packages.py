"""Compares the packed functions of two builds.

Usage: compare_packages.py FOLDER FOLDER

Both must contain the same archives, byte by byte. `make reproduce` builds them.
"""

import hashlib
import sys
from pathlib import Path


def digests(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of each archive in a folder."""
    archives = sorted(folder.glob("*.zip"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in archives}


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: compare_packages.py FOLDER FOLDER", file=sys.stderr)
        return 2
    first, second = (digests(Path(folder)) for folder in sys.argv[1:])
    if not first:
        print(f"error: {sys.argv[1]} has no archives; run make package", file=sys.stderr)
        return 1
    different = [
        name for name in sorted(first | second) if first.get(name) != second.get(name)
    ]
    for name in different:
        print(f"error: {name}: {first.get(name)} and {second.get(name)}", file=sys.stderr)
    print(f"{len(first) - len(set(first) & set(different))} of {len(first)} archives are identical")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
