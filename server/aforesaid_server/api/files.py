"""Transcripts from files of this machine, for `serve --import`: read by `aforesaid.formats`, written as ImportTurns does.

Runs in a thread of its own while the service already answers. Nothing is left out without a word: the summary counts every file and
line that was not taken, and why. Reading the same files again changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aforesaid.formats import WITHOUT_TEXT, Chunk, FoundFile, Replays, find_files, read_file
from aforesaid_server.access import Call
from aforesaid_server.api import Writer
from aforesaid_server.api.importing import BATCH_TURNS, Batch
from aforesaid_server.errors import AforesaidError, Stopped, Unavailable
from aforesaid_server.ingest import ImportItem, ImportTally

# So many files of a kind show what kind they are.
NAMED = 3


@dataclass(slots=True)
class FileTally:
    """What became of the files so far."""

    files: int = 0
    lines: int = 0
    taken: int = 0
    lines_skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    files_left_out: Counter[str] = field(default_factory=Counter)
    named: dict[str, list[Path]] = field(default_factory=dict)
    turns: ImportTally = field(default_factory=ImportTally)

    @property
    def empty(self) -> bool:
        """Tells whether the store has nothing of these files."""
        return not (self.turns.added or self.turns.replaced or self.turns.unchanged)

    def leave_out(self, path: Path, why: str) -> None:
        """Counts a file or folder that is not read; the first few of each reason are named."""
        self.files_left_out[why] += 1
        named = self.named.setdefault(why, [])
        if len(named) < NAMED:
            named.append(path)

    def summary(self) -> Iterator[str]:
        """Yields lines for people: what was taken, then what was not, most frequent first."""
        turns = self.turns
        yield (
            f"imported {self.files} files: {turns.added} turns added, {turns.replaced} replaced, {turns.unchanged} unchanged; "
            f"{self.taken} of {self.lines} lines taken"
        )
        lines: Counter[str] = Counter()
        for reason, count in self.lines_skipped.items():
            lines["without conversation text" if reason.endswith(WITHOUT_TEXT) else reason] += count
        yield from _counted("lines skipped", lines)
        yield from _counted("noted in lines taken", self.notes)
        for why, count in self.files_left_out.most_common():
            named = self.named.get(why, [])
            more = f" and {count - len(named)} more" if count > len(named) else ""
            yield f"  files left out: {count} ({why}): {', '.join(map(_printable, named))}{more}"
        reasons: Counter[str] = Counter()
        for (_, _, _, reason), count in turns.frozen().items():
            reasons[reason] += count
        yield from _counted("turns left out", reasons)


def _printable(path: Path) -> str:
    """Returns a path without what a terminal would obey."""
    return "".join(char if char.isprintable() else "?" for char in str(path))


def _counted(title: str, reasons: Counter[str]) -> Iterator[str]:
    for reason, count in reasons.most_common():
        yield f"  {title}: {count} ({reason})"


class FileImport:
    """Imports files. `tell` gets a line after each file."""

    def __init__(self, writer: Writer, call: Call, tell: Callable[[str], None]) -> None:
        self._writer, self._call, self._tell = writer, call, tell
        self._batch = Batch()
        self._tally = FileTally()

    def run(self, paths: Sequence[Path]) -> FileTally:
        """Reads all that lies under the paths. Raises Stopped when the call hangs up, PathError for a path that is not there."""
        replays = Replays()
        for found in find_files(paths):
            self._call.patience.check()
            if found.why:
                self._tally.leave_out(found.path, found.why)
            else:
                self._read(found, replays)
        self._write()
        return self._tally

    def _read(self, found: FoundFile, replays: Replays) -> None:
        # Also between two blocks of a file: the first chunk may stand at its end.
        reading = read_file(found, replays=replays, on_bytes=lambda _: self._call.patience.check())
        try:
            for item in (item for chunk in reading for item in _items(chunk)):
                if self._batch.add(item):
                    self._write()
        except OSError as error:
            self._tally.leave_out(found.path, f"cannot be read: {error.strerror}")
        report = reading.report
        self._tally.files += 1
        self._tally.lines += report.lines
        self._tally.taken += report.taken
        self._tally.lines_skipped.update(report.skipped)
        self._tally.notes.update(report.notes)
        self._tell(f"read {found.path.name}: {report.turns} turns of {report.lines} lines")

    def _write(self) -> None:
        items = self._batch.take()
        if items:
            self._take(items)

    def _take(self, items: Sequence[ImportItem]) -> None:
        """Writes items in one transaction; where one of them is refused, each by itself, so that the others are taken."""
        try:
            self._writer.import_batch(self._call, items, self._tally.turns)
        except (Stopped, Unavailable):
            raise
        except AforesaidError as error:
            if len(items) == 1:
                self._tally.turns.skip(items[0], error)
                return
            for item in items:
                self._take([item])


def _items(chunk: Chunk) -> Iterator[ImportItem]:
    """Yields a chunk in pieces of a batch's size: two MiB of text may be a hundred thousand turns, too many for one transaction."""
    turns = chunk.conversation.turns
    for begin in range(0, max(len(turns), 1), BATCH_TURNS):
        some = replace(chunk.conversation, turns=turns[begin : begin + BATCH_TURNS])
        yield ImportItem(chunk.agent, some, chunk.agent.scope)
