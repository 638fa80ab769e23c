"""The types that a user's checker sees in the installed package, and that wrong calls are errors there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SAMPLE = Path(__file__).with_name("sample.py")


def test_right_calls_have_their_types_and_wrong_ones_are_errors(tmp_path: Path) -> None:
    # In a folder of its own, where mypy knows nothing of this repository's settings and paths.
    (tmp_path / "sample.py").write_text(SAMPLE.read_text("utf-8"), "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "sample.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stderr
    assert SAMPLE.read_text("utf-8").count("# type: ignore[") == 11
