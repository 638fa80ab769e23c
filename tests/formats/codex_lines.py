"""Writes Codex sessions for the tests: lines as the program writes them, and files of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aforesaid.formats import FoundFile, Replays, find_files, read_file
from aforesaid.model import Reasoning, Text, ToolCall, ToolResult, Turn
from tests.formats.writing import text_of

CWD = "/srv/shop"
_NINE = 1_781_600_400_000


def made_at(at: float, last: str = "aa") -> str:
    """An id (UUID version 7) that was made at a second of the minute of all lines."""
    digits = f"{_NINE + round(at * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-{last:>012}"


ID = made_at(0)


def line(kind: str, at: float = 0, **payload: Any) -> dict[str, Any]:
    """One line; `at` is the second of a minute. What begins with `line_` stands beside the payload, not in it."""
    beside = {key.removeprefix("line_"): payload.pop(key) for key in list(payload) if key.startswith("line_")}
    return {"timestamp": f"2026-06-16T09:00:{at:06.3f}Z", **beside, "type": kind, "payload": payload}


def header(session_id: str = ID, at: float = 0, **fields: Any) -> dict[str, Any]:
    """The first line of a session."""
    meta = {"id": session_id, "timestamp": f"2026-06-16T09:00:{at:06.3f}Z", "cwd": CWD, "originator": "codex-tui", "source": "cli"}
    return line("session_meta", at, **{**meta, "base_instructions": {"text": "Be brief."}, **fields})


def item(kind: str, at: float = 0, **fields: Any) -> dict[str, Any]:
    """A line of the items' log."""
    return line("response_item", at, type=kind, **fields)


def event(kind: str, at: float = 0, **fields: Any) -> dict[str, Any]:
    """A line of the events' log."""
    return line("event_msg", at, type=kind, **fields)


def user(text: str, at: float = 0) -> dict[str, Any]:
    """A prompt among the items."""
    return item("message", at, role="user", content=[{"type": "input_text", "text": text}])


def assistant(text: str, at: float = 0) -> dict[str, Any]:
    """An answer among the items."""
    return item("message", at, role="assistant", content=[{"type": "output_text", "text": text}])


def user_event(text: str, at: float = 0) -> dict[str, Any]:
    """A prompt among the events."""
    return event("user_message", at, message=text, images=[])


def assistant_event(text: str, at: float = 0) -> dict[str, Any]:
    """An answer among the events."""
    return event("agent_message", at, message=text)


def turn_begins(turn_id: str, at: float = 0) -> dict[str, Any]:
    """The line that begins a turn."""
    return event("task_started", at, turn_id=turn_id)


def rollout(folder: Path, *records: Mapping[str, Any] | str, session_id: str = ID, day: str = "2026/06/16") -> Path:
    """A session's file in a home folder."""
    path = folder / "sessions" / day / f"rollout-2026-06-16T11-00-00-{session_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text_of(records).encode("utf-8", "surrogatepass"))
    return path


def read_one(path: Path) -> list[Turn]:
    """The turns of one file, read in a run of its own."""
    (found,) = [found for found in find_files([path]) if not found.why]
    return [turn for chunk in read_file(found) for turn in chunk.conversation.turns]


def read_found(found: list[FoundFile]) -> dict[str, list[Turn]]:
    """The turns of some files by conversation, read in one run, in the order given."""
    replays = Replays()
    turns: dict[str, list[Turn]] = {}
    for file in found:
        if not file.why:
            for chunk in read_file(file, replays=replays):
                turns.setdefault(chunk.conversation.conversation_id, []).extend(chunk.conversation.turns)
    return turns


def texts(turns: list[Turn]) -> list[str]:
    """What some turns say, each with the first letter of its role."""
    return [f"{turn.role[0]}:{_text(turn)}" for turn in turns]


def _text(turn: Turn) -> str:
    said = []
    for part in turn.parts:
        match part:
            case Text(text) | Reasoning(text):
                said.append(text)
            case ToolCall(name):
                said.append(name)
            case ToolResult(content):
                said.append(content)
            case _:
                said.append(part.name)
    return "|".join(said)
