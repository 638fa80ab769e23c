"""An audit log that cannot be written lets no text out; one that somebody changed is found out, and stays found out.

The records are changed in SQLite by a connection of the test's own, as whoever has the machine might do it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copytree
from typing import TypeAlias

import pytest

from aforesaid_server.store import ReadRow
from aforesaid_server.store.sql import SqlStore
from tests.api.callers import GET_AGENT, VERIFY, Caller, hits, ok, owners
from tests.api.doors import Json, Reply
from tests.faults.serving import Served, served

TALK, SECRET = "talk", "ossifrage"
Faults: TypeAlias = list[tuple[int, str]]
HEAD = struct.Struct(">q32s")


@contextmanager
def database(data: Path) -> Iterator[sqlite3.Connection]:
    """The store's file; what was done is committed at the end."""
    with closing(sqlite3.connect(data / "store.sqlite3")) as connection, connection:
        yield connection


def verified(user: Caller) -> Json:
    return ok(user.call(VERIFY, {})).body


def faults(user: Caller) -> Faults:
    """What VerifyAudit finds: records and the first word of what is wrong; nothing if and only if it says intact."""
    told = verified(user)
    found = [(int(fault.get("record", 0)), fault["problem"].split(":")[0]) for fault in told.get("faults", [])]
    assert told.get("intact", False) == (not found)
    return found


# A log that cannot be written

STUCK: dict[str, tuple[str, str]] = {
    "records refused": ("CREATE TRIGGER stuck BEFORE INSERT ON reads BEGIN SELECT RAISE(ABORT, 'full'); END", "DROP TRIGGER stuck"),
    "their targets refused": (
        "CREATE TRIGGER stuck BEFORE INSERT ON read_targets BEGIN SELECT RAISE(FAIL, 'full'); END",
        "DROP TRIGGER stuck",
    ),
    "no table": ("ALTER TABLE reads RENAME TO moved", "ALTER TABLE moved RENAME TO reads"),
}


@pytest.fixture
def service(data: Path) -> Iterator[Served]:
    """A service with an agent `read` that said a secret, and `reader` and `plain` who may and may not read it."""
    with served(data) as running:
        running.wait_until_ready()
        for agent, role in (("read", "implementer"), ("reader", "reviewer"), ("plain", "observer")):
            running.user.make(agent, role=role)
            running.user.say(TALK, f"{SECRET} of {agent}", f"{SECRET} and more", agent_id=agent)
        yield running


def cross_reads(user: Caller) -> list[Reply]:
    """Reads of somebody else, in every way that there is."""
    reader, plain = user.agent("reader"), user.agent("plain")
    return [
        reader.search(SECRET, agentId="read"),
        reader.search(SECRET[1:-1], agentId="read"),
        reader.search(f"{SECRET} zebra", agentId="read", around=1),
        reader.search(SECRET, everyAgent=True),
        reader.read(TALK, agentId="read"),
        reader.read(TALK, agentId="read", turnId=f"{TALK}:0"),
        user.search(SECRET, agentId="read"),
        user.read(TALK, agentId="read"),
        plain.search(SECRET, agentId="read"),
        plain.read(TALK, agentId="read"),
        reader.search(SECRET, agentId="nobody"),
        reader.read("none", agentId="read"),
    ]


@pytest.mark.parametrize("how", STUCK)
def test_a_log_that_cannot_be_written_lets_no_text_out(how: str, service: Served) -> None:
    """Reads of others are `unavailable`, refused ones too; one's own go on, and so do writes."""
    user, (stick, mend) = service.user, STUCK[how]
    ok(user.agent("reader").search(SECRET, agentId="read"))
    with database(service.data) as connection:
        connection.execute(stick)
    for place, reply in enumerate(cross_reads(user)):
        assert (reply.code, "audit log" in reply.message) == ("unavailable", True), place
        assert SECRET not in json.dumps(reply.body), place
        assert "read" not in json.dumps(reply.body).replace("nothing is shown", ""), place
    for agent in ("read", "reader", "plain"):
        assert owners(ok(user.agent(agent).search(SECRET))) == {agent}
        assert len(ok(user.agent(agent).read(TALK)).body["turns"]) == 2
    assert owners(ok(user.search(SECRET))) == {"read", "reader", "plain"}
    user.say(TALK, "written meanwhile", agent_id="read")
    ok(user.agent("reader").call(GET_AGENT, {"agentId": "read"}))
    with database(service.data) as connection:
        connection.execute(mend)
    assert [record["callerAgentId"] for record in user.reads()] == ["reader"], "half a record was kept"
    assert faults(user) == []
    assert owners(ok(user.agent("reader").search(SECRET, agentId="read"))) == {"read"}
    assert (len(user.reads()), faults(user)) == (2, [])


def test_a_head_that_cannot_be_written_lets_no_text_out(service: Served) -> None:
    """One record may stand in the table by then; no second one comes on top, and the next good read brings all in order."""
    user, head = service.user, service.data / "audit.head"
    reader = user.agent("reader")
    ok(reader.search(SECRET, agentId="read"))
    was = head.read_bytes()
    head.unlink()
    head.mkdir()
    for reply in cross_reads(user):
        assert (reply.code, SECRET in json.dumps(reply.body)) == ("unavailable", False)
    head.rmdir()
    head.write_bytes(was)
    assert hits(ok(reader.search(SECRET, agentId="read")))
    assert faults(user) == []
    assert int(verified(user)["records"]) == 3
    assert HEAD.unpack(head.read_bytes())[0] == 3


def test_many_readers_at_once(service: Served) -> None:
    """One chain, without gaps, and as many records as replies."""
    reader = service.user.agent("reader")
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: reader.search(SECRET, agentId="read"), range(80)))
    assert all(hits(ok(reply)) for reply in replies)
    assert {record["requestId"] for record in service.user.reads()} == {reply.headers["x-request-id"] for reply in replies}
    assert (faults(service.user), int(verified(service.user)["records"])) == ([], 80)


# A log that somebody changed

RECORDS = 6


def test_reads_go_on_while_the_log_is_checked(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check looks at what was there when it began, however long it takes."""
    begun, go_on, all_reads = threading.Event(), threading.Event(), SqlStore.all_reads

    def waiting(store: SqlStore) -> Iterator[ReadRow]:
        begun.set()
        assert go_on.wait(60)
        yield from all_reads(store)

    user, reader = service.user, service.user.agent("reader")
    ok(reader.search(SECRET, agentId="read"))
    monkeypatch.setattr(SqlStore, "all_reads", waiting)
    with ThreadPoolExecutor(1) as threads:
        check = threads.submit(verified, user)
        assert begun.wait(60)
        try:
            for _ in range(3):
                assert hits(ok(reader.search(SECRET, agentId="read")))
        finally:
            go_on.set()
        assert check.result() == {"intact": True, "records": "1", "head": check.result()["head"]}
    assert int(verified(user)["records"]) == 4


def test_a_head_that_cannot_be_read_is_told(service: Served) -> None:
    head = service.data / "audit.head"
    ok(service.user.agent("reader").search(SECRET, agentId="read"))
    was = head.read_bytes()
    head.unlink()
    head.mkdir()
    assert service.user.call(VERIFY, {}).code == "unavailable"
    head.rmdir()
    head.write_bytes(was)
    assert faults(service.user) == []


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a log of six records, each of another reason."""
    folder = tmp_path_factory.mktemp("kept") / "data"
    with served(folder) as running:
        running.wait_until_ready()
        running.user.say(TALK, SECRET, agent_id="read")
        running.user.make("reader", role="reviewer")
        for place in range(RECORDS):
            ok(running.user.agent("reader").search(SECRET, agentId="read", reason=f"reason {place + 1}"))
        assert verified(running.user)["records"] == str(RECORDS)
    return folder


def body(change: Callable[[Json], None], number: int) -> Callable[[sqlite3.Connection], None]:
    """Changes what a record says."""

    def edit(connection: sqlite3.Connection) -> None:
        fields = json.loads(connection.execute("SELECT body FROM reads WHERE number = ?", (number,)).fetchone()[0])
        change(fields)
        text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        assert connection.execute("UPDATE reads SET body = ? WHERE number = ?", (text, number)).rowcount == 1

    return edit


def sql(*statements: str) -> Callable[[sqlite3.Connection], None]:
    def edit(connection: sqlite3.Connection) -> None:
        for statement in statements:
            assert connection.execute(statement).rowcount, statement

    return edit


COPY = "INSERT INTO reads (number, body, mac) SELECT {to}, body, {mac} FROM reads WHERE number = {of}"
SWAP = "UPDATE reads SET number = {to} WHERE number = {of}"

# What is done to the table, and what is found. After a gap the next record cannot be compared with the one before it.
CHANGED: dict[str, tuple[Callable[[sqlite3.Connection], None], Faults]] = {
    "granted made refused": (body(lambda fields: fields.update(granted=False), 3), [(3, "altered")]),
    "a target renamed": (body(lambda fields: fields.update(targets=[["nobody", None]]), 1), [(1, "altered")]),
    "a turn taken out": (body(lambda fields: fields.update(turns=[]), RECORDS), [(RECORDS, "altered")]),
    "another time": (body(lambda fields: fields.update(time=fields["time"] + 1), 2), [(2, "altered")]),
    "another number in it": (body(lambda fields: fields.update(number=4), 2), [(2, "altered")]),
    "another before in it": (body(lambda fields: fields.update(before="00" * 32), 2), [(2, "altered")]),
    "a blank more": (sql("UPDATE reads SET body = body || ' ' WHERE number = 4"), [(4, "altered")]),
    "no JSON": (sql("UPDATE reads SET body = 'x' WHERE number = 4"), [(4, "altered")]),
    "empty": (sql("UPDATE reads SET body = '' WHERE number = 4"), [(4, "altered")]),
    "another MAC": (sql("UPDATE reads SET mac = zeroblob(32) WHERE number = 5"), [(5, "altered")]),
    "a MAC cut short": (sql("UPDATE reads SET mac = substr(mac, 1, 8) WHERE number = 5"), [(5, "altered")]),
    "the MAC of another": (
        sql("UPDATE reads SET mac = (SELECT mac FROM reads WHERE number = 2) WHERE number = 5"),
        [(5, "altered")],
    ),
    "the last one's MAC": (sql(f"UPDATE reads SET mac = zeroblob(32) WHERE number = {RECORDS}"), [(6, "altered"), (6, "altered")]),
    "all of them": (sql("UPDATE reads SET body = replace(body, 'reader', 'nobody')"), [(n, "altered") for n in range(1, 7)]),
    "hidden from its target": (sql("DELETE FROM read_targets WHERE number = 3"), [(3, "altered")]),
    "listed under another": (sql("UPDATE read_targets SET agent_id = 'nobody' WHERE number = 3"), [(3, "altered")]),
    "listed in another scope": (
        sql("INSERT INTO read_scopes (number, key, value) VALUES (3, 'user_id', 'nobody')"),
        [(3, "altered")],
    ),
    "one removed": (sql("DELETE FROM reads WHERE number = 3"), [(3, "missing")]),
    "three removed": (sql("DELETE FROM reads WHERE number IN (2, 3, 5)"), [(2, "missing"), (3, "missing"), (5, "missing")]),
    "the first removed": (sql("DELETE FROM reads WHERE number = 1"), [(1, "missing")]),
    "the last cut off": (sql("DELETE FROM reads WHERE number = 6"), [(6, "cut off")]),
    "three cut off": (sql("DELETE FROM reads WHERE number > 3"), [(4, "cut off"), (5, "cut off"), (6, "cut off")]),
    "all cut off": (sql("DELETE FROM reads"), [(n, "cut off") for n in range(1, 7)]),
    "two swapped": (
        sql(SWAP.format(of=2, to=99), SWAP.format(of=4, to=2), SWAP.format(of=99, to=4)),
        [(2, "reordered"), (4, "reordered")],
    ),
    "one removed and the rest moved up": (
        sql("DELETE FROM reads WHERE number = 3", *(SWAP.format(of=n, to=n - 1) for n in (4, 5, 6))),
        [(3, "reordered"), (4, "reordered"), (5, "reordered"), (6, "cut off")],
    ),
    "one in another's place": (
        sql("UPDATE reads SET (body, mac) = (SELECT body, mac FROM reads WHERE number = 2) WHERE number = 4"),
        [(4, "reordered")],
    ),
    "one added with a MAC made up": (sql(COPY.format(of=6, to=7, mac="zeroblob(32)")), [(7, "altered"), (7, "altered")]),
    "one added that is a copy": (sql(COPY.format(of=6, to=7, mac="mac")), [(7, "reordered"), (7, "altered")]),
    "one added before all": (sql(COPY.format(of=6, to=0, mac="mac")), [(0, "reordered")]),
    "one added far behind": (sql(COPY.format(of=6, to=9, mac="zeroblob(32)")), [(7, "missing"), (8, "missing"), (9, "altered")]),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_changed_record_is_found(change: str, kept: Path, tmp_path: Path) -> None:
    """While it serves and after another start; and it stays found when more is recorded."""
    edit, expected = CHANGED[change]
    folder = copytree(kept, tmp_path / "data")
    with served(folder) as running:
        assert faults(running.user) == []
        with database(folder) as connection:
            edit(connection)
        assert_found(faults(running.user), expected)
    with served(folder) as running:
        assert_found(faults(running.user), expected)
        running.wait_until_ready()
        assert hits(ok(running.user.agent("reader").search(SECRET, agentId="read", reason="later")))
        assert running.user.reads()[0]["reason"] == "later"
        assert_found(faults(running.user), [(number, what) for number, what in expected if number <= RECORDS])
        assert faults(running.user), "what was recorded since hides it"


def assert_found(found: Faults, expected: Faults) -> None:
    """Everything that was done is named, and no record that was left alone but those that were added since.

    What is cut off is missing once there are records behind it.
    """
    same = {"cut off": "missing"}
    wanted = {(number, same.get(what, what)) for number, what in expected}
    named = {(number, same.get(what, what)) for number, what in found}
    assert wanted <= named
    assert {number for number, _ in named if number <= RECORDS} <= {number for number, _ in wanted}


def head_of(data: Path, number: int) -> bytes:
    """The head as it was after that record."""
    with database(data) as connection:
        (mac,) = connection.execute("SELECT mac FROM reads WHERE number = ?", (number,)).fetchone()
    return HEAD.pack(number, mac)


HEADS: dict[str, Callable[[Path], bytes | None]] = {
    "removed": lambda _: None,
    "empty": lambda _: b"",
    "cut": lambda data: head_of(data, 6)[:-1],
    "longer": lambda data: head_of(data, 6) + b"\0",
    "another count": lambda data: HEAD.pack(7, head_of(data, 6)[8:]),
    "another MAC": lambda _: HEAD.pack(6, bytes(32)),
    "of two records before": lambda data: head_of(data, 4),
    "noise": lambda _: os.urandom(40),
}


@pytest.mark.parametrize("change", HEADS)
def test_a_changed_head_is_found(change: str, kept: Path, tmp_path: Path) -> None:
    """The file outside of the table, with all records as they were."""
    folder = copytree(kept, tmp_path / "data")
    head = folder / "audit.head"
    with served(folder) as running:
        data = HEADS[change](folder)
        head.unlink()
        if data is not None:
            head.write_bytes(data)
        assert faults(running.user), "while it serves"
    with served(folder) as running:
        assert faults(running.user), "after another start"
        running.wait_until_ready()
        assert hits(ok(running.user.agent("reader").search(SECRET, agentId="read")))
        assert faults(running.user), "what was recorded since hides it"
    with served(folder) as running:
        assert faults(running.user), "what was recorded since, and another start, hide it"


def test_records_and_head_rolled_back_while_it_serves(kept: Path, tmp_path: Path) -> None:
    """The service knows its head; only while it is stopped can both be set back together, and then its log tells."""
    folder = copytree(kept, tmp_path / "data")
    with served(folder) as running:
        older = head_of(folder, 4)
        with database(folder) as connection:
            connection.execute("DELETE FROM reads WHERE number > 4")
        (folder / "audit.head").write_bytes(older)
        assert_found(faults(running.user), [(5, "cut off"), (6, "cut off")])


def test_a_crash_between_the_record_and_the_head(kept: Path, tmp_path: Path) -> None:
    """The one record that follows from the head was committed, and is taken in at the next start."""
    folder = copytree(kept, tmp_path / "data")
    (folder / "audit.head").write_bytes(head_of(folder, RECORDS - 1))
    with served(folder) as running:
        assert faults(running.user) == []
        assert verified(running.user)["records"] == str(RECORDS)
    assert (folder / "audit.head").read_bytes() == head_of(folder, RECORDS)


def test_another_secret(kept: Path, tmp_path: Path) -> None:
    """Without the key the log cannot be verified, nor written anew by anybody."""
    folder = copytree(kept, tmp_path / "data")
    (folder / "secret").write_bytes(os.urandom(32))
    with served(folder) as running:
        assert faults(running.user) == [(number, "altered") for number in range(1, RECORDS + 1)]


def test_only_the_first_hundred_faults_are_told(kept: Path, tmp_path: Path) -> None:
    folder = copytree(kept, tmp_path / "data")
    with served(folder) as running:
        with database(folder) as connection:
            connection.execute(COPY.format(of=6, to=1_000_000_000, mac="mac"))
        assert faults(running.user)[:2] == [(7, "missing"), (8, "missing")]
        assert len(faults(running.user)) == 100
