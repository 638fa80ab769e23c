"""What the service in this process logs while a test looks."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aforesaid_server.api import log


@contextmanager
def logged(log_format: str = "json") -> Iterator[io.StringIO]:
    """What is logged meanwhile."""
    root, written = logging.getLogger(), io.StringIO()
    before, level = root.handlers[:], root.level
    log.configure("debug", log_format)
    root.handlers[0].setStream(written)  # type: ignore[attr-defined]
    try:
        yield written
    finally:
        root.handlers[:], root.level = before, level


def calls_of(written: io.StringIO) -> list[dict[str, Any]]:
    """The lines of calls."""
    return [line for line in map(json.loads, written.getvalue().splitlines()) if line["event"] == "call"]
