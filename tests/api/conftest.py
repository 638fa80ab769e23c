"""Fixtures of the doors: a service in this process over a fake core, and one client for each door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.doors import ConnectDoor, Contract, GrpcDoor, Service, running
from tests.api.fakes import FakeCore


@pytest.fixture(scope="session")
def contract(proto_roots: tuple[Path, ...]) -> Contract:
    """The contract as Google's protobuf reads it."""
    return Contract(proto_roots)


@pytest.fixture(scope="session")
def shared_core() -> FakeCore:
    """The core of `service`."""
    return FakeCore()


@pytest.fixture(autouse=True)
def core(shared_core: FakeCore) -> FakeCore:
    """The core of `service`, as new for each test."""
    shared_core.forget()
    return shared_core


@pytest.fixture(scope="session")
def service(shared_core: FakeCore) -> Iterator[Service]:
    """A service over the fake core, one for all tests: to stop one takes a third of a second."""
    with running(shared_core.house()) as started:
        yield started


@pytest.fixture(scope="session")
def connect(service: Service) -> Iterator[ConnectDoor]:
    """Connect JSON."""
    door = ConnectDoor(service.url)
    yield door
    door.close()


@pytest.fixture(scope="session")
def over_grpc(service: Service, contract: Contract) -> Iterator[GrpcDoor]:
    """gRPC."""
    door = GrpcDoor(service.target, contract)
    yield door
    door.close()


@pytest.fixture(params=["connect", "grpc"])
def door(request: pytest.FixtureRequest) -> ConnectDoor | GrpcDoor:
    """Each door in turn."""
    found: ConnectDoor | GrpcDoor = request.getfixturevalue("connect" if request.param == "connect" else "over_grpc")
    return found
