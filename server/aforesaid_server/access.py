"""Who asks, and what that caller may read and write. Access only ever narrows.

`Call` is what a door knows of a caller; `Access` joins it to the stored agents. The rules are contract.md's table of rights and its
"edges of who": the doors and the use cases never decide by themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from aforesaid.model import EMPTY_SCOPE
from aforesaid_server.errors import InvalidArgument, NotFound, PermissionDenied, Stopped
from aforesaid_server.store import AgentKey, Scope, Store, StoredAgent


class Patience:
    """How long a caller waits: until the deadline (monotonic seconds) or until it hangs up. Checked between the steps of a call."""

    __slots__ = ("_deadline", "_gone")

    def __init__(self, deadline: float | None = None) -> None:
        self._deadline = deadline
        self._gone = threading.Event()

    def hang_up(self) -> None:
        """Tells that nobody waits any more; may be called from any thread."""
        self._gone.set()

    def check(self) -> None:
        """Raises Stopped if nobody waits any more."""
        if self._gone.is_set() or (self._deadline is not None and time.monotonic() > self._deadline):
            raise Stopped("the caller no longer waits")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method, as a door sees it: who calls, how, and until when.

    `agent_id` is empty for a user or service. `scope` is what the caller is bound to (empty in local mode), before the request
    narrows it.
    `door` is "connect", "grpc-web" or "grpc"; `method` the bare name, such as "SearchTranscripts".
    """

    method: str
    door: str
    request_id: str
    agent_id: str = ""
    scope: Mapping[str, str] = field(default_factory=lambda: EMPTY_SCOPE)
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True, slots=True)
class Who:
    """A caller joined to the stored agents. `agent` is None for a user or service, and for an agent id that no visible agent has.

    `scope` is the caller's scope narrowed by the request's; None where the two contradict each other: such a caller sees nothing.
    """

    agent_id: str
    agent: StoredAgent | None
    scope: Scope | None

    @property
    def is_agent(self) -> bool:
        """Tells whether an agent asks, known or not."""
        return self.agent_id != ""

    @property
    def role(self) -> str:
        """The role of the agent that asks; empty for others."""
        return self.agent.role if self.agent else ""


@dataclass(frozen=True, slots=True)
class Readable:
    """Which agents a read may look at: pks, or None for all of the scope.

    `recorded` tells whether the read goes to the audit log; `targets` are the agents that were named, with their pk where they
    are visible.
    """

    agents: frozenset[int] | None
    recorded: bool
    own: frozenset[int] = frozenset()
    targets: tuple[tuple[str, int | None], ...] = ()


class Refused(Exception):
    """A read of somebody else that is refused and must be recorded first. `error` goes to the caller."""

    def __init__(self, error: PermissionDenied | NotFound | InvalidArgument, targets: tuple[tuple[str, int | None], ...]) -> None:
        super().__init__(error.message)
        self.error = error
        self.targets = targets


def joined(scope: Scope, narrower: Scope) -> Scope | None:
    """Returns the pairs of both scopes, None where they contradict each other."""
    if any(scope.get(key, value) != value for key, value in narrower.items()):
        return None
    return {**scope, **narrower}


def holds(scope: Scope, pairs: Scope) -> bool:
    """Tells whether a scope has every pair."""
    return all(scope.get(key) == value for key, value in pairs.items())


def no_such_agent(agent_id: str) -> NotFound:
    """Returns the one answer for an agent that is not there and for one that the caller may not see."""
    return NotFound(f"agent_id: there is no agent {agent_id}")


def _exactly(found: list[StoredAgent], scope: Scope | None) -> list[StoredAgent]:
    """Returns, of several agents of one id, the one with exactly the scope that was named; all of them if there is none."""
    return [agent for agent in found if agent.scope == scope] or found if len(found) > 1 else found


def _the_one(found: list[StoredAgent], agent_id: str, field: str) -> StoredAgent | None:
    """Returns the agent of an id, None if there is none. Raises InvalidArgument where several share it."""
    if len(found) > 1:
        raise InvalidArgument(field, f"{len(found)} agents have the id {agent_id}: name the scope")
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class _Named:
    """What an id in a request stands for: the visible agents that have it, and whether it is the caller's or a sub-agent's."""

    agent_id: str
    found: list[StoredAgent]
    own: bool

    def one(self, field: str = "agent_id") -> StoredAgent | None:
        """Returns the agent, None if none is visible. Raises InvalidArgument where several are."""
        return _the_one(self.found, self.agent_id, field)


class Access:
    """Joins callers to the stored agents and answers what they may do."""

    def __init__(self, store: Store, readers: frozenset[str]) -> None:
        self._store = store
        self._readers = readers

    def who(self, call: Call, request_scope: Scope) -> Who:
        """Returns who calls. Raises InvalidArgument if two visible agents share the caller's id and the request's scope does not
        tell.
        """
        if not call.agent_id:
            return Who("", None, joined(call.scope, request_scope))
        found = self._store.agents_with_id(call.agent_id, call.scope)
        if len(found) > 1:
            found = [agent for agent in found if holds(agent.scope, request_scope)]
        found = _exactly(found, joined(call.scope, request_scope) if request_scope else None)
        agent = _the_one(found, call.agent_id, "x-agent-id")
        scope = agent.scope if agent else call.scope
        return Who(call.agent_id, agent, joined(scope, request_scope))

    def may_read_others(self, who: Who) -> bool:
        """Tells whether a caller may read agents that are not its own."""
        return not who.is_agent or who.role in self._readers

    def family(self, who: Who) -> frozenset[int]:
        """Returns the pks of the agent that calls and its sub-agents."""
        return self._store.family(who.agent.pk) if who.agent else frozenset()

    # -- reading

    def readable(self, who: Who, agent_id: str, request_scope: Scope, *, every_agent: bool = False) -> Readable:
        """Returns which agents a search or read may look at. Raises Refused for somebody else's that it may not."""
        if every_agent and agent_id:
            raise InvalidArgument("every_agent", "not together with agent_id")
        if agent_id:
            return self._named(who, agent_id, request_scope)
        if who.scope is None:
            return Readable(frozenset(), recorded=False)
        if not who.is_agent:
            return Readable(None, recorded=False)
        own = self.family(who)
        if every_agent and self.may_read_others(who):
            return Readable(None, recorded=True, own=own)
        return Readable(own, recorded=False, own=own)

    def _named(self, who: Who, agent_id: str, request_scope: Scope) -> Readable:
        named = self._behind(who, agent_id, request_scope)
        if named.own:
            own = named.one()
            if own is None and who.agent is not None:
                raise no_such_agent(agent_id)
            pks = frozenset({own.pk} if own else ())
            return Readable(pks, recorded=False, own=pks)
        targets = ((agent_id, named.found[0].pk if len(named.found) == 1 else None),)
        if not self.may_read_others(who):
            raise Refused(PermissionDenied("agent_id: the caller's role may not read other agents"), targets)
        try:
            target = named.one()
        except InvalidArgument as error:
            raise Refused(error, targets) from None
        if target is None:
            raise Refused(no_such_agent(agent_id), targets)
        return Readable(frozenset({target.pk}), recorded=True, targets=targets)

    def _behind(self, who: Who, agent_id: str, request_scope: Scope) -> _Named:
        """Returns what an id stands for. An id of its own stays the caller's where the request's scope hides the agent."""
        if who.is_agent and agent_id == who.agent_id:
            seen = who.agent is not None and who.scope is not None and holds(who.agent.scope, who.scope)
            return _Named(agent_id, [who.agent] if seen and who.agent else [], own=True)
        found = self._store.agents_with_id(agent_id, who.scope) if who.scope is not None else []
        found = _exactly(found, who.scope if request_scope else None)
        if who.agent is None:
            return _Named(agent_id, found, own=False)
        family = self.family(who)
        known = found or self._store.agents_with_id(agent_id, who.agent.scope)
        return _Named(agent_id, found, own=any(agent.pk in family for agent in known))

    def listed(self, who: Who) -> frozenset[int] | None:
        """Returns which agents a caller may list: pks, or None for all of its scope."""
        if who.scope is None:
            return frozenset()
        return None if self.may_read_others(who) else self.family(who)

    def told_of(self, who: Who, agent_id: str, request_scope: Scope) -> StoredAgent:
        """Returns an agent that a caller may be told of; an empty id is the caller itself."""
        if not agent_id and not who.is_agent:
            raise InvalidArgument("agent_id", "is empty: a user names the agent")
        agent_id = agent_id or who.agent_id
        named = self._behind(who, agent_id, request_scope)
        if not named.own and not self.may_read_others(who):
            raise PermissionDenied("agent_id: the caller's role may not read other agents")
        agent = named.one()
        if agent is None:
            raise no_such_agent(agent_id)
        return agent

    # -- writing

    def writable(
        self, who: Who, agent_id: str, request_scope: Scope, field: str = "agent_id", parent_agent_id: str = ""
    ) -> AgentKey:
        """Returns the agent that a write goes to, which may have to be made: by a user, by itself, or by the agent that is named as
        its parent or has that one as a sub-agent.

        Raises PermissionDenied for a visible agent that is not the caller's own, NotFound for one that is not visible.
        """
        if not agent_id and not who.is_agent:
            raise InvalidArgument(field, "is empty: a user names the agent")
        agent_id = agent_id or who.agent_id
        if who.scope is None:
            raise no_such_agent(agent_id)
        named = self._behind(who, agent_id, request_scope)
        agent = named.one(field)
        if agent is None:
            own_child = bool(parent_agent_id) and self._behind(who, parent_agent_id, request_scope).own
            if not (not who.is_agent or (named.own and who.agent is None) or own_child):
                raise no_such_agent(agent_id)
            return AgentKey(agent_id, who.scope)
        if who.is_agent and not named.own:
            raise PermissionDenied(f"{field}: {agent_id} is not the caller's own agent")
        return AgentKey(agent_id, agent.scope, agent.pk)
