"""The core of the service in this process, without the wire: what a search costs before HTTP, validation and JSON."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from aforesaid_server.access import Call
from aforesaid_server.house import build_core
from aforesaid_server.search import Page, SearchRequest
from aforesaid_server.settings import Settings


class InProcess:
    """The core over a data folder that no service has open; a context manager that closes it."""

    def __init__(self, data: Path) -> None:
        self._house = build_core(Settings(data=data))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._house.close()

    def search(self, query: str, agent_id: str = "", *, limit: int = 20, newest: bool = False, substring: bool = False) -> int:
        """Searches as a door does and says how many hits the page has: as the user, or as the agent named."""
        call = Call("SearchTranscripts", "bench", "bench", agent_id)
        reply = self._house.core.searcher.search(
            call, SearchRequest(query=query, page=Page(limit), newest=newest, substring=substring)
        )
        return len(reply.matches) + len(reply.near) + len(reply.partial)
