"""The `Index` port: what is searched of the turns, and where the lists of a search come from. Derived; the store is the truth.

The order of `matches` and `near` depends on the turn alone, so every engine returns the same lists, and `memory.py` is the judge.
A turn is known here by its number; an index holds no text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from aforesaid_server.query.judge import LONGEST_ORDERED, Question, capped
from aforesaid_server.store import Scope
from aforesaid_server.text.transcript import NO_KIND, SAYING, Kind
from aforesaid_server.text.words import NO_WORDS, TurnWords

NUMBER_BITS = 45
_NUMBERS = (1 << NUMBER_BITS) - 1
MOST_PARTIAL = 150
"""How many turns `partial` and MATCH_ANY_WORD hold at most."""
SHORTEST_LETTERS = 3
"""Code points of which every engine knows in which turns they stand; fewer may stand in any."""
BEST_TIER = 3
BEST_STEP = 4


def key_of(content_length: int, number: int) -> int:
    """Returns the sort key of a turn: fewer bytes before more (18 bits, capped), then newer before older. Unique, below 2^63."""
    return capped(content_length) << NUMBER_BITS | (_NUMBERS - number)


def number_of(key: int) -> int:
    """Returns the number of the turn with a sort key."""
    return _NUMBERS - (key & _NUMBERS)


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A turn in `matches` (`rank` its tier) or `near` (its step). `place` sorts as the list does.

    `at` is the turn's time, in microseconds, where the list goes by time, else None.
    """

    place: tuple[int, int] = field(init=False, repr=False)
    rank: int = field(compare=False)
    key: int = field(compare=False)
    at: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", (-self.rank, self.key) if self.at is None else (-self.at, -self.number))

    @property
    def number(self) -> int:
        """The turn's number."""
        return number_of(self.key)

    @property
    def content_length(self) -> int:
        """The turn's bytes, capped."""
        return self.key >> NUMBER_BITS


Narrowed: TypeAlias = Callable[[Kind, bool], TurnWords]
"""Finds what a turn says in its parts of some of its kinds, own searches counted or not."""


@dataclass(frozen=True, slots=True)
class Document:
    """What an index takes of a turn.

    `words` are those of the whole turn, `without` those that are left without its calls of search tools and their results; None
    where it has none. `kinds` are those of its searched parts. Where they are several, `narrowed` finds the words of the parts of
    some of them, own searches counted or not. `letters` is what MATCH_SUBSTRING looks in, folded; None where that is not known, as
    of a turn just written, which may then hold any.
    """

    number: int
    content_length: int
    agent_pk: int
    conversation_pk: int
    role: str
    project: str
    scope: Scope
    created_at: int
    words: TurnWords
    without: TurnWords | None = None
    kinds: Kind = Kind.TEXT
    narrowed: Narrowed | None = field(default=None, compare=False)
    letters: str | None = field(default=None, compare=False)

    @property
    def key(self) -> int:
        """The turn's sort key."""
        return key_of(self.content_length, self.number)

    def said(self, *, own_searches: bool, kinds: Kind = NO_KIND) -> TurnWords:
        """Returns the words that the turn is judged by: those of its parts of some kinds, or of all where none is named."""
        if kinds:
            chosen = self.kinds & kinds & SAYING
            if not chosen:
                return NO_WORDS
            if self.narrowed is not None and chosen != self.kinds & SAYING:
                return self.narrowed(chosen, own_searches or self.without is None)
        return self.words if own_searches or self.without is None else self.without


@dataclass(frozen=True, slots=True)
class Reach:
    """Which turns a search looks at: what the caller may read, narrowed by the request. None and empty do not narrow.

    An empty set of `agents` or `conversation_pks` reaches nothing. Times are microseconds: since <= time < until. `own_searches`
    tells whether calls of search tools and their results count among what a turn says. With `kinds`, a turn is judged by its parts
    of these kinds alone, and not looked at where it has none.
    """

    scope: Scope
    agents: frozenset[int] | None = None
    conversation_pks: frozenset[int] | None = None
    roles: frozenset[str] = frozenset()
    project: str = ""
    since: int | None = None
    until: int | None = None
    own_searches: bool = False
    kinds: Kind = NO_KIND
    except_roles: frozenset[str] = frozenset()

    def admits(self, document: Document) -> bool:
        """Tells whether a turn is looked at."""
        return (
            all(document.scope.get(key) == value for key, value in self.scope.items())
            and (self.agents is None or document.agent_pk in self.agents)
            and (self.conversation_pks is None or document.conversation_pk in self.conversation_pks)
            and (not self.roles or document.role in self.roles)
            and document.role not in self.except_roles
            and (not self.kinds or bool(document.kinds & self.kinds))
            and (not self.project or document.project == self.project)
            and (self.since is None or document.created_at >= self.since)
            and (self.until is None or document.created_at < self.until)
        )


@dataclass(frozen=True, slots=True)
class Weighed:
    """A turn in `partial`: its number and its weight, more is better, comparable within one answer; its time in microseconds."""

    number: int
    weight: float
    at: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A turn that may hold some letters, by number, and its conversation."""

    conversation_pk: int
    number: int


class Lists(Protocol):
    """The lists of one moment: what comes later does not change them."""

    def matches(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` matches in order, after one that came before."""
        ...

    def newest(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` matches by time, then number, the latest first, all tiers together, after one that came before."""
        ...

    def near(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` turns of `near` in order, after one that came before."""
        ...

    def partial(self, question: Question, reach: Reach, *, every_word: bool, near: frozenset[int] | None = None) -> list[Weighed]:
        """Returns the best MOST_PARTIAL turns by BM25 over stems; with every_word, those of MATCH_ANY_WORD.

        `near` is what the whole list of that name holds, by number, where the caller knows it: finding it out again costs more
        than everything else.
        """
        ...

    def occurring(self, stems: Collection[str], reach: Reach) -> frozenset[str]:
        """Returns which of the stems some turn says, maybe one that only a turn said which has since been changed or deleted."""
        ...

    def holding(self, letters: str, reach: Reach, after: int | None, limit: int) -> list[Candidate]:
        """Returns the turns that may hold folded letters, and all that do: own searches and parts of other kinds are not left out.

        Whole conversations, that of the highest key first, below the key `after`; turns by number. As many conversations as give
        about `limit` turns, one at least where there is one; none at the end. Of fewer than SHORTEST_LETTERS it
        may be every turn in reach.
        """
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes for one commit: numbers and conversations to forget, then documents to put, and where the log then stands.

    The documents may come one by one and are gone through once.
    """

    head: int
    documents: Iterable[Document] = ()
    forget: Sequence[int] = ()
    forget_conversations: Sequence[int] = ()


class Index(Protocol):
    """An engine."""

    @property
    def head(self) -> int:
        """The number of the last change that is in the index."""
        ...

    def apply(self, batch: Batch) -> None:
        """Takes a batch in one commit: afterwards lists() shows it and head is its head. What is already in is replaced."""
        ...

    def lists(self) -> tuple[int, Lists]:
        """Returns the lists of now with the head that they show."""
        ...

    def answers(self) -> bool:
        """Tells whether the engine can still be searched: false for one whose files are gone or damaged."""
        ...

    def close(self) -> None:
        """Lets go of files and threads."""
        ...


__all__ = [
    "BEST_STEP",
    "BEST_TIER",
    "LONGEST_ORDERED",
    "MOST_PARTIAL",
    "NUMBER_BITS",
    "SHORTEST_LETTERS",
    "Batch",
    "Candidate",
    "Document",
    "Found",
    "Index",
    "Lists",
    "Narrowed",
    "Reach",
    "Weighed",
    "key_of",
    "number_of",
]
