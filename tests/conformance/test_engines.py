"""Every engine gives the same lists: memory, which runs the judge as it stands; tantivy; and tantivy with turns that it lacks yet.

`matches` and `near` are compared in members, ranks and order, on pages of any length; `partial` and MATCH_ANY_WORD, whose order is each
engine's own, as sets.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.index import Batch, Document, Found, Lists, Reach
from aforesaid_server.index.live import LiveIndex
from aforesaid_server.index.memory import MemoryIndex, MemoryLists
from aforesaid_server.index.tantivy import TantivyIndex
from aforesaid_server.index.vocabulary import LONGEST_WORD
from aforesaid_server.query.judge import Question
from aforesaid_server.query.parse import parse
from tests.conformance.worlds import ENGLISH, EVERY_THEME, STORIES, Asked, Follow, Step, World, batch_of, brought, single_words
from tests.text.effort import examples

_count = itertools.count()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TantivyIndex]:
    """One engine for all worlds, kept apart by a pair of their scope: it has grown, merged and forgotten like one in use."""
    opened = TantivyIndex(tmp_path_factory.mktemp("engine"))
    yield opened
    opened.close()


LookUp = Callable[[Question, Reach, Found | None, int], list[Found]]


def paged(look_up: LookUp, question: Question, reach: Reach, limit: int, alive: Collection[int] | None = None) -> list[Found]:
    """Turns the pages of a list to the end; what is not `alive` any more is left out, as a search does that asks the store."""
    listed: list[Found] = []
    after: Found | None = None
    while True:
        page = look_up(question, reach, after, limit)
        assert len(page) <= limit
        listed += page
        if len(page) < limit:
            break
        after = page[-1]
    assert len({found.number for found in listed}) == len(listed), "no turn comes twice"
    return [found for found in listed if alive is None or found.number in alive]


def some(lists: Lists, question: Question, reach: Reach, alive: Collection[int] | None = None) -> tuple[set[int], set[int]]:
    """Returns the members of `partial` and of MATCH_ANY_WORD."""
    found = []
    for every_word in (False, True):
        weighed = lists.partial(question, reach, every_word=every_word)
        numbers = [one.number for one in weighed]
        assert len(set(numbers)) == len(numbers)
        assert [one.weight for one in weighed] == sorted((one.weight for one in weighed), reverse=True)
        found.append({number for number in numbers if alive is None or number in alive})
    return found[0], found[1]


def same(judge: Lists, other: Lists, asked: Sequence[Asked], world: World, *, dead: bool = False) -> None:
    """Asks two engines the same; with `dead`, the other one may still know turns that are gone."""
    alive = frozenset(world.truth) if dead else None
    for ask in asked:
        question, reach = ask.question(), ask.reach(world)
        if question is None:
            continue
        matches = judge.matches(question, reach, None, 1_000)
        near = judge.near(question, reach, None, 1_000)
        assert paged(other.matches, question, reach, ask.limit, alive) == matches, ask
        assert paged(other.near, question, reach, ask.limit, alive) == near, ask
        partial, any_word = some(judge, question, reach)
        assert some(other, question, reach, alive) == (partial, any_word), ask
        # A caller that has the whole of near gives it.
        known = frozenset(found.number for found in near)
        given_near = {one.number for one in other.partial(question, reach, every_word=False, near=known)}
        assert given_near & frozenset(world.truth) == partial, ask
        # What the lists promise of each other.
        listed = {found.number for found in matches}
        assert not listed & known
        assert not partial & (listed | known)
        if not question.bound:
            assert listed <= any_word


@examples(25)
@given(STORIES)
def test_engines_give_the_same_lists(engine: TantivyIndex, story: tuple[list[Step], list[Asked]]) -> None:
    steps, asked = story
    world = World(str(next(_count)), engine.head)
    live = LiveIndex()
    live.use(engine)
    for step in steps:
        if isinstance(step, Follow):
            follow(world, live, engine, step.most)
        elif changes := world.do(step):
            live.add(brought(changes))
    judge = MemoryLists(world.documents())
    same(judge, live.lists(), asked, world, dead=True)
    follow(world, live, engine, 1_000)
    same(judge, live.lists(), asked, world)
    same(judge, engine.lists()[1], asked, world)


def follow(world: World, live: LiveIndex, engine: TantivyIndex, most: int) -> None:
    if changes := world.read(engine.head, most):
        live.apply(engine, batch_of(changes))


@examples(40)
@given(STORIES, st.integers(1, 6))
def test_memory_takes_batches_as_any_engine(story: tuple[list[Step], list[Asked]], size: int) -> None:
    steps, asked = story
    world, memory = World("", 0), MemoryIndex()
    for step in steps:
        world.do(step)
        if isinstance(step, Follow) and (changes := world.read(memory.head, step.most)):
            memory.apply(batch_of(changes))
    while changes := world.read(memory.head, size):
        memory.apply(batch_of(changes))
    assert memory.head == world.head
    same(MemoryLists(world.documents()), memory.lists()[1], asked, world)


@examples(3)
@given(EVERY_THEME)
def test_each_word_alone(engine: TantivyIndex, steps: list[Step]) -> None:
    world = World(str(next(_count)), engine.head)
    for step in steps:
        world.do(step)
    engine.apply(batch_of(world.read(engine.head, 1_000)))
    same(MemoryLists(world.documents()), engine.lists()[1], [*single_words()], world)
