"""Results as Markdown, appended to a file that is kept, so that what was slower last year can be looked up. Measures nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from bench.measuring import ROOT, Cost, percentile

RESULTS = ROOT / "bench" / "results"
NANOSECONDS_PER_MS = 1_000_000


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Writes a table; every column but the first is set to the right."""
    lines = [head, ["---", *(["---:"] * (len(head) - 1))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def milliseconds(nanoseconds: Sequence[int]) -> str:
    """Writes the median and the 99th percentile in milliseconds."""
    return " / ".join(f"{percentile(nanoseconds, share) / NANOSECONDS_PER_MS:.3g}" for share in (0.5, 0.99))


def ratio(of: Sequence[int], over: Sequence[int]) -> str:
    """Writes how many times the second one the first is, at the median and at the 99th percentile."""
    return " / ".join(f"{percentile(of, share) / max(1.0, percentile(over, share)):.3g}" for share in (0.5, 0.99))


def cpu(costs: Iterable[Cost]) -> list[int]:
    """Takes the CPU times out of costs."""
    return [cost.cpu for cost in costs]


def wall(costs: Iterable[Cost]) -> list[int]:
    """Takes the wall times out of costs."""
    return [cost.wall for cost in costs]


def heading(title: str, now: datetime, facts: Mapping[str, str]) -> str:
    """Writes the head of a section: the day, and under which circumstances it was measured."""
    return "\n".join([f"## {now:%Y-%m-%d}: {title}", "", *(f"- {name}: {value}" for name, value in facts.items())])


def append(file: Path, title: str, section: str) -> None:
    """Adds a section at the end of a file, making the file under its title if it is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    before = file.read_text(encoding="utf-8") if file.exists() else f"# {title}\n"
    file.write_text(f"{before.rstrip()}\n\n{section.strip()}\n", encoding="utf-8")
