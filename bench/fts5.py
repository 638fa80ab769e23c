"""The other side of every ratio: SQLite's FTS5 over the same turns, with the Porter stemmer and bm25.

Set up as favourably as its manual allows: the text is stored once (external content), the agent is a column of the index so that a
search of one agent meets its turns alone, and the page is asked for by `rank`, which lets FTS5 stop sorting early. It returns ids,
scores and texts; it cuts no snippets, looks for no near misses and checks nobody's rights.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.corpus import CorpusTurn

SCHEMA = """
CREATE TABLE turns (
  id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL, conversation_id TEXT NOT NULL, turn_id TEXT NOT NULL, role TEXT NOT NULL,
  created_at INTEGER NOT NULL, agent TEXT NOT NULL, text TEXT NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5(agent, text, content='turns', content_rowid='id', tokenize='porter unicode61');
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(0.0, 1.0)');
"""
INSERT_TURN = "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_WORDS = "INSERT INTO words (rowid, agent, text) VALUES (?, ?, ?)"
SEARCH = """
SELECT turns.id, turns.agent_id, turns.conversation_id, turns.turn_id, words.rank, turns.text
FROM words JOIN turns ON turns.id = words.rowid WHERE words MATCH ? ORDER BY words.rank LIMIT ?
"""
NEWEST = """
SELECT turns.id, turns.agent_id, turns.conversation_id, turns.turn_id, turns.created_at, turns.text
FROM words JOIN turns ON turns.id = words.rowid WHERE words MATCH ? ORDER BY turns.created_at DESC, turns.id DESC LIMIT ?
"""
COUNT = "SELECT count(*) FROM words WHERE words MATCH ?"


@dataclass(frozen=True, slots=True)
class FtsHit:
    """A turn that FTS5 found; `rank` is bm25's, or the time where the newest were asked for."""

    number: int
    agent_id: str
    turn_id: str
    rank: float
    text: str


class Fts5:
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
            INSERT_TURN,
            (
                (t.number, t.agent_id, t.conversation_id, t.turn_id, t.role, t.created_at, agent_word(t.agent_id), t.text)
                for t in turns
            ),
        )
        self._database.executemany(INSERT_WORDS, ((t.number, agent_word(t.agent_id), t.text) for t in turns))
        self._database.execute("COMMIT")

    def optimize(self) -> None:
        """Merges the index into one segment, as its manual advises after a bulk load, and empties the write-ahead log."""
        self._database.execute("INSERT INTO words (words) VALUES ('optimize')")
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def search(self, expression: str, limit: int = 20, *, newest: bool = False) -> list[FtsHit]:
        """Gives the best turns by bm25, or the newest, with their texts."""
        rows = self._database.execute(NEWEST if newest else SEARCH, (expression, limit)).fetchall()
        return [FtsHit(number, agent_id, turn_id, rank, text) for number, agent_id, _, turn_id, rank, text in rows]

    def count(self, expression: str) -> int:
        """Counts the turns that match."""
        return int(self._database.execute(COUNT, (expression,)).fetchone()[0])

    def size(self) -> int:
        """Gives the bytes on disk, the log included."""
        files = [self._file, Path(f"{self._file}-wal")]
        return sum(file.stat().st_size for file in files if file.exists())


def agent_word(agent_id: str) -> str:
    """Makes one word of an agent's id, since the tokenizer would cut it at its hyphen."""
    return agent_id.replace("-", "")


def all_words(words: Iterable[str]) -> str:
    """Writes an expression that wants every word."""
    return " AND ".join(f'"{word}"' for word in words)


def any_word(words: Iterable[str]) -> str:
    """Writes an expression that wants one word or more."""
    return " OR ".join(f'"{word}"' for word in words)


def phrase(words: Iterable[str]) -> str:
    """Writes an expression that wants the words side by side."""
    return f'"{" ".join(words)}"'


def of_agent(expression: str, agent_id: str) -> str:
    """Narrows an expression to one agent."""
    return f'agent : "{agent_word(agent_id)}" AND text : ({expression})'
