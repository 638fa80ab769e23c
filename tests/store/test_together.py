"""Many at once: readers beside a writer, writers in line, processes beside each other on one database; on every engine."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from aforesaid.model import Text
from aforesaid_server.errors import Unavailable
from aforesaid_server.store import AgentKey, Append, Put, Written
from aforesaid_server.store.sql import SqlStore
from tests.store.conftest import Database
from tests.store.plain import said

ADA = AgentKey("ada")
SECRET = "xyzzy-what-somebody-said"


@pytest.fixture
def opened(database: Database) -> Iterator[SqlStore]:
    with closing(database.open(patience=0.05)) as store:
        yield store


def test_what_is_written_is_there_after_closing(opened: SqlStore, database: Database) -> None:
    written = opened.append(Append(ADA, "c", [said("one"), said("two")]), now=1)
    opened.close()
    with closing(database.open(create=False)) as again:
        assert again.conversation(written.agent.pk, "c") == written.conversation
        assert again.head() == 2
        assert again.append(Append(ADA, "c", [said("three")]), now=1).turns[0].turn.number == 3


def test_locked_by_another_process(opened: SqlStore, database: Database) -> None:
    opened.append(Append(ADA, "c", [said("one")]), now=1)
    with closing(database.open()) as other, other._write():
        assert opened.head() == 1
        for attempt in _writes(opened):
            with pytest.raises(Unavailable) as raised:
                attempt()
            assert raised.value.message == "the store cannot answer now"
            assert SECRET not in "".join(traceback.format_exception(raised.value))
    assert opened.append(Append(ADA, "c", [said("two")]), now=2).conversation.turn_count == 2


def _writes(store: SqlStore) -> list[Callable[[], object]]:
    return [
        lambda: store.append(Append(ADA, "c", [said(SECRET)]), now=2),
        lambda: store.append_many([Append(ADA, "c", [said(SECRET)])], now=2),
        lambda: store.write(Append(ADA, "c", [said(SECRET)]), expected_revision=None, now=2),
        lambda: store.update_agent(ADA, name=SECRET),
        lambda: store.delete(1, "c", now=2),
    ]


def test_readers_see_whole_writes_while_one_writes(opened: SqlStore) -> None:
    """Offsets, lengths and counts of a conversation fit together in every read, though its first turns change all the time."""
    first = opened.append(Append(ADA, "c", [said("x" * number, f"t{number}") for number in range(20)]), now=0)
    pk, stop, faults = first.conversation.pk, threading.Event(), list[str]()
    rounds = 60

    def read() -> int:
        count, after = 0, 0
        while not stop.is_set() or not count:
            turns = opened.turns_from(pk, 0, 1000)
            offset = 0
            for seq, turn in enumerate(turns):
                text = turn.parts[0]
                if (turn.seq, turn.content_offset) != (seq, offset) or text != Text("x" * turn.content_length):
                    faults.append(f"turn {seq} stands at {turn.content_offset}, not {offset}")
                offset += turn.content_length + 1
            placed = opened.turns([turn.number for turn in turns])
            if any((one.conversation.turn_count, one.conversation.revision) < (len(turns), 1) for one in placed.values()):
                faults.append("a conversation has fewer turns than were read before")
            log = opened.changes(after, 50)
            if [change.number for change in log] != list(range(after + 1, after + 1 + len(log))):
                faults.append(f"a gap in the log after {after}")
            after = log[-1].number if log else 0
            count += 1
        return count

    with ThreadPoolExecutor(4) as threads:
        reading = [threads.submit(read) for _ in range(3)]
        try:
            for number in range(rounds):
                changed = [said("x" * (number % 7 + k), f"t{k}") for k in range(3)]
                opened.append(Append(ADA, "c", [*changed, said("x" * number)]), now=number)
        finally:
            stop.set()
        assert all(each.result() for each in reading)
    assert faults == []


def test_many_writers(opened: SqlStore, database: Database) -> None:
    """Two stores on one database, as two processes would have, several threads on each: every write is there once, in one log."""
    other, patient = database.open(), database.open()
    each = 12

    def write(number: int) -> list[Written]:
        store = (patient, other)[number % 2]
        return [
            store.append(Append(AgentKey(f"agent {number % 3}", {"u": "v"}), "c", [said(f"{number} {k}")] * 2), now=k)
            for k in range(each)
        ]

    with closing(other), closing(patient), ThreadPoolExecutor(6) as threads:
        written = [one for many in threads.map(write, range(6)) for one in many]
    log = opened.changes(0, 1000)
    assert [change.number for change in log] == list(range(1, 6 * each * 2 + 1))
    assert sorted(change.number for one in written for change in one.changes) == [change.number for change in log]
    assert len(opened.list_agents({"u": "v"}, None, None, 10)) == 3
    for talk, _ in opened.list_conversations({}, None, None, 10):
        assert (talk.turn_count, talk.revision) == (4 * each, 2 * each)
        turns = opened.turns_from(talk.pk, 0, 1000)
        assert [turn.turn_id for turn in turns] == [f"c:{seq}" for seq in range(4 * each)]
        assert sorted(turns, key=lambda turn: turn.number) == turns
    assert all(isinstance(change, Put) and change.place for change in log)
