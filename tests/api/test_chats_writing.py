"""Writing chats: IndexConversation, which leaves out what was deleted, and `exact_scope`, which says whose of an id is meant."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.callers import (
    APPEND,
    COMPILE,
    DELETE,
    GET_AGENT,
    GET_CONVERSATION,
    INDEX,
    LIST_AGENTS,
    RESOLVE,
    SEARCH_TURNS,
    WRITE,
    Caller,
    hits,
    new,
    new_word,
    number,
    ok,
    turn,
)
from tests.api.doors import ConnectDoor, Json, Reply

TALK = "run-7:3"
WRITTEN, UNCHANGED, TOMBSTONED = (f"INDEX_OUTCOME_{name}" for name in ("WRITTEN", "UNCHANGED", "TOMBSTONED"))


@pytest.fixture(scope="module")
def user(service_url: str) -> Iterator[Caller]:
    door = ConnectDoor(service_url)
    yield Caller(door)
    door.close()


@pytest.fixture
def world(user: Caller) -> Caller:
    """The user in a scope of the test's own."""
    return user.within(world=new("world"))


def chat(*texts: str, **fields: Any) -> Json:
    """A conversation of the agent `chat`."""
    return {"agentId": "chat", "conversationId": TALK, "turns": [turn(text, f"m{n}") for n, text in enumerate(texts)]} | fields


def index(by: Caller, conversation: Json, **fields: Any) -> Reply:
    return by.call(INDEX, {"conversation": conversation} | fields)


def found(by: Caller, query: str) -> list[tuple[str, str]]:
    """Where a word is said: by the search of chats, which must agree with the other."""
    of_chats = [
        (hit["conversationId"], hit["turn"]["turnId"])
        for hit in ok(by.call(SEARCH_TURNS, {"query": query, "limit": 100})).body.get("hits", [])
    ]
    others = [(hit["conversationId"], hit["turnId"]) for page in by.pages(query) for hit in hits(page)]
    assert sorted(of_chats) == sorted(others)
    return sorted(of_chats)


# IndexConversation


def test_what_becomes_of_a_conversation(world: Caller) -> None:
    """Written, then unchanged, written again where anything differs; found when it returns."""
    old, now = new_word(), new_word()
    reply = ok(index(world, chat(old, "x", title="A talk"))).body
    assert (reply["outcome"], reply["conversation"]["revision"]) == (WRITTEN, "1")
    assert (reply["conversation"]["title"], reply["conversation"]["turnCount"]) == ("A talk", 2)
    assert "turns" not in reply["conversation"]
    assert found(world, old) == [(TALK, "m0")]
    reply = ok(index(world, chat(old, "x", title="A talk"))).body
    assert (reply["outcome"], reply["conversation"]["revision"]) == (UNCHANGED, "1")
    reply = ok(index(world, chat(old, now))).body
    assert (reply["outcome"], reply["conversation"]["revision"], reply["conversation"]["title"]) == (WRITTEN, "2", "A talk")
    assert (found(world, old), found(world, now)) == ([(TALK, "m0")], [(TALK, "m1")])


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Another"},
        {"source": {"format": "f"}},
        {"turns": [turn("b", "m1"), turn("a", "m0")]},
        {"turns": [turn("a", "m0")]},
        {"turns": [turn("a", "m0"), turn("b", "m1", role="assistant")]},
        {"turns": [turn("a", "m0"), turn("b", "m1"), turn("", "m2")]},
        {"turns": [turn("a", "m0"), turn("b", "m1", createdAt="2020-01-01T00:00:00Z")]},
        {"turns": [turn("a", "m0"), {"turnId": "m1", "role": "user", "parts": [{"reasoning": "b"}]}]},
    ],
    ids=["title", "source", "order", "fewer", "role", "more", "time", "kind of part"],
)
def test_any_difference_is_written(change: Json, world: Caller) -> None:
    ok(index(world, chat("a", "b", title="A talk")))
    reply = ok(index(world, chat("a", "b", title="A talk") | change)).body
    assert (reply["outcome"], reply["conversation"]["revision"]) == (WRITTEN, "2")
    reply = ok(index(world, chat("a", "b", title="A talk") | change)).body
    assert (reply["outcome"], reply["conversation"]["revision"]) == (UNCHANGED, "2")


def test_an_empty_conversation_too(world: Caller) -> None:
    assert ok(index(world, chat())).body["outcome"] == WRITTEN
    assert ok(index(world, chat())).body["outcome"] == UNCHANGED


def test_a_deleted_one_is_left_out_for_good(world: Caller) -> None:
    """Whatever is asked of it, and nothing of it comes back."""
    word = new_word()
    ok(index(world, chat(word)))
    ok(world.call(DELETE, {"agentId": "chat", "conversationId": TALK}))
    for fields in ({}, {"expectedRevision": "0"}, {"expectedRevision": "1"}, {"expectedRevision": "7"}, {"exactScope": True}):
        reply = ok(index(world, chat(word, "more"), **fields)).body
        assert reply == {"outcome": TOMBSTONED}
    assert found(world, word) == []
    assert world.call(GET_CONVERSATION, {"agentId": "chat", "conversationId": TALK}).code == "not_found"
    assert world.call(WRITE, {"conversation": chat(word)}).code == "failed_precondition"
    assert ok(index(world, chat(word, conversationId="another"))).body["outcome"] == WRITTEN


@pytest.mark.parametrize("method", [WRITE, INDEX])
def test_a_conflict_commits_nothing(method: str, world: Caller) -> None:
    """Not the turns, not the conversation, and not the agent that it would make."""
    word = new_word()
    conversation = chat(word)
    reply = world.call(method, {"conversation": conversation, "expectedRevision": "1", "exactScope": True})
    assert reply.code == "aborted"
    assert reply.message == "expected_revision: 1 does not match, the conversation does not exist"
    assert world.all_of(LIST_AGENTS, "agents") == []
    ok(world.call(method, {"conversation": chat("a"), "expectedRevision": "0"}))
    for expected in ("0", "2"):
        reply = world.call(method, {"conversation": conversation, "expectedRevision": expected})
        assert (reply.code, found(world, word)) == ("aborted", [])
        assert f"{expected} does not match, the conversation is at revision 1" in reply.message
    assert ok(world.call(GET_CONVERSATION, {"agentId": "chat", "conversationId": TALK})).body["conversation"]["revision"] == "1"
    ok(world.call(method, {"conversation": conversation, "expectedRevision": "1"}))
    assert found(world, word) == [(TALK, "m0")]


def test_of_many_that_expect_the_same_revision_one_writes(world: Caller) -> None:
    ok(index(world, chat("a")))
    together = threading.Barrier(8)

    def write(n: int) -> str:
        together.wait()
        return index(world, chat(f"{n}"), expectedRevision="1").code

    with ThreadPoolExecutor(8) as threads:
        codes = list(threads.map(write, range(8)))
    assert sorted(codes) == ["aborted"] * 7 + ["ok"]
    kept = ok(world.call(GET_CONVERSATION, {"agentId": "chat", "conversationId": TALK})).body["conversation"]
    assert kept["revision"] == "2"


def test_a_delete_among_backfills(world: Caller) -> None:
    """Those before it are written, those after it left out; nothing is found in the end, and no call fails."""
    word = new_word()
    ok(index(world, chat(word)))
    together = threading.Barrier(6)

    def backfill(n: int) -> list[str]:
        together.wait()
        return [ok(index(world, chat(f"{word} {n} {m}"))).body["outcome"] for m in range(5)]

    def delete() -> None:
        together.wait()
        ok(world.call(DELETE, {"agentId": "chat", "conversationId": TALK}))

    with ThreadPoolExecutor(6) as threads:
        outcomes = [threads.submit(backfill, n) for n in range(5)]
        threads.submit(delete).result()
        for one in outcomes:
            told = one.result()
            assert set(told) <= {WRITTEN, TOMBSTONED}
            assert sorted(told, key=[WRITTEN, TOMBSTONED].index) == told, "it came back"
    assert found(world, word) == []


def test_ids_that_are_missing_are_made_as_by_a_write(world: Caller) -> None:
    turns = [turn("a"), turn("b", "x"), turn("c", "x"), turn("d", f"{TALK}:0")]
    bodies = []
    for method, talk in ((INDEX, TALK), (WRITE, f"{TALK}-2")):
        conversation = {"agentId": "chat", "conversationId": talk, "turns": [*turns[:3], turn("d", f"{talk}:0")]}
        ok(world.call(method, {"conversation": conversation}))
        read = ok(world.read(talk, agentId="chat")).body["turns"]
        bodies.append([one["turnId"].replace(talk, "T") for one in read])
    assert bodies == [["T:0:0", "x", "T:2", "T:0"]] * 2


@pytest.mark.parametrize(
    ("conversation", "field", "problem"),
    [
        (None, "conversation", "is empty"),
        ({"agentId": "chat"}, "conversation.conversation_id", "must not be empty"),
        ({"conversationId": "c"}, "conversation.agent_id", "is empty: a user names the agent"),
        (chat(turns=[{"turnId": "t" * 1025}]), "conversation.turns[0].turn_id", "1025 bytes, at most 1024 are allowed"),
        (chat(turns=[{"parts": [{}]}]), "conversation.turns[0].parts[0]", "is empty"),
    ],
)
def test_what_is_refused(conversation: Json | None, field: str, problem: str, world: Caller) -> None:
    reply = world.call(INDEX, {"conversation": conversation} if conversation is not None else {})
    assert (reply.code, reply.violations) == ("invalid_argument", [(field, problem)])
    reply = index(world, chat(), expectedRevision="-1")
    assert (reply.code, reply.violations) == ("invalid_argument", [("expected_revision", "-1 is less than 0")])


# exact_scope


def scopes_of_chats(by: Caller) -> list[dict[str, str]]:
    """The scopes of the agents `chat` that a caller sees."""
    agents = by.all_of(LIST_AGENTS, "agents")
    return sorted((agent["scope"] for agent in agents if agent["agentId"] == "chat"), key=len)


@pytest.mark.parametrize("method", [WRITE, INDEX])
def test_a_write_makes_the_agent_of_exactly_the_scope(method: str, world: Caller) -> None:
    """Where a narrower one of its id is there; without `exact_scope` the one that is visible takes the write, as ever."""
    wide = dict(world.scope)
    narrow = wide | {"user_id": "ada"}
    word, other = new_word(), new_word()
    ok(world.within(**narrow).call(method, {"conversation": chat(word)}))
    assert scopes_of_chats(world) == [narrow]
    ok(world.call(method, {"conversation": chat(other)}))
    assert (scopes_of_chats(world), found(world, word)) == ([narrow], []), "the one that is visible was written to"
    ok(world.call(method, {"conversation": chat(word), "exactScope": True}))
    assert scopes_of_chats(world) == [wide, narrow]
    assert [hit["scope"] for hit in ok(world.call(SEARCH_TURNS, {"query": word})).body["hits"]] == [wide]
    assert [hit["scope"] for hit in ok(world.call(SEARCH_TURNS, {"query": other})).body["hits"]] == [narrow]
    again = new_word()
    ok(world.call(method, {"conversation": chat(again), "exactScope": True}))
    assert scopes_of_chats(world) == [wide, narrow]
    assert [hit["scope"] for hit in ok(world.call(SEARCH_TURNS, {"query": again})).body["hits"]] == [wide]


def test_one_chat_id_in_nested_scopes(world: Caller) -> None:
    """Three chats of one id, each written, found and deleted by its scope alone."""
    scopes = [dict(world.scope)]
    scopes += [scopes[0] | {"user_id": "ada"}, scopes[0] | {"user_id": "ada", "project": "p"}]
    word = new_word()
    for n, scope in enumerate(scopes):
        by = world.within(**scope)
        reply = ok(by.call(WRITE, {"conversation": chat(f"{word} {n}"), "exactScope": True, "expectedRevision": "0"}))
        assert reply.body["conversation"]["revision"] == "1"
    for n, scope in enumerate(scopes):
        said = [
            hit["turn"]["parts"][0]["text"] for hit in ok(world.within(**scope).call(SEARCH_TURNS, {"query": word})).body["hits"]
        ]
        assert sorted(said) == [f"{word} {m}" for m in range(n, 3)], "a scope shows what has all its pairs"
    for n, scope in enumerate(scopes):
        ok(world.within(**scope).call(DELETE, {"agentId": "chat", "conversationId": TALK, "exactScope": True}))
        left = ok(world.call(SEARCH_TURNS, {"query": word})).body.get("hits", [])
        assert sorted(hit["turn"]["parts"][0]["text"] for hit in left) == [f"{word} {m}" for m in range(n + 1, 3)]
    for scope in scopes:
        assert ok(index(world.within(**scope), chat(word), exactScope=True)).body == {"outcome": TOMBSTONED}


def test_nothing_is_deleted_but_in_exactly_the_scope(world: Caller) -> None:
    """Where nobody has that scope it is not_found, as if there were no such agent at all."""
    narrow, word = world.within(**world.scope, user_id="ada"), new_word()
    ok(narrow.call(WRITE, {"conversation": chat(word)}))
    exactly = {"agentId": "chat", "conversationId": TALK, "exactScope": True}
    reply = world.call(DELETE, exactly)
    assert (reply.code, reply.message) == ("not_found", "agent_id: there is no agent chat")
    assert found(world, word) == [(TALK, "m0")]
    ok(world.call(WRITE, {"conversation": chat("x", conversationId="another"), "exactScope": True}))
    reply = world.call(DELETE, exactly)
    assert (reply.code, reply.message) == ("not_found", f"conversation_id: there is no conversation {TALK}")
    assert found(world, word) == [(TALK, "m0")]
    ok(narrow.call(DELETE, exactly))
    assert found(world, word) == []


def test_an_id_that_is_shared_needs_no_scope_with_it(world: Caller) -> None:
    """Two narrower ones of the id, and none of exactly the scope: without `exact_scope` that is invalid_argument."""
    for name in ("ada", "bob"):
        ok(world.within(**world.scope, user_id=name).call(WRITE, {"conversation": chat("x")}))
    for method in (WRITE, INDEX):
        reply = world.call(method, {"conversation": chat("x")})
        assert (reply.code, [field for field, _ in reply.violations]) == ("invalid_argument", ["conversation.agent_id"])
    ok(world.call(INDEX, {"conversation": chat("x"), "exactScope": True}))
    assert len(scopes_of_chats(world)) == 3


def test_an_agent_writes_exactly_to_its_own(user: Caller) -> None:
    """Its own scope is the one that is joined; the agent of its id in a narrower scope is somebody else, and so is any other."""
    world, agent_id, other = {"world": new("world")}, new("agent"), new("other")
    narrow = world | {"user_id": "ada"}
    user.make(agent_id, scope=world)
    user.make(other, scope=world)
    by = user.agent(agent_id)
    for target in ("", agent_id):
        ok(by.call(WRITE, {"conversation": chat("x", agentId=target), "exactScope": True, "scope": world}))
    denied = by.call(WRITE, {"conversation": chat("x", agentId=other), "exactScope": True})
    assert (denied.code, denied.message) == ("permission_denied", f"conversation.agent_id: {other} is not the caller's own agent")
    for target in (agent_id, "chat"):
        reply = by.call(WRITE, {"conversation": chat("x", agentId=target), "exactScope": True, "scope": narrow})
        assert (reply.code, reply.message) == ("not_found", f"agent_id: there is no agent {target}")
        reply = by.call(DELETE, {"agentId": target, "conversationId": TALK, "exactScope": True, "scope": narrow})
        assert (reply.code, reply.message) == ("not_found", f"agent_id: there is no agent {target}")
    user.make(f"{agent_id}-sub", scope=narrow, parentAgentId=agent_id)
    ok(by.call(INDEX, {"conversation": chat("x", agentId=f"{agent_id}-sub"), "exactScope": True, "scope": narrow}))
    reply = by.call(INDEX, {"conversation": chat("x", agentId=f"{agent_id}-sub"), "exactScope": True})
    assert (reply.code, reply.message) == ("not_found", f"agent_id: there is no agent {agent_id}-sub")
    reply = by.call(INDEX, {"conversation": chat("x"), "exactScope": True, "scope": {"world": "another"}})
    assert reply.code == "not_found"


def test_a_newcomer_makes_itself(user: Caller) -> None:
    agent_id, world = new("agent"), {"world": new("world")}
    ok(user.agent(agent_id).call(INDEX, {"conversation": chat("x", agentId=""), "exactScope": True, "scope": world}))
    assert ok(user.agent(agent_id).call(GET_AGENT, {})).body["agent"]["scope"] == world


# Deleting leaves the other doors in order


def test_a_deleted_chat_is_in_none_of_the_views(world: Caller) -> None:
    word = new_word()
    ok(index(world, chat(word)))
    source = {"conversationId": TALK, "turnId": "m0"}
    assert ok(world.call(RESOLVE, {"source": source})).body["turn"]["turnId"] == "m0"
    assert len(ok(world.call(COMPILE, {"query": word, "sources": [source]})).body["candidates"]) == 1
    ok(world.call(DELETE, {"agentId": "chat", "conversationId": TALK}))
    assert world.call(RESOLVE, {"source": source}).code == "not_found"
    assert ok(world.call(COMPILE, {"query": word, "sources": [source]})).body == {}
    assert found(world, word) == []


def test_what_is_removed_elsewhere_removes_no_message(world: Caller) -> None:
    """A backfill of other conversations, or of none, leaves those that are here alone."""
    word = new_word()
    ok(index(world, chat(word)))
    ok(index(world, chat("x", conversationId="another")))
    ok(index(world, chat(conversationId="empty")))
    assert found(world, word) == [(TALK, "m0")]
    assert number(ok(world.call(APPEND, {"agentId": "chat", "conversationId": TALK, "turns": [turn("x")]})).body, "revision") == 2
