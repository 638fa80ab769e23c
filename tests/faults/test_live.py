"""What the follower and the writers do at the same time, in every order that it can happen in: LiveIndex over the plain engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aforesaid.model import Source, Text
from aforesaid_server.errors import Unavailable
from aforesaid_server.index import Batch, Reach
from aforesaid_server.index.document import Brought, Documents, Fresh
from aforesaid_server.index.live import LiveIndex
from aforesaid_server.index.memory import MemoryIndex
from aforesaid_server.query.judge import Question
from aforesaid_server.query.parse import parse
from aforesaid_server.store import Imported, StoredAgent, StoredConversation, StoredTurn, TurnInPlace
from aforesaid_server.text.transcript import Searched
from aforesaid_server.text.words import Analyser

AGENT = StoredAgent(1, "a", "a", "implementer", False, {}, None, "")
CONVERSATION = StoredConversation(1, 1, "c", "", Source(), 1, 0, 0, 0, 0)
DOCUMENTS = Documents(Analyser("english"), Searched(False, False))


def said(number: int, text: str = "word", role: str = "user", *, position: int = 0) -> Fresh:
    """A turn of that number, at its place in the log or a later one."""
    turn = StoredTurn(number, 1, f"t{number}", number, role, (Text(text),), 0, 0, len(text), bytes(32))
    return Fresh(position or number, DOCUMENTS.of(TurnInPlace(turn, CONVERSATION, AGENT)))


def brought(*fresh: Fresh, forget: tuple[int, ...] = (), position: int = 0) -> Brought:
    return Brought(position or max(one.position for one in fresh), fresh, forget, ())


def batch(*fresh: Fresh) -> Batch:
    return Batch(fresh[-1].position, [one.document for one in fresh])


def found(live: LiveIndex, text: str = "word", **reach: object) -> list[int]:
    question = Question(parse(text, DOCUMENTS.analyser), as_typed=False)
    within = replace(Reach({}), **reach)  # type: ignore[arg-type] # the fields of Reach
    return sorted(one.number for one in live.lists().matches(question, within, None, 1_000))


@pytest.fixture
def engine() -> MemoryIndex:
    return MemoryIndex()


@pytest.fixture
def live(engine: MemoryIndex) -> LiveIndex:
    """One that searches in the engine."""
    index = LiveIndex()
    index.use(engine)
    return index


def test_a_write_is_found_before_and_after_the_engine_takes_it(live: LiveIndex, engine: MemoryIndex) -> None:
    live.add(brought(said(1)))
    assert found(live) == [1]
    live.add(brought(said(2)))
    live.apply(engine, batch(said(1)))
    assert found(live) == [1, 2]
    live.apply(engine, batch(said(2)))
    assert found(live) == [1, 2]


def test_the_follower_may_be_quicker_than_the_writer(live: LiveIndex, engine: MemoryIndex) -> None:
    """The log has a write before its writer comes to tell of it. No batch follows that would make room again."""
    turns = [said(number) for number in range(1, 51)]
    live.apply(engine, batch(*turns))
    live.add(brought(*turns))
    assert live.wait_for_room(50, 0), "turns that the engine holds wait for ever"
    assert found(live) == list(range(1, 51))


def test_writers_may_tell_in_another_order_than_that_of_the_log(live: LiveIndex) -> None:
    """The second write changed the role of the turn that the first one wrote, and told of it first."""
    live.add(brought(said(1, role="assistant", position=2), forget=(1,)))
    live.add(brought(said(1, role="user")))
    assert found(live, roles=frozenset({"assistant"})) == [1]
    assert found(live, roles=frozenset({"user"})) == []


def test_writers_wait_only_for_what_an_engine_will_take() -> None:
    """While an index is being rebuilt, which may take long, nobody searches and writes go on."""
    live = LiveIndex()
    for number in range(1, 2_001):
        live.add(brought(said(number, "x")))
    assert live.wait_for_room(1, 0)
    with pytest.raises(Unavailable):
        live.lists()


def test_what_is_written_while_a_new_engine_catches_up_is_found(engine: MemoryIndex) -> None:
    """Nothing falls between the last batch that it takes and the first search in it."""
    live = LiveIndex()
    live.add(brought(said(1)))
    live.expect(engine.head)
    live.add(brought(said(2)))
    live.apply(engine, batch(said(1)))
    live.add(brought(said(3)))
    live.apply(engine, batch(said(2)))
    live.use(engine)
    assert found(live) == [1, 2, 3]
    assert not live.wait_for_room(1, 0), "the third waits for the engine"


def test_an_engine_that_fails_takes_its_fresh_turns_along(live: LiveIndex, engine: MemoryIndex) -> None:
    """They are in the log, from which the next one is built."""
    live.add(brought(said(1)))
    live.use(None)
    assert live.wait_for_room(1, 0)
    live.apply(engine, batch(said(1)))
    live.use(engine)
    assert found(live) == [1]


def test_how_much_of_an_import_is_pending(live: LiveIndex, engine: MemoryIndex) -> None:
    live.imported([Imported(1, 10)])
    live.imported([Imported(21, 25)])
    assert live.pending(Reach({})) == 15
    live.apply(engine, batch(said(4)))
    assert live.pending(Reach({})) == 11
    live.apply(engine, batch(said(20)))
    assert live.pending(Reach({})) == 5
    live.apply(engine, batch(said(30)))
    assert live.pending(Reach({})) == 0
    live.imported([Imported(26, 30)])
    assert live.pending(Reach({})) == 0, "the follower was quicker"


def test_turns_that_wait_behind_an_import_are_weighed_too(live: LiveIndex, engine: MemoryIndex) -> None:
    """By another scale than the engine's: all are there, in an order that puts the best of both first."""
    live.apply(engine, batch(said(1, "word"), said(2, "word another of them all")))
    live.imported([Imported(3, 9_000)])
    live.add(brought(said(9_001, "another"), said(9_002, "another of them")))
    live.hurry_fresh(600)  # would wait for the import, which nobody brings in
    question = Question(parse("word another zebra", DOCUMENTS.analyser), as_typed=False)
    weighed = live.lists().partial(question, Reach({}), every_word=True)
    assert {one.number for one in weighed} == {1, 2, 9_001, 9_002}
    assert [one.weight for one in weighed] == sorted((one.weight for one in weighed), reverse=True)
    assert {one.number for one in weighed[:2]} == {2, 9_001}
