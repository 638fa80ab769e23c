"""`aforesaid-server check --data`: a folder that is whole, and each way in which it is not."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from aforesaid_server.__main__ import commands
from aforesaid_server.folder import data_folder
from tests.api.callers import new, ok
from tests.faults.serving import served, wait_until


def checked(data: Path) -> tuple[int, list[str]]:
    """Runs the command; returns the exit code and its lines."""
    outcome = CliRunner().invoke(commands, ["check", "--data", str(data)])
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit)
    return outcome.exit_code, (outcome.stdout + outcome.stderr).splitlines()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two turns and two records of reads."""
    old, data = os.umask(0o077), tmp_path_factory.mktemp("made") / "data"
    try:
        with served(data) as now:
            now.wait_until_ready()
            agent, other = new("agent"), new("other")
            now.user.agent(agent).say("talk", "a kite")
            now.user.agent(other).say("talk", "a kestrel")
            for _ in range(2):
                ok(now.user.agent(agent).search("kestrel", agentId=other))
            wait_until(lambda: now.house.figures().documents == 2)
    finally:
        os.umask(old)
    return data


@pytest.fixture
def whole(made: Path, tmp_path: Path) -> Path:
    """A copy of it, to do harm to."""
    return shutil.copytree(made, tmp_path / "data")


def test_a_folder_that_is_whole(whole: Path) -> None:
    assert checked(whole) == (
        0,
        [
            "ok      files: store.sqlite3 and secret are there, their owner's alone",
            "ok      store: integrity_check says ok, 2 turns",
            f"ok      tables: revision {_revision(whole)}",
            "ok      audit log: 2 records, intact",
            "ok      index: opens, 2 documents",
        ],
    )
    assert checked(whole)[0] == 0  # nothing was changed by looking


def _revision(data: Path) -> str:
    with closing(sqlite3.connect(data / "store.sqlite3")) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def _sql(statement: str) -> Callable[[Path], None]:
    def do(data: Path) -> None:
        with closing(sqlite3.connect(data / "store.sqlite3")) as connection, connection:
            connection.executescript(statement)

    return do


def _write(name: str, content: bytes) -> Callable[[Path], None]:
    def do(data: Path) -> None:
        (data / name).write_bytes(content)

    return do


def _overwrite_a_page(data: Path) -> None:
    with (data / "store.sqlite3").open("r+b") as file:
        for page in range(3, file.seek(0, os.SEEK_END) // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 512)


def _cut_the_index(data: Path) -> None:
    (data / "index" / "turns" / "meta.json").write_text("{")


WRONG: list[tuple[str, Callable[[Path], None], str]] = [
    ("no store", lambda data: (data / "store.sqlite3").unlink(), "FAILED  files: expected store.sqlite3 in "),
    ("no secret", lambda data: (data / "secret").unlink(), "FAILED  files: expected secret in "),
    (
        "open to others",
        lambda data: (data / "secret").chmod(0o644),
        "FAILED  files: expected secret to be its owner's alone, came mode 044",
    ),
    (
        "no database",
        _write("store.sqlite3", b"x" * 8192),
        "FAILED  store: expected a SQLite file",
    ),
    ("pages overwritten", _overwrite_a_page, "FAILED  store: expected "),
    ("a loose turn", _sql("DELETE FROM conversations"), "FAILED  store: expected every row to belong to another, came "),
    (
        "a record altered",
        _sql("UPDATE reads SET body = replace(body, 'kestrel', 'kite') || ' ' WHERE number = 1"),
        "FAILED  audit log: ",
    ),
    (
        "a record removed",
        _sql("".join(f"DELETE FROM {table} WHERE number = 2;" for table in ("reads", "read_targets", "read_scopes"))),
        "FAILED  audit log: expected a log that is intact, came record 2: cut off",
    ),
    ("another secret", _write("secret", bytes(32)), "FAILED  audit log: "),
    (
        "a secret cut",
        _write("secret", b"x"),
        "FAILED  audit log: expected a secret that can be read, came ",
    ),
    ("an index cut", _cut_the_index, "FAILED  index: expected an index that opens, came ValueError: the next start builds it anew"),
]


@pytest.mark.parametrize(("harm", "told"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_folder_that_is_not(harm: Callable[[Path], None], told: str, whole: Path) -> None:
    harm(whole)
    code, lines = checked(whole)
    assert code == 1
    assert lines[-1].startswith(told)
    assert all(line.startswith("ok      ") for line in lines[:-1])


def test_an_index_that_is_not_there_is_built_by_the_next_start(whole: Path) -> None:
    (whole / "index").rename(whole / "away")
    code, lines = checked(whole)
    assert (code, lines[-1]) == (0, "ok      index: there is none, the next start builds it")


def test_older_tables_are_left_as_they_are(whole: Path) -> None:
    _sql("UPDATE alembic_version SET version_num = '0001'")(whole)
    code, lines = checked(whole)
    assert (code, lines[2:4]) == (
        0,
        [
            "ok      tables: revision 0001, the next start brings them up to date",
            "ok      audit log: is looked at once the tables are up to date",
        ],
    )
    assert _revision(whole) == "0001"


def test_a_folder_that_is_served_is_not_looked_at(whole: Path) -> None:
    with data_folder(whole):
        code, lines = checked(whole)
    assert code == 2
    assert lines == [
        f"aforesaid-server: data folder {whole}: another server uses it (process {os.getpid()}); check the service with --url"
    ]


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert checked(tmp_path / "nothing") == (2, [f"aforesaid-server: data folder {tmp_path / 'nothing'}: no such folder"])
    assert not (tmp_path / "nothing").exists()
