"""A service whose files a test may harm: the real core in this process behind both doors, stopped and started at will.

Where a process has to be killed, `start_server` of tests/conftest.py starts one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from aforesaid_server.house import House, build_core
from aforesaid_server.settings import Settings
from tests.api.callers import Caller
from tests.api.doors import ConnectDoor, Json, running

SECONDS = 60
# Twenty rounds and more of what kills or waits; the short form shows that each works at all.
LONG = bool(os.environ.get("AFORESAID_LONG"))


@dataclass(frozen=True, slots=True)
class Served:
    """A service that runs over a data folder."""

    user: Caller
    house: House
    data: Path
    metrics_url: str = ""

    def readyz(self) -> tuple[int, Json]:
        """What the probe says: status and body."""
        return readyz(self.user.door.http)

    def wait_until_ready(self) -> None:
        """Waits until searches are answered."""
        wait_until(lambda: self.readyz()[0] == 200)


@contextmanager
def served(data: Path, **settings: Any) -> Iterator[Served]:
    """Serves a data folder until the block ends; afterwards nothing holds its files. Does not wait for the index."""
    data.mkdir(exist_ok=True)
    house = build_core(Settings(data=data, port=0, grpc_port=0, **settings))
    try:
        with running(house, **settings) as service:
            door = ConnectDoor(service.url)
            try:
                yield Served(Caller(door), house, data, service.metrics_url)
            finally:
                door.close()
    finally:
        house.close()


def readyz(http: httpx.Client) -> tuple[int, Json]:
    """What /readyz says: status and body."""
    answer = http.get("/readyz")
    body: Json = answer.json()
    return answer.status_code, body


def wait_until(true: Callable[[], bool], seen: Callable[[], str] = str) -> None:
    """Asks again and again; fails after SECONDS, with what is seen then."""
    deadline, nothing = time.monotonic() + SECONDS, threading.Event()
    while not true():
        assert time.monotonic() < deadline, f"not so after {SECONDS} s: {seen()}"
        nothing.wait(0.02)
