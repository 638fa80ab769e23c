"""The log of changes as rows, and how it is read: each change with the turn that it puts, as that turn is now.

A turn knows the last change that puts it (`logged`), so a reader of the log meets each turn with its text once, however often it
was changed; the changes before have nothing to put and only tell what to forget.
"""

from __future__ import annotations

from typing import Any, assert_never

from sqlalchemy import Connection, Select, bindparam, select

from aforesaid_server.store import Change, Forget, ForgetConversation, Put
from aforesaid_server.store.answers import with_answers
from aforesaid_server.store.rows import AGENT, CONVERSATION, PART, TURN, Values, grouped, in_place, with_agents
from aforesaid_server.store.tables import agents, changes, conversations, log, parts, turns

TEXT_BUDGET = 32 * 1024 * 1024  # bytes of text read at once, or the follower's batch of 1,000 turns could be 1,000 large ones


def row_of_change(change: Change, conversation_pk: int) -> Values:
    """Returns a change of a conversation as a row."""
    match change:
        case Put(number, turn_number, replaces, _):
            kind = "put"
        case Forget(number, turn_number):
            kind, replaces = "forget", 0
        case ForgetConversation(number):
            kind, turn_number, replaces = "forget_conversation", 0, 0
        case _:
            assert_never(change)
    return {
        "number": number,
        "kind": kind,
        "conversation_pk": conversation_pk,
        "turn_number": turn_number,
        "replaces": replaces,
    }


_HEAD = select(log.c.head)
_LOCKED_HEAD = _HEAD.with_for_update()


def head(connection: Connection) -> int:
    """Returns the number of the last change."""
    number: int = connection.execute(_HEAD).scalar_one()
    return number


def take_head(connection: Connection) -> int:
    """Returns the number of the last change and keeps others from writing until the transaction ends."""
    number: int = connection.execute(_LOCKED_HEAD).scalar_one()
    return number


def give_head(connection: Connection, number: int) -> None:
    """Moves the counter to the number of the last change of a transaction."""
    connection.execute(log.update().values(head=number))


_LOG = (changes.c.number, changes.c.kind, changes.c.conversation_pk, changes.c.turn_number, changes.c.replaces)
_STILL_PUT = (changes.c.turn_number == turns.c.number) & (changes.c.number == turns.c.logged)

_CHANGES: Select[Any] = (
    select(*_LOG, *TURN, *CONVERSATION, *AGENT)
    .select_from(
        with_agents(
            changes.outerjoin(turns, _STILL_PUT)
            .outerjoin(conversations, turns.c.conversation_pk == conversations.c.pk)
            .outerjoin(agents, conversations.c.agent_pk == agents.c.pk),
            all_of_them=True,
        )
    )
    .where(changes.c.number > bindparam("after"))
    .order_by(changes.c.number)
    .limit(bindparam("limit"))
)
_PARTS = (
    select(*PART)
    .select_from(changes.join(turns, _STILL_PUT).join(parts, parts.c.turn_number == turns.c.number))
    .where(changes.c.number > bindparam("after"), changes.c.number <= bindparam("last"))
    .order_by(changes.c.number, parts.c.place)
)
_NUMBER, _CONTENT_LENGTH = len(_LOG), len(_LOG) + 7


def changes_after(connection: Connection, after: int, limit: int, *, budget: int = TEXT_BUDGET) -> list[Change]:
    """Returns up to `limit` changes after a number, in order; fewer, at least one, where their turns hold over `budget` bytes."""
    rows = connection.execute(_CHANGES, {"after": after, "limit": limit}).all()
    for taken, row in enumerate(rows):
        budget -= row[_CONTENT_LENGTH] or 0
        if budget < 0 and taken:
            rows = rows[:taken]
            break
    if not rows:
        return []
    those = grouped(connection.execute(_PARTS, {"after": after, "last": rows[-1][0]}).all())
    still_there = in_place((row[_NUMBER:] for row in rows if row[_NUMBER] is not None), those)
    placed = {turn.turn.number: turn for turn in with_answers(connection, still_there)}
    found: list[Change] = []
    for row in rows:
        number, kind, conversation_pk, turn_number, replaces = row[:_NUMBER]
        match kind:
            case "put":
                found.append(Put(number, turn_number, replaces, placed[turn_number] if row[_NUMBER] is not None else None))
            case "forget":
                found.append(Forget(number, turn_number))
            case "forget_conversation":
                found.append(ForgetConversation(number, conversation_pk))
            case _:
                raise ValueError(f"unknown kind of change {kind} at {number}")
    return found
