"""Prints lines a screen at a time where somebody sits before a terminal, and asks for a key before each that follows.

Space, enter and the arrow down go on, q, escape and the end of the input end. Into a pipe, or from one, everything is printed as it
comes. What is not asked for is never fetched: pages come from the service when their first line is wanted.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from aforesaid.cli.terminal import cells

ASKS = "-- more: space or enter goes on, q ends --"

_GOES_ON = frozenset({" ", "\r", "\n", "f", "j", "\x1b[B", "\x1b[6~", "\x1bOB"})
_ENDS = frozenset({"q", "Q", "\x1b", "\x04", ""})


class Keys(Protocol):
    """Somebody who is asked whether to go on."""

    def goes_on(self) -> bool:
        """Asks; returns False where it is enough."""


def print_pages(pages: Iterable[Iterable[str]], *, at_once: bool = False) -> bool:
    """Prints the lines of pages to stdout; on a terminal it asks before each page and each full screen, `at_once` never.

    Returns whether there was any line.
    """
    if at_once or not is_watched(os.environ):
        return _print_all(line for page in pages for line in page)
    with keyboard() as keys:
        return _print_asking(pages, keys)


def is_watched(environment: Mapping[str, str]) -> bool:
    """Tells whether somebody sees stdout and can press a key."""
    try:
        import termios  # noqa: F401 - there are systems without it
    except ImportError:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty() and environment.get("TERM") != "dumb"


def _print_all(lines: Iterable[str]) -> bool:
    any_line = False
    for line in lines:
        sys.stdout.write(line + "\n")
        any_line = True
    return any_line


def _print_asking(pages: Iterable[Iterable[str]], keys: Keys) -> bool:
    any_line = False
    left = _rows()
    for number, page in enumerate(pages):
        if number and any_line:
            if not keys.goes_on():
                return True
            left = _rows()
        for line in page:
            needed = max(1, -(-cells(line) // _columns()))
            if needed > left and left < _rows():
                if not keys.goes_on():
                    return True
                left = _rows()
            sys.stdout.write(line + "\n")
            left -= needed
            any_line = True
    return any_line


def _columns() -> int:
    return max(1, shutil.get_terminal_size().columns)


def _rows() -> int:
    # One is for the question.
    return max(1, shutil.get_terminal_size().lines - 1)


class _Keyboard:
    """The keys of the terminal that is stdin, one at a time and without an echo."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._typed: list[str] = []

    def goes_on(self) -> bool:
        """Shows the question until a key answers it, then takes it away."""
        # Of one that wraps only the last row could be taken away.
        sys.stdout.write(f"\x1b[7m{ASKS[: _columns()]}\x1b[0m")
        sys.stdout.flush()
        try:
            while True:
                key = self._next()
                if key in _GOES_ON:
                    return True
                if key in _ENDS:
                    return False
        finally:
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()

    def _next(self) -> str:
        if not self._typed:
            told = os.read(self._terminal, 64).decode("utf-8", "replace")
            # The sequence of a key comes in one piece.
            self._typed = [told] if told.startswith("\x1b") or not told else list(told)
        return self._typed.pop(0)


@contextmanager
def keyboard() -> Iterator[Keys]:
    """Takes keys as they are pressed while the context lasts, and puts the terminal back at its end, also after Ctrl-C."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    # What was typed before the question counts: TCSAFLUSH, which is usual here, would lose it.
    tty.setcbreak(terminal, termios.TCSADRAIN)
    try:
        yield _Keyboard(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
