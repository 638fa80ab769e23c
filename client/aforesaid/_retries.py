"""When a call that failed is tried again, and after which pause. Decides only: waiting and sending are the wire's.

Only reads, the methods that the proto calls idempotent, and only where the error is retryable: the service could not answer, or no
answer came. The pauses double, with jitter, so that callers who failed together do not come back together. The call's time limit is
for all of it: a pause that would not leave time to ask is not begun.
"""

from __future__ import annotations

import random as randomness
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from connectrpc.method import MethodInfo

from aforesaid._errors import AforesaidError
from aforesaid._methods import may_repeat

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a read is tried again. `clock` counts seconds, `random` is from 0 up to 1."""

    count: int
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = randomness.random

    def begin(self, method: MethodInfo[Any, Any], seconds: float) -> Attempts:
        """Begins a call that may take `seconds`."""
        return Attempts(self, self.count if may_repeat(method) else 0, seconds)


class Attempts:
    """The attempts of one call that may take `seconds` in all; the first and `left` more."""

    def __init__(self, retries: Retries, left: int, seconds: float) -> None:
        self.seconds = seconds
        self._retries = retries
        self._left = left
        self._deadline = retries.clock() + seconds
        self._pause = FIRST_SECONDS

    def milliseconds_left(self) -> int:
        """Returns how long the call may still take, at least 1."""
        return max(1, int((self._deadline - self._retries.clock()) * 1000))

    def pause_after(self, failure: AforesaidError, retry_after: str = "") -> float | None:
        """Returns the seconds to wait before the call is tried again, None where `failure` is final.

        `retry_after` is the header of the answer, if there was one; only its form in seconds counts.
        """
        if not failure.retryable or not self._left:
            return None
        self._left -= 1
        pause = self._pause * (0.5 + self._retries.random() / 2)
        self._pause = min(2 * self._pause, LONGEST_SECONDS)
        if retry_after.isascii() and retry_after.isdigit():
            pause = max(pause, float(retry_after))
        return pause if pause * 1000 < self.milliseconds_left() else None
