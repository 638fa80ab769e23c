"""Files that real programs wrote: nothing is lost, nothing comes twice, nothing raises.

What should come out is found here by plain means, line by line with the JSON module, without the readers' notion of a turn.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aforesaid.formats import Chunk, FoundFile, Replays, Report, find_files, read_file
from aforesaid.model import Reasoning, Text, ToolCall, ToolResult


@pytest.fixture(scope="module")
def transcripts(shared: Path) -> Path:
    return shared / "data" / "transcripts"


@pytest.fixture(scope="module")
def found(transcripts: Path) -> list[FoundFile]:
    return list(find_files([transcripts]))


@pytest.fixture(scope="module")
def readings(found: list[FoundFile]) -> list[tuple[FoundFile, list[Chunk], Report]]:
    replays = Replays()
    result = []
    for file in found:
        if not file.why:
            reading = read_file(file, replays=replays)
            result.append((file, list(reading), reading.report))
    return result


def records(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def test_every_file_is_listed_once_and_known_or_told(transcripts: Path, found: list[FoundFile]) -> None:
    assert Counter(file.path for file in found) == Counter(path.resolve() for path in transcripts.rglob("*") if path.is_file())
    assert all(bool(file.format) != bool(file.why) for file in found)


def test_the_sessions_of_claude_code_are_known(transcripts: Path, found: list[FoundFile]) -> None:
    named = {file.path.relative_to(transcripts.resolve()).as_posix() for file in found if file.format == "claude-code"}
    wanted = {path.relative_to(transcripts).as_posix() for path in transcripts.rglob("*.jsonl") if "claude" in path.as_posix()}
    others = {name for name in wanted if "/fixtures/codex/" in name or name.startswith("ccusage/")}
    assert wanted - others <= named
    # Files that only count tokens hold no conversation; they are the only ones of Claude Code that may stay unknown.
    assert all("content" not in record.get("message", {}) for name in others for record in records(transcripts / name))


def test_sums_add_up_to_every_line(readings: list[tuple[FoundFile, list[Chunk], Report]]) -> None:
    assert len(readings) >= 31
    for file, chunks, report in readings:
        data = file.path.read_bytes()
        assert report.lines == data.count(b"\n") + (not data.endswith(b"\n")), file.path
        assert report.lines == report.taken + sum(report.skipped.values()), file.path
        assert report.turns == sum(len(chunk.conversation.turns) for chunk in chunks), file.path


def test_turn_ids_are_unique_and_times_are_there(readings: list[tuple[FoundFile, list[Chunk], Report]]) -> None:
    for file, chunks, _ in readings:
        ids = Counter(
            (chunk.agent.agent_id, chunk.conversation.conversation_id, turn.turn_id)
            for chunk in chunks
            for turn in chunk.conversation.turns
        )
        assert set(ids.values()) <= {1}, file.path
        assert all(turn.created_at and turn.parts and turn.role for chunk in chunks for turn in chunk.conversation.turns), file.path


def blocks_of(record: dict[str, Any]) -> list[Any]:
    message = record.get("message")
    if record.get("type") not in {"user", "assistant"} or not isinstance(message, dict):
        return []
    content = message.get("content")
    return content if isinstance(content, list) else [content]


def plain(block: Any) -> Iterator[tuple[str, str]]:
    """What a block says, in pairs of its kind and its text, as one would read it by hand."""
    if isinstance(block, str):
        yield "text", block
    elif isinstance(block, dict):
        match block.get("type"):
            case "text":
                yield "text", block["text"]
            case "thinking":
                yield "reasoning", block["thinking"]
            case "tool_use":
                yield "call", json.dumps(block["input"], ensure_ascii=False, separators=(",", ":"))
            case "tool_result" if isinstance(block.get("content"), str):
                yield "result", block["content"]
            case "tool_result" if isinstance(block.get("content"), list):
                yield "result", "\n".join(one["text"] for one in block["content"] if one.get("type") == "text")


def said(chunks: list[Chunk]) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for chunk in chunks:
        for turn in chunk.conversation.turns:
            for part in turn.parts:
                match part:
                    case Text(text):
                        counted["text", text] += 1
                    case Reasoning(text):
                        counted["reasoning", text] += 1
                    case ToolCall():
                        counted["call", part.arguments] += 1
                    case ToolResult():
                        counted["result", part.content] += 1
                    case _:
                        pass
    return counted


def test_everything_said_in_a_session_comes_out_as_often_as_it_was_said(transcripts: Path, found: list[FoundFile]) -> None:
    looked_at = 0
    for file in found:
        if file.format != "claude-code":
            continue
        expected: Counter[tuple[str, str]] = Counter()
        seen = set()
        for record in records(file.path):
            mark = json.dumps([record.get("uuid"), record.get("message")], sort_keys=True)
            if record.get("uuid") and mark in seen:
                continue
            seen.add(mark)
            expected.update(
                pair for block in blocks_of(record) for pair in plain(block) if pair[0] in {"call", "result"} or pair[1].strip()
            )
        got = said(list(read_file(file)))
        # Slash commands with arguments are read as they were typed, so their wrapper stands elsewhere.
        commands = {pair for pair in expected if pair[0] == "text" and "<command-name>" in pair[1]}
        for pair in expected.keys() - commands:
            assert got[pair] >= 1, (file.path, pair)
            assert got[pair] <= expected[pair], (file.path, pair)
            looked_at += 1
    assert looked_at > 600


def test_a_session_with_side_chains(transcripts: Path) -> None:
    path = (
        transcripts / "claude-code-viewer/mock-global-claude-dir/projects/sample-project/5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl"
    )
    (file,) = find_files([path])
    chunks = list(read_file(file))
    by_agent = {chunk.agent.agent_id: chunk for chunk in chunks}
    side = ["sidechain-6340ddef-f656-4b72-a065-82390f637678", "sidechain-83e2917c-8940-4df6-a5a5-f2514f0d08c5"]
    assert sorted(by_agent) == ["sample-project", *(f"sample-project/{name}" for name in side)]
    assert {chunk.agent.name for chunk in chunks if not chunk.agent.parent_agent_id} == {"Demo"}
    assert {chunk.agent.parent_agent_id for chunk in chunks if "/" in chunk.agent.agent_id} == {"sample-project"}
    main = by_agent["sample-project"].conversation
    assert (main.conversation_id, main.source.project) == ("5c0375b4-57a5-4f26-b12d-d022ee4e51b7", "/path/to/Demo")
    assert [turn.role for turn in main.turns[:6]] == ["system", "user", "system", "assistant", "tool", "assistant"]
    assert main.turns[1].parts == (Text("/orchestrator @CLAUDE.md を最新の状態にアップデートしてください"),)
    # Three lines of one answer with a call each.
    assert [part.name for part in main.turns[5].parts if isinstance(part, ToolCall)] == ["Glob", "Glob", "TodoWrite"]
    prompt = by_agent[f"sample-project/{side[0]}"].conversation.turns[0]
    assert (prompt.role, prompt.turn_id) == ("user", "6340ddef-f656-4b72-a065-82390f637678")
    assert isinstance(prompt.parts[0], Text)
    assert prompt.parts[0].text.startswith("Examine the package.json file(s)")


def test_a_session_that_was_resumed_in_its_own_file(transcripts: Path) -> None:
    path = transcripts / "vibecodingtracker/tests/fixtures/sessions/claude_code.jsonl"
    (file,) = find_files([path])
    reading = read_file(file)
    turns = [turn for chunk in reading for turn in chunk.conversation.turns]
    assert dict(reading.report.skipped) == {"repeated line": 1, "file-history-delta: no conversation text": 1}
    answers = Counter(record["message"]["id"] for record in records(path) if record["type"] == "assistant")
    assert sum(turn.role == "assistant" for turn in turns) == len(answers)
    assert [type(part) for part in turns[1].parts] == [Reasoning, Text, ToolCall]
    assert "用戶要求多個任務" in turns[1].parts[0].text if isinstance(turns[1].parts[0], Reasoning) else False
    assert {turn.role for turn in turns} == {"user", "assistant", "tool", "system"}


def test_a_session_with_a_sub_agent_in_its_folder(transcripts: Path) -> None:
    folder = transcripts / "agent-sessions/Resources/Fixtures/stage0/agents/claude/subagent"
    chunks = [chunk for file in find_files([folder]) if not file.why for chunk in read_file(file)]
    assert [
        (chunk.agent.agent_id, chunk.agent.name, chunk.agent.parent_agent_id, len(chunk.conversation.turns)) for chunk in chunks
    ] == [
        ("subagent", "tmp", "", 2),
        ("subagent/agent-a0ad4f44468bdf20d", "general-purpose", "subagent", 3),
    ]


def test_a_session_full_of_trouble(transcripts: Path) -> None:
    (file,) = find_files([transcripts / "claude-code-log/test/test_data/edge_cases.jsonl"])
    reading = read_file(file)
    (chunk,) = list(reading)
    assert reading.report.skipped["not a JSON object"] == 3
    assert reading.report.skipped["user: no conversation text"] == 2
    texts = [part.text for turn in chunk.conversation.turns for part in turn.parts if isinstance(part, Text)]
    assert "wow error" in texts
    assert any("café, naïve, résumé, 中文, العربية, русский" in text for text in texts)
    assert chunk.conversation.title.startswith("Tested various edge cases")


def test_a_document_of_chat_messages(transcripts: Path) -> None:
    (file,) = find_files([transcripts / "agent-sessions/Resources/Fixtures/stage0/agents/hermes/large.json"])
    reading = read_file(file)
    (chunk,) = list(reading)
    assert [turn.role for turn in chunk.conversation.turns] == ["user", "assistant", "tool", "assistant"]
    assert chunk.conversation.turns[1].parts == (
        Reasoning("Need a shell lookup."),
        Text("I will inspect the directory."),
        ToolCall("shell", '{"command":"pwd"}', "call_001"),
    )
    assert reading.report.notes["message without text"] == 1


def test_the_same_files_read_again_give_the_same(
    found: list[FoundFile], readings: list[tuple[FoundFile, list[Chunk], Report]]
) -> None:
    replays = Replays()
    for file, chunks, report in readings:
        reading = read_file(file, replays=replays, block_bytes=777)
        assert list(reading) == chunks
        assert reading.report == report
