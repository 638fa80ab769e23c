"""The log of changes as a follower reads it. That any sequence of writes can be followed is in test_model.py."""

from __future__ import annotations

from aforesaid.model import Text
from aforesaid_server.store import AgentKey, Append, Forget, ForgetConversation, Put
from aforesaid_server.store.changelog import changes_after
from aforesaid_server.store.sql import SqlStore
from tests.store.plain import said

ADA = AgentKey("ada")


def test_an_empty_store(store: SqlStore) -> None:
    assert (store.head(), store.changes(0, 10), store.pending(0), store.pending(7)) == (0, [], 0, 0)
    assert store.turns([]) == store.turns([1, 2]) == {}


def test_a_turn_stands_at_the_last_change_that_puts_it(store: SqlStore) -> None:
    store.append(Append(ADA, "c", [said("one", "a"), said("two", "b")]), now=1)
    store.append(Append(ADA, "c", [said("ONE", "a")]), now=2)
    store.write(Append(ADA, "c", [said("ONE", "a", role="tool"), said("three", "d")]), expected_revision=None, now=3)
    log = store.changes(0, 10)
    turns = store.turns_from(log[4].place.conversation.pk if isinstance(log[4], Put) and log[4].place else 1, 0, 9)
    assert [turn.turn_id for turn in turns] == ["a", "d"]
    assert [(type(change), change.number) for change in log] == [
        (Put, 1),
        (Put, 2),
        (Put, 3),
        (Forget, 4),
        (Put, 5),
        (Put, 6),
    ]
    assert log[0] == Put(1, 1, 0, None)
    assert log[1] == Put(2, 2, 0, None)
    assert log[2] == Put(3, 3, 1, None)
    assert log[3] == Forget(4, 2)
    assert [(change.turn_number, change.replaces) for change in log[4:] if isinstance(change, Put)] == [(3, 0), (6, 0)]
    assert [change.place.turn for change in log[4:] if isinstance(change, Put) and change.place] == turns
    assert [turn.number for turn in turns] == [3, 6]
    assert (store.head(), store.pending(0), store.pending(4), store.pending(6)) == (6, 6, 2, 0)
    assert store.changes(4, 1) == log[4:5]
    assert store.changes(6, 10) == []


def test_a_deleted_conversation_is_one_change(store: SqlStore) -> None:
    written = store.append(Append(ADA, "c", [said("x")] * 3), now=1)
    store.delete(written.agent.pk, "c", now=2)
    assert store.changes(3, 9) == [ForgetConversation(4, written.conversation.pk)]


def test_a_piece_of_the_log_ends_where_the_text_is_enough(store: SqlStore) -> None:
    texts = ["x" * 10, "x" * 60, "", "x" * 30, "x" * 500, "x"]
    store.append(Append(ADA, "c", [said(text) for text in texts]), now=1)
    with store._reading.connect() as connection:  # the budget is not for callers to choose
        pieces, after = [], 0
        while piece := changes_after(connection, after, 100, budget=100):
            pieces.append([change.place.turn.content_length for change in piece if isinstance(change, Put) and change.place])
            after = piece[-1].number
    assert pieces == [[10, 60, 0, 30], [500], [1]]


def test_texts_of_the_log_are_those_of_the_turns(store: SqlStore) -> None:
    store.append_many([Append(ADA, f"c{number}", [said(f"{number} {k}") for k in range(3)]) for number in range(5)], now=1)
    for change in store.changes(0, 99):
        assert isinstance(change, Put)
        assert change.place is not None
        number, k = divmod(change.number - 1, 3)
        assert change.place.turn.parts == (Text(f"{number} {k}"),)
        assert (change.place.conversation.conversation_id, change.place.agent.agent_id) == (f"c{number}", "ada")
        assert store.turns([change.number]) == {change.number: change.place}
