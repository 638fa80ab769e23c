"""Writes and reads the same turns through the core over SQLite and over PostgreSQL, in turns, and reports both and their ratio.

    python -m bench.storing --turns 10000 --seed 1

PostgreSQL is a cluster of this machine that is thrown away afterwards; both wait for the disk at every commit. Beside what the core
writes stand bare commits: one INSERT of the same text in a transaction of its own, by the same drivers and as many threads, which
nothing that is kept can be faster than. All writers are threads of one process.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from random import Random
from threading import Lock

import psycopg
from pydantic import SecretStr

from aforesaid.model import Agent, Conversation, Text, Turn
from aforesaid_server.access import Call
from aforesaid_server.folder import SECRET
from aforesaid_server.house import House, build_core
from aforesaid_server.ingest import AppendRequest, ImportItem, ImportTally
from aforesaid_server.search import Page, ReadRequest, SearchRequest
from aforesaid_server.settings import Settings
from aforesaid_server.store import Store
from aforesaid_server.store.opening import open_store
from bench import measuring, report
from bench.comparing import WrongCountError
from bench.corpus import Corpus, CorpusTurn
from bench.indexing import batches, described, temporary_folder
from bench.measuring import Cost
from bench.queries import Kind, queries
from scripts.postgresql import cluster

IMPORT_TURNS = 1_000
WRITERS = (1, 4, 8)
PAGE = 20
NOBODYS_WORD = "zyxwvut"
# What the tests leave out: a commit that returned is on the disk.
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}

Figures = dict[str, float | Sequence[Cost]]
Bare = Callable[[], AbstractContextManager[Callable[[str], None]]]


@dataclass
class Side:
    """A store under measurement: the core over it, bare commits into it, and, where several can share it, a second core."""

    name: str
    house: House
    store: Store
    bare: Bare
    second: Callable[[], House] | None = None
    figures: Figures = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the measurement and appends it to bench/results/storing.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.storing", description="The same turns in SQLite and in PostgreSQL.")
    parser.add_argument("--turns", type=int, default=10_000, help="how many turns are imported (10000)")
    parser.add_argument("--seed", type=int, default=1, help="which corpus and which searches (1)")
    parser.add_argument(
        "--appends", type=int, default=1_000, help="how many turns are appended one by one, by each number of writers (1000)"
    )
    parser.add_argument("--queries", type=int, default=10, help="how many searches of each kind (10)")
    parser.add_argument("--rounds", type=int, default=5, help="how many times each is asked (5)")
    parser.add_argument("--results", type=Path, default=report.RESULTS / "storing.md", help="the file to append to")
    asked = parser.parse_args(arguments)
    corpus = Corpus(asked.seed, asked.turns)
    with temporary_folder() as folder, cluster(DURABLE) as postgres, ExitStack() as stack:
        url, bare_url = postgres.url(postgres.new()), postgres.url(postgres.new())
        sides = [
            side_of(stack, folder / "sqlite", "", partial(bare_sqlite, folder / "bare.db")),
            side_of(stack, folder / "postgresql", url, partial(bare_postgres, bare_url)),
        ]
        text_bytes = take_in(corpus, sides)
        append(list(islice(Corpus(asked.seed + 1, asked.appends), asked.appends)), sides)
        read(corpus, sides, asked.queries, asked.rounds)
        facts = {
            "corpus": described(corpus, text_bytes),
            "appended": f"{asked.appends:,} turns, one each call, by each number of writers",
            "reads": f"{asked.queries} of each, {asked.rounds} rounds after one to warm up; CPU is without PostgreSQL's own",
            "machine": measuring.machine(),
            "commit": measuring.commit(),
            "versions": f"{measuring.versions()}, {version_of(bare_url)}",
        }
    told = section(sides, facts, datetime.now(UTC))
    report.append(asked.results, "Stores: SQLite and PostgreSQL", told)
    print(told)


def side_of(stack: ExitStack, folder: Path, url: str, bare: Bare) -> Side:
    """Opens the core over a new data folder with the store there, or two over the store at an address."""
    folder.mkdir()
    settings = Settings(data=folder / "one", store=SecretStr(url))
    house = opened(stack, settings)

    def second() -> House:
        house = opened(stack, settings.model_copy(update={"data": copied(folder)}))
        house.settle(call("SearchTranscripts"))
        return house

    store = open_store(settings)
    stack.callback(store.close)
    return Side("PostgreSQL", house, store, bare, second) if url else Side("SQLite", house, store, bare)


def opened(stack: ExitStack, settings: Settings) -> House:
    """Opens the core; it is closed at the end."""
    settings.data.mkdir(exist_ok=True)
    house = build_core(settings)
    stack.callback(house.close)
    return house


def copied(folder: Path) -> Path:
    """Makes the data folder of a second node of the deployment, with the secret of the first."""
    data = folder / "two"
    data.mkdir()
    shutil.copy(folder / "one" / SECRET, data / SECRET)
    return data


# Writing


def take_in(corpus: Corpus, sides: Sequence[Side]) -> int:
    """Imports every turn into both sides, a batch here and a batch there, and returns the bytes of text."""
    text_bytes, taken = 0, {side.name: Cost(0, 0) for side in sides}
    for batch in batches(corpus, IMPORT_TURNS):
        text_bytes += sum(len(turn.text.encode()) for turn in batch)
        items = [item_of(list(said)) for _, said in groupby(batch, key=lambda turn: turn.conversation_id)]
        for side in sides:
            take = partial(side.house.core.writer.import_batch, call("ImportTurns"), items, ImportTally())
            taken[side.name] += measuring.timed(take, time.process_time_ns)
    for side in sides:
        side.house.settle(call("SearchTranscripts"))
        side.figures["turns imported a second"] = corpus.turns / (taken[side.name].wall / 1e9)
    return text_bytes


def item_of(said: Sequence[CorpusTurn]) -> ImportItem:
    """Writes turns of one conversation as an item of an import."""
    first = said[0]
    return ImportItem(Agent(first.agent_id), Conversation(first.conversation_id, first.agent_id, turns=tuple(map(turn_of, said))))


def turn_of(turn: CorpusTurn) -> Turn:
    """Writes a turn as the core takes it."""
    return Turn(turn.role, (Text(turn.text),), turn.turn_id, turn.created_at)


def append(turns: Sequence[CorpusTurn], sides: Sequence[Side]) -> None:
    """Appends the turns one by one to each side, by one writer and by several, and commits them bare as well."""
    for writers in WRITERS:
        for side in sides:
            name = f"turns appended a second, {writers} {'writer' if writers == 1 else 'writers'}"
            side.figures[name] = rate(turns, writers, partial(append_one, side.house, f"{writers} writers"))
    costs: dict[str, list[Cost]] = {side.name: [] for side in sides}
    for turn in turns:
        for side in sides:
            write = partial(append_one, side.house, "one more", 0, turn)
            # Of this thread alone: the indexes of both sides follow meanwhile.
            costs[side.name].append(measuring.timed(write, time.thread_time_ns))
    for side in sides:
        side.figures["a turn appended"] = costs[side.name]
    for writers in WRITERS:
        for side in sides:
            with side.bare() as commit:
                name = f"bare commits a second, {writers} {'writer' if writers == 1 else 'writers'}"
                side.figures[name] = rate(turns, writers, partial(commit_one, commit))


def append_one(house: House, prefix: str, writer: int, turn: CorpusTurn) -> None:
    """Appends a turn to the conversation of its writer."""
    house.core.writer.append(call("AppendTurns"), AppendRequest(f"writer-{writer}", prefix, [turn_of(turn)]))


def commit_one(commit: Callable[[str], None], _writer: int, turn: CorpusTurn) -> None:
    """Commits the text of a turn bare."""
    commit(turn.text)


def rate(turns: Sequence[CorpusTurn], writers: int, write: Callable[[int, CorpusTurn], None]) -> float:
    """Writes all turns by so many threads, and says how many there were a second. Raises what a thread raised."""

    def work(writer: int) -> None:
        for turn in turns[writer::writers]:
            write(writer, turn)

    with ThreadPoolExecutor(writers) as pool:
        began = time.perf_counter()
        list(pool.map(work, range(writers)))
        return len(turns) / (time.perf_counter() - began)


@contextmanager
def bare_sqlite(file: Path) -> Iterator[Callable[[str], None]]:
    """Gives what commits one text to a SQLite file, which takes one writer at a time."""
    lock = Lock()
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")

        def commit(text: str) -> None:
            with lock:
                connection.execute("INSERT INTO texts (text) VALUES (?)", (text,))

        yield commit


@contextmanager
def bare_postgres(url: str) -> Iterator[Callable[[str], None]]:
    """Gives what commits one text to a PostgreSQL database, each thread over a connection of its own."""
    with ExitStack() as stack:
        made = stack.enter_context(psycopg.connect(url, autocommit=True))
        made.execute("CREATE TABLE IF NOT EXISTS texts (id BIGSERIAL PRIMARY KEY, text TEXT NOT NULL)")
        free = [made, *(stack.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(max(WRITERS) - 1))]

        def commit(text: str) -> None:
            connection = free.pop()
            try:
                connection.execute("INSERT INTO texts (text) VALUES (%s)", (text,))
            finally:
                free.append(connection)

        yield commit


# Reading


def read(corpus: Corpus, sides: Sequence[Side], each: int, rounds: int) -> None:
    """Reads conversations and the end of the log, and searches, on both sides in turns."""
    random = Random(f"storing/{corpus.seed}")
    conversations = sorted({(turn.agent_id, turn.conversation_id) for turn in islice(corpus, 2_000)})
    drawn = random.sample(conversations, min(each, len(conversations)))
    searches = [query for query in queries(corpus, each) if query.kind in {Kind.MIDDLE_WORD, Kind.COMMON_WORD}]
    questions: dict[str, list[Callable[[Side], object]]] = {
        "a conversation read": [partial(read_one, agent_id, conversation_id) for agent_id, conversation_id in drawn],
        "the same, put on record": [partial(read_recorded, agent_id, conversation_id) for agent_id, conversation_id in drawn],
        "the end of the log asked for": [end_of_log] * each,
        "a search for a middle word": [partial(search_of, query.text) for query in searches if query.kind is Kind.MIDDLE_WORD],
        "a search for a common word": [partial(search_of, query.text) for query in searches if query.kind is Kind.COMMON_WORD],
    }
    for name, asked in questions.items():
        costs: dict[str, list[Cost]] = {side.name: [] for side in sides}
        for number in range(rounds + 1):
            for place, question in enumerate(random.sample(asked, len(asked))):
                for side in sides[:: 1 if (place + number) % 2 else -1]:
                    cost = measuring.timed(partial(question, side), time.process_time_ns)
                    if number:
                        costs[side.name].append(cost)
        for side in sides:
            side.figures[name] = costs[side.name]
    for side in sides:
        side.figures["a turn found that was just written"] = found_at_once(side.house, side.house, each * rounds)
    # Last, since it follows the log in this process, too.
    for side in sides:
        if side.second is not None:
            side.figures["the same on another node"] = found_at_once(side.house, side.second(), each * rounds)


def read_one(agent_id: str, conversation_id: str, side: Side) -> None:
    """Reads a conversation from its beginning, as the agent whose it is."""
    if not side.house.core.reader.read(call("ReadTranscript", agent_id), ReadRequest("", conversation_id)).turns:
        raise WrongCountError(f"{conversation_id} holds no turns")


def read_recorded(agent_id: str, conversation_id: str, side: Side) -> None:
    """Reads it as the user, who names the agent."""
    side.house.core.reader.read(call("ReadTranscript"), ReadRequest(agent_id, conversation_id))


def search_of(text: str, side: Side) -> None:
    """Searches for a page."""
    search(text, side.house)


def search(text: str, house: House) -> None:
    """Searches for a page."""
    if not house.core.searcher.search(call("SearchTranscripts"), SearchRequest(query=text, page=Page(PAGE))).matches:
        raise WrongCountError(f"nothing says {text}")


def end_of_log(side: Side) -> None:
    """Asks the store what a search asks it first where several nodes write."""
    side.store.tail(side.store.head(), 1)


def found_at_once(writing: House, searching: House, times: int) -> list[Cost]:
    """Writes turns on one node, and measures the search on another, or the same, that begins after each and finds it."""
    costs = []
    for number in range(times):
        word = f"{NOBODYS_WORD}{number}x{id(searching)}"
        turn = Turn("user", (Text(word),))
        writing.core.writer.append(call("AppendTurns"), AppendRequest("writer-0", "found at once", [turn]))
        costs.append(measuring.timed(partial(search, word, searching), time.process_time_ns))
    return costs


# Reporting


def section(sides: Sequence[Side], facts: dict[str, str], now: datetime) -> str:
    """Writes what was measured as a section of the results."""
    one, other = sides
    rows = []
    for name in dict.fromkeys([*one.figures, *other.figures]):
        ours, theirs = one.figures.get(name), other.figures.get(name)
        if isinstance(ours, float) and isinstance(theirs, float):
            rows.append([name, f"{ours:,.4g}", f"{theirs:,.4g}", f"{theirs / ours:.3g}"])
            continue
        for what, taken in (("wall, ms", report.wall), ("CPU, ms", report.cpu)):
            told = [taken(figure) if isinstance(figure, list) else [] for figure in (ours, theirs)]
            shown = [report.milliseconds(values) if values else "" for values in told]
            rows.append([f"{name}: {what}", *shown, report.ratio(told[1], told[0]) if all(told) else ""])
    head = ["", one.name, other.name, f"{other.name} ÷ {one.name}"]
    title = report.heading("turns written and read", now, facts)
    return f"{title}\n\nTimes are median / 99th percentile:\n\n{report.table(head, rows)}"


def call(method: str, agent_id: str = "") -> Call:
    """Makes a call of the user of this machine, or of an agent."""
    return Call(method, "bench", "bench", agent_id)


def version_of(url: str) -> str:
    """Names the version of a PostgreSQL."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    return f"PostgreSQL {row[0] if row else 'unknown'}, psycopg {psycopg.__version__}"


if __name__ == "__main__":
    main()
