"""Packs function binaries for Lambda and rejects binaries that Lambda cannot run.

Usage: zip_functions.py ARCHITECTURE [FUNCTION...]; without names, all functions.

Each `target/lambda/FUNCTION/bootstrap` becomes `target/package/FUNCTION.zip`, ready for upload. Equal
binaries give equal archives.
"""

import hashlib
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

ROOT = Path(__file__).resolve().parent.parent
# The glibc version of Lambda's runtime provided.al2023.
NEWEST_GLIBC = (2, 34)
MACHINES = {"arm64": "EM_AARCH64", "x86_64": "EM_X86_64"}


def glibc_versions(elf: ELFFile) -> set[tuple[int, ...]]:
    """Returns the glibc versions whose symbols a binary needs."""
    needed = elf.get_section_by_name(".gnu.version_r")
    if not isinstance(needed, GNUVerNeedSection):
        return set()
    names = [version.name for _, versions in needed.iter_versions() for version in versions]
    numbers = [name.removeprefix("GLIBC_") for name in names if name.startswith("GLIBC_")]
    return {tuple(map(int, number.split("."))) for number in numbers}


def faults(binary: Path, architecture: str) -> list[str]:
    """Returns the reasons why Lambda cannot run a binary."""
    found = []
    with binary.open("rb") as file:
        elf = ELFFile(file)
        if elf["e_machine"] != MACHINES[architecture]:
            found.append(f"built for {elf['e_machine']}, not for {architecture}")
        newest = max(glibc_versions(elf), default=(0,))
        if newest > NEWEST_GLIBC:
            found.append(f"needs glibc {'.'.join(map(str, newest))}; Lambda has 2.34")
    return found


def pack(function: str, binary: Path) -> Path:
    """Writes the archive for Lambda: the same bytes for the same binary."""
    archive = ROOT / "target" / "package" / f"{function}.zip"
    archive.parent.mkdir(exist_ok=True)
    entry = ZipInfo("bootstrap")  # Its time is always 1980.
    entry.compress_type = ZIP_DEFLATED
    entry.create_system = 3  # Unix, so that the permissions below apply.
    entry.external_attr = 0o100755 << 16
    with ZipFile(archive, "w", compresslevel=9) as packed:
        packed.writestr(entry, binary.read_bytes())
    return archive


def main() -> int:
    architecture, *named = sys.argv[1:] or [""]
    if architecture not in MACHINES:
        print(f"usage: zip_functions.py {' | '.join(MACHINES)} [FUNCTION...]", file=sys.stderr)
        return 2
    functions = sorted(path.name for path in (ROOT / "functions").iterdir())
    unknown = sorted(set(named) - set(functions))
    if unknown:
        print(f"error: no function has the name {' '.join(unknown)}; the functions are:", file=sys.stderr)
        print("\n".join(functions), file=sys.stderr)
        return 2
    failed = False
    print(f"{'function':34}{'binary':>12}{'zip':>12}  SHA-256 of the zip")
    for function in named or functions:
        binary = ROOT / "target" / "lambda" / function / "bootstrap"
        if not binary.exists():
            print(f"error: {binary.relative_to(ROOT)} is missing; run make package", file=sys.stderr)
            failed = True
            continue
        archive = pack(function, binary)
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
        sizes = (binary.stat().st_size, archive.stat().st_size)
        print(f"{function:34}{sizes[0]:>12,}{sizes[1]:>12,}  {digest}")
        for fault in faults(binary, architecture):
            print(f"error: {function}: {fault}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
