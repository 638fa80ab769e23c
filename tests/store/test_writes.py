"""What appends, writes and deletes do, case by case, and what comes back as it was written."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace

import pytest
from sqlalchemy.exc import IntegrityError

from aforesaid.model import File, Part, Reasoning, Source, Text, ToolCall, ToolResult
from aforesaid_server.errors import Aborted, FailedPrecondition, NotFound
from aforesaid_server.store import AgentKey, Append, Forget, ForgetConversation, NewTurn, Put, Tombstoned, Written
from aforesaid_server.store.sql import SqlStore
from tests.store.plain import said, thought

ADA = AgentKey("ada")


def append(
    *turns: NewTurn, conversation_id: str = "c", agent: AgentKey = ADA, title: str = "", source: Source = Source()
) -> Append:
    return Append(agent, conversation_id, turns, title, source)


def transcript(store: SqlStore, written: Written) -> list[tuple[str, int, int, int, str]]:
    """Each turn's id, number, offset, length and text."""
    turns = store.turns_from(written.conversation.pk, 0, 1000)
    assert [turn.seq for turn in turns] == list(range(len(turns)))
    return [
        (turn.turn_id, turn.number, turn.content_offset, turn.content_length, part.text)
        for turn in turns
        for part in turn.parts
        if isinstance(part, Text)
    ]


@dataclass(frozen=True)
class Case:
    """Writes to one conversation, then its revision and its turns. A list is written as a whole, a tuple appended."""

    writes: list[list[NewTurn] | tuple[NewTurn, ...]]
    revision: int
    turns: list[tuple[str, int, int, int, str]]
    outcomes: list[str]  # of the last write


CASES = {
    "append": Case([(said("one", "a"), said("two", "b"))], 1, [("a", 1, 0, 3, "one"), ("b", 2, 4, 3, "two")], ["added", "added"]),
    "again": Case([(said("one", "a"),)] * 2, 1, [("a", 1, 0, 3, "one")], ["unchanged"]),
    "again with another role": Case(
        [(said("one", "a"),), (said("one", "a", role="tool"),)], 1, [("a", 1, 0, 3, "one")], ["unchanged"]
    ),
    "longer in its place": Case(
        [(said("one", "a"), said("two", "b"), said("x", "c")), (said("three", "a"),)],
        2,
        [("a", 4, 0, 5, "three"), ("b", 2, 6, 3, "two"), ("c", 3, 10, 1, "x")],
        ["replaced"],
    ),
    "shorter, longer and new": Case(
        [(said("one", "a"), said("two", "b"), said("x", "c")), (said("new"), said("xyz", "c"), said("", "a"))],
        2,
        [("a", 4, 0, 0, ""), ("b", 2, 1, 3, "two"), ("c", 5, 5, 3, "xyz"), ("c:3", 6, 9, 3, "new")],
        ["added", "replaced", "replaced"],
    ),
    "bytes, not characters": Case(
        [(said("é", "a"), said("記憶", "b"), said("𝄞", "c"))],
        1,
        [("a", 1, 0, 2, "é"), ("b", 2, 3, 6, "記憶"), ("c", 3, 10, 4, "𝄞")],
        ["added"] * 3,
    ),
    "no turns at all": Case([()], 1, [], []),
    "no turns at all, twice": Case([(), ()], 1, [], []),
    "a whole conversation": Case(
        [[said("one"), said("two")]], 1, [("c:0", 1, 0, 3, "one"), ("c:1", 2, 4, 3, "two")], ["added"] * 2
    ),
    "the same whole again": Case(
        [[said("one"), said("two")]] * 2, 1, [("c:0", 1, 0, 3, "one"), ("c:1", 2, 4, 3, "two")], ["unchanged"] * 2
    ),
    "a whole in another order": Case(
        [[said("one", "a"), said("three", "b"), said("x", "d")], [said("x", "d"), said("one", "a"), said("three", "b")]],
        2,
        [("d", 3, 0, 1, "x"), ("a", 1, 2, 3, "one"), ("b", 2, 6, 5, "three")],
        ["unchanged"] * 3,
    ),
    "a whole with less": Case(
        [[said("one", "a"), said("two", "b")], [said("two", "b")]], 2, [("b", 2, 0, 3, "two")], ["unchanged"]
    ),
    "a whole with nothing": Case([[said("one", "a")], []], 2, [], []),
    "numbers of what is gone stay away": Case(
        [[said("one", "a"), said("two", "b")], [], (said("three", "a"),)], 3, [("a", 5, 0, 5, "three")], ["added"]
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_a_write_leaves(store: SqlStore, case: Case) -> None:
    *_, written = [
        store.write(append(*turns), expected_revision=None, now=now)
        if isinstance(turns, list)
        else store.append(append(*turns), now=now)
        for now, turns in enumerate(case.writes, 1)
    ]
    assert written.conversation.revision == case.revision
    assert transcript(store, written) == case.turns
    assert [turn.outcome for turn in written.turns] == case.outcomes
    assert store.conversation(written.agent.pk, "c") == written.conversation


PARTS: list[Part] = [
    Text("plain"),
    Text(""),
    Text("NUL \0 inside\0"),
    Text("lines\r\nand\ttabs \u2028 \U0010ffff \ufeff"),
    Reasoning("thought"),
    ToolCall("bash", '{ "command" : "ls",\n "n": 12345678901234567890 }', "call 1"),
    ToolCall("", "not JSON {", ""),
    ToolResult("out\0put", "call 1"),
    ToolResult('{"a": 1.0}', "call 2", is_json=True),
    ToolResult("bad", "", is_json=False, is_error=True),
    ToolResult("{}", "", is_json=True, is_error=True),
    File("image/png", "a\0b.png"),
    File("", ""),
]


def test_parts_come_back_as_written(store: SqlStore) -> None:
    written = store.append(append(said("whatever", "a", parts=tuple(PARTS)), said("", "b", parts=())), now=5)
    pk = written.conversation.pk
    for turns in (
        store.turns_from(pk, 0, 2),
        [placed.turn for placed in store.turns([1, 2]).values()],
        [store.turn(pk, "a"), store.turn(pk, "b")],
        [change.place.turn for change in store.changes(0, 9) if isinstance(change, Put) and change.place],
        [turn.turn for turn in store.append(append(said("whatever", "a"), said("", "b")), now=6).turns],
    ):
        assert [turn.parts for turn in turns if turn] == [tuple(PARTS), ()]


ODD_IDS = ["a", "A", "á", "a\u0301", "a\0", "a\0b", " a", "a ", "", "%", "_", "1", "01", "1.0", "𝄞", "a'\"--", "\ufeff", "ａ"]


def test_ids_are_told_apart_byte_by_byte(store: SqlStore) -> None:
    for number, odd in enumerate(ODD_IDS, 1):
        turns = [said(f"{other}", f"t{other}") for other in ODD_IDS]
        store.append(Append(AgentKey(odd), f"c{odd}", turns), now=number)
    for odd in ODD_IDS:
        (agent,) = store.agents_with_id(odd, {})
        assert agent.agent_id == odd
        talk = store.conversation(agent.pk, f"c{odd}")
        assert talk is not None
        assert talk.conversation_id == f"c{odd}"
        assert talk.turn_count == len(ODD_IDS)
        for seq, other in enumerate(ODD_IDS):
            turn = store.turn(talk.pk, f"t{other}")
            assert turn is not None
            assert (turn.turn_id, turn.seq) == (f"t{other}", seq)
        assert store.turn(talk.pk, "t") == store.turns_from(talk.pk, ODD_IDS.index(""), 1)[0]
        assert store.turn(talk.pk, "tb") is None
    assert [agent.agent_id for agent in store.list_agents({}, None, None, 100)] == sorted(ODD_IDS)


def test_the_same_parts_put_together_otherwise(store: SqlStore) -> None:
    store.append(append(said("one", "a")), now=1)
    same = store.append(append(thought("one", "a", role="tool", at=9), said("one", "b")), now=2)
    assert [turn.outcome for turn in same.turns] == ["unchanged", "added"]
    first = same.turns[0].turn
    assert (first.parts, first.role, first.created_at, first.number) == ((Text("one"),), "user", 1, 1)
    whole = store.write(append(thought("one", "a", role="tool", at=9), said("one", "b")), expected_revision=2, now=3)
    assert [turn.outcome for turn in whole.turns] == ["replaced", "unchanged"]
    first = whole.turns[0].turn
    assert (first.parts, first.role, first.created_at, first.number) == ((Reasoning("one"),), "tool", 9, 1)
    assert [(change.number, change.turn_number, change.replaces) for change in whole.changes if isinstance(change, Put)] == [
        (3, 1, 0)
    ]
    assert store.turns_from(whole.conversation.pk, 0, 1) == [first]
    assert whole.conversation.revision == 3


def test_times(store: SqlStore) -> None:
    store.append(append(said("one", "a"), said("two", "b", at=7), said("three", "c", at=0)), now=100)
    store.append(append(said("ONE", "a"), said("TWO", "b"), said("THREE", "c", at=-3)), now=200)
    written = store.append(append(said("ONE", "a")), now=300)
    assert [turn.created_at for turn in store.turns_from(written.conversation.pk, 0, 9)] == [100, 7, -3]
    assert (written.conversation.created_at, written.conversation.updated_at) == (100, 200)


def test_title_and_source_are_kept_where_the_new_ones_are_empty(store: SqlStore) -> None:
    store.append(append(said("one"), title="first", source=Source("f", "here", "/p")), now=1)
    kept = store.append(append(source=Source("", "", "")), now=2)
    assert (kept.conversation.title, kept.conversation.source, kept.conversation.revision) == (
        "first",
        Source("f", "here", "/p"),
        1,
    )
    renamed = store.append(append(title="second", source=Source(file="there")), now=3)
    assert (renamed.conversation.title, renamed.conversation.source) == ("second", Source("f", "there", "/p"))
    assert (renamed.conversation.revision, renamed.conversation.updated_at, list(renamed.changes)) == (2, 3, [])
    whole = store.write(append(said("one"), title="third"), expected_revision=2, now=4)
    assert (whole.conversation.title, whole.conversation.revision, list(whole.changes)) == ("third", 3, [])


def test_another_project_puts_every_turn_again(store: SqlStore) -> None:
    store.append(append(said("one", "a"), said("two", "b"), said("three", "d"), source=Source(project="/p")), now=1)
    written = store.append(append(said("four"), said("TWO and more", "b"), source=Source(project="/q")), now=2)
    puts = [change for change in written.changes if isinstance(change, Put)]
    assert [(put.number, put.turn_number, put.replaces) for put in puts] == [(4, 1, 0), (5, 5, 2), (6, 3, 0), (7, 7, 0)]
    assert all(put.place and put.place.conversation.source.project == "/q" for put in puts)
    assert [put.place.turn for put in puts if put.place] == store.turns_from(written.conversation.pk, 0, 9)
    assert [turn.outcome for turn in written.turns] == ["added", "replaced"]
    log = store.changes(0, 99)
    assert [(change.number, isinstance(change, Put) and change.place is not None) for change in log] == [
        (number, number > 3) for number in range(1, 8)
    ]
    whole = store.write(append(said("one", "a"), said("two", "b"), source=Source(project="/r")), expected_revision=2, now=3)
    assert [(type(change).__name__, change.number) for change in whole.changes] == [
        ("Forget", 8),
        ("Forget", 9),
        ("Put", 10),
        ("Put", 11),
    ]


def test_many_appends_see_each_other(store: SqlStore) -> None:
    store.append(append(said("one", "a")), now=1)
    done = store.append_many(
        [
            append(said("two", "b"), said("x")),
            append(said("longer", "a"), said("TWO", "b"), said("y")),
            append(said("longer", "a"), said("z", "c:2"), said("c", "c:3:3")),
            append(said("c:4"), conversation_id="other"),
            append(said("1"), said("2"), conversation_id="other", agent=AgentKey("bob")),
            append(said("w"), source=Source(project="/p")),
        ],
        now=2,
    )
    assert all(isinstance(each, Written) for each in done)
    assert [[turn.outcome for turn in each.turns] for each in done if isinstance(each, Written)] == [
        ["added", "added"],
        ["replaced", "replaced", "added"],
        ["unchanged", "replaced", "added"],
        ["added"],
        ["added", "added"],
        ["added"],
    ]
    last = done[-1]
    assert isinstance(last, Written)
    assert transcript(store, last) == [
        ("a", 4, 0, 6, "longer"),
        ("b", 5, 7, 3, "TWO"),
        ("c:2", 7, 11, 1, "z"),
        ("c:3", 6, 13, 1, "y"),
        ("c:3:3", 8, 15, 1, "c"),
        ("c:5", 17, 17, 1, "w"),
    ]
    assert last.conversation.revision == 5
    assert store.head() == 17
    assert [change.number for each in done if isinstance(each, Written) for change in each.changes] == list(range(2, 18))


def test_a_batch_goes_around_a_tombstone(store: SqlStore) -> None:
    first = store.append(append(said("one")), now=1)
    store.delete(first.agent.pk, "c", now=2)
    again = append(said("two"))
    done = store.append_many([again, append(said("three"), conversation_id="d"), again], now=3)
    assert done[0] == done[2] == Tombstoned(again)
    assert isinstance(done[1], Written)
    assert store.conversation(first.agent.pk, "c") is None


def test_delete(store: SqlStore) -> None:
    written = store.append(append(said("one", "a"), said("two"), title="secret", source=Source("f", "here", "/p")), now=1)
    other = store.append(append(said("three"), conversation_id="d"), now=2)
    pk, agent_pk = written.conversation.pk, written.agent.pk
    assert store.delete(agent_pk, "c", now=3) == [ForgetConversation(4, pk)]
    assert store.conversation(agent_pk, "c") is None
    assert store.turns_from(pk, 0, 9) == []
    assert store.turns([1, 2, 3]).keys() == {3}
    assert store.turn(pk, "a") is None
    assert store.seq_at(pk, 0) == 0
    assert store.list_conversations({}, None, None, 9) == [(other.conversation, other.agent)]
    assert store.changes(0, 9)[:2] == [Put(1, 1, 0, None), Put(2, 2, 0, None)]
    for missing in ("c", "never"):
        with pytest.raises(NotFound, match=f"^conversation_id: there is no conversation {missing}$"):
            store.delete(agent_pk, missing, now=4)
    with pytest.raises(FailedPrecondition, match=r"^conversation_id: c was deleted$"):
        store.append(append(said("back")), now=5)
    with pytest.raises(FailedPrecondition, match=r"^conversation_id: c was deleted$"):
        store.write(append(said("back")), expected_revision=0, now=5)
    assert store.head() == 4


REVISIONS = {
    "must not exist, and does not": (0, 0, None),
    "must not exist, but does": (2, 0, "expected_revision: 0 does not match, the conversation is at revision 2"),
    "right": (2, 2, None),
    "older": (2, 1, "expected_revision: 1 does not match, the conversation is at revision 2"),
    "newer": (2, 3, "expected_revision: 3 does not match, the conversation is at revision 2"),
    "of none": (0, 3, "expected_revision: 3 does not match, the conversation does not exist"),
    "negative": (0, -1, "expected_revision: -1 does not match, the conversation does not exist"),
}


@pytest.mark.parametrize(("revision", "expected", "message"), REVISIONS.values(), ids=REVISIONS.keys())
@pytest.mark.parametrize("same", [True, False])
def test_expected_revision(store: SqlStore, revision: int, expected: int, message: str | None, same: bool) -> None:
    for number in range(revision):
        store.append(append(said(f"{number}")), now=number)
    whole = append(*[said(f"{number}") for number in range(revision)]) if same else append(said("new"))
    before = store.changes(0, 9)
    if message is None:
        written = store.write(whole, expected_revision=expected, now=9)
        assert written.conversation.revision == (revision if same and revision else revision + 1)
        return
    with pytest.raises(Aborted) as raised:
        store.write(whole, expected_revision=expected, now=9)
    assert raised.value.message == message
    assert store.changes(0, 9) == before
    assert bool(store.agents_with_id("ada", {})) == bool(revision)


def test_a_write_that_fails_leaves_nothing(store: SqlStore) -> None:
    store.append(append(said("one", "a")), now=1)
    broken = replace(said("two", "b"), digest=None)  # type: ignore[arg-type]  # what the database itself refuses
    secret = "xyzzy-what-somebody-said"
    with pytest.raises(IntegrityError, match=r"(?i)not.null") as raised:
        store.append_many([append(said(secret, secret)), append(broken), append(said("x"), agent=AgentKey("new"))], now=2)
    assert secret not in "".join(traceback.format_exception(raised.value))
    assert store.head() == 1
    assert store.agents_with_id("new", {}) == []
    written = store.append(append(said("three")), now=3)
    assert transcript(store, written) == [("a", 1, 0, 3, "one"), ("c:1", 2, 4, 5, "three")]
    assert written.conversation.revision == 2


def test_long_requests(store: SqlStore) -> None:
    """More turns than one statement takes ids, each known again by its own."""
    turns = [said(f"{number}", f"t{number}" if number % 3 else "") for number in range(2500)]
    first = store.append(append(*turns), now=1)
    assert first.conversation.turn_count == 2500
    again = store.append(append(*(turn for turn in turns if turn.turn_id)), now=2)
    assert {turn.outcome for turn in again.turns} == {"unchanged"}
    assert [turn.turn.parts for turn in again.turns] == [turn.parts for turn in turns if turn.turn_id]
    more = store.append(append(*(said(f"more {number}") for number in range(2500))), now=3)
    assert [turn.turn.turn_id for turn in more.turns] == [f"c:{number}" for number in range(2500, 5000)]
    assert list(store.turns(range(5000, 0, -1))) == list(range(5000, 0, -1))
    every_second = store.append(append(*(said("x", f"t{number}") for number in range(2500) if number % 3 == 1)), now=4)
    assert {turn.outcome for turn in every_second.turns} == {"replaced"}
    stored = store.turns_from(first.conversation.pk, 0, 5000)
    offset = 0
    for turn in stored:
        assert turn.content_offset == offset
        offset += turn.content_length + 1
    assert offset == every_second.conversation.content_length
    assert store.write(append(), expected_revision=None, now=5).changes == [
        Forget(number, turn.number) for number, turn in enumerate(stored, store.head() - 4999)
    ]
