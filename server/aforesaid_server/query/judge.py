"""Does a turn say it? The one definition of matches, tiers, near steps and their order, which every engine must agree with.

Plain and slow: the memory engine runs it as it stands. contract.md, "matches", "near", "partial".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aforesaid_server.query.ast import Clause, Optional, Query, optionals
from aforesaid_server.query.question_words import QUESTION_WORDS
from aforesaid_server.text.words import SHORTEST_PART, TurnWords

LONGEST_ORDERED = 262_143
"""Bytes up to which turns are told apart by length; 18 bits."""


def capped(content_length: int) -> int:
    """Returns the bytes that order and scores count."""
    return min(content_length, LONGEST_ORDERED)


def match_score(tier: int, content_length: int) -> float:
    """Returns tier + 1 / (1 + bytes / 1024). contract.md, "matches"."""
    return tier + 1 / (1 + capped(content_length) / 1024)


def near_score(step: int, content_length: int) -> float:
    """Returns (step - 1 + 1 / (1 + bytes / 1024)) / 4. contract.md, "near"."""
    return (step - 1 + 1 / (1 + capped(content_length) / 1024)) / 4


def contains(sequence: Sequence[str], part: Sequence[str]) -> bool:
    """Tells whether words stand in a sequence, in that order, adjacent."""
    size, first = len(part), part[0]
    if size == 1:
        return first in sequence
    at = -1
    try:
        while True:
            at = sequence.index(first, at + 1)
            if tuple(sequence[at : at + size]) == tuple(part):
                return True
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Question:
    """A query and whether "said" means as typed; what the lists of one search are judged by."""

    query: Query
    as_typed: bool = False

    def sought(self, clause: Clause | Optional) -> tuple[str, ...]:
        """Returns what is looked for of a clause: its stems, or its words where as typed was asked for."""
        return clause.words if self.as_typed else clause.stems

    def sequence(self, words: TurnWords) -> tuple[str, ...]:
        """Returns where it is looked for in a turn."""
        return words.exact if self.as_typed else words.stems

    def said(self, clause: Clause | Optional, words: TurnWords) -> bool:
        """Tells whether a turn says a clause."""
        return contains(self.sequence(words), self.sought(clause))

    def barred(self, words: TurnWords) -> bool:
        """Tells whether a turn says, by stem, what was excluded."""
        return any(contains(words.stems, clause.stems) for clause in self.query.excluded)

    def said_all(self, words: TurnWords) -> bool:
        """Tells whether a turn says all that is wanted."""
        return all(self.said(clause, words) for clause in self.query.wanted)

    def tier(self, words: TurnWords) -> int:
        """Returns 3 exactly as typed, 2 as typed, 1 by stem, 0 no match."""
        query = self.query
        if not self.said_all(words) or self.barred(words):
            return 0
        if not all(contains(words.exact, clause.words) for clause in query.wanted):
            return 1
        return 3 if contains(words.exact, query.order) and query.symbols <= words.symbols else 2

    @property
    def terms(self) -> tuple[Clause, ...]:
        """The clauses whose letters may stand inside a word."""
        return tuple(c for c in self.query.wanted if not c.is_phrase and len(c.words[0]) >= SHORTEST_PART)

    def step(self, words: TurnWords) -> int:
        """Returns how cleanly the letters of all terms sit in a turn, 4 to 1; 0 if it has no place in `near`."""
        terms = self.terms
        if not terms or self.barred(words) or self.said_all(words):
            return 0
        if not all(self.said(clause, words) for clause in self.query.wanted if clause not in terms):
            return 0
        lowest = 4
        for term in terms:
            if not self.said(term, words):
                lowest = min(lowest, letters_step(term.words[0], words))
            if not lowest:
                break
        return lowest

    @property
    def bound(self) -> tuple[Clause, ...]:
        """The clauses that a turn in `partial` must say."""
        return tuple(clause for clause in self.query.wanted if clause.quoted)

    def counted(self, *, every_word: bool) -> tuple[Optional, ...]:
        """Returns what counts in `partial`, or, with every_word, in MATCH_ANY_WORD; each once."""
        unquoted = [clause for clause in self.query.wanted if not clause.quoted]
        if not every_word:
            telling = [clause for clause in unquoted if not set(clause.words) <= QUESTION_WORDS]
            unquoted = telling if telling or self.bound else unquoted
        return tuple(dict.fromkeys(optional for clause in unquoted for optional in optionals(clause)))

    def says_some(self, words: TurnWords, *, every_word: bool) -> bool:
        """Tells whether a turn may stand in `partial` (matches and near aside) or, with every_word, in MATCH_ANY_WORD."""
        if self.barred(words) or not all(self.said(clause, words) for clause in self.bound):
            return False
        return bool(self.bound) or any(self.said(optional, words) for optional in self.counted(every_word=every_word))


def letters_step(term: str, words: TurnWords) -> int:
    """Returns 4 if the letters are a part of their own, 3 if they begin a word, 2 if they end one, 1 inside, 0 if they are
    nowhere.
    """
    if term in words.parts:
        return 4
    best = 0
    for word in set(words.exact):
        if term in word:
            best = max(best, 3 if word.startswith(term) else 2 if word.endswith(term) else 1)
    return best
