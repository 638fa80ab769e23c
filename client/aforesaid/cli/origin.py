"""The way back to where a turn came from: its file and line, and the command that goes on with the session in the tool it was.

Only what the source says, or what stands in its file on this machine, is told. A line is looked for in a file that is there; a
command is made only where everything in it is known and can be typed.
"""

from __future__ import annotations

import mmap
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from aforesaid.cli.terminal import visible

if TYPE_CHECKING:
    # Its dataclasses take some milliseconds to make: not for --help.
    from aforesaid.model import Source

# A larger file takes more than a second or two to look through.
LARGEST = 1 << 30

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_LINE_ID = re.compile(r"line-([0-9]{1,9})")
_KEY_BEFORE = re.compile(rb'"uuid"\s*:\s*\Z')
_SUB_AGENTS = "subagents"
_WHOLE_PATH = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")


@dataclass(frozen=True, slots=True)
class Tool:
    """How a format's turn ids tell a line (counted from 1, None if not), and which command goes on with a file's session."""

    line: Callable[[Path, str], int | None]
    resume: Callable[[Source, str], str]


def origin_line(source: Source, turn_id: str) -> str:
    """Returns `file:line` of a turn, `file` where the line is not known, nothing where the file is not."""
    if not source.file:
        return ""
    tool = TOOLS.get(source.format)
    try:
        line = tool.line(Path(source.file), turn_id) if tool else None
    except (OSError, ValueError):
        line = None
    return f"{visible(source.file)}:{line}" if line is not None else visible(source.file)


def resume_command(source: Source, agent_id: str) -> str:
    """Returns the command, quoted for a shell, that goes on with the session a conversation was, nothing where there is none.

    For a sub-agent it is its parent's session, where that is known.
    """
    tool = TOOLS.get(source.format)
    command = tool.resume(source, agent_id) if tool else ""
    return command if visible(command) == command else ""


def _claude_line(path: Path, turn_id: str) -> int | None:
    # claude_code.py: a line's uuid, or its number from 0; what follows # tells turns of one line apart.
    known, _, _ = turn_id.partition("#")
    if numbered := _LINE_ID.fullmatch(known):
        return int(numbered[1]) + 1
    return _line_of_uuid(path, known.encode()) if known else None


def _line_of_uuid(path: Path, uuid: bytes) -> int | None:
    if not path.is_file() or not 0 < path.stat().st_size <= LARGEST:
        return None
    quoted = b'"' + uuid + b'"'
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        at = text.find(quoted)
        while at >= 0:
            if _KEY_BEFORE.search(text[max(0, at - 20) : at]):
                return _newlines(text, at) + 1
            at = text.find(quoted, at + 1)
    return None


def _newlines(text: mmap.mmap, end: int) -> int:
    block = 1 << 20
    return sum(text[start : min(start + block, end)].count(b"\n") for start in range(0, end, block))


def _claude_resume(source: Source, _agent_id: str) -> str:
    path = PurePosixPath(source.file)
    folders = [folder.name for folder in path.parents]
    # `<session>/subagents/...` belongs to a session; older versions put `agent-<id>.jsonl` beside it and do not name it.
    session = folders[folders.index(_SUB_AGENTS) + 1] if _SUB_AGENTS in folders else path.stem
    if not re.fullmatch(_UUID, session):
        return ""
    # Anything but a whole path means something else wherever it is typed, or nothing that can be: `-`, `+1`, `=x`.
    folder = f"cd {shlex.quote(source.project)} && " if _WHOLE_PATH.match(source.project) else ""
    return f"{folder}claude --resume {session}"


def _chat_line(path: Path, turn_id: str) -> int | None:
    # chat_messages.py: `<file>:<line>` or `<file>:<line>:<message>`, from 0; in a document they are places of messages.
    found = re.match(r":([0-9]{1,9})(?::[0-9]+)?\Z", turn_id.removeprefix(path.name))
    if found is None or not path.is_file():
        return None
    from aforesaid.formats import find_files  # loads the formats: only where such a hit is shown

    is_lines = any(not one.why and not one.document for one in find_files([str(path)]))
    return int(found[1]) + 1 if is_lines else None


def _codex_line(_path: Path, turn_id: str) -> int | None:
    # codex.py: the number from 0; of a compressed file that of what is in it.
    numbered = _LINE_ID.fullmatch(turn_id.partition("#")[0])
    return int(numbered[1]) + 1 if numbered else None


def _codex_resume(source: Source, agent_id: str) -> str:
    found = re.fullmatch(rf"rollout-.*?({_UUID})\.jsonl(?:\.zst)?", PurePosixPath(source.file).name)
    # A sub-agent is `<project>/<its session>`, and nothing here tells its parent's session.
    return f"codex resume {found[1]}" if found and not agent_id.endswith(f"/{found[1]}") else ""


def _no_command(_source: Source, _agent_id: str) -> str:
    return ""


TOOLS = {
    "claude-code": Tool(_claude_line, _claude_resume),
    "codex": Tool(_codex_line, _codex_resume),
    "chat-messages": Tool(_chat_line, _no_command),
}
