"""MATCH_SUBSTRING: the turns whose text, or whose arguments as written, hold letters as they were typed, case aside.

The index names conversations and turns that may hold them, the newest conversation first; each turn is read and looked through, in
the order of its conversation, until the page is full and one more is known. How much is read for a page is bounded: where the bound
is reached, the page ends, and its token goes on behind the last turn that was looked at, wherever that stands by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice

from aforesaid_server.access import Patience
from aforesaid_server.errors import InvalidArgument
from aforesaid_server.index import Candidate, Lists, Reach
from aforesaid_server.index.document import Documents
from aforesaid_server.query.parse import LONGEST_QUERY
from aforesaid_server.search.cursor import MOST_BESIDE, Reached
from aforesaid_server.store import Store, TurnInPlace, TurnPlace
from aforesaid_server.text.transcript import fold_letters

SCORE = 1.0
"""The score of every hit: a turn holds the letters or it does not."""
MOST_TURNS = 5_000
MOST_BYTES = 64 * 1_048_576
"""Turns, and bytes of their texts, that are read for one page at most; one turn always is."""
_FEWEST_CANDIDATES, _MOST_CANDIDATES = 100, 1_000
"""Turns that the index is asked for at first, and later at once."""
_MANY = 1_000
"""Candidates of one conversation from which on its turns are gone through in order, instead of sorting them all for each page."""
_PIECE_TURNS, _PIECE_BYTES = 256, 4 * 1_048_576
"""Turns, and bytes of their texts, that are read at once; one turn may be 32 MiB."""


def letters_of(query: str) -> str:
    """Returns what a query asks for, folded. Raises InvalidArgument for an empty one, and for one that is too long."""
    if not query:
        raise InvalidArgument("query", "is empty")
    if len(query) > LONGEST_QUERY:
        raise InvalidArgument("query", f"{len(query)} characters, at most {LONGEST_QUERY} are allowed")
    return fold_letters(query)


@dataclass(slots=True)
class Bounds:
    """How much may still be read."""

    turns: int = MOST_TURNS
    size: int = MOST_BYTES

    @property
    def reached(self) -> bool:
        """Tells whether nothing more may be read."""
        return self.turns <= 0 or self.size <= 0

    def take(self, place: TurnPlace) -> None:
        """Counts a turn."""
        self.turns -= 1
        self.size -= place.content_length


@dataclass(slots=True)
class Looked:
    """What a look through turns gave: those that hold the letters, and where it ended. `more`: there is one more at least.
    `ended_early`: a bound was reached, and others may hold them too.
    """

    turns: list[TurnInPlace] = field(default_factory=list)
    reached: Reached | None = None
    more: bool = False
    ended_early: bool = False


@dataclass(frozen=True, slots=True)
class _Behind:
    """A look begins behind this place."""

    conversation_pk: int
    seq: int


class Substrings:
    """Looks for letters in turns."""

    def __init__(self, store: Store, documents: Documents) -> None:
        self._store = store
        self._documents = documents

    def look(
        self,
        letters: str,
        reach: Reach,
        after: Reached | None,
        limit: int,
        *,
        lists: Lists,
        patience: Patience,
        bounds: Bounds | None = None,
    ) -> Looked:
        """Returns up to `limit` turns that hold folded letters, in order, after a place that was reached before."""
        bounds = bounds if bounds is not None else Bounds()
        looked = Looked(reached=after)
        places = self._places(letters, reach, self._found_again(after), lists, patience)
        wanted = limit + 1
        while piece := _piece(places, wanted, bounds):
            patience.check()
            turns = self._store.turns([place.number for place in piece])
            for at, place in enumerate(piece):
                turn = turns.get(place.number)
                if turn is not None and self._holds(turn, letters, reach):
                    if len(looked.turns) == limit:
                        looked.more = True
                        looked.reached = _with_ahead(looked.reached, piece[at:])
                        return looked
                    looked.turns.append(turn)
                looked.reached = _with_looked_at(looked.reached, place)
            if bounds.reached:
                ahead = [*islice(places, MOST_BESIDE)]
                looked.ended_early = bool(ahead)
                looked.reached = _with_ahead(looked.reached, ahead)
                return looked
            wanted = min(2 * wanted, _PIECE_TURNS)  # the index may have named many that do not hold them
        return looked

    def _found_again(self, after: Reached | None) -> _Behind | None:
        """Returns where a place is now. Where none of the turns beside it is left, the conversation is begun anew."""
        if after is None:
            return None
        places = self._store.places([*after.looked_at, *after.ahead])
        seqs = {place.number: place.seq for place in places if place.conversation_pk == after.conversation_pk}
        behind = [seqs[number] for number in reversed(after.looked_at) if number in seqs]
        behind += [seqs[number] - 1 for number in after.ahead if number in seqs]
        return _Behind(after.conversation_pk, behind[0] if behind else -1)

    def _holds(self, turn: TurnInPlace, letters: str, reach: Reach) -> bool:
        literal = self._documents.literal_of(turn, own_searches=reach.own_searches, kinds=reach.kinds)
        return any(letters in fold_letters(text) for text in literal.texts)

    # -- where the turns stand that may hold the letters

    def _places(self, letters: str, reach: Reach, after: _Behind | None, lists: Lists, patience: Patience) -> Iterator[TurnPlace]:
        """Yields them in order, after a place that was reached before."""
        below = after.conversation_pk + 1 if after is not None else None
        wanted = _FEWEST_CANDIDATES
        while True:
            patience.check()
            candidates = lists.holding(letters, reach, below, wanted)
            if not candidates:
                return
            for place in self._in_order(candidates, after, patience):
                if after is None or place.conversation_pk < after.conversation_pk or place.seq > after.seq:
                    yield place
            below = candidates[-1].conversation_pk
            wanted = min(2 * wanted, _MOST_CANDIDATES)

    def _in_order(self, candidates: Sequence[Candidate], after: _Behind | None, patience: Patience) -> Iterator[TurnPlace]:
        """Yields the places of candidates by conversation and seq, those of several small conversations asked for at once."""
        small: list[int] = []
        for conversation_pk, group in groupby(candidates, lambda candidate: candidate.conversation_pk):
            numbers = [candidate.number for candidate in group]
            if len(numbers) < _MANY:
                small += numbers
                continue
            yield from self._sorted(small)
            small = []
            first = after.seq + 1 if after is not None and after.conversation_pk == conversation_pk else 0
            yield from self._walked(conversation_pk, frozenset(numbers), first, patience)
        yield from self._sorted(small)

    def _sorted(self, numbers: Sequence[int]) -> list[TurnPlace]:
        found = self._store.places(numbers) if numbers else []
        return sorted(found, key=lambda place: (-place.conversation_pk, place.seq))

    def _walked(self, conversation_pk: int, numbers: frozenset[int], seq: int, patience: Patience) -> Iterator[TurnPlace]:
        while places := self._store.places_from(conversation_pk, seq, _MANY):
            patience.check()
            yield from (place for place in places if place.number in numbers)
            seq = places[-1].seq + 1


def _with_looked_at(reached: Reached | None, place: TurnPlace) -> Reached:
    """Returns where it goes on behind a place, after what was reached before."""
    known = reached.looked_at if reached is not None and reached.conversation_pk == place.conversation_pk else ()
    return Reached(place.conversation_pk, (*known, place.number)[-MOST_BESIDE:])


def _with_ahead(reached: Reached | None, places: Iterable[TurnPlace]) -> Reached | None:
    """Returns what was reached with the places that come next in its conversation."""
    if reached is None:
        return None
    ahead = tuple(place.number for place in places if place.conversation_pk == reached.conversation_pk)
    return replace(reached, ahead=ahead[:MOST_BESIDE])


def _piece(places: Iterator[TurnPlace], wanted: int, bounds: Bounds) -> list[TurnPlace]:
    """Takes the next places, so many and so many bytes of text at most, one at least where there is one; counts them."""
    piece: list[TurnPlace] = []
    size = 0
    for place in places:
        piece.append(place)
        bounds.take(place)
        size += place.content_length
        if len(piece) >= wanted or size >= _PIECE_BYTES or bounds.reached:
            break
    return piece
