"""Clocks, percentiles and reports of the measurements say what they claim to."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from bench import measuring, report
from bench.comparing import Side, WrongCountError, measure, section
from bench.corpus import Corpus
from bench.indexing import Loaded, batches
from bench.indexing import section as indexing_section
from bench.measuring import Cost, percentile
from bench.ours import MESSAGE_BYTES, MESSAGE_TURNS, import_requests
from bench.queries import BenchQuery, Kind

DAY = datetime(2026, 3, 4, tzinfo=UTC)


def test_the_clock_of_this_process_is_the_one_that_python_knows() -> None:
    clock = measuring.process_clock(os.getpid())
    before = time.process_time_ns()
    read = clock()
    assert before <= read <= time.process_time_ns()


def test_the_clock_of_another_process_counts_its_work_alone() -> None:
    program = "import sys\nsys.stdin.read(1)\nsum(i * i for i in range(2_000_000))\nprint('done', flush=True)\nsys.stdin.read(1)"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin
        assert other.stdout
        clock = measuring.process_clock(other.pid)
        before = clock()
        other.stdin.write(b"g")
        other.stdin.flush()
        assert other.stdout.readline() == b"done\n"
        spent = clock() - before
        sum(i * i for i in range(2_000_000))
        idle = clock() - before - spent
        assert spent > 20_000_000
        assert idle < spent / 2
        other.stdin.close()
        other.wait()
    with pytest.raises(ProcessLookupError, match=f"no process {other.pid}"):
        clock()


def test_peak_memory_goes_up_and_stays_up() -> None:
    before = measuring.peak_memory()
    size = before + 50_000_000
    held = bytearray(size)
    held[::4096] = b"x" * len(held[::4096])
    assert measuring.peak_memory() > size
    del held
    assert measuring.peak_memory() > size


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "one").write_bytes(b"x" * 10)
    (tmp_path / "deep" / "er" / "two").write_bytes(b"x" * 7)
    assert measuring.folder_size(tmp_path) == 17


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([5.0], 0.5, 5.0),
        ([5.0], 0.99, 5.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0),
        ([4.0, 1.0, 3.0, 2.0], 0.75, 3.0),
        (list(map(float, range(1, 101))), 0.99, 99.0),
        (list(map(float, range(1, 101))), 0.995, 100.0),
        (list(map(float, range(1, 101))), 1.0, 100.0),
    ],
)
def test_percentiles(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_the_machine_is_described_without_its_name() -> None:
    told = f"{measuring.machine()} {measuring.versions()} {measuring.commit()}"
    assert f"{os.cpu_count()} cores" in told
    assert "SQLite 3" in told
    assert os.uname().nodename not in told


class Stopwatch:
    """Two sides that spend as much of a made-up time as they are told to."""

    def __init__(self) -> None:
        self.time = 0
        self.order: list[str] = []

    def side(self, name: str, costs: Iterator[int], hits: int = 1) -> Side[BenchQuery]:
        def search(query: BenchQuery) -> int:
            self.order.append(name)
            self.time += next(costs)
            return hits

        return Side(name, search, lambda: self.time)


def repeated(value: int) -> Iterator[int]:
    while True:
        yield value


def test_sides_are_asked_in_turns_and_the_warm_up_is_not_counted() -> None:
    watch = Stopwatch()
    asked = [BenchQuery(Kind.MIDDLE_WORD, str(n), "") for n in range(4)]
    costs = measure([watch.side("a", repeated(2)), watch.side("b", repeated(30))], asked, 3, Random(1))
    assert report.cpu(costs["a", Kind.MIDDLE_WORD]) == [2] * 12
    assert report.cpu(costs["b", Kind.MIDDLE_WORD]) == [30] * 12
    timed = watch.order[8:]
    pairs = [timed[at : at + 2] for at in range(0, 24, 2)]
    assert pairs.count(["a", "b"]) == pairs.count(["b", "a"]) == 6


def test_a_search_that_finds_nothing_is_not_timed() -> None:
    watch = Stopwatch()
    with pytest.raises(WrongCountError, match="a finds nothing for word"):
        measure([watch.side("a", repeated(1), hits=0)], [BenchQuery(Kind.PHRASE, "word", "")], 1, Random(1))


def test_a_search_that_must_find_nothing_finds_nothing() -> None:
    watch = Stopwatch()
    asked = [BenchQuery(Kind.PHRASE, "gone", "")]
    assert measure([watch.side("a", repeated(1), hits=0)], asked, 2, Random(1), lambda _: False).keys() == {("a", Kind.PHRASE)}
    with pytest.raises(WrongCountError, match="a finds 7 for gone"):
        measure([watch.side("a", repeated(1), hits=7)], asked, 1, Random(1), lambda _: False)


def test_a_report_of_searches_gives_medians_tails_and_ratios() -> None:
    ours = [Cost(cpu, 2 * cpu) for cpu in (1_000_000, 2_000_000, 4_000_000)]
    theirs = [Cost(cpu, cpu) for cpu in (20_000_000, 30_000_000, 1_000_000_000)]
    costs = {("ours", Kind.PHRASE): ours, ("FTS5", Kind.PHRASE): theirs}
    told = section("searches of 7 turns", costs, ["ours"], ["FTS5"], {"corpus": "small"}, DAY)
    assert told.startswith("## 2026-03-04: searches of 7 turns\n\n- corpus: small\n\nCPU time")
    assert "| phrase | 2 / 4 | 30 / 1e+03 | 15 / 250 |" in told
    assert "| phrase | 4 / 8 | 30 / 1e+03 | 7.5 / 125 |" in told


def test_a_report_of_indexing_gives_both_sides_and_their_ratio() -> None:
    loaded = Loaded(
        turns=1_000,
        text_bytes=2_000_000,
        ours=Cost(4_000_000_000, 5_000_000_000),
        ours_waiting=Cost(1, 500_000_000),
        ours_peak=300_000_000,
        ours_size=6_000_000,
        fts5=Cost(1_000_000_000, 1_000_000_000),
        fts5_size=4_000_000,
    )
    told = indexing_section(loaded, Corpus(1, 1_000), DAY)
    assert "| CPU, s | 4 | 1 | 4 |" in told
    assert "| turns a second of CPU | 250 | 1,000 | 0.25 |" in told
    assert "| size over text | 3 | 2 | 1.5 |" in told
    assert "peak memory of the service: 300 MB" in told


def test_results_are_added_and_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "results" / "searching.md"
    report.append(file, "Searches", "## one\n")
    report.append(file, "Searches", "## two\n")
    assert file.read_text(encoding="utf-8") == "# Searches\n\n## one\n\n## two\n"


def test_an_import_is_packed_into_messages_that_the_wire_takes() -> None:
    turns = list(Corpus(2, 600))
    requests = list(import_requests(turns))
    agent = conversation = ""
    sent = []
    for request in requests:
        if request.conversation:
            assert request.agent
            agent, conversation = request.agent.agent_id, request.conversation.conversation_id
        assert len(request.turns) <= MESSAGE_TURNS
        assert len(request.turns) == 1 or len(request.to_binary()) < MESSAGE_BYTES * 1.1
        sent += [(agent, conversation, turn.turn_id, turn.role) for turn in request.turns]
    assert sent == [(turn.agent_id, turn.conversation_id, turn.turn_id, turn.role) for turn in turns]
    assert len(list(batches(turns, 250))) == 3
