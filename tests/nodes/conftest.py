"""Several services over one PostgreSQL: real processes, and the same in this process where a test stops and starts them often."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from scripts.running_server import RunningServer, start
from tests.api.callers import Caller
from tests.api.doors import ConnectDoor
from tests.conftest import NewDatabase, end
from tests.faults.serving import readyz, wait_until


@dataclass(frozen=True, slots=True)
class Node:
    """A service that runs: the process, and the user who asks it."""

    server: RunningServer
    user: Caller


class StartNode(Protocol):
    """Starts a node over a database, in a folder of that name, which is made with the secret of all; returns once it is ready."""

    def __call__(self, store: str, name: str, settings: Mapping[str, str] | None = None) -> Node: ...


def folder_with(secret: bytes, folder: Path) -> Path:
    """Makes the data folder of a node: all that has to be in it is the secret."""
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "secret").write_bytes(secret)
    (folder / "secret").chmod(0o600)
    return folder


def _starter(folder: Path, stack: ExitStack) -> StartNode:
    secret = secrets.token_bytes(32)
    count = itertools.count()

    def begin(store: str, name: str, settings: Mapping[str, str] | None = None) -> Node:
        log = folder / f"server-{next(count)}.log"
        given = {"AFORESAID_STORE": store, **(settings or {})}
        server = start(folder_with(secret, folder / name), settings=given, log=log)
        stack.callback(end, server)
        door = stack.enter_context(closing(ConnectDoor(server.url)))
        wait_until(lambda: readyz(door.http)[0] == 200, server.told)
        return Node(server, Caller(door))

    return begin


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[StartNode]:
    """Starts nodes of a test's own; at its end each must drain and end with 0, but for one that the test has killed."""
    with ExitStack() as stack:
        yield _starter(tmp_path, stack)


@pytest.fixture(scope="package")
def add_node(tmp_path_factory: pytest.TempPathFactory, new_database: NewDatabase) -> Iterator[Callable[[str], Node]]:
    """Starts nodes over one database, for all tests that neither stop nor harm them; tests keep apart by agents of their own."""
    store = new_database()
    with ExitStack() as stack:
        begin = _starter(tmp_path_factory.mktemp("nodes"), stack)
        yield lambda name: begin(store, name)


@pytest.fixture(scope="package")
def pair(add_node: Callable[[str], Node]) -> tuple[Node, Node]:
    """Two of them."""
    return add_node("one"), add_node("two")


@pytest.fixture
def both(pair: tuple[Node, Node]) -> tuple[Caller, Caller]:
    """The user, who asks the one node and the other."""
    return pair[0].user, pair[1].user
