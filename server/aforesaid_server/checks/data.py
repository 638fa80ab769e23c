"""Checks a data folder that no server uses: the store, the chain of the audit log, whether the index opens.

Nothing is mended and no table is brought up to date; as at every start, the head of the audit log takes in the one record that a
crash kept out of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, Connection, func, select
from sqlalchemy.exc import SQLAlchemyError

from aforesaid_server.access import Access, Call
from aforesaid_server.audit import Audit, HeadFile
from aforesaid_server.checks import Step, Wrong, run
from aforesaid_server.folder import HEAD, SECRET, STORE
from aforesaid_server.index.tantivy import Damaged, TantivyIndex
from aforesaid_server.keys import keys_in
from aforesaid_server.paging import Seal
from aforesaid_server.settings import Folder
from aforesaid_server.store.migrations import newest
from aforesaid_server.store.opening import open_store
from aforesaid_server.store.postgres import address_of, place_of, reading_engine, reason_of
from aforesaid_server.store.sql import PATIENCE
from aforesaid_server.store.tables import changes, log, turns

_MOST_TOLD = 3


def check_data(folder: Folder, tell: Callable[[str], None]) -> bool:
    """Runs the whole check on a folder that this process holds, and its store; returns whether all was right."""
    return run(_steps(folder), tell)


def _steps(folder: Folder) -> Iterator[Step]:
    file = folder.data / STORE
    if folder.store:
        address = address_of(folder.store.get_secret_value())
        yield Step("files", lambda: _files(folder.data, SECRET))
        yield Step("store", lambda: _database(address))
        yield Step("tables", lambda: _tables(_revision_in(address)))
        yield Step("audit log", lambda: _audit(folder, _revision_in(address)))
    else:
        yield Step("files", lambda: _files(folder.data, STORE, SECRET))
        yield Step("store", lambda: _store(file))
        yield Step("tables", lambda: _tables(_revision(file)))
        yield Step("audit log", lambda: _audit(folder, _revision(file)))
    yield Step("index", lambda: _index(folder.data))


def _files(folder: Path, *names: str) -> str:
    for name in names:
        if not (folder / name).is_file():
            raise Wrong(f"{name} in {folder}", "no such file")
        mode = (folder / name).stat().st_mode & 0o077
        if mode:
            raise Wrong(f"{name} to be its owner's alone", f"mode {mode:03o} for others")
    return f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'} there, {'their' if len(names) > 1 else 'its'} owner's alone"


def _store(path: Path) -> str:
    try:
        with closing(_reading(path)) as connection:
            problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            loose = connection.execute("PRAGMA foreign_key_check").fetchall()
            turns = connection.execute("SELECT count(*) FROM turns").fetchone()[0] if problems == ["ok"] else 0
    except sqlite3.DatabaseError as error:
        raise Wrong("a SQLite file that can be read", str(error)) from None
    if problems != ["ok"]:
        raise Wrong("integrity_check to say ok", "; ".join(problems[:_MOST_TOLD]))
    if loose:
        raise Wrong("every row to belong to another", f"{len(loose)} that do not")
    return f"integrity_check says ok, {turns} turns"


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)


def _revision(path: Path) -> str:
    with closing(_reading(path)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def _database(address: URL) -> str:
    with _asking(address) as connection:
        version = str(connection.exec_driver_sql("SHOW server_version").scalar_one()).split()[0]
        kept = connection.execute(select(func.count()).select_from(turns)).scalar_one()
        last = connection.execute(select(func.coalesce(func.max(changes.c.number), 0))).scalar_one()
        head = connection.execute(select(log.c.head)).scalar_one()
    if last != head:
        raise Wrong(f"a log that ends at change {head}", f"its last change is {last}")
    return f"{place_of(address)}, PostgreSQL {version}, {kept} turns"


def _revision_in(address: URL) -> str:
    with _asking(address) as connection:
        return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one())


@contextmanager
def _asking(address: URL) -> Iterator[Connection]:
    engine = reading_engine(address, PATIENCE)
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise Wrong("a database that answers, with a store in it", reason_of(error, address)) from None
    finally:
        engine.dispose()


def _tables(revision: str) -> str:
    return f"revision {revision}" + (", the next start brings them up to date" if revision != newest() else "")


def _audit(folder: Folder, revision: str) -> str:
    if revision != newest():
        return "is looked at once the tables are up to date"
    try:
        keys = keys_in(folder.data / SECRET)
    except ValueError as error:
        raise Wrong("a secret that can be read", str(error)) from None
    store = open_store(folder, create=False)
    try:
        audit = Audit(store, Access(store, frozenset()), HeadFile(folder.data / HEAD), keys.audit, Seal(keys.cursors))
        found = audit.verify(Call("VerifyAudit", "check", "check"))
    finally:
        store.close()
    if not found.intact:
        told = "; ".join(f"record {fault.record}: {fault.problem}" for fault in found.faults[:_MOST_TOLD])
        raise Wrong("a log that is intact", told)
    return f"{found.records} records, intact"


def _index(folder: Path) -> str:
    path = folder / "index"
    if not path.exists():
        return "there is none, the next start builds it"
    try:
        index = TantivyIndex(path)
    except Damaged as error:
        raise Wrong("an index that opens", f"{error}: the next start builds it anew") from None
    try:
        return f"opens, {index.documents} documents"
    finally:
        index.close()
