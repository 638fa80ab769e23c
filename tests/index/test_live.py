"""LiveIndex and threads: who waits for whom, and what is merged. Nothing here sleeps: each side waits for what the other one does.

tests/faults/test_live.py holds what the follower and the writers may do to each other in every order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from aforesaid.model import Text
from aforesaid_server.errors import Unavailable
from aforesaid_server.index import MOST_PARTIAL, Batch, Found, Lists, Reach, Weighed
from aforesaid_server.index.live import LiveIndex
from aforesaid_server.index.memory import MemoryIndex
from aforesaid_server.query.judge import Question
from aforesaid_server.store import Imported
from tests.index.said import ALL, OWN_TOO, ask, batch, brought, document, held, holding, matches, near, newest, of_parts

T = TypeVar("T")
LONG = 30.0
"""Seconds after which a test that hangs fails; none waits so long."""


@pytest.fixture
def engine() -> MemoryIndex:
    return MemoryIndex()


@pytest.fixture
def live(engine: MemoryIndex) -> LiveIndex:
    index = LiveIndex()
    index.use(engine)
    return index


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


class Gate:
    """Calls something in another thread, which has begun to wait when `wait_until` returns."""

    def __init__(self, live: LiveIndex, threads: ThreadPoolExecutor) -> None:
        self._condition = live._changed
        self._threads = threads

    def waiting(self, call: Callable[[], T]) -> Callable[[], T]:
        """Starts a call that waits; returns what fetches its answer."""
        entered = threading.Event()
        wait_for = self._condition.wait_for

        def watched(predicate: Callable[[], T], timeout: float | None = None) -> T:
            entered.set()  # under the lock, which is let go of once it waits
            return wait_for(predicate, timeout)

        setattr(self._condition, "wait_for", watched)  # noqa: B010 - a method of this one object
        future = self._threads.submit(call)
        assert entered.wait(LONG)
        with self._condition:
            setattr(self._condition, "wait_for", wait_for)  # noqa: B010
        assert not future.done()
        return lambda: future.result(LONG)


@pytest.fixture
def gate(live: LiveIndex, threads: ThreadPoolExecutor) -> Gate:
    return Gate(live, threads)


# -- merging


def test_without_an_engine_nothing_is_answered(live: LiveIndex) -> None:
    live.use(None)
    with pytest.raises(Unavailable, match="the index is being rebuilt: see /readyz"):
        live.lists()


def test_fresh_turns_stand_among_the_engines(live: LiveIndex, engine: MemoryIndex) -> None:
    live.apply(engine, batch(3, document(1, "zebra"), document(2, "zebra pad pad"), document(3, "zebras")))
    live.add(brought(5, document(4, "zebra pad"), document(5, "a zebra")))
    lists = live.lists()
    assert matches(lists) == [1, 5, 4, 2, 3]
    # Page by page the same.
    paged: list[Found] = []
    while page := lists.matches(ask("zebra"), ALL, paged[-1] if paged else None, 2):
        paged += page
    assert [one.number for one in paged] == [1, 5, 4, 2, 3]


def test_lists_show_one_moment(live: LiveIndex, engine: MemoryIndex) -> None:
    live.add(brought(1, document(1)))
    before = live.lists()
    live.add(brought(2, document(2)))
    live.apply(engine, batch(2, document(1), document(2)))
    assert (matches(before), matches(live.lists())) == ([1], [2, 1])


def test_a_fresh_turn_hides_what_the_engine_has_under_its_number(live: LiveIndex, engine: MemoryIndex) -> None:
    """Another role or time; all of a page may be hidden so, and it is full nevertheless."""
    live.apply(engine, batch(4, *(document(number) for number in range(1, 5))))
    live.add(brought(6, document(4, "okapi"), document(3, "quagga")))
    lists = live.lists()
    assert [one.number for one in lists.matches(ask("zebra"), ALL, None, 2)] == [2, 1]
    assert (matches(lists, "okapi"), matches(lists, "quagga")) == ([4], [3])


def test_what_is_forgotten_is_fresh_no_more(live: LiveIndex) -> None:
    live.add(brought(3, document(1), document(2, conversation=2), document(3, conversation=2)))
    live.add(brought(4, forget=[1]))
    assert matches(live.lists()) == [3, 2]
    live.add(brought(5, document(5), forget_conversations=[2]))
    assert matches(live.lists()) == [5]


def test_near_is_merged_by_step(live: LiveIndex, engine: MemoryIndex) -> None:
    live.apply(engine, batch(2, document(1, "unzebra"), document(2, "zebraland")))
    live.add(brought(4, document(3, "getZebra"), document(4, "unzebras")))
    assert near(live.lists(), "zebra") == [3, 2, 1, 4]
    assert near(live.lists(), "ebra") == [1, 3, 4, 2]


def test_newest_is_merged_by_time_and_number(live: LiveIndex, engine: MemoryIndex) -> None:
    live.apply(engine, batch(4, document(1, at=5), document(2, at=-3), document(3, "zebras", at=9), document(4, at=5)))
    live.add(brought(8, document(5, at=5), document(6, at=-3), document(7, "a zebra", at=10), document(8, at=-(2**60))))
    for limit in (1, 2, 3, 100):
        assert newest(live.lists(), limit=limit) == [7, 3, 5, 4, 1, 6, 2, 8]


def test_a_fresh_turn_of_another_time_hides_the_engines(live: LiveIndex, engine: MemoryIndex) -> None:
    live.apply(engine, batch(3, *(document(number, at=number) for number in (1, 2, 3))))
    live.add(brought(5, document(3, at=-1), document(1, at=7)))
    assert newest(live.lists(), limit=1) == [1, 2, 3]


def test_a_fresh_turn_is_looked_at_without_own_searches(live: LiveIndex, engine: MemoryIndex) -> None:
    """The same turn, put again because its result turned out to be a search's, hides what the engine has of it."""
    live.apply(engine, batch(2, document(1, "zebra red"), document(2, "a zebra")))
    live.add(brought(3, document(1, "zebra red", left=["red"])))
    lists = live.lists()
    assert (matches(lists), newest(lists), near(lists, "ebra")) == ([2], [2], [2])
    assert (matches(lists, reach=OWN_TOO), near(lists, "ebra", OWN_TOO)) == ([2, 1], [2, 1])
    assert matches(lists, "red") == [1]
    live.apply(engine, batch(3, document(1, "zebra red", left=["red"]), forget=[1]))
    assert (matches(live.lists()), matches(live.lists(), reach=OWN_TOO)) == ([2], [2, 1])


class Weighing(MemoryIndex):
    """An engine whose lists hold what they are told to."""

    def __init__(self, weighed: list[Weighed]) -> None:
        super().__init__()
        self._weighed = weighed

    def lists(self) -> tuple[int, Lists]:  # type: ignore[override]
        _, lists = super().lists()
        weighed = self._weighed

        def partial(question: Question, reach: Reach, *, every_word: bool, near: frozenset[int] | None = None) -> list[Weighed]:
            return weighed

        lists.partial = partial  # type: ignore[method-assign]
        return self.head, lists


def test_any_letters_may_stand_in_a_fresh_turn(live: LiveIndex, engine: MemoryIndex) -> None:
    """Until it is in the engine; conversations come whole, from both."""
    texts = {1: "zebra", 2: "okapi", 3: "zebra", 4: "zebra", 5: "zebra"}
    live.apply(engine, batch(5, *(of_parts(number, Text(text), conversation=number) for number, text in texts.items())))
    lists = live.lists()
    assert holding(lists, "zebra") == [5, 4, 3, 1]
    live.add(
        brought(8, document(6, "okapi", conversation=2), document(7, "okapi", conversation=4), document(5, "okapi", conversation=5))
    )
    lists = live.lists()
    assert holding(lists, "zebra") == [5, 4, 7, 3, 6, 1]
    pages = {after: [one.number for one in held(lists, "zebra", after=after, limit=1)] for after in (None, 5, 4, 3, 2, 1)}
    assert pages == {None: [5], 5: [4, 7], 4: [3], 3: [6], 2: [1], 1: []}
    live.apply(engine, batch(8, of_parts(6, Text("okapi"), conversation=2), of_parts(7, Text("zebra"), conversation=4), forget=[5]))
    assert holding(live.lists(), "zebra") == [4, 7, 3, 1]


def test_what_a_fresh_turn_hides_ends_no_list(live: LiveIndex, engine: MemoryIndex) -> None:
    """The highest conversations are in the engine as they were; fresh, their turns are out of reach."""
    live.apply(engine, batch(3, *(of_parts(number, Text("zebra"), conversation=number) for number in (1, 2, 3))))
    live.add(brought(5, document(2, "zebra", conversation=2), document(3, "zebra", conversation=3)))  # of a user
    reach = Reach({}, roles=frozenset({"assistant"}))
    assert [one.number for one in held(live.lists(), "zebra", reach, limit=1)] == [1]


def test_no_more_than_the_best_hundred_and_fifty_of_both() -> None:
    live = LiveIndex()
    live.use(Weighing([Weighed(number, 300.0 - number) for number in range(1, 151)]))
    fresh = [document(number, "zebra " + "pad " * (number % 7)) for number in range(151, 251)]
    live.add(brought(250, *fresh))
    found = live.lists().partial(ask("zebra okapi"), ALL, every_word=False)
    assert len(found) == MOST_PARTIAL
    assert [one.weight for one in found] == sorted((one.weight for one in found), reverse=True)
    assert {one.number for one in found[:2]} & set(range(151, 251)), "the best of the fresh are as good as the engine's best"


# -- waiting


def test_a_write_waits_for_room(live: LiveIndex, engine: MemoryIndex, gate: Gate) -> None:
    turns = [document(number) for number in (1, 2, 3)]
    live.add(brought(3, *turns))
    assert live.wait_for_room(4, 0)
    assert not live.wait_for_room(3, 0)
    answer = gate.waiting(lambda: live.wait_for_room(3, LONG))
    live.apply(engine, batch(1, turns[0]))
    assert answer()
    assert not live.wait_for_room(2, 0)


def test_room_is_made_by_what_is_forgotten(live: LiveIndex, gate: Gate) -> None:
    live.add(brought(2, document(1), document(2)))
    answer = gate.waiting(lambda: live.wait_for_room(2, LONG))
    live.add(brought(3, forget=[2]))
    assert answer()


def test_room_is_made_when_the_engine_goes(live: LiveIndex, gate: Gate) -> None:
    live.add(brought(2, document(1), document(2)))
    answer = gate.waiting(lambda: live.wait_for_room(1, LONG))
    live.use(None)
    assert answer()


def test_who_hurries_waits_for_what_was_written_before(live: LiveIndex, engine: MemoryIndex, gate: Gate) -> None:
    live.add(brought(2, document(1), document(2)))
    answer = gate.waiting(lambda: live.hurry(LONG))
    live.add(brought(3, document(3)))
    live.apply(engine, batch(1, document(1)))
    live.apply(engine, batch(2, document(2)))
    assert answer(), "the third came later"
    assert engine.head == 2


def test_who_hurries_does_not_wait_for_nothing(live: LiveIndex, engine: MemoryIndex) -> None:
    assert live.hurry(LONG)
    live.apply(engine, batch(1, document(1)))
    assert live.hurry(LONG)


def test_who_hurries_waits_no_longer_than_told(live: LiveIndex) -> None:
    live.add(brought(1, document(1)))
    assert not live.hurry(0)
    assert not live.hurry(0.001)


def test_who_hurries_waits_for_an_import_too(live: LiveIndex, engine: MemoryIndex, gate: Gate) -> None:
    live.imported([Imported(1, 500)])
    answer = gate.waiting(lambda: live.hurry(LONG))
    live.apply(engine, Batch(500))
    assert answer()
    assert live.pending(Reach({})) == 0


def test_fresh_turns_are_hurried_and_an_import_after_them_is_not(live: LiveIndex, engine: MemoryIndex, gate: Gate) -> None:
    live.add(brought(1, document(1)))
    live.imported([Imported(2, 10_000)])
    answer = gate.waiting(lambda: live.hurry_fresh(LONG))
    live.apply(engine, batch(1, document(1)))
    assert answer() is None
    assert live.pending(Reach({})) == 9_999


def test_nobody_learns_of_the_imports_of_others(live: LiveIndex) -> None:
    """ "Nothing crosses" a scope, and `turns_pending` "never counts text that the caller may not read"."""
    live.imported([Imported(1, 4, 7, {"user": "ada"}), Imported(5, 6, 8, {"user": "bob"}), Imported(7, 7, 9)])
    assert [live.pending(Reach(scope)) for scope in ({}, {"user": "ada"}, {"user": "bob"}, {"user": "eve"})] == [7, 4, 2, 0]
    assert [live.pending(Reach({}, frozenset(pks))) for pks in ({7}, {8, 9}, {1}, ())] == [4, 3, 0, 0]
    assert live.pending(Reach({"user": "ada"}, frozenset({8}))) == 0


# -- the follower


def following(live: LiveIndex, threads: ThreadPoolExecutor, lag: float) -> Callable[[], None]:
    """Waits for work in another thread; returns what sees that it came."""
    future = threads.submit(live.wait_for_work, lag)
    return lambda: future.result(LONG)


def test_the_follower_wakes_when_something_is_written(live: LiveIndex, threads: ThreadPoolExecutor) -> None:
    came = following(live, threads, 0.001)
    live.add(brought(1, document(1)))
    came()
    came = following(live, threads, 0.001)
    live.imported([Imported(2, 3)])
    came()


def test_the_follower_waits_for_more_unless_somebody_hurries(live: LiveIndex, threads: ThreadPoolExecutor) -> None:
    live.add(brought(1, document(1)))
    came = following(live, threads, LONG * 10)
    live.hurry(0)
    came()
    # The hurry is over: the next write waits for more again, and the next hurry ends that too.
    live.add(brought(2, document(2)))
    came = following(live, threads, LONG * 10)
    live.hurry_fresh(0)
    came()


def test_a_hurry_before_the_follower_waits_is_not_lost(live: LiveIndex, threads: ThreadPoolExecutor) -> None:
    live.hurry(0)
    live.add(brought(1, document(1)))
    live.hurry(0)
    following(live, threads, LONG * 10)()


class Failing(MemoryIndex):
    """An engine that breaks when it is asked."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error
        self.sound = False

    def answers(self) -> bool:
        return self.sound

    def lists(self) -> tuple[int, Lists]:  # type: ignore[override]
        _, lists = super().lists()

        def fail(*_: object, **__: object) -> list[Found]:
            raise self._error

        lists.matches = lists.near = lists.partial = fail  # type: ignore[method-assign, assignment]
        return self.head, lists


class Panic(BaseException):
    """What tantivy raises where it does not know how to go on."""


@pytest.mark.parametrize("error", [ValueError("a file is gone"), Panic("index out of bounds")])
def test_a_broken_engine_is_told_and_unavailable(error: BaseException, threads: ThreadPoolExecutor) -> None:
    live, engine = LiveIndex(), Failing(error)
    live.use(engine)
    for ask_for in (matches, lambda lists: near(lists, "zebra")):
        with pytest.raises(Unavailable, match="the index has failed and will be rebuilt: see /readyz"):
            ask_for(live.lists())
    assert live.take_failure()
    assert not live.take_failure(), "told once"
    # The follower, which rebuilds it, is woken and does not wait for more.
    following(live, threads, LONG * 10)()


def test_a_question_that_no_engine_can_answer_breaks_none() -> None:
    live, engine = LiveIndex(), Failing(ValueError("a bad question"))
    live.use(engine)
    engine.sound = True
    with pytest.raises(ValueError, match="a bad question"):
        matches(live.lists())
    assert not live.take_failure()


def test_readers_and_writers_at_once(live: LiveIndex, engine: MemoryIndex, threads: ThreadPoolExecutor) -> None:
    """A reader never misses a turn that was written before it looked, and never sees one twice."""
    done = threading.Event()
    written = [0]

    def read() -> int:
        looks = 0
        while not done.is_set() or not looks:
            before = written[0]
            found = matches(live.lists())
            assert len(set(found)) == len(found)
            assert set(range(1, before + 1)) <= set(found)
            looks += 1
        return looks

    readers = [threads.submit(read) for _ in range(2)]
    try:
        for number in range(1, 201):
            live.add(brought(number, document(number)))
            written[0] = number
            if number % 10 == 0:
                live.apply(engine, batch(number, *(document(n) for n in range(number - 9, number + 1))))
    finally:
        done.set()
    assert all(reader.result(LONG) for reader in readers)
    assert live.wait_for_room(1, 0)
