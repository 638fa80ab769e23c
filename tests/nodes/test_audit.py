"""One audit chain of several nodes: both record, both verify all of it, and what somebody does to it in the database is found on
every node that knew better.

The nodes run in this process: what is tried is what lies in the database and in each node's folder.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
import pytest

from tests.api.callers import VERIFY, Caller, hits, new, ok
from tests.faults.serving import Served, served
from tests.nodes.conftest import Node, folder_with

TALK, SAID = "talk", "ossifrage"
HEAD = struct.Struct(">q32s")
Faults: TypeAlias = list[tuple[int, str]]


@dataclass
class Nodes:
    """Services over one database, each with a folder of its own."""

    store: str
    folder: Path
    secret: bytes

    @contextmanager
    def running(self, *names: str) -> Iterator[list[Served]]:
        """Serves the nodes of these names until the block ends."""
        with ExitStack() as stack:
            folders = [folder_with(self.secret, self.folder / name) for name in names]
            nodes = [stack.enter_context(served(folder, store=self.store)) for folder in folders]
            for node in nodes:
                node.wait_until_ready()
            yield nodes

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Runs a statement in the database, as whoever may write there."""
        with psycopg.connect(self.store) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def records(self) -> dict[int, str]:
        """The records as they lie in the database, by number."""
        return dict(self.run("SELECT number, body FROM reads ORDER BY number"))

    def head(self, name: str) -> int:
        """How many records the file of a node knows."""
        count: int = HEAD.unpack((self.folder / name / "audit.head").read_bytes())[0]
        return count


@pytest.fixture
def nodes(postgres: str, tmp_path: Path) -> Nodes:
    """None runs yet."""
    return Nodes(postgres, tmp_path, secrets.token_bytes(32))


def prepare(node: Served) -> None:
    """Makes `reader`, who may read what `read` said."""
    node.user.say(TALK, SAID, agent_id="read")
    node.user.make("reader", role="reviewer")


def record(node: Served, times: int = 1, *, reason: str = "") -> None:
    """Has a node record reads."""
    for _ in range(times):
        assert hits(ok(node.user.agent("reader").search(SAID, agentId="read", reason=reason)))


def faults(node: Served) -> Faults:
    """What VerifyAudit finds: records and the first word of what is wrong; nothing if and only if it says intact."""
    told = ok(node.user.call(VERIFY, {})).body
    found = [(int(fault.get("record", 0)), fault["problem"].split(":")[0]) for fault in told.get("faults", [])]
    assert told.get("intact", False) == (not found)
    return found


def counted(by: Caller) -> int:
    """How many records there are, all as they were written."""
    told = ok(by.call(VERIFY, {})).body
    assert told.get("intact"), told
    return int(told.get("records", 0))


# What is as it should be


def test_both_record_at_once(pair: tuple[Node, Node]) -> None:
    """One chain without gaps, as many records as replies, told alike by both processes; checked meanwhile, it is intact."""
    users = [node.user for node in pair]
    read, reader = new("read"), new("reader")
    users[0].say(TALK, SAID, agent_id=read)
    users[1].make(reader, role="reviewer")
    before = counted(users[0])

    def ask(place: int) -> str:
        reply = ok(users[place % 2].agent(reader).search(SAID, agentId=read))
        assert hits(reply)
        if place % 8 == 0:
            assert counted(users[(place + 1) % 2]) > before
        return str(reply.headers["x-request-id"])

    with ThreadPoolExecutor(6) as threads:
        asked = set(threads.map(ask, range(40)))
    assert [counted(user) for user in users] == [before + 40] * 2
    for user in users:
        assert {shown["requestId"] for shown in user.reads(agentId=read)} == asked
    assert ok(users[0].call(VERIFY, {})).body["head"] == ok(users[1].call(VERIFY, {})).body["head"]
    heads = {(node.server.data / "audit.head").read_bytes() for node in pair}
    assert len(heads) == 1, "after the check both know the same"


def test_a_node_comes_later_and_goes_away(nodes: Nodes) -> None:
    """A new one takes all records in, one that was away those that others have added since."""
    with nodes.running("one") as (one,):
        prepare(one)
        record(one, 3)
        with nodes.running("two") as (two,):
            assert counted(two.user) == 3
            record(two, 2)
            record(one)
        record(one, 4)
        assert (nodes.head("one"), nodes.head("two")) == (10, 5)
        with nodes.running("two") as (two,):
            assert counted(two.user) == 10
            assert nodes.head("two") == 10
            record(two)
        assert counted(one.user) == 11


def test_a_crash_between_a_record_and_the_file(nodes: Nodes) -> None:
    """What the file of a node lacks is taken in at its next start, also where others have gone on."""
    with nodes.running("one", "two") as (one, two):
        prepare(one)
        record(one, 2)
        before = (nodes.folder / "one" / "audit.head").read_bytes()
        record(one)
        record(two, 2)
    (nodes.folder / "one" / "audit.head").write_bytes(before)
    with nodes.running("one", "two") as (one, two):
        assert counted(one.user) == counted(two.user) == 5
        assert nodes.head("one") == 5


# What somebody did to it in the database

HEAD_ROW = "UPDATE audit_head SET count = %s, mac = %s, proof = %s"
KEEP_HEAD = "SELECT count, mac, proof FROM audit_head"
COPIED = ["reads", "read_targets", "read_scopes"]


def kept(nodes: Nodes) -> Callable[[], None]:
    """Keeps records and head as they are; returns what puts all of that back, in place of what is there then."""
    rows = {table: nodes.run(f"SELECT * FROM {table}") for table in COPIED}
    (head,) = nodes.run(KEEP_HEAD)

    def back() -> None:
        for table in reversed(COPIED):
            nodes.run(f"DELETE FROM {table}")
        for table in COPIED:
            for row in rows[table]:
                nodes.run(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", *row)
        nodes.run(HEAD_ROW, *head)

    return back


def cut_off(nodes: Nodes, after: int) -> None:
    for table in reversed(COPIED):
        nodes.run(f"DELETE FROM {table} WHERE number > %s", after)


TAMPERED: dict[str, tuple[list[str], Faults]] = {
    "altered": (["UPDATE reads SET body = replace(body, 'reader', 'nobody') WHERE number = 2"], [(2, "altered")]),
    "removed": (
        [f"DELETE FROM {table} WHERE number = 3" for table in reversed(COPIED)],
        [(3, "missing")],
    ),
    "cut off": (
        [f"DELETE FROM {table} WHERE number > 4" for table in reversed(COPIED)],
        [(5, "missing"), (6, "missing")],
    ),
    "cut off with the head removed": (
        [*[f"DELETE FROM {table} WHERE number > 4" for table in reversed(COPIED)], "DELETE FROM audit_head"],
        [(5, "missing"), (6, "missing")],
    ),
    "the head another one": (["UPDATE audit_head SET mac = decode(repeat('00', 32), 'hex')"], [(6, "altered")]),
    "one added": (["INSERT INTO reads SELECT 7, body, mac FROM reads WHERE number = 6"], [(7, "reordered")]),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_done_is_found_on_both(what: str, nodes: Nodes) -> None:
    """While they serve, whatever they record since, and after another start. Both knew all records."""
    statements, expected = TAMPERED[what]
    heals = what == "the head another one"  # nothing was lost: the next record writes it anew
    with nodes.running("one", "two") as (one, two):
        prepare(one)
        record(one, 3)
        record(two, 3)
        assert counted(one.user) == counted(two.user) == 6
        for statement in statements:
            nodes.run(statement)
        for node in (one, two):
            named = {(number, what.replace("cut off", "missing")) for number, what in faults(node)}
            assert set(expected) <= named
        for node in (one, two):
            record(node, reason="later")
        found = [faults(node) for node in (one, two)]
        assert heals or all(set(expected) <= set(told) for told in found)
        assert [shown["reason"] for shown in two.user.reads()[:2]] == ["later", "later"]
    with nodes.running("one", "two", "three") as all_of_them:
        for node in all_of_them:
            assert heals or set(expected) <= set(faults(node))


def test_records_that_one_node_alone_knew_are_cut_off(nodes: Nodes) -> None:
    """The other one, which did not know of them, learns of them by the head, and goes on behind them."""
    with nodes.running("one", "two") as (one, two):
        prepare(one)
        record(two, 2)
        record(one, 3)
        assert nodes.head("two") == 2
        cut_off(nodes, 3)
        record(two)
        assert list(nodes.records()) == [1, 2, 3, 6]
        for node in (two, one):
            assert {(4, "missing"), (5, "missing")} <= set(faults(node))
    with nodes.running("two") as (two,):
        assert {(4, "missing"), (5, "missing")} <= set(faults(two))


def test_the_log_is_set_back_to_what_the_other_node_knows(nodes: Nodes) -> None:
    """Then that one goes on in good faith; the node that knew more finds it, and goes on from what it knows."""
    with nodes.running("one", "two") as (one, two):
        prepare(one)
        record(two, 2)
        (head,) = nodes.run(KEEP_HEAD)
        record(one, 2)
        cut_off(nodes, 2)
        nodes.run(HEAD_ROW, *head)
        record(two)
        assert counted(two.user) == 3, "of what was cut off nothing is left, and this node never knew"
        assert (4, "cut off") in faults(one)
        record(one)
        assert list(nodes.records()) == [1, 2, 3, 5]
        for node in (one, two):
            assert (4, "missing") in faults(node)


def test_what_was_cut_off_is_put_back_in_the_place_of_later_records(nodes: Nodes) -> None:
    """So that nothing seems to be missing: but whoever recorded meanwhile has told what it knew."""
    with nodes.running("one", "two") as (one, two):
        prepare(one)
        record(two, 2)
        (head,) = nodes.run(KEEP_HEAD)
        record(one, 2, reason="in sight")
        back = kept(nodes)
        cut_off(nodes, 2)
        nodes.run(HEAD_ROW, *head)
        record(two, 2, reason="to be hidden")
        record(one, reason="behind")  # goes on from the two that were cut off
        (fifth,) = nodes.run("SELECT * FROM reads WHERE number = 5")
        (targets,) = nodes.run("SELECT * FROM read_targets WHERE number = 5")
        record(two, reason="knows its own two")
        (head,) = nodes.run(KEEP_HEAD)
        sixth = nodes.run("SELECT * FROM reads WHERE number = 6"), nodes.run("SELECT * FROM read_targets WHERE number = 6")
        back()
        for row, listing in ((fifth, targets), (sixth[0][0], sixth[1][0])):
            nodes.run("INSERT INTO reads VALUES (%s, %s, %s)", *row)
            nodes.run("INSERT INTO read_targets VALUES (%s, %s, %s, %s)", *listing)
        nodes.run(HEAD_ROW, *head)
        assert [shown.get("reason") for shown in one.user.reads()][:4] == ["knows its own two", "behind", "in sight", "in sight"]
        for node in (one, two):
            assert faults(node) == [(4, "altered")]
    with nodes.running("three") as (three,):
        assert faults(three) == [(4, "altered")], "also on a node that came later"


def test_a_head_that_nobody_with_the_key_wrote(nodes: Nodes) -> None:
    """It leads nowhere: the next record goes on from what the node knows."""
    with nodes.running("one", "two") as (one, two):
        prepare(one)
        record(one, 2)
        nodes.run("UPDATE audit_head SET count = 1000")
        assert faults(two) == [(2, "altered")]
        record(two)
        assert list(nodes.records()) == [1, 2, 3]
        assert counted(one.user) == counted(two.user) == 3
