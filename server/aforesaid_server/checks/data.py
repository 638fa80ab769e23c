"""Checks a data folder that no server uses: the store's file, the chain of the audit log, whether the index opens.

Nothing is mended and no table is brought up to date; as at every start, the head of the audit log takes in the one record that a
crash kept out of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from aforesaid_server.access import Access, Call
from aforesaid_server.audit import Audit, HeadFile
from aforesaid_server.checks import Step, Wrong, run
from aforesaid_server.folder import HEAD, SECRET, STORE
from aforesaid_server.index.tantivy import Damaged, TantivyIndex
from aforesaid_server.keys import keys_in
from aforesaid_server.paging import Seal
from aforesaid_server.store.migrations import newest
from aforesaid_server.store.sql import open_sqlite

_MOST_TOLD = 3


def check_data(folder: Path, tell: Callable[[str], None]) -> bool:
    """Runs the whole check on a folder that this process holds; returns whether all was right."""
    return run(_steps(folder), tell)


def _steps(folder: Path) -> Iterator[Step]:
    yield Step("files", lambda: _files(folder))
    yield Step("store", lambda: _store(folder / STORE))
    yield Step("tables", lambda: _tables(folder / STORE))
    yield Step("audit log", lambda: _audit(folder))
    yield Step("index", lambda: _index(folder))


def _files(folder: Path) -> str:
    for name in (STORE, SECRET):
        if not (folder / name).is_file():
            raise Wrong(f"{name} in {folder}", "no such file")
        mode = (folder / name).stat().st_mode & 0o077
        if mode:
            raise Wrong(f"{name} to be its owner's alone", f"mode {mode:03o} for others")
    return f"{STORE} and {SECRET} are there, their owner's alone"


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


def _tables(path: Path) -> str:
    revision = _revision(path)
    return f"revision {revision}" + (", the next start brings them up to date" if revision != newest() else "")


def _audit(folder: Path) -> str:
    if _revision(folder / STORE) != newest():
        return "is looked at once the tables are up to date"
    try:
        keys = keys_in(folder / SECRET)
    except ValueError as error:
        raise Wrong("a secret that can be read", str(error)) from None
    store = open_sqlite(folder / STORE, create=False)
    try:
        audit = Audit(store, Access(store, frozenset()), HeadFile(folder / HEAD), keys.audit, Seal(keys.cursors))
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
