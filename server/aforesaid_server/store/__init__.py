"""The `Store` port: what was said, by whom, in which scope, and the log of changes. The store is the truth; indexes follow it.

Everything is synchronous and safe to call from several threads. Each method is one transaction. Anything that the database
cannot do now is raised as `errors.Unavailable`. Times are microseconds since 1970-01-01 UTC. `pk` is a number that the store gives
and that never leaves the service.

**The change log.** Every change of a turn takes the next number of one log, from 1, without gaps. `Turn.number` is where the
change that wrote its present text stands there. A follower reads the log from a number on and learns which turns to put and which
numbers to forget. A turn rewritten with the same text keeps its number; if something else about it changed that an index holds
(parts, role, time, project), the log gets a further `Put` with the old turn number. So does a turn that nobody wrote, where the
calls which its results answer were written, moved or went after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeAlias

from aforesaid.model import EMPTY_SCOPE, Part, Source

Scope: TypeAlias = Mapping[str, str]
Answers: TypeAlias = Mapping[int, str]
"""The names of the calls that a turn's results answer, by the place of the result among its parts. See `answers.py`."""
NO_ANSWERS: Answers = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StoredAgent:
    """An agent as it is kept; `parent_pk` None if it is nobody's sub-agent. `parent_scope` is the parent's."""

    pk: int
    agent_id: str
    name: str
    role: str
    archived: bool
    scope: Scope
    parent_pk: int | None
    parent_agent_id: str
    parent_scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation without its turns; `content_length` in bytes of its transcript."""

    pk: int
    agent_pk: int
    conversation_id: str
    title: str
    source: Source
    revision: int
    created_at: int
    updated_at: int
    turn_count: int
    content_length: int


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn as it is kept. `content_offset` and `content_length` are bytes of the transcript, `digest` is its text's SHA-256."""

    number: int
    conversation_pk: int
    turn_id: str
    seq: int
    role: str
    parts: tuple[Part, ...]
    created_at: int
    content_offset: int
    content_length: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class TurnInPlace:
    """A turn with its conversation and agent, and the calls of that conversation which its results answer."""

    turn: StoredTurn
    conversation: StoredConversation
    agent: StoredAgent
    answers: Answers = field(default_factory=lambda: NO_ANSWERS)


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """Where a turn stands, without its text: its conversation, its place there, and how long the text is, in bytes."""

    number: int
    conversation_pk: int
    seq: int
    content_length: int


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn to write: `content_length` in bytes and `digest` are of its text. An empty `turn_id` is filled in.

    `created_at` None is the time of the write, or that of the turn which this one replaces.
    """

    turn_id: str
    role: str
    parts: tuple[Part, ...]
    created_at: int | None
    content_length: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class AgentKey:
    """The agent that a write goes to: the stored one, or one to be made with this id, scope, name, role and parent.

    An agent to be made whose (scope, id) meanwhile exists is that agent. Defaults: name = id, role "implementer".
    `parent_agent_id` names an agent whose scope is part of `scope` and has every pair of `within`, which is as far as the one that
    writes sees; it is made, with the same scope, if there is none. `parent_pk` names the parent outright.

    What is said of an agent also holds for one that was made only because another one named it as its parent.
    """

    agent_id: str
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)
    pk: int | None = None
    name: str = ""
    role: str = ""
    parent_agent_id: str = ""
    within: Scope = field(default_factory=lambda: EMPTY_SCOPE)
    parent_pk: int | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """Turns for the end of one conversation, which is made if it does not exist.

    The title, and each field of the source, replaces the old one where it is not empty.
    """

    agent: AgentKey
    conversation_id: str
    turns: Sequence[NewTurn]
    title: str = ""
    source: Source = Source()


@dataclass(frozen=True, slots=True)
class WrittenTurn:
    """What became of one turn of a write. `outcome` is "added", "replaced" or "unchanged"; `place` is its index in the request."""

    turn: StoredTurn
    outcome: str
    place: int


@dataclass(frozen=True, slots=True)
class Put:
    """The turn with this number is to be found from here on. `number` is the place in the log, `replaces` the one to forget, or 0.

    None as `place` in the log means that the turn has since been changed again or is gone: there is nothing to put, only to forget.
    """

    number: int
    turn_number: int
    replaces: int
    place: TurnInPlace | None


@dataclass(frozen=True, slots=True)
class Forget:
    """The turn with the number `turn_number` is gone."""

    number: int
    turn_number: int


@dataclass(frozen=True, slots=True)
class ForgetConversation:
    """All turns of a conversation are gone."""

    number: int
    conversation_pk: int


Change: TypeAlias = Put | Forget | ForgetConversation


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did, with the changes that it put into the log, in order (each `Put` with its turn in place). `revised` tells
    whether anything is other than before: the conversation has then a new revision.
    """

    agent: StoredAgent
    conversation: StoredConversation
    turns: Sequence[WrittenTurn]
    changes: Sequence[Change]
    revised: bool = True


@dataclass(frozen=True, slots=True)
class Imported:
    """Changes, from `first` to `last`, that an import made of one agent's turns."""

    first: int
    last: int
    agent_pk: int = 0
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the log after some number, up to `head`: the changes that no import made, in order, and those that one made, told
    as stretches.
    """

    head: int
    changes: Sequence[Change]
    imported: Sequence[Imported]


@dataclass(frozen=True, slots=True)
class Tombstoned:
    """An append of a batch that was left out because the conversation is tombstoned."""

    append: Append


@dataclass(frozen=True, slots=True)
class ReadRow:
    """One record of the audit table. `body` is canonical JSON, `mac` a keyed hash over it and the `mac` before."""

    number: int
    body: str
    mac: bytes


@dataclass(frozen=True, slots=True)
class ReadListing:
    """What a record is found by: the pairs of its caller's scope, and the agents that it names: id, and pk where the caller sees
    the agent.
    """

    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)
    targets: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class ReadHead:
    """How far the audit records go: the number and the `mac` of the last one, and a keyed hash of both; 0 before the first."""

    count: int
    mac: bytes
    proof: bytes


@dataclass(frozen=True, slots=True)
class NewRead:
    """A record to keep, what it is found by, and the head that it makes."""

    row: ReadRow
    listing: ReadListing
    head: ReadHead


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token to keep: `digest` is a keyed hash of all of it, `kind` "agent", "user" or "service", `expires_at` None for never.

    An agent's has `agent_pk`, the others a name and a scope.
    """

    token_id: str
    digest: bytes
    kind: str
    expires_at: int | None
    agent_pk: int | None = None
    name: str = ""
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token as it is kept; `scope` is the agent's where it is an agent's."""

    token_id: str
    digest: bytes
    kind: str
    agent: StoredAgent | None
    name: str
    scope: Scope
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def good_at(self, now: int) -> bool:
        """Tells whether it opens the service at this time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class NewGrant:
    """Leave for one agent to read another until `expires_at`; `by` is who gave it."""

    reader_pk: int
    target_pk: int
    expires_at: int
    why: str
    by: str


@dataclass(frozen=True, slots=True)
class StoredGrant:
    """A grant as it is kept."""

    number: int
    reader: StoredAgent
    target: StoredAgent
    why: str
    granted_at: int
    granted_by: str
    expires_at: int
    revoked_at: int | None
    revoked_by: str

    def good_at(self, now: int) -> bool:
        """Tells whether it lets the reader read at this time."""
        return self.revoked_at is None and now < self.expires_at


class Store(Protocol):
    """What the service asks of a database. `shared` tells whether other processes write too, as those of other nodes do."""

    shared: bool

    # -- agents

    def agents_with_id(self, agent_id: str, scope: Scope) -> list[StoredAgent]:
        """Returns the agents of that id whose scope has every pair of `scope`, by pk."""
        ...

    def pks_with_ids(self, agent_ids: Collection[str], scope: Scope) -> frozenset[int] | None:
        """Returns the pks of the agents that have one of these ids and whose scope has every pair of `scope`.

        None stands for all agents of that scope, of which there may be very many: none of them has another id.
        """
        ...

    def agent_in_scope(self, agent_id: str, scope: Scope) -> StoredAgent | None:
        """Returns the agent of that id whose scope is exactly this one."""
        ...

    def agent(self, pk: int) -> StoredAgent | None:
        """Returns an agent."""
        ...

    def family(self, pk: int) -> frozenset[int]:
        """Returns the pks of an agent and its sub-agents, of any depth, whose scope has every pair of the agent's scope."""
        ...

    def list_agents(
        self, scope: Scope, only: frozenset[int] | None, after: tuple[str, int] | None, limit: int
    ) -> list[StoredAgent]:
        """Returns agents whose scope has every pair of `scope` by (agent_id, pk), after that key; `only` narrows to these pks."""
        ...

    def update_agent(
        self,
        agent: AgentKey,
        *,
        name: str | None = None,
        role: str | None = None,
        archived: bool | None = None,
        parent_agent_id: str | None = None,
    ) -> StoredAgent:
        """Changes the fields that are not None, making the agent if `agent.pk` is None.

        An empty name becomes the id again, an empty parent_agent_id makes it nobody's sub-agent. Raises InvalidArgument
        ("agent.parent_agent_id") for an agent that would be its own ancestor and NotFound for a parent that does not exist in a
        scope that is part of the agent's.
        """
        ...

    # -- conversations and turns

    def conversation(self, agent_pk: int, conversation_id: str) -> StoredConversation | None:
        """Returns a conversation that exists and is not tombstoned."""
        ...

    def conversations_with_id(self, conversation_id: str, scope: Scope, agents: frozenset[int] | None) -> list[int]:
        """Returns the pks of the conversations of that id, not tombstoned, of agents whose scope has every pair of `scope`.

        `agents` narrows to these agents, None does not.
        """
        ...

    def cited(self, conversation_id: str, turn_id: str, scope: Scope, agents: frozenset[int] | None, agent_id: str) -> list[int]:
        """Returns the numbers of the turns, two at most, that these ids name in conversations of agents whose scope has every pair
        of `scope`; where there is a conversation of that id, be it tombstoned, in exactly `scope`, in those of that scope alone.

        `agents` narrows to these agents, `agent_id` to those of that id; None and empty do not.
        """
        ...

    def has_turns(self, agents: frozenset[int]) -> bool:
        """Tells whether any of the agents has a turn."""
        ...

    def list_conversations(
        self, scope: Scope, agents: frozenset[int] | None, after: tuple[int, int] | None, limit: int
    ) -> list[tuple[StoredConversation, StoredAgent]]:
        """Returns conversations, the one written last first, after the key (updated_at, pk) that came last; no tombstones.

        `scope` is a part of the scopes of their agents, `agents` narrows to these pks.
        """
        ...

    def turns(self, numbers: Sequence[int]) -> dict[int, TurnInPlace]:
        """Returns the turns that have these numbers now, in one read; numbers that are gone are left out."""
        ...

    def places(self, numbers: Sequence[int]) -> list[TurnPlace]:
        """Returns where the turns stand that have these numbers now, in no order; numbers that are gone are left out."""
        ...

    def places_from(self, conversation_pk: int, seq: int, limit: int) -> list[TurnPlace]:
        """Returns where the turns of a conversation stand, in order from a seq on."""
        ...

    def turn(self, conversation_pk: int, turn_id: str) -> StoredTurn | None:
        """Returns a turn by its id."""
        ...

    def turns_from(self, conversation_pk: int, seq: int, limit: int) -> list[StoredTurn]:
        """Returns turns in order from a seq on."""
        ...

    def seq_at(self, conversation_pk: int, offset: int) -> int:
        """Returns the seq of the turn whose bytes or newline stand at that offset of the transcript, at its end the turn count."""
        ...

    def append(self, append: Append, *, now: int) -> Written:
        """Appends turns as contract.md says (ids filled in, same id replaces in place, same text changes nothing).

        Raises FailedPrecondition if the conversation is tombstoned.
        """
        ...

    def append_many(self, appends: Sequence[Append], *, now: int) -> list[Written | Tombstoned]:
        """Does many appends in one transaction, as an import does, one result each, in order."""
        ...

    def write(self, append: Append, *, expected_revision: int | None, now: int) -> Written:
        """Writes a whole conversation; turns that it lacks are gone, those kept keep their number if their text is the same.

        Turns stand in the order given. Raises Aborted if the revision is another one and FailedPrecondition if it is tombstoned.
        """
        ...

    def delete(self, agent_pk: int, conversation_id: str, *, now: int) -> Sequence[Change]:
        """Deletes a conversation, leaving a tombstone. Raises NotFound if there is none; a tombstoned one is NotFound too."""
        ...

    # -- the change log

    def head(self) -> int:
        """Returns the number of the last change, 0 if there is none."""
        ...

    def changes(self, after: int, limit: int) -> list[Change]:
        """Returns changes after a number, in order: up to `limit`, fewer where their turns are large, none only at the end."""
        ...

    def tail(self, after: int, limit: int) -> Tail:
        """Returns what stands in the log after a number, as of one moment: up to `limit` changes that are no import's, fewer where
        their turns are large, one at least where there is one. Its head is that of the log unless it holds fewer than there are.
        """
        ...

    def pending(self, after: int) -> int:
        """Returns how many changes stand after a number."""
        ...

    # -- the audit table

    def add_read(self, after: int, make: Callable[[Sequence[ReadRow], ReadHead], NewRead]) -> NewRead:
        """Keeps the record, and the head, that are made of the records after a number and the head that is there; returns both.

        Nobody else adds one meanwhile. Raises Unavailable where a record with that number is there already.
        """
        ...

    def last_read(self) -> tuple[ReadRow | None, ReadHead]:
        """Returns the last record and the head, as of one moment."""
        ...

    def reads_after(self, number: int) -> Iterator[ReadRow]:
        """Yields the records after a number, in order."""
        ...

    def reads(self, scope: Scope, target: tuple[str, int | None] | None, before: int | None, limit: int) -> list[ReadRow]:
        """Returns records of callers whose scope has every pair of `scope`, newest first, before a number.

        `target` (id, None) narrows to records that name the id; (id, pk) to records that name this very agent.
        """
        ...

    def all_reads(self) -> Iterator[ReadRow]:
        """Yields all records by number."""
        ...

    def listed_by(self, numbers: Sequence[int]) -> dict[int, ReadListing]:
        """Returns what each of these records is listed by; one that is listed by nothing is left out."""
        ...

    # -- whose store it is

    def secret_check(self) -> bytes | None:
        """Returns what was kept by `claim`."""
        ...

    def claim(self, check: bytes) -> bool:
        """Keeps a keyed hash by which a deployment knows its store, if there is none yet; tells whether it is this one."""
        ...

    # -- tokens and grants

    def add_token(self, token: NewToken, *, now: int) -> None:
        """Keeps a token."""
        ...

    def token(self, token_id: str) -> StoredToken | None:
        """Returns a token, whether it is still good or not."""
        ...

    def list_tokens(self) -> list[StoredToken]:
        """Returns all tokens, the newest first."""
        ...

    def revoke_token(self, token_id: str, *, now: int) -> StoredToken | None:
        """Revokes a token, if it is not revoked; returns it as it was before, None if there is none."""
        ...

    def add_grant(self, grant: NewGrant, *, now: int) -> int:
        """Keeps a grant and returns its number."""
        ...

    def granted(self, reader_pk: int, now: int) -> frozenset[int]:
        """Returns the pks of the agents that an agent may read by a grant at this time."""
        ...

    def list_grants(self) -> list[StoredGrant]:
        """Returns all grants, the newest first."""
        ...

    def revoke_grant(self, number: int, *, now: int, by: str) -> StoredGrant | None:
        """Revokes a grant, if it is not revoked; returns it as it was before, None if there is none."""
        ...

    def close(self) -> None:
        """Gives the connections back."""
        ...
