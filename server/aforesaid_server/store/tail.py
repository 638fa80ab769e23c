"""The end of the log, as a search reads it that is to find what other processes have committed: what imports made is told as
stretches, not read.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, select

from aforesaid_server.store import Imported, Tail
from aforesaid_server.store.changelog import LOGGED, TEXT_BUDGET, changes_of, head, within
from aforesaid_server.store.rows import scope_of
from aforesaid_server.store.tables import agents, changes, conversations, scopes

_SAID = LOGGED.where(changes.c.bulk.is_(False), changes.c.number <= bindparam("through"))

# Changes of one agent that stand side by side differ from their place among its changes by the same number.
_place = func.row_number().over(partition_by=conversations.c.agent_pk, order_by=changes.c.number)
_bulk = (
    select(changes.c.number, conversations.c.agent_pk, (changes.c.number - _place).label("stretch"))
    .join_from(changes, conversations, changes.c.conversation_pk == conversations.c.pk)
    .where(changes.c.number > bindparam("after"), changes.c.number <= bindparam("through"), changes.c.bulk.is_(True))
    .subquery()
)
_first = func.min(_bulk.c.number)
_IMPORTED: Select[Any] = (
    select(_first, func.max(_bulk.c.number), _bulk.c.agent_pk, scopes.c.pairs)
    .join_from(_bulk, agents, _bulk.c.agent_pk == agents.c.pk)
    .join(scopes, agents.c.scope_pk == scopes.c.pk)
    .group_by(_bulk.c.agent_pk, _bulk.c.stretch, scopes.c.pairs)
    .order_by(_first)
)


def tail_after(connection: Connection, after: int, limit: int, *, budget: int = TEXT_BUDGET) -> Tail:
    """Returns what stands in the log after a number: up to `limit` changes that are no import's, fewer where their turns hold over
    `budget` bytes.
    """
    through = head(connection)
    found = connection.execute(_SAID, {"after": after, "limit": limit, "through": through}).all()
    rows = within(found, budget)
    if rows and (len(rows) < len(found) or len(rows) == limit):
        through = rows[-1].number
    imported = connection.execute(_IMPORTED, {"after": after, "through": through})
    told = [Imported(first, last, agent_pk, scope_of(scope)) for first, last, agent_pk, scope in imported]
    return Tail(through, changes_of(connection, rows), told)
