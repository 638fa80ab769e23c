"""One write transaction: what its appends, its write or its delete make of the conversations, the turns and the log.

`Transaction` reads what the write touches, lets `plan.py` decide, has `turn_rows.py` write that down and answers with values as
they stand after the commit. It neither begins nor commits: `sql.py` does, one write at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import accumulate

from sqlalchemy import Connection, bindparam, select, update

from aforesaid.model import Source
from aforesaid_server.errors import Aborted, FailedPrecondition, NotFound
from aforesaid_server.store import (
    AgentKey,
    Append,
    Change,
    Forget,
    ForgetConversation,
    NewTurn,
    Put,
    StoredAgent,
    StoredConversation,
    StoredTurn,
    Tombstoned,
    TurnInPlace,
    Written,
    WrittenTurn,
)
from aforesaid_server.store.agents import find_or_make
from aforesaid_server.store.answers import (
    Calls,
    Link,
    answers_of,
    calls_among,
    differing,
    links_in,
    links_of,
    result_ids,
    whose_answers_differ,
)
from aforesaid_server.store.changelog import give_head, take_head
from aforesaid_server.store.naming import name_turns
from aforesaid_server.store.plan import NOT_ASKED, Plan, Step
from aforesaid_server.store.rows import (
    CONVERSATION,
    Values,
    canonical,
    conversation_of,
    in_chunks,
    turns_by_id,
    turns_by_seq,
)
from aforesaid_server.store.tables import conversations, turns
from aforesaid_server.store.turn_rows import TurnRows

_FIND = select(*CONVERSATION, conversations.c.tombstoned_at).where(
    conversations.c.agent_pk == bindparam("agent"), conversations.c.conversation_id.in_(bindparam("ids", expanding=True))
)
_MAKE = conversations.insert().returning(conversations.c.pk)
_DESCRIBE = update(conversations).where(conversations.c.pk == bindparam("at"))  # each execution names the columns that it sets
_IDS_TAKEN = select(turns.c.turn_id).where(
    turns.c.conversation_pk == bindparam("conversation"), turns.c.turn_id.in_(bindparam("ids", expanding=True))
)


@dataclass(slots=True)
class _Talk:
    """A conversation that this transaction writes to. `known` holds every turn that it asked for or has written, by id."""

    stored: StoredConversation
    agent: StoredAgent
    tombstoned: bool = False
    known: dict[str, StoredTurn] = field(default_factory=dict)
    complete: bool = False  # every turn is known


class Transaction:
    """The appends, the write or the delete of one transaction, on its connection, at the time `now`, as `bulk` or not."""

    def __init__(self, connection: Connection, now: int, *, bulk: bool = False) -> None:
        self._connection = connection
        self._now = now
        self._began = self._head = take_head(connection)
        self._agents: dict[int | tuple[str, str], StoredAgent] = {}
        self._talks: dict[tuple[int, str], _Talk] = {}
        self._changed: dict[int, _Talk] = {}
        self._rows = TurnRows(connection, bulk=bulk)

    # -- the three writes

    def append(self, appends: Sequence[Append]) -> list[Written | Tombstoned]:
        """Does the appends in order."""
        self._look_up(appends)
        done = [self._append(append) for append in appends]
        self._finish()
        return done

    def write(self, append: Append, expected_revision: int | None) -> Written:
        """Writes a whole conversation. Raises FailedPrecondition and Aborted."""
        agent = self._agent(append.agent)
        talk = self._find(agent, [append.conversation_id]).get(append.conversation_id)
        if talk is not None and talk.tombstoned:
            raise FailedPrecondition(f"conversation_id: {append.conversation_id} was deleted")
        _check_revision(expected_revision, talk)
        talk = talk or self._make(agent, append.conversation_id)
        self._know_all(talk)
        written = self._write(talk, append)
        self._finish()
        return written

    def delete(self, agent_pk: int, conversation_id: str) -> list[Change]:
        """Deletes the turns of a conversation and leaves its id as a tombstone. Raises NotFound."""
        found = conversations.c.agent_pk == agent_pk, conversations.c.conversation_id == conversation_id
        pk = self._connection.execute(select(conversations.c.pk).where(*found, conversations.c.tombstoned_at.is_(None))).scalar()
        if pk is None:
            raise NotFound(f"conversation_id: there is no conversation {conversation_id}")
        self._rows.drop_all(pk)
        nothing = {"title": "", "source_format": "", "source_file": "", "source_project": "", "turn_count": 0, "content_length": 0}
        self._connection.execute(update(conversations).where(conversations.c.pk == pk).values(tombstoned_at=self._now, **nothing))
        gone = ForgetConversation(self._next(), pk)
        self._rows.log([gone], pk)
        self._finish()
        return [gone]

    # -- looking up

    def _look_up(self, appends: Sequence[Append]) -> None:
        """Reads the conversations that the appends name and the turns that their ids name, before the first changes anything."""
        ids_of: dict[int, dict[str, set[str]]] = {}
        for append in appends:
            agent = self._agent(append.agent)
            given = ids_of.setdefault(agent.pk, {}).setdefault(append.conversation_id, set())
            given.update(turn.turn_id for turn in append.turns)
        for agent_pk, wanted in ids_of.items():
            for conversation_id, talk in self._find(self._agents[agent_pk], list(wanted)).items():
                self._talks[agent_pk, conversation_id] = talk
                given = wanted[conversation_id] - {""}
                if given and not talk.tombstoned:
                    talk.known = {turn.turn_id: turn for turn in turns_by_id(self._connection, talk.stored.pk, sorted(given))}

    def _agent(self, key: AgentKey) -> StoredAgent:
        asked = key.pk if key.pk is not None else (canonical(key.scope), key.agent_id)
        agent = self._agents.get(asked)
        if agent is None:
            agent = self._agents[asked] = find_or_make(self._connection, key)
            self._agents[agent.pk] = agent
        return agent

    def _find(self, agent: StoredAgent, ids: Sequence[str]) -> dict[str, _Talk]:
        found: dict[str, _Talk] = {}
        for some in in_chunks(ids):
            for *row, tombstoned_at in self._connection.execute(_FIND, {"agent": agent.pk, "ids": some}):
                stored = conversation_of(row)
                found[stored.conversation_id] = _Talk(stored, agent, tombstoned_at is not None)
        return found

    def _make(self, agent: StoredAgent, conversation_id: str) -> _Talk:
        """Makes a conversation at revision 0, which the write that needs it raises to 1."""
        blank = StoredConversation(0, agent.pk, conversation_id, "", Source(), 0, self._now, self._now, 0, 0)
        row = _row_of_conversation(blank) | {
            "agent_pk": agent.pk,
            "conversation_id": conversation_id,
            "created_at": self._now,
        }
        pk: int = self._connection.execute(_MAKE, row).scalar_one()
        talk = self._talks[agent.pk, conversation_id] = _Talk(replace(blank, pk=pk), agent, complete=True)
        return talk

    def _know_all(self, talk: _Talk) -> None:
        if not talk.complete:
            self._rows.flush()
            everything = turns_by_seq(self._connection, talk.stored.pk, 0, talk.stored.turn_count)
            talk.known = {turn.turn_id: turn for turn in everything}
            talk.complete = True

    # -- deciding

    def _append(self, append: Append) -> Written | Tombstoned:
        agent = self._agent(append.agent)
        talk = self._talks.get((agent.pk, append.conversation_id))
        if talk is not None and talk.tombstoned:
            return Tombstoned(append)
        talk = talk or self._make(agent, append.conversation_id)
        title, source = _described(talk.stored, append)
        if source.project != talk.stored.source.project:
            self._know_all(talk)
        steps = self._plan(talk, source).append(append.turns, self._named(talk, append.turns))
        described = (title, source) != (talk.stored.title, talk.stored.source)
        if described or not talk.stored.revision or any(step.logged for step in steps):
            count = talk.stored.turn_count + sum(step.old is None for step in steps)
            length = talk.stored.content_length + sum(step.grown for step in steps)
            self._revise(talk, title=title, source=source, turn_count=count, content_length=length)
        again = [(step.old, step.new, step.logged) for step in steps if step.old is not None and step.logged]
        if again:
            self._shift(talk, {old.seq: new.content_length - old.content_length for old, new, _ in again})
            self._rows.rewrite(again)
        return self._settle(talk, [], steps)

    def _write(self, talk: _Talk, append: Append) -> Written:
        title, source = _described(talk.stored, append)
        ids = [turn.turn_id for turn in append.turns]
        named = name_turns(append.conversation_id, ids, held={}, count=0, taken=lambda _: frozenset())
        staying = {turn_id for turn_id, _ in named}
        dropped = [turn for turn in talk.known.values() if turn.turn_id not in staying]
        forgotten = [Forget(self._next(), turn.number) for turn in dropped]
        steps = self._plan(talk, source).write(append.turns, named)
        same = (title, source) == (talk.stored.title, talk.stored.source) and all(step.old == step.new for step in steps)
        revised = not (same and talk.stored.revision and not dropped)
        if revised:
            length = sum(step.new.content_length + 1 for step in steps)
            self._revise(talk, title=title, source=source, turn_count=len(steps), content_length=length)
        kept = [(step.old, step.new, step.logged) for step in steps if step.old is not None]
        self._rows.drop([turn.number for turn in dropped])
        self._rows.move([(old, new) for old, new, _ in kept])
        self._rows.rewrite([entry for entry in kept if entry[2]])
        for turn in dropped:
            del talk.known[turn.turn_id]
        return replace(self._settle(talk, forgotten, steps, dropped), revised=revised)

    def _plan(self, talk: _Talk, source: Source) -> Plan:
        """Returns the plan of one write. An index holds the project with each turn: where it changes, all are put again."""
        return Plan(talk.stored, talk.known, source.project != talk.stored.source.project, self._next, self._now)

    def _named(self, talk: _Talk, given: Sequence[NewTurn]) -> list[tuple[str, int]]:
        def taken(ids: Collection[str]) -> AbstractSet[str]:
            held = talk.known.keys() & set(ids)
            if not talk.complete:
                for some in in_chunks(list(ids)):
                    held |= set(self._connection.execute(_IDS_TAKEN, {"conversation": talk.stored.pk, "ids": some}).scalars())
            return held

        ids = [turn.turn_id for turn in given]
        held = {turn_id: talk.known[turn_id].seq for turn_id in ids if turn_id in talk.known}
        return name_turns(talk.stored.conversation_id, ids, held=held, count=talk.stored.turn_count, taken=taken)

    def _next(self) -> int:
        self._head += 1
        return self._head

    def _revise(self, talk: _Talk, *, title: str, source: Source, turn_count: int, content_length: int) -> None:
        talk.stored = replace(
            talk.stored,
            title=title,
            source=source,
            revision=talk.stored.revision + 1,
            updated_at=self._now,
            turn_count=turn_count,
            content_length=content_length,
        )
        self._changed[talk.stored.pk] = talk

    def _shift(self, talk: _Talk, grown: Mapping[int, int]) -> None:
        """Moves the offsets behind each turn that got longer or shorter, by seq, in the tables and in what is known."""
        seqs = sorted(seq for seq, by in grown.items() if by)
        totals = list(accumulate(grown[seq] for seq in seqs))
        self._rows.shift(talk.stored.pk, list(zip(seqs, totals, strict=True)))
        for turn in talk.known.values():
            before = bisect_left(seqs, turn.seq)
            if before:
                talk.known[turn.turn_id] = replace(turn, content_offset=turn.content_offset + totals[before - 1])

    # -- answering

    def _settle(
        self, talk: _Talk, forgotten: Sequence[Forget], steps: Sequence[Step], dropped: Sequence[StoredTurn] = ()
    ) -> Written:
        """Puts the steps into the log, and the turns whose answers they change, lines up the turns that are added, and answers."""
        log: list[Change] = list(forgotten)
        answers: list[WrittenTurn] = []
        talk.known |= {step.new.turn_id: step.new for step in steps}
        olds = [*(step.old for step in steps if step.old is not None), *dropped]
        ids = differing(olds, [step.new for step in steps])
        links = self._links(talk, ids.union(*(result_ids(step.new.parts) for step in steps if step.logged)))
        calls = calls_among(links)
        for step in steps:
            turn = step.new
            if step.old is None:
                self._rows.add(turn, step.logged)
            if step.logged:
                replaced = step.old.number if step.old is not None and step.old.number != turn.number else 0
                log.append(Put(step.logged, turn.number, replaced, self._in_place(talk, turn, calls)))
            if step.place != NOT_ASKED:
                answers.append(WrittenTurn(turn, step.outcome, step.place))
        if ids:
            again = whose_answers_differ(links, {step.new.turn_id for step in steps}, olds)
            log += self._put_again(talk, again - {step.new.turn_id for step in steps if step.logged})
        self._rows.log(log, talk.stored.pk)
        return Written(talk.agent, talk.stored, sorted(answers, key=lambda answer: answer.place), log)

    def _in_place(self, talk: _Talk, turn: StoredTurn, calls: Calls) -> TurnInPlace:
        return TurnInPlace(turn, talk.stored, talk.agent, answers_of(turn.seq, turn.parts, calls))

    def _links(self, talk: _Talk, call_ids: AbstractSet[str]) -> list[Link]:
        """Returns the calls and results of a conversation that have these ids, as they are now."""
        if not call_ids:
            return []
        found = [link for turn in talk.known.values() for link in links_of(turn) if link.call_id in call_ids]
        if not talk.complete:
            stored = links_in(self._connection, talk.stored.pk, call_ids)
            found += [link for link in stored if link.turn_id not in talk.known]
        return found

    def _put_again(self, talk: _Talk, turn_ids: AbstractSet[str]) -> list[Put]:
        """Puts turns that nobody wrote, since their results answer other calls than before."""
        if not turn_ids:
            return []
        again = [talk.known[turn_id] for turn_id in turn_ids if turn_id in talk.known]
        if len(again) < len(turn_ids):
            again += turns_by_id(self._connection, talk.stored.pk, [turn_id for turn_id in turn_ids if turn_id not in talk.known])
        again.sort(key=lambda turn: turn.seq)
        calls = calls_among(self._links(talk, {call_id for turn in again for call_id in result_ids(turn.parts)}))
        puts = [Put(self._next(), turn.number, 0, self._in_place(talk, turn, calls)) for turn in again]
        self._rows.put_again({put.turn_number: put.number for put in puts})
        return puts

    def _finish(self) -> None:
        self._rows.flush()
        if self._changed:
            rows = [_row_of_conversation(talk.stored) | {"at": pk} for pk, talk in self._changed.items()]
            self._connection.execute(_DESCRIBE, rows)
        if self._head != self._began:
            give_head(self._connection, self._head)


def _row_of_conversation(stored: StoredConversation) -> Values:
    return {
        "title": stored.title,
        "source_format": stored.source.format,
        "source_file": stored.source.file,
        "source_project": stored.source.project,
        "revision": stored.revision,
        "updated_at": stored.updated_at,
        "turn_count": stored.turn_count,
        "content_length": stored.content_length,
    }


def _described(stored: StoredConversation, append: Append) -> tuple[str, Source]:
    """Returns the title and the source after an append: its own, field by field, where they are not empty."""
    old, new = stored.source, append.source
    return append.title or stored.title, Source(new.format or old.format, new.file or old.file, new.project or old.project)


def _check_revision(expected: int | None, talk: _Talk | None) -> None:
    if expected is None:
        return
    if talk is None:
        if expected != 0:
            raise Aborted(f"expected_revision: {expected} does not match, the conversation does not exist")
    elif expected != talk.stored.revision:
        raise Aborted(f"expected_revision: {expected} does not match, the conversation is at revision {talk.stored.revision}")
