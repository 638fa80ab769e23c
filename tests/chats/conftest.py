"""The stores that the tests of chats run on, no case left out: embedded over SQLite, over PostgreSQL and in memory, and services
that are called with and without tokens.

Each store is one for the whole run; a test keeps apart by a scope of its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import pytest

from aforesaid.transcript_index import ChatRecord, TranscriptIndex
from scripts.running_server import start
from tests.api.guarded import Owner
from tests.conftest import NewDatabase, end

Scope: TypeAlias = dict[str, str]

EMBEDDED = ("folder", "postgresql", "memory")
SERVED = ("local", "token")
KINDS = (*EMBEDDED, *SERVED)
# What the token of the tests is bound to.
TENANT = {"tenant": "blue"}
NOT_TAKEN = {"AFORESAID_LANGUAGE": "german", "AFORESAID_READERS": "no JSON", "AFORESAID_AGENT_ID": "somebody"}


@dataclass(frozen=True, slots=True)
class Place:
    """A store of chats: opened once for all, and `again` by another caller, process or node, where it can be."""

    kind: str
    index: TranscriptIndex
    again: Callable[[], TranscriptIndex] | None
    kept: dict[str, Scope] = field(default_factory=dict)

    def scope(self) -> Scope:
        """A scope that no other test has; where a token is bound to one, within that."""
        return {"user_id": uuid4().hex} | (TENANT if self.kind == "token" else {})

    def holding(self, what: str, records: Callable[[Scope], Iterable[ChatRecord]]) -> Scope:
        """A scope with these chats, which are written when they are first asked for: many tests look at them, none writes there."""
        if what not in self.kept:
            scope = self.scope()
            for record in records(scope):
                self.index.write_chat(record)
            self.kept[what] = scope
        return self.kept[what]


@contextmanager
def settings_that_are_not_taken() -> Iterator[None]:
    """What whoever runs the tests may have set for a client and for a service: nothing embedded takes it, and no chats are called
    as an agent.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in NOT_TAKEN.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def memory_place() -> Iterator[Place]:
    """Chats in memory."""
    with settings_that_are_not_taken():
        index = TranscriptIndex.in_memory()
    with index:
        yield Place("memory", index, None)


@pytest.fixture(scope="session")
def folder_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Chats in a folder."""
    with settings_that_are_not_taken():
        index = TranscriptIndex.open(tmp_path_factory.mktemp("folder") / "chats")
    with index:
        yield Place("folder", index, None)


@pytest.fixture(scope="session")
def postgresql_place(tmp_path_factory: pytest.TempPathFactory, new_database: NewDatabase) -> Iterator[Place]:
    """Chats in a database, called by one node of a deployment."""
    url, folder = new_database(), tmp_path_factory.mktemp("nodes")
    with settings_that_are_not_taken():
        index = TranscriptIndex.open(url, data=folder / "data")
    with index:
        yield Place("postgresql", index, lambda: TranscriptIndex.open(url, data=another_node(folder)))


@pytest.fixture(scope="session")
def local_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Chats of a service that demands no tokens."""
    yield from _served("local", tmp_path_factory.mktemp("local"))


@pytest.fixture(scope="session")
def token_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Chats of a service that demands tokens."""
    yield from _served("token", tmp_path_factory.mktemp("token"))


def _served(kind: str, folder: Path) -> Iterator[Place]:
    running = start(folder / "data", settings={"AFORESAID_AUTH": "token"} if kind == "token" else {}, log=folder / "server.log")
    try:
        token = Owner(running.data).token("--service", "chats", scope=TENANT) if kind == "token" else None
        with settings_that_are_not_taken():
            index = TranscriptIndex.connect(running.url, token)
        with index:
            yield Place(kind, index, lambda: TranscriptIndex.connect(running.url, token))
    finally:
        end(running)


@pytest.fixture(scope="session")
def places(request: pytest.FixtureRequest) -> Callable[[str], Place]:
    """Opens the store of a kind when it is first asked for; it is closed at the end of the run."""

    def place(kind: str) -> Place:
        found: Place = request.getfixturevalue(f"{kind}_place")
        return found

    return place


def another_node(folder: Path) -> Path:
    """A data folder of the same deployment: with its secret."""
    node = folder / uuid4().hex
    node.mkdir(mode=0o700)
    shutil.copy(folder / "data" / "secret", node / "secret")
    return node


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, places: Callable[[str], Place]) -> Place:
    """Each store in turn."""
    return places(str(request.param))


@pytest.fixture
def index(place: Place) -> TranscriptIndex:
    """The chats of each store in turn."""
    return place.index


@pytest.fixture
def scope(place: Place) -> Scope:
    """A scope of the test's own."""
    return place.scope()
