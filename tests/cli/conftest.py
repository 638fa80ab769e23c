"""Runs `aforesaid` as people do: as a process with pipes, or on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

SECONDS = 60


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended: its exit code (negative: the signal that ended it), stdout and stderr."""

    code: int
    out: str
    err: str


class Command(Protocol):
    """Runs `aforesaid` with the arguments; `environment` goes on top of a bare one, in which the zone is UTC."""

    def __call__(self, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ended: ...


def command_line(arguments: tuple[str | Path, ...]) -> list[str]:
    return [sys.executable, "-m", "aforesaid", *map(str, arguments)]


def bare(environment: Mapping[str, str] | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "PYTHONPATH", "HOME", "TMPDIR"}}
    return kept | {"TZ": "UTC", "LANG": "C.UTF-8", "TERM": "xterm-256color"} | dict(environment or {})


@pytest.fixture(scope="session")
def piped() -> Command:
    """Runs it with pipes for stdout and stderr."""

    def run(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ended:
        done = subprocess.run(
            command_line(arguments),
            env=bare(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture(scope="session")
def terminal() -> Command:
    """Runs it with a terminal each for stdout and stderr, 120 columns wide."""

    def run(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ended:
        (out, out_end), (err, err_end) = pty.openpty(), pty.openpty()
        for end in (out_end, err_end):
            fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        process = subprocess.Popen(
            command_line(arguments), env=bare(environment), stdin=subprocess.DEVNULL, stdout=out_end, stderr=err_end
        )
        os.close(out_end)
        os.close(err_end)
        try:
            told = read_both(out, err)
            return Ended(process.wait(SECONDS), told[out].replace("\r\n", "\n"), told[err].replace("\r\n", "\n"))
        finally:
            process.kill()
            process.wait()
            os.close(out)
            os.close(err)

    return run


def read_both(*ends: int) -> dict[int, str]:
    """Reads until nobody holds the other ends any more."""
    told, open_ends, deadline = dict.fromkeys(ends, b""), set(ends), time.monotonic() + SECONDS
    while open_ends:
        ready, _, _ = select.select(list(open_ends), [], [], deadline - time.monotonic())
        assert ready, f"nothing told for {SECONDS} s: {told}"
        for end in ready:
            try:
                block = os.read(end, 65536)
            except OSError:
                # Linux says so where the other end of a terminal is closed.
                block = b""
            told[end] += block
            if not block:
                open_ends.remove(end)
    return {end: text.decode() for end, text in told.items()}
