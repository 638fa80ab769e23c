"""One connection of the HTTP port: uvicorn's, with an end to every wait for its caller.

uvicorn waits for ever for the head of a request, for the rest of a body that nobody reads any more, and for a caller that does not
read its reply; and it takes a head of any size. What it waits for of a body that is read, intake.py bounds.
"""

from __future__ import annotations

import asyncio
import json
from asyncio import TimerHandle
from enum import Enum
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from aforesaid_server.api.intake import STILL_SECONDS

MAX_HEAD_BYTES = 64 * 1024


class _Part(Enum):
    """What of a request comes next."""

    NOTHING = "nothing"
    HEAD = "head"
    BODY = "body"


class Connection(HttpToolsProtocol):
    """Waits `seconds` for a head, as long for what is left of a refused body, and as long until a reply has been read."""

    seconds: ClassVar[float]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn does
        """Begins to wait for the first request."""
        self._part = _Part.NOTHING
        self._head_bytes = 0
        self._coming: TimerHandle | None = None
        self._leaving: TimerHandle | None = None
        self._limit = self.seconds
        self._answering: RequestResponseCycle | None = None
        super().connection_made(transport)
        # Told of every byte that is kept for the caller, not only of the 64 KiB and more that uvicorn would wait for.
        # 1, not 0: over TLS the event loop pauses at the limit and not above it, and would pause with nothing left to write.
        transport.set_write_buffer_limits(high=1)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits for nothing more."""
        self._stop_coming()
        self._stop_leaving()
        super().connection_lost(exc)
        if self._answering is not None and not self._answering.response_complete:
            # uvicorn tells only the last of several requests that came together.
            self._answering.disconnected = True
            self._answering.message_event.set()

    def data_received(self, data: bytes) -> None:
        """Takes what came, and waits for what is still to come."""
        begun = self._part is _Part.HEAD
        super().data_received(data)
        self._head_bytes = self._head_bytes + len(data) if begun and self._part is _Part.HEAD else 0
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(431, "resource_exhausted", f"headers: more than {MAX_HEAD_BYTES} bytes")
        self._watch()

    def on_message_begin(self) -> None:
        """Begins a request."""
        self._part = _Part.HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Knows the request, all but its body."""
        self._part = _Part.BODY
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Has the whole request."""
        self._part = _Part.NOTHING
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Waits for the next request, or for the rest of one that was answered before all of it came."""
        super().on_response_complete()
        self._watch()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP, in the words of every other refusal."""
        del msg
        self._refuse(400, "invalid_argument", "request: is not HTTP")

    def shutdown(self) -> None:
        """Ends with the reply that is on its way."""
        self._limit = min(self._limit, STILL_SECONDS)
        super().shutdown()
        if self._leaving is not None:
            self._stop_leaving()
            self.pause_writing()

    # -- what the caller has to send

    def _watch(self) -> None:
        """Begins or ends the wait for what the caller has to send. Trickles do not begin it anew."""
        unanswered = self._unanswered()
        idle = self._part is _Part.NOTHING and self.timeout_keep_alive_task is not None
        if unanswered or idle or self.transport.is_closing():
            self._stop_coming()
        elif self._coming is None:
            self._coming = self.loop.call_later(self._limit, self._nothing_came)

    def _unanswered(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # which uvicorn types as always there
        return cycle is not None and not cycle.response_complete

    def _nothing_came(self) -> None:
        self._coming = None
        if self._part is _Part.HEAD:
            self._refuse(408, "deadline_exceeded", f"headers: did not come within {self._limit:g} seconds")
        else:
            self.transport.close()

    def _stop_coming(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
            self._coming = None

    # -- what the caller has to read

    def pause_writing(self) -> None:
        """Waits for the caller to read."""
        super().pause_writing()
        if self._leaving is None:
            self._leaving = self.loop.call_later(self._limit, self._nobody_reads)

    def resume_writing(self) -> None:
        """Has the caller taken all there was."""
        self._stop_leaving()
        super().resume_writing()

    def _nobody_reads(self) -> None:
        self._leaving = None
        self.transport.abort()

    def _stop_leaving(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    # -- what never becomes a call

    def _refuse(self, status: int, code: str, message: str) -> None:
        if self.transport.is_closing():
            return
        if self._unanswered():
            # A refusal would stand in the middle of the reply to the request before.
            self.transport.close()
            return
        content = json.dumps({"code": code, "message": message}).encode() + b"\n"
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + content)
        self.transport.close()


def connection(seconds: float) -> type[Connection]:
    """Returns the kind of connection that waits so long."""
    return type("Connection", (Connection,), {"seconds": seconds})
