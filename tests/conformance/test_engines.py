"""Every engine gives the same lists: memory, which runs the judge as it stands; tantivy; and tantivy with turns that it lacks yet.

`matches` and `near` are compared in members, ranks and order, on pages of any length; `partial` and MATCH_ANY_WORD, whose order is
each engine's own, as sets.
"""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.index.live import LiveIndex
from aforesaid_server.index.memory import MemoryIndex, MemoryLists
from aforesaid_server.index.tantivy import TantivyIndex
from tests.conformance.comparing import same
from tests.conformance.worlds import EVERY_THEME, STORIES, Asked, Follow, Step, World, batch_of, brought, single_words
from tests.text.effort import examples

_count = itertools.count()


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
    """Has the engine take so many changes, as they now stand in the log."""
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
