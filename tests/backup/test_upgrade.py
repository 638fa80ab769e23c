"""A data folder that an older version has left is served in place: its tables are brought to the newest revision, the index is made
anew, and what was said, deleted and read stays so.

data_folder_0001 was left by the version whose tables had revision 0001: the dump of its store, its secret and its audit head in
hexadecimal digits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.api.callers import APPEND, VERIFY, Caller, hits, ok, turn
from tests.api.doors import ConnectDoor
from tests.backup.test_backup import done
from tests.conftest import StartServer
from tests.faults.serving import readyz, served, wait_until

OLD = Path(__file__).parent / "data_folder_0001"


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The folder as it was left."""
    data = tmp_path / "left"
    data.mkdir(mode=0o700)
    for name in ("secret", "audit.head"):
        (data / name).write_bytes(bytes.fromhex((OLD / f"{name}.hex").read_text("ascii")))
    with closing(sqlite3.connect(data / "store.sqlite3")) as store:
        store.executescript((OLD / "store.sql").read_text("utf-8"))
    return data


def test_an_older_folder_is_served_in_place(left: Path, start_server: StartServer) -> None:
    with closing(ConnectDoor(start_server(data=left).url)) as door:
        user = Caller(door)
        wait_until(lambda: readyz(door.http)[0] == 200)
        found = {(hit["agentId"], hit["conversationId"], hit["turnId"]) for hit in hits(ok(user.search("zebra")))}
        assert found == {
            ("worker", "monday", "monday:0"),
            ("worker", "monday", "m2"),
            ("worker", "monday", "m3"),
            ("other", "scoped", "scoped:0"),
            ("child", "tuesday", "tuesday:0"),
        }
        assert len(hits(ok(user.within(user_id="ada").search("zebra")))) == 1
        assert [record["reason"] for record in user.reads()] == ["was it said?"]
        assert ok(user.call(VERIFY, {})).body["intact"] is True
        user.say("gone", "another zebra", agent_id="child")
        again = user.call(APPEND, {"agentId": "worker", "conversationId": "gone", "turns": [turn("a zebra again")]})
        assert again.code == "failed_precondition"
        assert len(hits(ok(user.search("zebra")))) == 6


def test_a_backup_of_it_is_served_by_the_newer_version(left: Path, start_server: StartServer, tmp_path: Path) -> None:
    before = (left / "store.sqlite3").read_bytes()
    done("backup", tmp_path / "backup", "--data", left)
    assert (left / "store.sqlite3").read_bytes() == before
    done("restore", tmp_path / "backup", "--data", tmp_path / "restored")
    with closing(ConnectDoor(start_server(data=tmp_path / "restored").url)) as door:
        wait_until(lambda: readyz(door.http)[0] == 200)
        assert len(hits(ok(Caller(door).search("zebra")))) == 5
        assert ok(Caller(door).call(VERIFY, {})).body["intact"] is True


def without_rows(data: Path) -> None:
    with closing(sqlite3.connect(data / "store.sqlite3")) as store, store:
        for table in ("read_targets", "read_scopes", "reads"):
            store.execute(f"DELETE FROM {table}")


def altered(data: Path) -> None:
    with closing(sqlite3.connect(data / "store.sqlite3")) as store, store:
        assert store.execute("UPDATE reads SET body = replace(body, 'was it said?', 'for no reason')").rowcount == 1


@pytest.mark.parametrize("harm", [without_rows, altered])
def test_an_audit_log_that_was_harmed_before_stays_so(harm: Callable[[Path], None], left: Path) -> None:
    """The new head of the log is not made of what the table says: found at the first start, and whatever is recorded since."""
    harm(left)
    for reason in ("later", "after another start"):
        with served(left) as running:
            user = running.user
            assert not ok(user.call(VERIFY, {})).body.get("intact")
            running.wait_until_ready()
            assert hits(ok(user.search("zebra", agentId="worker", reason=reason)))
            assert user.reads()[0]["reason"] == reason
            assert not ok(user.call(VERIFY, {})).body.get("intact")
