"""CompileContext: what a prompt may quote of the caller's own conversations, within a budget.

A candidate is the lines of one turn, or of a turn and those beside it. Each turn begins a line with its role, `user: text`; further
lines of its text are indented, so that no text passes for the line of another role. Quoted is what SearchTurns searches. No turn is
quoted twice, and none in part: a candidate that does not fit is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from aforesaid.model import EMPTY_SCOPE, SourceRef
from aforesaid_server.access import Access, Call
from aforesaid_server.errors import InvalidArgument
from aforesaid_server.index.document import Documents
from aforesaid_server.search.chats import UNSEEN_ROLES, VIEW, Chats, TurnsRequest, check_around, limit_of
from aforesaid_server.store import Scope, Store, TurnInPlace
from aforesaid_server.text.transcript import kind_of, text_of_part, without_bytes

DEFAULT_BUDGET = 8_000
"""Code points."""
LARGEST_BUDGET = 1_000_000
BY_SOURCE, BY_SEARCH = "source-ref", "search"
_INDENT = "  "
_AT_ONCE = 8  # turns read together: each may be 32 MiB

_Key: TypeAlias = tuple[int, str]
"""Which turn it is, whatever its text is now: the pk of its conversation, and its id."""
_Lines: TypeAlias = Mapping[_Key, str]
"""The lines of turns, in order."""


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What CompileContext is asked; `budget` in code points, 0 means 8,000. The other fields are those of TurnsRequest."""

    query: str
    sources: Sequence[SourceRef] = ()
    budget: int = 0
    limit: int = 0
    conversation_ids: Sequence[str] = ()
    agent_ids: Sequence[str] = ()
    stem: bool = False
    around: int = 0
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Lines to quote. The ids, the seq and the score are those of the turn that was cited or, of all in it, found best."""

    text: str
    match: str
    agent_id: str
    conversation_id: str
    turn_id: str
    seq: int
    score: float


@dataclass(frozen=True, slots=True)
class Context:
    """What fits, the cited sources first, and how many candidates did not."""

    candidates: Sequence[Candidate]
    left_out: int


@dataclass(frozen=True, slots=True)
class _Hit:
    """A turn that was cited or found, without its text."""

    conversation_pk: int
    turn_id: str
    seq: int
    agent_id: str
    conversation_id: str
    score: float

    @property
    def key(self) -> _Key:
        """Which turn it is, whatever its text is now."""
        return self.conversation_pk, self.turn_id


class Contexts:
    """Collects what a prompt may quote."""

    def __init__(self, store: Store, access: Access, chats: Chats, documents: Documents) -> None:
        self._store = store
        self._access = access
        self._chats = chats
        self._searched = documents.searched

    def compile_context(self, call: Call, request: ContextRequest) -> Context:
        """Returns the cited sources, in their order, then what a search finds, as far as it fits."""
        check_around(request.around)
        limit_of(request.limit)
        who = self._access.who(call, request.scope)
        page = _Page(_budget_of(request.budget))
        cited: set[_Key] = set()
        for source in request.sources:
            call.patience.check()
            try:
                place = self._chats.cited(who, source)
            except InvalidArgument:  # it may be one of several
                continue
            if place is None or (hit := _hit_of(place, 1.0)).key in cited:
                continue
            cited.add(hit.key)
            page.put(BY_SOURCE, hit, self._lines([place], page))
        asked = TurnsRequest(
            request.query, request.limit, request.conversation_ids, request.agent_ids, request.stem, scope=request.scope
        )
        hits = [
            hit for hit in (_hit_of(place, score) for place, score in self._chats.found(call, who, asked)) if hit.key not in cited
        ]
        for group in _neighbourhoods(hits, request.around):
            call.patience.check()
            self._quote(page, group, request.around)
        return Context(page.candidates, page.left_out)

    def _quote(self, page: _Page, group: Sequence[_Hit], around: int) -> None:
        """Quotes hits that stand near each other with the turns beside them, or, where that does not fit, each by itself."""
        first = max(0, min(hit.seq for hit in group) - around)
        last = max(hit.seq for hit in group) + around
        lines = self._lines(self._places(group[0].conversation_pk, first, last), page)
        group = [hit for hit in group if hit.key in lines]  # the others are gone since they were found
        if not group or (len(lines) > 1 and page.put(BY_SEARCH, group[0], lines, must_fit=False)):
            return
        for hit in group:
            page.put(BY_SEARCH, hit, {hit.key: lines[hit.key]})

    def _places(self, conversation_pk: int, first: int, last: int) -> Iterator[TurnInPlace]:
        """Yields the turns of a conversation from one seq to another, with the calls that their results answer."""
        for seq in range(first, last + 1, _AT_ONCE):
            turns = self._store.places_from(conversation_pk, seq, min(_AT_ONCE, last + 1 - seq))
            yield from self._store.turns([turn.number for turn in turns]).values()

    def _lines(self, places: Iterable[TurnInPlace], page: _Page) -> _Lines:
        """Returns the lines of turns, in order, that were not quoted before."""
        found = {}
        for place in places:
            key = place.conversation.pk, place.turn.turn_id
            if key not in page.quoted and (text := self._text_of(place)):
                found[key] = as_lines(place.turn.role, text)
        return found

    def _text_of(self, place: TurnInPlace) -> str:
        """Returns what is quoted of a turn: what SearchTurns searches."""
        turn = place.turn
        if turn.role in UNSEEN_ROLES:
            return ""
        left_out = self._searched.own_searches(turn.parts, place.answers)
        seen = (part for at, part in enumerate(turn.parts) if kind_of(part) & VIEW and at not in left_out)
        text = "\n".join(without_bytes(text_of_part(part)) for part in seen).strip("\r\n")
        return text if text.strip() else ""


class _Page:
    """The candidates so far, and what is left of the budget."""

    def __init__(self, budget: int) -> None:
        self.candidates: list[Candidate] = []
        self.left_out = 0
        self.quoted: set[_Key] = set()
        self._left = budget

    def put(self, match: str, hit: _Hit, lines: _Lines, *, must_fit: bool = True) -> bool:
        """Adds a candidate, if there is anything to quote. Tells whether it is done with: one that does not fit is not, and is
        counted where it `must_fit`.
        """
        if not lines:
            return True
        text = "\n".join(lines.values())
        cost = len(text) + bool(self.candidates)  # the newline between two
        if cost > self._left:
            self.left_out += must_fit
            return False
        self._left -= cost
        self.quoted.update(lines)
        self.candidates.append(Candidate(text, match, hit.agent_id, hit.conversation_id, hit.turn_id, hit.seq, hit.score))
        return True


def as_lines(role: str, text: str) -> str:
    """Returns a turn as lines: its role before the first, the others indented, whatever breaks the lines of the text."""
    first, *others = text.splitlines()
    named = " ".join(role.split()) or "unknown"
    return "\n".join([f"{named}: {first}", *(_INDENT + line if line.strip() else "" for line in others)])


def _hit_of(place: TurnInPlace, score: float) -> _Hit:
    return _Hit(
        place.conversation.pk, place.turn.turn_id, place.turn.seq, place.agent.agent_id, place.conversation.conversation_id, score
    )


def _neighbourhoods(hits: Sequence[_Hit], around: int) -> list[list[_Hit]]:
    """Returns hits in groups of those of one conversation whose neighbours overlap; groups and hits in the order given."""
    place = {hit.key: at for at, hit in enumerate(hits)}
    groups: list[list[_Hit]] = []
    for hit in sorted(hits, key=lambda hit: (hit.conversation_pk, hit.seq)):
        before = groups[-1][-1] if groups else None
        if before and before.conversation_pk == hit.conversation_pk and hit.seq - before.seq <= 2 * around:
            groups[-1].append(hit)
        else:
            groups.append([hit])
    in_order = [sorted(group, key=lambda hit: place[hit.key]) for group in groups]
    return sorted(in_order, key=lambda group: place[group[0].key])


def _budget_of(budget: int) -> int:
    if budget < 0:
        raise InvalidArgument("budget", f"{budget} is less than 0")
    return min(budget or DEFAULT_BUDGET, LARGEST_BUDGET)
