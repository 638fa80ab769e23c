"""The follower: reads the store's change log and brings the index up to it, in a thread of its own. A rebuild is the same, from
change 0.

An index that is missing, damaged or of another analyser, schema or choice of parts is built anew in a folder beside and then
swapped in; it is never mended. What is left of an earlier try is removed first. A file marks the index while it is in use: one that
is found marked was not closed, and is read whole before it is used.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from aforesaid_server.errors import AforesaidError
from aforesaid_server.index import Batch
from aforesaid_server.index.checksums import unsound_file
from aforesaid_server.index.document import Documents, lasting
from aforesaid_server.index.live import LiveIndex
from aforesaid_server.index.others import document_of
from aforesaid_server.index.tantivy import SCHEMA, Damaged, TantivyIndex
from aforesaid_server.store import Put, Store

log = structlog.get_logger(__name__)

LAG_SECONDS = 0.5
"""How long the turns of a write wait for the engine at most, when it keeps up."""
_BATCH_TURNS = 4_000
_BATCH_BYTES = 8 * 1024 * 1024
_RETRY_SECONDS = 2.0
_PARTS = ("turns", "vocabulary")
_IN_USE = "in-use"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the index has come. `ready` tells whether searches are answered; `why` says in a sentence why not."""

    ready: bool
    why: str
    done: int
    of: int


class Broken(Exception):
    """A search found that the index no longer answers."""


class Follower:
    """Owns the index folder and the thread that fills it. Without a folder the index lies in memory, and is built at each start."""

    def __init__(self, store: Store, live: LiveIndex, documents: Documents, folder: Path | None) -> None:
        self._store = store
        self._live = live
        self._documents = documents
        self._folder = folder
        self._beside = folder.with_name(folder.name + ".building") if folder is not None else None
        self._engine: TantivyIndex | None = None
        self._released: TantivyIndex | None = None  # given up, and still searched until the next one is there
        self._stopping = threading.Event()
        self._progress = Progress(False, "the index is being opened", 0, 0)
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    @property
    def _fingerprint(self) -> str:
        """Names all that the index depends on."""
        return f"{SCHEMA} {self._documents.fingerprint}"

    @property
    def progress(self) -> Progress:
        """How far the index has come."""
        return self._progress

    @property
    def held(self) -> tuple[int, int] | None:
        """How many documents and words the index holds; None while there is none."""
        engine = self._engine or self._released
        return (engine.documents, engine.vocabulary.size) if engine is not None else None

    def start(self) -> None:
        """Begins to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stops following; what the engine lacks is read from the log at the next start."""
        self._stopping.set()
        self._live.hurry(0)
        if self._thread.is_alive():
            self._thread.join()
        if self._engine is not None:
            self._engine.close()
            if self._folder is not None:
                (self._folder / _IN_USE).unlink(missing_ok=True)

    # -- the thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except AforesaidError as error:
                self._report("the store or the index cannot be read", error)
            except BaseException as error:  # tantivy's panics are no Exception
                if isinstance(error, (KeyboardInterrupt, SystemExit)):
                    raise
                self._report("the index has failed", error)
                self._give_up()
            self._stopping.wait(0 if self._stopping.is_set() else _RETRY_SECONDS)

    def _report(self, why: str, error: BaseException) -> None:
        ready = self._progress.ready
        self._progress = Progress(ready, why, self._progress.done, self._progress.of)
        log.error("follower failed", why=why, error=type(error).__name__)

    def _give_up(self) -> None:
        """Gives up an engine that failed. One that still answers, as on a full disk, goes on until the next round opens it
        anew; else the next round builds another.
        """
        engine, self._engine = self._engine, None
        if engine is not None and engine.answers():
            engine.release()
            self._released = engine
            return
        self._released = None
        self._live.use(None)
        self._progress = Progress(False, "the index has failed and will be rebuilt", 0, 0)
        _remove(self._folder)

    def _follow(self) -> None:
        engine = self._engine or self._opened() or self._rebuilt()
        if engine is None:
            return
        self._engine = engine
        if self._folder is not None:
            with suppress(OSError):  # on a full disk a later start does not look, as after a good end
                (self._folder / _IN_USE).touch()
        why = "the index takes in what was written since"
        self._catch_up(engine, why)
        self._live.expect(engine.head)
        self._catch_up(engine, why)
        if self._stopping.is_set():  # it may lack turns
            return
        self._live.use(engine)
        self._released = None
        self._progress = Progress(True, "", engine.head, engine.head)
        while not self._stopping.is_set():
            self._live.wait_for_work(LAG_SECONDS)
            if self._live.take_failure():
                raise Broken
            if self._store.shared:
                self._live.log_reaches(self._store.head())
            self._catch_up(engine, "")

    def _catch_up(self, engine: TantivyIndex, why: str) -> None:
        while not self._stopping.is_set() and (batch := self._next(engine.head)) is not None:
            self._live.apply(engine, batch)
            if why:
                self._progress = Progress(False, why, engine.head, self._store.head())

    def _next(self, after: int) -> Batch | None:
        """Reads the next batch of the log, None at its end."""
        changes = self._store.changes(after, _BATCH_TURNS)
        if not changes:
            return None
        size = 0
        for count, change in enumerate(changes, 1):
            size += change.place.turn.content_length if isinstance(change, Put) and change.place else 0
            if size > _BATCH_BYTES:
                changes = changes[:count]
                break
        left = lasting(changes)
        documents = (document_of(self._documents, place) for _, place in left.puts)
        return Batch(left.position, documents, left.forget, left.forget_conversations)

    # -- the folder

    def _opened(self) -> TantivyIndex | None:
        """Opens the index, None if there is none, or one that cannot be used. Removes what an earlier try to build one left."""
        _remove(self._beside)
        if self._folder is None:
            return None
        mark = self._folder / "fingerprint.json"
        try:
            if json.loads(mark.read_text())["fingerprint"] != self._fingerprint:
                log.info("index of another analyser or schema: rebuilding")
                return None
            for part in _PARTS:
                # tantivy takes a folder without this file for a new index, and one half would lack what the other holds.
                (self._folder / part / "meta.json").stat()
            if self._unsound(self._folder):
                return None
            engine = TantivyIndex(self._folder)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, Damaged) as error:
            log.warning("index cannot be opened: rebuilding", error=type(error).__name__)
            return None
        if engine.head > self._store.head():
            log.warning("index is ahead of the store: rebuilding")
            engine.close()
            return None
        return engine

    def _unsound(self, folder: Path) -> bool:
        """Tells whether an index that was not closed is not as it was written; reads the whole of it."""
        if not (folder / _IN_USE).exists():
            return False
        self._progress = Progress(False, "the index is being checked", 0, 0)
        started = time.monotonic()
        found = [path for part in _PARTS if (path := unsound_file(folder / part)) is not None]
        log.info("index checked", sound=not found, seconds=round(time.monotonic() - started, 3))
        return bool(found)

    def _rebuilt(self) -> TantivyIndex | None:
        """Builds the index in a folder beside and swaps it in; None if told to stop meanwhile."""
        beside = self._beside
        _remove(beside)
        total = self._store.head()
        why = "the index is being rebuilt"
        self._progress = Progress(False, why, 0, total)
        started = time.monotonic()
        engine = TantivyIndex(beside)
        while not self._stopping.is_set() and (batch := self._next(engine.head)) is not None:
            engine.apply(batch)
            self._progress = Progress(False, why, engine.head, max(total, engine.head))
        if self._folder is None or beside is None:
            return None if self._stopping.is_set() else engine
        engine.close()
        if self._stopping.is_set():
            return None
        (beside / "fingerprint.json").write_text(json.dumps({"fingerprint": self._fingerprint}))
        _remove(self._folder)
        beside.rename(self._folder)
        log.info("index rebuilt", changes=total, seconds=round(time.monotonic() - started, 3))
        return TantivyIndex(self._folder)


def _remove(path: Path | None) -> None:
    """Removes what lies at a path, whatever it is."""
    if path is None:
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
