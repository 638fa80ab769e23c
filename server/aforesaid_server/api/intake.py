"""What the doors take in at once, and how long they wait for a caller that has begun to send.

A caller may stop in the middle of a request, or never begin the next message of a stream, and stay connected. Each wait for one has
an end here, for both doors; what one connection of the HTTP port is waited for besides, connection.py says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from starlette.types import Message, Receive

from aforesaid_server.errors import TooSlow, Unavailable

T = TypeVar("T")

STILL_SECONDS = 2.0
"""How long a caller that sends nothing is waited for once the service has been told to stop."""
_MESSAGES_AT_ONCE = 8
"""Messages of the largest size that may be on their way in together: 256 MiB by default."""

# Bytes that the call of this task has sent: a list of one, since tasks that read for it share it.
_received: ContextVar[list[int]] = ContextVar("received")


def begin_to_count() -> None:
    """Counts what comes from here on as sent by the call that runs in this task."""
    _received.set([0])


def count(size: int) -> None:
    """Counts bytes that have come."""
    if (counted := _received.get(None)) is not None:  # health and reflection are nobody's calls
        counted[0] += size


def received() -> int:
    """Returns how many bytes of the call that runs in this task have come."""
    return _received.get()[0]


class Intake:
    """Waits for what callers send, `seconds` at most for each message, and knows how many calls there are and what they hold."""

    def __init__(self, seconds: float, max_calls: int, max_request_bytes: int) -> None:
        self.seconds = seconds
        self._calls, self._most_calls = 0, max_calls
        self._largest = max_request_bytes
        self._most = _MESSAGES_AT_ONCE * max_request_bytes
        self._held = 0
        self._waits: set[asyncio.Timeout] = set()
        self._stopping = False

    def stop(self) -> None:
        """Waits for nobody longer than STILL_SECONDS from here on."""
        self._stopping = True
        soon = asyncio.get_running_loop().time() + STILL_SECONDS
        for wait in self._waits:
            when = wait.when()
            if not wait.expired() and (when is None or when > soon):
                wait.reschedule(soon)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Counts a call. Raises Unavailable for one too many."""
        if self._calls >= self._most_calls:
            raise Unavailable(f"{self._calls} calls are in flight: ask again")
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    async def wait(self, coming: Awaitable[T], until: float) -> T:
        """Waits for what a caller is to send, until a second of the loop's clock. Raises TooSlow, or Unavailable at the end."""
        if self._stopping:
            until = min(until, asyncio.get_running_loop().time() + STILL_SECONDS)
        limit = asyncio.timeout_at(until)
        try:
            async with limit:
                self._waits.add(limit)
                try:
                    return await coming
                finally:
                    self._waits.discard(limit)
        except TimeoutError:
            if not limit.expired():
                raise
            if self._stopping:
                raise Unavailable("the service stops: ask again") from None
            raise TooSlow(f"request: did not come within {self.seconds:g} seconds") from None

    def until(self) -> float:
        """The second of the loop's clock at which a message that begins now must be there."""
        return asyncio.get_running_loop().time() + self.seconds

    def take(self, size: int, held: int) -> int:
        """Counts bytes of a call that holds so many already; returns how many it holds then. Raises Unavailable for too many.

        A stream is worked on while it comes: no more of it than the largest message is ever held.
        """
        more = min(size, self._largest - held)
        if self._held + more > self._most:
            raise Unavailable(f"more than {self._most} bytes are being sent at once: ask again")
        self._held += more
        return held + more

    def give_back(self, held: int) -> None:
        """Counts what a call held as gone."""
        self._held -= held

    async def in_time(self, messages: AsyncIterator[T]) -> AsyncIterator[T]:
        """Yields the messages of a stream, each of which must come in time."""
        while True:
            try:
                message = await self.wait(anext(messages), self.until())
            except StopAsyncIteration:
                return
            yield message


class Body:
    """The body of one request of the HTTP port, as ASGI's `receive`. A single message must be there in time as a whole."""

    def __init__(self, intake: Intake, receive: Receive, *, single: bool) -> None:
        self._intake, self._receive = intake, receive
        self._until = intake.until()
        self._single = single
        self._over = False
        self._held = 0

    async def __call__(self) -> Message:
        """Returns the next piece; once all is there, waits without limit for the caller to hang up."""
        if self._over:
            return await self._receive()
        until = self._until if self._single else self._intake.until()
        message = await self._intake.wait(self._receive(), until)
        self._over = not message.get("more_body", False)
        size = len(message.get("body", b""))
        count(size)
        self._held = self._intake.take(size, self._held)
        return message

    def close(self) -> None:
        """Lets go of what it held."""
        self._intake.give_back(self._held)
        self._held = 0
