"""The audit records as rows. What a record says and how it is chained is `audit.py`'s; here it is a number, a text and a hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Select, select, true

from aforesaid_server.store import ReadListing, ReadRow, Scope
from aforesaid_server.store.tables import read_scopes, read_targets, reads

_READS: Select[Any] = select(reads.c.number, reads.c.body, reads.c.mac)


def add_read(connection: Connection, row: ReadRow, scope: Scope, targets: Sequence[tuple[str, int | None]]) -> None:
    """Inserts a record with the pairs of its caller's scope and the agents that it names."""
    connection.execute(reads.insert(), {"number": row.number, "body": row.body, "mac": row.mac})
    if targets:
        named = [
            {"number": row.number, "place": place, "agent_id": agent_id, "agent_pk": agent_pk}
            for place, (agent_id, agent_pk) in enumerate(targets)
        ]
        connection.execute(read_targets.insert(), named)
    if scope:
        connection.execute(read_scopes.insert(), [{"key": k, "value": v, "number": row.number} for k, v in scope.items()])


def last_read(connection: Connection) -> ReadRow | None:
    """Returns the last record."""
    row = connection.execute(_READS.order_by(reads.c.number.desc()).limit(1)).first()
    return ReadRow(*row) if row else None


def reads_before(
    connection: Connection, scope: Scope, target: tuple[str, int | None] | None, before: int | None, limit: int
) -> list[ReadRow]:
    """Returns records of callers in the scope, newest first, before a number, that name the target if there is one.

    The first condition is walked backwards along its index, the others are looked up for each record, until the page is full: over
    200,000 records of one scope a page costs 0.5 ms so, and 30 to 80 ms where each condition makes its whole list first.
    """
    conditions = [_naming(target)] if target is not None else []
    conditions += [_having(key, value) for key, value in sorted(scope.items())]
    (walked, met), *others = conditions or [(reads.alias(), true())]
    numbers = select(walked.c.number).distinct().where(met)
    for other, met_too in others:
        numbers = numbers.where(select(other).where(other.c.number == walked.c.number, met_too).correlate(walked).exists())
    if before is not None:
        numbers = numbers.where(walked.c.number < before)
    page = numbers.order_by(walked.c.number.desc()).limit(limit).subquery()
    found = _READS.join(page, page.c.number == reads.c.number).order_by(reads.c.number.desc())
    return [ReadRow(*row) for row in connection.execute(found)]


def _naming(target: tuple[str, int | None]) -> tuple[FromClause, ColumnElement[bool]]:
    named = read_targets.alias()
    agent_id, agent_pk = target
    return named, named.c.agent_id == agent_id if agent_pk is None else named.c.agent_pk == agent_pk


def _having(key: str, value: str) -> tuple[FromClause, ColumnElement[bool]]:
    pairs = read_scopes.alias()
    return pairs, (pairs.c.key == key) & (pairs.c.value == value)


def listed_by(connection: Connection, numbers: Sequence[int]) -> dict[int, ReadListing]:
    """Returns what each of the records is listed by; one that is listed by nothing is left out."""
    scopes: dict[int, dict[str, str]] = {}
    targets: dict[int, list[tuple[str, int | None]]] = {}
    pairs = select(read_scopes.c.number, read_scopes.c.key, read_scopes.c.value).where(read_scopes.c.number.in_(numbers))
    for number, key, value in connection.execute(pairs):
        scopes.setdefault(number, {})[key] = value
    named = select(read_targets.c.number, read_targets.c.agent_id, read_targets.c.agent_pk).where(
        read_targets.c.number.in_(numbers)
    )
    for number, agent_id, agent_pk in connection.execute(named.order_by(read_targets.c.number, read_targets.c.place)):
        targets.setdefault(number, []).append((agent_id, agent_pk))
    return {number: ReadListing(scopes.get(number, {}), tuple(targets.get(number, ()))) for number in {*scopes, *targets}}


def reads_after(connection: Connection, number: int, limit: int) -> list[ReadRow]:
    """Returns records after a number, in order."""
    found = _READS.where(reads.c.number > number).order_by(reads.c.number).limit(limit)
    return [ReadRow(*row) for row in connection.execute(found)]
