"""The end of the log, as a search reads it that is to find what other processes wrote; and whose store it is."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from aforesaid.model import Source
from aforesaid_server.store import AgentKey, Append, Change, Forget, ForgetConversation, Imported, Put, Tail
from aforesaid_server.store.sql import SqlStore
from aforesaid_server.store.tail import tail_after
from tests.store.plain import said

ADA, EVE = AgentKey("ada", {"user": "ada"}), AgentKey("eve")


def told(changes: Sequence[Change]) -> list[tuple[int, str]]:
    """Each change by number, with the text that it puts; a number in brackets puts nothing any more."""
    found = []
    for change in changes:
        match change:
            case Put(number, _, _, place):
                found.append((number, place.turn.turn_id if place else "-"))
            case Forget(number, turn_number):
                found.append((number, f"forget {turn_number}"))
            case ForgetConversation(number):
                found.append((number, "forget all"))
    return found


def test_an_empty_store(store: SqlStore) -> None:
    assert store.tail(0, 10) == Tail(0, [], [])


def test_what_imports_made_is_told_as_stretches(store: SqlStore) -> None:
    """One for each row of changes of one agent, whatever the conversation, however many imports made them."""
    ada = store.append(Append(ADA, "c", [said("one", "a")]), now=1).agent.pk
    imports = [Append(ADA, "c", [said("x")] * 2), Append(ADA, "d", [said("x")]), Append(EVE, "c", [said("x")] * 3)]
    store.append_many(imports, now=2)
    store.append_many([Append(EVE, "c", [said("x")])], now=3)
    store.append(Append(ADA, "c", [said("two", "b")]), now=4)
    store.append_many([Append(ADA, "c", [said("x")])], now=5)
    eve = store.agents_with_id("eve", {})[0].pk
    stretches = [Imported(2, 4, ada, {"user": "ada"}), Imported(5, 8, eve, {}), Imported(10, 10, ada, {"user": "ada"})]
    tail = store.tail(0, 10)
    assert (tail.head, told(tail.changes), tail.imported) == (10, [(1, "a"), (9, "b")], stretches)
    tail = store.tail(3, 10)
    assert (told(tail.changes), tail.imported) == ([(9, "b")], [Imported(4, 4, ada, {"user": "ada"}), *stretches[1:]])
    assert store.tail(10, 10) == Tail(10, [], [])


def test_a_tail_ends_where_it_holds_enough(store: SqlStore) -> None:
    """What is beyond is not told, imports neither; read on from there it is all."""
    store.append(Append(EVE, "c", [said("one", "a"), said("two", "b")]), now=1)
    store.append_many([Append(EVE, "c", [said("x")])], now=2)
    eve = store.agents_with_id("eve", {})[0].pk
    store.append(Append(EVE, "c", [said("x" * 500, "d"), said("x" * 500, "e")]), now=3)
    assert [(tail.head, told(tail.changes)) for tail in [store.tail(0, 1), store.tail(0, 2)]] == [
        (1, [(1, "a")]),
        (2, [(1, "a"), (2, "b")]),
    ]
    tail = store.tail(2, 1)
    assert (tail.head, told(tail.changes), tail.imported) == (4, [(4, "d")], [Imported(3, 3, eve)])
    with store._reading.connect() as connection:  # the budget is not for callers to choose
        tails, after = [], 0
        while (tail := tail_after(connection, after, 10, budget=600)).head > after:
            tails.append(told(tail.changes))
            after = tail.head
    assert tails == [[(1, "a"), (2, "b"), (4, "d")], [(5, "e")]]


def test_a_turn_that_an_import_put_again_is_there(store: SqlStore) -> None:
    """It was written by a write that was acknowledged: that an import has changed the project since leaves it in its place."""
    store.append(Append(EVE, "c", [said("one", "a"), said("two", "b")]), now=1)
    store.append_many([Append(EVE, "c", [said("three", "d")], source=Source(project="/p"))], now=2)
    tail = store.tail(0, 10)
    assert (tail.head, told(tail.changes), [(one.first, one.last) for one in tail.imported]) == (5, [(1, "a"), (2, "b")], [(3, 5)])
    assert {change.place.conversation.source.project for change in tail.changes if isinstance(change, Put) and change.place} == {
        "/p"
    }


def test_whoever_reads_the_log_to_a_number_has_met_all_turns_up_to_there(store: SqlStore) -> None:
    """Also those that later changes put again."""
    store.append(Append(EVE, "c", [said("one", "a"), said("two", "b")]), now=1)
    store.append(Append(EVE, "c", [said("three", "d")], source=Source(project="/p")), now=2)
    store.append(Append(EVE, "c", [said("ONE", "a")]), now=3)
    assert store.head() == 6
    assert [told(store.changes(after, 2)) for after in (0, 2, 4)] == [
        [(1, "-"), (2, "b")],
        [(3, "-"), (4, "b")],
        [(5, "d"), (6, "a")],
    ]
    assert told(store.changes(0, 10)) == [(1, "-"), (2, "-"), (3, "-"), (4, "b"), (5, "d"), (6, "a")]


# Whose store it is


def test_the_first_claim_counts(store: SqlStore) -> None:
    assert store.secret_check() is None
    checks = [bytes([number]) * 32 for number in range(8)]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(store.claim, checks))
    assert answers.count(True) == 1
    kept = checks[answers.index(True)]
    assert store.secret_check() == kept
    assert [store.claim(check) for check in checks] == answers
