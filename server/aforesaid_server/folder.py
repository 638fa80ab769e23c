"""The data folder: what its files are called, and that one process holds it at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from aforesaid_server.errors import StartError

STORE, SECRET, HEAD, INDEX, LOCK = "store.sqlite3", "secret", "audit.head", "index", "lock"


@contextlib.contextmanager
def data_folder(folder: Path) -> Iterator[None]:
    """Makes the data folder, for its owner alone, and holds it for this process. Raises StartError if another server holds it."""
    try:
        fresh = not folder.exists()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if fresh or (folder / LOCK).exists() or not any(folder.iterdir()):
            # Somebody's home folder, named by mistake, keeps its mode.
            folder.chmod(0o700)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        itself = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise StartError(f"data folder {folder}: {os.strerror(error.errno or 0).lower()}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The folder too, where the file system knows that: somebody may have tidied the file away.
        _hold(itself)
    except OSError:
        holder = os.pread(file, 20, 0).decode("ascii", "replace").strip()
        os.close(itself)
        os.close(file)
        raise StartError(f"data folder {folder}: another server uses it (process {holder or 'unknown'})") from None
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(itself)
        os.close(file)


def _hold(folder: int) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        pass
