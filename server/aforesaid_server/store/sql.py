"""The `Store` over SQLAlchemy Core. Each method is one transaction; which database is beneath only the one who opens it knows.

Readers run beside each other and beside the writer, each on one snapshot. Writers of this process wait for each other at a lock,
those of others at the database's. What a write makes of turns is decided in `plan.py` and written down in `writing.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Select, bindparam, select, tuple_
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as NoConnection

from aforesaid_server.errors import FailedPrecondition, Unavailable
from aforesaid_server.store import (
    AgentKey,
    Append,
    Change,
    NewGrant,
    NewRead,
    NewToken,
    ReadHead,
    ReadListing,
    ReadRow,
    Scope,
    Store,
    StoredAgent,
    StoredConversation,
    StoredGrant,
    StoredToken,
    StoredTurn,
    Tail,
    Tombstoned,
    TurnInPlace,
    TurnPlace,
    Written,
)
from aforesaid_server.store.agents import (
    agent_by_pk,
    agent_in_scope,
    agents_with_id,
    cited,
    family,
    list_agents,
    pks_with_ids,
    update_agent,
)
from aforesaid_server.store.answers import with_answers
from aforesaid_server.store.changelog import changes_after, head
from aforesaid_server.store.migrations import upgrade
from aforesaid_server.store.reads import add_read, last_read, listed_by, read_head, reads_after, reads_before
from aforesaid_server.store.rows import (
    AGENT,
    CONVERSATION,
    agent_of,
    conversation_of,
    in_chunks,
    in_scope,
    places_by_number,
    places_from,
    turns_by_id,
    turns_by_number,
    turns_by_seq,
    with_agents,
)
from aforesaid_server.store.sqlite import InMemory, reading_engine, writing_engine
from aforesaid_server.store.tables import agents, conversations, deployment, turns
from aforesaid_server.store.tail import tail_after
from aforesaid_server.store.tokens import (
    add_grant,
    add_token,
    granted,
    list_grants,
    list_tokens,
    revoke_grant,
    revoke_token,
    token_by_id,
)
from aforesaid_server.store.writing import Transaction

PATIENCE = 10.0  # seconds
_READS_AT_ONCE = 1000

_T = TypeVar("_T")


def open_sqlite(path: Path, *, create: bool = True, patience: float = PATIENCE) -> SqlStore:
    """Opens the store in a SQLite file and brings its tables to the newest revision.

    `patience` is how many seconds a call waits for a connection or for another process's lock. Raises FailedPrecondition if there
    is no such file and `create` is false, or if a newer version wrote it, and Unavailable if it cannot be read.
    """
    if not path.exists():
        if not create:
            raise FailedPrecondition(f"there is no store at {path}")
        try:
            path.touch(mode=0o600)  # what agents said is its owner's; SQLite gives the same mode to the files beside it
        except OSError as error:
            raise Unavailable(f"the store cannot be made at {path}: {error.strerror}") from error
    store = SqlStore(reading_engine(path, patience=patience), writing_engine(path, patience=patience))
    try:
        store.migrate()
    except Unavailable as error:
        store.close()
        reason = error.__cause__.orig if isinstance(error.__cause__, DBAPIError) else error
        raise Unavailable(f"the store at {path} cannot be opened: {reason}") from error
    except BaseException:
        store.close()
        raise
    return store


def open_in_memory(*, patience: float = PATIENCE) -> SqlStore:
    """Opens an empty store that is gone when it is closed."""
    memory = InMemory()
    store = SqlStore(reading_engine(memory, patience=patience), writing_engine(memory, patience=patience))
    try:
        # The writer's connection stays open from here on, and with it the database.
        store.migrate()
    except BaseException:
        store.close()
        raise
    return store


class SqlStore(Store):
    """A store over two engines on one database: one for reading, one for writing. `shared` as in the port."""

    def __init__(self, reading: Engine, writing: Engine, *, shared: bool = False) -> None:
        self.shared = shared
        self._reading = reading
        self._writing = writing
        self._one_writer = threading.Lock()

    def migrate(self) -> None:
        """Brings the tables to the newest revision."""
        with self._write() as connection:
            upgrade(connection)

    # -- agents

    def agents_with_id(self, agent_id: str, scope: Scope) -> list[StoredAgent]:
        """Returns the agents of that id in the scope."""
        with self._read() as connection:
            return agents_with_id(connection, agent_id, scope)

    def pks_with_ids(self, agent_ids: Collection[str], scope: Scope) -> frozenset[int] | None:
        """Returns the pks of the agents of these ids in the scope."""
        with self._read() as connection:
            return pks_with_ids(connection, agent_ids, scope)

    def agent_in_scope(self, agent_id: str, scope: Scope) -> StoredAgent | None:
        """Returns the agent of that id with exactly this scope."""
        with self._read() as connection:
            return agent_in_scope(connection, agent_id, scope)

    def agent(self, pk: int) -> StoredAgent | None:
        """Returns an agent."""
        with self._read() as connection:
            return agent_by_pk(connection, pk)

    def family(self, pk: int) -> frozenset[int]:
        """Returns an agent and its sub-agents."""
        with self._read() as connection:
            return family(connection, pk)

    def list_agents(
        self, scope: Scope, only: frozenset[int] | None, after: tuple[str, int] | None, limit: int
    ) -> list[StoredAgent]:
        """Returns agents in the scope by (agent_id, pk)."""
        with self._read() as connection:
            found = [agent for some in _pieces(only) for agent in list_agents(connection, scope, some, after, limit)]
        return _first(found, limit, lambda agent: (agent.agent_id, agent.pk))

    def update_agent(
        self,
        agent: AgentKey,
        *,
        name: str | None = None,
        role: str | None = None,
        archived: bool | None = None,
        parent_agent_id: str | None = None,
    ) -> StoredAgent:
        """Changes an agent, making it if need be."""
        with self._write() as connection:
            return update_agent(connection, agent, name=name, role=role, archived=archived, parent_agent_id=parent_agent_id)

    # -- conversations and turns

    def conversation(self, agent_pk: int, conversation_id: str) -> StoredConversation | None:
        """Returns a conversation that is no tombstone."""
        with self._read() as connection:
            row = connection.execute(_CONVERSATION, {"agent": agent_pk, "id": conversation_id}).first()
            return conversation_of(row) if row else None

    def conversations_with_id(self, conversation_id: str, scope: Scope, agents: frozenset[int] | None) -> list[int]:
        """Returns the pks of the conversations of that id, by pk."""
        with self._read() as connection:
            found = [pk for some in _pieces(agents) for pk in _conversations_with_id(connection, conversation_id, scope, some)]
        return sorted(found)

    def cited(self, conversation_id: str, turn_id: str, scope: Scope, agents: frozenset[int] | None, agent_id: str) -> list[int]:
        """Returns the numbers of the turns, two at most, that these ids name in the scope."""
        with self._read() as connection:
            return cited(connection, conversation_id, turn_id, scope, list(_pieces(agents)), agent_id)

    def has_turns(self, agents: frozenset[int]) -> bool:
        """Tells whether any of the agents has a turn."""
        with self._read() as connection:
            return any(connection.execute(_WITH_TURNS, {"agents": some}).first() for some in _pieces(agents))

    def list_conversations(
        self, scope: Scope, agents: frozenset[int] | None, after: tuple[int, int] | None, limit: int
    ) -> list[tuple[StoredConversation, StoredAgent]]:
        """Returns conversations, the one written last first."""
        with self._read() as connection:
            found = [listed for some in _pieces(agents) for listed in _list_conversations(connection, scope, some, after, limit)]
        return _first(found, limit, lambda listed: (-listed[0].updated_at, -listed[0].pk))

    def turns(self, numbers: Sequence[int]) -> dict[int, TurnInPlace]:
        """Returns the turns that have these numbers, by two statements, and a third where results answer calls."""
        with self._read() as connection:
            placed = turns_by_number(connection, numbers)
            return dict(zip(placed, with_answers(connection, placed.values()), strict=True))

    def places(self, numbers: Sequence[int]) -> list[TurnPlace]:
        """Returns where the turns stand that have these numbers now."""
        with self._read() as connection:
            return places_by_number(connection, numbers)

    def places_from(self, conversation_pk: int, seq: int, limit: int) -> list[TurnPlace]:
        """Returns where the turns of a conversation stand, in order from a seq on."""
        with self._read() as connection:
            return places_from(connection, conversation_pk, seq, limit)

    def turn(self, conversation_pk: int, turn_id: str) -> StoredTurn | None:
        """Returns a turn by its id."""
        with self._read() as connection:
            return next(iter(turns_by_id(connection, conversation_pk, [turn_id])), None)

    def turns_from(self, conversation_pk: int, seq: int, limit: int) -> list[StoredTurn]:
        """Returns turns in order from a seq on."""
        with self._read() as connection:
            return turns_by_seq(connection, conversation_pk, seq, seq + limit - 1)

    def seq_at(self, conversation_pk: int, offset: int) -> int:
        """Returns the seq of the turn at an offset."""
        with self._read() as connection:
            row = connection.execute(_TURN_AT, {"conversation": conversation_pk, "offset": max(offset, 0)}).first()
        if row is None:
            return 0
        seq, content_offset, content_length = row
        found: int = seq
        return found if offset <= content_offset + content_length else found + 1  # the newline stands at their sum

    def append(self, append: Append, *, now: int) -> Written:
        """Appends turns to one conversation."""
        with self._write() as connection:
            (done,) = Transaction(connection, now).append([append])
            if isinstance(done, Tombstoned):
                raise FailedPrecondition(f"conversation_id: {append.conversation_id} was deleted")
            return done

    def append_many(self, appends: Sequence[Append], *, now: int) -> list[Written | Tombstoned]:
        """Appends turns to many conversations in one transaction."""
        with self._write() as connection:
            return Transaction(connection, now, bulk=True).append(appends)

    def write(self, append: Append, *, expected_revision: int | None, now: int) -> Written:
        """Writes a whole conversation."""
        with self._write() as connection:
            return Transaction(connection, now).write(append, expected_revision)

    def delete(self, agent_pk: int, conversation_id: str, *, now: int) -> Sequence[Change]:
        """Deletes a conversation but for its id."""
        with self._write() as connection:
            return Transaction(connection, now).delete(agent_pk, conversation_id)

    # -- the change log

    def head(self) -> int:
        """Returns the number of the last change."""
        with self._read() as connection:
            return head(connection)

    def changes(self, after: int, limit: int) -> list[Change]:
        """Returns changes after a number."""
        with self._read() as connection:
            return changes_after(connection, after, limit)

    def tail(self, after: int, limit: int) -> Tail:
        """Returns what stands in the log after a number, imports told as stretches."""
        with self._read() as connection:
            return tail_after(connection, after, limit)

    def pending(self, after: int) -> int:
        """Returns how many changes stand after a number; the log has no gaps."""
        return max(self.head() - after, 0)

    # -- the audit table

    def add_read(self, after: int, make: Callable[[Sequence[ReadRow], ReadHead], NewRead]) -> NewRead:
        """Keeps the audit record that is made of those after a number and of the head."""
        with self._write() as connection:
            new = make(reads_after(connection, after), read_head(connection))
            try:
                add_read(connection, new)
            except IntegrityError as error:
                raise Unavailable(f"the audit log cannot take record {new.row.number}") from error
            return new

    def last_read(self) -> tuple[ReadRow | None, ReadHead]:
        """Returns the last audit record and the head."""
        with self._read() as connection:
            return last_read(connection), read_head(connection)

    def reads(self, scope: Scope, target: tuple[str, int | None] | None, before: int | None, limit: int) -> list[ReadRow]:
        """Returns audit records, newest first."""
        with self._read() as connection:
            return reads_before(connection, scope, target, before, limit)

    def listed_by(self, numbers: Sequence[int]) -> dict[int, ReadListing]:
        """Returns what each of these records is listed by; one that is listed by nothing is left out."""
        with self._read() as connection:
            return listed_by(connection, numbers)

    def all_reads(self) -> Iterator[ReadRow]:
        """Yields all audit records."""
        return self.reads_after(_BEFORE_ALL)

    def reads_after(self, number: int) -> Iterator[ReadRow]:
        """Yields the audit records after a number, some at a time, each piece by a transaction of its own."""
        while True:
            with self._read() as connection:
                rows = reads_after(connection, number, _READS_AT_ONCE)
            if not rows:
                return
            yield from rows
            number = rows[-1].number

    # -- whose store it is

    def secret_check(self) -> bytes | None:
        """Returns the keyed hash by which a deployment knows its store."""
        with self._read() as connection:
            return connection.execute(_SECRET_CHECK).scalar()

    def claim(self, check: bytes) -> bool:
        """Keeps that hash if there is none yet; tells whether it is this one."""
        with self._write() as connection:
            kept = connection.execute(_SECRET_CHECK).scalar()
            if kept is None:
                connection.execute(deployment.insert(), {"only": 1, "secret_check": check})
            return kept in (None, check)

    # -- tokens and grants

    def add_token(self, token: NewToken, *, now: int) -> None:
        """Keeps a token."""
        with self._write() as connection:
            add_token(connection, token, now)

    def token(self, token_id: str) -> StoredToken | None:
        """Returns a token, whether it is still good or not."""
        with self._read() as connection:
            return token_by_id(connection, token_id)

    def list_tokens(self) -> list[StoredToken]:
        """Returns all tokens, the newest first."""
        with self._read() as connection:
            return list_tokens(connection)

    def revoke_token(self, token_id: str, *, now: int) -> StoredToken | None:
        """Revokes a token; returns it as it was before."""
        with self._write() as connection:
            return revoke_token(connection, token_id, now)

    def add_grant(self, grant: NewGrant, *, now: int) -> int:
        """Keeps a grant and returns its number."""
        with self._write() as connection:
            return add_grant(connection, grant, now)

    def granted(self, reader_pk: int, now: int) -> frozenset[int]:
        """Returns the pks of the agents that an agent may read by a grant at this time."""
        with self._read() as connection:
            return granted(connection, reader_pk, now)

    def list_grants(self) -> list[StoredGrant]:
        """Returns all grants, the newest first."""
        with self._read() as connection:
            return list_grants(connection)

    def revoke_grant(self, number: int, *, now: int, by: str) -> StoredGrant | None:
        """Revokes a grant; returns it as it was before."""
        with self._write() as connection:
            return revoke_grant(connection, number, now, by)

    def close(self) -> None:
        """Gives the connections back."""
        self._reading.dispose()
        self._writing.dispose()

    # -- transactions

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with _translated(), self._reading.connect() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with _translated(), self._one_writer, self._writing.begin() as connection:
            yield connection


@contextmanager
def _translated() -> Iterator[None]:
    """Raises Unavailable for what the database cannot do now; a statement that is wrong stays what it is, a fault of ours."""
    try:
        yield
    except (IntegrityError, ProgrammingError, DataError, NotSupportedError):
        raise
    except NoConnection as error:
        raise Unavailable("the store has no connection free") from error
    except DBAPIError as error:
        raise Unavailable("the store cannot answer now") from error


_BEFORE_ALL = -(2**63)
_SECRET_CHECK = select(deployment.c.secret_check)

_CONVERSATION = select(*CONVERSATION).where(
    conversations.c.agent_pk == bindparam("agent"),
    conversations.c.conversation_id == bindparam("id"),
    conversations.c.tombstoned_at.is_(None),
)
_WITH_TURNS = (
    select(conversations.c.pk)
    .where(conversations.c.agent_pk.in_(bindparam("agents", expanding=True)), conversations.c.turn_count > 0)
    .limit(1)
)
_TURN_AT = (
    select(turns.c.seq, turns.c.content_offset, turns.c.content_length)
    .where(turns.c.conversation_pk == bindparam("conversation"), turns.c.content_offset <= bindparam("offset"))
    .order_by(turns.c.content_offset.desc())
    .limit(1)
)
_CONVERSATIONS: Select[Any] = (
    select(*CONVERSATION, *AGENT)
    .select_from(with_agents(conversations.join(agents, conversations.c.agent_pk == agents.c.pk)))
    .where(conversations.c.tombstoned_at.is_(None))
    .order_by(conversations.c.updated_at.desc(), conversations.c.pk.desc())
)


def _conversations_with_id(connection: Connection, conversation_id: str, scope: Scope, only: Sequence[int] | None) -> Sequence[int]:
    found = select(conversations.c.pk).join(agents, conversations.c.agent_pk == agents.c.pk)
    found = found.where(
        conversations.c.conversation_id == conversation_id,
        conversations.c.tombstoned_at.is_(None),
        *in_scope(scope),
    )
    if only is not None:
        found = found.where(conversations.c.agent_pk.in_(only))
    return connection.execute(found).scalars().all()


def _list_conversations(
    connection: Connection, scope: Scope, only: Sequence[int] | None, after: tuple[int, int] | None, limit: int
) -> list[tuple[StoredConversation, StoredAgent]]:
    found = _CONVERSATIONS.where(*in_scope(scope))
    if only is not None:
        found = found.where(conversations.c.agent_pk.in_(only))
    if after is not None:
        found = found.where(tuple_(conversations.c.updated_at, conversations.c.pk) < after)
    rows = connection.execute(found.limit(limit)).all()
    return [(conversation_of(row[: len(CONVERSATION)]), agent_of(row[len(CONVERSATION) :])) for row in rows]


def _pieces(only: frozenset[int] | None) -> Iterator[Sequence[int] | None]:
    """Yields None for no limit, else the pks in pieces that one statement takes."""
    if only is None:
        yield None
    else:
        yield from in_chunks(sorted(only))


def _first(found: list[_T], limit: int, key: Callable[[_T], Any]) -> list[_T]:
    """Returns the first of what several statements found, each in order."""
    return sorted(found, key=key)[:limit]
