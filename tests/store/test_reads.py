"""The audit records as rows: kept in order, found by scope and target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from aforesaid_server.errors import Unavailable
from aforesaid_server.store import AgentKey, NewRead, ReadHead, ReadListing, ReadRow, Scope
from aforesaid_server.store.sql import SqlStore
from aforesaid_server.store.tables import reads
from tests.store.plain import record

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
        record(store, row(number), scope, targets)
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
    assert store.last_read() == (row(6), ReadHead(6, row(6).mac, b"proof"))
    assert [read.number for read in store.reads_after(4)] == [5, 6]
    assert list(store.all_reads()) == [row(number) for number in range(1, 7)]


def test_more_than_one_piece(store: SqlStore) -> None:
    assert store.last_read() == (None, ReadHead(0, bytes(32), b""))
    assert list(store.all_reads()) == []
    with store._writing.begin() as connection:  # 2,500 commits would take their time
        connection.execute(reads.insert(), [{"number": number, "body": f"b{number}", "mac": b"\0"} for number in range(-3, 2501)])
    assert [read.number for read in store.all_reads()] == list(range(-3, 2501))


def test_a_number_is_taken_once(store: SqlStore) -> None:
    record(store, row(1), ADA, [("x", None)])
    with pytest.raises(Unavailable, match=r"^the audit log cannot take record 1$"):
        record(store, ReadRow(1, "other", b""))
    assert list(store.all_reads()) == [row(1)]
    record(store, row(2))
    assert store.last_read() == (row(2), ReadHead(2, row(2).mac, b"proof"))


def test_a_record_is_made_of_those_before_it(store: SqlStore) -> None:
    """Several threads add records, each made of what was there: none is made twice of the same."""
    seen: list[tuple[list[int], int]] = []

    def make(after: int) -> Callable[[Sequence[ReadRow], ReadHead], NewRead]:
        def made(rows: Sequence[ReadRow], head: ReadHead) -> NewRead:
            seen.append(([read.number for read in rows], head.count))
            number = head.count + 1
            return NewRead(row(number), ReadListing(), ReadHead(number, row(number).mac, b"proof"))

        return made

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: store.add_read(0, make(0)), range(20)))
    assert seen == [(list(range(1, count + 1)), count) for count in range(20)]
    store.add_read(18, make(18))
    assert seen[-1] == ([19, 20], 20)


def test_a_store_is_of_the_deployment_that_came_first(store: SqlStore) -> None:
    assert store.secret_check() is None
    assert store.claim(b"one" * 10)
    assert store.claim(b"one" * 10)
    assert not store.claim(b"two" * 10)
    assert store.secret_check() == b"one" * 10
