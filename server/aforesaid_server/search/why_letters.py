"""Why MATCH_SUBSTRING found nothing: whether the letters stand outside of a filter or in calls of search tools only, or their words
are said though not letter by letter.

Looks only at what the search itself might look at, its filters aside. Reads little: where the bounds are reached, nothing is said
that was not seen. notice.py puts it into words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from aforesaid_server.access import Patience
from aforesaid_server.errors import InvalidArgument
from aforesaid_server.index import Lists, Reach
from aforesaid_server.query.judge import Question
from aforesaid_server.query.parse import parse
from aforesaid_server.search.substring import Bounds, Substrings
from aforesaid_server.search.why import Suggestion, filters_of, without
from aforesaid_server.store import Store
from aforesaid_server.text.words import Analyser

_MOST_TURNS, _MOST_BYTES = 1_000, 8 * 1_048_576


@dataclass(frozen=True, slots=True)
class Unheld:
    """Why nothing was found: the change of the request that finds the letters, or that finds their words; the filters that were set
    where even without them nothing is found.
    """

    suggestion: Suggestion | None = None
    filters: tuple[str, ...] = ()


class WhyLetters:
    """Explains one search."""

    def __init__(
        self,
        query: str,
        letters: str,
        reach: Reach,
        *,
        as_typed: bool,
        substrings: Substrings,
        lists: Lists,
        store: Store,
        analyser: Analyser,
        patience: Patience,
    ) -> None:
        self._query = query
        self._letters = letters
        self._reach = reach
        self._as_typed = as_typed
        self._substrings = substrings
        self._lists = lists
        self._store = store
        self._analyser = analyser
        self._patience = patience
        self._bounds = Bounds(_MOST_TURNS, _MOST_BYTES)

    def nothing(self) -> Unheld:
        """Explains why no turn was found."""
        filters = filters_of(self._reach)
        for suggestion in self._changes(filters):
            if self._holds(suggestion):
                return Unheld(suggestion)
        seen_all = not self._bounds.reached
        if self._words_are_said():
            return Unheld(Suggestion(all_words=True), filters if seen_all else ())
        return Unheld(None, filters if seen_all else ())

    def _changes(self, filters: tuple[str, ...]) -> Iterator[Suggestion]:
        """Yields what may find the letters, the smallest change first."""
        if not self._reach.own_searches:
            yield Suggestion(own_searches=True)
        yield from (Suggestion(without=(name,)) for name in filters)
        if len(filters) > 1:
            yield Suggestion(without=filters)
        if filters and not self._reach.own_searches:
            yield Suggestion(without=filters, own_searches=True)

    def _holds(self, suggestion: Suggestion) -> bool:
        if self._bounds.reached:
            return False
        reach = without(self._reach, suggestion.without)
        reach = replace(reach, own_searches=True) if suggestion.own_searches else reach
        looked = self._substrings.look(
            self._letters, reach, None, 1, lists=self._lists, patience=self._patience, bounds=self._bounds
        )
        return bool(looked.turns)

    def _words_are_said(self) -> bool:
        try:
            question = Question(parse(self._query, self._analyser), self._as_typed)
        except InvalidArgument:
            return False  # no word is in it
        self._patience.check()
        found = self._lists.matches(question, self._reach, None, 1)
        return bool(self._store.turns([one.number for one in found]))
