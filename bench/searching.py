"""Asks aforesaid and FTS5 the same searches over the same turns, in turns, and reports what they cost as ratios.

    python -m bench.searching --turns 100000 --seed 1

CPU time is that of the process that serves: for aforesaid a whole request (HTTP, validation, the search and all that it looks
at, texts from the store, snippets, the reply in JSON), and beside it the core alone, called in this process; for FTS5 the statement
with the texts of its page. Before anything is timed, both must find the planted words in exactly the turns that hold them.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from bench import measuring, report
from bench.comparing import Side, WrongCountError, measure, section
from bench.corpus import Corpus
from bench.fts5 import Fts5
from bench.in_process import InProcess
from bench.indexing import described, load, temporary_folder
from bench.ours import Service
from bench.queries import BenchQuery, Known, known, queries

LIMIT = 20
# The pages of a search that finds more than this take longer to walk than they are worth as a check.
COUNTED_TURNS = 2_000


@dataclass(frozen=True, slots=True)
class Counter:
    """One that is checked: its name, and how it counts all turns that a search finds."""

    name: str
    count: Callable[[Known], int]


def check(counters: Sequence[Counter], searches: Sequence[Known]) -> None:
    """Raises WrongCountError unless every side finds each planted text in exactly the turns that hold it."""
    for search in searches:
        for counter in counters:
            if search.turns <= COUNTED_TURNS and (found := counter.count(search)) != search.turns:
                raise WrongCountError(f"{counter.name} finds {search.text} in {found} turns, but it stands in {search.turns}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the measurement and appends it to bench/results/searching.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.searching", description="The same searches in aforesaid and FTS5.")
    parser.add_argument("--turns", type=int, default=100_000, help="how many turns (100000)")
    parser.add_argument("--seed", type=int, default=1, help="which corpus and which searches (1)")
    parser.add_argument("--queries", type=int, default=20, help="how many searches of each kind (20)")
    parser.add_argument("--rounds", type=int, default=5, help="how many times each is asked (5)")
    parser.add_argument("--results", type=Path, default=report.RESULTS / "searching.md", help="the file to append to")
    asked = parser.parse_args(arguments)
    corpus = Corpus(asked.seed, asked.turns)
    with temporary_folder() as folder, Fts5(folder / "fts5.db") as fts5:
        with Service(folder / "ours") as service:
            loaded = load(corpus, service, fts5)
        # Two processes cannot have one folder open: the core in this one works on a copy.
        shutil.copytree(service.data, folder / "copy")
        with Service(folder / "ours") as service, InProcess(folder / "copy") as core:
            check([found_by(service), found_by_fts5(fts5)], known(asked.turns))
            sides = [over_http(service), in_process(core), in_fts5(fts5)]
            costs = measure(sides, queries(corpus, asked.queries), asked.rounds, Random(asked.seed))
            facts = {
                "corpus": described(corpus, loaded.text_bytes),
                "searches": f"{asked.queries} of each kind, {asked.rounds} rounds after one to warm up, page of {LIMIT}",
                "memory of the service": f"{loaded.ours_peak / 1e6:,.0f} MB at most while importing, "
                f"{service.peak_memory() / 1e6:,.0f} MB while searching",
                "machine": measuring.machine(),
                "commit": measuring.commit(),
                "versions": measuring.versions(),
            }
    *ours, theirs = (side.name for side in sides)
    told = section(f"searches of {loaded.turns:,} turns", costs, ours, [theirs], facts, datetime.now(UTC))
    report.append(asked.results, "Searches: aforesaid and SQLite FTS5", told)
    print(told)


def over_http(service: Service) -> Side[BenchQuery]:
    """Makes the service a side."""
    return Side(
        "aforesaid",
        lambda query: service.search(query.text, query.agent_id, limit=LIMIT, newest=query.newest).hits,
        service.clock(),
    )


def in_process(core: InProcess) -> Side[BenchQuery]:
    """Makes the core a side; whatever threads it uses count."""
    return Side(
        "its core", lambda query: core.search(query.text, query.agent_id, limit=LIMIT, newest=query.newest), time.process_time_ns
    )


def in_fts5(fts5: Fts5) -> Side[BenchQuery]:
    """Makes FTS5 a side; it works in the thread that asks, and those of the core beside it do not count."""
    return Side("FTS5", lambda query: len(fts5.search(query.expression, LIMIT, newest=query.newest)), time.thread_time_ns)


def found_by(service: Service) -> Counter:
    """Makes the service a side to check."""
    return Counter("aforesaid", lambda search: service.count(search.text))


def found_by_fts5(fts5: Fts5) -> Counter:
    """Makes FTS5 a side to check."""
    return Counter("FTS5", lambda search: fts5.count(search.expression))


if __name__ == "__main__":
    main()
