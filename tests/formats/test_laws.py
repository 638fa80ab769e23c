"""What holds for every file, whatever is in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aforesaid.formats import Chunk, FoundFile, Report, read_file
from aforesaid.model import Part, Reasoning, Text, ToolCall, ToolResult
from tests.formats.writing import line

texts = st.text(st.characters(codec="utf-8") | st.sampled_from("\0\u2028\r"), max_size=12) | st.sampled_from(
    ["hello", "<system-reminder>x</system-reminder>y"]
)
ids = st.sampled_from(["u1", "u2", "u3", "u4", "", "#2"])
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image", "novel"])},
    optional={
        "text": texts,
        "thinking": texts,
        "id": ids,
        "tool_use_id": ids,
        "content": texts,
        "input": st.dictionaries(texts, texts, max_size=2),
    },
)
contents = texts | st.lists(blocks | texts, max_size=3) | st.none() | st.integers()


@st.composite
def session_lines(draw: st.DrawFn) -> dict[str, Any]:
    record = line(
        draw(st.sampled_from(["user", "assistant", "system", "summary", "attachment", "mode"])),
        draw(contents),
        draw(ids),
        draw(st.integers(0, 59)),
        message_id=draw(st.sampled_from(["msg_1", "msg_2", ""])),
        isSidechain=draw(st.booleans()),
        parentUuid=draw(ids),
        isMeta=draw(st.booleans()),
    )
    return record | {"content": draw(contents), "attachment": {"type": "queued_command", "prompt": draw(contents)}}


messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "developer", "", " "]), "content": contents},
    optional={
        "tool_calls": st.lists(
            st.fixed_dictionaries({"id": ids, "function": st.fixed_dictionaries({"name": texts, "arguments": texts})}), max_size=2
        )
    },
)
chat_lines = (
    messages
    | st.fixed_dictionaries({"messages": st.lists(messages, max_size=4)})
    | st.fixed_dictionaries({"body": st.fixed_dictionaries({"messages": st.lists(messages, max_size=2)})})
)

# As it is written, cut off, as something else, with bytes that are no text.
broken = st.sampled_from(
    [
        b"",
        b" ",
        b"\0\0\0",
        b"{",
        b"[]",
        b"42",
        b"null",
        b'"x"',
        b'{"type": "user", "message": 7}',
        b'{"a": "\\ud800"}',
        b"\xff\xfe",
        b"[[[",
    ]
)


def encoded(record: object, how: int) -> bytes:
    data = json.dumps(record, ensure_ascii=how % 2 == 0).encode("utf-8", "surrogatepass")
    return {3: data[: len(data) // 2], 4: b"\0\0" + data, 5: data + b"\r"}.get(how, data)


@st.composite
def files(draw: st.DrawFn, lines: st.SearchStrategy[Any]) -> bytes:
    pieces = draw(st.lists(broken | st.builds(encoded, lines, st.integers(0, 7)), max_size=8))
    pieces += draw(st.lists(st.sampled_from(pieces), max_size=3)) if pieces else []
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + b"\n".join(pieces) + draw(st.sampled_from([b"", b"\n"]))


def read(
    data: bytes, kind: str, chunk_bytes: int = 1 << 20, block_bytes: int = 1 << 20, document: bool = False
) -> tuple[list[Chunk], Report, int]:
    """All chunks of some bytes, the report, and the bytes told on the way. Its place and its time are the same every time."""
    told: list[int] = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "project" / "file.jsonl"
        path.parent.mkdir()
        path.write_bytes(data)
        reading = read_file(
            FoundFile(path, kind, len(data), document), on_bytes=told.append, chunk_bytes=chunk_bytes, block_bytes=block_bytes
        )
        chunks = list(reading)
        again = list(reading)
        assert chunks == again
        return chunks, reading.report, sum(told) // 2


def flat(chunks: Iterable[Chunk]) -> list[tuple[str, str, str, str, tuple[Part, ...]]]:
    """Every turn with whose it is; conversations one after the other, which is as far as the order does not hang on the chunks."""
    turns = [
        (chunk.agent.agent_id, chunk.conversation.conversation_id, turn.turn_id, turn.role, turn.parts)
        for chunk in chunks
        for turn in chunk.conversation.turns
    ]
    first = {key: at for at, key in reversed(list(enumerate((agent, conversation) for agent, conversation, *_ in turns)))}
    return sorted(turns, key=lambda turn: (turn[0], turn[1], first[turn[0], turn[1]]))


def strings(parts: Iterable[Part]) -> Iterable[str]:
    for part in parts:
        match part:
            case Text(text) | Reasoning(text):
                yield text
            case ToolCall(name, arguments, call_id):
                yield from (name, arguments, call_id)
            case ToolResult(content, call_id):
                yield from (content, call_id)
            case _:
                yield from (part.media_type, part.name)


def check(data: bytes, kind: str, chunk_bytes: int, block_bytes: int) -> None:
    chunks, report, told = read(data, kind)
    assert report.lines == report.taken + sum(report.skipped.values()) == data.count(b"\n") + (data[-1:] not in {b"", b"\n"})
    assert report.turns == sum(len(chunk.conversation.turns) for chunk in chunks)
    assert told == len(data)
    ids = Counter(
        (chunk.agent.agent_id, chunk.conversation.conversation_id, turn.turn_id)
        for chunk in chunks
        for turn in chunk.conversation.turns
    )
    assert set(ids.values()) <= {1}
    for chunk in chunks:
        assert chunk.conversation.agent_id == chunk.agent.agent_id
        for turn in chunk.conversation.turns:
            assert turn.parts
            assert turn.role.strip()
            assert turn.turn_id
            for text in strings(turn.parts):
                text.encode("utf-8")  # which fails for lone surrogates
    in_blocks, same_report, _ = read(data, kind, block_bytes=block_bytes)
    assert (flat(in_blocks), same_report) == (flat(chunks), report)
    in_chunks, _, _ = read(data, kind, chunk_bytes=chunk_bytes)
    for chunk in in_chunks:
        size = sum(len(text.encode()) for turn in chunk.conversation.turns for text in strings(turn.parts))
        assert size <= chunk_bytes or len(chunk.conversation.turns) == 1
    assert sorted(one[:3] for one in flat(in_chunks)) == sorted(one[:3] for one in flat(chunks))


@given(data=files(session_lines()), chunk_bytes=st.integers(30, 200), block_bytes=st.integers(1, 50))
def test_every_line_of_a_session_has_its_place(data: bytes, chunk_bytes: int, block_bytes: int) -> None:
    check(data, "claude-code", chunk_bytes, block_bytes)


@given(data=files(chat_lines), chunk_bytes=st.integers(30, 200), block_bytes=st.integers(1, 50))
def test_every_line_of_chats_has_its_place(data: bytes, chunk_bytes: int, block_bytes: int) -> None:
    check(data, "chat-messages", chunk_bytes, block_bytes)


@given(value=st.lists(chat_lines, max_size=4) | chat_lines, indent=st.sampled_from([None, 1]), cut=st.booleans())
def test_every_line_of_a_document_has_its_place(value: object, indent: int | None, cut: bool) -> None:
    data = json.dumps(value, indent=indent).encode()
    data = data[: len(data) // 2] if cut else data
    _, report, told = read(data, "chat-messages", document=True)
    assert report.lines == report.taken + sum(report.skipped.values()) == len(data.splitlines())
    assert told == len(data)
