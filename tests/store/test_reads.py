"""The audit records as rows: kept in order, found by scope and target."""

from __future__ import annotations

import pytest

from aforesaid_server.errors import Unavailable
from aforesaid_server.store import AgentKey, ReadRow, Scope
from aforesaid_server.store.sql import SqlStore

ADA, BOB = {"user_id": "ada"}, {"user_id": "bob"}


def row(number: int) -> ReadRow:
    return ReadRow(number, f'{{"number": {number}, "why": "é\\u0000"}}', bytes([number % 256]) * 32)


@pytest.fixture
def filled(store: SqlStore) -> tuple[SqlStore, int, int]:
    """Six records; the keys of two agents of one id."""
    one, two = (store.update_agent(AgentKey("x", scope)).pk for scope in (ADA, BOB))
    records: list[tuple[Scope, list[tuple[str, int | None]]]] = [
        (ADA, [("x", one)]),
        ({}, [("x", one), ("x", two), ("y", None)]),
        (BOB, [("x", two)]),
        (ADA, [("x", None)]),
        (ADA | {"team": "t"}, [("X", None)]),
        (BOB, []),
    ]
    for number, (scope, targets) in enumerate(records, 1):
        store.add_read(row(number), scope=scope, targets=targets)
    return store, one, two


def test_found_by_scope_and_target(filled: tuple[SqlStore, int, int]) -> None:
    store, one, two = filled
    cases: list[tuple[Scope, tuple[str, int | None] | None, int | None, list[int]]] = [
        ({}, None, None, [6, 5, 4, 3, 2, 1]),
        (ADA, None, None, [5, 4, 1]),
        (ADA | {"team": "t"}, None, None, [5]),
        (BOB, None, None, [6, 3]),
        ({"user_id": "Ada"}, None, None, []),
        ({}, ("x", None), None, [4, 3, 2, 1]),
        ({}, ("x", one), None, [2, 1]),
        ({}, ("x", two), None, [3, 2]),
        ({}, ("y", None), None, [2]),
        ({}, ("X", None), None, [5]),
        ({}, ("nobody", None), None, []),
        (ADA, ("x", None), None, [4, 1]),
        (ADA, ("x", two), None, []),
        ({}, None, 4, [3, 2, 1]),
        ({}, ("x", one), 2, [1]),
        ({}, None, 1, []),
    ]
    for scope, target, before, numbers in cases:
        assert store.reads(scope, target, before, 10) == [row(number) for number in numbers], (scope, target, before)
    assert store.reads({}, None, None, 2) == [row(6), row(5)]
    assert store.reads({}, ("x", None), 4, 2) == [row(3), row(2)]


def test_all_and_the_last(filled: tuple[SqlStore, int, int]) -> None:
    store, *_ = filled
    assert store.last_read() == row(6)
    assert list(store.all_reads()) == [row(number) for number in range(1, 7)]


def test_more_than_one_piece(store: SqlStore) -> None:
    assert store.last_read() is None
    assert list(store.all_reads()) == []
    with store._writing.begin() as connection:  # 2,500 commits would take their time
        connection.exec_driver_sql(
            "insert into reads with recursive n(i) as (select -3 union all select i + 1 from n where i < 2500) "
            "select i, 'b' || i, x'00' from n"
        )
    assert [read.number for read in store.all_reads()] == list(range(-3, 2501))


def test_a_number_is_taken_once(store: SqlStore) -> None:
    store.add_read(row(1), scope=ADA, targets=[("x", None)])
    other = ReadRow(1, "other", b"")
    with pytest.raises(Unavailable, match=r"^the audit log cannot take record 1$"):
        store.add_read(other, scope={}, targets=[])
    assert list(store.all_reads()) == [row(1)]
    store.add_read(row(2), scope={}, targets=[])
    assert store.last_read() == row(2)
