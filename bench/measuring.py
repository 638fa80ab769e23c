"""Clocks, memory, percentiles and a description of the machine. Knows Linux (/proc) and nothing of what is measured.

Wall time on a shared machine says who else was running; the CPU time of the process that serves says what a search costs. Both are
taken, and results are read as ratios of two engines measured in turns.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("aforesaid", "tantivy", "PyStemmer", "sqlalchemy", "connectrpc", "protobuf-py", "uvicorn")

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call took, in nanoseconds: CPU of the process that serves, and wall time of the caller."""

    cpu: int
    wall: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.cpu + other.cpu, self.wall + other.wall)


def process_clock(pid: int) -> Clock:
    """Makes a clock of the CPU time of a process, all its threads, in nanoseconds; raises ProcessLookupError if there is none.

    /proc/PID/stat counts in ticks of 10 ms, too coarse for a search. The kernel's clock of another process is
    clock_getcpuclockid(3): the complement of the pid, shifted, and 2 for the scheduler's own count.
    """
    clock = (~pid << 3) | 2

    def read() -> int:
        try:
            return time.clock_gettime_ns(clock)
        except OSError as error:
            raise ProcessLookupError(f"no process {pid} to take the time of") from error

    read()
    return read


def timed(call: Callable[[], object], cpu: Clock) -> Cost:
    """Measures one call."""
    cpu_before, wall_before = cpu(), time.perf_counter_ns()
    call()
    wall_after, cpu_after = time.perf_counter_ns(), cpu()
    return Cost(cpu_after - cpu_before, wall_after - wall_before)


def peak_memory(pid: int | None = None) -> int:
    """Gives the most memory that a process, this one by default, has held at a time, in bytes (VmHWM)."""
    status = Path(f"/proc/{pid or os.getpid()}/status").read_text(encoding="utf-8")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kilobytes) * 1024


def folder_size(folder: Path) -> int:
    """Adds up the files under a folder, in bytes; one that goes away meanwhile counts nothing."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def percentile(values: Iterable[float], share: float) -> float:
    """Gives the smallest value that at least `share` of the values do not exceed; raises ValueError if there are none."""
    ordered: Sequence[float] = sorted(values)
    if not ordered:
        raise ValueError("no values to take a percentile of")
    # Rounded first: 0.99 * 100 is 99.00000000000001 on some days.
    rank = -int(-round(share * len(ordered), 9) // 1)
    return ordered[min(len(ordered), max(1, rank)) - 1]


def machine() -> str:
    """Describes the machine in a line: processor, cores, memory, load. No names of hosts."""
    models = [line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next((int(line.split()[1]) / 2**20 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0.0)
    model = models[0] if models else platform.machine()
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, load {os.getloadavg()[0]:.1f}"


def versions() -> str:
    """Lists what ran, with versions."""
    found = [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def commit() -> str:
    """Names the commit that is measured, with a mark when files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "no commit"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
