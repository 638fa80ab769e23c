"""Rows as values, and values as rows: which columns make an agent, a conversation, a turn, a part, and how turns are read whole.

Holds no transaction and decides nothing: every function takes the connection of the one that asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, assert_never

from sqlalchemy import ColumnElement, Connection, FromClause, bindparam, func, select

from aforesaid.model import EMPTY_SCOPE, File, Part, Reasoning, Source, Text, ToolCall, ToolResult
from aforesaid_server.store import Scope, StoredAgent, StoredConversation, StoredTurn, TurnInPlace, TurnPlace
from aforesaid_server.store.tables import agents, conversations, parts, scope_pairs, scopes, turns

Values: TypeAlias = dict[str, Any]

CHUNK = 1000  # values in one list of a statement; engines take 32,766 and more

_T = TypeVar("_T")


def in_chunks(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Yields the values in pieces that one statement takes."""
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]


# -- scopes


def canonical(scope: Scope) -> str:
    """Returns a scope as the one JSON text that stands for it."""
    return json.dumps(dict(sorted(scope.items())), ensure_ascii=False, separators=(",", ":"))


def scope_digest(scope: Scope) -> bytes:
    """Returns the SHA-256 of a scope's canonical JSON."""
    return sha256(canonical(scope).encode()).digest()


@lru_cache(maxsize=4096)
def scope_of(text: str) -> Scope:
    """Returns the scope that a canonical JSON text stands for; one value for all who ask."""
    pairs = json.loads(text)
    return MappingProxyType(pairs) if pairs else EMPTY_SCOPE


def in_scope(scope: Scope) -> list[ColumnElement[bool]]:
    """Returns the condition on an agent that its scope has every pair of `scope`; none for the empty one."""
    if not scope:
        return []
    first, *others = [(scope_pairs.alias(), key, value) for key, value in sorted(scope.items())]
    pairs, key, value = first
    having = select(pairs.c.scope_pk).where(pairs.c.key == key, pairs.c.value == value)
    for other, other_key, other_value in others:
        same = other.c.scope_pk == pairs.c.scope_pk
        having = having.join(other, same & (other.c.key == other_key) & (other.c.value == other_value))
    return [agents.c.scope_pk.in_(having)]


# -- agents and conversations

_parents = agents.alias("parents")
_parents_scopes = scopes.alias("parents_scopes")

AGENT: tuple[ColumnElement[Any], ...] = (
    agents.c.pk,
    agents.c.agent_id,
    agents.c.name,
    agents.c.role,
    agents.c.archived,
    scopes.c.pairs,
    agents.c.parent_pk,
    func.coalesce(_parents.c.agent_id, ""),
    _parents_scopes.c.pairs,
)
CONVERSATION: tuple[ColumnElement[Any], ...] = (
    conversations.c.pk,
    conversations.c.agent_pk,
    conversations.c.conversation_id,
    conversations.c.title,
    conversations.c.source_format,
    conversations.c.source_file,
    conversations.c.source_project,
    conversations.c.revision,
    conversations.c.created_at,
    conversations.c.updated_at,
    conversations.c.turn_count,
    conversations.c.content_length,
)


def with_agents(tables: FromClause, *, all_of_them: bool = False) -> FromClause:
    """Returns tables that hold agents joined to what AGENT names besides; `all_of_them` keeps rows without an agent."""
    joined = tables.join(scopes, agents.c.scope_pk == scopes.c.pk, isouter=all_of_them)
    joined = joined.outerjoin(_parents, agents.c.parent_pk == _parents.c.pk)
    return joined.outerjoin(_parents_scopes, _parents.c.scope_pk == _parents_scopes.c.pk)


def agent_of(row: Sequence[Any]) -> StoredAgent:
    """Returns the agent in a row of AGENT."""
    pk, agent_id, name, role, archived, scope, parent_pk, parent_agent_id, parent_scope = row
    return StoredAgent(
        pk, agent_id, name, role, archived, scope_of(scope), parent_pk, parent_agent_id, scope_of(parent_scope or "{}")
    )


def conversation_of(row: Sequence[Any]) -> StoredConversation:
    """Returns the conversation in a row of CONVERSATION."""
    pk, agent_pk, conversation_id, title, source_format, file, project, revision, created_at, updated_at, count, length = row
    source = Source(source_format, file, project)
    return StoredConversation(pk, agent_pk, conversation_id, title, source, revision, created_at, updated_at, count, length)


# -- parts


def part_of(kind: str, text: str, name: str, call_id: str, media_type: str, is_error: bool) -> Part:
    """Returns the part in a row of the table of parts."""
    match kind:
        case "text":
            return Text(text)
        case "reasoning":
            return Reasoning(text)
        case "tool_call":
            return ToolCall(name, text, call_id)
        case "tool_result_text" | "tool_result_json":
            return ToolResult(text, call_id, kind == "tool_result_json", is_error)
        case "file":
            return File(media_type, name)
    raise ValueError(f"unknown kind of part {kind}")


def row_of_part(number: int, place: int, part: Part) -> Values:
    """Returns a part as a row of the turn with that number."""
    kind, text, name, call_id, media_type, is_error = "", "", "", "", "", False
    match part:
        case Text():
            kind, text = "text", part.text
        case Reasoning():
            kind, text = "reasoning", part.text
        case ToolCall():
            kind, text, name, call_id = "tool_call", part.arguments, part.name, part.call_id
        case ToolResult():
            kind = "tool_result_json" if part.is_json else "tool_result_text"
            text, call_id, is_error = part.content, part.call_id, part.is_error
        case File():
            kind, name, media_type = "file", part.name, part.media_type
        case _:
            assert_never(part)
    return {
        "turn_number": number,
        "place": place,
        "kind": kind,
        "text": text,
        "name": name,
        "call_id": call_id,
        "media_type": media_type,
        "is_error": is_error,
    }


# -- turns

TURN: tuple[ColumnElement[Any], ...] = (
    turns.c.number,
    turns.c.conversation_pk,
    turns.c.turn_id,
    turns.c.seq,
    turns.c.role,
    turns.c.created_at,
    turns.c.content_offset,
    turns.c.content_length,
    turns.c.digest,
)
PART: tuple[ColumnElement[Any], ...] = (
    parts.c.turn_number,
    parts.c.kind,
    parts.c.text,
    parts.c.name,
    parts.c.call_id,
    parts.c.media_type,
    parts.c.is_error,
)
Parts: TypeAlias = dict[int, tuple[Part, ...]]


def turn_of(row: Sequence[Any], parts_of_turns: Parts) -> StoredTurn:
    """Returns the turn in a row of TURN."""
    number, conversation_pk, turn_id, seq, role, created_at, offset, length, digest = row
    its_parts = parts_of_turns.get(number, ())
    return StoredTurn(number, conversation_pk, turn_id, seq, role, its_parts, created_at, offset, length, digest)


def row_of_turn(turn: StoredTurn, logged: int) -> Values:
    """Returns a turn as a row that the change `logged` puts."""
    return {
        "number": turn.number,
        "conversation_pk": turn.conversation_pk,
        "turn_id": turn.turn_id,
        "seq": turn.seq,
        "role": turn.role,
        "created_at": turn.created_at,
        "content_offset": turn.content_offset,
        "content_length": turn.content_length,
        "digest": turn.digest,
        "logged": logged,
    }


def grouped(rows: Iterable[Sequence[Any]]) -> Parts:
    """Returns the parts in rows of PART, which stand in the order of each turn, by the number of their turn."""
    found: dict[int, list[Part]] = {}
    for number, kind, text, name, call_id, media_type, is_error in rows:
        found.setdefault(number, []).append(part_of(kind, text, name, call_id, media_type, is_error))
    return {number: tuple(those) for number, those in found.items()}


_TURNS_BY_ID = select(*TURN).where(
    turns.c.conversation_pk == bindparam("conversation"), turns.c.turn_id.in_(bindparam("ids", expanding=True))
)
_PARTS_BY_ID = (
    select(*PART)
    .join_from(turns, parts, parts.c.turn_number == turns.c.number)
    .where(turns.c.conversation_pk == bindparam("conversation"), turns.c.turn_id.in_(bindparam("ids", expanding=True)))
    .order_by(parts.c.turn_number, parts.c.place)
)
_TURNS_BY_SEQ = (
    select(*TURN)
    .where(turns.c.conversation_pk == bindparam("conversation"), turns.c.seq.between(bindparam("first"), bindparam("last")))
    .order_by(turns.c.seq)
)
_PARTS_BY_SEQ = (
    select(*PART)
    .join_from(turns, parts, parts.c.turn_number == turns.c.number)
    .where(turns.c.conversation_pk == bindparam("conversation"), turns.c.seq.between(bindparam("first"), bindparam("last")))
    .order_by(turns.c.seq, parts.c.place)
)
_IN_PLACE = select(*TURN, *CONVERSATION, *AGENT).select_from(
    with_agents(
        turns.join(conversations, turns.c.conversation_pk == conversations.c.pk).join(
            agents, conversations.c.agent_pk == agents.c.pk
        )
    )
)
_TURNS_BY_NUMBER = _IN_PLACE.where(turns.c.number.in_(bindparam("numbers", expanding=True)))
_PARTS_BY_NUMBER = (
    select(*PART).where(parts.c.turn_number.in_(bindparam("numbers", expanding=True))).order_by(parts.c.turn_number, parts.c.place)
)

_PLACE = select(turns.c.number, turns.c.conversation_pk, turns.c.seq, turns.c.content_length)
_PLACES_BY_NUMBER = _PLACE.where(turns.c.number.in_(bindparam("numbers", expanding=True)))
_PLACES_FROM = (
    _PLACE.where(turns.c.conversation_pk == bindparam("conversation"), turns.c.seq >= bindparam("first"))
    .order_by(turns.c.seq)
    .limit(bindparam("limit"))
)


def places_by_number(connection: Connection, numbers: Sequence[int]) -> list[TurnPlace]:
    """Returns where the turns stand that have these numbers now, in no order."""
    rows = (row for some in in_chunks(numbers) for row in connection.execute(_PLACES_BY_NUMBER, {"numbers": some}))
    return [TurnPlace(*row) for row in rows]


def places_from(connection: Connection, conversation_pk: int, first: int, limit: int) -> list[TurnPlace]:
    """Returns where the turns of a conversation stand, in order from a seq on."""
    these = {"conversation": conversation_pk, "first": first, "limit": limit}
    return [TurnPlace(*row) for row in connection.execute(_PLACES_FROM, these)]


def turns_by_id(connection: Connection, conversation_pk: int, ids: Sequence[str]) -> list[StoredTurn]:
    """Returns the turns of a conversation that have these ids, in no order."""
    found: list[StoredTurn] = []
    for some in in_chunks(ids):
        these = {"conversation": conversation_pk, "ids": some}
        rows = connection.execute(_TURNS_BY_ID, these).all()
        those = grouped(connection.execute(_PARTS_BY_ID, these).all()) if rows else {}
        found += [turn_of(row, those) for row in rows]
    return found


def turns_by_seq(connection: Connection, conversation_pk: int, first: int, last: int) -> list[StoredTurn]:
    """Returns the turns of a conversation from one seq to another, both included, in order."""
    these = {"conversation": conversation_pk, "first": first, "last": last}
    rows = connection.execute(_TURNS_BY_SEQ, these).all()
    those = grouped(connection.execute(_PARTS_BY_SEQ, these).all()) if rows else {}
    return [turn_of(row, those) for row in rows]


def turns_by_number(connection: Connection, numbers: Sequence[int]) -> dict[int, TurnInPlace]:
    """Returns the turns that have these numbers now, in their order."""
    found: dict[int, TurnInPlace] = {}
    for some in in_chunks(numbers):
        rows = connection.execute(_TURNS_BY_NUMBER, {"numbers": some}).all()
        those = grouped(connection.execute(_PARTS_BY_NUMBER, {"numbers": some}).all()) if rows else {}
        found |= {placed.turn.number: placed for placed in in_place(rows, those)}
    return {number: found[number] for number in numbers if number in found}


def in_place(rows: Iterable[Sequence[Any]], parts_of_turns: Parts) -> Iterator[TurnInPlace]:
    """Yields the turns in rows of TURN, CONVERSATION and AGENT; those of one conversation share it."""
    known: dict[int, tuple[StoredConversation, StoredAgent]] = {}
    for row in rows:
        conversation_pk = row[1]
        around = known.get(conversation_pk)
        if around is None:
            conversation, agent = row[_AFTER_TURN:_AFTER_CONVERSATION], row[_AFTER_CONVERSATION:]
            around = known[conversation_pk] = conversation_of(conversation), agent_of(agent)
        yield TurnInPlace(turn_of(row[:_AFTER_TURN], parts_of_turns), *around)


_AFTER_TURN = len(TURN)
_AFTER_CONVERSATION = len(TURN) + len(CONVERSATION)
