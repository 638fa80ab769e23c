"""ORDER_NEWEST through the door: pages that hold together under writes and restarts, the fixed list of any word, the token, the
record. The order itself is in rows/newest.toml.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.callers import APPEND, WRITE, Caller, hits, new, new_word, ok, turn, turn_ids
from tests.api.doors import ConnectDoor, Json
from tests.faults.serving import served

NEWEST = {"order": "ORDER_NEWEST"}
TIMES = ["1905-03-01T00:00:00Z", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z", "2199-01-01T00:00:00Z"]


@pytest.fixture(scope="module")
def user(service_url: str) -> Iterator[Caller]:
    door = ConnectDoor(service_url)
    yield Caller(door)
    door.close()


@pytest.fixture
def agent(user: Caller) -> Caller:
    """An agent of the test's own."""
    return user.agent(new("agent"))


def at(text: str, time: str, turn_id: str = "") -> Json:
    return turn(text, turn_id, createdAt=time)


def newest(by: Caller, query: str, limit: int = 100, **fields: str) -> list[str]:
    """The ids of the matches of all pages."""
    return [hit["turnId"] for page in by.pages(query, limit=limit, **NEWEST, **fields) for hit in page.body.get("matches", [])]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_while_others_write(limit: int, agent: Caller) -> None:
    """Turns that stay as they were come once each and in their order, ties of one time among them; what is written meanwhile,
    before and behind the page, may come or not.
    """
    word = new_word()
    kept = agent.say("talk", turns=[at(f"{word} {place}", TIMES[place % len(TIMES)]) for place in range(25)])
    doomed = agent.say("other", turns=[at(f"{word} {place}", TIMES[place % len(TIMES)]) for place in range(25)])
    expected = [one for one in newest(agent, word) if one in kept]
    seen: list[str] = []
    for number, page in enumerate(agent.pages(word, limit=limit, **NEWEST)):
        seen += [hit["turnId"] for hit in page.body.get("matches", [])]
        agent.say("new", turns=[at(f"{word} meanwhile", time) for time in set(TIMES)])
        if number < len(doomed):
            agent.say("other", turns=[at("something else", TIMES[0], doomed[number])])
    assert [one for one in seen if one in kept] == expected
    assert len(seen) == len(set(seen))


def test_one_time_of_all(agent: Caller) -> None:
    """Nothing but the number tells the turns apart, however long the page."""
    word = new_word()
    ids = agent.say("talk", turns=[at(f"{word} {'pad ' * (place % 5)}", TIMES[1]) for place in range(40)])
    for limit in (1, 6, 39, 40, 100):
        assert newest(agent, word, limit) == ids[::-1]


def test_a_turn_that_gets_another_time_moves(agent: Caller) -> None:
    word = new_word()
    body = {"conversationId": "talk", "agentId": agent.agent_id}
    turns = [at(f"{word} {place}", TIMES[1], str(place)) for place in range(3)]
    ok(agent.call(WRITE, {"conversation": body | {"turns": turns}}))
    assert newest(agent, word) == ["2", "1", "0"]
    turns[0] = at(f"{word} 0", TIMES[4], "0")
    turns[2] = at(f"{word} 2", TIMES[0], "2")
    ok(agent.call(WRITE, {"conversation": body | {"turns": turns}}))
    assert newest(agent, word) == ["0", "1", "2"]


def test_any_word_shows_the_best_by_time(agent: Caller) -> None:
    """The list is what it is without the order: the best, with their shares; only their order is another one."""
    red, fox = new_word(), new_word()
    agent.say(
        "talk",
        turns=[
            at(f"{red} {fox}", TIMES[1], "both"),
            at(f"{red} and a lot that is not asked for, to be no good answer", TIMES[4], "late"),
            at(f"{fox}", TIMES[0], "early"),
            at(f"{fox} again", TIMES[1], "tie"),
        ],
    )
    asked = {"match": "MATCH_ANY_WORD"}
    best = {hit["turnId"]: hit["score"] for hit in hits(ok(agent.search(f"{red} {fox}", **asked)))}
    assert max(best, key=lambda one: best[one]) == "both"
    for limit in (1, 3, 100):
        pages = list(agent.pages(f"{red} {fox}", limit=limit, **asked, **NEWEST))
        found = [(hit["turnId"], hit["score"]) for page in pages for hit in page.body.get("matches", [])]
        assert [turn_id for turn_id, _ in found] == ["late", "tie", "both", "early"]
        assert dict(found) == best


def test_pages_go_on_after_a_restart(tmp_path: Path) -> None:
    """And after a rebuild: the folder of the index is removed meanwhile."""
    with served(tmp_path / "data") as service:
        service.wait_until_ready()
        ids = service.user.say("talk", agent_id="a", turns=[at(f"zebra {place}", TIMES[place % 4]) for place in range(9)])
        whole = newest(service.user, "zebra")
        first = ok(service.user.search("zebra", pagination={"limit": 4}, **NEWEST))
    assert sorted(whole) == sorted(ids)
    assert turn_ids(first) == whole[:4]
    for path in sorted((tmp_path / "data" / "index").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with served(tmp_path / "data") as service:
        service.wait_until_ready()
        page = {"limit": 4, "cursor": first.body["nextPageToken"]}
        second = ok(service.user.search("zebra", pagination=page, **NEWEST))
    assert turn_ids(second) == whole[4:8]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (NEWEST, {}),
        ({}, NEWEST),
        (NEWEST, {"order": "ORDER_BEST"}),
        ({}, {"includeOwnSearches": True}),
        ({"includeOwnSearches": True}, {}),
    ],
)
def test_a_token_is_for_one_order(first: Json, then: Json, agent: Caller) -> None:
    word = new_word()
    agent.say("talk", *[f"{word} {place}" for place in range(3)])
    cursor = ok(agent.search(word, pagination={"limit": 1}, **first)).body["nextPageToken"]
    refused = agent.search(word, pagination={"limit": 1, "cursor": cursor}, **then)
    assert [field for field, _ in refused.violations] == ["pagination.cursor"]
    assert len(turn_ids(ok(agent.search(word, pagination={"limit": 1, "cursor": cursor}, **first)))) == 1


def test_the_best_order_needs_no_name(agent: Caller) -> None:
    word = new_word()
    agent.say("talk", *[f"{word} {place}" for place in range(3)])
    cursor = ok(agent.search(word, pagination={"limit": 1})).body["nextPageToken"]
    ok(agent.search(word, pagination={"limit": 1, "cursor": cursor}, order="ORDER_BEST"))


def test_the_record_names_them(user: Caller, agent: Caller) -> None:
    word = new_word()
    ok(user.call(APPEND, {"agentId": agent.agent_id, "conversationId": "talk", "turns": [turn(word)]}))
    ok(user.search(word, agentId=agent.agent_id, order="ORDER_NEWEST", includeOwnSearches=True))
    ok(user.search(word, agentId=agent.agent_id))
    plain, named = (json.loads(record["filters"]) for record in user.reads(agentId=agent.agent_id)[:2])
    assert (named["order"], named["include_own_searches"]) == ("ORDER_NEWEST", True)
    assert not {"order", "include_own_searches"} & plain.keys()


def test_an_order_that_there_is_not(agent: Caller) -> None:
    for order in ("ORDER_OLDEST", 7):
        assert [field for field, _ in agent.search("zebra", order=order).violations] == ["order"]
