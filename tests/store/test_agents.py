"""Agents, their scopes and their families; who a scope lets see whom."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from aforesaid.model import EMPTY_SCOPE
from aforesaid_server.errors import InvalidArgument, NotFound, PermissionDenied
from aforesaid_server.store import AgentKey, Append, Scope, StoredAgent
from aforesaid_server.store.sql import SqlStore
from tests.store.plain import said

ADA, BOB = {"user_id": "ada"}, {"user_id": "bob"}
ADA_AT_WORK = {"user_id": "ada", "team": "x"}


def make(store: SqlStore, agent_id: str, scope: Scope = EMPTY_SCOPE, parent: str | None = None) -> StoredAgent:
    return store.update_agent(AgentKey(agent_id, scope), parent_agent_id=parent)


def test_made_by_the_first_write(store: SqlStore) -> None:
    written = store.append(Append(AgentKey("a", ADA), "c", [said("x")]), now=1)
    assert written.agent == StoredAgent(written.agent.pk, "a", "a", "implementer", False, ADA, None, "")
    assert store.agent(written.agent.pk) == written.agent
    assert store.append(Append(AgentKey("a", dict(ADA), name="else", role="else"), "d", [said("x")]), now=2).agent == written.agent
    assert store.append(Append(AgentKey("a", pk=written.agent.pk), "d", [said("x")]), now=2).agent == written.agent
    assert store.append(Append(AgentKey("a", BOB), "c", [said("x")]), now=1).agent.pk != written.agent.pk
    assert store.agent(99) is None


def test_made_by_an_import_with_its_parent(store: SqlStore) -> None:
    key = AgentKey("sub", ADA_AT_WORK, name="Sub", role="reviewer", parent_agent_id="main")
    sub = store.append(Append(key, "c", []), now=1).agent
    (main,) = store.agents_with_id("main", {})
    assert (sub.name, sub.role, sub.parent_pk, sub.parent_agent_id) == ("Sub", "reviewer", main.pk, "main")
    assert (main.scope, main.name, main.role, main.parent_pk) == (ADA_AT_WORK, "main", "implementer", None)
    wider = make(store, "wide")
    assert store.append(Append(AgentKey("s2", ADA, parent_agent_id="wide"), "c", []), now=1).agent.parent_pk == wider.pk
    more = ADA_AT_WORK | {"more": "x"}
    for number, (scope, nearest) in enumerate(
        [(ADA, ADA), ({"team": "x"}, ADA), (ADA_AT_WORK, ADA_AT_WORK), (BOB, ADA_AT_WORK), (more, ADA_AT_WORK)]
    ):
        make(store, "wide", scope)
        sub = store.append(Append(AgentKey(f"under {number}", ADA_AT_WORK, parent_agent_id="wide"), "c", []), now=1).agent
        assert sub.parent_pk is not None
        parent = store.agent(sub.parent_pk)
        assert parent is not None
        assert (parent.agent_id, parent.scope) == ("wide", nearest)
    with pytest.raises(InvalidArgument, match=r"^agent.parent_agent_id: odd is the agent itself"):
        store.append(Append(AgentKey("odd", ADA, parent_agent_id="odd"), "c", []), now=1)
    assert store.agents_with_id("odd", {}) == []


def test_made_under_a_parent_that_is_named_outright(store: SqlStore) -> None:
    """It is no other agent of that id, and an agent that was made elsewhere meanwhile is not taken."""
    one, other = make(store, "main"), make(store, "main", ADA)
    sub = store.append(Append(AgentKey("sub", ADA, parent_agent_id="main", parent_pk=one.pk), "c", []), now=1).agent
    assert sub.parent_pk == one.pk
    with pytest.raises(PermissionDenied, match=r"^agent_id: sub is not the caller's own agent$"):
        store.append(Append(AgentKey("sub", ADA, parent_pk=other.pk), "c", []), now=2)


def test_agents_that_name_each_other_as_parents(store: SqlStore) -> None:
    store.append(Append(AgentKey("a", parent_agent_id="b"), "c", []), now=1)
    store.append(Append(AgentKey("b", name="B", parent_agent_id="a"), "c", []), now=2)
    a, b = (store.agents_with_id(one, {})[0] for one in "ab")
    assert (a.parent_pk, b.parent_pk, b.name) == (b.pk, None, "B")


def test_update(store: SqlStore) -> None:
    key = AgentKey("a", ADA)
    made = store.update_agent(key, name="Ada's", archived=True)
    assert (made.name, made.role, made.archived) == ("Ada's", "implementer", True)
    key = AgentKey("a", pk=made.pk)
    assert store.update_agent(key) == made
    changed = store.update_agent(key, role="", archived=False)
    assert (changed.pk, changed.name, changed.role, changed.archived, changed.scope) == (made.pk, "Ada's", "", False, ADA)
    assert store.update_agent(key, name="").name == "a"
    assert store.agents_with_id("a", {}) == [store.agent(made.pk)]
    with pytest.raises(NotFound, match=r"^agent_id: there is no agent ghost$"):
        store.update_agent(AgentKey("ghost", pk=99), name="x")


def test_parents(store: SqlStore) -> None:
    a, b, c = make(store, "a", ADA), make(store, "b", ADA, "a"), make(store, "c", ADA_AT_WORK, "b")
    assert (b.parent_pk, b.parent_agent_id, c.parent_pk) == (a.pk, "a", b.pk)
    for below in ("a", "b"):
        with pytest.raises(InvalidArgument) as raised:
            store.update_agent(AgentKey("a", pk=a.pk), parent_agent_id=below)
        assert (raised.value.field, raised.value.problem) == (
            "agent.parent_agent_id",
            f"{below} is the agent itself or one of its sub-agents",
        )
    make(store, "elsewhere", BOB)
    for hidden in ("c", "elsewhere", "nobody"):
        with pytest.raises(NotFound, match=f"^agent.parent_agent_id: there is no agent {hidden}$"):
            store.update_agent(AgentKey("a", pk=a.pk), parent_agent_id=hidden)
    with pytest.raises(NotFound):
        make(store, "new", ADA, "nobody")
    assert store.agents_with_id("new", {}) == []
    assert store.agent(a.pk) == a
    alone = store.update_agent(AgentKey("b", pk=b.pk), parent_agent_id="")
    assert (alone.parent_pk, alone.parent_agent_id) == (None, "")
    assert store.update_agent(AgentKey("a", pk=a.pk), parent_agent_id="b").parent_pk == b.pk


def test_family(store: SqlStore) -> None:
    root = make(store, "root", ADA)
    children = [make(store, f"child {number}", ADA, "root") for number in range(3)]
    deep = [make(store, "deep 0", ADA, "child 1")]
    deep += [make(store, f"deep {depth}", ADA_AT_WORK, f"deep {depth - 1}") for depth in range(1, 40)]
    make(store, "stranger", ADA)
    everyone = {agent.pk for agent in (root, *children, *deep)}
    assert store.family(root.pk) == everyone
    assert store.family(children[1].pk) == {children[1].pk, *(agent.pk for agent in deep)}
    assert store.family(deep[-1].pk) == {deep[-1].pk}
    assert store.family(99) == frozenset()


def test_a_family_holds_together_whatever_the_table_says(store: SqlStore) -> None:
    """Neither parents that run in a circle nor a child of another scope come from a write; they must not get through even so."""
    a, b, c = make(store, "a", ADA), make(store, "b", ADA, "a"), make(store, "c", ADA, "b")
    stranger = make(store, "stranger", BOB)
    with store._writing.begin() as connection:
        connection.exec_driver_sql(f"UPDATE agents SET parent_pk = {c.pk} WHERE pk IN ({a.pk}, {stranger.pk})")
    assert store.family(a.pk) == store.family(b.pk) == {a.pk, b.pk, c.pk}
    assert store.family(stranger.pk) == {stranger.pk}


SCOPES: list[Mapping[str, str]] = [
    {},
    {"user_id": "ada"},
    {"user_id": "bob"},
    {"user_id": "Ada"},
    {"team": "ada"},
    {"user_id": "ada", "team": "x"},
    {"user_id": "ada", "team": "y"},
    {"user_id": "ada", "team": ""},
    {"user_id": "ada\0", "team": "x"},
    {"user\0id": "ada"},
    {'"': '":"', ",": "é"},
    {"a": "1", "b": "2", "c": "3"},
]


def test_scopes(store: SqlStore) -> None:
    """An agent is seen where it has every pair that is asked for, whatever else it has."""
    for number, scope in enumerate(SCOPES):
        store.append(Append(AgentKey("same", scope), "c", [said("x")]), now=number)
        store.append(Append(AgentKey(f"only {number:02}", dict(sorted(scope.items(), reverse=True))), "c", [said("x")]), now=number)
    for asked in [*SCOPES, {"c": "3", "a": "1"}, {"c": "3", "a": "2"}, {"nobody": "x"}]:
        visible = [scope for scope in SCOPES if scope.items() >= asked.items()]
        same = store.agents_with_id("same", asked)
        assert [agent.scope for agent in same] == visible
        only = [f"only {SCOPES.index(scope):02}" for scope in visible]
        listed = store.list_agents(asked, None, None, 99)
        assert [agent.agent_id for agent in listed] == [*only, *["same"] * len(visible)]
        assert [agent.pk for agent in listed[len(only) :]] == [agent.pk for agent in same]
        talks = store.list_conversations(asked, None, None, 99)
        assert sorted(agent.pk for _, agent in talks) == sorted(agent.pk for agent in listed)
        some = frozenset(agent.pk for agent in store.list_agents({}, None, None, 99)[::2])
        assert store.list_agents(asked, some, None, 99) == [agent for agent in listed if agent.pk in some]
        assert store.list_conversations(asked, some, None, 99) == [talk for talk in talks if talk[1].pk in some]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
@pytest.mark.parametrize("narrowed", [False, True])
def test_pages_of_lists_hold_together(store: SqlStore, limit: int, narrowed: bool) -> None:
    for number in range(20):
        agent = AgentKey(f"agent {number % 5}", {"n": str(number // 5)})
        store.append_many([Append(agent, f"c{other}", []) for other in range(2)], now=number // 3)
    agents, talks = store.list_agents({}, None, None, 99), store.list_conversations({}, None, None, 99)
    assert agents == sorted(agents, key=lambda agent: (agent.agent_id, agent.pk))
    assert talks == sorted(talks, key=lambda talk: (-talk[0].updated_at, -talk[0].pk))
    assert (len(agents), len(talks)) == (20, 40)
    only = frozenset(agent.pk for agent in agents[3:11]) if narrowed else None
    agents_found: list[StoredAgent] = []
    while page := store.list_agents({}, only, (agents_found[-1].agent_id, agents_found[-1].pk) if agents_found else None, limit):
        assert len(page) <= limit
        agents_found += page
    assert agents_found == [agent for agent in agents if only is None or agent.pk in only]
    found = store.list_conversations({}, only, None, limit)
    while page_of_talks := store.list_conversations({}, only, (found[-1][0].updated_at, found[-1][0].pk), limit):
        assert len(page_of_talks) <= limit
        found += page_of_talks
    assert found == [talk for talk in talks if only is None or talk[1].pk in only]


def test_lists_narrowed_to_nobody_and_to_many(store: SqlStore) -> None:
    made = store.append(Append(AgentKey("a"), "c", []), now=1)
    assert store.list_agents({}, frozenset(), None, 9) == []
    assert store.list_conversations({}, frozenset(), None, 9) == []
    many = frozenset(range(100_000))
    assert store.list_agents({}, many, None, 9) == [made.agent]
    assert store.list_conversations({}, many, None, 9) == [(made.conversation, made.agent)]


def test_conversations_of_one_id(store: SqlStore) -> None:
    """One id may be had by many agents, in their scopes."""
    by_scope = [(scope, store.append(Append(AgentKey("a", scope), "c", [said("x")]), now=1)) for scope in SCOPES]
    deleted = store.append(Append(AgentKey("b", ADA), "c", [said("x")]), now=1)
    store.delete(deleted.agent.pk, "c", now=2)
    store.append(Append(AgentKey("a", ADA), "C", [said("x")]), now=1)
    for asked in SCOPES:
        pks = [written.conversation.pk for scope, written in by_scope if scope.items() >= asked.items()]
        assert store.conversations_with_id("c", asked, None) == pks
        some = frozenset(written.agent.pk for _, written in by_scope[::2])
        assert store.conversations_with_id("c", asked, some) == [
            written.conversation.pk for _, written in by_scope if written.conversation.pk in pks and written.agent.pk in some
        ]
    assert store.conversations_with_id("c", {}, frozenset()) == []
    assert store.conversations_with_id("d", {}, None) == []
    assert store.conversations_with_id("c", {}, frozenset(range(100_000))) == [written.conversation.pk for _, written in by_scope]


def test_has_turns(store: SqlStore) -> None:
    silent = make(store, "silent").pk
    empty = store.append(Append(AgentKey("empty"), "c", []), now=1).agent.pk
    told = store.append(Append(AgentKey("told"), "c", [said("x")]), now=1).agent.pk
    assert [store.has_turns(frozenset(some)) for some in ([], [silent], [empty], [silent, empty, 99], [silent, told])] == [
        False,
        False,
        False,
        False,
        True,
    ]
    assert store.has_turns(frozenset(range(100_000)))
    store.delete(told, "c", now=2)
    assert not store.has_turns(frozenset([told]))
