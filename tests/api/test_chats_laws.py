"""Laws of the chats, whatever they hold: searches and sources are judged by a plain model of a few lines, over small random stores.

The model knows of each piece of text which terms it holds, as written by hand below: nothing here folds or parts a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.api.callers import COMPILE, DELETE, INDEX, RESOLVE, SEARCH_TURNS, Caller, new, ok
from tests.api.doors import ConnectDoor, Json

Scope: TypeAlias = dict[str, str]

# What is written, and the terms that it holds.
PIECES: dict[str, set[str]] = {
    "fox": {"fox"},
    "Fóx,": {"fox"},
    "ＦＯＸ": {"fox"},
    "red-fox": {"red", "fox"},
    "red": {"red"},
    "foxes": {"foxes"},
    "firefox": {"firefox"},
    "-the": {"the"},
    '"the red"': {"the", "red"},
    "v2": {"v2"},
    "記憶": {"記憶"},
    "記憶術": {"記憶", "憶術"},
    "straße": {"strasse"},
    "STRASSE": {"strasse"},
    "???": set(),
}
TEXTS = some.lists(some.sampled_from(sorted(PIECES)), max_size=4)
SCOPES: list[Scope] = [{}, {"user_id": "ada"}, {"user_id": "bob"}, {"user_id": "ada", "project": "p"}, {"project": "p"}]
AGENTS, TALKS, MESSAGES = ["chat", "other"], ["run-7:3", "c"], ["m0", "m1", "run-7:3:1"]
KINDS = ["text", "reasoning", "call", "result", "json"]


@dataclass(frozen=True, slots=True)
class Said:
    """A turn: its role, and parts as (kind, pieces)."""

    role: str
    parts: list[tuple[str, list[str]]]

    @property
    def terms(self) -> set[str]:
        """What SearchTurns may find it by."""
        if self.role == "system":
            return set()
        return set().union(*(PIECES[piece] for kind, pieces in self.parts if kind in {"text", "result"} for piece in pieces))

    def json(self, turn_id: str) -> Json:
        return {"turnId": turn_id, "role": self.role, "parts": [part_of(kind, " ".join(pieces)) for kind, pieces in self.parts]}


def part_of(kind: str, text: str) -> Json:
    match kind:
        case "text" | "reasoning":
            return {kind: text}
        case "call":
            return {"toolCall": {"name": "bash", "arguments": text}}
        case "result":
            return {"toolResult": {"text": text}}
        case _:
            return {"toolResult": {"json": '{"a": "fox red"}'}}


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat of an agent in a scope, its turns by their ids in order; deleted again or not."""

    agent: str
    scope: Scope
    talk: str
    turns: dict[str, Said]
    deleted: bool

    @property
    def key(self) -> tuple[str, str, str]:
        return self.agent, str(sorted(self.scope.items())), self.talk


ROLES = some.sampled_from(["user", "assistant", "tool", "system"])
TURNS = some.builds(Said, ROLES, some.lists(some.tuples(some.sampled_from(KINDS), TEXTS), max_size=3))
CHATS = some.builds(
    Chat,
    some.sampled_from(AGENTS),
    some.sampled_from(SCOPES),
    some.sampled_from(TALKS),
    some.dictionaries(some.sampled_from(MESSAGES), TURNS, max_size=3),
    some.sampled_from([False, False, False, True]),
)
STORES = some.lists(CHATS, max_size=7, unique_by=lambda chat: chat.key)


@pytest.fixture(scope="module")
def user(service_url: str) -> Iterator[Caller]:
    door = ConnectDoor(service_url)
    yield Caller(door)
    door.close()


def in_a_world(user: Caller, chats: list[Chat]) -> Caller:
    """Writes the chats in a world of their own; returns the user in it."""
    world = user.within(world=new("world"))
    for chat in chats:
        by = world.within(**world.scope, **chat.scope)
        place = {"agentId": chat.agent, "conversationId": chat.talk}
        turns = [said.json(turn_id) for turn_id, said in chat.turns.items()]
        ok(by.call(INDEX, {"conversation": place | {"turns": turns}, "exactScope": True}))
        if chat.deleted:
            ok(by.call(DELETE, place | {"exactScope": True}))
    return world


def holds(scope: Scope, pairs: Scope) -> bool:
    return pairs.items() <= scope.items()


def whose(body: Json, world: Caller) -> tuple[str, str, str]:
    """Which chat a reply names, as `Chat.key` has it."""
    scope = {key: value for key, value in body.get("scope", {}).items() if key not in world.scope}
    return body["agentId"], str(sorted(scope.items())), body["conversationId"]


@settings(max_examples=40)
@given(
    chats=STORES,
    query=TEXTS,
    scope=some.sampled_from(SCOPES),
    agents=some.sampled_from([[], ["chat"], ["other", "nobody"]]),
    talks=some.sampled_from([[], ["c"], ["run-7:3", "none"]]),
)
def test_a_search_finds_what_holds_a_term_and_nothing_else(
    chats: list[Chat], query: list[str], scope: Scope, agents: list[str], talks: list[str], user: Caller
) -> None:
    world = in_a_world(user, chats)
    terms = set().union(*(PIECES[piece] for piece in query))
    expected = {
        (*chat.key, turn_id)
        for chat in chats
        if not chat.deleted and holds(chat.scope, scope)
        if (not agents or chat.agent in agents) and (not talks or chat.talk in talks)
        for turn_id, said in chat.turns.items()
        if said.terms & terms
    }
    by = world.within(**world.scope, **scope)
    asked = {"query": " ".join(query), "agentIds": agents, "conversationIds": talks, "limit": 100}
    hits = ok(by.call(SEARCH_TURNS, asked)).body.get("hits", [])
    found = [(*whose(hit, world), hit["turn"]["turnId"]) for hit in hits]
    assert len(set(found)) == len(found)
    assert set(found) == expected
    quoted = ok(by.call(COMPILE, asked | {"budget": 1_000_000})).body.get("candidates", [])
    assert sorted((one["agentId"], one["conversationId"], one["turnId"]) for one in quoted) == sorted(
        (agent, talk, turn_id) for agent, _, talk, turn_id in expected
    )


@settings(max_examples=40)
@given(
    chats=STORES,
    talk=some.sampled_from(TALKS),
    turn_id=some.sampled_from(MESSAGES),
    scope=some.sampled_from(SCOPES),
    agent=some.sampled_from(["", "", *AGENTS]),
)
def test_a_source_names_one_turn_or_none(
    chats: list[Chat], talk: str, turn_id: str, scope: Scope, agent: str, user: Caller
) -> None:
    world = in_a_world(user, chats)
    named = [chat for chat in chats if chat.talk == talk and holds(chat.scope, scope) and agent in {"", chat.agent}]
    named = [chat for chat in named if chat.scope == scope] or named
    having = [chat for chat in named if turn_id in chat.turns and not chat.deleted]
    source = {"conversationId": talk, "turnId": turn_id, "agentId": agent}
    reply = world.within(**world.scope, **scope).call(RESOLVE, {"source": source})
    assert reply.code == {0: "not_found", 1: "ok"}.get(len(having), "invalid_argument")
    if reply.code == "ok":
        assert whose(reply.body, world) == having[0].key
        assert reply.body["turn"]["turnId"] == turn_id
