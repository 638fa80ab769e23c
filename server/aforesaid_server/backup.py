"""A copy of a data folder, made while it is served, and put back into an empty one.

A backup is a folder that can be served as it is: the store, the secret and the head of the audit log, all of one moment, with a
list of them in `backup.json`. The index is left out, being made again from the store. The store is copied page by page by SQLite
itself on one snapshot, so that writers go on meanwhile. The head of the audit log is read before that snapshot and then led along
the records that the snapshot holds beyond it, each checked with the key: records that were altered or cut off stay so in the copy,
for VerifyAudit to find.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import func, select

from aforesaid_server.audit import HeadFile, follow_chain
from aforesaid_server.folder import HEAD, LOCK, SECRET, STORE
from aforesaid_server.keys import keys_in
from aforesaid_server.store import ReadRow
from aforesaid_server.store.sqlite import reading_engine
from aforesaid_server.store.tables import log, reads, turns

LIST = "backup.json"
_PATIENCE = 10.0  # seconds
_PART = ".part"


class BackupError(Exception):
    """A backup that cannot be made or put back; says why, for people."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What a backup holds: when it was made (ISO 8601), by which version, how many turns, changes and audit records, and the
    SHA-256 of each file.
    """

    made_at: str
    version: str
    turns: int
    changes: int
    audit_records: int
    files: dict[str, str]


def back_up(data: Path, target: Path, now: datetime) -> BackedUp:
    """Copies the data folder `data` into the new folder `target`, which is there whole or not at all.

    Raises BackupError where there is nothing to copy, where `target` is in the way, and where the copy cannot be made or read.
    """
    for name in (STORE, SECRET):
        if not (data / name).is_file():
            raise BackupError(f"data folder {data}: holds no {name}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(f"{target}: is there already and not an empty folder")
    try:
        with _beside(target) as part:
            made = _copied(data, part, now)
            part.replace(target)
            _settle(target.parent)
    except OSError as error:
        raise BackupError(f"{target}: {(error.strerror or 'cannot be written').lower()}") from error
    except sqlite3.Error as error:
        raise BackupError(f"{data / STORE}: cannot be copied: {error}") from error
    return made


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Yields an empty folder beside the target, for this process alone; what a killed one left in it goes, and it goes at the end
    unless it has been moved. Raises BackupError where another process has it.
    """
    part = target.with_name(f".{target.name}{_PART}")
    part.mkdir(mode=0o700, parents=True, exist_ok=True)
    held = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if not _hold(held) or not _is(held, part):
            raise BackupError(f"{target}: another backup is being made there")
        try:
            _empty(part)
            yield part
        finally:
            if _is(held, part):
                shutil.rmtree(part, ignore_errors=True)
    finally:
        os.close(held)


def _hold(folder: int) -> bool:
    """Locks a folder for this process; tells whether nobody else has. Where the file system knows no locks, nobody has."""
    with suppress(OSError):
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _is(opened: int, path: Path) -> bool:
    """Tells whether what was opened is what lies at a path now."""
    try:
        return os.path.samestat(os.fstat(opened), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _empty(folder: Path) -> None:
    for one in folder.iterdir():
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        else:
            one.unlink()


def _copied(data: Path, part: Path, now: datetime) -> BackedUp:
    shutil.copyfile(data / SECRET, part / SECRET)
    count, mac = HeadFile(data / HEAD).read()  # before the snapshot, so that its records are all in there
    _copy_store(data / STORE, part / STORE)
    try:
        key = keys_in(part / SECRET).audit
    except ValueError as error:
        raise BackupError(f"data folder {data}: {error}") from None
    kept, changes, rows = _read_from(part / STORE, count)
    if count or rows:
        HeadFile(part / HEAD).write(*follow_chain(key, (count, mac), rows))
    _make_plain(part / STORE)
    names = [name for name in (STORE, SECRET, HEAD) if (part / name).exists()]
    for name in names:
        (part / name).chmod(0o600)
        _settle(part / name)
    made = BackedUp(
        now.isoformat(), version("aforesaid"), kept, changes, count + len(rows), {name: _sum_of(part / name) for name in names}
    )
    (part / LIST).write_text(json.dumps(asdict(made), indent=1) + "\n", "utf-8")
    (part / LIST).chmod(0o600)
    _settle(part / LIST)
    _settle(part)
    return made


def _copy_store(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source, timeout=_PATIENCE)) as reading, closing(sqlite3.connect(target)) as writing:
        reading.backup(writing)  # in one step, which is one snapshot: between steps others' writes would make it begin anew
        problem = writing.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise BackupError(f"{source}: the store is damaged: {problem}")


def _read_from(store: Path, count: int) -> tuple[int, int, list[ReadRow]]:
    """Returns how many turns and changes a copy holds, and its audit records after number `count`."""
    engine = reading_engine(store, patience=_PATIENCE)
    try:
        with engine.connect() as connection:
            kept = connection.execute(select(func.count()).select_from(turns)).scalar_one()
            changes = connection.execute(select(log.c.head)).scalar_one()
            found = connection.execute(select(reads).where(reads.c.number > count).order_by(reads.c.number))
            return kept, changes, [ReadRow(row.number, row.body, row.mac) for row in found]
    finally:
        engine.dispose()


def _make_plain(store: Path) -> None:
    """Makes one file of the copy, with no log beside it."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


# -- putting back


def put_back(backup: Path, data: Path) -> BackedUp:
    """Copies a backup into a data folder that holds nothing yet; the caller holds that folder's lock.

    Raises BackupError where the folder is not empty, and where the backup is not as it was made.
    """
    made = checked(backup)
    in_the_way = sorted(one.name for one in data.iterdir() if one.name != LOCK and not one.name.endswith(_PART))
    if in_the_way:
        raise BackupError(f"data folder {data}: is not empty: it holds {in_the_way[0]}")
    try:
        for name in made.files:
            shutil.copyfile(backup / name, data / f"{name}{_PART}")
            (data / f"{name}{_PART}").chmod(0o600)
            _settle(data / f"{name}{_PART}")
            if _sum_of(data / f"{name}{_PART}") != made.files[name]:
                raise BackupError(f"{backup / name}: changed while it was read")
        # The store last: until it is there, nothing is served from the folder as if it were whole.
        for name in sorted(made.files, key=lambda name: name == STORE):
            (data / f"{name}{_PART}").replace(data / name)
        _settle(data)
    except OSError as error:
        raise BackupError(f"data folder {data}: {(error.strerror or 'cannot be written').lower()}") from error
    return made


def checked(backup: Path) -> BackedUp:
    """Returns what a backup holds, after each of its files was compared with its sum. Raises BackupError."""
    try:
        made = BackedUp(**json.loads((backup / LIST).read_text("utf-8")))
        names = set(made.files)
    except (OSError, ValueError, TypeError, AttributeError):
        raise BackupError(f"{backup}: holds no backup: there is no {LIST} that can be read") from None
    if not {STORE, SECRET} <= names <= {STORE, SECRET, HEAD}:
        raise BackupError(f"{backup / LIST}: names other files than a backup has")
    for name, expected in made.files.items():
        if not (backup / name).is_file():
            raise BackupError(f"{backup / name}: is missing")
        if _sum_of(backup / name) != expected:
            raise BackupError(f"{backup / name}: is not as it was made: its SHA-256 is another one")
    return made


def _sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _settle(path: Path) -> None:
    """Waits until a file or folder lies on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
