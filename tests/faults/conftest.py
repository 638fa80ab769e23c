"""Fixtures of the fault tests."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.api.doors import Contract


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An empty data folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def contract(proto_roots: tuple[Path, ...]) -> Contract:
    """The contract as Google's protobuf reads it."""
    return Contract(proto_roots)


@pytest.fixture
def chance() -> random.Random:
    """What decides by chance in a test; its seed is told where the test fails, and AFORESAID_SEED gives it again."""
    seed = int(os.environ.get("AFORESAID_SEED") or random.SystemRandom().randrange(10**6))
    print(f"AFORESAID_SEED={seed}")
    return random.Random(seed)
