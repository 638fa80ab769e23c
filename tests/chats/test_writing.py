"""Chats that are written, written over, taken in from elsewhere, deleted, listed and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid import (
    Aborted,
    AforesaidError,
    FailedPrecondition,
    File,
    Internal,
    InvalidArgument,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from aforesaid.transcript_index import (
    CHAT_AGENT,
    ChatMessage,
    ChatRecord,
    TranscriptIndex,
    message_ids,
)
from aforesaid_server.index.document import Documents
from aforesaid_server.store.naming import name_turns
from tests.chats.conftest import EMBEDDED, KINDS, Place, Scope

PARTS = (
    Text("said\x00 naïve 記憶 👩\u200d💻 "),
    Text(" "),
    Reasoning("thought"),
    ToolCall("bash", '{"command":  "ls", "n": 12345678901234567890}', "call-1"),
    ToolResult("plain", "call-1", is_error=True),
    ToolResult('{"a": [1.0, null]}', "call-1", is_json=True),
    File("image/png", "shot.png"),
)


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def record(scope: Scope, *texts: str, chat_id: str = "c") -> ChatRecord:
    return ChatRecord(chat_id, scope, [user(text) for text in texts])


def read(index: TranscriptIndex, scope: Scope, chat_id: str = "c") -> ChatRecord:
    found = index.read_chat(scope, chat_id)
    assert found is not None
    return found


def messages_of(found: ChatRecord) -> list[ChatMessage]:
    assert all(isinstance(message, ChatMessage) for message in found.messages)
    return list(found.messages)


def found_in(index: TranscriptIndex, scope: Scope, query: str) -> list[str]:
    return [hit.message.text for hit in index.search(scope, query)]


# Writing


def test_a_chat_comes_back_as_it_was_written(index: TranscriptIndex, scope: Scope) -> None:
    written = ChatRecord(
        "run:7",
        scope,
        (
            ChatMessage("assistant", PARTS, "id with\nanything é: 7", 1_700_000_000_000_001),
            ChatMessage("user", (Text("second"),), "", 1_700_000_000_000_002),
            ChatMessage("assistant", (), "nothing", 1_700_000_000_000_003),
        ),
        "Title",
        Source("app", "file", "project"),
    )
    done = index.write_chat(written)
    assert (done.revision, done.message_ids) == (1, ("id with\nanything é: 7", "run:7:1", "nothing"))
    found = read(index, scope, "run:7")
    assert (found.chat_id, found.scope, found.title, found.source, found.revision) == (
        "run:7",
        scope,
        "Title",
        Source("app", "file", "project"),
        1,
    )
    assert [(one.role, one.parts, one.created_at) for one in messages_of(found)] == [
        (one.role, one.parts, one.created_at) for one in written.messages
    ]
    assert [one.message_id for one in messages_of(found)] == list(done.message_ids)


def test_the_whole_chat_is_written(index: TranscriptIndex, scope: Scope) -> None:
    index.write_chat(record(scope, "one zebra", "two zebra", "three zebra"))
    assert index.write_chat(ChatRecord("c", scope, [user("two zebra", id="c:1"), user("four zebra")])).revision == 2
    assert sorted(found_in(index, scope, "zebra")) == ["four zebra", "two zebra"]
    assert [one.message_id for one in messages_of(read(index, scope))] == ["c:1", "c:1:1"]


def test_the_times_of_messages(index: TranscriptIndex, scope: Scope) -> None:
    moment = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
    micros = 1_772_600_767_000_089
    times = [moment, moment.isoformat(), micros, 1_772_600_767, 1_772_600_767_000]
    index.write_chat(ChatRecord("c", scope, [*(user("x", created_at=time) for time in times), user("x")]))
    kept = [one.created_at for one in messages_of(read(index, scope))]
    assert kept[:5] == [micros, micros, micros, micros - 89, micros - 89]
    assert kept[5] is not None


def test_a_chat_is_a_conversation_of_the_agent_chat_in_its_scope(index: TranscriptIndex, scope: Scope) -> None:
    index.write_chat(record(scope, "x"))
    index.write_chat(record(scope | {"project": "a"}, "y"))
    assert index.client.agent(CHAT_AGENT, scope=scope).scope == scope
    assert [one.conversation_id for one in index.client.conversations(CHAT_AGENT, scope=scope | {"project": "a"})] == ["c"]
    # A chat of the wider scope is its own, though there was one of that id in a narrower one.
    assert messages_of(read(index, scope))[0].text == "x"
    assert messages_of(read(index, scope | {"project": "a"}))[0].text == "y"


# Revisions


def test_written_only_over_the_revision_that_is_expected(index: TranscriptIndex, scope: Scope) -> None:
    assert index.write_chat(record(scope, "one zebra"), expected_revision=0).revision == 1
    assert index.write_chat(record(scope, "two zebra"), expected_revision=1).revision == 2
    for expected in (0, 1, 3):
        with pytest.raises(Aborted, match=f"expected_revision: {expected} does not match"):
            index.write_chat(record(scope, "three zebra"), expected_revision=expected)
        assert found_in(index, scope, "zebra") == ["two zebra"]
    found = read(index, scope)
    assert (found.revision, [one.text for one in messages_of(found)]) == (2, ["two zebra"])
    with pytest.raises(Aborted):
        index.write_chat(record(scope, "zebra", chat_id="gone"), expected_revision=1)
    assert index.read_chat(scope, "gone") is None


def test_of_many_writers_at_one_revision_one_wins(index: TranscriptIndex, scope: Scope) -> None:
    index.write_chat(record(scope, "zebra"))

    def write(at: int) -> int | None:
        try:
            return index.write_chat(record(scope, f"zebra {at}"), expected_revision=1).revision
        except Aborted:
            return None

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(write, range(8)))
    assert sorted(outcomes, key=str) == [2, *[None] * 7]
    assert found_in(index, scope, "zebra") == [f"zebra {outcomes.index(2)}"]


class NoWords(Exception):
    """The words of a message cannot be found."""


@pytest.mark.parametrize("kind", EMBEDDED)
def test_words_that_cannot_be_found_commit_nothing(
    places: Callable[[str], Place], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = places(kind)
    index, scope = place.index, place.scope()
    index.write_chat(record(scope, "one zebra"))

    def fails(*_: object) -> None:
        raise NoWords

    with monkeypatch.context() as patch:
        patch.setattr(Documents, "words_of", fails)
        with pytest.raises(Internal):
            index.write_chat(record(scope, "two zebra"))
        with pytest.raises(Internal):
            index.index_chat(record(scope, "zebra", chat_id="new"))
    assert found_in(index, scope, "zebra") == ["one zebra"]
    assert read(index, scope).revision == 1
    assert index.read_chat(scope, "new") is None


# Ids


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["a", "b"], ["a", "b"]),
        ([None, "", "b"], ["c:0", "c:1", "b"]),
        (["a", "a", "a"], ["a", "c:1", "c:2"]),
        ([None, "c:0"], ["c:0:0", "c:0"]),
        (["run-7:3", "run-7:3", "c:1"], ["run-7:3", "c:1:1", "c:1"]),
        (["ü" * 256, "x" * 512], ["ü" * 256, "x" * 512]),
    ],
)
def test_the_ids_of_messages(index: TranscriptIndex, scope: Scope, given: list[str | None], named: list[str]) -> None:
    messages = [user("zebra") if one is None else user("zebra", id=one) for one in given]
    assert list(index.write_chat(ChatRecord("c", scope, messages)).message_ids) == named
    assert [one.message_id for one in messages_of(read(index, scope))] == named
    assert sorted(hit.message_id for hit in index.search(scope, "zebra")) == sorted(named)


@given(
    chat_id=st.sampled_from(["c", "c:1"]),
    given_ids=st.lists(st.sampled_from(["", "a", "c:0", "c:1", "c:1:1", "c:2:2"]), max_size=6),
)
def test_ids_are_those_that_the_service_gives(chat_id: str, given_ids: list[str]) -> None:
    named = name_turns(chat_id, given_ids, held={}, count=0, taken=lambda _: frozenset())
    assert message_ids(chat_id, given_ids) == tuple(name for name, _ in named)


@pytest.mark.parametrize("chat_id", ["x" * 512, "ü" * 256, "記" * 170, "👩\u200d💻:" * 42, "run:7/é\n"])
def test_long_ids_and_any_characters(index: TranscriptIndex, scope: Scope, chat_id: str) -> None:
    done = index.write_chat(ChatRecord(chat_id, scope, [user("zebra"), user("zebra too")]))
    assert done.message_ids == (f"{chat_id}:0", f"{chat_id}:1")
    assert {hit.message_id for hit in index.search(scope, "zebra", chat_ids=[chat_id])} == set(done.message_ids)
    # What was read back is written again, though the ids that were given are longer than one of the caller's may be.
    assert index.write_chat(read(index, scope, chat_id)).message_ids == done.message_ids
    assert index.delete_chat(scope, chat_id)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"chat_id": ""}, "chat_id: is empty"),
        ({"chat_id": 7}, "chat_id: must be a text, and is of type int"),
        ({"chat_id": "ü" * 257}, f"chat_id: 514 bytes, at most 512 are allowed: {'ü' * 64}…"),
        ({"chat_id": "\udc00"}, "chat_id: holds half a character (U+DC00)"),
        ({"scope": {"user_id": None, "x": 1}}, "scope: a value must be a text, and is of type int"),
        ({"title": "x" * 4097}, "title: 4097 characters, at most 4096 are allowed"),
        ({"messages": "hello"}, "messages: must be a list of messages, and is of type str"),
        ({"messages": [7]}, "messages[0]: must be a ChatMessage, a Turn or a map, and is of type int"),
        ({"messages": [user("x", id="m" * 513)]}, f"messages[0].id: 513 bytes, at most 512 are allowed: {'m' * 64}…"),
        ({"messages": [user("x", id=7)]}, "messages[0].id: must be a text, and is of type int"),
        ({"messages": [user("x"), {"content": "x"}]}, "messages[1].role: is empty"),
        ({"messages": [{"role": 7, "content": "x"}]}, "messages[0].role: must be a text, and is of type int"),
        ({"messages": [{"role": "r" * 129, "content": "x"}]}, "messages[0].role: 129 bytes, at most 128 are allowed"),
        ({"messages": [user(cast("str", 7))]}, "messages[0].content: must be a text or a list of parts, and is of type int"),
        (
            {"messages": [user(cast("str", ["a", 7]))]},
            "messages[0].content[1]: must be a text, a part or a map, and is of type int",
        ),
        ({"messages": [user("\ud83c")]}, "messages[0].parts: holds half a character (U+D83C)"),
        ({"messages": [user("x", created_at="yesterday")]}, "messages[0].created_at: is no time with a zone: yesterday"),
        (
            {"messages": [user("x", created_at=datetime(2026, 1, 1))]},  # noqa: DTZ001
            "messages[0].created_at: is no time with a zone: 2026-01-01 00:00:00",
        ),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "name": "t", "input": {"x": {1}}}]}]},
            "messages[0]: holds what cannot be written as JSON: Object of type set is not JSON serializable",
        ),
        ({"messages": [ChatMessage("user", cast("Any", ["x"]))]}, None),
    ],
)
def test_what_is_wrong_is_named(index: TranscriptIndex, scope: Scope, wrong: dict[str, Any], told: str | None) -> None:
    given = ChatRecord(**{"chat_id": "c", "scope": scope, "messages": [user("zebra")]} | wrong)
    for write in (index.write_chat, index.index_chat):
        with pytest.raises(InvalidArgument) as raised:
            write(given)
        assert raised.value.message == (
            told or "messages[0].parts: must be a list of Text, Reasoning, ToolCall, ToolResult and File, and is of type str"
        )
        assert raised.value.violations[0].field == raised.value.message.partition(": ")[0]
    assert index.search(scope, "zebra") == []


def test_what_is_no_record(index: TranscriptIndex) -> None:
    with pytest.raises(InvalidArgument, match="record: must be a ChatRecord, and is of type dict"):
        index.write_chat(cast("Any", {"chat_id": "c"}))


@pytest.mark.parametrize("expected", [-1, 2**70])
def test_no_revision(index: TranscriptIndex, scope: Scope, expected: int) -> None:
    with pytest.raises(InvalidArgument):
        index.write_chat(record(scope, "x"), expected_revision=expected)


# Deleting and taking in


def test_a_deleted_chat_is_gone_at_once(index: TranscriptIndex, scope: Scope) -> None:
    index.write_chat(record(scope, "one zebra", "two zebra"))
    index.write_chat(record(scope, "other zebra", chat_id="other"))
    assert index.delete_chat(scope, "c")
    assert found_in(index, scope, "zebra") == ["other zebra"]
    assert index.read_chat(scope, "c") is None
    assert index.resolve_source(scope, {"chat_id": "c", "message_id": "c:0"}) is None
    assert [one.chat_id for one in index.list_chats(scope)] == ["other"]
    assert not index.delete_chat(scope, "c")
    with pytest.raises(FailedPrecondition, match="chat_id: c was deleted"):
        index.write_chat(record(scope, "three zebra"))
    assert found_in(index, scope, "zebra") == ["other zebra"]


def test_there_is_nothing_to_delete(index: TranscriptIndex, scope: Scope) -> None:
    assert not index.delete_chat(scope, "c")
    index.write_chat(record(scope | {"project": "a"}, "zebra"))
    # Exactly the scope: one that is wider does not reach it.
    assert not index.delete_chat(scope, "c")
    assert found_in(index, scope, "zebra") == ["zebra"]
    for wrong in ("", "x" * 513):
        with pytest.raises(InvalidArgument, match="chat_id"):
            index.delete_chat(scope, wrong)


def test_a_chat_that_was_saved_elsewhere_is_taken_in(index: TranscriptIndex, scope: Scope) -> None:
    given = record(scope, "one zebra", "two zebra")
    done = index.index_chat(given)
    assert (done.outcome, done.revision, done.message_ids) == ("written", 1, ("c:0", "c:1"))
    again = index.index_chat(given)
    assert (again.outcome, again.revision, again.message_ids) == ("unchanged", 1, ("c:0", "c:1"))
    changed = index.index_chat(record(scope, "one zebra", "three zebra"), expected_revision=1)
    assert (changed.outcome, changed.revision) == ("written", 2)
    with pytest.raises(Aborted):
        index.index_chat(record(scope, "four zebra"), expected_revision=1)
    assert sorted(found_in(index, scope, "zebra")) == ["one zebra", "three zebra"]


def test_taking_in_never_brings_a_deleted_chat_back(index: TranscriptIndex, scope: Scope) -> None:
    given = record(scope, "zebra")
    index.write_chat(given)
    index.delete_chat(scope, "c")
    for expected in (None, 0, 1, 7):
        done = index.index_chat(given, expected_revision=expected)
        assert (done.outcome, done.revision, done.message_ids) == ("tombstoned", 0, ())
    assert index.search(scope, "zebra") == []
    assert index.read_chat(scope, "c") is None
    # Another chat of that id, in another scope, is no concern of the tombstone.
    assert index.index_chat(record(scope | {"project": "a"}, "zebra")).outcome == "written"


# Listing and reading


def test_the_list_of_chats(index: TranscriptIndex, scope: Scope) -> None:
    index.write_chat(ChatRecord("one", scope, [user("x"), user("y")], "First"))
    index.write_chat(record(scope, "x", chat_id="two"))
    index.write_chat(record(scope | {"project": "a"}, "x", chat_id="three"))
    index.write_chat(record(scope, "x", "y", "z", chat_id="one"))
    listed = list(index.list_chats(scope))
    assert [(one.chat_id, one.scope, one.title, one.revision, one.message_count) for one in listed] == [
        ("one", scope, "First", 2, 3),
        ("two", scope, "", 1, 1),
        ("three", scope | {"project": "a"}, "", 1, 1),
    ]
    first = listed[0]
    assert first.created_at is not None
    assert first.updated_at is not None
    assert first.created_at < first.updated_at
    assert [one.chat_id for one in index.list_chats(scope | {"project": "a"})] == ["three"]
    assert list(index.list_chats({"user_id": "nobody"})) == []


def test_a_long_list_and_a_long_chat(index: TranscriptIndex, scope: Scope) -> None:
    for at in range(105):
        index.write_chat(record(scope, "x", chat_id=f"c{at}"))
    assert [one.chat_id for one in index.list_chats(scope)] == [f"c{at}" for at in reversed(range(105))]
    # Over a MiB of text, more than one reply holds.
    index.write_chat(record(scope, *(f"{at} {'.' * 200_000}" for at in range(12)), chat_id="long"))
    assert [one.text.split()[0] for one in messages_of(read(index, scope, "long"))] == [str(at) for at in range(12)]


def test_reading_what_is_not_there(index: TranscriptIndex, scope: Scope) -> None:
    assert index.read_chat(scope, "c") is None
    index.write_chat(record(scope | {"project": "a"}, "x"))
    assert index.read_chat(scope | {"project": "b"}, "c") is None
    assert index.read_chat(scope, "other") is None
    # The one of a narrower scope, if there is but one.
    assert read(index, scope).scope == scope | {"project": "a"}
    index.write_chat(record(scope | {"project": "b"}, "x"))
    with pytest.raises(InvalidArgument, match="name the scope"):
        index.read_chat(scope, "c")


@contextmanager
def changing_between(index: TranscriptIndex, times: int, change: Callable[[], object]) -> Iterator[None]:
    """Has a chat change while it is read, so many times."""
    reading = index.client.read
    left = times

    def then(*args: Any, **kwargs: Any) -> Iterator[Any]:
        nonlocal left
        found = list(reading(*args, **kwargs))
        if left:
            left -= 1
            change()
        return iter(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index.client, "read", then, raising=False)
        yield


def test_a_chat_is_read_at_one_revision(index: TranscriptIndex, scope: Scope) -> None:
    index.write_chat(record(scope, "before"))
    with changing_between(index, 1, lambda: index.write_chat(record(scope, "after", "and more"))):
        found = read(index, scope)
    assert (found.revision, [one.text for one in messages_of(found)]) == (2, ["after", "and more"])
    count = iter(range(100))
    with (
        changing_between(index, 100, lambda: index.write_chat(record(scope, f"again {next(count)}"))),
        pytest.raises(AforesaidError, match="chat_id: c is written too often"),
    ):
        index.read_chat(scope, "c")


# Moving


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_ids_survive_a_move_between_stores(places: Callable[[str], Place], source: str, target: str) -> None:
    from_place, to_place = places(source), places(target)
    scope = {"user_id": from_place.scope()["user_id"], "tenant": "blue", "moved": f"{source} to {target}"}
    messages = [
        ChatMessage("user", (Text("zebra"),), "run-7:3", 1_700_000_000_000_001),
        Turn("assistant", PARTS),
        user("zebra again", id="run-7:3"),
        user(""),
    ]
    done = from_place.index.write_chat(ChatRecord("run:7", scope, messages, "Title", Source("app")))
    (listed,) = from_place.index.list_chats(scope)
    read_there = read(from_place.index, scope, listed.chat_id)
    if source == target:
        scope = scope | {"copy": "yes"}
        read_there = ChatRecord(read_there.chat_id, scope, read_there.messages, read_there.title, read_there.source)
    moved = to_place.index.write_chat(read_there, expected_revision=0)
    assert moved.message_ids == done.message_ids == ("run-7:3", "run:7:1", "run:7:2", "run:7:3")
    read_here = read(to_place.index, scope, "run:7")
    assert (read_here.messages, read_here.title, read_here.source) == (read_there.messages, "Title", Source("app"))
    assert {hit.message_id for hit in to_place.index.search(scope, "zebra")} == {"run-7:3", "run:7:2"}
    for message_id in done.message_ids:
        resolved = to_place.index.resolve_source(scope, {"chat_id": "run:7", "message_id": message_id})
        assert resolved is not None
        assert resolved.message_id == message_id
