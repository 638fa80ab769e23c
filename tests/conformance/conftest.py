"""The engines that are held against the judge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aforesaid_server.index.tantivy import TantivyIndex


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TantivyIndex]:
    """One engine for all worlds, kept apart by a pair of their scope: it has grown, merged and forgotten like one in use."""
    opened = TantivyIndex(tmp_path_factory.mktemp("engine"))
    yield opened
    opened.close()
