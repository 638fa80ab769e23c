"""ResolveSource, asked of a running service: rows of chats/sources.toml, and what comes with the turn that is cited."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.api.callers import DELETE, RESOLVE, WRITE, Caller, new, ok, turn
from tests.api.doors import ConnectDoor, Contract, GrpcDoor, Json

ROWS = Path(__file__).parent / "chats" / "sources.toml"
NOWHERE = "sha256:" + "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the file, as its author wrote it."""

    name: str
    says: str
    chats: list[Json]
    source: dict[str, str]
    scope: dict[str, str] = field(default_factory=dict)
    found: Json | None = None
    error: str = "not_found"

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


ALL = [Row(**row) for row in tomllib.loads(ROWS.read_text("utf-8"))["row"]]


@pytest.fixture(scope="module")
def user(service_url: str) -> Iterator[Caller]:
    door = ConnectDoor(service_url)
    yield Caller(door)
    door.close()


@pytest.fixture
def world(user: Caller) -> Caller:
    """The user in a scope of the test's own."""
    return user.within(world=new("world"))


@pytest.mark.parametrize("row", ALL, ids=str)
def test_the_row_holds(row: Row, world: Caller) -> None:
    for chat in row.chats:
        by = world.within(**world.scope, **chat.get("scope", {}))
        place = {"agentId": chat.get("agent", "chat"), "conversationId": chat["id"]}
        turns = [turn(f"said {text}", text) for text in chat["turns"]]
        ok(by.call(WRITE, {"conversation": place | {"turns": turns}, "exactScope": True}))
        if chat.get("deleted"):
            ok(by.call(DELETE, place | {"exactScope": True}))
    names = {"conversation": "conversationId", "turn": "turnId", "agent": "agentId"}
    source = {names[name]: value for name, value in row.source.items()}
    reply = world.within(**world.scope, **row.scope).call(RESOLVE, {"source": source})
    if row.found is None:
        assert reply.code == row.error
        if row.error == "not_found":
            told = f"source: there is no turn {source['turnId']} in a conversation {source['conversationId']}"
            assert (reply.message, reply.violations) == (told, [])
        else:
            assert [name for name, _ in reply.violations] == ["source.conversation_id"]
            assert "several conversations have the id c: name the scope or the agent" in reply.message
        return
    body = ok(reply).body
    assert (body["agentId"], body["scope"]) == (row.found["agent"], {**world.scope, **row.found["scope"]})
    assert (body["conversationId"], body["turn"]["turnId"]) == (source["conversationId"], source["turnId"])
    assert body["turn"]["parts"] == [{"text": f"said {source['turnId']}"}]


def test_the_rows_are_well_formed() -> None:
    names = [str(row) for row in ALL]
    assert len(set(names)) == len(names) >= 15
    assert all(row.says for row in ALL)


def test_whether_the_text_is_unchanged(world: Caller) -> None:
    """Told only where a digest was given; a system turn and one of any parts can be cited."""
    parts = [{"reasoning": "hm"}, {"text": "a fox"}, {"toolCall": {"name": "bash", "arguments": "{}"}}]
    world.say("talk", "é", agent_id="chat", turns=[{"turnId": "m", "role": "system", "parts": parts}])
    source: Json = {"conversationId": "talk", "turnId": "m"}
    body = ok(world.call(RESOLVE, {"source": source})).body
    kept = ok(world.read("talk", agentId="chat", turnId="m")).body["turns"][0]
    assert body["turn"] == kept
    assert kept["seq"] == 1
    assert "unchanged" not in body
    cited = source | {"digest": body["digest"]}
    assert ok(world.call(RESOLVE, {"source": cited})).body == body | {"unchanged": True}
    assert ok(world.call(RESOLVE, {"source": source | {"digest": NOWHERE}})).body == body | {"unchanged": False}
    world.say("talk", agent_id="chat", turns=[turn("another fox", "m")])
    now = ok(world.call(RESOLVE, {"source": cited})).body
    assert now["unchanged"] is False
    assert now["digest"] != body["digest"]
    ok(world.call(WRITE, {"conversation": {"agentId": "chat", "conversationId": "talk", "turns": [turn("é", "talk:0")]}}))
    assert world.call(RESOLVE, {"source": cited}).code == "not_found"


def test_an_agent_resolves_its_family_alone(user: Caller) -> None:
    """Another's turn is not found, whatever the caller's role and however it is named; and nothing is recorded."""
    world = user.within(world=new("world"))
    parent, child, other = (new(name) for name in ("parent", "child", "other"))
    world.make(parent, role="reviewer")
    world.make(child, parentAgentId=parent)
    for agent_id in (parent, child, other):
        world.say(f"talk of {agent_id}", "x", agent_id=agent_id)

    def codes(by: Caller) -> list[str]:
        sources = [{"conversationId": f"talk of {one}", "turnId": f"talk of {one}:0"} for one in (parent, child, other)]
        named = [source | {"agentId": one} for source, one in zip(sources, (parent, child, other), strict=True)]
        replies = [by.call(RESOLVE, {"source": source}) for source in (*sources, *named)]
        assert {reply.message for reply in replies if reply.code != "ok"} <= {
            f"source: there is no turn talk of {one}:0 in a conversation talk of {one}" for one in (parent, child, other)
        }
        return [reply.code for reply in replies]

    assert codes(user.agent(parent)) == ["ok", "ok", "not_found"] * 2
    assert codes(user.agent(child)) == ["not_found", "ok", "not_found"] * 2
    assert codes(user.agent(new("stranger"))) == ["not_found"] * 6
    assert codes(world) == ["ok"] * 6
    assert user.reads(agentId=other) == []


@pytest.mark.parametrize(
    ("source", "field", "problem"),
    [
        (None, "source", "is empty"),
        ({"turnId": "m"}, "source.conversation_id", "is empty"),
        ({"conversationId": "c"}, "source.turn_id", "is empty"),
        ({"conversationId": "c", "turnId": "m" * 1025}, "source.turn_id", "1025 bytes, at most 1024 are allowed"),
        ({"conversationId": "c" * 513, "turnId": "m"}, "source.conversation_id", "513 bytes, at most 512 are allowed"),
        ({"conversationId": "c", "turnId": "m", "agentId": "é" * 257}, "source.agent_id", "514 bytes, at most 512 are allowed"),
        (
            {"conversationId": "c", "turnId": "m", "digest": "sha256:" + "A" * 64},
            "source.digest",
            "does not match regex pattern `^(sha256:[0-9a-f]{64})?$`",
        ),
    ],
)
def test_what_is_refused(source: Json | None, field: str, problem: str, user: Caller) -> None:
    reply = user.call(RESOLVE, {"source": source} if source is not None else {})
    assert (reply.code, reply.violations) == ("invalid_argument", [(field, problem)])


def test_the_longest_ids(world: Caller) -> None:
    """1,024 bytes of a message's id, 512 of a chat's; what is made of a long chat's id fits too."""
    talk, message = "é" * 256, "m" * 1024
    world.say(talk, agent_id="chat", turns=[turn("x", message), turn("y")])
    for turn_id in (message, f"{talk}:1"):
        assert ok(world.call(RESOLVE, {"source": {"conversationId": talk, "turnId": turn_id}})).body["turn"]["turnId"] == turn_id


def test_over_grpc_it_is_the_same(world: Caller, grpc_target: str, contract: Contract) -> None:
    world.say("talk", "a fox", agent_id="chat")
    over_grpc = GrpcDoor(grpc_target, contract)
    try:
        for turn_id in ("talk:0", "talk:1"):
            body = {"source": {"conversationId": "talk", "turnId": turn_id, "digest": NOWHERE}, "scope": dict(world.scope)}
            one, other = (door.call(RESOLVE, body) for door in (over_grpc, world.door))
            assert (one.code, one.message) == (other.code, other.message)
            assert one.code != "ok" or one.body == other.body
    finally:
        over_grpc.close()
