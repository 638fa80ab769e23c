"""What Linux tells of a process: memory, threads, open files, connections of a port. Nothing here waits or changes anything."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

MIB = 1024 * 1024
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here: what a process holds cannot be seen")


@dataclass(frozen=True, slots=True)
class Held:
    """What a process holds: bytes of memory, threads, open files (sockets among them)."""

    memory: int
    threads: int
    files: int

    @classmethod
    def by(cls, pid: int) -> Self:
        """What it holds now."""
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return cls(int(lines["VmRSS"].split()[0]) * 1024, int(lines["Threads"]), len(os.listdir(f"/proc/{pid}/fd")))


def peak_memory(pid: int) -> int:
    """The most bytes of memory that it ever held."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024


def established(port: int) -> int:
    """How many connections a port has that neither side has closed. The side of the port is counted."""
    found = 0
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            _, local, _, state, *_ = line.split()
            found += int(local.rpartition(":")[2], 16) == port and state == "01"
    return found
