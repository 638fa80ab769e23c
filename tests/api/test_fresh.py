"""Fresh: when a write returns every later search sees it, in every list; when a delete returns no list shows it; pages hold
together while others write. Writers and searchers are threads of this process, each with its own calls.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from tests.api.callers import (
    APPEND,
    DELETE,
    GET_CONVERSATION,
    LISTS,
    WRITE,
    Caller,
    hits,
    new,
    new_word,
    number,
    ok,
    turn,
    turn_ids,
)
from tests.api.doors import ConnectDoor, Json
from tests.faults.serving import wait_until

TALK = "talk"


@pytest.fixture(scope="module")
def user(service_url: str) -> Iterator[Caller]:
    door = ConnectDoor(service_url)
    yield Caller(door)
    door.close()


@pytest.fixture
def agent(user: Caller) -> Caller:
    """An agent of the test's own."""
    return user.agent(new("agent"))


@contextmanager
def meanwhile(*works: Callable[[], None]) -> Iterator[None]:
    """Does each work again and again in a thread of its own until the block ends; what one raises is raised at the end."""
    ended = threading.Event()

    def run(work: Callable[[], None]) -> None:
        while not ended.is_set():
            work()

    with ThreadPoolExecutor(len(works)) as threads:
        running = [threads.submit(run, work) for work in works]
        try:
            yield
        finally:
            ended.set()
        for one in running:
            one.result()


def delete(by: Caller, conversation_id: str) -> None:
    ok(by.call(DELETE, {"conversationId": conversation_id}))


def all_turns(by: Caller, query: str, limit: int = 100) -> list[tuple[str, str]]:
    """Conversation and id of every hit of all pages, list by list."""
    pages = list(by.pages(query, limit=limit))
    return [(hit["conversationId"], hit["turnId"]) for name in LISTS for page in pages for hit in page.body.get(name, [])]


# Each way in which a turn that says `word` is found: the query, and the list.
def lists_of(word: str) -> list[tuple[str, str]]:
    return [(word, "matches"), (word[1:-1], "near"), (f"{word} {new_word()}", "partial")]


def assert_in_every_list(by: Caller, word: str, turn_id: str) -> None:
    for query, name in lists_of(word):
        assert [hit["turnId"] for hit in ok(by.search(query)).body.get(name, [])] == [turn_id], name


def assert_in_no_list(by: Caller, word: str) -> None:
    for query, _ in lists_of(word):
        assert not hits(ok(by.search(query)))


# What was written is found at once


def test_writers_and_searchers_at_once(agent: Caller) -> None:
    """Each write is looked for by its writer as soon as it has returned, and later by others; the same of each delete."""
    written: dict[str, str] = {}
    deleted: set[str] = set()
    lock = threading.Lock()

    def write() -> None:
        for place in range(8):
            talk, word = new(TALK), new_word()
            (turn_id,) = agent.say(talk, f"{word} said")
            assert_in_every_list(agent, word, turn_id)
            if place % 3 == 1:
                with lock:
                    written[word] = turn_id
                continue
            if place % 3 == 2:
                ok(agent.call(WRITE, {"conversation": {"conversationId": talk, "turns": [turn("another", turn_id="x")]}}))
            else:
                delete(agent, talk)
            assert_in_no_list(agent, word)
            with lock:
                deleted.add(word)

    def search() -> None:
        with lock:
            there, gone = list(written.items()), list(deleted)
        if there:
            assert_in_every_list(agent, *random.choice(there))
        if gone:
            assert_in_no_list(agent, random.choice(gone))

    with meanwhile(search, search), ThreadPoolExecutor(3) as threads:
        for one in [threads.submit(write) for _ in range(3)]:
            one.result()
    assert (len(written), len(deleted)) == (9, 15)
    for word, turn_id in written.items():
        assert_in_every_list(agent, word, turn_id)
    for word in deleted:
        assert_in_no_list(agent, word)


def test_many_rewrites_of_one_turn(agent: Caller) -> None:
    """After each the old text is found nowhere, and the new one once, in its place."""
    agent.say(TALK, turns=[turn("first"), turn("start", turn_id="edited"), turn("last")])
    before = new_word()
    for place in range(25):
        word = new_word()
        agent.say(TALK, turns=[turn(f"{word}{' and more' * (place % 3)}", turn_id="edited")])
        assert_in_every_list(agent, word, "edited")
        assert_in_no_list(agent, before)
        (hit,) = hits(agent.search(word))
        assert (number(hit, "seq"), number(hit, "contentOffset")) == (1, 6)
        before = word
    assert number(ok(agent.call(GET_CONVERSATION, {"conversationId": TALK})).body["conversation"], "turnCount") == 3


def test_rewrites_of_one_turn_by_several_at_once(agent: Caller) -> None:
    """One of the texts stands in the end, and that one alone is found."""
    common, words = new_word(), [new_word() for _ in range(60)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda word: agent.say(TALK, turns=[turn(f"{common} {word}", turn_id="edited")]), words))
    (stands,) = ok(agent.read(TALK)).body["turns"]
    text = stands["parts"][0]["text"]
    assert turn_ids(agent.search(common)) == ["edited"]
    assert [word for word in words if ok(agent.search(word)).body.get("matches")] == [text.split()[1]]


def test_the_same_text_again_changes_nothing(agent: Caller) -> None:
    """Neither the revision nor the order: a turn rewritten with the same text keeps its number."""
    word = new_word()
    ids = agent.say(TALK, *[f"{word} {place}" for place in range(5)])
    before = ok(agent.call(GET_CONVERSATION, {"conversationId": TALK})).body
    for place in (0, 3):
        agent.say(TALK, turns=[turn(f"{word} {place}", turn_id=ids[place])])
    assert turn_ids(agent.search(word)) == ids[::-1]
    assert ok(agent.call(GET_CONVERSATION, {"conversationId": TALK})).body == before


def test_another_role_and_time_of_the_same_text(agent: Caller) -> None:
    """What a filter looks at is as fresh as the text, where the whole conversation is written; an append of the same text changes
    nothing.
    """
    word = new_word()
    for role in ("user", "assistant", "tool", "user"):
        said = turn(word, turn_id="t", role=role, createdAt="2020-05-05T00:00:00Z")
        ok(agent.call(WRITE, {"conversation": {"conversationId": TALK, "turns": [said]}}))
        agent.say(TALK, turns=[said | {"role": "system", "createdAt": "2022-05-05T00:00:00Z"}])
        for asked in ("user", "assistant", "tool", "system"):
            assert turn_ids(agent.search(word, roles=[asked])) == (["t"] if asked == role else [])
        assert turn_ids(agent.search(word, until="2021-01-01T00:00:00Z")) == ["t"]
    said = turn(word, turn_id="t", createdAt="2021-05-05T00:00:00Z")
    ok(agent.call(WRITE, {"conversation": {"conversationId": TALK, "turns": [said], "source": {"project": "/p"}}}))
    assert turn_ids(agent.search(word, until="2021-01-01T00:00:00Z")) == []
    assert turn_ids(agent.search(word, since="2021-01-01T00:00:00Z", project="/p")) == ["t"]


def test_a_conversation_written_whole_with_fewer_turns(agent: Caller) -> None:
    """Those that it lacks are gone from every list; those that stay keep their number, and so their order."""
    word, words = new_word(), [new_word() for _ in range(6)]
    turns = [turn(f"{word} {own}", turn_id=f"t{place}") for place, own in enumerate(words)]
    ok(agent.call(WRITE, {"conversation": {"conversationId": TALK, "turns": turns}}))
    assert turn_ids(agent.search(word)) == ["t5", "t4", "t3", "t2", "t1", "t0"]
    ok(agent.call(WRITE, {"conversation": {"conversationId": TALK, "turns": [turns[4], turns[0], turns[2]]}}))
    assert turn_ids(agent.search(word)) == ["t4", "t2", "t0"]
    assert [one["turnId"] for one in ok(agent.read(TALK)).body["turns"]] == ["t4", "t0", "t2"]
    for place, own in enumerate(words):
        if place in (0, 2, 4):
            assert_in_every_list(agent, own, f"t{place}")
        else:
            assert_in_no_list(agent, own)
    ok(agent.call(WRITE, {"conversation": {"conversationId": TALK, "turns": []}}))
    assert not hits(agent.search(word))


def test_a_large_batch(agent: Caller) -> None:
    """More turns at once than ever wait for the engine; all are found when the write returns, and gone when the delete does."""
    word = new_word()
    ids = agent.say(TALK, *[f"{word} x{word}x {place}" for place in range(2_500)])
    found = all_turns(agent, word)
    assert sorted(turn_id for _, turn_id in found) == sorted(ids)
    assert len(hits(agent.search(word[1:-1], pagination={"limit": 100}))) == 100
    delete(agent, TALK)
    for query in (word, word[1:-1], f"{word} {new_word()}"):
        assert not hits(agent.search(query))


def test_five_thousand_turns_as_fast_as_they_go(agent: Caller) -> None:
    """Writers wait when the index is behind; none is refused and no turn is lost."""
    word = new_word()

    def write(place: int) -> list[str]:
        return agent.say(f"c{place % 4}", *[f"{word} {place} {at}" for at in range(25)])

    with ThreadPoolExecutor(4) as threads:
        written = [turn_id for ids in threads.map(write, range(200)) for turn_id in ids]
    assert len(set(written)) == len(written) == 5_000
    found = all_turns(agent, word)
    assert (len(found), sorted(turn_id for _, turn_id in found)) == (5_000, sorted(written))


# Pages hold together


@pytest.mark.parametrize("limit", [3, 20])
@pytest.mark.parametrize("name", ["matches", "near"])
def test_pages_while_others_write(name: str, limit: int, agent: Caller) -> None:
    """The turns that stayed as they were come once and in order, whatever is written before, between and behind them."""
    word = new_word()
    shape = "{0}" if name == "matches" else "x{0}x"
    said = [f"{shape.format(word)} {'y ' * (place // 3)}" for place in range(40)]
    agent.say("stays", *said)
    order = [one for one in all_turns(agent, word) if one[0] == "stays"]
    assert len(order) == 40
    counter = Counter[str]()

    def more_than(counter: Counter[str], writes: int) -> bool:
        return counter["writes"] > writes

    def write() -> None:
        place = counter["writes"]
        counter["writes"] += 1
        agent.say("others", *[f"{shape.format(word)} {'y ' * size}" for size in (0, 5, 12, 40)])
        agent.say("edited", turns=[turn(f"{shape.format(word)} {'y ' * (place % 14)}", turn_id="e")])
        agent.say(f"gone{place}", f"{shape.format(word)} y y", "filling")
        delete(agent, f"gone{place}")

    with meanwhile(write):
        found: list[tuple[str, str]] = []
        for page in agent.pages(word, limit=limit):
            found += [(hit["conversationId"], hit["turnId"]) for hit in page.body.get(name, [])]
            writes = counter["writes"]
            wait_until(partial(more_than, counter, writes))
    assert [one for one in found if one[0] == "stays"] == order
    assert {one: count for one, count in Counter(found).items() if count > 1 and one[0] != "edited"} == {}
    assert counter["writes"] >= 40 // limit


def test_the_pages_of_partial_while_others_write(agent: Caller) -> None:
    """The list is fixed when it is first looked at: later turns stay out, those deleted and rewritten too, the rest come once."""
    one, other = new_word(), new_word()
    ids = agent.say("stays", *[f"{(one, other)[place % 2]} number{place}" for place in range(20)])
    agent.say("gone", *[f"{one} going{place}" for place in range(5)])
    agent.say("edited", turns=[turn(f"{one} as it was", turn_id="e")])
    pages = agent.pages(f"{one} {other}", limit=4)
    found = hits(next(pages))
    agent.say("late", one, other, f"{one} late")
    delete(agent, "gone")
    agent.say("edited", turns=[turn(f"{one} as it is", turn_id="e")])
    found += [hit for page in pages for hit in hits(page)]
    counts = Counter((hit["conversationId"], hit["turnId"]) for hit in found)
    assert {turn_id for talk, turn_id in counts if talk == "stays"} == set(ids)
    assert set(counts.values()) == {1}
    assert not any(talk == "late" for talk, _ in counts)
    assert all(hit in found[:4] for hit in found if hit["conversationId"] in {"gone", "edited"})


def test_a_page_is_filled_up_where_turns_are_gone(agent: Caller) -> None:
    """Those that were deleted a moment ago, best of all, leave no holes and end no list early."""
    word = new_word()
    ids = agent.say("stays", *[f"{word} stays {place:02}" for place in range(12)])
    for place in range(30):
        agent.say(f"gone{place}", word, f"x{word}x")
    # The engine holds them by now: the list of `partial` waits for that.
    assert not ok(agent.search(f"{word} {new_word()}")).body.get("matches")
    for place in range(30):
        delete(agent, f"gone{place}")
    page = ok(agent.search(word, pagination={"limit": 12}))
    assert [hit["turnId"] for hit in page.body["matches"]] == ids[::-1]
    assert turn_ids(ok(agent.search(word, pagination={"limit": 5}))) == ids[:-6:-1]
    assert all_turns(agent, word, limit=5) == [("stays", turn_id) for turn_id in ids[::-1]]


# Bulk import


def test_an_import_may_run_ahead_of_the_index(agent: Caller) -> None:
    """Then `freshness.turns_pending` says by how much, and the notice says so too; in the end it is 0 and all is found."""
    word = new_word()
    agent.say(TALK, f"{word} before")
    first: Json = {"agent": {"agentId": agent.agent_id}, "conversation": {"conversationId": "imported"}}
    messages = [{"turns": [turn(f"{word} {batch} {place}") for place in range(100)]} for batch in range(30)]
    reply = ok(agent.bring([first, *messages]))
    assert reply.body == {"turnsAdded": "3000"}
    body = ok(agent.search(word)).body
    pending = number(body["freshness"], "turnsPending")
    assert pending <= 3_000
    assert ("indexed" in body.get("notice", "")) == bool(pending)
    assert body["freshness"]["asOf"]
    assert pending or len(all_turns(agent, word)) == 3_001, "what is not pending is found"
    wait_until(lambda: not number(ok(agent.search(word)).body["freshness"], "turnsPending"))
    found = all_turns(agent, word)
    assert Counter(talk for talk, _ in found) == {"imported": 3_000, TALK: 1}
    assert len(set(found)) == len(found)
    texts = [one["parts"][0]["text"] for one in messages[0]["turns"]]
    again = ok(agent.bring([first, {"turns": [turn(text, turn_id=f"imported:{at}") for at, text in enumerate(texts)]}]))
    assert again.body == {"turnsUnchanged": "100"}


def test_what_is_written_during_an_import_is_found_at_once(agent: Caller) -> None:
    """Writes do not wait behind an import, in no list: not where turns are weighed, either."""
    word = new_word()
    first: Json = {"agent": {"agentId": agent.agent_id}, "conversation": {"conversationId": "imported"}}
    filling = [{"turns": [turn(f"filling{batch}x{place} " * 20) for place in range(100)]} for batch in range(40)]

    def bring() -> None:
        ok(agent.bring([first | {"conversation": {"conversationId": new("imported")}}, *filling]))

    with meanwhile(bring):
        for place in range(10):
            own = new_word()
            (turn_id,) = agent.say(TALK, f"{word} {own}")
            assert turn_ids(ok(agent.search(own))) == [turn_id]
            assert_in_every_list(agent, own, turn_id)
            assert turn_ids(ok(agent.search(f"{own} {new_word()}", match="MATCH_ANY_WORD"))) == [turn_id]
            assert len(ok(agent.search(word, pagination={"limit": 100})).body["matches"]) == place + 1


def test_an_import_goes_on_where_a_conversation_was_deleted(agent: Caller) -> None:
    """A tombstoned one is told and skipped, and never comes back."""
    word = new_word()
    agent.say("gone", word)
    delete(agent, "gone")
    named: Json = {"agentId": agent.agent_id}
    reply = ok(
        agent.bring(
            [
                {"agent": named, "conversation": {"conversationId": "gone"}, "turns": [turn(word), turn(word)]},
                {"agent": named, "conversation": {"conversationId": "kept"}, "turns": [turn(word)]},
            ]
        )
    )
    (skipped,) = reply.body["skipped"]
    assert (reply.body["turnsAdded"], skipped["conversationId"], skipped["turns"]) == ("1", "gone", "2")
    assert "tombstoned" in skipped["reason"]
    wait_until(lambda: bool(hits(agent.search(word))))
    assert all_turns(agent, word) == [("kept", "kept:0")]
    assert agent.call(APPEND, {"conversationId": "gone", "turns": [turn(word)]}).code == "failed_precondition"
