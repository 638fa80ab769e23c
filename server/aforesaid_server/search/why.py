"""Why a search found no match: how its words were read, which of them are said at all, what took the rest away, and a search that
does find something.

Looks only at what the search itself might look at, its filters aside, through the same lists and with the same reach, so that it
can tell nothing of anybody else. Every suggestion has been asked before it is made. notice.py puts it into words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from aforesaid_server.access import Patience
from aforesaid_server.index import Found, Lists, Reach
from aforesaid_server.query.ast import Clause, Query
from aforesaid_server.query.judge import Question, contains
from aforesaid_server.query.parse import parse
from aforesaid_server.query.question_words import QUESTION_WORDS
from aforesaid_server.query.spelling import close_spellings
from aforesaid_server.store import Store
from aforesaid_server.text.transcript import NO_KIND
from aforesaid_server.text.words import Analyser, is_spaceless, words_of

MOST_LOOK_UPS = 40
"""Searches for one turn that an explanation costs at most; mostly it is none to four."""
_LEFT_FOR_A_CLAUSE = 22
"""One clause may need 12; the rest is for what to try."""
_MOST_CLAUSES = 6
_MOST_SPELLED = 2
_LONGEST_SUGGESTION = 100
"""Code points."""

_FILTERS: dict[str, tuple[str, Any]] = {
    "conversation_id": ("conversation_pks", None),
    "roles": ("roles", frozenset()),
    "part_kinds": ("kinds", NO_KIND),
    "project": ("project", ""),
    "since": ("since", None),
    "until": ("until", None),
}
"""The filters of a request: the field of a reach that each narrows, and the value with which it does not."""


class State(Enum):
    """Where a clause is said. The order is that in which a person is told."""

    NOWHERE = "at least one of its words by no turn"
    OUTSIDE = "outside of filters only"
    OWN = "in calls of search tools only"
    FORMS = "in other forms than typed only"
    BARRED = "only where something excluded is said as well"
    APART = "its words, but not side by side"
    ELSEWHERE = "only where two and more of these take it away"
    SAID = "where the search looked"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out of a clause: the words that no turn says where it is NOWHERE, the filters where it is OUTSIDE."""

    clause: Clause
    state: State
    missing: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A search that finds something: a query, empty where it is the one that was asked, and what changes of the other fields;
    `all_words` where MATCH_ALL_WORDS finds what MATCH_SUBSTRING did not.
    """

    query: str = ""
    without: tuple[str, ...] = ()
    by_stem: bool = False
    own_searches: bool = False
    all_words: bool = False


@dataclass(frozen=True, slots=True)
class Explained:
    """Why there is no match: findings in the order of the query, the filters that were set, what to try instead."""

    findings: Sequence[Finding]
    filters: tuple[str, ...]
    suggestion: Suggestion | None
    question_words: bool = False
    """Whether question words were passed over."""


class Why:
    """Explains one search. What it asks is bounded by MOST_LOOK_UPS, and ends when nobody waits any more."""

    def __init__(
        self,
        question: Question,
        reach: Reach,
        *,
        any_word: bool,
        lists: Lists,
        store: Store,
        analyser: Analyser,
        patience: Patience,
    ) -> None:
        self._question = question
        self._reach = reach
        self._any_word = any_word
        self._analyser = analyser
        self._look_ups = _LookUps(lists, store, patience)
        self._filters = filters_of(reach)
        self._said: Collection[str] = ()
        self._blamed: tuple[str, ...] = ()
        self._spelled: dict[str, str] = {}

    def nothing(self) -> Explained:
        """Explains why no list holds anything."""
        clauses = self._telling()
        findings = self._findings(clauses)
        suggestion = self._first(self._suggestions(findings))
        return Explained(findings, self._filters, suggestion, len(clauses) < len(self._different()))

    def no_match(self, snippets: Iterable[str]) -> Explained | None:
        """Explains why there are no matches though `partial` holds some turns; None where each clause is said somewhere.

        What the snippets show needs no look-up.
        """
        shown = [self._analyser.stems(words_of(piece)) for snippet in snippets for piece in _marked(snippet)]
        unseen = [clause for clause in self._telling() if not any(contains(stems, clause.stems) for stems in shown)]
        findings = [one for one in self._findings(unseen) if one.state is not State.SAID]
        if not findings:
            return None
        return Explained(findings, self._filters, self._first(self._whole(findings)))

    # -- what became of each clause

    def _different(self) -> list[Clause]:
        return list({self._question.sought(clause): clause for clause in reversed(self._question.query.wanted)}.values())[::-1]

    def _telling(self) -> list[Clause]:
        """Returns the different clauses, question words left out where they do not count."""
        different = self._different()
        if self._any_word:
            return different
        return [clause for clause in different if clause.quoted or not set(clause.words) <= QUESTION_WORDS] or different

    def _findings(self, clauses: Sequence[Clause]) -> list[Finding]:
        some = clauses[:_MOST_CLAUSES]
        if not some:
            return []
        self._said = self._look_ups.occurring({stem for clause in some for stem in clause.stems}, self._widest)
        return [self._finding(clause) for clause in some if self._look_ups.left >= _LEFT_FOR_A_CLAUSE]

    def _finding(self, clause: Clause) -> Finding:
        missing = tuple(word for word, stem in zip(clause.words, clause.stems, strict=True) if stem not in self._said)
        if missing:
            return Finding(clause, State.NOWHERE, missing)
        excluded = self._question.query.excluded
        if self._finds(clause, self._reach):
            return Finding(clause, State.SAID)
        if excluded and self._finds(clause, self._reach, barred=False):
            return Finding(clause, State.BARRED)
        if self._question.as_typed and self._finds(clause, self._reach, by_stem=True):
            return Finding(clause, State.FORMS)
        if self._with_own != self._reach and self._finds(clause, self._with_own):
            return Finding(clause, State.OWN)
        for names in self._fewer_filters():
            if self._finds(clause, without(self._reach, names)):
                self._blamed = names
                return Finding(clause, State.OUTSIDE, filters=names)
        if self._finds(clause, self._widest, barred=False, by_stem=True):
            return Finding(clause, State.ELSEWHERE)
        return Finding(clause, State.APART) if len(clause.words) > 1 else Finding(clause, State.NOWHERE, clause.words)

    def _finds(self, clause: Clause, reach: Reach, *, barred: bool = True, by_stem: bool = False) -> bool:
        query = Query((clause,), self._question.query.excluded if barred else ())
        return self._look_ups.finds(Question(query, self._question.as_typed and not by_stem), reach)

    def _fewer_filters(self) -> Iterable[tuple[str, ...]]:
        """Returns which filters to leave out, each once: those that hid the clause before, each alone, all."""
        ways = [self._blamed, *((name,) for name in self._filters), self._filters]
        return dict.fromkeys(names for names in ways if names)

    @property
    def _with_own(self) -> Reach:
        return replace(self._reach, own_searches=True)

    @property
    def _widest(self) -> Reach:
        return without(self._with_own, self._filters)

    # -- what would find something

    def _first(self, suggestions: Iterable[Suggestion]) -> Suggestion | None:
        """Returns the first suggestion that holds, each asked once."""
        tried: set[Suggestion] = set()
        for suggestion in suggestions:
            if len(suggestion.query) > _LONGEST_SUGGESTION or suggestion in tried:
                continue
            if not self._look_ups.left:
                return None
            tried.add(suggestion)
            if self._holds(suggestion):
                return suggestion
        return None

    def _holds(self, suggestion: Suggestion) -> bool:
        query = parse(suggestion.query, self._analyser) if suggestion.query else self._question.query
        question = Question(query, self._question.as_typed and not suggestion.by_stem)
        reach = without(self._with_own if suggestion.own_searches else self._reach, suggestion.without)
        if self._look_ups.finds(question, reach):
            return True
        return self._any_word and self._look_ups.finds_any_word(question, reach)

    def _suggestions(self, findings: Sequence[Finding]) -> Iterator[Suggestion]:
        """Yields what may find something, the smallest change first: the whole query, what is left of it, one clause."""
        yield from self._whole(findings)
        kept = [text for one in findings if (text := self._bettered(one, said_only=True))]
        if kept:
            yield Suggestion(self._with_exclusions(kept))
        for one in sorted(findings, key=lambda one: -len(one.clause.raw)):
            yield from self._alone(one)

    def _whole(self, findings: Sequence[Finding]) -> Iterator[Suggestion]:
        states = {one.state for one in findings}
        if State.OUTSIDE in states:
            blamed = {name for one in findings for name in one.filters}
            yield Suggestion(without=tuple(name for name in self._filters if name in blamed))
            yield Suggestion(without=self._filters)
        if State.FORMS in states:
            yield Suggestion(by_stem=True)
        if State.OWN in states:
            yield Suggestion(own_searches=True)
        query = self._question.query
        if State.BARRED in states:
            yield Suggestion(" ".join(map(typed, query.wanted)))
        if states & {State.APART, State.NOWHERE}:
            known = {one.clause: one for one in findings}
            wanted = (known.get(clause, Finding(clause, State.SAID)) for clause in dict.fromkeys(query.wanted))
            texts = [self._bettered(one) for one in wanted]
            if all(texts):
                yield Suggestion(self._with_exclusions(texts))

    def _alone(self, one: Finding) -> Iterator[Suggestion]:
        text = typed(one.clause)
        match one.state:
            case State.BARRED:
                yield Suggestion(text)
            case State.OUTSIDE:
                yield Suggestion(self._with_exclusions([text]), without=one.filters)
            case State.OWN:
                yield Suggestion(self._with_exclusions([text]), own_searches=True)
            case State.FORMS:
                yield Suggestion(self._with_exclusions([text]), by_stem=True)
            case State.ELSEWHERE:
                yield from (Suggestion(text, self._filters, self._question.as_typed, own) for own in (False, True))
            case _:
                if better := self._bettered(one):
                    yield from (Suggestion(self._with_exclusions([better]), without=names) for names in ((), self._filters))
                rest = [word for word in one.clause.words if word not in one.missing and not is_spaceless(word)]
                yield from (Suggestion(self._with_exclusions([word])) for word in sorted(rest, key=len, reverse=True)[:2])

    def _bettered(self, one: Finding, *, said_only: bool = False) -> str:
        """Returns a clause as it should be typed: its words one by one where they stand apart, spelled as somebody says them where
        nobody does; empty where nothing can be done.
        """
        match one.state:
            case State.APART:
                return " ".join(one.clause.words)
            case State.NOWHERE:
                spelled = {word: self._close(word) for word in one.missing}
                words = [spelled.get(word, word) for word in one.clause.words]
                joined = " ".join(words) if all(words) else ""
                return f'"{joined}"' if joined and one.clause.is_phrase else joined
            case State.SAID:
                return typed(one.clause)
            case _:
                return "" if said_only else typed(one.clause)

    def _close(self, word: str) -> str:
        """Returns the likeliest close spelling that some turn says, empty if there is none."""
        if word not in self._spelled:
            spellings = list(close_spellings(word)) if len(self._spelled) < _MOST_SPELLED else []
            stems: dict[str, str] = {}
            for spelling, stem in zip(spellings, self._analyser.stems(spellings), strict=True):
                stems.setdefault(stem, spelling)
            said = self._look_ups.occurring(stems, self._reach)
            self._spelled[word] = next((spelling for stem, spelling in stems.items() if stem in said), "")
        return self._spelled[word]

    def _with_exclusions(self, wanted: Iterable[str]) -> str:
        return " ".join([*wanted, *(f"-{typed(clause)}" for clause in self._question.query.excluded)])


class _LookUps:
    """Searches for one turn that the store still has, counted."""

    def __init__(self, lists: Lists, store: Store, patience: Patience) -> None:
        self._lists = lists
        self._store = store
        self._patience = patience
        self.left = MOST_LOOK_UPS

    def occurring(self, stems: Collection[str], reach: Reach) -> Collection[str]:
        """Returns which of the stems some turn says, or said until lately."""
        self._patience.check()
        return self._lists.occurring(stems, reach) if stems else ()

    def finds(self, question: Question, reach: Reach) -> bool:
        """Tells whether there is a match."""
        self.left -= 1
        after: Found | None = None
        wanted = 1
        while True:
            self._patience.check()
            found = self._lists.matches(question, reach, after, wanted)
            if self._store.turns([one.number for one in found]):
                return True
            if len(found) < wanted:
                return False
            after, wanted = found[-1], min(4 * wanted, 256)  # a deleted conversation may lie in the index a while longer

    def finds_any_word(self, question: Question, reach: Reach) -> bool:
        """Tells whether MATCH_ANY_WORD finds a turn."""
        self.left -= 1
        self._patience.check()
        weighed = self._lists.partial(question, reach, every_word=True)
        return any(self._store.turns([one.number]) for one in weighed)


def filters_of(reach: Reach) -> tuple[str, ...]:
    """Returns the names of the filters that narrow a reach."""
    return tuple(name for name, (field, none) in _FILTERS.items() if getattr(reach, field) != none)


def without(reach: Reach, names: Iterable[str]) -> Reach:
    """Returns a reach without some filters."""
    return replace(reach, **dict(_FILTERS[name] for name in names))


def typed(clause: Clause) -> str:
    """Returns a clause so that it can be typed and shown on one line: as it was where it is plain, else by its words."""
    text = " ".join(str(clause).split())
    if text.isprintable() and "`" not in text:
        return text
    words = " ".join(clause.words)
    return f'"{words}"' if clause.is_phrase else words


def _marked(snippet: str) -> Iterator[str]:
    yield from (piece.partition("⟧")[0] for piece in snippet.split("⟦")[1:])
