"""Who asks, and what that caller may read and write. Access only ever narrows.

`Call` is what a door knows of a caller; `Access` joins it to the stored agents. `RIGHTS` is the whole of who may do what; the doors
and the use cases never decide by themselves. A scope is no right: whatever the table says, nobody looks out of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from aforesaid.model import EMPTY_SCOPE
from aforesaid_server.errors import InvalidArgument, NotFound, PermissionDenied, Stopped, Unauthenticated
from aforesaid_server.store import AgentKey, Scope, Store, StoredAgent


class Whom(Enum):
    """With regard to whom a caller may do something, each more than the one before."""

    NOBODY = "nobody"
    ITSELF = "itself"
    FAMILY = "itself and its sub-agents"
    READABLE = "those, and others by its role or by a grant"
    SCOPE = "everybody in its scope"


@dataclass(frozen=True, slots=True)
class Right:
    """What an agent, and what a user or service, may do by a method.

    `recorded`: reading another goes to the audit log. `fields`: what of an agent an agent may change.
    """

    agent: Whom
    user: Whom
    recorded: bool = False
    fields: frozenset[str] = frozenset()


_READS = Right(agent=Whom.READABLE, user=Whom.SCOPE, recorded=True)
_IS_TOLD = Right(agent=Whom.READABLE, user=Whom.SCOPE)
_WRITES = Right(agent=Whom.FAMILY, user=Whom.SCOPE)
# Looks at the caller's own alone, which is nobody's business but its own: nothing is recorded.
_OWN = Right(agent=Whom.FAMILY, user=Whom.SCOPE)

# contract.md's table of rights: a row for every method of the proto, which is refused to all without one.
RIGHTS: Mapping[str, Right] = MappingProxyType(
    {
        "SearchTranscripts": _READS,
        "ReadTranscript": _READS,
        "ListAgents": _IS_TOLD,
        "GetAgent": _IS_TOLD,
        "ListConversations": _IS_TOLD,
        "GetConversation": _IS_TOLD,
        "AppendTurns": _WRITES,
        "WriteConversation": _WRITES,
        "DeleteConversation": _WRITES,
        "ImportTurns": _WRITES,
        "IndexConversation": _WRITES,
        "SearchTurns": _OWN,
        "ResolveSource": _OWN,
        "CompileContext": _OWN,
        "UpdateAgent": Right(agent=Whom.ITSELF, user=Whom.SCOPE, fields=frozenset({"name"})),
        "ListReads": Right(agent=Whom.ITSELF, user=Whom.SCOPE),
        "VerifyAudit": Right(agent=Whom.NOBODY, user=Whom.SCOPE),
    }
)
_NONE = Right(agent=Whom.NOBODY, user=Whom.NOBODY)


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
    narrows it. A call with a token has its id in `token_id`, and the pk of the agent that it is bound to, if any, in `agent_pk`.
    `door` is "connect", "grpc-web" or "grpc"; `method` the bare name, such as "SearchTranscripts".
    """

    method: str
    door: str
    request_id: str
    agent_id: str = ""
    scope: Mapping[str, str] = field(default_factory=lambda: EMPTY_SCOPE)
    patience: Patience = field(default_factory=Patience)
    token_id: str = ""
    agent_pk: int | None = None

    def naming(self, agent_id: str) -> Call:
        """Returns the call as made by the agent of that id, if one is given. A token speaks for nobody but whom it is bound to:
        PermissionDenied is raised for any other agent, and for all where it is a user's or service's.
        """
        if not agent_id or agent_id == self.agent_id:
            return self
        if self.token_id:
            raise PermissionDenied(f"x-agent-id: the token is not bound to agent {agent_id}")
        return replace(self, agent_id=agent_id)

    @property
    def right(self) -> Right:
        """The method's row of the table."""
        return RIGHTS.get(self.method, _NONE)

    @property
    def whom(self) -> Whom:
        """With regard to whom this caller may do what the method does."""
        return self.right.agent if self.agent_id else self.right.user


@dataclass(frozen=True, slots=True)
class Who:
    """A caller joined to the stored agents. `agent` is None for a user or service, and for an agent id that no visible agent has.

    `scope` is the caller's scope narrowed by the request's; None where the two contradict each other: such a caller sees nothing.
    `bound` is the caller's before it is narrowed, `right` and `whom` what it may do by the method that it calls.
    """

    agent_id: str
    agent: StoredAgent | None
    scope: Scope | None
    bound: Scope
    right: Right
    whom: Whom

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


def no_good_token() -> Unauthenticated:
    """Returns the one answer for no token and for each that is not good, whatever is wrong with it."""
    return Unauthenticated("authorization: a bearer token that is good is required")


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


def _may_not_read() -> PermissionDenied:
    """Returns the one answer to who may not read others: it says nothing about the target."""
    return PermissionDenied("agent_id: the caller's role may not read other agents")


@dataclass(frozen=True, slots=True)
class _Named:
    """What an id in a request stands for: the visible agents that have it, and whether it is the caller's or a sub-agent's."""

    agent_id: str
    found: list[StoredAgent]
    own: bool

    def one(self, field: str = "agent_id") -> StoredAgent | None:
        """Returns the agent, None if none is visible. Raises InvalidArgument where several are."""
        return _the_one(self.found, self.agent_id, field)


def _as_targets(named: _Named) -> tuple[tuple[str, int | None], ...]:
    """Returns what the audit log calls the target: its id, and its pk where one agent is visible."""
    return ((named.agent_id, named.found[0].pk if len(named.found) == 1 else None),)


def _now() -> int:
    return time.time_ns() // 1_000


class Access:
    """Joins callers to the stored agents and answers what they may do."""

    def __init__(self, store: Store, readers: frozenset[str], *, now: Callable[[], int] = _now) -> None:
        self._store = store
        self._readers = readers
        self._now = now

    def admit(self, call: Call) -> None:
        """Raises PermissionDenied where the method is not for callers of this kind at all."""
        if call.whom is Whom.NOBODY:
            raise PermissionDenied(f"x-agent-id: {'an agent' if call.agent_id else 'a user'} may not call {call.method}")

    def confirm(self, call: Call) -> None:
        """Raises Unauthenticated if the token of a call has been revoked or has expired since the call began."""
        if call.token_id:
            token = self._store.token(call.token_id)
            if token is None or not token.good_at(self._now()):
                raise no_good_token()

    def who(self, call: Call, request_scope: Scope) -> Who:
        """Returns who calls. Raises PermissionDenied where the method is not for such callers, and InvalidArgument if two visible
        agents share the caller's id and the request's scope does not tell.
        """
        self.admit(call)
        if not call.agent_id:
            return Who("", None, joined(call.scope, request_scope), call.scope, call.right, call.whom)
        agent = self._calling(call, request_scope)
        bound = agent.scope if agent else call.scope
        return Who(call.agent_id, agent, joined(bound, request_scope), bound, call.right, call.whom)

    def _calling(self, call: Call, request_scope: Scope) -> StoredAgent | None:
        if call.agent_pk is not None:
            return self._store.agent(call.agent_pk)
        found = self._store.agents_with_id(call.agent_id, call.scope)
        if len(found) > 1:
            found = [agent for agent in found if holds(agent.scope, request_scope)]
        found = _exactly(found, joined(call.scope, request_scope) if request_scope else None)
        return _the_one(found, call.agent_id, "x-agent-id")

    def may_read_others(self, who: Who) -> bool:
        """Tells whether a caller may read every agent of its scope, be it by its role."""
        return who.whom is Whom.SCOPE or (who.whom is Whom.READABLE and who.role in self._readers)

    def granted(self, who: Who) -> frozenset[int]:
        """Returns the pks of the agents that a caller may read now by grants alone; they are looked up on every call."""
        if who.agent is None or who.whom is not Whom.READABLE or self.may_read_others(who):
            return frozenset()
        return self._store.granted(who.agent.pk, self._now())

    def seen_by(self, who: Who, agent: StoredAgent) -> StoredAgent:
        """Returns an agent as its record is shown to a caller: without the id of a parent that lies out of the caller's scope."""
        if agent.parent_pk is None or holds(agent.parent_scope, who.bound):
            return agent
        return replace(agent, parent_pk=None, parent_agent_id="")

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
        if not every_agent:
            return Readable(own, recorded=False, own=own)
        if self.may_read_others(who):
            return Readable(None, recorded=who.right.recorded, own=own)
        others = self.granted(who) - own
        return Readable(own | others, recorded=who.right.recorded and bool(others), own=own)

    def _named(self, who: Who, agent_id: str, request_scope: Scope) -> Readable:
        named = self._behind(who, agent_id, request_scope)
        if named.own:
            own = named.one()
            if own is None and who.agent is not None:
                raise no_such_agent(agent_id)
            pks = frozenset({own.pk} if own else ())
            return Readable(pks, recorded=False, own=pks)
        targets = _as_targets(named)
        if not self.may_read_others(who):
            named = self._by_grant(who, named)
            if not named.found:
                raise Refused(_may_not_read(), targets)
            targets = _as_targets(named)
        try:
            target = named.one()
        except InvalidArgument as error:
            raise Refused(error, targets) from None
        if target is None:
            raise Refused(no_such_agent(agent_id), targets)
        return Readable(frozenset({target.pk}), recorded=who.right.recorded, targets=targets)

    def _by_grant(self, who: Who, named: _Named) -> _Named:
        """Returns of those behind an id the ones that a grant lets the caller read: of the others it is told nothing."""
        granted = self.granted(who)
        return replace(named, found=[agent for agent in named.found if agent.pk in granted])

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
        return None if self.may_read_others(who) else self.family(who) | self.granted(who)

    def told_of(self, who: Who, agent_id: str, request_scope: Scope) -> StoredAgent:
        """Returns an agent that a caller may be told of; an empty id is the caller itself."""
        if not agent_id and not who.is_agent:
            raise InvalidArgument("agent_id", "is empty: a user names the agent")
        agent_id = agent_id or who.agent_id
        named = self._behind(who, agent_id, request_scope)
        if not named.own and not self.may_read_others(who):
            named = self._by_grant(who, named)
            if not named.found:
                raise _may_not_read()
        agent = named.one()
        if agent is None:
            raise no_such_agent(agent_id)
        return agent

    # -- writing

    def writable(
        self,
        who: Who,
        agent_id: str,
        request_scope: Scope,
        field: str = "agent_id",
        parent_agent_id: str = "",
        *,
        exact_scope: bool = False,
    ) -> AgentKey:
        """Returns the agent that a write goes to, which may have to be made: by a user, by itself, or by the agent that is named as
        its parent or has that one as a sub-agent. With `exact_scope` it is the agent of exactly the caller's scope joined with the
        request's, whatever others of its id are visible.

        Raises PermissionDenied for a visible agent that is not the caller's own, NotFound for one that is not visible.
        """
        if not agent_id and not who.is_agent:
            raise InvalidArgument(field, "is empty: a user names the agent")
        agent_id = agent_id or who.agent_id
        if who.scope is None:
            raise no_such_agent(agent_id)
        named = self._in_exactly(who, who.scope, agent_id) if exact_scope else self._behind(who, agent_id, request_scope)
        agent = named.one(field)
        if agent is None:
            return self._to_be_made(who, who.scope, agent_id, parent_agent_id)
        if who.whom is not Whom.SCOPE and not named.own:
            raise PermissionDenied(f"{field}: {agent_id} is not the caller's own agent")
        if who.whom is Whom.ITSELF and agent_id != who.agent_id:
            raise PermissionDenied(f"{field}: an agent may change its own name only")
        return AgentKey(agent_id, agent.scope, agent.pk, within=who.bound)

    def _in_exactly(self, who: Who, scope: Scope, agent_id: str) -> _Named:
        """Returns the agent that an id stands for in exactly a scope, if there is one."""
        agent = self._store.agent_in_scope(agent_id, scope)
        own = agent is not None and agent.pk in self.family(who)
        return _Named(agent_id, [agent] if agent is not None else [], own)

    def _to_be_made(self, who: Who, scope: Scope, agent_id: str, parent_agent_id: str) -> AgentKey:
        """Returns an agent that a write makes. Raises NotFound where it would be neither the caller nor a sub-agent of its own."""
        key = AgentKey(agent_id, scope, within=who.bound)
        if not who.is_agent or (who.agent is None and who.agent_id in {agent_id, parent_agent_id}):
            return key
        # Not the caller's own id: the agent of that id in a narrower scope is somebody else.
        parent = self._own_parent(who, scope, parent_agent_id) if agent_id != who.agent_id else None
        if parent is None:
            raise no_such_agent(agent_id)
        return replace(key, parent_pk=parent)

    def _own_parent(self, who: Who, scope: Scope, parent_agent_id: str) -> int | None:
        """Returns the pk of the agent that is meant as parent of one in a scope: the caller itself, or a sub-agent of its own,
        never another agent of the same id.
        """
        if who.agent is None or not parent_agent_id:
            return None
        if parent_agent_id == who.agent_id:
            return who.agent.pk
        family = self.family(who)
        found = [
            agent
            for agent in self._store.agents_with_id(parent_agent_id, who.agent.scope)
            if agent.pk in family and holds(scope, agent.scope)
        ]
        return max(found, key=lambda agent: (len(agent.scope), -agent.pk)).pk if found else None

    def check_change(self, who: Who, fields: frozenset[str]) -> None:
        """Raises PermissionDenied for fields of an agent that the caller may not change."""
        if who.whom is not Whom.SCOPE and fields - who.right.fields:
            may, first = ", ".join(sorted(who.right.fields)), min(fields - who.right.fields)
            raise PermissionDenied(f"update_mask: an agent may change its own {may}, not its {first}")
