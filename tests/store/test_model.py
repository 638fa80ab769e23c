"""The store against the plain one: any appends, writes and deletes in any order leave the same turns, revisions and log."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aforesaid.model import Source, ToolCall, ToolResult
from aforesaid_server.errors import Aborted, FailedPrecondition, NotFound
from aforesaid_server.store import (
    AgentKey,
    Append,
    Change,
    Forget,
    ForgetConversation,
    NewTurn,
    Put,
    StoredTurn,
    Tombstoned,
    Written,
)
from aforesaid_server.store.sql import SqlStore
from tests.store.plain import Held, PlainStore, plain_answers, replay, said, thought

_count = itertools.count()


@dataclass(frozen=True)
class Delete:
    conversation_id: str


@dataclass(frozen=True)
class Write:
    append: Append
    expected: int | None  # added to the revision that the conversation has; None for no check


@dataclass(frozen=True)
class Many:
    appends: Sequence[Append]


NAMES, CALL_IDS = st.sampled_from(["search", "Bash"]), st.sampled_from(["", "1", "1", "2"])
TOOLED = st.lists(
    st.one_of(st.builds(ToolCall, NAMES, st.just(""), CALL_IDS), st.builds(ToolResult, st.just(""), CALL_IDS)),
    min_size=1,
    max_size=3,
).map(lambda parts: partial(said, parts=tuple(parts)))
TURNS = st.builds(
    lambda make, text, turn_id, role, at: make(text, turn_id, role=role, at=at),
    st.one_of(st.just(said), st.just(thought), TOOLED, TOOLED),
    st.sampled_from(["", "x", "yy", "zzé"]),
    st.sampled_from(["", "", "a", "b", "d", "c:0", "c:1", "c:2", "c:2:2", "c:3"]),
    st.sampled_from(["user", "assistant"]),
    st.sampled_from([None, None, 7]),
)
APPENDS = st.builds(
    Append,
    agent=st.just(AgentKey("")),
    conversation_id=st.sampled_from(["c", "c", "c", "e"]),
    turns=st.lists(TURNS, max_size=5),
    title=st.sampled_from(["", "", "one", "two"]),
    source=st.sampled_from([Source(), Source(), Source("f", "here"), Source(project="/p"), Source(project="/q")]),
)
OPERATIONS = st.one_of(
    APPENDS,
    APPENDS,
    st.builds(Write, APPENDS, st.sampled_from([None, None, 0, 0, 1, -1])),
    st.builds(Many, st.lists(APPENDS, max_size=4)),
    st.builds(Delete, st.sampled_from(["c", "e", "never"])),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(OPERATIONS, max_size=12), st.data())
def test_same_as_the_plain_store(
    kept_store: SqlStore, operations: list[Append | Write | Many | Delete], data: st.DataObject
) -> None:
    store = kept_store
    agent = AgentKey(f"agent {next(_count)}")
    agent_pk = store.update_agent(agent).pk
    plain = PlainStore(store.head())
    followers: list[tuple[int, Held]] = [(store.head(), {})]
    told: list[Change] = []
    for now, operation in enumerate(operations, 100):
        told += _do(store, plain, operation, agent, agent_pk, now)
        _same_conversations(store, plain, agent_pk)
        followers.append((store.head(), _turns(store, plain, agent_pk)))
    log = store.changes(plain.began, 10_000)
    assert [_bare(change) for change in log] == [_bare(change) for change in told] == plain.log
    assert [change.number for change in log] == list(range(plain.began + 1, store.head() + 1))
    assert store.pending(plain.began) == len(log)
    _puts_each_turn_once(log, plain)
    now_there = _turns(store, plain, agent_pk)
    for after, found in followers:
        assert replay(found, store.changes(after, 10_000)) == now_there
        limit = data.draw(st.integers(1, 7))
        step = store.changes(after, limit)
        while step:
            assert len(step) <= limit
            found, after = replay(found, step), step[-1].number  # noqa: PLW2901
            step = store.changes(after, limit)
        assert found == now_there


def _do(
    store: SqlStore, plain: PlainStore, operation: Append | Write | Many | Delete, agent: AgentKey, agent_pk: int, now: int
) -> Sequence[Change]:
    """Does one operation on both and compares the answers; returns the changes that the store told."""
    match operation:
        case Append():
            append = replace(operation, agent=agent)
            ids = plain.ids(append, whole=False)
            before = _by_id(plain, append)
            possible = plain.append(append, now)
            try:
                written = store.append(append, now=now)
            except FailedPrecondition:
                assert not possible
                return []
            assert possible
            _same_answer(written, _by_id(plain, append), append.turns, ids, before)
            return written.changes
        case Many(appends):
            expected = []
            for append in appends:
                asked = replace(append, agent=agent)
                ids, before = plain.ids(asked, whole=False), _by_id(plain, asked)
                expected.append((asked, ids, before, plain.append(asked, now), _by_id(plain, asked)))
            done = store.append_many([asked for asked, *_ in expected], now=now)
            for answer, (asked, ids, before, possible, after) in zip(done, expected, strict=True):
                if isinstance(answer, Tombstoned):
                    assert not possible
                    assert answer == Tombstoned(asked)
                else:
                    assert possible
                    _same_answer(answer, after, asked.turns, ids, before)
            return [change for answer in done if isinstance(answer, Written) for change in answer.changes]
        case Write(append, more):
            append = replace(append, agent=agent)
            talk = plain.talks.get(append.conversation_id)
            revision = talk.revision if talk else 0
            tombstoned = talk is not None and talk.tombstoned
            expected_revision = None if more is None else max(revision + more, 0)
            try:
                written = store.write(append, expected_revision=expected_revision, now=now)
            except FailedPrecondition:
                assert tombstoned
                return []
            except Aborted:
                assert not tombstoned
                assert expected_revision not in (None, revision)
                return []
            assert not tombstoned
            assert expected_revision in (None, revision)
            ids, before = plain.ids(append, whole=True), _by_id(plain, append)
            plain.write(append, now)
            _same_answer(written, _by_id(plain, append), append.turns, ids, before)
            return written.changes
        case Delete(conversation_id):
            try:
                changes = store.delete(agent_pk, conversation_id, now=now)
            except NotFound:
                assert not plain.delete(conversation_id)
                return []
            assert plain.delete(conversation_id)
            return changes


def _by_id(plain: PlainStore, append: Append) -> dict[str, StoredTurn]:
    talk = plain.talks.get(append.conversation_id)
    return {turn.turn_id: turn for turn in talk.turns} if talk else {}


def _same_answer(
    written: Written, turns: dict[str, StoredTurn], given: Sequence[NewTurn], ids: list[str], before: dict[str, StoredTurn]
) -> None:
    """Compares an answer with the turns that the plain store has right after and right before, by id."""
    assert [answer.place for answer in written.turns] == list(range(len(given)))
    assert [_anywhere(answer.turn) for answer in written.turns] == [turns[turn_id] for turn_id in ids]
    for answer in written.turns:
        old, new = before.get(answer.turn.turn_id), _anywhere(answer.turn)
        moved = old and replace(old, seq=new.seq, content_offset=new.content_offset)
        assert answer.outcome == ("added" if old is None else "unchanged" if moved == new else "replaced")
    for change in written.changes:
        assert not isinstance(change, ForgetConversation)
        if isinstance(change, Put):
            assert change.place is not None
            assert change.place.turn.number == change.turn_number
            assert _anywhere(change.place.turn) == turns[change.place.turn.turn_id]
            assert (change.place.conversation, change.place.agent) == (written.conversation, written.agent)
            assert change.place.answers == plain_answers(list(turns.values()))[change.turn_number]


def _same_conversations(store: SqlStore, plain: PlainStore, agent_pk: int) -> None:
    for talk in plain.talks.values():
        stored = store.conversation(agent_pk, talk.conversation_id)
        if talk.tombstoned:
            assert stored is None
            continue
        assert stored is not None
        turns = store.turns_from(stored.pk, 0, 1000)
        assert [_anywhere(turn) for turn in turns] == talk.turns
        length = sum(turn.content_length + 1 for turn in talk.turns)
        assert (stored.title, stored.source, stored.revision, stored.updated_at, stored.turn_count, stored.content_length) == (
            talk.title,
            talk.source,
            talk.revision,
            talk.updated_at,
            len(talk.turns),
            length,
        )
        by_number = store.turns([turn.number for turn in reversed(turns)])
        assert {number: placed.answers for number, placed in by_number.items()} == plain_answers(talk.turns)
        assert [placed.turn for placed in by_number.values()] == turns[::-1]
        assert all(placed.conversation == stored for placed in by_number.values())
        at = [turn.seq for turn in talk.turns for _ in range(turn.content_length + 1)]
        assert [store.seq_at(stored.pk, offset) for offset in range(length + 2)] == [*at, len(turns), len(turns)]
    live = [(talk.updated_at, talk.conversation_id) for talk in plain.talks.values() if not talk.tombstoned]
    listed = store.list_conversations({}, frozenset({agent_pk}), None, 10)
    assert sorted(live) == sorted((stored.updated_at, stored.conversation_id) for stored, _ in listed)


def _turns(store: SqlStore, plain: PlainStore, agent_pk: int) -> Held:
    """The conversation of each turn, and what its results answer, by its number."""
    found: Held = {}
    for talk in plain.talks.values():
        stored = store.conversation(agent_pk, talk.conversation_id)
        answers = plain_answers(talk.turns)
        found |= {turn.number: (stored.pk, answers[turn.number]) for turn in talk.turns if stored}
    return found


def _puts_each_turn_once(log: Sequence[Change], plain: PlainStore) -> None:
    put = [change.place.turn for change in log if isinstance(change, Put) and change.place]
    assert sorted(turn.number for turn in put) == sorted(plain.numbers())
    for talk in plain.talks.values():
        assert sorted(talk.turns, key=lambda turn: turn.number) == sorted(
            (_anywhere(turn) for turn in put if _anywhere(turn) in talk.turns), key=lambda turn: turn.number
        )


def _anywhere(turn: StoredTurn) -> StoredTurn:
    return replace(turn, conversation_pk=0)


def _bare(change: Change) -> Change:
    match change:
        case Put():
            return replace(change, place=None)
        case Forget():
            return change
        case ForgetConversation():
            return replace(change, conversation_pk=0)
