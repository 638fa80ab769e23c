"""The memory engine: a plain scan with the judge. The oracle of every other engine, and the finder of what they do not hold yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence

from aforesaid_server.index import (
    MOST_PARTIAL,
    SHORTEST_LETTERS,
    Batch,
    Candidate,
    Document,
    Found,
    Lists,
    Reach,
    Weighed,
)
from aforesaid_server.query.judge import Question, contains
from aforesaid_server.text.words import TurnWords

_K1, _B = 1.2, 0.75
"""BM25's usual constants."""


class MemoryLists(Lists):
    """The lists over some documents."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = tuple(documents)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the documents."""
        return frozenset(document.number for document in self._documents)

    def matches(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` matches in order, after one that came before."""
        lowest = 2 if question.as_typed else 1
        return self._ranked(question.tier, lowest, reach, after, limit)

    def newest(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` matches by time and number, the latest first, after one that came before."""
        lowest = 2 if question.as_typed else 1
        return self._ranked(question.tier, lowest, reach, after, limit, by_time=True)

    def near(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` turns of `near` in order, after one that came before."""
        return self._ranked(question.step, 1, reach, after, limit)

    def partial(self, question: Question, reach: Reach, *, every_word: bool, near: frozenset[int] | None = None) -> list[Weighed]:
        """Returns the best turns by BM25 over all documents. Robertson and Zaragoza, "The Probabilistic Relevance Framework",
        2009.
        """
        del near  # the judge tells
        optional = map(question.sought, question.counted(every_word=every_word))
        clauses = [*optional, *map(question.sought, question.bound)]
        said = [_said(document, reach) for document in self._documents]
        rarity = [_rarity(question, clause, said) for clause in clauses]
        mean = sum(len(words.stems) for words in said) / max(1, len(said))
        found: list[Weighed] = []
        for document, words in zip(self._documents, said, strict=True):
            if not reach.admits(document) or not question.says_some(words, every_word=every_word):
                continue
            if not every_word and (question.tier(words) or question.step(words)):
                continue
            length = _K1 * (1 - _B + _B * len(words.stems) / max(1.0, mean))
            sequence = question.sequence(words)
            weight = 0.0
            for clause, rare in zip(clauses, rarity, strict=True):
                often = _count(sequence, clause)
                weight += rare * often * (_K1 + 1) / (often + length) if often else 0.0
            found.append(Weighed(document.number, weight, document.created_at))
        found.sort(key=lambda weighed: (-weighed.weight, -weighed.number))
        return found[:MOST_PARTIAL]

    def occurring(self, stems: Collection[str], reach: Reach) -> frozenset[str]:
        """Returns which of the stems some turn says."""
        wanted = frozenset(stems)
        said = (_said(one, reach) for one in self._documents if reach.admits(one))
        return frozenset().union(*(wanted.intersection(words.stems) for words in said))

    def holding(self, letters: str, reach: Reach, after: int | None, limit: int) -> list[Candidate]:
        """Returns the turns that may hold folded letters, of whole conversations, below one that came before."""
        found = [
            Candidate(one.conversation_pk, one.number)
            for one in self._documents
            if reach.admits(one) and (after is None or one.conversation_pk < after) and _may_hold(one, letters)
        ]
        return whole_conversations(found, limit)

    def _ranked(
        self,
        rank_of: Callable[[TurnWords], int],
        lowest: int,
        reach: Reach,
        after: Found | None,
        limit: int,
        *,
        by_time: bool = False,
    ) -> list[Found]:
        found = [
            Found(rank, document.key, document.created_at if by_time else None)
            for document in self._documents
            if reach.admits(document) and (rank := rank_of(_said(document, reach))) >= lowest
        ]
        if after is not None:
            found = [one for one in found if one > after]
        return sorted(found)[:limit]


def whole_conversations(candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
    """Returns candidates in the order of `holding`, as many whole conversations as give `limit` of them."""
    found = sorted(candidates, key=lambda one: (-one.conversation_pk, one.number))
    if len(found) <= limit:
        return found
    last = found[max(0, limit - 1)].conversation_pk
    return [one for one in found if one.conversation_pk >= last]


def _may_hold(document: Document, letters: str) -> bool:
    return len(letters) < SHORTEST_LETTERS or document.letters is None or letters in document.letters


def _said(document: Document, reach: Reach) -> TurnWords:
    return document.said(own_searches=reach.own_searches, kinds=reach.kinds)


def _rarity(question: Question, words: Sequence[str], said: Sequence[TurnWords]) -> float:
    holders = sum(contains(question.sequence(one), words) for one in said)
    return math.log(1 + (len(said) - holders + 0.5) / (holders + 0.5))


def _count(sequence: Sequence[str], part: Sequence[str]) -> int:
    size = len(part)
    wanted = tuple(part)
    return sum(tuple(sequence[at : at + size]) == wanted for at in range(len(sequence) - size + 1))


class MemoryIndex:
    """An index that keeps its documents in memory."""

    def __init__(self) -> None:
        self._documents: dict[int, Document] = {}
        self._head = 0

    @property
    def head(self) -> int:
        """The number of the last change that is in the index."""
        return self._head

    def apply(self, batch: Batch) -> None:
        """Takes a batch."""
        gone = frozenset(batch.forget)
        dropped = frozenset(batch.forget_conversations)
        self._documents = {
            number: document
            for number, document in self._documents.items()
            if number not in gone and document.conversation_pk not in dropped
        }
        self._documents.update((document.number, document) for document in batch.documents)
        self._head = batch.head

    def lists(self) -> tuple[int, MemoryLists]:
        """Returns the lists of now."""
        return self._head, MemoryLists(self._documents.values())

    def answers(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Does nothing."""
