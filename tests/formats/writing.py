"""Writes the files that the formats' tests read, and reads them whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aforesaid.formats import Chunk, Replays, Report, find_files, read_file
from aforesaid.model import Turn

SESSION = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
PROJECT = "-srv-shop"


def text_of(records: Iterable[Mapping[str, Any] | str]) -> str:
    """Records as JSON lines; strings stand as they are."""
    return "".join((record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)) + "\n" for record in records)


def session(folder: Path, *records: Mapping[str, Any] | str, name: str = SESSION, project: str = PROJECT) -> Path:
    """A session's file in a project folder."""
    path = folder / project / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(records), encoding="utf-8")
    return path


def line(kind: str, content: Any = None, uuid: str = "", at: int = 0, **fields: Any) -> dict[str, Any]:
    """One line of a session; `at` is the second of a minute. Fields of the message itself begin with `message_`."""
    message = {key.removeprefix("message_"): fields.pop(key) for key in list(fields) if key.startswith("message_")}
    return {
        "type": kind,
        "uuid": uuid,
        "timestamp": f"2026-03-02T09:00:{at:02d}.000Z",
        "cwd": "/srv/shop",
        "sessionId": SESSION,
        "isSidechain": False,
        "message": {"role": kind, "content": content, **message},
        **fields,
    }


def chunks_of(*paths: Path, chunk_bytes: int = 1 << 20, block_bytes: int = 1 << 20) -> list[Chunk]:
    """All chunks of all files under some paths, read as one run."""
    replays = Replays()
    readings = [
        read_file(found, replays=replays, chunk_bytes=chunk_bytes, block_bytes=block_bytes)
        for found in find_files(paths)
        if not found.why
    ]
    return [chunk for reading in readings for chunk in reading]


def turns_of(*paths: Path) -> list[Turn]:
    """All turns of all files under some paths, in the order in which they come."""
    return [turn for chunk in chunks_of(*paths) for turn in chunk.conversation.turns]


def report_of(path: Path) -> Report:
    """What became of the lines of one file."""
    (found,) = [found for found in find_files([path]) if not found.why]
    reading = read_file(found)
    list(reading)
    return reading.report
