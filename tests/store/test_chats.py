"""What the chats of an application are looked up by: agents of some ids, the one of exactly a scope, and who has a cited turn."""

from __future__ import annotations

import pytest

from aforesaid_server.errors import Aborted, FailedPrecondition
from aforesaid_server.store import AgentKey, Append, Scope, Store, StoredAgent
from tests.store.plain import said

SCOPES: list[Scope] = [{}, {"user_id": "ada"}, {"user_id": "ada", "project": "p"}, {"user_id": "bob"}]


@pytest.fixture
def agents(store: Store) -> dict[tuple[str, int], StoredAgent]:
    """`chat` and `other` in each scope, by id and the place of the scope."""
    return {
        (agent_id, place): store.update_agent(AgentKey(agent_id, scope))
        for place, scope in enumerate(SCOPES)
        for agent_id in ("chat", "other")
    }


def write(store: Store, agent: StoredAgent, talk: str, *turn_ids: str) -> None:
    turns = [said(turn_id, turn_id) for turn_id in turn_ids]
    store.write(Append(AgentKey(agent.agent_id, pk=agent.pk), talk, turns), expected_revision=None, now=1)


def test_agents_of_some_ids(store: Store, agents: dict[tuple[str, int], StoredAgent]) -> None:
    def found(ids: list[str], scope: Scope) -> set[tuple[str, int]]:
        pks = store.pks_with_ids(ids, scope)
        assert pks is not None
        return {key for key, agent in agents.items() if agent.pk in pks}

    assert found(["chat"], {}) == {("chat", place) for place in range(4)}
    assert found(["chat", "none", "chat"], {"user_id": "ada"}) == {("chat", 1), ("chat", 2)}
    assert found([], {}) == found(["none"], {"user_id": "ada"}) == set()
    assert store.pks_with_ids(["none", "other", "chat"], {"user_id": "ada"}) is None, "all there are"
    assert store.pks_with_ids(["chat"], {"user_id": "eve"}) is None, "there are none"
    store.update_agent(AgentKey("third", {"user_id": "ada", "project": "p"}))
    assert found(["chat", "other"], {"user_id": "ada", "project": "p"}) == {("chat", 2), ("other", 2)}
    assert found(["chat", "other"], {"user_id": "ada"}) == {(agent_id, n) for agent_id in ("chat", "other") for n in (1, 2)}
    assert found([*(f"a{n}" for n in range(2_500)), "chat"], {"user_id": "bob"}) == {("chat", 3)}


def test_the_agent_of_exactly_a_scope(store: Store, agents: dict[tuple[str, int], StoredAgent]) -> None:
    for place, scope in enumerate(SCOPES):
        assert store.agent_in_scope("chat", dict(reversed(list(scope.items())))) == agents["chat", place]
    assert store.agent_in_scope("chat", {"project": "p"}) is None
    assert store.agent_in_scope("none", {}) is None


def test_who_has_a_cited_turn(store: Store, agents: dict[tuple[str, int], StoredAgent]) -> None:
    write(store, agents["chat", 0], "c", "m", "n")
    write(store, agents["other", 1], "c", "n")
    write(store, agents["chat", 1], "c", "x", "m")
    write(store, agents["chat", 2], "c", "m")
    write(store, agents["chat", 3], "d", "m")
    store.delete(agents["chat", 2].pk, "c", now=2)

    def cited(turn_id: str, scope: Scope, only: list[tuple[str, int]] | None = None, agent_id: str = "") -> list[StoredAgent]:
        these = None if only is None else frozenset(agents[key].pk for key in only)
        places = store.turns(sorted(store.cited("c", turn_id, scope, these, agent_id))).values()
        assert {(place.conversation.conversation_id, place.turn.turn_id) for place in places} <= {("c", turn_id)}
        return [place.agent for place in places]

    wide, ada, others = agents["chat", 0], agents["chat", 1], agents["other", 1]
    assert cited("m", {}) == [wide], "in exactly that scope"
    assert cited("x", {}) == [], "which has no such turn"
    assert cited("n", {"user_id": "ada"}) == [others]
    assert cited("m", {"user_id": "ada"}) == [ada]
    assert cited("m", {"user_id": "ada"}, agent_id="other") == []
    assert cited("m", {"user_id": "ada", "project": "p"}) == [], "deleted"
    assert cited("m", {}, [("chat", 1), ("chat", 3)]) == [ada]
    assert cited("m", {}, [("chat", 1), ("chat", 2), ("other", 1)]) == [ada]
    assert cited("n", {}, [("chat", 1), ("other", 1)]) == [others]
    assert cited("m", {}, []) == cited("m", {"user_id": "eve"}) == cited("none", {}) == []
    write(store, agents["other", 3], "c", "m")
    write(store, agents["chat", 3], "c", "m")
    assert {agent.agent_id for agent in cited("m", {"user_id": "bob"})} == {"chat", "other"}
    assert cited("m", {"user_id": "bob"}, agent_id="chat") == [agents["chat", 3]]
    assert len(cited("m", {}, [("chat", 1), ("other", 3), ("chat", 3)])) == 2, "two at most"
    assert cited("m", {"project": "p"}) == []


def test_whether_a_write_revised_anything(store: Store) -> None:
    """A title alone is a change too, though no turn is put for it."""
    key = AgentKey("chat")

    def write(*texts: str, title: str = "", expected: int | None = None) -> tuple[bool, int]:
        turns = [said(text, f"m{n}") for n, text in enumerate(texts)]
        written = store.write(Append(key, "c", turns, title), expected_revision=expected, now=1)
        return written.revised, written.conversation.revision

    assert write("a", "b") == (True, 1)
    assert write("a", "b") == (False, 1)
    assert write("a", "b", title="T") == (True, 2)
    assert write("a", "b", expected=2) == (False, 2)
    assert write("a") == (True, 3)
    assert write("b") == (True, 4)
    assert write() == (True, 5)
    assert write() == (False, 5)
    with pytest.raises(Aborted):
        write("c", expected=4)
    store.delete(store.agents_with_id("chat", {})[0].pk, "c", now=2)
    with pytest.raises(FailedPrecondition):
        write("a")
