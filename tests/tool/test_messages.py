"""Messages of every common shape: who said it, and the texts that are searched."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anthropic.types
import mcp.types
import openai.types.chat
import openai.types.responses
import pytest

from aforesaid import File, Reasoning, StoredTurn, Text, ToolCall, ToolResult, Turn
from aforesaid._messages import NotReadable, said_in

ARGUMENTS = '{"path": "a.py", "line": 5}'
VALUE = {"path": "a.py", "lines": [1, 2.5, True, None, "é"]}
WRITTEN = '{"path":"a.py","lines":[1,2.5,true,null,"é"]}'
LEAVES = "path: a.py\nlines.0: 1\nlines.1: 2.5\nlines.2: true\nlines.4: é"
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


SHAPES: dict[str, tuple[Any, str, list[str]]] = {
    "plain": ({"role": "user", "content": "hello"}, "user", ["hello"]),
    "nothing said": ({"role": "user", "content": ""}, "user", []),
    "content none": ({"role": "assistant", "content": None}, "assistant", []),
    "blanks": ({"role": "user", "content": " \n "}, "user", [" \n "]),
    "a role of its own": ({"role": "developer", "content": "rules"}, "developer", ["rules"]),
    "no role": ({"content": "hello"}, "unknown", ["hello"]),
    "half of a pair": ({"role": "us\ud83d", "content": "a\ud83db"}, "us\ufffd", ["a\ufffdb"]),
    "a time that is none": ({"role": "user", "content": "hello", "created_at": "yesterday"}, "user", ["hello"]),
    "texts": ({"role": "user", "content": ["one", text("two")]}, "user", ["one", "two"]),
    "one block": ({"role": "user", "content": text("one")}, "user", ["one"]),
    "an image": ({"role": "user", "content": [IMAGE, text("what is it?")]}, "user", ["what is it?"]),
    # OpenAI, chat completions
    "openai call": (
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "read", "arguments": ARGUMENTS}}],
        },
        "assistant",
        ["Let me see.", ARGUMENTS],
    ),
    "openai custom call": (
        {"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": "shell", "input": "ls -l"}}], "content": None},
        "assistant",
        ["ls -l"],
    ),
    "openai old call": ({"role": "assistant", "function_call": {"name": "read", "arguments": ARGUMENTS}}, "assistant", [ARGUMENTS]),
    "openai result": ({"role": "tool", "tool_call_id": "1", "content": '{"ok": true}'}, "tool", ['{"ok": true}']),
    "openai result in blocks": ({"role": "tool", "tool_call_id": "1", "content": [text("a"), text("b")]}, "tool", ["a\nb"]),
    "openai result of data": ({"role": "tool", "tool_call_id": "1", "content": [{"city": "Rome"}]}, "tool", ["0.city: Rome"]),
    "texts of a tool": ({"role": "tool", "content": [text("a"), text("b")]}, "tool", ["a", "b"]),
    "openai refusal": ({"role": "assistant", "content": None, "refusal": "No."}, "assistant", ["No."]),
    "openai audio": ({"role": "assistant", "content": None, "audio": {"id": "x", "transcript": "spoken"}}, "assistant", ["spoken"]),
    "reasoning beside": ({"role": "assistant", "content": "so", "reasoning_content": "hmm"}, "assistant", ["so"]),
    # OpenAI, Responses
    "responses message": (
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "hi"}, {"type": "refusal", "refusal": "no"}],
        },
        "assistant",
        ["hi", "no"],
    ),
    "responses call": ({"type": "function_call", "call_id": "1", "name": "read", "arguments": ARGUMENTS}, "assistant", [ARGUMENTS]),
    "responses result": ({"type": "function_call_output", "call_id": "1", "output": "done"}, "tool", ["done"]),
    "responses custom call": ({"type": "custom_tool_call", "name": "sh", "input": "ls"}, "assistant", ["ls"]),
    "responses shell": ({"type": "local_shell_call", "action": {"command": ["ls"]}}, "assistant", ['{"command":["ls"]}']),
    "responses mcp": ({"type": "mcp_call", "name": "x", "arguments": "{}", "output": "found"}, "assistant", ["{}", "found"]),
    "responses reasoning": ({"type": "reasoning", "summary": [text("hmm")], "content": [text("hmm")]}, "assistant", []),
    # Anthropic
    "anthropic call": (
        {"role": "assistant", "content": [text("Let me see."), {"type": "tool_use", "id": "1", "name": "read", "input": VALUE}]},
        "assistant",
        ["Let me see.", WRITTEN],
    ),
    "anthropic result": (
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "two\nlines", "is_error": True}]},
        "user",
        ["two\nlines"],
    ),
    "anthropic result in blocks": (
        {
            "role": "user",
            "content": [{"type": "tool_result", "content": [text("a"), {"type": "image", "source": {}}, text("b")]}, text("c")],
        },
        "user",
        ["a\nb", "c"],
    ),
    "anthropic result without content": ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}, "user", []),
    "anthropic thinking": (
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hmm", "signature": "x"}, text("so")]},
        "assistant",
        ["so"],
    ),
    # AI SDK
    "model message call": (
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "1", "toolName": "read", "input": VALUE}]},
        "assistant",
        [WRITTEN],
    ),
    "model message result": (
        {"role": "tool", "content": [{"type": "tool-result", "toolName": "read", "output": {"type": "text", "value": "done"}}]},
        "tool",
        ["done"],
    ),
    "model message json": (
        {"role": "tool", "content": [{"type": "tool-result", "toolName": "read", "output": {"type": "json", "value": VALUE}}]},
        "tool",
        [LEAVES],
    ),
    "model message content": (
        {"role": "tool", "content": [{"type": "tool-result", "output": {"type": "content", "value": [text("a"), text("b")]}}]},
        "tool",
        ["a\nb"],
    ),
    "older model message": (
        {"role": "tool", "content": [{"type": "tool-result", "args": {"q": 1}, "result": [{"city": "Rome"}]}]},
        "tool",
        # The call is said in the message that made it.
        ["0.city: Rome"],
    ),
    "ui message": (
        {
            "id": "m1",
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hmm"},
                text("so"),
                {"type": "tool-read", "toolCallId": "1", "state": "output-available", "input": {"a": 1}, "output": "done"},
                {
                    "type": "dynamic-tool",
                    "toolName": "x",
                    "toolCallId": "2",
                    "input": "raw",
                    "state": "output-error",
                    "errorText": "bad",
                },
                {"type": "file", "mediaType": "image/png", "url": "x"},
            ],
        },
        "assistant",
        ["so", '{"a":1}', "done", "raw", "bad"],
    ),
    "ui message with content, too": ({"role": "user", "content": "once", "parts": [text("once")]}, "user", ["once"]),
    "older ui message": (
        {
            "role": "assistant",
            "content": "so",
            "toolInvocations": [{"state": "result", "toolName": "x", "args": {"a": 1}, "result": {"b": 2}}],
        },
        "assistant",
        ["so", '{"a":1}', "b: 2"],
    ),
    "tool invocation": (
        {"role": "assistant", "parts": [{"type": "tool-invocation", "toolInvocation": {"args": {"a": 1}, "result": "r"}}]},
        "assistant",
        ['{"a":1}', "r"],
    ),
    # the nouns of this project
    "turn": (
        Turn(
            "assistant",
            (
                Reasoning("hmm"),
                Text("so"),
                ToolCall("read", ARGUMENTS),
                ToolResult("plain"),
                ToolResult('{"a": {"b": 1.50}}', is_json=True),
                ToolResult("no json", is_json=True),
                File("image/png", "plan.png"),
            ),
        ),
        "assistant",
        ["so", ARGUMENTS, "plain", "a.b: 1.50", "no json"],
    ),
    "stored turn": (StoredTurn("m1", 0, "user", (Text("hello"),), None, 0, 5), "user", ["hello"]),
    # values that are no JSON
    "a time": (
        {"role": "assistant", "content": [{"type": "tool_use", "input": {"at": datetime(2026, 1, 2, tzinfo=UTC)}}]},
        "assistant",
        ['{"at":"2026-01-02 00:00:00+00:00"}'],
    ),
    # values of SDKs
    "openai value": (
        openai.types.chat.ChatCompletionMessage.model_validate(
            {
                "role": "assistant",
                "content": "hi",
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "read", "arguments": ARGUMENTS}}],
            }
        ),
        "assistant",
        ["hi", ARGUMENTS],
    ),
    "responses value": (
        openai.types.responses.ResponseFunctionToolCall(type="function_call", call_id="1", name="read", arguments=ARGUMENTS),
        "assistant",
        [ARGUMENTS],
    ),
    "anthropic values": (
        {
            "role": "assistant",
            "content": [
                anthropic.types.TextBlock(type="text", text="hi"),
                anthropic.types.ToolUseBlock.model_validate({"type": "tool_use", "id": "1", "name": "read", "input": VALUE}),
            ],
        },
        "assistant",
        ["hi", WRITTEN],
    ),
    "mcp prompt": (
        mcp.types.PromptMessage(role="user", content=mcp.types.TextContent(type="text", text="hi")),
        "user",
        ["hi"],
    ),
}


@pytest.mark.parametrize(("message", "role", "texts"), SHAPES.values(), ids=SHAPES)
def test_who_said_what(message: object, role: str, texts: list[str]) -> None:
    found = said_in(message)
    assert (found.role, list(found.texts)) == (role, texts)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"at": datetime(2026, 1, 2, tzinfo=UTC)}
    value["itself"] = value
    return value


def called_with(value: object) -> dict[str, object]:
    return {"role": "assistant", "content": [{"type": "tool_use", "input": value}]}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("hello", "must be a ChatMessage, a Turn or a map, and is of type str"),
        (None, "must be a ChatMessage, a Turn or a map, and is of type NoneType"),
        ({}, "is no message: it has neither a role nor a content"),
        ({"text": "hello"}, "is no message: it has neither a role nor a content"),
        ({"role": "user", "content": 5}, "message.content: must be a text or a list of parts, and is of type int"),
        ({"role": 5, "content": "x"}, "message.role: must be a text, and is of type int"),
        (called_with(nested(100_000)), "is nested too deeply"),
        (called_with(cyclic()), "is nested too deeply"),
        (called_with({1, 2}), "holds what cannot be written as JSON: Object of type set is not JSON serializable"),
    ],
)
def test_what_is_no_message(message: object, reason: str) -> None:
    with pytest.raises(NotReadable) as caught:
        said_in(message)
    assert str(caught.value) == reason
