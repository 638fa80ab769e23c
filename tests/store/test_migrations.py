"""The revisions: they make what tables.py says, in place and all or nothing, and refuse what they do not know."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect

from aforesaid_server.errors import FailedPrecondition, Unavailable
from aforesaid_server.store import AgentKey, Append
from aforesaid_server.store.migrations import newest
from aforesaid_server.store.sql import open_sqlite
from aforesaid_server.store.tables import metadata
from tests.store.conftest import Database
from tests.store.plain import said


def test_the_revisions_make_the_tables(database: Database) -> None:
    with closing(database.open()) as store, store._reading.connect() as connection:
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
        if database.engine == "sqlite":
            assert rowless(connection) == ["read_scopes", "scope_pairs"]
        else:
            assert not compared_by_words(connection)


def rowless(connection: Connection) -> list[str]:
    found = connection.exec_driver_sql("select name from sqlite_schema where sql like '%WITHOUT ROWID%' order by name")
    return list(found.scalars())


def compared_by_words(connection: Connection) -> list[tuple[str, str]]:
    """The columns of texts that PostgreSQL would sort as a language does."""
    found = connection.exec_driver_sql(
        "select table_name, column_name from information_schema.columns where table_schema = 'public' and data_type = 'text' "
        "and collation_name is distinct from 'C'"
    )
    return [(row[0], row[1]) for row in found]


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(open_sqlite(path)) as store:
        store.append(Append(AgentKey("a"), "c", [said("x")]), now=1)
    before = path.read_bytes()
    with closing(open_sqlite(path)) as store:
        assert store.head() == 1
    assert path.read_bytes() == before


def test_an_unknown_newer_revision_is_refused(database: Database) -> None:
    database.open().close()
    with database.raw() as raw:
        raw.exec_driver_sql("update alembic_version set version_num = '9999'")
        with pytest.raises(FailedPrecondition) as raised:
            database.open()
        assert raised.value.message == (
            f"the store has revision 9999, this version of aforesaid knows none after {newest()}: use a newer version"
        )
        assert raw.exec_driver_sql("select version_num from alembic_version").scalars().all() == ["9999"]
        raw.exec_driver_sql(f"update alembic_version set version_num = '{newest()}'")
    with closing(database.open(create=False)) as store:
        assert store.head() == 0


def test_all_or_nothing(database: Database) -> None:
    """A revision that fails on the way leaves everything as it was: here one table of its own is in the way."""
    database.open().close()
    with database.raw() as raw:
        cascade = "" if database.engine == "sqlite" else " cascade"
        for name in set(inspect(raw).get_table_names()) - {"reads"}:
            raw.exec_driver_sql(f'drop table "{name}"{cascade}')
        with pytest.raises(Unavailable, match=r"cannot be opened: .*reads.* already exists"):
            database.open()
        assert inspect(raw).get_table_names() == ["reads"]
        raw.exec_driver_sql("drop table reads")
    with closing(database.open()) as store:
        assert store.append(Append(AgentKey("a"), "c", [said("x")]), now=1).turns[0].turn.number == 1


def test_opened_by_several_at_once(database: Database) -> None:
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(lambda _: database.open(), range(4)))
    for number, store in enumerate(stores, 1):
        with closing(store):
            assert store.append(Append(AgentKey("a"), "c", [said("x")]), now=1).turns[0].turn.number == number


def test_where_there_is_no_store(database: Database) -> None:
    with pytest.raises(FailedPrecondition, match=r"^there is no store (at|in) "):
        database.open(create=False)
    with database.raw() as raw:
        assert inspect(raw).get_table_names() == []
