"""The audit records as rows, and their head. What a record says and how it is chained is `audit.py`'s; here it is a number, a text
and a hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Select, select, true

from aforesaid_server.store import NewRead, ReadHead, ReadListing, ReadRow, Scope
from aforesaid_server.store.tables import audit_head, read_scopes, read_targets, reads

_READS: Select[Any] = select(reads.c.number, reads.c.body, reads.c.mac)


_HEAD = select(audit_head.c.count, audit_head.c.mac, audit_head.c.proof)
_NOTHING = ReadHead(0, bytes(32), b"")


def add_read(connection: Connection, new: NewRead) -> None:
    """Inserts a record with the pairs of its caller's scope and the agents that it names, and moves the head."""
    number, listing = new.row.number, new.listing
    connection.execute(reads.insert(), {"number": number, "body": new.row.body, "mac": new.row.mac})
    if listing.targets:
        named = [
            {"number": number, "place": place, "agent_id": agent_id, "agent_pk": agent_pk}
            for place, (agent_id, agent_pk) in enumerate(listing.targets)
        ]
        connection.execute(read_targets.insert(), named)
    if listing.scope:
        connection.execute(read_scopes.insert(), [{"key": k, "value": v, "number": number} for k, v in listing.scope.items()])
    head = {"count": new.head.count, "mac": new.head.mac, "proof": new.head.proof}
    if not connection.execute(audit_head.update(), head).rowcount:  # somebody removed it
        connection.execute(audit_head.insert(), {"only": 1} | head)


def read_head(connection: Connection) -> ReadHead:
    """Returns the head."""
    row = connection.execute(_HEAD).first()
    return ReadHead(*row) if row else _NOTHING


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


def reads_after(connection: Connection, number: int, limit: int | None = None) -> list[ReadRow]:
    """Returns records after a number, in order."""
    found = _READS.where(reads.c.number > number).order_by(reads.c.number).limit(limit)
    return [ReadRow(*row) for row in connection.execute(found)]
