"""Where Claude Code keeps things: projects, sessions, sub-agents and side files, and what can be known of a session before it is
read.

A path alone says what a file is; nothing outside a session's own folder is ever opened on the word of a line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from aforesaid.formats.lines import open_regular, parse, read_blocks, read_lines
from aforesaid.formats.tally import TURN_BYTES, Tally
from aforesaid.formats.values import Object, as_object, on_disk, string
from aforesaid.model import Part, ToolResult

_TITLE_LINES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
_SUB_AGENTS = "subagents"
_DEEPEST = 5
_GLANCE_LINE = 1 << 20
_PEEK = 1 << 16
_TITLE_LENGTH = 300
_TITLE_MARK = re.compile(rb'"(?:customTitle|aiTitle|leafUuid)"|"type"\s*:\s*"summary"')
_CWD = re.compile(rb'"cwd"\s*:\s*("(?:[^"\\]|\\.){1,4096}")')
_UUID = re.compile(rb'"uuid"\s*:\s*"([^"\\]{1,200})"')
_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"([^"\\]{1,40})"')
_SAVED_TO = re.compile(r"saved to:[ \t]*(\S[^\n]*)")


def project_of(path: Path) -> Path:
    """The project folder that a session's or sub-agent's file belongs to."""
    folders = list(path.parents)[:_DEEPEST]
    for folder in folders:
        if folder.name == _SUB_AGENTS:
            return folder.parent.parent
    for folder in folders:
        if (folder.parent / f"{folder.name}.jsonl").is_file():
            return folder.parent
    return path.parent


def folder_name(folder: Path) -> str:
    """A folder's name as an id: as it lies on disk, bytes that are no UTF-8 replaced."""
    return on_disk(folder.name) or "root"


def is_sub_agent(path: Path) -> bool:
    """Says whether a file holds a sub-agent rather than a session."""
    return path.name.startswith("agent-") or any(folder.name == _SUB_AGENTS for folder in list(path.parents)[:_DEEPEST])


def session_folder(path: Path) -> Path:
    """The folder of a session's side files: named as its file, or the one that the sub-agents lie in."""
    for folder in list(path.parents)[:_DEEPEST]:
        if folder.name == _SUB_AGENTS:
            return folder.parent
    return path.parent / path.stem


def sub_agent_key(path: Path) -> str:
    """What tells a sub-agent from the others of its project: its file's name, for those of a workflow after the workflow's."""
    workflow = path.parent if path.parent.parent.name == "workflows" else None
    stem = on_disk(path.stem)
    return f"{folder_name(workflow)}/{stem}" if workflow else stem


@dataclass(frozen=True, slots=True)
class SubAgent:
    """What `<stem>.meta.json` says of a sub-agent; empty where there is none."""

    name: str = ""
    task: str = ""


def describe_sub_agent(path: Path) -> SubAgent:
    """Reads the description beside a sub-agent's file."""
    meta = path.with_name(f"{path.stem}.meta.json")
    try:
        with open_regular(meta) as file:
            fields = as_object(parse(file.read(_GLANCE_LINE), Tally()))
    except (OSError, ValueError, RecursionError):
        return SubAgent()
    task = _one_line(string(fields.get("description")))
    return SubAgent(_one_line(string(fields.get("name")) or string(fields.get("agentType"))) or task, task)


def span(path: Path) -> tuple[str, str]:
    """The first and last timestamps of a file as they stand there, looked for at its ends only; files without any come last."""
    try:
        with path.open("rb") as file:
            first = _TIMESTAMP.search(file.read(_PEEK)) or _TIMESTAMP.search(file.read(16 * _PEEK))
            file.seek(max(0, file.seek(0, os.SEEK_END) - _PEEK))
            last = _TIMESTAMP.findall(file.read(_PEEK))
    except OSError:
        return "~", "~"
    begin = first[1].decode("latin-1") if first else "~"
    return begin, last[-1].decode("latin-1") if last else begin


@dataclass(frozen=True, slots=True)
class Glance:
    """What one look through a session tells: its title, and the working directory that its project is named after."""

    title: str
    cwd: str


def glance(path: Path) -> Glance:
    """Looks through a file for its title and its working directory without parsing the lines that hold neither.

    The title is the last that a person gave, else the last that the model made up, else a summary: the last whose conversation
    goes on in this file, else the last. Older versions wrote summaries of other sessions at the top of a file. The directory is
    the first that the project's folder is named after, else the first.
    """
    titles: dict[str, str] = {}
    summaries: dict[bytes, str] = {}
    first = last = named_after = ""
    wanted = folder_name(project_of(path))
    for data in _short_lines(path):
        if _TITLE_MARK.search(data):
            _collect_title(data, titles, summaries)
        if summaries and (found := _UUID.search(data)) and found[1] in summaries:
            titles["own summary"] = summaries[found[1]]
        if not named_after and (cwd := _working_directory(data)) and cwd != last:
            first, last = first or cwd, cwd
            named_after = cwd if munged(cwd) == wanted else ""
    order = ("custom-title", "ai-title", "own summary", "summary")
    title = next((titles[kind] for kind in order if titles.get(kind)), "")
    return Glance(title, named_after or first)


def _short_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from (line.data for line in read_lines(read_blocks(file), _GLANCE_LINE))


def _collect_title(data: bytes, titles: dict[str, str], summaries: dict[bytes, str]) -> None:
    fields = _object_of(data)
    kind = string(fields.get("type"))
    title = title_of(fields)
    if title:
        titles[kind] = title
        if kind == "summary":
            summaries[string(fields.get("leafUuid")).encode()] = title


def title_of(fields: Object) -> str:
    """The title that a line holds, on one line; empty where it holds none."""
    key = _TITLE_LINES.get(string(fields.get("type")))
    return _one_line(string(fields.get(key))) if key else ""


def _object_of(data: bytes) -> Object:
    try:
        return as_object(parse(data, Tally()))
    except (ValueError, RecursionError):
        return {}


def _working_directory(data: bytes) -> str:
    found = _CWD.search(data)
    if not found:
        return ""
    try:
        return string(parse(found[1], Tally()))
    except ValueError:
        return ""


def munged(cwd: str) -> str:
    """A working directory as Claude Code names its project folder; true for paths of up to 200 characters only."""
    return re.sub(r"[^A-Za-z0-9-]", "-", cwd)


def last_component(cwd: str) -> str:
    """The last name of a path of either kind of system, cut where it is longer than a name may be."""
    path = PureWindowsPath(cwd) if re.match(r"[A-Za-z]:\\|\\\\", cwd) else PurePosixPath(cwd)
    return path.name[:_TITLE_LENGTH]


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_TITLE_LENGTH]


class SideFiles:
    """The tool results of one session that were too long for its lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put_back(self, fields: Object, parts: list[Part], tally: Tally) -> list[Part]:
        """Replaces a placeholder by the text that it stands for, where that lies under the session's folder."""
        given = string(as_object(fields.get("toolUseResult")).get("persistedOutputPath"))
        results = [part for part in parts if isinstance(part, ToolResult)]
        held = [part for part in results if part.content.lstrip().startswith("<persisted-output>")]
        if not held and not (given and len(results) == 1):
            return parts
        holder = (held or results)[0]
        found = _SAVED_TO.search(holder.content)
        text = self._read(given or (found[1].strip() if found else ""), tally)
        if text is None:
            return parts
        whole = ToolResult(text, holder.call_id, is_error=holder.is_error)
        return [whole if part is holder else part for part in parts]

    def _read(self, given: str, tally: Tally) -> str | None:
        # Sessions are copied between machines: of an absolute path only the name is sure to hold.
        name = given.replace("\\", "/").rpartition("/")[2].replace("\0", "")
        try:
            path = (self._folder / "tool-results" / name).resolve()
            if not path.is_relative_to(self._folder.resolve()) or not path.is_file():
                tally.note("tool result kept in a file that is not in the session's folder")
                return None
            with path.open("rb") as file:
                data = file.read(TURN_BYTES + 1)
        except (OSError, ValueError):
            tally.note("tool result kept in a file that cannot be read")
            return None
        if b"\0" in data[:_PEEK]:
            tally.note("tool result kept in a file that is no text")
            return None
        return data.decode("utf-8", "replace")
