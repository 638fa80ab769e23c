"""CompileContext, asked of a running service: rows of chats/context.toml, and laws that hold whatever the chats say."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.api.callers import APPEND, COMPILE, SEARCH_TURNS, Caller, new, new_word, ok, turn
from tests.api.doors import ConnectDoor, Contract, GrpcDoor, Json
from tests.api.test_rows import conversation_of, turn_json, writes

ROWS = Path(__file__).parent / "chats" / "context.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the file, as its author wrote it."""

    name: str
    says: str
    turns: list[str | Json]
    query: str
    candidates: list[Json]
    request: Json = field(default_factory=dict)
    sources: list[int] = field(default_factory=list)
    left_out: int = 0

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


@pytest.mark.parametrize("row", ALL, ids=str)
def test_the_row_holds(row: Row, agent: Caller) -> None:
    kept: dict[int, Json] = {}
    for places in writes(row.turns):
        conversation = conversation_of(row.turns[places[0]])
        said = {"conversationId": conversation, "turns": [turn_json(row.turns[place]) for place in places]}
        turns = ok(agent.call(APPEND, said)).body["turns"]
        kept |= {place: {"conversationId": conversation} | one for place, one in zip(places, turns, strict=True)}
    sources = [{"conversationId": kept[place]["conversationId"], "turnId": kept[place]["turnId"]} for place in row.sources]
    body = ok(agent.call(COMPILE, {"query": row.query, "sources": sources} | row.request)).body
    candidates = body.get("candidates", [])
    assert [one["text"] for one in candidates] == [one["text"] for one in row.candidates]
    for got, expected in zip(candidates, row.candidates, strict=True):
        one = kept[expected["turn"]]
        assert got["match"] == expected.get("match", "search")
        assert (got["agentId"], got["conversationId"]) == (agent.agent_id, one["conversationId"])
        assert (got["turnId"], got.get("seq", 0)) == (one["turnId"], one.get("seq", 0))
        assert 0 < got["score"] <= 1
        assert got["match"] == "search" or got["score"] == 1
    assert body.get("leftOut", 0) == row.left_out


def test_the_rows_are_well_formed() -> None:
    names = [str(row) for row in ALL]
    assert len(set(names)) == len(names) >= 25
    assert all(row.says for row in ALL)


# Laws


WORDS = some.sampled_from(["fox", "owl", "a", "the", "long", "記憶", "x" * 40])
LINES = some.lists(WORDS, max_size=6).map(" ".join)
TEXTS = some.lists(LINES, min_size=1, max_size=4).map("\n".join)
TURNS = some.lists(some.tuples(some.sampled_from(["user", "assistant", "system"]), TEXTS), min_size=1, max_size=12)


@settings(max_examples=40)
@given(turns=TURNS, around=some.integers(0, 3), budget=some.integers(1, 400), cited=some.sets(some.integers(0, 11), max_size=3))
def test_whatever_is_said(turns: list[tuple[str, str]], around: int, budget: int, cited: set[int], user: Caller) -> None:
    """Never over the budget; each message once, whole, in the order of its chat; what was found and not quoted is counted."""
    by = user.agent(new("agent"))
    # Each text says its own place, so that its lines can be told apart.
    said = [{"role": role, "parts": [{"text": f"n{n} {text}"}]} for n, (role, text) in enumerate(turns)]
    ok(by.call(APPEND, {"conversationId": "c", "turns": said}))
    sources = [{"conversationId": "c", "turnId": f"c:{n}"} for n in sorted(cited)]
    asked = {"query": "fox owl", "around": around, "sources": sources, "limit": 100}
    body = ok(by.call(COMPILE, asked | {"budget": budget})).body
    texts = [one["text"] for one in body.get("candidates", [])]
    assert len("\n".join(texts)) <= budget
    blocks = []
    for text in texts:
        lines: list[list[str]] = []
        for line in text.split("\n"):
            if line and not line.startswith("  "):
                lines.append([])
            lines[-1].append(line)
        places = [int(block[0].split()[1][1:]) for block in lines]
        assert places == sorted(places)
        for place, block in zip(places, lines, strict=True):
            role, whole = turns[place]
            assert role != "system"
            first, *others = f"n{place} {whole}".rstrip("\n").split("\n")
            assert block == [f"{role}: {first}", *(f"  {line}" if line.strip() else "" for line in others)]
        blocks += places
    assert len(set(blocks)) == len(blocks)
    hits = ok(by.call(SEARCH_TURNS, {"query": "fox owl", "limit": 100})).body.get("hits", [])
    quotable = {hit["turn"].get("seq", 0) for hit in hits} | {n for n in cited if n < len(turns) and turns[n][0] != "system"}
    assert len(quotable - set(blocks)) == body.get("leftOut", 0)
    everything = ok(by.call(COMPILE, asked | {"budget": 1_000_000})).body
    assert "leftOut" not in everything
    if texts == [one["text"] for one in everything.get("candidates", [])]:
        assert body == everything


# What it may look at


def test_a_source_that_cannot_be_resolved_is_left_out(user: Caller) -> None:
    """Unknown, of another scope, deleted, or one of several: the others come all the same."""
    world = user.within(world=new("world"))
    ada, bob = (world.within(**world.scope, user_id=name) for name in ("ada", "bob"))
    for by in (ada, bob):
        by.say("c", "hello", agent_id="chat")
    ada.say("d", "of ada", agent_id="chat")
    bob.say("e", "of bob", agent_id="chat")
    sources = [
        {"conversationId": talk, "turnId": f"{talk}:{n}"} for talk, n in (("none", 0), ("d", 7), ("c", 0), ("e", 0), ("d", 0))
    ]

    def texts(by: Caller, **fields: object) -> list[str]:
        reply = ok(by.call(COMPILE, {"sources": sources} | fields)).body
        assert "leftOut" not in reply
        return [one["text"] for one in reply.get("candidates", [])]

    assert texts(world) == ["user: of bob", "user: of ada"]
    assert texts(ada) == ["user: hello", "user: of ada"]
    assert texts(ada, agentIds=["other"]) == ["user: hello", "user: of ada"], "filters bind the search alone"
    assert texts(ada, scope={**world.scope, "user_id": "eve"}) == []


def test_agents_are_a_filter_and_nothing_is_recorded(user: Caller) -> None:
    world, word = user.within(world=new("world")), new_word()
    mine, other = new("mine"), new("other")
    for agent_id in (mine, other):
        world.make(agent_id, role="reviewer")
        world.say(f"talk of {agent_id}", word, agent_id=agent_id)

    def whose(by: Caller, **fields: object) -> list[str]:
        source = {"conversationId": f"talk of {other}", "turnId": f"talk of {other}:0"}
        body = ok(by.call(COMPILE, {"query": word, "sources": [source]} | fields)).body
        return sorted(one["agentId"] for one in body.get("candidates", []))

    assert whose(world) == sorted([mine, other])
    assert whose(world, agentIds=[other]) == [other]
    assert whose(user.agent(mine)) == [mine]
    assert whose(user.agent(mine), agentIds=[other]) == []
    assert user.reads(agentId=other) == []


def test_the_default_budget_and_the_largest(agent: Caller) -> None:
    """8,000 code points; a larger one than 1,000,000 is capped."""
    fits, longer = "fox " + "é" * 7_990, "fox " + "é" * 7_991
    agent.say("a", fits)
    assert len(ok(agent.call(COMPILE, {"query": "fox"})).body["candidates"][0]["text"]) == 8_000
    agent.say("a", turns=[turn(longer, "a:0")])
    assert ok(agent.call(COMPILE, {"query": "fox"})).body == {"leftOut": 1}
    agent.say("a", turns=[turn("fox " + "x " * 499_995, "a:0")])
    source = {"conversationId": "a", "turnId": "a:0"}
    for budget in (999_999, 2**31 - 1):
        body = ok(agent.call(COMPILE, {"sources": [source], "budget": budget})).body
        assert body.get("leftOut", 0) == (budget < 1_000_000)
        assert "candidates" not in body or len(body["candidates"][0]["text"]) == 1_000_000


def test_over_grpc_it_is_the_same(agent: Caller, grpc_target: str, contract: Contract) -> None:
    agent.say("c", "a fox", "an owl")
    body = {"query": "fox", "sources": [{"conversationId": "c", "turnId": "c:1"}], "budget": 20}
    over_grpc = GrpcDoor(grpc_target, contract)
    try:
        one, other = (ok(door.call(COMPILE, body, agent.headers)).body for door in (over_grpc, agent.door))
    finally:
        over_grpc.close()
    assert one == other
    assert (len(one["candidates"]), one["leftOut"]) == (1, 1)


@pytest.mark.parametrize(
    ("body", "field", "problem"),
    [
        ({"budget": -1}, "budget", "-1 is less than 0"),
        ({"limit": -1}, "limit", "-1 is less than 0"),
        ({"around": -1}, "around", "-1 is less than 0"),
        ({"sources": [{"conversationId": "c", "turnId": "m"}, {"turnId": "m"}]}, "sources[1].conversation_id", "is empty"),
        ({"sources": [{"conversationId": "c", "turnId": "m"}] * 101}, "sources", "101 entries, at most 100 are allowed"),
        ({"conversationIds": ["x" * 513]}, "conversation_ids[0]", "513 bytes, at most 512 are allowed"),
        ({"agentIds": [""]}, "agent_ids[0]", "is empty"),
        ({"scope": {"k": "v" * 1025}}, "scope", "a value: 1025 bytes, at most 1024 are allowed"),
    ],
)
def test_what_is_refused(body: Json, field: str, problem: str, user: Caller) -> None:
    reply = user.call(COMPILE, body)
    assert (reply.code, reply.violations) == ("invalid_argument", [(field, problem)])
