"""What a search of chats finds, in which order, and what comes with a hit."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from aforesaid import File, InvalidArgument, Reasoning, Text, ToolCall, ToolResult, Turn
from aforesaid.transcript_index import ChatMessage, ChatRecord, MessageHit, TranscriptIndex
from tests.chats.conftest import Place, Scope

INDEXED_BYTES = 262_144


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def write(index: TranscriptIndex, scope: Mapping[str, str | None], *messages: Any, chat_id: str = "c") -> None:
    index.write_chat(ChatRecord(chat_id, scope, messages))


def places_of(hits: list[MessageHit]) -> list[tuple[str, int]]:
    return [(hit.chat_id, hit.index) for hit in hits]


def finds(place: Place, messages: Mapping[str, Any], name: str, query: str, **asked: Any) -> bool:
    """Whether a chat of one message is found; each of the messages is one by its name."""

    def chats(scope: Scope) -> list[ChatRecord]:
        return [ChatRecord(name, scope, [user(one) if isinstance(one, str) else one]) for name, one in messages.items()]

    scope = place.holding(next(iter(messages)), chats)
    return places_of(place.index.search(scope, query, chat_ids=[name], **asked)) == [(name, 0)]


# Hits


def test_a_hit_names_its_message_and_holds_it(index: TranscriptIndex, scope: Scope) -> None:
    answer = {"role": "assistant", "content": [{"type": "text", "text": "By the zebra crossing."}], "id": "run-7:3"}
    write(index, scope, user("Where do we meet?", id="first"), answer, chat_id="run:7")
    (hit,) = index.search(scope, "zebra")
    assert (hit.chat_id, hit.message_id, hit.index, hit.score, hit.scope) == ("run:7", "run-7:3", 1, 1.0, scope)
    assert (hit.message.message_id, hit.message.role, hit.message.parts) == (
        "run-7:3",
        "assistant",
        (Text("By the zebra crossing."),),
    )
    assert hit.message.created_at is not None
    assert (hit.before, hit.after) == ((), ())
    assert hit.digest.startswith("sha256:")


def test_best_first_and_the_best_scores_one(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, user("zebra"), user("a crossing"), user("the zebra crossing"), user("nothing of the kind"))
    hits = index.search(scope, "zebra crossing")
    assert hits[0].index == 2
    assert {hit.index for hit in hits} == {0, 1, 2}
    scores = [hit.score for hit in hits]
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[-1] < 1


@pytest.mark.parametrize(("around", "before", "after"), [(0, [], []), (1, [2], [4]), (2, [1, 2], [4, 5]), (10, [0, 1, 2], [4, 5])])
def test_messages_on_each_side(index: TranscriptIndex, scope: Scope, around: int, before: list[int], after: list[int]) -> None:
    write(index, scope, *(user(f"number {'zebra' if at == 3 else at}") for at in range(6)))
    (hit,) = index.search(scope, "zebra", around=around)
    assert [message.text for message in hit.before] == [f"number {at}" for at in before]
    assert [message.text for message in hit.after] == [f"number {at}" for at in after]
    assert [message.message_id for message in hit.before] == [f"c:{at}" for at in before]


def test_the_limit(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, *(user(f"zebra {at}") for at in range(120)))
    assert len(index.search(scope, "zebra")) == 20
    assert len(index.search(scope, "zebra", limit=3)) == 3
    assert len(index.search(scope, "zebra", limit=1_000)) == 100


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"limit": 0}, "limit: 0 is less than 1"),
        ({"limit": -1}, "limit: -1 is less than 1"),
        ({"limit": "3"}, "limit: must be a whole number, and is of type str"),
        ({"limit": True}, "limit: must be a whole number, and is of type bool"),
        ({"around": 1.0}, "around: must be a whole number, and is of type float"),
        ({"around": 11}, "around: 11 is more than 10"),
        ({"around": -1}, "around: -1 is less than 0"),
        ({"chat_ids": "c"}, "chat_ids: must be a list of ids, and is of type str"),
        ({"chat_ids": ["c", ""]}, "chat_ids[1]: is empty"),
        ({"chat_ids": ["c" * 513]}, f"chat_ids[0]: 513 bytes, at most 512 are allowed: {'c' * 64}…"),
        ({"chat_ids": [str(at) for at in range(101)]}, "chat_ids: 101 entries, at most 100 are allowed"),
        ({"scope": {"user_id": 7}}, "scope: a value must be a text, and is of type int"),
        ({"scope": "ada"}, "scope: must be a map, and is of type str"),
        ({"scope": {"": "ada"}}, "scope: a key: is empty"),
        ({"query": "\ud800"}, "query: holds half a character (U+D800)"),
        ({"query": 7}, "query: must be a text, and is of type int"),
        ({"query": "x" * 65_537}, "query: 65537 bytes, at most 65536 are allowed"),
    ],
)
def test_what_is_wrong_is_named(index: TranscriptIndex, scope: Scope, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        index.search(**{"scope": scope, "query": "zebra"} | asked)
    assert raised.value.message == told
    assert raised.value.violations[0].field == told.partition(":")[0]


def test_only_these_chats(index: TranscriptIndex, scope: Scope) -> None:
    for name in ("one", "two", "three"):
        write(index, scope, user("zebra"), chat_id=name)
    assert {hit.chat_id for hit in index.search(scope, "zebra", chat_ids=["one", "three", "gone"])} == {"one", "three"}
    assert index.search(scope, "zebra", chat_ids=["gone"]) == []
    # A list of what one may look at that is empty lets nobody look at everything.
    assert index.search(scope, "zebra", chat_ids=[]) == []


def test_messages_too_large_for_one_reply_come_whole(index: TranscriptIndex, scope: Scope) -> None:
    large = [f"zebra {'.' * 4_300_000} {at}" for at in range(2)]
    write(index, scope, *(user(text) for text in large))
    hits = index.search(scope, "zebra", around=1)
    assert {hit.index: hit.message.text for hit in hits} == dict(enumerate(large))
    for hit in hits:
        assert [len(one.text) for one in (*hit.before, hit.message, *hit.after)] == [len(text) for text in large]


# Terms


HOLDING = [
    ("meet me in İzmir", "izmir"),
    ("meet me in izmir", "İZMİR"),
    ("IZMIR", "ızmir"),
    ("die Straße", "strasse"),
    ("STRASSE", "straße"),
    ("ſtraſſe", "STRAẞE"),
    ("ＤＥＰＬＯＹ", "deploy"),
    ("deploy", "ｄｅｐｌｏｙ"),
    (unicodedata.normalize("NFD", "Crème brûlée"), unicodedata.normalize("NFC", "brûlée")),
    ("creme brulee", "crème"),
    ("Nguyễn", "nguyen"),
    ("ΟΔΟΣ", "οδος"),
    ("soft\u00adhyphen", "softhyphen"),
    ("私の記憶です", "記憶"),
    ("회의는 내일", "회의"),
    ("修改youer服务端", "youer"),
    ("👩‍💻zebra👩‍💻", "zebra"),
    ("see #123 in src/main.py", "main"),
    ("see #123 in src/main.py", "123"),
    ("not the", "the"),
    ("what is it", "it"),
]
NOT_HOLDING = [
    ("it deploys", "deploy"),
    ("we deploy", "deploys"),
    ("deployment", "deploy"),
    ("zebras", "ebra"),
    ("gone", "missing"),
    ("zebra", "???"),
    ("zebra", ""),
    ("zebra", " \u200b "),
    ("zebra", "👩‍💻"),
]
BY_STEM = [("it deploys", "deploy"), ("we deploy", "deploys"), ("deploying", "deployed")]
TEXTS = {text: text for text, _ in (*HOLDING, *NOT_HOLDING, *BY_STEM, ("one zebra", ""))}


@pytest.mark.parametrize(("text", "query"), HOLDING)
def test_a_message_that_holds_a_term(place: Place, text: str, query: str) -> None:
    assert finds(place, TEXTS, text, query)


@pytest.mark.parametrize(("text", "query"), NOT_HOLDING)
def test_a_message_that_does_not(place: Place, text: str, query: str) -> None:
    assert not finds(place, TEXTS, text, query)


@pytest.mark.parametrize(
    "query", ["zebra missing", "missing zebra", "-zebra", '"zebra nothing"', "other-zebra", "NOT zebra", "(zebra", "zebra*"]
)
def test_any_term_is_enough_and_nothing_is_syntax(place: Place, query: str) -> None:
    assert finds(place, TEXTS, "one zebra", query)


@pytest.mark.parametrize(("text", "query"), BY_STEM)
def test_stems_where_they_are_asked_for(place: Place, text: str, query: str) -> None:
    assert finds(place, TEXTS, text, query, stem=True)
    assert not finds(place, TEXTS, text, query)


def test_the_first_32_different_terms_count(index: TranscriptIndex, scope: Scope) -> None:
    write(index, scope, user("zebra"))
    others = [f"other{at}" for at in range(32)]
    assert places_of(index.search(scope, " ".join([*others[:31], "zebra"]))) == [("c", 0)]
    assert places_of(index.search(scope, " ".join([*others[:31], *others[:31], "zebra"]))) == [("c", 0)]
    assert index.search(scope, " ".join([*others, "zebra"])) == []


# What is searched


SAID: dict[str, Any] = {
    "string content": {"role": "assistant", "content": "zebra"},
    "a text part": {"role": "user", "content": [{"type": "text", "text": "zebra"}]},
    "the second of two text parts": {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "zebra"}]},
    "a part as a string": {"role": "user", "content": ["zebra"]},
    "a string tool result": {"role": "tool", "tool_call_id": "1", "content": "zebra"},
    "a string tool result of Anthropic": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "1", "content": "zebra"}],
    },
    "a string tool result of the AI SDK": {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "1", "toolName": "t", "output": {"type": "text", "value": "zebra"}}],
    },
    "what a tool of a UI message gave": {
        "role": "assistant",
        "parts": [{"type": "tool-t", "toolCallId": "1", "state": "output-available", "input": {}, "output": "zebra"}],
    },
    "the text of a UI message": {"role": "user", "parts": [{"type": "text", "text": "zebra"}]},
    "a part of ours": ChatMessage("assistant", (Text("zebra"),)),
    "a plain result of ours": ChatMessage("tool", (ToolResult("zebra", "1"),)),
    "a failed result": ChatMessage("tool", (ToolResult("zebra", "1", is_error=True),)),
    "any other role": {"role": "narrator", "content": "zebra"},
}
NOT_SAID: dict[str, Any] = {
    "reasoning": {"role": "assistant", "content": [{"type": "reasoning", "text": "zebra"}]},
    "thinking": {"role": "assistant", "content": [{"type": "thinking", "thinking": "zebra"}]},
    "tool inputs of Anthropic": {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "1", "name": "zebra", "input": {"zebra": "zebra"}}],
    },
    "tool inputs of OpenAI": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "zebra", "arguments": '{"q": "zebra"}'}}],
    },
    "tool inputs of the AI SDK": {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "1", "toolName": "zebra", "input": {"q": "zebra"}}],
    },
    "an image": {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/zebra.png"}}]},
    "a structured tool result": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "1", "content": {"animal": "zebra"}}],
    },
    "a structured tool result of the AI SDK": {
        "role": "tool",
        "content": [
            {"type": "tool-result", "toolCallId": "1", "toolName": "t", "output": {"type": "json", "value": {"animal": "zebra"}}}
        ],
    },
    "a list of values": {
        "role": "assistant",
        "parts": [{"type": "tool-t", "toolCallId": "1", "state": "output-available", "input": {}, "output": ["zebra"]}],
    },
    "a system message": {"role": "system", "content": "zebra"},
    "a developer message": {"role": "developer", "content": "zebra"},
    "a thought of ours": ChatMessage("assistant", (Reasoning("zebra"),)),
    "a call of ours": ChatMessage("assistant", (ToolCall("zebra", '{"zebra": "zebra"}'),)),
    "a result of ours as JSON": ChatMessage("tool", (ToolResult('"zebra"', is_json=True),)),
    "a file of ours": ChatMessage("user", (File("image/zebra", "zebra"),)),
}


@pytest.mark.parametrize("name", SAID)
def test_this_is_searched(place: Place, name: str) -> None:
    assert finds(place, SAID, name, "zebra")


@pytest.mark.parametrize("name", NOT_SAID)
def test_this_is_not_but_is_kept(place: Place, name: str) -> None:
    assert not finds(place, NOT_SAID, name, "zebra")
    record = place.index.read_chat(place.kept[next(iter(NOT_SAID))], name)
    assert record is not None
    assert "zebra" in repr(record.messages[0])


def test_what_is_not_searched_does_not_stand_between(index: TranscriptIndex, scope: Scope) -> None:
    hidden = Reasoning("hidden " * 60_000), ToolCall("t", f'{{"q": "{"far " * 70_000}"}}')
    write(index, scope, ChatMessage("assistant", (*hidden, Text("zebra"))))
    assert places_of(index.search(scope, "zebra")) == [("c", 0)]
    assert index.search(scope, "hidden far") == []


# The cut


@pytest.mark.parametrize(
    ("filler", "edge", "beginning"),
    [("ab", "frontier", "frontie"), ("дом", "граница", "границ"), ("straßen", "grenze", "grenz"), ("ＡＢ", "ＥＤＧＥ", "edg")],
)
def test_the_first_256_kib_of_folded_words_are_searched(
    index: TranscriptIndex, scope: Scope, filler: str, edge: str, beginning: str
) -> None:
    folded, last = (unicodedata.normalize("NFKC", word).casefold().encode() for word in (filler, edge))
    fitting = (INDEXED_BYTES - len(last)) // (len(folded) + 1)
    write(index, scope, user(f"{filler}, " * fitting + edge), chat_id="within")
    write(index, scope, user(f"{filler}, " * (fitting + 1) + edge), chat_id="beyond")
    assert {hit.chat_id for hit in index.search(scope, filler)} == {"within", "beyond"}
    assert places_of(index.search(scope, edge)) == [("within", 0)]
    # The cut is never inside a word: what is left of it is no word.
    assert index.search(scope, beginning) == []
    kept = index.read_chat(scope, "beyond")
    assert kept is not None
    assert kept.messages[0].text.endswith(edge)


# Scopes


def test_the_scope_filter_matches_every_field_that_is_set(index: TranscriptIndex, scope: Scope) -> None:
    word = f"w{uuid4().hex}"
    write(index, scope | {"project": "a"}, user(word), chat_id="in a")
    write(index, scope | {"project": "b"}, user(word), chat_id="in b")
    write(index, scope, user(word), chat_id="in none")

    def found(asked: Mapping[str, str | None]) -> set[str]:
        return {hit.chat_id for hit in index.search(asked, word)}

    assert found(scope) == {"in a", "in b", "in none"}
    assert found(scope | {"project": "a"}) == {"in a"}
    assert found({"project": "b"}) == {"in b"}
    assert found({**scope, "project": None}) == {"in a", "in b", "in none"}
    assert found(scope | {"project": "c"}) == set()
    assert found({"user_id": "somebody else"}) == set()
    # Every chat that the caller may see.
    assert found({}) == {"in a", "in b", "in none"}


def test_chats_of_one_id_in_several_scopes_are_several(index: TranscriptIndex, scope: Scope) -> None:
    for name in "ab":
        write(index, scope | {"project": name}, user(f"zebra {name}"))
    hits = index.search(scope, "zebra")
    assert sorted((hit.chat_id, hit.scope["project"], hit.message.text) for hit in hits) == [
        ("c", "a", "zebra a"),
        ("c", "b", "zebra b"),
    ]


def test_conversations_of_other_agents_are_no_chats(index: TranscriptIndex, scope: Scope) -> None:
    index.client.append("talk", [Turn("user", (Text("zebra"),))], agent_id="somebody", scope=scope)
    assert index.search(scope, "zebra") == []
    assert list(index.list_chats(scope)) == []


def test_a_token_sees_its_scope_alone(places: Any) -> None:
    token: Place = places("token")
    scope = {"user_id": uuid4().hex}
    write(token.index, scope, user("zebra"))
    (hit,) = token.index.search(scope, "zebra")
    assert hit.scope == scope | {"tenant": "blue"}
    assert token.index.search(scope | {"tenant": "red"}, "zebra") == []
