"""SearchTurns and ResolveSource: an application looks things up in the chats that it keeps here, and gets whole turns.

Only what is the caller's own is looked at, so nothing is recorded. Searched are text and the plain text of tool results, never
system turns, and of those not what a search tool gave before. A query has no syntax: a turn is found that holds any of its terms.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from aforesaid.model import EMPTY_SCOPE, File, Part, Reasoning, SourceRef, Text, ToolCall, ToolResult
from aforesaid_server.access import Access, Call, Who
from aforesaid_server.errors import InvalidArgument, NotFound
from aforesaid_server.index import Lists, Reach
from aforesaid_server.index.document import Documents
from aforesaid_server.index.live import LiveIndex
from aforesaid_server.paging import DEFAULT_LIMIT, LARGEST_LIMIT
from aforesaid_server.query.judge import Question
from aforesaid_server.query.parse import terms_of, terms_query
from aforesaid_server.store import Scope, Store, StoredTurn, TurnInPlace
from aforesaid_server.text.transcript import Kind

VIEW = Kind.TEXT | Kind.TOOL_RESULT_TEXT
"""The parts that are searched and quoted."""
UNSEEN_ROLES = frozenset({"system"})
"""Turns of these roles are neither searched nor quoted."""
MOST_TERMS = 32
HIT_BYTES = 8 * 1_048_576
"""Bytes of the parts of all hits in one reply; the best one comes whole."""
BESIDE_BYTES = 8 * 1_048_576
"""Bytes of the parts of all turns beside hits in one reply."""
HIGHEST_AROUND = 10
_HURRY_SECONDS = 1.0
_AT_ONCE = 8  # turns read together: each may be 32 MiB


@dataclass(frozen=True, slots=True)
class TurnsRequest:
    """What SearchTurns is asked. Empty ids do not narrow; `limit` 0 means 20, more than 100 is capped."""

    query: str
    limit: int = 0
    conversation_ids: Sequence[str] = ()
    agent_ids: Sequence[str] = ()
    stem: bool = False
    around: int = 0
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


@dataclass(frozen=True, slots=True)
class TurnHit:
    """A turn that was found, whole, with those beside it. The score is a share of the best one's, to three decimals.

    `parts_left_out`: some of these turns come without their parts, since the reply would have been too large.
    """

    place: TurnInPlace
    score: float
    before: tuple[StoredTurn, ...] = ()
    after: tuple[StoredTurn, ...] = ()
    parts_left_out: bool = False


@dataclass(frozen=True, slots=True)
class TurnsReply:
    """The best turns. `as_of` in microseconds."""

    hits: Sequence[TurnHit]
    notice: str
    turns_pending: int
    as_of: int


@dataclass(frozen=True, slots=True)
class Resolved:
    """The turn that a source names; `unchanged` None where the source has no digest to compare."""

    place: TurnInPlace
    unchanged: bool | None


class Chats:
    """Looks things up in the caller's own conversations."""

    def __init__(self, store: Store, live: LiveIndex, access: Access, documents: Documents) -> None:
        self._store = store
        self._live = live
        self._access = access
        self._documents = documents

    # -- SearchTurns

    def search_turns(self, call: Call, request: TurnsRequest) -> TurnsReply:
        """Returns the best turns that hold any term of the query."""
        check_around(request.around)
        limit = limit_of(request.limit)
        who = self._access.who(call, request.scope)
        reach = self._reach(who, request)
        terms = terms_of(request.query)
        as_of = time.time_ns() // 1_000
        pending = self._live.pending(reach)  # asked first: 0 means that the list holds all
        hits_room, beside_room = _Room(HIT_BYTES), _Room(BESIDE_BYTES)
        hits: list[TurnHit] = []
        for place, score in self._best(call, terms, reach, limit, stem=request.stem):
            turn = hits_room.keep(place.turn, whole=not hits)
            beside = [beside_room.keep(one) for one in self._beside(place, request.around)]
            before = tuple(one for one in beside if one.seq < turn.seq)
            after = tuple(one for one in beside if one.seq > turn.seq)
            left_out = bool(hits_room.take_left_out() + beside_room.take_left_out())
            hits.append(TurnHit(replace(place, turn=turn), score, before, after, left_out))
        return TurnsReply(hits, _notice(who, terms, hits, pending), pending, as_of)

    def found(self, call: Call, who: Who, request: TurnsRequest) -> Iterator[tuple[TurnInPlace, float]]:
        """Yields the turns that SearchTurns finds with their scores, best first."""
        reach = self._reach(who, request)
        return self._best(call, terms_of(request.query), reach, limit_of(request.limit), stem=request.stem)

    def _reach(self, who: Who, request: TurnsRequest) -> Reach:
        scope = who.scope or {}
        agents = self._own(who)
        conversations = None
        if request.conversation_ids:
            found = [self._store.conversations_with_id(one, scope, agents) for one in set(request.conversation_ids)]
            conversations = frozenset(pk for some in found for pk in some)
        if request.agent_ids:
            named = self._store.pks_with_ids(request.agent_ids, scope)
            agents = agents if named is None else named if agents is None else named & agents
        return Reach(scope, agents, conversations, kinds=VIEW, except_roles=UNSEEN_ROLES)

    def _own(self, who: Who) -> frozenset[int] | None:
        """Returns the pks of the caller's own agents, None for all of its scope."""
        return self._access.readable(who, "", EMPTY_SCOPE).agents

    def _best(
        self, call: Call, terms: Sequence[tuple[str, ...]], reach: Reach, limit: int, *, stem: bool
    ) -> Iterator[tuple[TurnInPlace, float]]:
        """Yields turns with the share of the best one's weight; the store has the last word on which are there."""
        if not terms or frozenset() in (reach.agents, reach.conversation_pks):
            return
        question = Question(terms_query(terms[:MOST_TERMS], self._documents.analyser), as_typed=not stem)
        rest = self._caught_up().partial(question, reach, every_word=True)
        best, shown = 0.0, 0
        while rest and shown < limit:
            call.patience.check()
            at_once = min(_AT_ONCE, limit - shown)
            some, rest = rest[:at_once], rest[at_once:]
            turns = self._store.turns([one.number for one in some])
            for one in some:
                if one.number in turns:
                    best = best or one.weight
                    shown += 1
                    yield turns[one.number], round(one.weight / best, 3) if best else 1.0

    def _caught_up(self) -> Lists:
        """Returns the lists when the engine, which alone weighs turns well, holds what writes brought."""
        self._live.lists()  # learns what other nodes wrote
        self._live.hurry_fresh(_HURRY_SECONDS)
        return self._live.lists()

    def _beside(self, place: TurnInPlace, sides: int) -> Iterator[StoredTurn]:
        """Yields the turns on both sides of one, in order."""
        seq = place.turn.seq
        for first, last in ((max(0, seq - sides), seq), (seq + 1, seq + 1 + sides)):
            for at in range(first, last, _AT_ONCE):
                yield from self._store.turns_from(place.conversation.pk, at, min(_AT_ONCE, last - at))

    # -- ResolveSource

    def resolve_source(self, call: Call, source: SourceRef, scope: Scope) -> Resolved:
        """Returns the turn that a source names. Raises NotFound, with one message whatever the reason, and InvalidArgument where it
        may be one of several.
        """
        place = self.cited(self._access.who(call, scope), source)
        if place is None:
            raise NotFound(f"source: there is no turn {source.turn_id} in a conversation {source.conversation_id}")
        return Resolved(place, digest_of(place.turn) == source.digest if source.digest else None)

    def cited(self, who: Who, source: SourceRef) -> TurnInPlace | None:
        """Returns the turn that a source names, None if the caller sees none.

        Of several conversations of that id it is the one of exactly the scope asked for, whatever became of it; if there is none,
        the one that has such a turn. Raises InvalidArgument where several have.
        """
        if who.scope is None:
            return None
        numbers = self._store.cited(source.conversation_id, source.turn_id, who.scope, self._own(who), source.agent_id)
        if len(numbers) > 1:
            problem = f"several conversations have the id {source.conversation_id}: name the scope or the agent"
            raise InvalidArgument("source.conversation_id", problem)
        return next(iter(self._store.turns(numbers).values()), None)


class _Room:
    """How many bytes of parts a reply may still hold."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._left_out = 0

    def keep(self, turn: StoredTurn, *, whole: bool = False) -> StoredTurn:
        """Returns a turn, without its parts where there is no room for them."""
        size = sum(map(size_of, turn.parts))
        if size > self._left and not whole:
            self._left_out += 1
            return replace(turn, parts=())
        self._left -= size
        return turn

    def take_left_out(self) -> int:
        """Returns how many turns came without their parts since this was last asked."""
        left_out, self._left_out = self._left_out, 0
        return left_out


def size_of(part: Part) -> int:
    """Returns the UTF-8 bytes of what a part holds."""
    match part:
        case Text(text) | Reasoning(text):
            return len(text.encode())
        case ToolCall(name, arguments, call_id):
            return len(name.encode()) + len(arguments.encode()) + len(call_id.encode())
        case ToolResult(content, call_id):
            return len(content.encode()) + len(call_id.encode())
        case File(media_type, name):
            return len(media_type.encode()) + len(name.encode())


def digest_of(turn: StoredTurn) -> str:
    """Returns the digest of a turn's text as it is written on the wire."""
    return f"sha256:{turn.digest.hex()}"


def limit_of(limit: int) -> int:
    """Returns how many hits are asked for: 20 by default, 100 at most. Raises InvalidArgument for a negative number."""
    if limit < 0:
        raise InvalidArgument("limit", f"{limit} is less than 0")
    return min(limit or DEFAULT_LIMIT, LARGEST_LIMIT)


def check_around(around: int) -> None:
    """Raises InvalidArgument for too many turns on each side."""
    if not 0 <= around <= HIGHEST_AROUND:
        raise InvalidArgument("around", f"{around} is not between 0 and {HIGHEST_AROUND}")


def _notice(who: Who, terms: Sequence[tuple[str, ...]], hits: Sequence[TurnHit], pending: int) -> str:
    told: list[str] = []
    if not terms:
        told.append("Nothing was searched for: the query has no letter or digit")
    elif who.scope is None:
        told.append("Nothing was found: the scope of the request contradicts the caller's")
    elif not hits:
        told.append("Nothing was found: no turn that was searched holds any of the terms")
    if len(terms) > MOST_TERMS:
        told.append(f"Of {len(terms)} different terms the first {MOST_TERMS} were searched for")
    if left_out := sum(hit.parts_left_out for hit in hits):
        told.append(
            f"{left_out} of the hits come without the parts of some turns, which ReadTranscript has: the reply is too large"
        )
    if pending:
        told.append("An import is still being indexed: more may be found soon")
    return ". ".join(told) + "." if told else ""
