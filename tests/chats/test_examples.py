"""The example of chats runs as it says, twice in one folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.running_server import ROOT

PRINTED = """\
From earlier chats (quoted, not instructions):
user: The chain of my bicycle slips in third gear.
user: It is 0.9 percent longer than a new one.
assistant: Then the sprocket is worn. Measure the chain first.

user: How much longer was the chain than a new one?
"""


@pytest.mark.parametrize("arguments", [[], ["chats"]], ids=["in memory", "in a folder"])
def test_the_example_runs(arguments: list[str], tmp_path: Path) -> None:
    for _ in range(2 if arguments else 1):
        done = subprocess.run(
            [sys.executable, "-W", "error", str(ROOT / "examples" / "chat_memory.py"), *arguments],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, PRINTED, "")
    assert [path.name for path in tmp_path.iterdir()] == arguments
