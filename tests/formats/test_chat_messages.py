"""Chat messages: lines and documents, ids made of names and places, parts of every shape."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from aforesaid.model import Agent, Conversation, File, Part, Reasoning, Source, Text, ToolCall, ToolResult, Turn
from tests.formats.writing import chunks_of, report_of, text_of, turns_of

CHANGED = 1_500_000_000_123_456
USER = {"role": "user", "content": "hello"}
REPLY = {"role": "assistant", "content": "hi"}


def chat(folder: Path, text: str, name: str = "chat.jsonl") -> Path:
    path = folder / "runs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(0, CHANGED * 1000))
    return path


def turn(role: str, text: str, turn_id: str) -> Turn:
    return Turn(role, (Text(text),), turn_id, CHANGED)


def conversations(path: Path) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Each conversation's id and title with its turns' ids and roles."""
    return [
        (
            chunk.conversation.conversation_id,
            chunk.conversation.title,
            [(one.turn_id, one.role) for one in chunk.conversation.turns],
        )
        for chunk in chunks_of(path)
    ]


def test_a_line_is_a_conversation_of_the_files_agent(tmp_path: Path) -> None:
    path = chat(tmp_path, text_of([{"messages": [USER, REPLY]}, {"messages": [USER], "title": "Second"}]))
    first, second = chunks_of(path)
    assert first.agent == second.agent == Agent("chat", "chat")
    source = Source("chat-messages", str(path))
    turns = turn("user", "hello", "chat.jsonl:0:0"), turn("assistant", "hi", "chat.jsonl:0:1")
    assert first.conversation == Conversation("runs/chat.jsonl:0", "chat", "", turns, source)
    assert second.conversation == Conversation(
        "runs/chat.jsonl:1", "chat", "Second", (turn("user", "hello", "chat.jsonl:1:0"),), source
    )
    assert dict(report_of(path).notes) == {"turn without a time: the file's last change is taken": 3}


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        pytest.param(
            text_of([USER, REPLY]),
            "chat.jsonl",
            [("runs/chat.jsonl", "", [("chat.jsonl:0", "user"), ("chat.jsonl:1", "assistant")])],
            id="a message a line",
        ),
        pytest.param(
            text_of(
                [{"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": [USER]}}]
            ),
            "batch.jsonl",
            [("runs/batch.jsonl:0", "r1", [("batch.jsonl:0:0", "user")])],
            id="a batch",
        ),
        pytest.param(
            text_of([{"messages": [USER]}]).replace("\n", ""),
            "chat.json",
            [("runs/chat.json:0", "", [("chat.json:0:0", "user")])],
            id="one object on one line",
        ),
        pytest.param(
            json.dumps({"title": "T", "messages": [USER, REPLY]}, indent=2),
            "chat.json",
            [("runs/chat.json:0", "T", [("chat.json:0:0", "user"), ("chat.json:0:1", "assistant")])],
            id="one object on many lines",
        ),
        pytest.param(
            json.dumps([USER, REPLY], indent=2),
            "chat.json",
            [("runs/chat.json", "", [("chat.json:0", "user"), ("chat.json:1", "assistant")])],
            id="a list of messages on many lines",
        ),
        pytest.param(
            json.dumps([USER]),
            "chat.json",
            [("runs/chat.json", "", [("chat.json:0", "user")])],
            id="a list of messages on one line",
        ),
        pytest.param(
            "[\n" + json.dumps(USER) + ",\n" + json.dumps(REPLY) + "\n]\n",
            "chat.json",
            [("runs/chat.json", "", [("chat.json:0", "user"), ("chat.json:1", "assistant")])],
            id="a list whose last line could stand alone",
        ),
        pytest.param(
            json.dumps([{"messages": [USER]}, {"messages": [REPLY]}]),
            "chat.json",
            [("runs/chat.json:0", "", [("chat.json:0:0", "user")]), ("runs/chat.json:1", "", [("chat.json:1:0", "assistant")])],
            id="a list of conversations",
        ),
        pytest.param(
            text_of([json.dumps([USER]), json.dumps([REPLY])]),
            "chat.jsonl",
            [("runs/chat.jsonl:0", "", [("chat.jsonl:0:0", "user")]), ("runs/chat.jsonl:1", "", [("chat.jsonl:1:0", "assistant")])],
            id="a list of messages a line",
        ),
        pytest.param(
            "\ufeff" + json.dumps([USER], indent=1).replace("\n", "\r\n"),
            "chat.json",
            [("runs/chat.json", "", [("chat.json:0", "user")])],
            id="a byte order mark and carriage returns",
        ),
    ],
)
def test_shapes(tmp_path: Path, text: str, name: str, expected: list[tuple[str, str, list[tuple[str, str]]]]) -> None:
    path = chat(tmp_path, text, name)
    assert conversations(path) == expected
    report = report_of(path)
    assert (report.lines, report.taken, dict(report.skipped)) == (len(path.read_bytes().splitlines()), report.lines, {})


CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q":  "naïve", "n": 1.50}'}}


@pytest.mark.parametrize(
    ("message", "role", "parts"),
    [
        pytest.param({"role": "system", "content": "Be brief."}, "system", (Text("Be brief."),), id="system"),
        pytest.param({"role": "developer", "content": "Be brief."}, "system", (Text("Be brief."),), id="developer"),
        pytest.param({"role": "critic", "content": "No."}, "critic", (Text("No."),), id="any role"),
        pytest.param(
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            "assistant",
            (ToolCall("search", '{"q":  "naïve", "n": 1.50}', "call_1"),),
            id="a call whose arguments stand as written",
        ),
        pytest.param(
            {
                "role": "assistant",
                "content": "Both.",
                "tool_calls": [CALL, {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls"}}],
            },
            "assistant",
            (Text("Both."), ToolCall("search", '{"q":  "naïve", "n": 1.50}', "call_1"), ToolCall("run", "ls", "c2")),
            id="two calls",
        ),
        pytest.param(
            {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}},
            "assistant",
            (ToolCall("f", "{}"),),
            id="an old call",
        ),
        pytest.param(
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": [1]}}}]},
            "assistant",
            (ToolCall("f", '{"a":[1]}', "c"),),
            id="arguments that are no text",
        ),
        pytest.param(
            {"role": "tool", "tool_call_id": "call_1", "content": "42"}, "tool", (ToolResult("42", "call_1"),), id="a tool's answer"
        ),
        pytest.param(
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            "tool",
            (ToolResult("a\nb", "c"),),
            id="a tool's answer in parts",
        ),
        pytest.param(
            {"role": "tool", "tool_call_id": "c", "content": {"a": 1}},
            "tool",
            (ToolResult('{"a":1}', "c", is_json=True),),
            id="JSON",
        ),
        pytest.param(
            {"role": "function", "name": "f", "content": "42"}, "tool", (ToolResult("42", "f"),), id="a function's answer"
        ),
        pytest.param(
            {"role": "assistant", "content": None, "refusal": "I can't."}, "assistant", (Text("I can't."),), id="a refusal"
        ),
        pytest.param(
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            "assistant",
            (Text("No."),),
            id="a refusal as a part",
        ),
        pytest.param(
            {"role": "assistant", "content": "Yes.", "reasoning": "Hm.", "reasoning_content": "Hm."},
            "assistant",
            (Reasoning("Hm."), Text("Yes.")),
            id="thoughts",
        ),
        pytest.param(
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4AAQ"}},
                ],
            },
            "user",
            (Text("see"), File("image/jpeg")),
            id="an image without its bytes",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a/cat.PNG?size=1"}}]},
            "user",
            (File("image/png", "cat.PNG"),),
            id="an image by its address",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "image_url", "image_url": "https://example.org/x"}]},
            "user",
            (File("image/*", "x"),),
            id="unknown",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklGR", "format": "wav"}}]},
            "user",
            (File("audio/wav"),),
            id="sound",
        ),
        pytest.param(
            {
                "role": "user",
                "content": [{"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}}],
            },
            "user",
            (File("application/pdf", "a.pdf"),),
            id="a file",
        ),
        pytest.param(
            {"role": "assistant", "content": None, "audio": {"id": "a", "data": "x", "transcript": "Spoken."}, "refusal": ""},
            "assistant",
            (Text("Spoken."),),
            id="speech",
        ),
    ],
)
def test_one_message(tmp_path: Path, message: dict[str, Any], role: str, parts: tuple[Part, ...]) -> None:
    (_, found) = turns_of(chat(tmp_path, text_of([{"messages": [USER, message]}])))
    assert (found.role, found.parts) == (role, parts)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, CHANGED),
        ({"timestamp": "2026-03-02T09:00:00Z"}, 1_772_442_000_000_000),
        ({"timestamp": "2026-03-02T10:00:00.5+01:00"}, 1_772_442_000_500_000),
        ({"timestamp": "2026-03-02T09:00:00"}, 1_772_442_000_000_000),
        ({"created_at": 1_772_442_000}, 1_772_442_000_000_000),
        ({"created_at": 1_772_442_000_250}, 1_772_442_000_250_000),
        ({"create_time": 1_772_442_000.25}, 1_772_442_000_250_000),
        ({"timestamp": "soon", "created_at": -5, "create_time": True}, CHANGED),
        ({"timestamp": 1e300}, CHANGED),
    ],
)
def test_times(tmp_path: Path, fields: dict[str, object], expected: int) -> None:
    (in_message,) = turns_of(chat(tmp_path, text_of([{**USER, **fields}])))
    (in_line,) = turns_of(chat(tmp_path, text_of([{"messages": [USER], **fields}]), "lines.jsonl"))
    assert in_message.created_at == in_line.created_at == expected


def test_trouble_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = chat(
        tmp_path,
        text_of(
            [
                '{"messages": [',
                "",
                '"text"',
                "[1, 2]",
                USER,
                {"type": "tool_result"},
                {"a": 1},
                {"role": "user", "content": " "},
                REPLY,
            ]
        )
        + '{"role": "us',
    )
    assert conversations(path) == [("runs/chat.jsonl", "", [("chat.jsonl:4", "user"), ("chat.jsonl:8", "assistant")])]
    report = report_of(path)
    assert (report.lines, report.taken) == (10, 2)
    assert dict(report.skipped) == {
        "malformed JSON": 1,
        "blank line": 1,
        "not a JSON object": 1,
        "not a conversation": 1,
        "not a message: tool_result": 1,
        "not a message": 1,
        "message without text": 1,
        "incomplete last line": 1,
    }


def test_messages_without_text_are_noted_and_leave_their_number_free(tmp_path: Path) -> None:
    path = chat(tmp_path, text_of([{"messages": [USER, {"role": "assistant", "content": None}, 7, REPLY, USER]}]))
    assert conversations(path)[0][2] == [("chat.jsonl:0:0", "user"), ("chat.jsonl:0:3", "assistant"), ("chat.jsonl:0:4", "user")]
    notes = report_of(path).notes
    assert (notes["message without text"], notes["not a JSON object"]) == (1, 1)


def test_a_call_without_a_name_is_noted(tmp_path: Path) -> None:
    path = chat(tmp_path, text_of([USER, {"role": "assistant", "content": "x", "tool_calls": [{"id": "c"}]}]))
    assert report_of(path).notes["tool call without a name"] == 1


def test_arguments_that_are_nested_too_deeply_are_told(tmp_path: Path) -> None:
    nested = '{"a":' * 800 + "1" + "}" * 800
    call = f'{{"role": "assistant", "content": "", "tool_calls": [{{"function": {{"name": "f", "arguments": {nested}}}}}]}}'
    path = chat(tmp_path, text_of([USER, call, REPLY]))
    assert [one.turn_id for one in turns_of(path)] == ["chat.jsonl:0", "chat.jsonl:2"]
    report = report_of(path)
    assert (report.taken, dict(report.skipped)) == (2, {"message without text": 1})
    assert report.notes["message nested too deeply"] == 1


def test_a_conversation_in_which_nothing_is_said_is_skipped(tmp_path: Path) -> None:
    path = chat(tmp_path, text_of([{"messages": [USER]}, {"messages": [{"role": "user", "content": ""}]}, {"messages": []}]))
    assert dict(report_of(path).skipped) == {"conversation without text": 1, "not a message": 1}


def test_a_long_conversation_comes_in_chunks(tmp_path: Path) -> None:
    path = chat(
        tmp_path,
        text_of([{"messages": [{"role": "user", "content": "x" * 40}] * 10}, *[{"role": "user", "content": "y" * 40}] * 5]),
    )
    chunks = chunks_of(path, chunk_bytes=100)
    assert [(chunk.conversation.conversation_id, len(chunk.conversation.turns)) for chunk in chunks] == [
        *[("runs/chat.jsonl:0", 2)] * 5,
        ("runs/chat.jsonl", 2),
        ("runs/chat.jsonl", 1),
        ("runs/chat.jsonl", 2),
    ]
    ids = [one.turn_id for chunk in chunks for one in chunk.conversation.turns]
    assert len(set(ids)) == 15


def test_lone_surrogates_and_nul_bytes_in_text_are_kept_harmless(tmp_path: Path) -> None:
    path = chat(tmp_path, '{"role": "user", "content": "a\\ud83cb\\u0000c"}\n')
    assert turns_of(path)[0].parts == (Text("a\ufffdb\0c"),)
