"""Which call each result of a turn answers, and whose answers a write changes.

A result answers the call of its call id in its conversation. Ids are meant to be unique; where an id comes again, as from writers
that count from 1 in every turn, the last such call before the result is meant, and the first after it only where none is before.
Calls and results without an id belong together inside one turn alone: its first such result answers its first such call, and so on.

This module knows which names belong to which result; what a name means is decided by who reads it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection, bindparam, literal_column, select

from aforesaid.model import Part, ToolCall, ToolResult
from aforesaid_server.store import NO_ANSWERS, Answers, StoredTurn, TurnInPlace
from aforesaid_server.store.rows import in_chunks
from aforesaid_server.store.tables import parts, turns


class Link(NamedTuple):
    """A part with a call id: a call, or, where `name` is None, a result."""

    turn_id: str
    seq: int
    place: int
    call_id: str
    name: str | None


class CallAt(NamedTuple):
    """A call at its place in a conversation; sorts as it stands there."""

    seq: int
    place: int
    name: str


Calls: TypeAlias = Mapping[str, Sequence[CallAt]]
"""The calls of one conversation by call id, in order."""

# Both halves are needed, the first as it is written: the index of call ids is of parts that have one, and is taken only where the
# statement says so.
_HAS_ID = (parts.c.call_id != literal_column("''")) & parts.c.call_id.in_(bindparam("ids", expanding=True))
_CALLS = (
    select(turns.c.conversation_pk, parts.c.call_id, turns.c.seq, parts.c.place, parts.c.name)
    .join_from(parts, turns, parts.c.turn_number == turns.c.number)
    .where(_HAS_ID, parts.c.kind == "tool_call", turns.c.conversation_pk.in_(bindparam("conversations", expanding=True)))
)
_LINKS = (
    select(turns.c.turn_id, turns.c.seq, parts.c.place, parts.c.call_id, parts.c.kind, parts.c.name)
    .join_from(parts, turns, parts.c.turn_number == turns.c.number)
    .where(_HAS_ID, turns.c.conversation_pk == bindparam("conversation"))
)


# -- reading


def with_answers(connection: Connection, placed: Iterable[TurnInPlace]) -> list[TurnInPlace]:
    """Returns turns in place with the names of the calls that their results answer."""
    given = list(placed)
    asked = dict.fromkeys((place.turn.conversation_pk, call_id) for place in given for call_id in result_ids(place.turn.parts))
    found: dict[int, dict[str, list[CallAt]]] = {}
    for some in in_chunks(list(asked)):
        these = {"ids": list({call_id for _, call_id in some}), "conversations": list({pk for pk, _ in some})}
        for pk, call_id, seq, place, name in connection.execute(_CALLS, these):
            if (pk, call_id) in asked:
                found.setdefault(pk, {}).setdefault(call_id, []).append(CallAt(seq, place, name))
    for calls in found.values():
        for those in calls.values():
            those.sort()
    return [_joined(place, found.get(place.turn.conversation_pk, {})) for place in given]


def _joined(place: TurnInPlace, calls: Calls) -> TurnInPlace:
    answers = answers_of(place.turn.seq, place.turn.parts, calls)
    return replace(place, answers=answers) if answers else place


def links_in(connection: Connection, conversation_pk: int, call_ids: Collection[str]) -> list[Link]:
    """Returns the parts of a conversation with these call ids, in no order."""
    found: list[Link] = []
    for some in in_chunks(list(call_ids)):
        for turn_id, seq, place, call_id, kind, name in connection.execute(_LINKS, {"conversation": conversation_pk, "ids": some}):
            found.append(Link(turn_id, seq, place, call_id, name if kind == "tool_call" else None))
    return found


# -- joining


def result_ids(those: Sequence[Part]) -> Iterator[str]:
    """Yields the call ids of the results among parts."""
    for part in those:
        if isinstance(part, ToolResult) and part.call_id:
            yield part.call_id


def links_of(turn: StoredTurn) -> list[Link]:
    """Returns the calls and results of a turn that have a call id."""
    return [
        Link(turn.turn_id, turn.seq, place, part.call_id, part.name if isinstance(part, ToolCall) else None)
        for place, part in enumerate(turn.parts)
        if isinstance(part, (ToolCall, ToolResult)) and part.call_id
    ]


def calls_among(links: Iterable[Link]) -> Calls:
    """Returns the calls among parts, by id and in order."""
    found: dict[str, list[CallAt]] = {}
    for link in links:
        if link.name is not None:
            found.setdefault(link.call_id, []).append(CallAt(link.seq, link.place, link.name))
    for those in found.values():
        those.sort()
    return found


def answers_of(seq: int, those: Sequence[Part], calls: Calls) -> Answers:
    """Returns the names of the calls that the results among a turn's parts answer; `calls` holds at least those of their ids."""
    found: dict[int, str] = {}
    nameless: deque[str] = deque()
    for place, part in enumerate(those):
        if isinstance(part, ToolCall) and not part.call_id:
            nameless.append(part.name)
        elif isinstance(part, ToolResult):
            waiting = nameless.popleft() if nameless and not part.call_id else None
            name = _answered(seq, place, calls.get(part.call_id, ())) if part.call_id else waiting
            if name is not None:
                found[place] = name
    return found or NO_ANSWERS


def _answered(seq: int, place: int, calls: Sequence[CallAt]) -> str | None:
    return calls[max(bisect_left(calls, CallAt(seq, place, "")) - 1, 0)].name if calls else None


# -- what a write changes


def differing(before: Iterable[StoredTurn], after: Iterable[StoredTurn]) -> set[str]:
    """Returns the ids of the calls that turns gain, lose or have at another place."""
    was, now = ({link for turn in some for link in links_of(turn) if link.name is not None} for some in (before, after))
    return {link.call_id for link in was ^ now}


def whose_answers_differ(after: Sequence[Link], named: Collection[str], olds: Iterable[StoredTurn]) -> set[str]:
    """Returns the ids of the turns that were there before and answer other calls now.

    `after` are the parts of some call ids as they are after a write that named the turns `named`; `olds` are those of them that
    were there before, as they were, and those that went.
    """
    ids = {link.call_id for link in after}
    before = [link for link in after if link.turn_id not in named]
    before += [link for turn in olds for link in links_of(turn) if link.call_id in ids]
    was, now = _answers_by_turn(before), _answers_by_turn(after)
    return {turn_id for turn_id, answers in now.items() if turn_id in was and was[turn_id] != answers}


def _answers_by_turn(links: Iterable[Link]) -> dict[str, dict[tuple[int, str], str | None]]:
    given = list(links)
    calls = calls_among(given)
    found: dict[str, dict[tuple[int, str], str | None]] = {}
    for link in given:
        if link.name is None:
            answered = _answered(link.seq, link.place, calls.get(link.call_id, ()))
            found.setdefault(link.turn_id, {})[link.place, link.call_id] = answered
    return found
