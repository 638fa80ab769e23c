"""Paths that a person names -> the files to read, each with its format, in an order that is the same every time.

Formats are told by content, never by name. What is not read is listed with the reason: nothing is left out without a word.
Folders are walked in the order of their names, links are followed once, and no file is opened twice. A project's sessions come in
the order in which they began, so that a resumed one is read after the one that it copies.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from aforesaid.formats import chat_messages, claude_code, codex
from aforesaid.formats.claude_folders import project_of, span
from aforesaid.formats.codex_folders import PACKED_SUFFIX, SESSION_FOLDERS, TITLES, beside_sessions
from aforesaid.formats.lines import BOM, LINE_LIMIT, Line, Unreadable, parse, parse_line, read_blocks, read_lines
from aforesaid.formats.packed import is_packed, unpack
from aforesaid.formats.tally import Tally

_Formats: TypeAlias = tuple[tuple[str, Callable[[object], bool]], ...]
_PACKED_FORMATS: _Formats = ((codex.NAME, codex.speaks),)
_FORMATS: _Formats = (
    *_PACKED_FORMATS,
    (claude_code.NAME, claude_code.speaks),
    (chat_messages.NAME, chat_messages.speaks),
)
# How far into a file a line of a known format is looked for. Lines are read one by one: a first line of 70 MB costs no memory.
_SNIFFED_LINES = 200
_SNIFFED_BLOCK = 64 << 10
_SNIFFED_BYTES = 2 * LINE_LIMIT
# A document names a role early, or it is not parsed as a whole to find out.
_SNIFFED_HEAD = 256 << 10

_CONFIG_FOLDERS = frozenset({"projects", "transcripts"})
_CONFIG_SIGNS = ("history.jsonl", "settings.json", "shell-snapshots", "statsig", "todos")
_HOME_SIGNS = ("auth.json", "config.toml", "history.jsonl", TITLES, "version.json")
_ENTERED = frozenset({".claude", ".codex"})


class PathError(ValueError):
    """A path that was named and cannot be read; says which and why."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read, or one that is left out and why.

    `path` is absolute, its links followed. `document` marks a file that is one JSON value. `why` is empty for a file to read; a
    folder that was not entered has a `why`, too.
    """

    path: Path
    format: str = ""
    size: int = 0
    document: bool = False
    why: str = ""


def find_files(paths: Iterable[Path | str]) -> Iterator[FoundFile]:
    """Yields the files under some paths, in the order of the paths; raises PathError at once for one that is not there.

    A path may be a file, a project folder, a folder of such folders or `~/.claude` or `~/.codex`, of which only the sessions are
    looked at.
    """
    return _find([_existing(str(path)) for path in paths])


def _existing(named: str) -> Path:
    if not named:
        raise PathError("no such file or folder: ''")
    try:
        return Path(named).expanduser().resolve(strict=True)
    except FileNotFoundError:
        raise PathError(f"no such file or folder: {named!r}") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise PathError(f"cannot read {named!r}: {_reason(error)}") from None


def _reason(error: OSError | RuntimeError | ValueError) -> str:
    """What went wrong, without the path, which stands beside it."""
    return ((error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__).lower()


def _find(roots: Sequence[Path]) -> Iterator[FoundFile]:
    seen: set[Path] = set()
    owners: dict[tuple[str, str], Path] = {}
    for root in roots:
        listed = _walk(root, seen) if root.is_dir() else _file(root, seen)
        placed = sorted(((str(project_of(found.path)), found) for found in listed), key=lambda one: (one[0], str(one[1].path)))
        for _, group in groupby(placed, key=lambda one: one[0]):
            for found in _in_order([_recognised(found) for _, found in group]):
                yield _unless_named_twice(found, owners)


def _unless_named_twice(found: FoundFile, owners: dict[tuple[str, str], Path]) -> FoundFile:
    """Leaves out a file of chats whose ids would be those of another one: it would overwrite what the other one said."""
    if found.format != chat_messages.NAME:
        return found
    first = owners.setdefault((found.path.parent.name, found.path.name), found.path)
    return found if first == found.path else replace(found, why=f"has the name of {first}, and its ids: rename one of them")


def _walk(folder: Path, seen: set[Path]) -> Iterator[FoundFile]:
    """Lists a folder and all below it, in the order of the names."""
    if folder in seen:
        yield FoundFile(folder, why="listed before")
        return
    seen.add(folder)
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        yield FoundFile(folder, why=f"cannot be read: {_reason(error)}")
        return
    wanted = _session_folders(folder, names)
    for name in names:
        path = folder / name
        if wanted and name not in wanted:
            yield FoundFile(path, why="holds no sessions" if wanted == _CONFIG_FOLDERS else beside_sessions(name))
        elif path.is_dir():
            if (name.startswith(".") and name not in _ENTERED) or name == "node_modules":
                yield FoundFile(path, why="hidden folder" if name.startswith(".") else "installed packages")
            else:
                yield from _walk(path.resolve(), seen)
        else:
            yield from _file(path, seen)


def _session_folders(folder: Path, names: Sequence[str]) -> frozenset[str]:
    """The folders of sessions in one where a program keeps its settings as well; empty for any other folder."""
    if "projects" in names and (folder.name == ".claude" or any(name in names for name in _CONFIG_SIGNS)):
        return _CONFIG_FOLDERS
    wanted = frozenset(SESSION_FOLDERS)
    if not wanted.isdisjoint(names) and (folder.name == ".codex" or any(name in names for name in _HOME_SIGNS)):
        return wanted
    return frozenset()


def _file(path: Path, seen: set[Path]) -> Iterator[FoundFile]:
    """One file before anybody looked into it: what kind of thing it is, and how long."""
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except (OSError, RuntimeError) as error:
        yield FoundFile(path, why=f"cannot be read: {_reason(error)}")
        return
    if real in seen:
        yield FoundFile(real, why="listed before")
        return
    seen.add(real)
    # Opening a pipe would wait for its writer.
    why = "" if stat.S_ISREG(status.st_mode) else "not a regular file"
    yield FoundFile(real, size=status.st_size, why=why or _side_file(real) or ("" if status.st_size else "empty file"))


def _side_file(path: Path) -> str:
    """Why a file that belongs to another one is not read for itself."""
    if path.parent.name == "tool-results":
        return "tool result: read with its session"
    if path.name.endswith(".meta.json") and path.with_name(path.name.removesuffix(".meta.json") + ".jsonl").is_file():
        return "describes a sub-agent: read with its file"
    if path.name.endswith(PACKED_SUFFIX) and path.with_name(path.name.removesuffix(".zst")).is_file():
        return "compressed copy of the file beside it"
    return ""


def _recognised(found: FoundFile) -> FoundFile:
    if found.why:
        return found
    try:
        kind, document = sniff(found.path)
    except OSError as error:
        return replace(found, why=f"cannot be read: {_reason(error)}")
    except Unreadable as verdict:
        return replace(found, why=str(verdict))
    return replace(found, format=kind, document=document)


def _in_order(group: list[FoundFile]) -> list[FoundFile]:
    """Sessions as they began, those that began together (a copy and its original) as they ended; then everything else."""
    sessions = [found for found in group if found.format == claude_code.NAME]
    others = [found for found in group if found.format != claude_code.NAME]
    return [*sorted(sessions, key=lambda found: (span(found.path), str(found.path))), *others]


def sniff(path: Path) -> tuple[str, bool]:
    """Names a file's format and says whether it is one JSON document; raises Unreadable with the reason, or OSError."""
    with path.open("rb") as file:
        head = file.read(_SNIFFED_HEAD)
        if is_packed(head):
            file.seek(0)
            return _sniff_packed(read_blocks(file, _SNIFFED_BLOCK)), False
        if _may_be_document(head, file.seek(0, os.SEEK_END)):
            file.seek(0)
            if _is_document(file.read(LINE_LIMIT + 1)):
                return chat_messages.NAME, True
        file.seek(0)
        return _sniff_lines(read_lines(read_blocks(file, _SNIFFED_BLOCK)), _FORMATS), False


def _sniff_packed(blocks: Iterator[bytes]) -> str:
    stopped: list[str] = []
    try:
        return _sniff_lines(read_lines(unpack(blocks, stopped.append)), _PACKED_FORMATS)
    except Unreadable as verdict:
        raise Unreadable(stopped[0] if stopped else str(verdict)) from None


def _may_be_document(head: bytes, size: int) -> bool:
    """Says whether a file may be one JSON value over several lines, or a list; raises Unreadable for one too long to parse."""
    text = head.removeprefix(BOM).lstrip()
    first = text.partition(b"\n")[0].strip()
    if first in {b"[", b"{"} and size > LINE_LIMIT:
        raise Unreadable(f"JSON document of {size} bytes is over the limit of {LINE_LIMIT}")
    if b'"role"' not in head or not text.startswith((b"[", b"{")):
        return False
    return text.startswith(b"[") or (b"\n" in text and not _parses(first))


def _parses(data: bytes) -> bool:
    try:
        parse(data, Tally())
    except (ValueError, RecursionError):
        return False
    return True


def _is_document(data: bytes) -> bool:
    try:
        return chat_messages.speaks_document(chat_messages.parse_document(data, Tally()))
    except Unreadable:
        return False


def _sniff_lines(lines: Iterator[Line], formats: _Formats) -> str:
    """The format of the first line that speaks one. Lines that cannot be an object or a list are not even decoded."""
    size = 0
    for looked_at, line in enumerate(lines):
        if looked_at == _SNIFFED_LINES or size > _SNIFFED_BYTES:
            break
        size += line.size
        if not line.data.lstrip(b" \t\r\0").startswith((b"{", b"[")):
            continue
        try:
            value = parse_line(line, Tally())
        except Unreadable:
            continue
        for name, speaks in formats:
            if speaks(value):
                return name
        if why := codex.why_no_session(value):
            raise Unreadable(why)
    raise Unreadable("no known format")
