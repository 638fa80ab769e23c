"""Takes the same turns into aforesaid and into FTS5, batch by batch in turns, and reports time, memory and size.

    python -m bench.indexing --turns 100000 --seed 1

Ours is the whole way of an import: the wire, validation, the store, the index until it has caught up. FTS5's is two INSERTs in this
process, the turns and their words, and the merge at the end that its manual advises.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path

from bench import measuring, report
from bench.corpus import CORPUS_VERSION, Corpus, CorpusTurn
from bench.fts5 import Fts5
from bench.measuring import Cost
from bench.ours import Service

# One ImportTurns call, and one transaction of FTS5.
BATCH_TURNS = 5_000


@dataclass(frozen=True, slots=True)
class Loaded:
    """What it took to load a corpus into both sides. Sizes in bytes.

    `ours_waiting` is the index catching up after the last call; `ours` counts it too.
    """

    turns: int
    text_bytes: int
    ours: Cost
    ours_waiting: Cost
    ours_peak: int
    ours_size: int
    fts5: Cost
    fts5_size: int


def load(corpus: Iterable[CorpusTurn], service: Service, fts5: Fts5) -> Loaded:
    """Loads every turn into both sides, a batch here and a batch there."""
    served, here = service.clock(), time.process_time_ns
    turns = text_bytes = 0
    ours, theirs, before = Cost(0, 0), Cost(0, 0), served()
    for batch in batches(corpus, BATCH_TURNS):
        turns += len(batch)
        text_bytes += sum(len(turn.text.encode()) for turn in batch)
        theirs += measuring.timed(partial(fts5.add, batch), here)
        ours += measuring.timed(partial(service.import_turns, batch), served)
    theirs += measuring.timed(fts5.optimize, here)
    waiting = measuring.timed(service.settle, served)
    return Loaded(
        turns=turns,
        text_bytes=text_bytes,
        # The index follows while the other side is loaded, too.
        ours=Cost(served() - before, (ours + waiting).wall),
        ours_waiting=waiting,
        ours_peak=service.peak_memory(),
        ours_size=measuring.folder_size(service.data),
        fts5=theirs,
        fts5_size=fts5.size(),
    )


def batches(turns: Iterable[CorpusTurn], size: int) -> Iterator[Sequence[CorpusTurn]]:
    """Cuts a stream of turns into lists."""
    rest = iter(turns)
    while batch := list(islice(rest, size)):
        yield batch


def described(corpus: Corpus, text_bytes: int) -> str:
    """Names the corpus: what makes it again, and its size."""
    size = f"{corpus.turns:,} turns, {text_bytes / 1e6:,.0f} MB, {corpus.agents:,} agents"
    return f"version {CORPUS_VERSION}, seed {corpus.seed}, {size}"


def section(loaded: Loaded, corpus: Corpus, now: datetime) -> str:
    """Writes what was measured as a section of the results."""
    rows = [
        ["CPU, s", *_seconds(loaded.ours.cpu, loaded.fts5.cpu)],
        ["wall time, s", *_seconds(loaded.ours.wall, loaded.fts5.wall)],
        ["turns a second of CPU", *_rates(loaded.turns, loaded.ours.cpu, loaded.fts5.cpu)],
        ["size on disk, MB", *_compared(loaded.ours_size / 1e6, loaded.fts5_size / 1e6)],
        ["size over text", *_compared(loaded.ours_size / loaded.text_bytes, loaded.fts5_size / loaded.text_bytes)],
    ]
    facts = {
        "corpus": described(corpus, loaded.text_bytes),
        "batches": f"{BATCH_TURNS:,} turns, one side after the other",
        "peak memory of the service": f"{loaded.ours_peak / 1e6:,.0f} MB",
        "index caught up": f"{loaded.ours_waiting.wall / 1e9:.2f} s after the last import was acknowledged",
        "machine": measuring.machine(),
        "commit": measuring.commit(),
        "versions": measuring.versions(),
    }
    title = report.heading(f"{loaded.turns:,} turns taken in", now, facts)
    return f"{title}\n\n{report.table(['', 'aforesaid', 'FTS5', 'aforesaid ÷ FTS5'], rows)}"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Makes a folder that is gone afterwards. On disk, not in memory, if TMPDIR says so."""
    with tempfile.TemporaryDirectory(prefix="aforesaid-bench-") as folder:
        yield Path(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the measurement and appends it to bench/results/indexing.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.indexing", description="Takes the same turns into aforesaid and FTS5.")
    parser.add_argument("--turns", type=int, default=100_000, help="how many turns (100000)")
    parser.add_argument("--seed", type=int, default=1, help="which corpus (1)")
    parser.add_argument("--results", type=Path, default=report.RESULTS / "indexing.md", help="the file to append to")
    asked = parser.parse_args(arguments)
    corpus = Corpus(asked.seed, asked.turns)
    with temporary_folder() as folder, Service(folder / "ours") as service, Fts5(folder / "fts5.db") as fts5:
        told = section(load(corpus, service, fts5), corpus, datetime.now(UTC))
    report.append(asked.results, "Taking turns in: aforesaid and SQLite FTS5", told)
    print(told)


def _seconds(ours: int, theirs: int) -> list[str]:
    return _compared(ours / 1e9, theirs / 1e9)


def _rates(turns: int, ours: int, theirs: int) -> list[str]:
    return _compared(turns / (ours / 1e9), turns / (theirs / 1e9))


def _compared(ours: float, theirs: float) -> list[str]:
    return [f"{ours:,.4g}", f"{theirs:,.4g}", f"{ours / theirs:.3g}"]


if __name__ == "__main__":
    main()
