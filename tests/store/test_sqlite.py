"""What SQLite must be told and what it must not do: settings, full disks, damaged files; see also test_together.py."""

from __future__ import annotations

import resource
import signal
import stat
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from aforesaid_server.errors import FailedPrecondition, Unavailable
from aforesaid_server.store import AgentKey, Append
from aforesaid_server.store.sql import SqlStore, open_sqlite
from tests.store.plain import said

ADA = AgentKey("ada")
SECRET = "xyzzy-what-somebody-said"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a folder with % and ?" / "store.db"


@pytest.fixture
def opened(path: Path) -> Iterator[SqlStore]:
    path.parent.mkdir()
    store = open_sqlite(path, patience=0.05)
    yield store
    store.close()


def test_settings(opened: SqlStore, path: Path) -> None:
    for engine, only_reads in ((opened._reading, 1), (opened._writing, 0)):
        with engine.connect() as connection:
            found = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "query_only")
            }
        assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 50, "query_only": only_reads}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.with_name("store.db-wal").stat().st_mode) == 0o600


def test_what_is_written_is_there_after_closing(opened: SqlStore, path: Path) -> None:
    written = opened.append(Append(ADA, "c", [said("one"), said("two")]), now=1)
    opened.close()
    assert [file.name for file in path.parent.iterdir()] == ["store.db"]
    with closing(open_sqlite(path, create=False)) as again:
        assert again.conversation(written.agent.pk, "c") == written.conversation
        assert again.head() == 2
        assert again.append(Append(ADA, "c", [said("three")]), now=1).turns[0].turn.number == 3


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FailedPrecondition, match="there is no store at"):
        open_sqlite(tmp_path / "store.db", create=False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Unavailable, match=r"cannot be made at .*: No such file"):
        open_sqlite(tmp_path / "no folder" / "store.db")


@pytest.mark.parametrize("content", [b"not a database, but long enough for a header" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    with pytest.raises(
        Unavailable, match=r"^the store at .*store.db cannot be opened: (file is not a database|unsupported file format)$"
    ):
        open_sqlite(path)
    assert path.read_bytes() == content


def test_a_damaged_page_is_unavailable_and_no_empty_answer(opened: SqlStore, path: Path) -> None:
    written = opened.append(Append(ADA, "c", [said("x" * 3000) for _ in range(200)]), now=1)
    opened.close()
    pages = path.stat().st_size // 4096
    assert pages > 150
    with path.open("r+b") as file:
        file.seek(4096 * 60)  # behind the roots of the tables, in the middle of the texts
        file.write(b"\xa5" * 4096 * 60)
    with closing(open_sqlite(path)) as again, pytest.raises(Unavailable):
        again.turns_from(written.conversation.pk, 0, 200)


def _is_unavailable_and_silent(attempt: Callable[[], object]) -> None:
    with pytest.raises(Unavailable) as raised:
        attempt()
    assert raised.value.message == "the store cannot answer now"
    assert SECRET not in "".join(traceback.format_exception(raised.value))


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Lets no file of this process grow beyond a size, as a full disk would not."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk(opened: SqlStore) -> None:
    opened.append(Append(ADA, "c", [said("one")]), now=1)
    with full_disk(2_000_000):
        _is_unavailable_and_silent(lambda: opened.append(Append(ADA, "c", [said(SECRET + "x" * 3_000_000)]), now=2))
        assert opened.head() == 1
    written = opened.append(Append(ADA, "c", [said("two")]), now=3)
    assert (written.conversation.turn_count, written.conversation.revision, opened.head()) == (2, 2, 2)
    with opened._reading.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_no_connection_free(opened: SqlStore) -> None:
    with_all = [opened._reading.connect() for _ in range(64)]
    try:
        with pytest.raises(Unavailable, match=r"^the store has no connection free$"):
            opened.head()
    finally:
        for connection in with_all:
            connection.close()
    assert opened.head() == 0
