"""Codex sessions that real programs wrote: all that is said comes out, once, and nothing else is taken for one.

What should come out is found here by plain means, line by line with the JSON module.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from aforesaid.formats import FoundFile, find_files, read_file
from aforesaid.model import Text, ToolCall, ToolResult, Turn
from tests.formats.codex_lines import texts

SESSIONS = "vibecodingtracker/tests/fixtures/sessions/codex.jsonl"
STAGES = "agent-sessions/Resources/Fixtures/stage0/agents/codex"


@pytest.fixture(scope="module")
def transcripts(shared: Path) -> Path:
    return shared / "data" / "transcripts"


@pytest.fixture(scope="module")
def found(transcripts: Path) -> list[FoundFile]:
    return [file for file in find_files([transcripts]) if file.format == "codex"]


def turns_of(file: FoundFile) -> list[Turn]:
    return [turn for chunk in read_file(file) for turn in chunk.conversation.turns]


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def test_the_sessions_of_codex_are_known_and_nothing_else_is(transcripts: Path, found: list[FoundFile]) -> None:
    named = {file.path.relative_to(transcripts.resolve()).as_posix() for file in found}
    wanted = {
        path.relative_to(transcripts).as_posix()
        for path in transcripts.rglob("*.jsonl")
        if re.search(r'"type": ?"(?:session_meta|response_item|world_state|turn_context)"', path.read_text("utf-8"))
    }
    assert named == wanted
    assert all("codex" in name for name in named)
    assert len(named) >= 18


def test_every_message_comes_once(transcripts: Path, found: list[FoundFile]) -> None:
    (file,) = [file for file in found if file.path == (transcripts / SESSIONS).resolve()]
    expected: Counter[str] = Counter()
    for record in records(file.path):
        payload = record["payload"]
        if record["type"] != "response_item":
            continue
        if payload["type"] == "message":
            expected.update(block["text"].rpartition("## My request for Codex:\n")[2] for block in payload["content"])
        elif payload["type"] in {"function_call", "custom_tool_call"}:
            expected[payload.get("arguments", payload.get("input"))] += 1
        elif payload["type"].endswith("_output"):
            output = payload["output"]
            expected[json.loads(output)["output"] if output.startswith("{") else output] += 1
    expected = Counter({text: number for text, number in expected.items() if "<environment_context>" not in text})
    got: Counter[str] = Counter()
    for turn in turns_of(file):
        for part in turn.parts:
            got[
                part.text
                if isinstance(part, Text)
                else part.arguments
                if isinstance(part, ToolCall)
                else getattr(part, "content", "")
            ] += 1
    assert got == expected
    assert sum(got.values()) == 48


def test_a_session_of_a_schema_that_drifts(transcripts: Path) -> None:
    (file,) = find_files([transcripts / STAGES / "schema_drift.jsonl"])
    assert file.format == "codex"
    turns = turns_of(file)
    assert [(turn.role, turn.parts) for turn in turns] == [
        ("user", (Text("Translate 'hello' to Spanish"),)),
        ("assistant", (ToolCall("translate", '{"text":"hello","to":"es"}'),)),
        ("tool", (ToolResult("hola"),)),
        ("assistant", (Text('"hola"'),)),
    ]


def test_a_session_with_a_line_of_every_kind(transcripts: Path) -> None:
    (file,) = find_files([transcripts / STAGES / "small.jsonl"])
    reading = read_file(file)
    said = texts([turn for chunk in reading for turn in chunk.conversation.turns])
    assert said.count("u:List the files|") + said.count("u:List the files") == 1
    assert sum("Found 2 files." in text for text in said) == 1
    report = reading.report
    assert report.lines == len(file.path.read_bytes().splitlines())
    assert report.lines == report.taken + sum(report.skipped.values())
    assert "encrypted" not in " ".join(said)


def test_a_session_that_says_its_prompts_in_both_logs(transcripts: Path) -> None:
    (file,) = find_files([transcripts / STAGES / "large.jsonl"])
    said = texts(turns_of(file))
    assert said[0] == "u:Start"
    assert [text for text in said if text.startswith("u:")] == ["u:Start", *(f"u:Step {number}" for number in range(1, 6))]
    assert said.count("a:Ok") == 5
