"""Checks that the generated code in client/aforesaid/agent is what proto/ says: generates it into a temporary folder and compares.

Needs .proto-deps (scripts/fetch_validate_proto.py) and buf with its plug-ins on the path. Changes nothing.
"""

from __future__ import annotations

import filecmp
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED = Path("client/aforesaid/agent")


def main() -> int:
    """Returns 0 when both are the same, 1 after naming what differs."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["buf", "generate", "-o", folder], cwd=ROOT, check=True)
        wrong = list(differences(ROOT / GENERATED, Path(folder) / GENERATED))
    for line in wrong:
        print(f"check_generated: {line}", file=sys.stderr)
    if wrong:
        print("check_generated: run `make proto` and commit what it writes", file=sys.stderr)
    return 1 if wrong else 0


def differences(committed: Path, fresh: Path) -> Iterator[str]:
    """Yields a line for each file that only one folder has or that differs, by path."""
    have, want = files(committed), files(fresh)
    for path in sorted(have | want):
        if path not in want:
            yield f"{GENERATED / path} comes from no proto file"
        elif path not in have:
            yield f"{GENERATED / path} is missing"
        elif not filecmp.cmp(committed / path, fresh / path, shallow=False):
            yield f"{GENERATED / path} is not up to date"


def files(folder: Path) -> set[Path]:
    """Returns the paths of the files under a folder, relative to it; not bytecode, nor __init__.py, which are written by hand."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path for path in found if path.name != "__init__.py" and "__pycache__" not in path.parts}


if __name__ == "__main__":
    sys.exit(main())
