"""Opens a SQLite file: the engines, with everything about SQLite that the statements need not know.

Two engines on one file: readers on a pool of connections that cannot write, and one connection for the one writer. The driver's own
handling of transactions is off (it begins late and never IMMEDIATE), so each engine says by itself how a transaction begins.

WAL lets readers go on while one writes, each on the snapshot that it began with; synchronous=FULL makes a commit that returned
survive a loss of power, at the price of one fsync.

A file that was removed or replaced under an open connection goes on to take writes, which nobody finds after the next start. So
each transaction looks first, in 2 us, whether the path still leads to the file that was opened.

A database in memory has no such log: there a writer waits for the readers to end, and they for it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from sqlite3 import Connection as DriverConnection

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event

from aforesaid_server.errors import Unavailable

READERS = 8  # connections kept; the others are opened when all are busy and closed afterwards
MORE_READERS = 56


class InMemory:
    """The name of a database in memory, which is there while a connection to it is open."""

    def __init__(self) -> None:
        self.url = URL.create("sqlite+pysqlite", database=f"file:/{secrets.token_hex(16)}", query={"vfs": "memdb", "uri": "true"})


def reading_engine(path: Path | InMemory, *, patience: float) -> Engine:
    """Returns the engine of the readers. `patience` is how many seconds a caller waits for a connection or a lock."""
    engine = _engine(path, patience, READERS, MORE_READERS)

    @event.listens_for(engine, "connect")
    def _only_read(connection: DriverConnection, _: object) -> None:
        connection.execute("PRAGMA query_only = ON")

    file = None if isinstance(path, InMemory) else Opened(path)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if file is not None:
            file.check()
        connection.exec_driver_sql("BEGIN")

    return engine


def writing_engine(path: Path | InMemory, *, patience: float) -> Engine:
    """Returns the engine of the writer, with one connection; a transaction holds the file's write lock from its first statement."""
    engine = _engine(path, patience, 1, 0)
    if isinstance(path, InMemory):

        @event.listens_for(engine, "begin")
        def _begin_in_memory(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

        return engine
    file, log = Opened(path), Opened(path.with_name(f"{path.name}-wal"))

    @event.listens_for(engine, "connect")
    def _forget_log(_: DriverConnection, __: object) -> None:
        log.forget()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        file.check()
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        log.check()  # there from the first statement on

    return engine


class Opened:
    """The file that a path led to at first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[int, int] | None = None

    def forget(self) -> None:
        """Takes what the path leads to next."""
        self._known = None

    def check(self) -> None:
        """Raises Unavailable if the path leads to no file, or to another one."""
        try:
            status = os.stat(self._path)
        except OSError:
            raise Unavailable(f"the store's file {self._path.name} is gone: put it back, or stop the service") from None
        found = (status.st_dev, status.st_ino)
        self._known = self._known or found
        if found != self._known:
            raise Unavailable(f"the store's file {self._path.name} was replaced: stop the service first")


def _engine(path: Path | InMemory, patience: float, size: int, more: int) -> Engine:
    engine = create_engine(
        path.url if isinstance(path, InMemory) else URL.create("sqlite+pysqlite", database=str(path)),
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=more,
        pool_timeout=patience,
        pool_use_lifo=True,  # the connection used last has the warmest caches
        hide_parameters=True,  # a message of the driver must not carry what somebody said
        connect_args={"isolation_level": None, "check_same_thread": False, "timeout": patience, "cached_statements": 256},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: DriverConnection, _: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    return engine
