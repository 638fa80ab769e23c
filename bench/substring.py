"""Asks aforesaid, FTS5's trigrams and ripgrep for the same letters in the same turns, and reports what they cost as ratios.

    python -m bench.substring --turns 100000 --seed 1

CPU time is that of what serves: of aforesaid a whole request, and beside it the core alone, called in this process; of FTS5 the
statement with the texts of its page; of ripgrep (grep where it is not) the whole program, which reads everything and counts. Before
anything is timed, all must find the planted letters in exactly the turns that hold them.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random

from bench import grep, measuring, report
from bench.comparing import Side, WrongCountError, measure, section
from bench.corpus import Corpus
from bench.grep import Grep
from bench.in_process import InProcess
from bench.indexing import BATCH_TURNS, batches, described, temporary_folder
from bench.letters import LettersQuery, known, queries
from bench.measuring import Cost
from bench.ours import Service
from bench.trigrams import Trigrams

LIMIT = 20
# The pages of a search that finds more than this take longer to walk than they are worth as a check.
COUNTED_TURNS = 2_000


@dataclass(frozen=True, slots=True)
class Loaded:
    """What it took to load a corpus into the two that have an index. Sizes in bytes."""

    text_bytes: int
    ours: Cost
    ours_size: int
    trigrams: Cost
    trigrams_size: int

    def facts(self) -> dict[str, str]:
        """Writes it for the head of a section."""
        return {
            "taken in": f"CPU {self.ours.cpu / 1e9:.1f} s (all of aforesaid) and {self.trigrams.cpu / 1e9:.1f} s (FTS5's trigrams)",
            "size on disk": f"{self.ours_size / 1e6:,.0f} MB (all of aforesaid) and {self.trigrams_size / 1e6:,.0f} MB",
        }


def load(corpus: Corpus, service: Service, trigrams: Trigrams, files: Grep) -> Loaded:
    """Loads every turn into all sides, a batch here and a batch there."""
    served, here = service.clock(), time.process_time_ns
    text_bytes, ours, theirs, before = 0, Cost(0, 0), Cost(0, 0), served()
    for batch in batches(corpus, BATCH_TURNS):
        text_bytes += sum(len(turn.text.encode()) for turn in batch)
        files.add(batch)
        theirs += measuring.timed(partial(trigrams.add, batch), here)
        ours += measuring.timed(partial(service.import_turns, batch), served)
    theirs += measuring.timed(trigrams.optimize, here)
    ours += measuring.timed(service.settle, served)
    # The index follows while the others are loaded, too.
    ours = Cost(served() - before, ours.wall)
    return Loaded(text_bytes, ours, measuring.folder_size(service.data), theirs, trigrams.size())


def check(counters: dict[str, Callable[[str], int]], turns: int) -> None:
    """Raises WrongCountError unless every side finds the planted letters in exactly the turns that hold them."""
    for letters, there in known(turns):
        for name, count in counters.items():
            if there <= COUNTED_TURNS and (found := count(letters)) != there:
                raise WrongCountError(f"{name} finds {letters} in {found} turns, but it stands in {there}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the measurement and appends it to bench/results/substring.md."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.substring", description="The same letters in aforesaid, FTS5's trigrams and ripgrep."
    )
    parser.add_argument("--turns", type=int, default=100_000, help="how many turns (100000)")
    parser.add_argument("--seed", type=int, default=1, help="which corpus and which searches (1)")
    parser.add_argument("--queries", type=int, default=10, help="how many searches of each kind (10)")
    parser.add_argument("--rounds", type=int, default=3, help="how many times each is asked (3)")
    parser.add_argument("--results", type=Path, default=report.RESULTS / "substring.md", help="the file to append to")
    asked = parser.parse_args(arguments)
    corpus = Corpus(asked.seed, asked.turns)
    with temporary_folder() as folder, Trigrams(folder / "trigrams.db") as trigrams:
        files = Grep(folder / "texts", grep.installed())
        with Service(folder / "ours") as service:
            loaded = load(corpus, service, trigrams, files)
        # Two processes cannot have one folder open: the core in this one works on a copy.
        shutil.copytree(service.data, folder / "copy")
        with Service(folder / "ours") as service, InProcess(folder / "copy") as core:
            counters: dict[str, Callable[[str], int]] = {
                "aforesaid": partial(service.count, substring=True),
                "FTS5's trigrams": trigrams.count,
                files.name: files.count,
            }
            check(counters, asked.turns)
            sides = [over_http(service), in_process(core), in_trigrams(trigrams), in_files(files)]
            costs = measure(
                sides, queries(corpus, asked.queries), asked.rounds, Random(asked.seed), finds=lambda query: query.finds
            )
            facts = {
                "corpus": described(corpus, loaded.text_bytes),
                "searches": f"{asked.queries} of each kind, {asked.rounds} rounds after one to warm up, page of {LIMIT}",
                **loaded.facts(),
                "memory of the service": f"{service.peak_memory() / 1e6:,.0f} MB while searching",
                "machine": measuring.machine(),
                "commit": measuring.commit(),
                "versions": f"{measuring.versions()}, {files.version()}",
            }
    ours, others = [side.name for side in sides[:2]], [side.name for side in sides[2:]]
    told = section(f"letters in {asked.turns:,} turns", costs, ours, others, facts, datetime.now(UTC))
    report.append(asked.results, "Letters: aforesaid, FTS5's trigrams and ripgrep", told)
    print(told)


def over_http(service: Service) -> Side[LettersQuery]:
    """Makes the service a side."""
    return Side("aforesaid", lambda query: service.search(query.text, limit=LIMIT, substring=True).matches, service.clock())


def in_process(core: InProcess) -> Side[LettersQuery]:
    """Makes the core a side; whatever threads it uses count."""
    return Side("its core", lambda query: core.search(query.text, limit=LIMIT, substring=True), time.process_time_ns)


def in_trigrams(trigrams: Trigrams) -> Side[LettersQuery]:
    """Makes FTS5 a side; it works in the thread that asks, and those of the core beside it do not count."""
    return Side("FTS5 trigrams", lambda query: len(trigrams.search(query.text, LIMIT)), time.thread_time_ns)


def in_files(files: Grep) -> Side[LettersQuery]:
    """Makes the program over files a side."""
    return Side(files.name, lambda query: files.count(query.text), grep.children_clock)


if __name__ == "__main__":
    main()
