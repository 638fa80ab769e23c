"""The engines that the tests of the store run on: every test of the port on both, no case left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection, NullPool, create_engine

from aforesaid_server.store.postgres import address_of, open_postgres
from aforesaid_server.store.sql import PATIENCE, SqlStore, open_in_memory, open_sqlite
from scripts.postgresql import Cluster

ENGINES = ("sqlite", "postgresql")


@dataclass(frozen=True)
class Database:
    """A place for a store, in which there is nothing at first."""

    address: URL

    @property
    def engine(self) -> str:
        return self.address.get_backend_name()

    def open(self, *, create: bool = True, patience: float = PATIENCE) -> SqlStore:
        """Opens the store in it, as often as wanted: each as another process would."""
        if self.engine == "sqlite":
            return open_sqlite(Path(str(self.address.database)), create=create, patience=patience)
        return open_postgres(
            self.address.set(drivername="postgresql").render_as_string(hide_password=False), create=create, patience=patience
        )

    @contextmanager
    def raw(self) -> Iterator[Connection]:
        """A connection of no store's, each statement for itself."""
        engine = create_engine(self.address, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with engine.connect() as connection:
            yield connection
        engine.dispose()


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A file that is not there yet, or a database without tables, of each engine."""
    if request.param == "sqlite":
        yield Database(URL.create("sqlite+pysqlite", database=str(tmp_path / "store.db")))
        return
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    name = cluster.new(ordered_by="en-US")
    yield Database(address_of(cluster.url(name)))
    cluster.drop(name)


@pytest.fixture(params=(*ENGINES, "memory"))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    """An empty store, also one of SQLite in memory."""
    match request.param:
        case "sqlite":
            opened = open_sqlite(tmp_path / "store.db")
        case "memory":
            opened = open_in_memory()
        case _:
            opened = open_postgres(request.getfixturevalue("postgres"))
    yield opened
    opened.close()


@pytest.fixture(params=ENGINES, scope="module")
def kept_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    """One store for all examples of a property, each of which makes an agent of its own."""
    if request.param == "sqlite":
        opened = open_sqlite(tmp_path_factory.mktemp("store") / "store.db")
    else:
        opened = open_postgres(request.getfixturevalue("new_database")())
    yield opened
    opened.close()
