"""What it costs that turns are made of parts of several kinds, and that a search may count some of them alone.

    python -m bench.kinds --turns 100000 --seed 1

The same turns are taken in twice, batch by batch in turns: each as one text, and as agents write them, a tool call after a text, a
result as text or JSON. Then the second service is searched for the same words with and without `part_kinds`. Before anything is
timed, it must find the planted words in exactly the turns in which parts of these kinds hold them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random

from aforesaid._convert import part_message
from aforesaid.agent.v1 import types_pb
from aforesaid.model import Part, Text, ToolCall, ToolResult
from bench import measuring, report
from bench.comparing import Side, WrongCountError, measure, section
from bench.corpus import PLANTED_WORDS, Corpus, CorpusTurn
from bench.indexing import BATCH_TURNS, batches, described, temporary_folder
from bench.measuring import Cost
from bench.ours import Service
from bench.queries import BenchQuery, queries

LIMIT = 20
# The pages of a search that finds more than this take longer to walk than they are worth as a check.
COUNTED_TURNS = 2_000
TEXT, CALL = "PART_KIND_TEXT", "PART_KIND_TOOL_CALL"
RESULT_TEXT, RESULT_JSON = "PART_KIND_TOOL_RESULT_TEXT", "PART_KIND_TOOL_RESULT_JSON"
TOOLS = (CALL, RESULT_TEXT, RESULT_JSON)

Piece = tuple[str, str]


def pieces(turn: CorpusTurn) -> list[Piece]:
    """Cuts the text of a turn into pieces, each with its kind: half of an assistant's turns end with a call, of a tool's four
    results one is JSON.
    """
    if turn.role == "tool":
        return [(RESULT_JSON if turn.number % 4 == 0 else RESULT_TEXT, turn.text)]
    at = turn.text.find(" ", len(turn.text) // 2)
    if turn.role == "user" or turn.number % 2 or at < 0:
        return [(TEXT, turn.text)]
    return [(TEXT, turn.text[:at]), (CALL, turn.text[at + 1 :])]


def parts(turn: CorpusTurn) -> list[types_pb.Part]:
    """Writes the pieces of a turn as the wire wants them."""
    return [part_message(part_of(kind, text)) for kind, text in pieces(turn)]


def part_of(kind: str, text: str) -> Part:
    """Makes one piece the part that an agent would have written."""
    match kind:
        case "PART_KIND_TOOL_CALL":
            return ToolCall("shell", json.dumps({"command": text}))
        case "PART_KIND_TOOL_RESULT_JSON":
            return ToolResult(json.dumps({"output": text}), is_json=True)
        case "PART_KIND_TOOL_RESULT_TEXT":
            return ToolResult(text)
        case _:
            return Text(text)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What it took to load a corpus into both services, CPU and wall time; `several` counts turns of two kinds."""

    text_bytes: int
    several: int
    plain: Cost
    mixed: Cost

    def rows(self, plain_size: int, mixed_size: int) -> list[list[str]]:
        """Writes it as lines of a table, with the sizes of both indexes in bytes."""
        return [
            _row("CPU, s", self.plain.cpu / 1e9, self.mixed.cpu / 1e9),
            _row("wall time, s", self.plain.wall / 1e9, self.mixed.wall / 1e9),
            _row("index on disk, MB", plain_size / 1e6, mixed_size / 1e6),
            _row("index over text", plain_size / self.text_bytes, mixed_size / self.text_bytes),
        ]


def load(corpus: Corpus, plain: Service, mixed: Service) -> Loaded:
    """Loads every turn into both services, a batch here and a batch there."""
    clocks = {plain: plain.clock(), mixed: mixed.clock()}
    before = {service: clock() for service, clock in clocks.items()}
    taken = {plain: Cost(0, 0), mixed: Cost(0, 0)}
    text_bytes, several = 0, 0
    for batch in batches(corpus, BATCH_TURNS):
        text_bytes += sum(len(turn.text.encode()) for turn in batch)
        several += sum(len(pieces(turn)) > 1 for turn in batch)
        taken[plain] += measuring.timed(partial(plain.import_turns, batch), clocks[plain])
        taken[mixed] += measuring.timed(partial(mixed.import_turns, batch, parts), clocks[mixed])
    for service in (plain, mixed):
        taken[service] += measuring.timed(service.settle, clocks[service])
        # The index follows while the other one is loaded, too.
        taken[service] = Cost(clocks[service]() - before[service], taken[service].wall)
    return Loaded(text_bytes, several, taken[plain], taken[mixed])


def _row(name: str, plain: float, mixed: float) -> list[str]:
    return [name, f"{plain:,.4g}", f"{mixed:,.4g}", f"{mixed / plain:.3g}"]


def check(corpus: Corpus, mixed: Service) -> None:
    """Raises WrongCountError unless planted words are found in exactly the turns in which parts of the kinds hold them."""
    there: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for turn in corpus:
        for plant in PLANTED_WORDS:
            if plant.stands_in(turn.number):
                holding = {kind for kind, text in pieces(turn) if plant.text in text}
                there.update((plant.text, kinds) for kinds in ((), (TEXT,), TOOLS) if not kinds or holding & set(kinds))
    for (word, kinds), turns in there.items():
        if turns <= COUNTED_TURNS and (found := mixed.count(word, part_kinds=kinds)) != turns:
            raise WrongCountError(f"{word} is found in {found} turns, but it stands in {turns} ({', '.join(kinds) or 'any kind'})")


def asking(name: str, service: Service, kinds: Sequence[str] = ()) -> Side[BenchQuery]:
    """Makes a service that is asked for parts of these kinds a side."""

    def search(query: BenchQuery) -> int:
        return service.search(query.text, query.agent_id, limit=LIMIT, newest=query.newest, part_kinds=kinds).hits

    return Side(name, search, service.clock())


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the measurement and appends it to bench/results/kinds.md."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.kinds", description="Turns of several kinds of parts, and searches of some."
    )
    parser.add_argument("--turns", type=int, default=100_000, help="how many turns (100000)")
    parser.add_argument("--seed", type=int, default=1, help="which corpus and which searches (1)")
    parser.add_argument("--queries", type=int, default=10, help="how many searches of each kind (10)")
    parser.add_argument("--rounds", type=int, default=3, help="how many times each is asked (3)")
    parser.add_argument("--results", type=Path, default=report.RESULTS / "kinds.md", help="the file to append to")
    asked = parser.parse_args(arguments)
    corpus = Corpus(asked.seed, asked.turns)
    with temporary_folder() as folder:
        with Service(folder / "plain") as plain, Service(folder / "mixed") as mixed:
            loaded = load(corpus, plain, mixed)
            check(corpus, mixed)
            sides = [
                asking("any kind", mixed),
                asking("any kind, of turns of one kind", plain),
                asking("text", mixed, (TEXT,)),
                asking("calls and results", mixed, TOOLS),
            ]
            # What some kinds do not say takes another way: it is left out on all sides.
            drawn = [query for query in queries(corpus, asked.queries) if all(side.search(query) for side in sides)]
            costs = measure(sides, drawn, asked.rounds, Random(asked.seed))
        # An index that serves may hold files that are merged already.
        sizes = [measuring.folder_size(service.data / "index") for service in (plain, mixed)]
    facts = {
        "corpus": described(corpus, loaded.text_bytes),
        "of two kinds": f"{loaded.several:,} turns, {loaded.several / corpus.turns:.0%}",
        "searches": f"{len(drawn)}, {asked.rounds} rounds after one to warm up, page of {LIMIT}",
        "machine": measuring.machine(),
        "commit": measuring.commit(),
        "versions": measuring.versions(),
    }
    names = [side.name for side in sides]
    told = section(f"kinds of parts in {asked.turns:,} turns", costs, names[:1], names[1:], facts, datetime.now(UTC))
    taken = report.table(["taken in", "one kind", "several kinds", "several ÷ one"], loaded.rows(*sizes))
    told = f"{told}\n\n{taken}"
    report.append(asked.results, "Kinds of parts: what they cost", told)
    print(told)


if __name__ == "__main__":
    main()
