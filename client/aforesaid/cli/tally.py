"""What an import counts: every file, every line and every turn ends up in one of these numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from aforesaid._replies import Imported
from aforesaid.formats import FoundFile, Report

# How the formats begin the reason of a file that is there and cannot be opened.
_UNREADABLE = "cannot be read"


class Reading(Protocol):
    """A file that is being read."""

    @property
    def report(self) -> Report:
        """What became of the lines so far."""


@dataclass(slots=True)
class Tally:
    """An import so far. `left_out` holds the paths that were not read, by reason; `troubles` says what is wrong, one each.

    Turns are counted when the service acknowledges them, lines when they are read: of an import that was `cut_short`, nobody knows
    which lines the last acknowledged turn came from.
    """

    files: int = 0
    lines: int = 0
    lines_taken: int = 0
    lines_skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    turns: Imported = field(default_factory=Imported)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    cut_short: bool = False
    _reading: Reading | None = None

    @property
    def acknowledged(self) -> int:
        """How many turns the service has answered for without refusing them."""
        turns = self.turns
        return turns.added + turns.replaced + turns.unchanged + sum(left.turns for left in turns.skipped)

    def leave_out(self, found: FoundFile) -> None:
        """Counts a file or folder that is not read; what the machine refuses to open is trouble."""
        if found.why.startswith(_UNREADABLE):
            self.troubles.append(f"{found.path}: {found.why}")
        else:
            self.left_out.setdefault(found.why, []).append(str(found.path))

    def begin(self, reading: Reading) -> None:
        """Counts a file; its lines are counted when it has been read, as far as it then has been."""
        self.settle()
        self.files += 1
        self._reading = reading

    def settle(self) -> None:
        """Counts the lines of the file that is being read."""
        if self._reading is None:
            return
        report, self._reading = self._reading.report, None
        self.lines += report.lines
        self.lines_taken += report.taken
        self.lines_skipped.update(report.skipped)
        self.notes.update(report.notes)

    def take(self, turns: Imported) -> None:
        """Counts what one stream took."""
        self.turns += turns
