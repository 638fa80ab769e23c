"""The engines that the tests of the store run on. PostgreSQL joins here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aforesaid_server.store.sql import SqlStore, open_sqlite


def _open(engine: str, folder: Path) -> SqlStore:
    assert engine == "sqlite"
    return open_sqlite(folder / "store.db")


@pytest.fixture(params=["sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    """An empty store."""
    opened = _open(request.param, tmp_path)
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite"], scope="module")
def kept_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    """One store for all examples of a property, each of which makes an agent of its own."""
    opened = _open(request.param, tmp_path_factory.mktemp("store"))
    yield opened
    opened.close()
