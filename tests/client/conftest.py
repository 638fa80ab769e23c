"""The fixtures of the client's tests: a client of each kind, and nothing of the developer's own settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from aforesaid import AsyncClient, Client
from tests.client.both import LOCAL, Calling, Connect, Script, Time, Waited, awaited_calling, blocking, blocking_calling


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither variables nor the file of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("AFORESAID_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as running:
        yield running


@pytest.fixture(params=["blocking", "awaited"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which of the two clients a test is about: every test that takes this, or a fixture that does, is run with both."""
    return str(request.param)


@pytest.fixture
def connect(kind: str, runner: asyncio.Runner) -> Iterator[Connect]:
    """Makes clients of the network; they are closed at the end."""
    with ExitStack() as stack:

        def make(url: str | None = None, agent_id: str | None = None, **settings: Any) -> Client:
            if kind == "blocking":
                client = blocking(url, agent_id, **settings)
            else:
                client = cast("Client", Waited(AsyncClient(url, agent_id, **settings), runner))
            stack.callback(client.close)
            return client

        yield make


@pytest.fixture
def calling(kind: str, runner: asyncio.Runner) -> Calling:
    """Makes clients of a script."""
    made = blocking_calling if kind == "blocking" else partial(awaited_calling, runner)

    def make(script: Script, time: Time | None = None, **settings: Any) -> Client:
        return made(script, time, settings.pop("url", LOCAL), settings.pop("agent_id", ""), **settings)

    return make
