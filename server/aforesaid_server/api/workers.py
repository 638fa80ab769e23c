"""The threads that the core runs in: the core waits for disks and locks, the doors wait for nobody.

Writing has threads of its own, because the store takes one writer at a time and those that wait for it would fill every thread
and hold up the searches. What waits for a thread is dropped when its caller hangs up; what runs is told through its Patience.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from aforesaid_server.access import Call

P = ParamSpec("P")
T = TypeVar("T")

# Searching is Python for the most part and one thread of that runs at a time; a few more go on while others wait for the disk.
READING = max(4, min(16, 2 * (os.cpu_count() or 1)))
WRITING = 2


class Workers:
    """A bounded number of threads for reading and for writing."""

    def __init__(self, reading: int = READING, writing: int = WRITING) -> None:
        self._reading = ThreadPoolExecutor(reading, thread_name_prefix="read")
        self._writing = ThreadPoolExecutor(writing, thread_name_prefix="write")

    async def read(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Runs a function of the core whose first argument is its Call."""
        return await _run(self._reading, function, *arguments, **named)

    async def write(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Runs a function of the core that writes and whose first argument is its Call."""
        return await _run(self._writing, function, *arguments, **named)

    def close(self) -> None:
        """Waits for what runs; nothing more is taken."""
        self._reading.shutdown(wait=True, cancel_futures=True)
        self._writing.shutdown(wait=True, cancel_futures=True)


async def _run(pool: ThreadPoolExecutor, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    def run() -> T:
        try:
            return function(*arguments, **named)
        except (StopIteration, TimeoutError) as error:
            # A future cannot hold the first: whoever waits would wait for ever. The second it makes anew, without its place.
            raise RuntimeError("from the core") from error

    # With the context of the call, so that spans of the core know theirs.
    future = pool.submit(copy_context().run, run)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        call = arguments[0]
        assert isinstance(call, Call)
        call.patience.hang_up()
        raise
