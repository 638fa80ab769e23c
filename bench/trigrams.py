"""SQLite FTS5 with its trigram tokenizer over the same turns: the other side of the searches letter by letter.

Set up as favourably as its manual allows: the text is stored once (external content), case is folded, and the page is asked for
from the last turn backwards, so that it may stop after a page. Under three letters its index has nothing, and it reads the texts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.corpus import CorpusTurn

SCHEMA = """
CREATE TABLE turns (id INTEGER PRIMARY KEY, conversation_id TEXT NOT NULL, turn_id TEXT NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE letters USING fts5(text, content='turns', content_rowid='id', tokenize='trigram');
"""
SEARCH = """
SELECT turns.id, turns.conversation_id, turns.turn_id, turns.text
FROM letters JOIN turns ON turns.id = letters.rowid WHERE letters MATCH ? ORDER BY letters.rowid DESC LIMIT ?
"""
COUNT = "SELECT count(*) FROM letters WHERE letters MATCH ?"
# instr() and no LIKE, of which % and _ would be signs.
READ = "SELECT id, conversation_id, turn_id, text FROM turns WHERE instr(lower(text), lower(?)) ORDER BY id DESC LIMIT ?"
COUNT_READ = "SELECT count(*) FROM turns WHERE instr(lower(text), lower(?))"
FEWEST_LETTERS = 3


class Trigrams:
    """One SQLite file with the turns and their index; a context manager that closes it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._database = sqlite3.connect(file, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript(SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._database.close()

    def add(self, turns: Sequence[CorpusTurn]) -> None:
        """Adds turns in one transaction."""
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT INTO turns VALUES (?, ?, ?, ?)", ((t.number, t.conversation_id, t.turn_id, t.text) for t in turns)
        )
        self._database.executemany("INSERT INTO letters (rowid, text) VALUES (?, ?)", ((t.number, t.text) for t in turns))
        self._database.execute("COMMIT")

    def optimize(self) -> None:
        """Merges the index into one segment, and empties the write-ahead log."""
        self._database.execute("INSERT INTO letters (letters) VALUES ('optimize')")
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def search(self, letters: str, limit: int = 20) -> list[tuple[int, str, str, str]]:
        """Gives the last turns that hold these letters, with their texts."""
        if len(letters) < FEWEST_LETTERS:
            return self._database.execute(READ, (letters, limit)).fetchall()
        return self._database.execute(SEARCH, (literal(letters), limit)).fetchall()

    def count(self, letters: str) -> int:
        """Counts the turns that hold these letters."""
        statement, text = (COUNT_READ, letters) if len(letters) < FEWEST_LETTERS else (COUNT, literal(letters))
        return int(self._database.execute(statement, (text,)).fetchone()[0])

    def size(self) -> int:
        """Gives the bytes on disk, the log included."""
        files = [self._file, Path(f"{self._file}-wal")]
        return sum(file.stat().st_size for file in files if file.exists())


def literal(letters: str) -> str:
    """Writes an expression that wants these letters as they stand."""
    return '"' + letters.replace('"', '""') + '"'
