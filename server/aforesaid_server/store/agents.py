"""Agents in the tables: found by scope and id, made by the first write, joined to parents.

A parent's scope is part of its sub-agents' scopes: whoever sees the parent's side of the boundary from within sees both, and a
family never reaches out of the scope of the agent that it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select, tuple_

from aforesaid.model import EMPTY_SCOPE
from aforesaid_server.errors import InvalidArgument, NotFound, PermissionDenied
from aforesaid_server.store import AgentKey, Scope, StoredAgent
from aforesaid_server.store.rows import AGENT, Values, agent_of, canonical, in_chunks, in_scope, scope_digest, scope_of, with_agents
from aforesaid_server.store.tables import agents, conversations, scope_pairs, scopes, turns

DEFAULT_ROLE = "implementer"

_AGENTS = select(*AGENT).select_from(with_agents(agents))
_BY_PK = _AGENTS.where(agents.c.pk == bindparam("agent"))
_BY_SCOPE = _AGENTS.where(agents.c.agent_id == bindparam("id"), scopes.c.digest == bindparam("scope"))
_INSERT = agents.insert().returning(agents.c.pk)
_SCOPE = select(scopes.c.pk).where(scopes.c.digest == bindparam("scope"))
_INSERT_SCOPE = scopes.insert().returning(scopes.c.pk)

# UNION, not UNION ALL: a row seen before is not followed again, so the walk ends even if the parents ran in a circle.
_DOWN = select(agents.c.pk, agents.c.scope_pk).where(agents.c.pk == bindparam("agent")).cte("family", recursive=True)
_DOWN = _DOWN.union(select(agents.c.pk, agents.c.scope_pk).join(_DOWN, agents.c.parent_pk == _DOWN.c.pk))
_FAMILY = select(_DOWN.c.pk, scopes.c.pairs).join(scopes, _DOWN.c.scope_pk == scopes.c.pk)
_UP = select(agents.c.pk, agents.c.parent_pk).where(agents.c.pk == bindparam("agent")).cte("ancestors", recursive=True)
_UP = _UP.union(select(agents.c.pk, agents.c.parent_pk).join(_UP, agents.c.pk == _UP.c.parent_pk))
_ANCESTORS = select(_UP.c.pk)
_OF_AGENTS = agents.join(scopes, agents.c.scope_pk == scopes.c.pk).join(conversations, conversations.c.agent_pk == agents.c.pk)
_NAMED = select(conversations.c.pk).select_from(_OF_AGENTS)
_CITED = select(turns.c.number).select_from(_OF_AGENTS.join(turns, turns.c.conversation_pk == conversations.c.pk))
_ANY_CONVERSATION = select(conversations.c.pk).where(conversations.c.agent_pk == bindparam("agent")).limit(1)


def agent_by_pk(connection: Connection, pk: int) -> StoredAgent | None:
    """Returns an agent."""
    row = connection.execute(_BY_PK, {"agent": pk}).first()
    return agent_of(row) if row else None


def agents_by_pk(connection: Connection, pks: Iterable[int]) -> dict[int, StoredAgent]:
    """Returns the agents that have these pks."""
    found = (row for some in in_chunks(sorted(pks)) for row in connection.execute(_AGENTS.where(agents.c.pk.in_(some))))
    return {agent.pk: agent for agent in map(agent_of, found)}


def agent_in_scope(connection: Connection, agent_id: str, scope: Scope) -> StoredAgent | None:
    """Returns the agent with exactly this scope and id."""
    row = connection.execute(_BY_SCOPE, {"id": agent_id, "scope": scope_digest(scope)}).first()
    return agent_of(row) if row else None


def agents_with_id(connection: Connection, agent_id: str, scope: Scope) -> list[StoredAgent]:
    """Returns the agents of that id whose scope has every pair of `scope`, by pk."""
    found = _AGENTS.where(agents.c.agent_id == agent_id, *in_scope(scope)).order_by(agents.c.pk)
    return [agent_of(row) for row in connection.execute(found)]


def family(connection: Connection, pk: int) -> frozenset[int]:
    """Returns the pks of an agent and its sub-agents of any depth, whose scope has every pair of its own; none if nobody has it."""
    scopes = {member: scope_of(text) for member, text in connection.execute(_FAMILY, {"agent": pk})}
    if pk not in scopes:
        return frozenset()
    return frozenset(member for member, scope in scopes.items() if scope.items() >= scopes[pk].items())


def list_agents(
    connection: Connection, scope: Scope, only: Sequence[int] | None, after: tuple[str, int] | None, limit: int
) -> list[StoredAgent]:
    """Returns agents whose scope has every pair of `scope` by (agent_id, pk), after that key; `only` narrows to these pks."""
    found: Select[Any] = _AGENTS.where(*in_scope(scope))
    if only is not None:
        found = found.where(agents.c.pk.in_(only))
    if after is not None:
        found = found.where(tuple_(agents.c.agent_id, agents.c.pk) > after)
    rows = connection.execute(found.order_by(agents.c.agent_id, agents.c.pk).limit(limit))
    return [agent_of(row) for row in rows]


def pks_with_ids(connection: Connection, ids: Iterable[str], scope: Scope) -> frozenset[int] | None:
    """Returns the pks of the agents that have one of these ids and whose scope has every pair of `scope`; None for all of them."""
    found = select(agents.c.pk).where(*in_scope(scope))
    wanted = sorted(set(ids))
    chunks = list(in_chunks(wanted))
    # Less and greater are looked up in the index of ids; to be none of some goes through all agents.
    column = agents.c.agent_id
    other = [(column < wanted[0]) | (column > wanted[0])] if len(wanted) == 1 else [column.not_in(some) for some in chunks]
    if connection.execute(found.where(*other).limit(1)).first() is None:
        return None
    return frozenset(pk for some in chunks for pk in connection.execute(found.where(agents.c.agent_id.in_(some))).scalars())


def cited(
    connection: Connection,
    conversation_id: str,
    turn_id: str,
    scope: Scope,
    pieces: Sequence[Sequence[int] | None],
    agent_id: str,
) -> list[int]:
    """Returns the numbers of the turns, two at most, that these ids name: in exactly the scope, if a conversation of that id is or
    was there, else in any that has its pairs. `pieces` hold the pks of the agents that are looked at, or one None for all.
    """
    named = [conversations.c.conversation_id == conversation_id, *([agents.c.agent_id == agent_id] if agent_id else [])]
    whose = [[] if some is None else [agents.c.pk.in_(some)] for some in pieces]
    exactly = [scopes.c.digest == scope_digest(scope)]
    there = any(connection.execute(_NAMED.where(*named, *exactly, *these).limit(1)).first() for these in whose)
    within = exactly if there else in_scope(scope)
    found = _CITED.where(turns.c.turn_id == turn_id, *named, *within).limit(2)
    return [number for these in whose for number in connection.execute(found.where(*these)).scalars()][:2]


def find_or_make(connection: Connection, key: AgentKey) -> StoredAgent:
    """Returns the agent that a write goes to, making it and its parent where they are missing.

    Raises NotFound for a pk that no agent has, InvalidArgument for an agent that names itself as its parent, and PermissionDenied
    where an agent that was to be made under `parent_pk` has meanwhile been made elsewhere.
    """
    if key.pk is not None:
        agent = agent_by_pk(connection, key.pk)
        if agent is None:
            raise NotFound(f"agent_id: there is no agent {key.agent_id}")
    else:
        agent = agent_in_scope(connection, key.agent_id, key.scope)
        if agent is None:
            return _make(connection, key, _parent_pk(connection, key))
    if key.parent_pk is not None and agent.pk not in family(connection, key.parent_pk):
        raise PermissionDenied(f"agent_id: {key.agent_id} is not the caller's own agent")
    return _described(connection, agent, key)


def _parent_pk(connection: Connection, key: AgentKey) -> int | None:
    """Returns the pk of the parent that a key names, made where it is missing."""
    if key.parent_pk is not None or not key.parent_agent_id:
        return key.parent_pk
    if key.parent_agent_id == key.agent_id:
        raise _own_ancestor(key.agent_id)
    parent = _parent(connection, key.parent_agent_id, key.scope, key.within)
    return (parent or _make(connection, AgentKey(key.parent_agent_id, key.scope), None)).pk


def _described(connection: Connection, agent: StoredAgent, key: AgentKey) -> StoredAgent:
    """Gives an agent that nobody has described and that has no conversation, as one that a sub-agent named as its parent, what a
    key says of it: else it would depend on which of the two is imported first.
    """
    said = bool(key.parent_agent_id) or key.name not in {"", agent.agent_id} or key.role not in {"", DEFAULT_ROLE}
    bare = (agent.name, agent.role, agent.parent_pk) == (agent.agent_id, DEFAULT_ROLE, None)
    if not (said and bare) or connection.execute(_ANY_CONVERSATION, {"agent": agent.pk}).first():
        return agent
    parent_pk = _parent_pk(connection, key)
    if parent_pk is not None and agent.pk in connection.execute(_ANCESTORS, {"agent": parent_pk}).scalars():
        parent_pk = None  # each names the other: who came first is the parent
    values = {"name": key.name or agent.name, "role": key.role or agent.role, "parent_pk": parent_pk}
    connection.execute(agents.update().where(agents.c.pk == agent.pk).values(values))
    return agent_of(connection.execute(_BY_PK, {"agent": agent.pk}).one())


def update_agent(
    connection: Connection,
    key: AgentKey,
    *,
    name: str | None,
    role: str | None,
    archived: bool | None,
    parent_agent_id: str | None,
) -> StoredAgent:
    """Changes the fields that are not None, making the agent if `key.pk` is None. An empty name becomes the id again."""
    agent = find_or_make(connection, key)
    values: Values = {}
    if name is not None:
        values["name"] = name or agent.agent_id
    if role is not None:
        values["role"] = role
    if archived is not None:
        values["archived"] = archived
    if parent_agent_id is not None:
        values["parent_pk"] = _new_parent_pk(connection, agent, parent_agent_id, key.within)
    if not values:
        return agent
    connection.execute(agents.update().where(agents.c.pk == agent.pk).values(values))
    return agent_of(connection.execute(_BY_PK, {"agent": agent.pk}).one())


def _new_parent_pk(connection: Connection, agent: StoredAgent, parent_agent_id: str, within: Scope) -> int | None:
    if not parent_agent_id:
        return None
    parent = _parent(connection, parent_agent_id, agent.scope, within)
    if parent is None:
        raise NotFound(f"agent.parent_agent_id: there is no agent {parent_agent_id}")
    if agent.pk in connection.execute(_ANCESTORS, {"agent": parent.pk}).scalars():
        raise _own_ancestor(parent_agent_id)
    return parent.pk


def _own_ancestor(parent_agent_id: str) -> InvalidArgument:
    return InvalidArgument("agent.parent_agent_id", f"{parent_agent_id} is the agent itself or one of its sub-agents")


def _parent(connection: Connection, parent_agent_id: str, scope: Scope, within: Scope) -> StoredAgent | None:
    """Returns the agent of that id whose scope is part of `scope` and has every pair of `within`, the one with the most pairs where
    there are several.
    """
    near = [agent for pair in scope.items() for agent in agents_with_id(connection, parent_agent_id, dict([pair]))]
    anywhere = agent_in_scope(connection, parent_agent_id, EMPTY_SCOPE)
    fitting = [agent for agent in [*near, anywhere] if agent is not None and within.items() <= agent.scope.items() <= scope.items()]
    return max(fitting, key=lambda agent: (len(agent.scope), -agent.pk), default=None)


def _make(connection: Connection, key: AgentKey, parent_pk: int | None) -> StoredAgent:
    row = {
        "agent_id": key.agent_id,
        "scope_pk": _scope_pk(connection, key.scope),
        "name": key.name or key.agent_id,
        "role": key.role or DEFAULT_ROLE,
        "archived": False,
        "parent_pk": parent_pk,
    }
    pk = connection.execute(_INSERT, row).scalar_one()
    return agent_of(connection.execute(_BY_PK, {"agent": pk}).one())


def _scope_pk(connection: Connection, scope: Scope) -> int:
    """Returns the key of a scope, which is stored if this is its first agent."""
    digest = scope_digest(scope)
    pk: int | None = connection.execute(_SCOPE, {"scope": digest}).scalar()
    if pk is None:
        pk = connection.execute(_INSERT_SCOPE, {"pairs": canonical(scope), "digest": digest}).scalar_one()
        if scope:
            pairs = [{"key": key, "value": value, "scope_pk": pk} for key, value in scope.items()]
            connection.execute(scope_pairs.insert(), pairs)
    return pk
