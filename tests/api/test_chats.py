"""SearchTurns, asked of a running service: rows of chats/search.toml, and what a hit brings with it.

Each row writes as an agent of its own and searches as that agent. Laws and what others may see: test_chats_laws.py.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.api.callers import APPEND, DELETE, READ, SEARCH_TURNS, UPDATE_AGENT, WRITE, Caller, new, new_word, ok, turn
from tests.api.doors import ConnectDoor, Contract, GrpcDoor, Json, Reply
from tests.api.test_rows import Pieces, conversation_of, spelled, turn_json, writes
from tests.faults.serving import served

ROWS = Path(__file__).parent / "chats" / "search.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the file, as its author wrote it."""

    name: str
    says: str
    turns: list[str | Json]
    query: Pieces
    found: list[int]
    request: Json = field(default_factory=dict)
    best: int | None = None
    notice: str = ""

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


ALL = [Row(**row) for row in tomllib.loads(ROWS.read_text("utf-8"))["row"]]


@pytest.fixture(scope="module")
def user(service_url: str) -> Iterator[Caller]:
    door = ConnectDoor(service_url)
    yield Caller(door)
    door.close()


@pytest.fixture
def agent(user: Caller) -> Caller:
    """An agent of the test's own."""
    return user.agent(new("agent"))


def found(by: Caller, query: str, **fields: Any) -> list[Json]:
    """The hits of a search."""
    hits: list[Json] = ok(by.call(SEARCH_TURNS, {"query": query} | fields)).body.get("hits", [])
    return hits


def ids(hits: list[Json]) -> list[str]:
    return [hit["turn"]["turnId"] for hit in hits]


@pytest.mark.parametrize("row", ALL, ids=str)
def test_the_row_holds(row: Row, agent: Caller) -> None:
    turns: dict[tuple[str, int], int] = {}
    for places in writes(row.turns):
        conversation = conversation_of(row.turns[places[0]])
        said = {"conversationId": conversation, "turns": [turn_json(row.turns[place]) for place in places]}
        kept = ok(agent.call(APPEND, said)).body["turns"]
        turns |= {(conversation, one.get("seq", 0)): place for one, place in zip(kept, places, strict=True)}
    reply = ok(agent.call(SEARCH_TURNS, {"query": spelled(row.query)} | row.request))
    hits = reply.body.get("hits", [])
    in_order = [turns[hit["conversationId"], hit["turn"].get("seq", 0)] for hit in hits]
    assert sorted(in_order) == row.found
    assert row.best is None or in_order[0] == row.best
    assert reply.body.get("notice", "") == row.notice
    scores = [hit.get("score", 0) for hit in hits]
    assert not scores or scores[0] == 1
    assert all(before >= after > 0 for before, after in pairwise(scores))


def test_the_rows_are_well_formed() -> None:
    names = [str(row) for row in ALL]
    assert len(set(names)) == len(names) >= 35
    for row in ALL:
        assert row.says
        assert row.found == sorted(set(row.found))
        assert row.best is None or row.best in row.found
        assert bool(row.found) or row.notice


# What a hit brings


PARTS: list[Json] = [
    {"reasoning": "let me think"},
    {"text": "I look for the kestrel"},
    {"toolCall": {"name": "bash", "arguments": '{"command": "ls"}', "callId": "c-1"}},
    {"toolResult": {"callId": "c-0", "json": '{"a": [1]}'}},
    {"file": {"mediaType": "image/png", "name": "kestrel.png"}},
]


def test_a_hit_is_the_whole_turn(user: Caller) -> None:
    """All its parts, the searched ones and the others, its place, its digest, and whose it is."""
    scope, word = {"world": new("world"), "user_id": "ada"}, new_word()
    said = {"role": "assistant", "turnId": "m/1 ü", "parts": [*PARTS, {"text": word}], "createdAt": "2026-01-02T03:04:05Z"}
    by = user.within(**scope)
    by.say("run-7:3", "é", agent_id="chat", turns=[said])
    (hit,) = found(by, word)
    assert (hit["agentId"], hit["scope"], hit["conversationId"], hit["score"]) == ("chat", scope, "run-7:3", 1)
    kept = ok(by.call(READ, {"agentId": "chat", "conversationId": "run-7:3", "turnId": "m/1 ü"})).body["turns"][0]
    assert hit["turn"] == kept
    assert kept["parts"] == said["parts"]
    assert (kept["seq"], kept["contentOffset"], kept["createdAt"]) == (1, "3", said["createdAt"])
    text = f"let me think\nI look for the kestrel\nbash\ncommand: ls\na.0: 1\nkestrel.png\n{word}"
    assert hit["digest"] == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert not {"before", "after", "partsLeftOut"} & hit.keys()


@pytest.mark.parametrize(
    ("place", "around", "before", "after"),
    [(0, 2, [], [1, 2]), (1, 1, [0], [2]), (3, 2, [1, 2], [4, 5]), (5, 10, [0, 1, 2, 3, 4], []), (2, 0, [], [])],
)
def test_the_turns_around(place: int, around: int, before: list[int], after: list[int], agent: Caller) -> None:
    """Whole, in order, whatever their role and parts, and not more than there are."""
    word = new_word()
    turns: list[Json] = [
        {"role": "system", "parts": [{"text": "be kind"}]},
        {"role": "assistant", "parts": PARTS},
        turn("two"),
        {"role": "tool", "parts": [{"toolResult": {"json": "[]"}}]},
        {"role": "user", "parts": []},
        turn("five"),
    ]
    turns[place]["parts"] = [*turns[place]["parts"], {"text": word}]
    if turns[place]["role"] == "system":
        turns[place]["role"] = "user"
    agent.say("talk", turns=turns)
    agent.say("other", "zero", "one")
    (hit,) = found(agent, word, around=around)
    kept = ok(agent.read("talk")).body["turns"]
    assert hit["turn"] == kept[place]
    assert hit.get("before", []) == [kept[at] for at in before]
    assert hit.get("after", []) == [kept[at] for at in after]


def test_the_limit(agent: Caller) -> None:
    """20 by default, 100 at most; a larger one is capped."""
    word = new_word()
    agent.say("talk", *(f"{word} {n}" for n in range(130)))
    every = ids(found(agent, word, limit=100))
    assert len(set(every)) == len(every) == 100
    assert ids(found(agent, word)) == every[:20]
    assert ids(found(agent, word, limit=7)) == every[:7]
    assert ids(found(agent, word, limit=2**31 - 1)) == every


def test_a_rewritten_turn_is_found_by_its_new_text_alone(agent: Caller) -> None:
    old, now = new_word(), new_word()
    agent.say("talk", turns=[turn(old, "a"), turn("beside", "b")])
    agent.say("talk", turns=[turn(now, "a")])
    assert (ids(found(agent, old)), ids(found(agent, now))) == ([], ["a"])
    whole = {"conversationId": "talk", "turns": [turn("beside", "b")]}
    ok(agent.call(WRITE, {"conversation": whole}))
    assert ids(found(agent, now)) == []
    assert ids(found(agent, "beside")) == ["b"]
    ok(agent.call(DELETE, {"conversationId": "talk"}))
    assert found(agent, "beside") == []


def test_a_turn_that_becomes_a_system_turn(agent: Caller) -> None:
    """The same text under another role: the turn keeps its number, and what may be searched of it changes."""
    word = new_word()
    for role, there in (("user", ["a"]), ("system", []), ("assistant", ["a"])):
        ok(agent.call(WRITE, {"conversation": {"conversationId": "talk", "turns": [turn(word, "a", role=role)]}}))
        assert ids(found(agent, word)) == there


def test_what_a_deployment_indexes_changes_nothing_here(tmp_path: Path) -> None:
    """Reasoning and system turns stay out of this view, be they indexed for the other searches or not."""
    with served(tmp_path / "data", index_reasoning=True, index_system=True) as running:
        running.wait_until_ready()
        by = running.user.agent("ada")
        by.say("talk", turns=[turn("fox", role="system"), {"role": "assistant", "parts": [{"reasoning": "fox"}]}])
        by.say("talk", turns=[{"role": "assistant", "parts": [{"reasoning": "fox"}, {"text": "whale"}]}, turn("a fox")])
        assert len(ok(by.search("fox")).body["matches"]) == 4
        assert ids(found(by, "fox whale")) == ["talk:2", "talk:3"] or ids(found(by, "fox whale")) == ["talk:3", "talk:2"]
        assert ids(found(by, "fox")) == ["talk:3"]


# Large replies


MEGABYTE = 1_048_576


def test_a_large_reply_leaves_parts_out(agent: Caller) -> None:
    """At most 8 MiB of the parts of hits, but the best always whole; smaller ones that fit still come."""
    word = new_word()
    filler = "x" * (5 * MEGABYTE)
    agent.say("a", f"{word} {word}")  # the best
    for name in ("b", "c"):
        agent.say(name, turns=[{"role": "user", "parts": [{"text": f"{word} and some more"}, {"reasoning": filler}]}])
    reply = ok(agent.call(SEARCH_TURNS, {"query": word}))
    hits = reply.body["hits"]
    assert {hit["conversationId"] for hit in hits} == {"a", "b", "c"}
    left_out = [hit for hit in hits if hit.get("partsLeftOut")]
    assert [hit["conversationId"] in {"b", "c"} for hit in left_out] == [True]
    (short,) = left_out
    assert "parts" not in short["turn"]
    assert int(short["turn"]["contentLength"]) > 5 * MEGABYTE
    assert reply.body["notice"] == (
        "1 of the hits come without the parts of some turns, which ReadTranscript has: the reply is too large."
    )
    whole = ok(agent.read(short["conversationId"], turnId=short["turn"]["turnId"])).body["turns"][0]
    assert {key: value for key, value in whole.items() if key != "parts"} == short["turn"]


def test_the_best_hit_comes_whole_whatever_its_size(agent: Caller) -> None:
    word = new_word()
    agent.say("talk", turns=[{"role": "user", "parts": [{"text": word}, {"reasoning": "x" * (9 * MEGABYTE)}]}])
    (hit,) = found(agent, word)
    assert len(hit["turn"]["parts"][1]["reasoning"]) == 9 * MEGABYTE
    assert "partsLeftOut" not in hit


def test_turns_around_have_room_of_their_own(agent: Caller) -> None:
    """8 MiB too: a hit is never left out for the sake of its neighbours."""
    word = new_word()
    filler = {"role": "assistant", "parts": [{"reasoning": "x" * (5 * MEGABYTE)}]}
    agent.say("talk", turns=[filler, turn(word)])
    agent.say("talk", turns=[filler])
    (hit,) = found(agent, word, around=1)
    assert hit["partsLeftOut"]
    assert hit["turn"]["parts"] == [{"text": word}]
    assert "parts" in hit["before"][0]
    assert "parts" not in hit["after"][0]
    assert [one.get("seq", 0) for one in (*hit["before"], *hit["after"])] == [0, 2]


# Who finds what


def test_agents_and_conversations_are_filters(user: Caller) -> None:
    by, word = user.within(world=new("world")), new_word()
    for agent_id in ("chat", "other"):
        for talk in ("one", "two"):
            by.say(talk, word, agent_id=agent_id)

    def places(**fields: Any) -> set[tuple[str, str]]:
        return {(hit["agentId"], hit["conversationId"]) for hit in found(by, word, **fields)}

    every = {(agent_id, talk) for agent_id in ("chat", "other") for talk in ("one", "two")}
    assert places() == every
    assert places(agentIds=["chat"]) == {("chat", "one"), ("chat", "two")}
    assert places(agentIds=["chat", "other", "chat"]) == every
    assert places(conversationIds=["two"]) == {("chat", "two"), ("other", "two")}
    assert places(agentIds=["other"], conversationIds=["one", "none"]) == {("other", "one")}


def test_an_agent_finds_its_family_alone_and_nothing_is_recorded(user: Caller) -> None:
    """Whatever its role: naming another is a filter that leaves nothing, no wish to read it."""
    world, word = user.within(world=new("world")), new_word()
    parent, child, other = (new(name) for name in ("parent", "child", "other"))
    world.make(parent, role="reviewer")
    world.make(child, parentAgentId=parent)
    world.make(other)
    for agent_id in (parent, child, other):
        world.say("talk", word, agent_id=agent_id)
    before = user.reads(agentId=other)
    by = user.agent(parent)
    assert {hit["agentId"] for hit in found(by, word)} == {parent, child}
    assert {hit["agentId"] for hit in found(by, word, agentIds=[child, other])} == {child}
    assert found(by, word, agentIds=[other]) == []
    assert {hit["agentId"] for hit in found(user.agent(child), word)} == {child}
    assert found(user.agent(new("stranger")), word) == []
    assert {hit["agentId"] for hit in found(world, word)} == {parent, child, other}
    assert user.reads(agentId=other) == before == []


def test_a_scope_that_contradicts_the_callers(user: Caller) -> None:
    word, agent = new_word(), new("agent")
    user.make(agent, scope={"user_id": "ada", "world": "w"})
    by = user.agent(agent)
    by.say("talk", word)
    assert len(found(by, word, scope={"user_id": "ada"})) == 1
    reply = ok(by.call(SEARCH_TURNS, {"query": word, "scope": {"user_id": "bob"}}))
    assert "hits" not in reply.body
    assert reply.body["notice"] == "Nothing was found: the scope of the request contradicts the caller's."


def test_archived_agents_are_searched(user: Caller) -> None:
    by, word = user.within(world=new("world")), new_word()
    by.say("talk", word, agent_id="chat")
    ok(by.call(UPDATE_AGENT, {"agent": {"agentId": "chat", "archived": True}, "updateMask": "archived"}))
    assert len(found(by, word)) == 1


def test_over_grpc_it_is_the_same(user: Caller, grpc_target: str, contract: Contract) -> None:
    by, word = user.within(world=new("world")), new_word()
    by.say("talk", f"a {word}", f"b {word} {word}", agent_id="chat")
    body = {"query": word, "around": 1, "scope": dict(by.scope)}
    over_grpc = GrpcDoor(grpc_target, contract)
    try:
        replies = [door.call(SEARCH_TURNS, body) for door in (over_grpc, by.door)]
    finally:
        over_grpc.close()
    for reply in replies:
        ok(reply).body.pop("freshness")
    assert replies[0].body == replies[1].body
    assert len(replies[0].body["hits"]) == 2


# What is refused


@pytest.mark.parametrize(
    ("fields", "field", "problem"),
    [
        ({"limit": -1}, "limit", "-1 is less than 0"),
        ({"around": 11}, "around", "11 is more than 10"),
        ({"query": "é" * 32_769}, "query", "65538 bytes, at most 65536 are allowed"),
        ({"conversationIds": ["a", ""]}, "conversation_ids[1]", "is empty"),
        ({"conversationIds": ["a"] * 101}, "conversation_ids", "101 entries, at most 100 are allowed"),
        ({"agentIds": ["x" * 513]}, "agent_ids[0]", "513 bytes, at most 512 are allowed"),
        ({"scope": {"": "v"}}, "scope", "a key: is empty"),
    ],
)
def test_what_is_refused(fields: Json, field: str, problem: str, user: Caller) -> None:
    reply = user.call(SEARCH_TURNS, {"query": "fox"} | fields)
    assert (reply.code, reply.violations) == ("invalid_argument", [(field, problem)])


def test_the_longest_query(agent: Caller) -> None:
    agent.say("talk", "aa", "zz")
    reply: Reply = ok(agent.call(SEARCH_TURNS, {"query": "aa " + " ".join(f"w{n}" for n in range(9_000)) + " zz"}))
    assert ids(reply.body["hits"]) == ["talk:0"]
    assert reply.body["notice"] == "Of 9002 different terms the first 32 were searched for."
