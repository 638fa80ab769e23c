"""Checks of a deployment, step by step: of a service that runs (service.py), and of a data folder that none serves (data.py).

A step says what it found, or raises Wrong. The steps of a check are run in order and end with the first that is wrong: those after
it would only say so again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aforesaid_server.errors import AforesaidError


class Wrong(Exception):
    """What a step found is not what it expected."""

    def __init__(self, expected: str, came: str) -> None:
        super().__init__(f"expected {expected}, came {came}")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to look at. `look` returns in a few words what it found and raises Wrong, AforesaidError or OSError."""

    name: str
    look: Callable[[], str]


def run(steps: Iterable[Step], tell: Callable[[str], None]) -> bool:
    """Runs steps up to the first that is wrong, and tells of each in a line; returns whether all were right."""
    for step in steps:
        try:
            tell(f"ok      {step.name}: {step.look()}")
        except Wrong as wrong:
            tell(f"FAILED  {step.name}: {wrong}")
            return False
        except AforesaidError as error:
            tell(f"FAILED  {step.name}: {error.message}")
            return False
        except OSError as error:
            tell(f"FAILED  {step.name}: {error.strerror or type(error).__name__}: {error.filename}")
            return False
    return True
