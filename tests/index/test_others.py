"""What other processes write, as LiveIndex learns of it: by hand, and over the real store with the plain engine, in any order of
writes, of those who tell of them, of followers and of searches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aforesaid.model import Source, ToolCall, ToolResult
from aforesaid_server.errors import FailedPrecondition, Unavailable
from aforesaid_server.index import Batch, Reach
from aforesaid_server.index.document import Brought, Documents, Fresh, brought_by, lasting
from aforesaid_server.index.live import LiveIndex
from aforesaid_server.index.memory import MemoryIndex
from aforesaid_server.index.others import Others
from aforesaid_server.store import AgentKey, Append, Forget, Imported, NewTurn, Put, Written
from aforesaid_server.store.sql import SqlStore, open_sqlite
from aforesaid_server.text.transcript import Searched
from tests.index.said import ALL, ENGLISH, OWN_TOO, batch, brought, document, matches
from tests.store.plain import said

DOCUMENTS = Documents(ENGLISH, Searched(False, False, frozenset({"search"})))


# What is read, and what is not


class Log(Others):
    """A log by hand: what stands at each number. Remembers from where it was read."""

    def __init__(self) -> None:
        self.entries: list[Fresh | Imported] = []
        self.read: list[int] = []

    def put(self, *numbers: int) -> None:
        """Others write turns of these numbers, the next in the log."""
        self.entries += [Fresh(number, document(number)) for number in numbers]

    def head(self) -> int:
        return len(self.entries)

    def after(self, number: int, limit: int) -> tuple[Brought, Sequence[Imported]]:
        self.read.append(number)
        fresh: list[Fresh] = []
        imported: list[Imported] = []
        for position, entry in enumerate(self.entries[number:], number + 1):
            if isinstance(entry, Imported):
                imported.append(entry)
            elif len(fresh) == limit:
                return Brought(position - 1, fresh, (), (), number + 1), imported
            else:
                fresh.append(entry)
        return Brought(self.head(), fresh, (), (), number + 1), imported


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def engine() -> MemoryIndex:
    return MemoryIndex()


@pytest.fixture
def live(log: Log, engine: MemoryIndex) -> LiveIndex:
    index = LiveIndex(log)
    index.use(engine)
    return index


def own(live: LiveIndex, log: Log, *numbers: int) -> None:
    """This process writes turns, the next in the log, and tells of them."""
    log.put(*numbers)
    live.add(Brought(numbers[-1], log.entries[-len(numbers) :], (), (), numbers[0]))  # type: ignore[arg-type]


def test_a_search_reads_what_others_wrote_and_no_more(live: LiveIndex, log: Log) -> None:
    assert matches(live.lists()) == []
    own(live, log, 1)
    own(live, log, 2, 3)
    assert matches(live.lists()) == [3, 2, 1]
    assert log.read == [], "all is its own"
    log.put(4, 5)
    assert matches(live.lists()) == [5, 4, 3, 2, 1]
    own(live, log, 6)
    assert matches(live.lists()) == [6, 5, 4, 3, 2, 1]
    assert log.read == [3]


def test_what_stands_between_its_own_is_read(live: LiveIndex, log: Log) -> None:
    log.put(1)
    own(live, log, 2)
    log.put(3)
    own(live, log, 4)
    assert matches(live.lists()) == [4, 3, 2, 1]
    assert matches(live.lists()) == [4, 3, 2, 1]
    assert log.read == [0]


def test_its_own_may_be_told_in_any_order(live: LiveIndex, log: Log) -> None:
    log.put(1, 2, 3)
    for number in (3, 1, 2):
        live.add(Brought(number, [log.entries[number - 1]], (), (), number))  # type: ignore[list-item]
    assert matches(live.lists()) == [3, 2, 1]
    assert log.read == []


def test_what_the_engine_takes_is_not_read(live: LiveIndex, log: Log, engine: MemoryIndex) -> None:
    log.put(1, 2, 3)
    live.apply(engine, batch(2, document(1), document(2)))
    assert matches(live.lists()) == [3, 2, 1]
    assert log.read == [2]


def test_an_import_of_others_is_pending_until_the_engine_has_it(live: LiveIndex, log: Log, engine: MemoryIndex) -> None:
    scope = {"user": "ada"}
    log.entries += [Imported(1, 1, 7, scope), Imported(2, 2, 8)]
    log.put(3)
    lists = live.lists()
    assert matches(lists) == [3]
    assert [live.pending(reach) for reach in (ALL, Reach(scope), Reach({}, frozenset({8})), Reach({}, frozenset({9})))] == [
        2,
        1,
        1,
        0,
    ]
    live.apply(engine, batch(2, document(1), document(2)))
    assert matches(live.lists()) == [3, 2, 1]
    assert live.pending(ALL) == 0
    assert log.read == [0]


def test_an_import_of_its_own_is_counted_once(live: LiveIndex, log: Log) -> None:
    """Though a search may have read of it, side by side with one of others, before whoever made it tells."""
    log.entries += [Imported(1, 4, 7)] * 4
    assert live.pending(ALL) == 4
    live.imported([Imported(1, 2, 7)])
    live.imported([Imported(5, 6, 7)])
    log.put(5, 6)
    live.imported([Imported(5, 6, 7)])
    assert live.pending(ALL) == 6
    assert live.pending(Reach({}, frozenset({8}))) == 0


def test_more_than_can_be_scanned_waits_for_the_engine(
    live: LiveIndex, log: Log, engine: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a list is never shorter than it should be: until the engine has taken what is too much there is none."""
    monkeypatch.setattr("aforesaid_server.index.live.MOST_SCANNED", 10)
    monkeypatch.setattr("aforesaid_server.index.live._PATIENCE_SECONDS", 0.0)
    log.put(*range(1, 26))
    with pytest.raises(Unavailable, match="the index is behind: try again later"):
        live.lists()
    assert log.read == [0]
    live.apply(engine, batch(8, *(document(number) for number in range(1, 9))))
    with pytest.raises(Unavailable, match="the index is behind"):
        live.lists()
    live.apply(engine, batch(16, *(document(number) for number in range(9, 17))))
    assert matches(live.lists()) == list(range(25, 0, -1))


def test_without_an_engine_nothing_is_read(live: LiveIndex, log: Log, engine: MemoryIndex) -> None:
    own(live, log, 1)
    live.use(None)
    log.put(2)
    with pytest.raises(Unavailable, match="the index is being rebuilt"):
        live.lists()
    assert log.read == []
    live.apply(engine, batch(1, document(1)))
    live.expect(engine.head)
    own(live, log, 3)
    live.use(engine)
    assert matches(live.lists()) == [3, 2, 1]
    assert log.read == [1]


def test_another_engine_is_filled_while_the_old_one_is_searched(live: LiveIndex, log: Log, engine: MemoryIndex) -> None:
    """What the other one holds, the searched one need not."""
    own(live, log, 1)
    another = MemoryIndex()
    live.expect(another.head)
    live.apply(another, batch(1, document(1)))
    log.put(2)
    assert matches(live.lists()) == [2, 1]
    live.use(another)
    assert matches(live.lists()) == [2, 1]


def test_a_later_change_stays_where_an_earlier_one_is_told_after_it(live: LiveIndex) -> None:
    """Each puts a turn again that was there before, and so has the old one forgotten."""
    for place, role in ((7, "late"), (6, "early")):
        live.add(Brought(place, [Fresh(place, document(5, role))], [5], ()))
    assert (matches(live.lists(), "late"), matches(live.lists(), "early")) == ([5], [])
    live.add(brought(8, forget=[5]))
    assert matches(live.lists(), "late") == []


# All of it together


@dataclass
class Node:
    """A process: its index, and what it has committed and not told yet."""

    live: LiveIndex
    engine: MemoryIndex = field(default_factory=MemoryIndex)
    untold: list[Brought | list[Imported]] = field(default_factory=list)

    def follow(self, store: SqlStore, limit: int) -> None:
        """Takes a piece of the log, as the follower does."""
        if changes := store.changes(self.engine.head, limit):
            left = lasting(changes)
            documents = [DOCUMENTS.of(place) for _, place in left.puts]
            self.live.apply(self.engine, Batch(left.position, documents, left.forget, left.forget_conversations))

    def tell(self) -> None:
        """Tells of one of the writes that are committed, the last of them first."""
        match self.untold.pop() if self.untold else None:
            case Brought() as brought:
                self.live.add(brought)
            case list() as imported:
                self.live.imported(imported)


CALL, RESULT = ToolCall("search", "", "1"), ToolResult("zebra", "1")
TURNS = st.builds(
    lambda turn_id, role, parts: said("zebra" if parts is None else "x", turn_id, role=role, parts=parts),
    st.sampled_from(["", "", "a", "b"]),
    st.sampled_from(["user", "tool"]),
    st.sampled_from([None, None, None, (CALL,), (RESULT,)]),
)
APPENDS = st.builds(
    Append,
    st.just(AgentKey("a")),
    st.sampled_from(["c", "e"]),
    st.lists(TURNS, max_size=2),
    source=st.sampled_from([Source(), Source(project="/p"), Source(project="/q")]),  # another project puts all turns again
)
NODES = st.integers(0, 1)
LOOKING = st.sampled_from([(), (), (0,), (1,), (0, 1)])
"""The nodes that are searched after a step."""
STEPS = st.one_of(
    st.tuples(st.sampled_from(["append", "write", "import", "import"]), NODES, APPENDS),
    st.tuples(st.just("delete"), NODES, st.sampled_from(["c", "e"])),
    st.tuples(st.sampled_from(["follow", "tell"]), NODES, st.integers(1, 4)),
)


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    """One store for all examples, each of which has an agent of its own."""
    with closing(open_sqlite(tmp_path_factory.mktemp("store") / "store")) as store:
        store.shared = True
        yield store


_count = itertools.count()


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(STEPS, LOOKING), min_size=3, max_size=20))
def test_every_search_finds_what_was_committed_before(
    shared_store: SqlStore, steps: list[tuple[tuple[str, int, object], tuple[int, ...]]]
) -> None:
    """On any node: every turn that is there and that no import alone has put, as it is now."""
    world = World(shared_store, shared_store.update_agent(AgentKey(f"agent {next(_count)}")).pk, shared_store.head())
    for now, ((what, which, what_to), looking) in enumerate(steps, 1):
        node = world.nodes[which]
        match what, what_to:
            case "follow", int(limit):
                node.follow(shared_store, limit)
            case "tell", _:
                node.tell()
            case _:
                world.write(node, what, what_to, now)
        world.check(looking)
    world.check()
    for node in world.nodes:
        while node.untold:
            node.tell()
            world.check()
    for node in world.nodes:
        while node.engine.head < shared_store.head():
            node.follow(shared_store, 3)
            world.check()


class World:
    """Two nodes over one store, in which nothing is known of an agent yet."""

    def __init__(self, store: SqlStore, agent_pk: int, began: int) -> None:
        self._store = store
        self._agent = AgentKey("", pk=agent_pk)
        self._pk, self._began = agent_pk, began
        self._bulk: set[int] = set()  # the numbers of the changes that imports made
        self.nodes = [Node(LiveIndex(Others(store, DOCUMENTS))) for _ in range(2)]
        for node in self.nodes:
            node.engine.apply(Batch(began))
            node.live.use(node.engine)

    def write(self, node: Node, what: str, what_to: object, now: int) -> None:
        """Commits a write of a node, which is to tell of it."""
        if isinstance(what_to, Append):
            what_to = replace(what_to, agent=self._agent)
        match what, what_to:
            case "import", Append():
                (done,) = self._store.append_many([what_to], now=now)
                if isinstance(done, Written) and done.changes:
                    first, last = done.changes[0].number, done.changes[-1].number
                    self._bulk.update(range(first, last + 1))
                    node.untold.append([Imported(first, last, self._pk)])
            case "delete", str(conversation_id):
                if self._store.conversation(self._pk, conversation_id):
                    node.untold.append(brought_by(self._store.delete(self._pk, conversation_id, now=now), DOCUMENTS, {}))
            case _, Append():
                with suppress(FailedPrecondition):  # it was deleted
                    written = self._written(what, what_to, now)
                    node.untold += [brought_by(written.changes, DOCUMENTS, {})] if written.changes else []

    def _written(self, what: str, append: Append, now: int) -> Written:
        if what == "append":
            return self._store.append(append, now=now)
        return self._store.write(append, expected_revision=None, now=now)

    def check(self, looking: Sequence[int] = (0, 1)) -> None:
        """Compares what nodes find with the store: with own searches and without, by role and by project."""
        log = self._store.changes(self._began, 10_000)
        last = {change.turn_number: change.number for change in log if isinstance(change, (Put, Forget))}
        places = self._store.turns(list(last))
        for node in (self.nodes[which] for which in looking):
            lists, head = node.live.lists(), node.engine.head
            everything = matches(lists, reach=OWN_TOO)
            for number, place in places.items():
                if number in self._bulk and number > head:
                    continue  # only an import has put it, and the engine is not there yet
                says = CALL not in place.turn.parts
                assert (number in everything) == says, number
                if any(position in self._bulk and position > head for position in range(number, last[number] + 1)):
                    continue  # an import has changed something else about it
                role, project = place.turn.role, place.conversation.source.project
                here = Reach({}, roles=frozenset({role}), project=project, own_searches=True)
                elsewhere = Reach({}, roles=frozenset({"user", "tool"} - {role}), own_searches=True)
                assert (number in matches(lists, reach=here), number in matches(lists, reach=elsewhere)) == (says, False), number
                assert (number in matches(lists)) == (says and "search" not in place.answers.values()), number


def test_the_words_of_a_turn_that_cannot_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One such turn of another process stops no search."""
    with closing(open_sqlite(tmp_path / "store")) as store:
        store.shared = True
        live, engine = LiveIndex(Others(store, DOCUMENTS)), MemoryIndex()
        live.use(engine)
        words_of = Documents.words_of

        def failing(documents: Documents, role: str, parts: tuple[object, ...]) -> object:
            if any(getattr(part, "text", "") == "bad" for part in parts):
                raise ValueError("no words")
            return words_of(documents, role, parts)  # type: ignore[arg-type]

        monkeypatch.setattr(Documents, "words_of", failing)
        turns: list[NewTurn] = [said("zebra"), said("bad"), said("a zebra")]
        store.append(Append(AgentKey("a"), "c", turns), now=1)
        assert matches(live.lists()) == [1, 3]
