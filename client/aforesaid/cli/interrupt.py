"""Lets Ctrl-C be heard while a call waits for its answer."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")

HEARD_WITHIN_SECONDS = 0.2


def interruptible(work: Callable[[], Result]) -> Result:
    """Runs `work` in a thread of its own and returns or raises what it does; KeyboardInterrupt is raised in a moment.

    The transport waits outside of Python, where no signal is looked at: measured, Ctrl-C on a service that hangs was heard when the
    call's time was up. The thread is left behind: whoever catches the interrupt ends the process.
    """
    from concurrent.futures import Future, wait  # six milliseconds: not for --help

    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again by result()
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    # A signal that came just before the wait began is looked at only after it: on two busy cores 2 of 14 imports missed Ctrl-C.
    while not future.done():
        wait((future,), HEARD_WITHIN_SECONDS)
    return future.result()
