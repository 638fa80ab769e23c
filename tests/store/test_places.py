"""Where turns stand, without their texts: by number, and in the order of a conversation; on every engine."""

from __future__ import annotations

from aforesaid_server.store import AgentKey, Append, TurnPlace
from aforesaid_server.store.sql import SqlStore
from tests.store.plain import said

ADA = AgentKey("ada")


def test_places_are_those_of_the_turns(store: SqlStore) -> None:
    one = store.append(Append(ADA, "one", [said(f"{place} é") for place in range(2_100)]), now=1)
    two = store.append(Append(ADA, "two", [said("a"), said("b")]), now=2)
    expected = {
        turn.turn.number: TurnPlace(turn.turn.number, turn.turn.conversation_pk, turn.turn.seq, turn.turn.content_length)
        for written in (one, two)
        for turn in written.turns
    }
    found = store.places([*expected, 10**9])  # more than one statement takes
    assert {place.number: place for place in found} == expected
    assert len(found) == len(expected)
    assert store.places([]) == []
    pk = one.conversation.pk
    in_order = sorted((place for place in expected.values() if place.conversation_pk == pk), key=lambda place: place.seq)
    assert store.places_from(pk, 0, 5_000) == in_order
    assert store.places_from(pk, 7, 5) == in_order[7:12]
    assert store.places_from(pk, 2_099, 5) == in_order[-1:]
    assert store.places_from(pk, 2_100, 5) == store.places_from(10**9, 0, 5) == []


def test_a_turn_that_was_rewritten_or_moved(store: SqlStore) -> None:
    """Its old number is gone; one that only moved keeps its number and has another place."""
    first = store.append(Append(ADA, "talk", [said("a", "a"), said("b", "b")]), now=1)
    numbers = [turn.turn.number for turn in first.turns]
    store.write(Append(ADA, "talk", [said("new", "new"), said("other", "a"), said("b", "b")]), expected_revision=None, now=2)
    (moved,) = store.places(numbers)
    assert (moved.number, moved.seq) == (numbers[1], 2)
    assert [place.seq for place in store.places_from(moved.conversation_pk, 0, 10)] == [0, 1, 2]
    store.delete(first.agent.pk, "talk", now=3)
    assert store.places(numbers) == store.places_from(moved.conversation_pk, 0, 10) == []
