"""Messages that are cited, and what a prompt may quote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aforesaid import InvalidArgument, ToolResult
from aforesaid.transcript_index import (
    Candidate,
    Candidates,
    ChatRecord,
    MessageRef,
    TranscriptIndex,
    context_source,
)
from tests.chats.conftest import Place, Scope


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def write(index: TranscriptIndex, scope: Scope, *texts: str, chat_id: str = "c") -> None:
    index.write_chat(ChatRecord(chat_id, scope, [user(text) for text in texts]))


# References


def test_a_reference_leads_to_its_message(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, "one", "two", chat_id="run:7")
    found = index.resolve_source(scope, MessageRef("run:7", "run:7:1"))
    assert found is not None
    assert (found.chat_id, found.message_id, found.index, found.message.text, found.scope, found.unchanged) == (
        "run:7",
        "run:7:1",
        1,
        "two",
        scope,
        None,
    )
    for written in (
        {"kind": "message", "chat_id": "run:7", "message_id": "run:7:1"},
        {"chatId": "run:7", "messageId": "run:7:1", "digest": None},
    ):
        assert index.resolve_source(scope, written) == found


def test_a_digest_tells_whether_the_text_is_unchanged(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, "one zebra", "two")
    (hit,) = index.search(scope, "zebra")
    ref = MessageRef(hit.chat_id, hit.message_id, hit.digest)
    found = index.resolve_source(scope, ref)
    assert found is not None
    assert (found.unchanged, found.digest) == (True, hit.digest)
    index.write_chat(ChatRecord("c", scope, [user("before"), user("another zebra", id="c:0")]))
    found = index.resolve_source(scope, ref)
    assert found is not None
    assert (found.unchanged, found.index, found.message.text) == (False, 1, "another zebra")
    assert found.digest != hit.digest


@pytest.mark.parametrize(
    "ref",
    [
        MessageRef("c", "c:7"),
        MessageRef("unknown", "c:0"),
        MessageRef("deleted", "deleted:0"),
        MessageRef("c", "removed"),
        MessageRef("c", "c:0", kind="document"),
    ],
    ids=lambda ref: f"{ref.kind} {ref.chat_id} {ref.message_id}",
)
def test_there_is_no_such_message(place: Place, ref: MessageRef) -> None:
    def chats(scope: Scope) -> list[ChatRecord]:
        place.index.write_chat(ChatRecord("c", scope, [user("one"), user("two", id="removed")]))
        write(place.index, scope, "one", chat_id="deleted")
        place.index.delete_chat(scope, "deleted")
        return [ChatRecord("c", scope, [user("one")])]

    assert place.index.resolve_source(place.holding("one that was deleted", chats), ref) is None


def test_a_reference_leads_nowhere_from_another_scope(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, "one")
    ref = MessageRef("c", "c:0")
    assert index.resolve_source(scope, ref) is not None
    assert index.resolve_source(scope | {"project": "a"}, ref) is None
    assert index.resolve_source({**scope, "user_id": "somebody else"}, ref) is None
    # A field of the chat's scope that is not asked for binds nobody.
    write(index, scope | {"project": "a"}, "one", chat_id="in a")
    found = index.resolve_source(scope, MessageRef("in a", "in a:0"))
    assert found is not None
    assert found.scope == scope | {"project": "a"}


@pytest.mark.parametrize(
    ("ref", "told"),
    [
        ({"message_id": "m"}, "ref.chat_id: must be a text, and is of type NoneType"),
        ({"chat_id": "c"}, "ref.message_id: must be a text, and is of type NoneType"),
        ({"chat_id": "", "message_id": "m"}, "ref.chat_id: is empty"),
        ({"chat_id": "c", "message_id": ""}, "ref.message_id: is empty"),
        ({"chat_id": "c" * 513, "message_id": "m"}, "ref.chat_id: 513 bytes, at most 512 are allowed"),
        (MessageRef("c", "m\ud800"), "ref.message_id: holds half a character (U+D800)"),
        ("c:0", "ref: must be a MessageRef or a map, and is of type str"),
        (MessageRef("c", "m", "sha256:12"), None),
    ],
)
def test_what_is_no_reference(index: TranscriptIndex, scope: Scope, ref: Any, told: str | None) -> None:
    with pytest.raises(InvalidArgument) as raised:
        index.resolve_source(scope, ref)
    assert raised.value.message == told if told else raised.value.message.startswith("ref.digest: ")
    assert raised.value.violations[0].field == raised.value.message.partition(": ")[0]


# Context


def lines(found: Candidates) -> list[tuple[str, str]]:
    return [(one.match, one.text) for one in found]


def test_what_a_search_finds_is_quoted_as_lines(index: TranscriptIndex, scope: Scope) -> None:
    index.write_chat(
        ChatRecord(
            "c",
            scope,
            [
                user("where is the\nzebra crossing?", id="first"),
                {
                    "role": "assistant",
                    "content": [{"type": "reasoning", "text": "a zebra"}, {"type": "text", "text": "by the mill"}],
                },
            ],
        )
    )
    source = context_source(index, scope, budget=1_000)
    found = source.candidates("zebra")
    assert list(found) == [Candidate("user: where is the\n  zebra crossing?", "search", "c", "first", 0, 1.0)]
    assert (found.claimed, found.used, found.left_out) == (1_000, len(found[0].text), 0)
    assert found.text == found[0].text
    assert lines(context_source(index, scope, budget=1_000, around=1).candidates("zebra")) == [
        ("search", "user: where is the\n  zebra crossing?\nassistant: by the mill")
    ]


def test_cited_messages_come_first(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, "one zebra", "two", "three zebra")
    write(index, scope | {"project": "a"}, "cited", chat_id="other")
    asked = 0

    def refs() -> list[MessageRef | dict[str, str]]:
        nonlocal asked
        asked += 1
        return [
            MessageRef("c", "c:2"),
            {"kind": "document", "url": "https://example.org"},
            MessageRef("c", "gone"),
            {"chat_id": "other", "message_id": "other:0"},
            MessageRef("c", "c:2"),
        ]

    source = context_source(index, scope, budget=1_000, refs=refs, chat_ids=["c"])
    assert asked == 0
    found = source.candidates("zebra")
    assert asked == 1
    # In the order of the memories; one that the search finds as well is quoted once. Where to search does not bind them.
    assert lines(found) == [
        ("source-ref", "user: three zebra"),
        ("source-ref", "user: cited"),
        ("search", "user: one zebra"),
    ]
    assert [one.score for one in found[:2]] == [1.0, 1.0]
    assert lines(source.candidates()) == lines(found)[:2]
    assert asked == 2


def test_references_are_resolved_under_the_same_scope(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope | {"project": "a"}, "of a")
    refs: Callable[[], list[MessageRef]] = lambda: [MessageRef("c", "c:0")]  # noqa: E731 # a lambda, as applications write one
    assert lines(context_source(index, scope | {"project": "a"}, budget=99, refs=refs).candidates()) == [
        ("source-ref", "user: of a")
    ]
    assert lines(context_source(index, scope | {"project": "b"}, budget=99, refs=refs).candidates()) == []


@pytest.mark.parametrize("around", [0, 1])
@pytest.mark.parametrize(
    ("budget", "share"), [(0, 1), (27, 1), (28, 1), (56, 1), (57, 1), (114, 0.5), (113, 0.5), (114, 1), (115, 1), (2_000, 1)]
)
@pytest.mark.parametrize("count", [len, lambda text: len(text)], ids=["code points", "a counter"])  # noqa: PLW0108 # counted here
def test_never_over_the_budget(place: Place, budget: int, share: float, around: int, count: Callable[[str], int]) -> None:
    messages = [user(f"zebra 👩‍💻 {'.' * 10} {at}") for at in range(4)]
    scope = place.holding("four zebras", lambda scope: [ChatRecord("c", scope, messages)])
    source = context_source(place.index, scope, budget=budget, share=share, around=around, count=count)
    found = source.candidates("zebra")
    room = int(budget * share)
    assert len(found.text) == found.used <= room
    # Each is 28 code points, and a newline stands between two.
    quoted = found.text.count("user: ")
    assert quoted == min(4, (room + 1) // 29)
    assert found.claimed == (room if found else 0)
    assert found.left_out == (0 if room == 0 else 4 - quoted)


def test_tokens_are_counted_by_the_callers_counter(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, *(f"zebra {' '.join('abcdefghi')} {at}" for at in range(5)))
    counted: list[str] = []

    def words(text: str) -> int:
        counted.append(text)
        return len(text.split())

    source = context_source(index, scope, budget=60, share=0.5, count=words)
    found = source.candidates("zebra")
    assert (found.used, found.claimed, len(found), found.left_out) == (24, 30, 2, 3)
    assert len(found.text.split()) == 24
    assert counted
    nothing = context_source(index, scope, budget=60, count=lambda _: 61).candidates("zebra")
    assert (len(nothing), nothing.claimed, nothing.used, nothing.left_out) == (0, 0, 0, 5)


def test_where_the_neighbours_do_not_fit_the_hit_does(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, "before " * 30, "zebra", "after " * 30)
    for count in (len, lambda text: len(text)):  # noqa: PLW0108 # counted here
        found = context_source(index, scope, budget=100, around=1, count=count).candidates("zebra")
        assert lines(found) == [("search", "user: zebra")]
        assert (found.used, found.left_out) == (11, 0)


def test_the_share_is_claimed_only_where_something_is_offered(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, "zebra")
    source = context_source(index, scope, budget=1_000, share=0.25)
    assert source.candidates("zebra").claimed == 250
    for query in ("nothing", "???", ""):
        found = source.candidates(query)
        assert (list(found), found.claimed, found.used, found.left_out, found.text) == ([], 0, 0, 0, "")
        assert not found


def test_chats_that_are_asked_for(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, "zebra", chat_id="one")
    write(index, scope, "zebra", chat_id="two")
    assert [one.chat_id for one in context_source(index, scope, budget=99, chat_ids=["two"]).candidates("zebra")] == ["two"]
    assert list(context_source(index, scope, budget=99, chat_ids=[]).candidates("zebra")) == []
    cited = context_source(index, scope, budget=99, chat_ids=[], refs=lambda: [MessageRef("one", "one:0")])
    assert lines(cited.candidates("zebra")) == [("source-ref", "user: zebra")]


def test_stems_and_the_limit(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, "it deploys", "deployed", "nothing")
    assert list(context_source(index, scope, budget=99).candidates("deploy")) == []
    assert len(context_source(index, scope, budget=99, stem=True).candidates("deploy")) == 2
    assert len(context_source(index, scope, budget=99, stem=True, limit=1).candidates("deploy")) == 1


def test_more_than_a_hundred_citations(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, *(f"m{at}" for at in range(120)))
    source = context_source(index, scope, budget=100_000, refs=lambda: [MessageRef("c", f"c:{at}") for at in range(120)])
    found = source.candidates()
    assert ([one.index for one in found], found.left_out) == (list(range(100)), 20)


def test_a_source_does_nothing_by_itself() -> None:
    class Nobody:
        @property
        def client(self) -> Any:
            raise AssertionError("nobody asked for candidates")

    def refs() -> list[MessageRef]:
        raise AssertionError("nobody asked for candidates")

    source = context_source(cast("TranscriptIndex", Nobody()), {}, budget=10, refs=refs)
    assert (source.budget, source.share) == (10, 1)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"budget": -1}, "budget: -1 is less than 0"),
        ({"budget": 1.5}, "budget: must be a whole number, and is of type float"),
        ({"budget": True}, "budget: must be a whole number, and is of type bool"),
        ({"share": 0}, "share: must be above 0 and at most 1: 0"),
        ({"share": 1.01}, "share: must be above 0 and at most 1: 1.01"),
        ({"share": float("nan")}, "share: must be above 0 and at most 1: nan"),
        ({"around": 11}, "around: 11 is more than 10"),
        ({"limit": 0}, "limit: 0 is less than 1"),
        ({"chat_ids": "c"}, "chat_ids: must be a list of ids, and is of type str"),
        ({"chat_ids": [""]}, "chat_ids[0]: is empty"),
        ({"chat_ids": ["c"] * 101}, "chat_ids: 101 entries, at most 100 are allowed"),
        ({"scope": {"a": 1}}, "scope: a value must be a text, and is of type int"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_asked(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        context_source(**cast("Any", {"index": None, "scope": {}, "budget": 10} | wrong))
    assert raised.value.message == told


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(st.sampled_from("ab zß👩\n \u0301記"), max_size=30), min_size=1, max_size=6),
    budget=st.integers(0, 200),
    around=st.integers(0, 2),
    cited=st.lists(st.integers(0, 6), max_size=3),
    per_token=st.sampled_from([0, 1, 3]),
)
def test_no_prompt_grows_over_its_budget(
    places: Callable[[str], Place], texts: list[str], budget: int, around: int, cited: list[int], per_token: int
) -> None:
    place = places("memory")
    scope = place.scope()
    write(place.index, scope, *(f"zebra {text}" for text in texts))

    def tokens(text: str) -> int:
        return -(-len(text) // per_token)

    source = context_source(
        place.index,
        scope,
        budget=budget,
        around=around,
        refs=lambda: [MessageRef("c", f"c:{at}") for at in cited],
        count=tokens if per_token else len,
    )
    found = source.candidates("zebra")
    assert source.count(found.text) == found.used <= budget or not found
    assert found.claimed == (budget if found else 0)
    matches = [one.match for one in found]
    assert matches == sorted(matches, key=["source-ref", "search"].index)
    quoted = [one for one in found.text.split("\n") if one.startswith("user: ")]
    assert len(quoted) <= len(texts)


def test_what_a_tool_said_is_quoted_under_its_role(index: TranscriptIndex, scope: Scope) -> None:
    index.write_chat(
        ChatRecord(
            "c",
            scope,
            [
                {"role": "system", "content": "zebra rules"},
                {"role": "tool", "tool_call_id": "1", "content": "zebra\nuser: not a user"},
            ],
        )
    )
    assert lines(context_source(index, scope, budget=1_000).candidates("zebra")) == [
        ("search", "tool: zebra\n  user: not a user"),
    ]
    (hit,) = index.search(scope, "zebra")
    assert hit.message.parts == (ToolResult("zebra\nuser: not a user", "1"),)
    assert hit.message.text == "zebra\nuser: not a user"
