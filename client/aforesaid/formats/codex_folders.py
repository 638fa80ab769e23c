"""Where Codex keeps things, and what can be known of a session before it is read: whose it is, its title, its parent's file.

A session's file names itself in its first line, its header. `sessions/YYYY/MM/DD/` and `archived_sessions/` lie in one home folder,
with the titles beside them in `session_index.jsonl`. A line may name another session; only files of that home, or of the session's
own folder, are looked at for it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from aforesaid.formats.claude_folders import last_component
from aforesaid.formats.codex_items import unwrapped
from aforesaid.formats.lines import Line, Unreadable, open_regular, parse_line, read_blocks, read_lines
from aforesaid.formats.packed import is_packed, unpack
from aforesaid.formats.tally import Tally
from aforesaid.formats.values import Object, as_object, identifier, microseconds, on_disk, string
from aforesaid.model import Agent

SESSION_FOLDERS = ("sessions", "archived_sessions")
TITLES = "session_index.jsonl"
PACKED_SUFFIX = ".jsonl.zst"
PROMPTS = "history.jsonl"
TITLES_ALONE = "titles of sessions: read with them"
PROMPTS_ALONE = "prompts alone: they stand in the sessions"

_DEEPEST = 6
_MOST_NEIGHBOURS = 1_000
_TITLE_LENGTH = 300
_LONGEST_NAME = 120
_ROLLOUT = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(.+?)\.jsonl(?:\.zst)?")
_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_SIGNS = re.compile(r"[^A-Za-z0-9._-]+")
_PLAIN = re.compile(r"[A-Za-z0-9/._-]{0,120}")
_CWD_LINES = 50
# Inside a text the quotes would be escaped.
_MARK = re.compile(rb'"(?:session_meta|thread_name_updated|thread_rolled_back|instructions)"')
_CWD = re.compile(r"<cwd>\s*([^<]{1,4096}?)\s*</cwd>")


def beside_sessions(name: str) -> str:
    """Why something that lies in a home folder beside the sessions is not read for itself."""
    return {TITLES: TITLES_ALONE, PROMPTS: PROMPTS_ALONE}.get(name, "holds no sessions")


def open_lines(path: Path) -> Iterator[Line]:
    """Yields a file's lines, compressed or not; what cannot be unpacked is left out in silence: the reading itself tells."""
    with open_regular(path) as file:
        head = file.read(4)
        file.seek(0)
        blocks = read_blocks(file)
        yield from read_lines(unpack(blocks, lambda _: None) if is_packed(head) else blocks)


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line of a session says of it; times are microseconds since 1970.

    `is_sub_agent` and `depth` tell a session that another one began, depth 1 for those of a person's session; `task` is what that
    one calls it. `own_from` is the `ordinal` of the first line that is no copy of the parent's, where the file says so.
    """

    session_id: str = ""
    cwd: str = ""
    created_at: int | None = None
    parent_id: str = ""
    is_sub_agent: bool = False
    depth: int = 1
    name: str = ""
    task: str = ""
    own_from: int | None = None

    @property
    def agent(self) -> Agent:
        """Whose session it is: the project's agent, or the sub-agent of its own that each such session is."""
        project = project_agent(self.cwd)
        if not self.is_sub_agent:
            return Agent(project, last_component(self.cwd) or project)
        below = self.depth > 1 and self.parent_id not in {"", self.session_id}
        parent = f"{project}/{self.parent_id}" if below else project
        return Agent(f"{project}/{self.session_id}", self.name or self.session_id, parent_agent_id=parent)


def project_agent(cwd: str) -> str:
    """The id of the agent of a folder: the folder's path, with a digest where signs had to be left out of it."""
    named = _SIGNS.sub("-", cwd)[:_LONGEST_NAME].strip("-")
    plain = "" if _PLAIN.fullmatch(cwd) else hashlib.blake2b(cwd.encode("utf-8"), digest_size=4).hexdigest()
    return "-".join(filter(None, ("codex", named, plain)))


def header_of(payload: Object) -> Header:
    """What a header says."""
    source = as_object(payload.get("source"))
    kind = source.get("subagent", source.get("sub_agent"))
    spawned = as_object(as_object(kind).get("thread_spawn"))
    parent = identifier(spawned.get("parent_thread_id")) or identifier(payload.get("parent_thread_id"))
    path = string(spawned.get("agent_path")) or string(payload.get("agent_path"))
    told = spawned.get("depth")
    depth = told if isinstance(told, int) and told > 0 else path.strip("/").count("/")
    names = [payload.get("agent_nickname"), spawned.get("agent_nickname"), payload.get("agent_role"), spawned.get("agent_role")]
    own_from = payload.get("subagent_history_start_ordinal")
    return Header(
        session_id=identifier(payload.get("id")) or identifier(payload.get("session_id")),
        cwd=string(payload.get("cwd")),
        created_at=microseconds(payload.get("timestamp")),
        parent_id=parent or identifier(payload.get("forked_from_id")),
        is_sub_agent=bool(parent or kind),
        depth=max(depth, 1),
        task=one_line(path.rpartition("/")[2]),
        name=one_line(next(filter(None, map(string, names)), "") or string(kind) or string(as_object(kind).get("other"))),
        own_from=own_from if isinstance(own_from, int) and own_from > 0 else None,
    )


def minted_at(identifier_: str) -> int | None:
    """When an id was made, in microseconds, where it is one of those that say so (UUID version 7)."""
    found = _UUID7.fullmatch(identifier_)
    return int(found[1] + found[2], 16) * 1000 if found else None


def one_line(text: str) -> str:
    """A title or a name as it is kept."""
    return " ".join(text.split())[:_TITLE_LENGTH]


def named_id(path: Path) -> str:
    """The id that a session file's name holds; empty for a file named otherwise."""
    found = _ROLLOUT.fullmatch(on_disk(path.name))
    return identifier(found[1]) if found else ""


def objects(path: Path) -> Iterator[tuple[int, Object]]:
    """Yields the JSON objects of a file with the numbers of their lines, and passes over everything else."""
    for line in open_lines(path):
        try:
            value = parse_line(line, Tally())
        except Unreadable:
            continue
        if isinstance(value, dict):
            yield line.number, as_object(value)


@dataclass(frozen=True, slots=True)
class Glance:
    """What one look through a session tells: its header and title, and whether turns were taken back."""

    header: Header
    title: str
    was_rolled_back: bool


def glance(path: Path) -> Glance:
    """Looks through a file without parsing the lines that tell nothing."""
    headers: list[Header] = []
    names: list[tuple[str, str]] = []
    cwd = ""
    was_rolled_back = False
    for line in open_lines(path):
        data = line.data
        wants_cwd = not cwd and (line.number < _CWD_LINES or b'"turn_context"' in data)
        if not (wants_cwd or _MARK.search(data)):
            continue
        try:
            fields = as_object(parse_line(line, Tally()))
        except Unreadable:
            continue
        kind, payload = unwrapped(fields)
        if kind == "session_meta":
            headers.append(header_of(payload))
        elif payload.get("type") == "thread_name_updated":
            names.append((identifier(payload.get("thread_id")), one_line(string(payload.get("thread_name")))))
        was_rolled_back = was_rolled_back or payload.get("type") == "thread_rolled_back"
        cwd = cwd or string(payload.get("cwd")) or _cwd_told(payload)
    header = _own_header(path, headers)
    title = next((name for of, name in reversed(names) if name and of in {"", header.session_id}), "")
    return Glance(replace(header, cwd=header.cwd or cwd), title, was_rolled_back)


def _own_header(path: Path, headers: list[Header]) -> Header:
    """The header that the file is named after, else the first: a fork has its parent's, too."""
    named = named_id(path)
    own = next((header for header in headers if header.session_id == named), None) or next(iter(headers), Header())
    return own if own.session_id else replace(own, session_id=named)


def _cwd_told(payload: Object) -> str:
    """The working directory that the program's description of the environment names, in sessions whose header names none."""
    content = payload.get("content")
    for block in content if isinstance(content, list) else []:
        if found := _CWD.search(string(as_object(block).get("text"))):
            return found[1]
    return ""


@dataclass(frozen=True, slots=True)
class Home:
    """A folder of sessions: their titles, and where each of them lies."""

    titles: dict[str, str]
    sessions: dict[str, Path]


class Homes:
    """The homes looked at in one run, each of them once."""

    def __init__(self) -> None:
        self._known: dict[Path, Home] = {}

    def of(self, path: Path) -> Home:
        """The home that a session's file lies in; for a file that lies elsewhere what is in its own folder."""
        folder = next((one.parent for one in list(path.parents)[:_DEEPEST] if one.name in SESSION_FOLDERS), None)
        key = folder or path.parent
        if key not in self._known:
            sessions = _named_sessions(key) if folder else _neighbours(key)
            self._known[key] = Home(_titles(key / TITLES), sessions)
        return self._known[key]


def _titles(path: Path) -> dict[str, str]:
    """The titles of a home: of each session the last one."""
    try:
        return {
            session_id: title
            for _, fields in objects(path)
            if (session_id := identifier(fields.get("id"))) and (title := one_line(string(fields.get("thread_name"))))
        }
    except OSError:
        return {}


def _named_sessions(home: Path) -> dict[str, Path]:
    """The sessions of a home by the ids in their names; a plain file before a compressed one."""
    found: dict[str, Path] = {}
    for folder in SESSION_FOLDERS:
        for place, _, names in os.walk(home / folder):
            for name in names:
                path = Path(place, name)
                if (session_id := named_id(path)) and (session_id not in found or name.endswith(".jsonl")):
                    found[session_id] = path
    return found


def _neighbours(folder: Path) -> dict[str, Path]:
    """The sessions of a folder that is no home, by the ids in their first lines."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.endswith((".jsonl", PACKED_SUFFIX)) and path.is_file())
    except OSError:
        return {}
    found: dict[str, Path] = {}
    for path in paths[:_MOST_NEIGHBOURS]:
        try:
            _, fields = next(objects(path), (0, {}))
            kind, payload = unwrapped(fields)
        except OSError:
            continue
        if kind == "session_meta" and (session_id := header_of(payload).session_id):
            found.setdefault(session_id, path)
    return found
