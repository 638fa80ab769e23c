"""Texts of every kind come back as they were, sort as their bytes do, and fit into every index; on every engine."""

from __future__ import annotations

import random
import sys
from hashlib import sha256
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aforesaid.model import File, Part, Reasoning, Source, Text, ToolCall, ToolResult
from aforesaid_server.store import AgentKey, Append, NewTurn, ReadRow
from aforesaid_server.store.escaped import escaped, unescaped
from aforesaid_server.store.sql import SqlStore
from tests.store.plain import record, said

LONGEST = 32 * 1024 * 1024
# The two that PostgreSQL stores otherwise, their neighbours, and characters of one to four bytes.
HARD = st.text(alphabet="\x00\x01\x02\x03a\x7f\x80é\uffff\U00010000\U0010ffff", max_size=6)
ANY = st.one_of(HARD, st.text(max_size=20))


@given(ANY, ANY)
def test_escaped_texts_come_back_and_sort_as_before(one: str, other: str) -> None:
    assert "\x00" not in escaped(one)
    assert unescaped(escaped(one)) == one
    assert (one < other, one == other) == (escaped(one) < escaped(other), escaped(one) == escaped(other))


@settings(max_examples=40)
@given(st.lists(ANY.filter(bool), min_size=2, max_size=8, unique=True))
def test_agents_sort_by_the_bytes_of_their_ids(kept_store: SqlStore, ids: list[str]) -> None:
    scope = {"world": str(uuid4())}
    for agent_id in ids:
        kept_store.update_agent(AgentKey(agent_id, scope), name=agent_id[::-1])
    in_order = sorted(ids, key=str.encode)
    listed = kept_store.list_agents(scope, None, None, 100)
    assert [(agent.agent_id, agent.name) for agent in listed] == [(agent_id, agent_id[::-1]) for agent_id in in_order]
    for place, agent in enumerate(listed):
        assert kept_store.agents_with_id(agent.agent_id, scope) == [agent]
        after = kept_store.list_agents(scope, None, (agent.agent_id, agent.pk), 100)
        assert [other.agent_id for other in after] == in_order[place + 1 :]


@settings(max_examples=40)
@given(st.data())
def test_whatever_was_said_comes_back(kept_store: SqlStore, data: st.DataObject) -> None:
    def some() -> str:
        return data.draw(ANY)

    parts: tuple[Part, ...] = (
        Text(some()),
        Reasoning(some()),
        ToolCall(some(), some(), some()),
        ToolResult(some(), some(), is_json=data.draw(st.booleans()), is_error=data.draw(st.booleans())),
        File(some(), some()),
    )
    key = AgentKey(some() or "a", {"world": str(uuid4()), some() or "k": some()}, name=some(), role=some())
    source = Source(some(), some(), some())
    turn_id = some() or "t"
    turn = NewTurn(turn_id, some(), parts, 5, 3, sha256(b"").digest())
    written = kept_store.append(Append(key, some() or "c", [turn], title=some(), source=source), now=1)
    (placed,) = kept_store.turns([written.turns[0].turn.number]).values()
    assert placed.turn == written.turns[0].turn
    assert (placed.turn.parts, placed.turn.turn_id, placed.turn.role) == (parts, turn_id, turn.role)
    assert (placed.conversation, placed.agent) == (written.conversation, written.agent)
    assert (placed.agent.agent_id, dict(placed.agent.scope), placed.conversation.source) == (key.agent_id, key.scope, source)
    assert kept_store.turn(written.conversation.pk, turn_id) == placed.turn
    assert kept_store.conversation(written.agent.pk, written.conversation.conversation_id) == written.conversation
    assert kept_store.agents_with_id(key.agent_id, key.scope) == [written.agent]


def test_every_character(store: SqlStore) -> None:
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]))
    written = store.append(Append(AgentKey("a"), "c", [said(everything)]), now=1)
    assert same(store.turns_from(written.conversation.pk, 0, 1)[0].parts, everything)


@pytest.mark.parametrize("text", ["\x00" * LONGEST, "é\n" * (LONGEST // 3)], ids=["NUL", "lines"])
def test_the_longest_text(store: SqlStore, text: str) -> None:
    written = store.append(Append(AgentKey("a"), "c", [said(text)]), now=1)
    assert same(store.turns_from(written.conversation.pk, 0, 1)[0].parts, text)


def same(parts: tuple[Part, ...], text: str) -> bool:
    """Whether this is the one part, told without the text: nobody wants to see what is different in 32 MiB."""
    return parts == (Text(text),)


@pytest.mark.parametrize("alphabet", ["\x00\x01", "ab"], ids=["doubled when escaped", "plain"])
def test_the_longest_ids_fit_into_every_index(store: SqlStore, alphabet: str) -> None:
    """A row of an index of PostgreSQL ends at 2,704 bytes; texts that can be made smaller are, so here none may be."""
    if store.shared:
        _leave_uncompressed(store)
    chance = random.Random(5)

    def longest(size: int) -> str:
        return "".join(chance.choices(alphabet, k=size))

    scope = {longest(256): longest(1024) for _ in range(16)}
    call_id = longest(1024)
    parts = ToolCall("f", "{}", call_id), ToolResult("x", call_id)
    turn = said("x", longest(1024), parts=parts)
    key = AgentKey(longest(512), scope, parent_agent_id=longest(512))
    written = store.append(Append(key, longest(512), [turn], source=Source("", "", longest(4096))), now=1)
    record(store, ReadRow(1, longest(100_000), bytes(32)), scope, [(key.agent_id, written.agent.pk)])
    assert store.agents_with_id(key.agent_id, scope) == [written.agent]
    assert store.reads(scope, (key.agent_id, None), None, 2) == store.reads({}, (key.agent_id, written.agent.pk), None, 2) != []
    (change,) = store.changes(0, 9)
    assert change == written.changes[0]


def _leave_uncompressed(store: SqlStore) -> None:
    with store._writing.begin() as connection:
        columns = connection.exec_driver_sql(
            "select table_name, column_name from information_schema.columns where table_schema = 'public' and data_type = 'text'"
        )
        for table, column in columns.all():
            connection.exec_driver_sql(f'alter table "{table}" alter column "{column}" set storage external')
