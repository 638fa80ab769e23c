"""Asks several sides the same questions in turns, and writes what each cost and how many times another's that is.

A side is anything that answers a question with a number of hits. Knows nothing of what is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import partial
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from bench import measuring, report
from bench.measuring import Clock, Cost


class Question(Protocol):
    """What is asked: its text, and its kind, which is a line of the report."""

    @property
    def kind(self) -> Enum:
        """The kind."""
        ...

    @property
    def text(self) -> str:
        """The text."""
        ...


Asked = TypeVar("Asked", bound=Question)

Costs = Mapping[tuple[str, Any], Sequence[Cost]]


@dataclass(frozen=True, slots=True)
class Side(Generic[Asked]):
    """One that is asked: its name in the report, how it is asked (the number of hits comes back) and whose CPU time counts."""

    name: str
    search: Callable[[Asked], int]
    clock: Clock


class WrongCountError(Exception):
    """A side does not find what is known to be there, so that timing it would say nothing."""


def measure(
    sides: Sequence[Side[Asked]],
    asked: Sequence[Asked],
    rounds: int,
    random: Random,
    finds: Callable[[Asked], bool] = lambda _: True,
) -> Costs:
    """Asks every side every question, once to warm up and then `rounds` times, changing who comes first.

    Raises WrongCountError when a question comes back empty that `finds` says has an answer, or with hits when it has none.
    """
    costs: dict[tuple[str, Enum], list[Cost]] = defaultdict(list)
    for side in sides:
        for question in asked:
            hits = side.search(question)
            if bool(hits) != finds(question):
                raise WrongCountError(f"{side.name} finds {hits or 'nothing'} for {question.text}")
    for round_number in range(rounds):
        for place, question in enumerate(random.sample(asked, len(asked))):
            first = (place + round_number) % len(sides)
            for side in (*sides[first:], *sides[:first]):
                costs[side.name, question.kind].append(measuring.timed(partial(side.search, question), side.clock))
    return costs


def section(
    title: str,
    costs: Costs,
    names: Sequence[str],
    bases: Sequence[str],
    facts: Mapping[str, str],
    now: datetime,
    asked: str = "search",
) -> str:
    """Writes the costs of the sides named and how many times theirs each base's are, as a section of the results."""
    pairs = [(base, name) for base in bases for name in names]
    head = [asked, *names, *bases, *(f"{base} ÷ {name}" for base, name in pairs)]
    kinds = sorted({kind for _, kind in costs}, key=_place)
    parts = [report.heading(title, now, facts)]
    for what, taken in (("CPU", report.cpu), ("Wall", report.wall)):
        rows = []
        for kind in kinds:
            its = {name: taken(costs[name, kind]) for name in (*names, *bases)}
            times = [report.milliseconds(side) for side in its.values()]
            rows.append([str(kind.value), *times, *(report.ratio(its[base], its[name]) for base, name in pairs)])
        parts.append(f"{what} time, milliseconds, median / 99th percentile:\n\n{report.table(head, rows)}")
    return "\n\n".join(parts)


def _place(kind: Enum) -> int:
    return list(type(kind)).index(kind)
