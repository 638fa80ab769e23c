"""The revisions: they make what tables.py says, in place and all or nothing, and refuse what they do not know."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect

from aforesaid_server.errors import FailedPrecondition, Unavailable
from aforesaid_server.store import AgentKey, Append
from aforesaid_server.store.sql import open_sqlite
from aforesaid_server.store.tables import metadata
from tests.store.plain import said


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file of a store that was opened and closed, without what is between."""
    open_sqlite(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def test_the_revisions_make_the_tables(path: Path) -> None:
    with closing(open_sqlite(path)) as store, store._reading.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata) == []
        found = inspect(connection)
        for table in metadata.sorted_tables:
            assert found.get_pk_constraint(table.name)["constrained_columns"] == [column.name for column in table.primary_key]
            assert {key["name"] for key in found.get_foreign_keys(table.name)} == {
                key.name for key in table.foreign_key_constraints
            }
            assert {column["name"]: column["nullable"] for column in found.get_columns(table.name)} == {
                column.name: column.nullable for column in table.columns
            }
        assert set(found.get_table_names()) == {*metadata.tables, "alembic_version"}
        rowless = connection.exec_driver_sql("select name from sqlite_schema where sql like '%WITHOUT ROWID%'").scalars().all()
        assert sorted(rowless) == ["read_scopes", "scope_pairs"]


def test_opening_again_changes_nothing(path: Path) -> None:
    with closing(open_sqlite(path)) as store:
        store.append(Append(AgentKey("a"), "c", [said("x")]), now=1)
    before = path.read_bytes()
    with closing(open_sqlite(path)) as store:
        assert store.head() == 1
    assert path.read_bytes() == before


def test_an_unknown_newer_revision_is_refused(path: Path, raw: sqlite3.Connection) -> None:
    raw.execute("update alembic_version set version_num = '9999'")
    before = path.read_bytes()
    with pytest.raises(FailedPrecondition) as raised:
        open_sqlite(path)
    assert raised.value.message == (
        "the store has revision 9999, this version of aforesaid knows none after 0003: use a newer version"
    )
    assert path.read_bytes() == before


def test_all_or_nothing(path: Path, raw: sqlite3.Connection) -> None:
    """A revision that fails on the way leaves the file as it was: here one table of its own is in the way."""
    for (name,) in raw.execute("select name from sqlite_schema where type = 'table' and name not in ('reads')").fetchall():
        raw.execute(f'drop table "{name}"')
    with pytest.raises(Unavailable):
        open_sqlite(path)
    assert raw.execute("select name from sqlite_schema where type = 'table'").fetchall() == [("reads",)]
    raw.execute("drop table reads")
    with closing(open_sqlite(path)) as store:
        assert store.append(Append(AgentKey("a"), "c", [said("x")]), now=1).turns[0].turn.number == 1


def test_opened_by_several_at_once(path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(lambda _: open_sqlite(path), range(4)))
    for number, store in enumerate(stores, 1):
        with closing(store):
            assert store.append(Append(AgentKey("a"), "c", [said("x")]), now=1).turns[0].turn.number == number
