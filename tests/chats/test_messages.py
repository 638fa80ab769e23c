"""Messages of the shapes that chat SDKs have: what becomes of them, what they are given back as, and how they are rendered."""

from __future__ import annotations

import itertools
import json
from datetime import date
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from anthropic.types import Message as AnthropicMessage
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage

from aforesaid import File, InvalidArgument, Part, Reasoning, StoredTurn, Text, ToolCall, ToolResult, Turn
from aforesaid.message_shapes import message_of
from aforesaid.transcript_index import ChatMessage, ChatRecord, TranscriptIndex, ui_messages
from tests.chats.conftest import Scope

# Each shape, and what becomes of it.
SHAPES: dict[str, tuple[dict[str, Any], str, tuple[Part, ...]]] = {
    "a text": ({"role": "user", "content": "hello"}, "user", (Text("hello"),)),
    "blanks are text": ({"role": "user", "content": " \n"}, "user", (Text(" \n"),)),
    "nothing": ({"role": "assistant", "content": None}, "assistant", ()),
    "no content at all": ({"role": "assistant"}, "assistant", ()),
    "an empty text": ({"role": "assistant", "content": ""}, "assistant", ()),
    "another name for system": ({"role": "developer", "content": "x"}, "system", (Text("x"),)),
    "OpenAI: parts": (
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
            ],
        },
        "user",
        (Text("see"), File("image/png", "cat.png")),
    ),
    "OpenAI: calls": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path":  "."}'}}],
        },
        "assistant",
        (ToolCall("ls", '{"path":  "."}', "c1"),),
    ),
    "OpenAI: a result": ({"role": "tool", "tool_call_id": "c1", "content": "a.txt"}, "tool", (ToolResult("a.txt", "c1"),)),
    "OpenAI: a result in parts": (
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        "tool",
        (ToolResult("a\nb", "c1"),),
    ),
    "OpenAI: a refusal": (
        {"role": "assistant", "content": None, "refusal": "I will not."},
        "assistant",
        (Text("I will not."),),
    ),
    "OpenAI: custom, older and other calls": (
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}},
                {"id": "c2", "type": "tool_call", "name": "ls", "args": {"a": 1}},
            ],
            "function_call": {"name": "cat", "arguments": "{}"},
        },
        "assistant",
        (ToolCall("shell", "ls -l", "c1"), ToolCall("ls", '{"a":1}', "c2"), ToolCall("cat", "{}")),
    ),
    "OpenAI: a result of data": (
        {"role": "tool", "tool_call_id": "c1", "content": [{"city": "Rome"}]},
        "tool",
        (ToolResult('[{"city":"Rome"}]', "c1", is_json=True),),
    ),
    "OpenAI: what was spoken": (
        {"role": "assistant", "content": None, "audio": {"id": "x", "transcript": "spoken"}},
        "assistant",
        (Text("spoken"),),
    ),
    "Responses: a message": (
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": " "}, {"type": "refusal", "refusal": "no"}],
        },
        "assistant",
        (Text(" "), Text("no")),
    ),
    "Responses: a call": (
        {"type": "function_call", "id": "", "call_id": "c1", "name": "ls", "arguments": "{}"},
        "assistant",
        (ToolCall("ls", "{}", "c1"),),
    ),
    "Responses: a call of a shell": (
        {"type": "local_shell_call", "call_id": "c1", "action": {"command": ["ls"]}},
        "assistant",
        (ToolCall("local_shell", '{"command":["ls"]}', "c1"),),
    ),
    "Responses: a call with its result": (
        {"type": "mcp_call", "id": "m1", "name": "x", "arguments": "{}", "output": "found"},
        "assistant",
        (ToolCall("x", "{}", "m1"), ToolResult("found", "m1")),
    ),
    "Responses: a result": (
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
        "tool",
        (ToolResult("done", "c1"),),
    ),
    "Responses: a picture of the screen": (
        {
            "type": "computer_call_output",
            "call_id": "c1",
            "output": {"type": "input_image", "image_url": "data:image/png;base64,AA"},
        },
        "tool",
        (ToolResult("", "c1"), File("image/png")),
    ),
    "Responses: thoughts": (
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}]},
        "assistant",
        (Reasoning("hm"),),
    ),
    "Anthropic: blocks": (
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}},
            ],
        },
        "assistant",
        (Reasoning("hm"), Text("Let me see."), ToolCall("ls", '{"path":"."}', "t1")),
    ),
    "Anthropic: results": (
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt", "is_error": True},
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "b.txt"}]},
                {"type": "tool_result", "tool_use_id": "t3", "content": {"files": ["c.txt"]}},
            ],
        },
        "user",
        (
            ToolResult("a.txt", "t1", is_error=True),
            ToolResult("b.txt", "t2"),
            ToolResult('{"files":["c.txt"]}', "t3", is_json=True),
        ),
    ),
    "AI SDK: model message": (
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "hm"},
                {"type": "text", "text": "Let me see."},
                {"type": "tool-call", "toolCallId": "t1", "toolName": "ls", "input": {"path": "."}},
            ],
        },
        "assistant",
        (Reasoning("hm"), Text("Let me see."), ToolCall("ls", '{"path":"."}', "t1")),
    ),
    "AI SDK: results": (
        {
            "role": "tool",
            "content": [
                {"type": "tool-result", "toolCallId": "t1", "toolName": "ls", "output": {"type": "text", "value": "a.txt"}},
                {"type": "tool-result", "toolCallId": "t2", "toolName": "ls", "output": {"type": "json", "value": ["b"]}},
                {"type": "tool-result", "toolCallId": "t3", "toolName": "ls", "output": {"type": "error-text", "value": "no"}},
                {"type": "tool-result", "toolCallId": "t4", "toolName": "ls", "output": {"type": "error-json", "value": {"e": 1}}},
                {
                    "type": "tool-result",
                    "toolCallId": "t5",
                    "toolName": "ls",
                    "output": {"type": "content", "value": [{"type": "text", "text": "c"}]},
                },
                {
                    "type": "tool-result",
                    "toolCallId": "t6",
                    "toolName": "ls",
                    "output": {"type": "execution-denied", "reason": "not now"},
                },
                {"type": "tool-result", "toolCallId": "t7", "toolName": "ls", "result": "old", "isError": True},
                {"type": "tool-result", "toolCallId": "t8", "toolName": "ls", "result": {"old": True}},
            ],
        },
        "tool",
        (
            ToolResult("a.txt", "t1"),
            ToolResult('["b"]', "t2", is_json=True),
            ToolResult("no", "t3", is_error=True),
            ToolResult('{"e":1}', "t4", is_json=True, is_error=True),
            ToolResult("c", "t5"),
            ToolResult("not now", "t6", is_error=True),
            ToolResult("old", "t7", is_error=True),
            ToolResult('{"old":true}', "t8", is_json=True),
        ),
    ),
    "AI SDK: UI message": (
        {
            "id": "u1",
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm"},
                {"type": "tool-ls", "toolCallId": "t1", "state": "output-available", "input": {"path": "."}, "output": "a.txt"},
                {"type": "tool-ls", "toolCallId": "t2", "state": "input-available", "input": {"path": "/"}},
                {
                    "type": "dynamic-tool",
                    "toolName": "cat",
                    "toolCallId": "t3",
                    "state": "output-error",
                    "input": {},
                    "errorText": "no",
                },
                {
                    "type": "dynamic-tool",
                    "toolName": "cat",
                    "toolCallId": "t4",
                    "state": "output-available",
                    "input": {},
                    "output": [],
                },
                {"type": "text", "text": "There it is."},
                {"type": "file", "mediaType": "image/png", "filename": "shot.png", "url": "data:image/png;base64,AAAA"},
            ],
        },
        "assistant",
        (
            Reasoning("hm"),
            ToolCall("ls", '{"path":"."}', "t1"),
            ToolResult("a.txt", "t1"),
            ToolCall("ls", '{"path":"/"}', "t2"),
            ToolCall("cat", "{}", "t3"),
            ToolResult("no", "t3", is_error=True),
            ToolCall("cat", "{}", "t4"),
            ToolResult("[]", "t4", is_json=True),
            Text("There it is."),
            File("image/png", "shot.png"),
        ),
    ),
    "AI SDK: calls beside the content": (
        {
            "role": "assistant",
            "content": "so",
            "toolInvocations": [{"state": "result", "toolCallId": "t1", "toolName": "x", "args": {"a": 1}, "result": {"b": 2}}],
        },
        "assistant",
        (Text("so"), ToolCall("x", '{"a":1}', "t1"), ToolResult('{"b":2}', "t1", is_json=True)),
    ),
    "one block": ({"role": "user", "content": {"type": "text", "text": "hi"}}, "user", (Text("hi"),)),
    "what JSON does not know": (
        {
            "role": "assistant",
            "content": ({"type": "tool_use", "input": MappingProxyType({"at": (date(2026, 1, 2), UUID(int=7))})},),
        },
        "assistant",
        (ToolCall("", '{"at":["2026-01-02","00000000-0000-0000-0000-000000000007"]}'),),
    ),
    "AI SDK: an older UI message": (
        {
            "role": "assistant",
            "content": "There it is.",
            "parts": [
                {
                    "type": "tool-invocation",
                    "toolInvocation": {"state": "result", "toolCallId": "t1", "toolName": "ls", "args": {"a": 1}, "result": "x"},
                },
                {"type": "text", "text": "There it is."},
            ],
        },
        "assistant",
        (ToolCall("ls", '{"a":1}', "t1"), ToolResult("x", "t1"), Text("There it is.")),
    ),
    "parts of ours": (
        {"role": "user", "content": ["see", Text("this"), ToolResult("x", "t1")]},
        "user",
        (Text("see"), Text("this"), ToolResult("x", "t1")),
    ),
    "parts of ours in a tool's message": ({"role": "tool", "content": [ToolResult("x", "t1")]}, "tool", (ToolResult("x", "t1"),)),
    "arguments that are no JSON": (
        {"role": "assistant", "content": [{"type": "tool_use", "name": "patch", "input": "*** Begin", "id": "1"}]},
        "assistant",
        (ToolCall("patch", "*** Begin", "1"),),
    ),
    "by hand": (
        {
            "role": "assistant",
            "content": [
                {"type": "tool_call", "name": "ls", "arguments": {"a": 1}, "call_id": "1"},
                {"type": "file", "media_type": "", "name": "x"},
            ],
        },
        "assistant",
        (ToolCall("ls", '{"a":1}', "1"), File("", "x")),
    ),
}


@pytest.mark.parametrize(("given", "role", "parts"), SHAPES.values(), ids=SHAPES)
def test_what_becomes_of_a_message(given: dict[str, Any], role: str, parts: tuple[Part, ...]) -> None:
    assert message_of(given) == ChatMessage(role, parts, given.get("id", ""))


def test_objects_of_the_sdks_are_taken_as_they_are() -> None:
    answer = {
        "role": "assistant",
        "content": "x",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert message_of(ChatCompletionMessage.model_validate(answer)) == ChatMessage(
        "assistant", (Text("x"), ToolCall("f", "{}", "1"))
    )
    reply = AnthropicMessage.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}],
        }
    )
    parts = (Text("x"), ToolCall("f", '{"a":1}', "1"))
    assert message_of(reply) == ChatMessage("assistant", parts, "msg_1")
    # As it is appended to the messages of the next request.
    assert message_of({"role": "assistant", "content": reply.content}) == ChatMessage("assistant", parts)


class Said(NamedTuple):
    """A turn as somebody else may keep it."""

    role: str
    parts: list[Part]


def test_turns_are_messages() -> None:
    assert message_of(Turn("user", (Text("x"),), "m", 7)) == ChatMessage("user", (Text("x"),), "m", 7)
    assert message_of(Said("user", [Text("x")])) == ChatMessage("user", (Text("x"),))
    assert message_of(StoredTurn("m", 3, "user", (Text("x"),), 7, 0, 1)) == ChatMessage("user", (Text("x"),), "m", 7)


def test_the_text_of_a_message() -> None:
    parts = (Reasoning("a"), Text("b"), ToolCall("c"), ToolResult("d"), ToolResult("{}", is_json=True), File("e/f"), Text("g"))
    assert ChatMessage("user", parts).text == "b\nd\ng"
    assert ChatMessage("user", ()).text == ""


# Back

strings = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=6,
)
any_parts = st.lists(
    st.one_of(
        st.builds(Text, strings),
        st.builds(Reasoning, strings),
        st.builds(ToolCall, strings, strings, strings),
        st.builds(ToolResult, strings, strings, st.booleans(), st.booleans()),
        st.builds(File, strings, strings),
    ),
    max_size=5,
).map(tuple)
roles = st.sampled_from(["user", "assistant", "tool", "system", "narrator"])
moments = st.none() | st.integers(0, 4_000_000_000_000_000)


@given(message=st.builds(ChatMessage, roles, any_parts, strings, moments))
def test_a_message_is_read_back_from_its_map(message: ChatMessage) -> None:
    made = message.to_dict()
    assert message_of(json.loads(json.dumps(made))) == message


def test_the_map_of_a_message() -> None:
    assert ChatMessage("user", (Text("x"),), "m", 1_772_600_767_000_089).to_dict() == {
        "id": "m",
        "role": "user",
        "content": "x",
        "created_at": "2026-03-04T05:06:07.000089+00:00",
    }
    assert ChatMessage("user", ()).to_dict() == {"role": "user", "content": ""}
    assert ChatMessage("tool", (ToolResult("[1]", "c", is_json=True),)).to_dict() == {
        "role": "tool",
        "content": [{"type": "tool_result", "call_id": "c", "json": "[1]"}],
    }


# Rendering


def numbered() -> Any:
    count = itertools.count(1)
    return lambda: f"made-{next(count)}"


def test_a_rendered_message_has_the_stored_id(index: TranscriptIndex, scope: Scope) -> None:
    messages = [
        {"role": "user", "content": "where is the zebra?", "id": "mine"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"for": "zebra"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a zebra by the mill"}]},
        {"role": "assistant", "content": "By the mill.", "id": "mine"},
    ]
    done = index.write_chat(ChatRecord("c", scope, messages))
    rendered = ui_messages(messages, numbered(), message_ids=done.message_ids)
    assert [one["id"] for one in rendered] == ["mine", "c:1", "c:2", "c:3"]
    assert rendered == ui_messages(index.read_chat(scope, "c").messages, numbered())  # type: ignore[union-attr]
    for hit in index.search(scope, "zebra mill"):
        named = rendered[hit.index]
        assert named["id"] == hit.message_id
        cited = index.resolve_source(scope, {"chat_id": hit.chat_id, "message_id": named["id"]})
        assert cited is not None
        assert cited.message == hit.message
    assert {hit.index for hit in index.search(scope, "zebra mill")} == {0, 2, 3}


def test_what_is_rendered() -> None:
    messages = [
        ChatMessage(
            "assistant",
            (
                Text("x"),
                Reasoning("y"),
                ToolCall("ls", '{"path": "."}', "1"),
                ToolCall("patch", "*** Begin", "2"),
                ToolCall("n", "7", "3"),
                File("image/png", "a.png"),
            ),
            "m",
        ),
        Turn("tool", (ToolResult("a.txt", "1"), ToolResult("no", "2", is_error=True), ToolResult('{"a": 1}', "9", is_json=True))),
        {"role": "user", "content": "thanks"},
    ]
    tool = {"type": "dynamic-tool"}
    assert ui_messages(messages, numbered()) == [
        {
            "id": "m",
            "role": "assistant",
            "parts": [
                {"type": "text", "text": "x"},
                {"type": "reasoning", "text": "y"},
                {**tool, "toolName": "ls", "toolCallId": "1", "state": "input-available", "input": {"path": "."}},
                {**tool, "toolName": "patch", "toolCallId": "2", "state": "input-available", "input": "*** Begin"},
                {**tool, "toolName": "n", "toolCallId": "3", "state": "input-available", "input": "7"},
                {"type": "file", "mediaType": "image/png", "filename": "a.png"},
            ],
        },
        {
            "id": "made-1",
            "role": "tool",
            "parts": [
                {**tool, "toolName": "ls", "toolCallId": "1", "state": "output-available", "output": "a.txt"},
                {**tool, "toolName": "patch", "toolCallId": "2", "state": "output-error", "errorText": "no"},
                {**tool, "toolName": "", "toolCallId": "9", "state": "output-available", "output": {"a": 1}},
            ],
        },
        {"id": "made-2", "role": "user", "parts": [{"type": "text", "text": "thanks"}]},
    ]


def test_ids_are_made_only_where_there_is_none() -> None:
    messages = [{"role": "user", "content": "x", "id": "mine"}, {"role": "user", "content": "y"}, {"role": "user", "content": "z"}]
    assert [one["id"] for one in ui_messages(messages, numbered())] == ["mine", "made-1", "made-2"]
    assert [one["id"] for one in ui_messages(messages, numbered(), message_ids=["a"])] == ["a", "made-1", "made-2"]
    assert [one["id"] for one in ui_messages(messages, numbered(), message_ids=["", "b"])] == ["mine", "b", "made-1"]
    with pytest.raises(InvalidArgument, match="message_ids: 4 ids for 3 messages"):
        ui_messages(messages, numbered(), message_ids=list("abcd"))
    with pytest.raises(InvalidArgument, match=r"messages\[0\]: must be a ChatMessage"):
        ui_messages(["x"], numbered())


# What is a message of ours, a JSON value with something in it, is the same after it was rendered and read.
rendered_parts = st.lists(
    st.one_of(
        st.builds(Text, strings),
        st.builds(Reasoning, strings),
        st.builds(
            ToolCall,
            strings,
            st.dictionaries(strings, values, max_size=3).map(
                lambda one: json.dumps(one, separators=(",", ":"), ensure_ascii=False)
            ),
            strings,
        ),
        st.builds(ToolResult, strings, strings),
        st.builds(ToolResult, strings, strings, is_error=st.just(True)),
        st.builds(
            ToolResult,
            st.dictionaries(strings, values, max_size=3).map(
                lambda one: json.dumps(one, separators=(",", ":"), ensure_ascii=False)
            ),
            strings,
            is_json=st.just(True),
        ),
        st.builds(File, st.just("image/png"), st.sampled_from(["", "a.png"])),
    ),
    max_size=5,
).map(tuple)


@given(message=st.builds(ChatMessage, roles, rendered_parts, st.just("m")))
def test_a_rendered_message_is_read_as_the_same(message: ChatMessage) -> None:
    (rendered,) = ui_messages([message], numbered())
    assert message_of(json.loads(json.dumps(rendered))) == message
