"""Runs `aforesaid` as people do: as a process with pipes, or on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import strategies as st

from aforesaid import cli
from aforesaid.cli.pager import ASKS

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


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], zone: pytest.MonkeyPatch) -> Command:
    """Runs it in this process, which takes a tenth of the time: for tables of cases."""

    def run(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ended:
        for name, value in (environment or {}).items():
            zone.setenv(name, value)
        capsys.readouterr()
        code = cli.run(list(map(str, arguments)))
        told = capsys.readouterr()
        return Ended(code, told.out, told.err)

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


class Sitting(Protocol):
    """Runs `aforesaid` with stdin and stdout on one terminal of so many rows and columns, and presses keys.

    Each of `keys` is pressed when a question waits for it; the process must ask for each. stderr is a pipe, or, where the question
    `asks` is given, the same terminal.
    """

    def __call__(
        self,
        *arguments: str | Path,
        keys: Sequence[str],
        size: tuple[int, int] = (24, 100),
        environment: Mapping[str, str] | None = None,
        asks: str = "",
    ) -> Ended: ...


@pytest.fixture(scope="session")
def sitting() -> Sitting:
    """Somebody who sits before a terminal; what comes out is as it went to the terminal, line ends made plain."""

    def run(
        *arguments: str | Path,
        keys: Sequence[str],
        size: tuple[int, int] = (24, 100),
        environment: Mapping[str, str] | None = None,
        asks: str = "",
    ) -> Ended:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        # A session of its own that opens the terminal by name, so that Ctrl-C, which the terminal makes a signal of, reaches it.
        opening = ["/bin/sh", "-c", 'exec "$@" <>"$TERMINAL"', "sh", *command_line(arguments)]
        process = subprocess.Popen(
            opening,
            env=bare(environment) | {"TERMINAL": os.ttyname(theirs)},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs if asks else subprocess.PIPE,
            start_new_session=True,
        )
        try:
            os.close(theirs)
            told = read_answering(ours, keys, asks or ASKS)
            errors = process.stderr.read().decode() if process.stderr is not None else ""
            return Ended(process.wait(SECONDS), told.replace("\r\n", "\n"), errors)
        finally:
            process.kill()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
            os.close(ours)

    return run


def read_answering(terminal: int, keys: Sequence[str], asks: str = ASKS) -> str:
    """Reads until nobody holds the other end any more, pressing the next key at each question."""
    told, left, deadline = b"", list(keys), time.monotonic() + SECONDS
    answered = 0
    while True:
        ready, _, _ = select.select([terminal], [], [], deadline - time.monotonic())
        assert ready, f"nothing told for {SECONDS} s: {told!r}"
        try:
            block = os.read(terminal, 65536)
        except OSError:
            block = b""
        if not block:
            assert not left, f"never asked for {left}: {told!r}"
            return told.decode()
        told += block
        while told.count(asks.encode()) > answered:
            answered += 1
            assert left, f"asked once more than there are keys: {told!r}"
            os.write(terminal, left.pop(0).encode())


ANY_TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("\x00\x07\x08\x1b\x7f\x85\x9b\u2028\u202e\u2066\U000e0041⟦⟧"))


def obeyed(text: str) -> list[str]:
    """The characters of a text that a terminal acts on instead of showing them."""
    turning = {0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    tags = range(0xE0000, 0xE0080)  # seen by nobody, and read by programs
    return [char for char in text if unicodedata.category(char) in {"Cc", "Zl", "Zp"} or ord(char) in {*turning, *tags}]


def uncoloured(text: str) -> str:
    """A text without the sequences that colour it, or that take a question away."""
    return re.sub(r"\x1b\[[0-9;]*[mK]", "", text)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Sets the zone of this process, to UTC first, and puts it back."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield patch
    time.tzset()
