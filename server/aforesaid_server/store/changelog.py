"""The log of changes as rows, and how it is read: each change with the turn that it puts, as that turn is now.

What is read at once holds each turn that is still there once, with the last change that puts it; the changes before have nothing to
put and only tell what to forget. So whoever has read the log up to a number has met every turn that was written up to there, be it
put again later on or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from sqlalchemy import Connection, Row, Select, bindparam, select

from aforesaid_server.store import Change, Forget, ForgetConversation, Put, TurnInPlace
from aforesaid_server.store.answers import with_answers
from aforesaid_server.store.rows import Values, turns_by_number
from aforesaid_server.store.tables import changes, log, turns

TEXT_BUDGET = 32 * 1024 * 1024  # bytes of text read at once, or the follower's batch of 1,000 turns could be 1,000 large ones


def row_of_change(change: Change, conversation_pk: int, *, bulk: bool = False) -> Values:
    """Returns a change of a conversation as a row; `bulk` if an import made it."""
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
        "bulk": bulk,
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


LOGGED: Select[Any] = (
    select(
        changes.c.number,
        changes.c.kind,
        changes.c.conversation_pk,
        changes.c.turn_number,
        changes.c.replaces,
        turns.c.content_length,
    )
    .outerjoin(turns, changes.c.turn_number == turns.c.number)
    .where(changes.c.number > bindparam("after"))
    .order_by(changes.c.number)
    .limit(bindparam("limit"))
)
"""Rows of the log, with the length of the turn that each puts, None where there is none any more."""


def changes_after(connection: Connection, after: int, limit: int, *, budget: int = TEXT_BUDGET) -> list[Change]:
    """Returns up to `limit` changes after a number, in order; fewer, at least one, where their turns hold over `budget` bytes."""
    return changes_of(connection, within(connection.execute(LOGGED, {"after": after, "limit": limit}).all(), budget))


def within(rows: Sequence[Row[Any]], budget: int = TEXT_BUDGET) -> Sequence[Row[Any]]:
    """Returns the first rows of LOGGED whose turns hold no more than `budget` bytes, at least one if there is one."""
    counted: set[int] = set()
    for taken, row in enumerate(rows):
        if row.turn_number not in counted:
            counted.add(row.turn_number)
            budget -= row.content_length or 0
        if budget < 0 and taken:
            return rows[:taken]
    return rows


def changes_of(connection: Connection, rows: Sequence[Row[Any]]) -> list[Change]:
    """Returns the changes in rows of LOGGED, which ascend."""
    last = {row.turn_number: row.number for row in rows if row.content_length is not None}
    found = turns_by_number(connection, list(last))
    placed = dict(zip(found, with_answers(connection, found.values()), strict=True))
    return [_change(row, placed.get(row.turn_number) if last.get(row.turn_number) == row.number else None) for row in rows]


def _change(row: Row[Any], place: TurnInPlace | None) -> Change:
    match row.kind:
        case "put":
            return Put(row.number, row.turn_number, row.replaces, place)
        case "forget":
            return Forget(row.number, row.turn_number)
        case "forget_conversation":
            return ForgetConversation(row.number, row.conversation_pk)
    raise ValueError(f"unknown kind of change {row.kind} at {row.number}")
