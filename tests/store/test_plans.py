"""Which way the engines go: every statement that a caller waits for finds its rows by a key or an index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import event

from aforesaid.model import ToolCall, ToolResult
from aforesaid_server.store import AgentKey, Append, ReadRow
from aforesaid_server.store.sql import SqlStore
from tests.store.plain import record, said

# A call and its result, which the store joins where it reads and writes turns.
CALL, RESULT = ToolCall("search", "", "1"), ToolResult("", "1")
ADA = {"user_id": "ada", "team": "x"}

ASKED: dict[str, Callable[[SqlStore], object]] = {
    "agents_with_id": lambda store: store.agents_with_id("a", ADA),
    "agent": lambda store: store.agent(1),
    "family": lambda store: store.family(1),
    "agents of a scope": lambda store: store.list_agents(ADA, None, ("a", 1), 20),
    "some agents": lambda store: store.list_agents({}, frozenset({1, 2}), None, 20),
    "conversation": lambda store: store.conversation(1, "c"),
    "conversations_with_id": lambda store: store.conversations_with_id("c", ADA, None),
    "conversations_with_id of some agents": lambda store: store.conversations_with_id("c", {}, frozenset({1, 2})),
    "has_turns": lambda store: store.has_turns(frozenset({1, 2})),
    "conversations of a scope": lambda store: store.list_conversations(ADA, None, (5, 1), 20),
    "conversations of some agents": lambda store: store.list_conversations({}, frozenset({1, 2}), None, 20),
    "turns": lambda store: store.turns([1, 2, 3]),
    "turn": lambda store: store.turn(1, "t"),
    "turns_from": lambda store: store.turns_from(1, 5, 10),
    "seq_at": lambda store: store.seq_at(1, 100),
    "changes": lambda store: store.changes(1, 100),
    "reads of a scope": lambda store: store.reads(ADA, None, 50, 20),
    "reads of an agent": lambda store: store.reads({}, ("a", 1), None, 20),
    "reads of an id": lambda store: store.reads(ADA, ("a", None), None, 20),
    "append": lambda store: store.append(Append(AgentKey("a", ADA), "c", [said("new", "t0"), said("more"), said("more")]), now=3),
    "append to all": lambda store: store.append(Append(AgentKey("a"), "c", [said("NEW", f"t{k}") for k in range(9)]), now=3),
    "append a call": lambda store: store.append(Append(AgentKey("a", ADA), "c", [said("call", "t2", parts=(CALL,))]), now=3),
    "append a result": lambda store: store.append(Append(AgentKey("a", ADA), "c", [said("result", parts=(RESULT,))]), now=3),
    "write": lambda store: store.write(Append(AgentKey("a"), "c", [said("z"), said("NEW", "t5")]), expected_revision=None, now=3),
    "delete": lambda store: store.delete(1, "c", now=4),
    "add_read": lambda store: record(store, ReadRow(100, "", b""), ADA, [("a", 1)]),
    "last_read": lambda store: store.last_read(),
}

# The rows of a family, the one row of the log and of the head of the records, a page of records; and the records themselves, last
# first, where one is wanted.
SMALL = {"family", "ancestors", "log", "audit_head", "anon_1", "reads"}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_no_table_is_read_through(store: SqlStore, ask: Callable[[SqlStore], object]) -> None:
    for scope in ({}, ADA):
        turns = [said("x", f"t{k}", parts=(RESULT,) if k % 3 == 1 else (CALL,) if k == 9 else None) for k in range(20)]
        store.append(Append(AgentKey("a", scope), "c", turns), now=1)
    record(store, ReadRow(1, "", b""), ADA, [("a", 1)])
    walked: list[tuple[str, str]] = []
    explained = 0
    walks = _walks_of_postgres if store.shared else _walks_of_sqlite

    def explain(_connection: object, cursor: Any, statement: str, parameters: Any, _context: object, many: bool) -> None:
        nonlocal explained
        if statement.startswith(("SELECT", "WITH", "UPDATE", "DELETE")) and "pg_advisory" not in statement:
            explained += 1
            found = walks(cursor.connection, statement, parameters[0] if many else parameters)
            walked.extend((table, statement) for table in found)

    for engine in (store._reading, store._writing):
        event.listen(engine, "before_cursor_execute", explain)
    ask(store)
    assert explained or ask is ASKED["add_read"]
    for table, statement in walked:
        assert table in SMALL, f"{table} is read through\n{statement}"


def _walks_of_sqlite(connection: sqlite3.Connection, statement: str, parameters: Any) -> Iterator[str]:
    """Yields the tables that SQLite would read through, or walk along an index without a key."""
    for *_, detail in connection.execute("EXPLAIN QUERY PLAN " + statement, parameters):
        if detail.startswith("SCAN"):
            yield detail.split()[1]


def _walks_of_postgres(connection: psycopg.Connection[Any], statement: str, parameters: Any) -> Iterator[str]:
    """Yields the tables that PostgreSQL would read through, or walk along an index without a key, though it is told that this costs
    much, as it does in a large table: these here are so small that it would read them through anyway.
    """
    for way in ("seqscan", "hashjoin", "mergejoin"):
        connection.execute(f"SET LOCAL enable_{way} = off")
    found = connection.execute("EXPLAIN (FORMAT JSON) " + statement, parameters).fetchone()
    assert found is not None
    waiting = [found[0][0]["Plan"]]
    for node in waiting:
        waiting += node.get("Plans", [])
        if node["Node Type"].endswith("Scan") and "Index Cond" not in node and "Recheck Cond" not in node:
            yield node.get("CTE Name") or node.get("Alias") or node["Node Type"]
