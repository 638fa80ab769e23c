"""Claude Code: a project folder is an agent, each session file one of its conversations, each sub-agent an agent of its own.

Known layouts: `<project>/<session>.jsonl`, beside it `<session>/subagents/[workflows/<id>/]agent-<id>.jsonl` with `.meta.json`,
and `<session>/tool-results/*` with what was too long for a line. Older versions put `agent-<id>.jsonl` beside the sessions, or
the lines of sub-agents (`isSidechain`) into the session's own file. The format is internal to that program and unstable: what is
not known is counted, never guessed at.

The folder's name is the agent's id and is never decoded into a path: `cwd` in the lines says where the work was done. All
branches of a session are kept, in the order of the file: what was rewound was said, too. One answer of the model, written as two
to ten lines with the same `message.id`, becomes one turn, known by the `uuid` of the first of them that says something.

Roles: `user` and `assistant` for what these two said, `tool` for lines that hold tool results only, `system` for what the program
wrote: wrappers (see claude_prompts), `isMeta` lines, summaries of a compaction, notices, and answers that it made up itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aforesaid.formats.claude_folders import (
    SideFiles,
    describe_sub_agent,
    folder_name,
    glance,
    is_sub_agent,
    last_component,
    project_of,
    session_folder,
    sub_agent_key,
    title_of,
)
from aforesaid.formats.claude_prompts import split
from aforesaid.formats.lines import Line, take_line
from aforesaid.formats.parts import read_block, read_content
from aforesaid.formats.replays import Replays
from aforesaid.formats.tally import CHUNK_BYTES, WITHOUT_TEXT, Chunk, Tally, chunks, label, text_bytes
from aforesaid.formats.values import Object, as_object, identifier, microseconds, on_disk, string
from aforesaid.model import Agent, Conversation, Part, Reasoning, Source, Text, ToolCall, ToolResult, Turn

NAME = "claude-code"

# Lines of an answer may come after a tool result that is longer than a chunk: so much is held back, then the answer is closed.
_HELD_BACK = 8 * CHUNK_BYTES
# The lines of an answer stand together, but for tool results; so many answers may begin before the next line of one.
_OPEN_ANSWERS = 4
# Blocks of an answer that lines are merged into one by one, which takes the longer the more there are; what follows is a new turn.
_MOST_BLOCKS = 200
_SPEAKERS = ("user", "assistant")
_TELLING_LINES = frozenset(
    {"custom-title", "ai-title", "file-history-snapshot", "last-prompt", "permission-mode", "queue-operation"}
)


def speaks(value: object) -> bool:
    """Says whether a line of a file is one that only Claude Code writes."""
    fields = as_object(value)
    kind = string(fields.get("type"))
    message = fields.get("message")
    if kind in _SPEAKERS:
        return isinstance(message, dict) and "parts" not in message
    if kind == "summary":
        return isinstance(fields.get("summary"), str) and "leafUuid" in fields
    if kind == "attachment":
        return isinstance(fields.get("attachment"), dict) and "uuid" in fields
    return kind in _TELLING_LINES and ("sessionId" in fields or "messageId" in fields)


def read(
    path: Path, lines: Iterable[Line], tally: Tally, modified_at: int, replays: Replays, limit: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """Yields a file's turns; `modified_at`, in microseconds, is the time of turns before any line that has one."""
    session = _Session(path, tally, modified_at, replays)
    due = limit
    for line in lines:
        session.read_line(line)
        if session.size >= due:
            yield from session.hand_out(limit)
            # Not at every line, where much is held back: looking through it takes time.
            due = session.size + limit
    yield from session.hand_out(limit, everything=True)


@dataclass(slots=True)
class _Said:
    """What one line says in one role."""

    role: str
    parts: list[Part]
    aside: bool = False
    message_id: str = ""


@dataclass(slots=True)
class _Draft:
    """A turn that later lines may still add to."""

    line: int
    turn_id: str
    said: _Said
    created_at: int

    def turn(self) -> Turn:
        return Turn(self.said.role, tuple(self.said.parts), self.turn_id, self.created_at)


@dataclass(slots=True)
class _Stream:
    """One conversation on its way out."""

    agent: Agent
    conversation: Conversation
    drafts: list[_Draft] = field(default_factory=list)
    answers: dict[str, _Draft] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)  # of ids that were wanted again: the last one tried

    def new_id(self, wanted: str) -> str:
        """The wanted id, or the first free one after it."""
        turn_id = wanted
        if turn_id in self.ids:
            number = self.numbers.get(wanted, 1)
            while turn_id in self.ids:
                number += 1
                turn_id = f"{wanted}#{number}"
            self.numbers[wanted] = number
        self.ids.add(turn_id)
        return turn_id


class _Session:
    """One file while it is read: its lines in, its turns out."""

    def __init__(self, path: Path, tally: Tally, modified_at: int, replays: Replays) -> None:
        self.size = 0
        self._path = path
        self._tally = tally
        self._now = modified_at
        self._replays = replays
        self._side_files = SideFiles(session_folder(path))
        self._seen: set[bytes] = set()
        self._roots: dict[str, str] = {}
        known = glance(path)
        self._project = folder_name(project_of(path))
        self._source = Source(NAME, on_disk(str(path)), known.cwd)
        self._is_sub_agent = is_sub_agent(path)
        if self._is_sub_agent:
            described = describe_sub_agent(path)
            main = self._sub_agent(sub_agent_key(path), described.name, known.title or described.task)
        else:
            agent = Agent(self._project, last_component(known.cwd) or self._project)
            stem = on_disk(path.stem)
            main = _Stream(agent, Conversation(stem, self._project, known.title, source=self._source))
        self._main = main
        self._side: dict[str, _Stream] = {}

    def _sub_agent(self, key: str, name: str = "", title: str = "") -> _Stream:
        agent = Agent(f"{self._project}/{key}", name or key, parent_agent_id=self._project)
        return _Stream(agent, Conversation(key.rpartition("/")[2], agent.agent_id, title, source=self._source))

    def read_line(self, line: Line) -> None:
        """Takes one line in, or skips it with its reason."""
        take_line(line, self._tally, self._take)

    def _take(self, number: int, value: object) -> str:
        """Answers why a line is skipped; an empty string where it is taken."""
        if not isinstance(value, dict):
            return "not a JSON object"
        fields = as_object(value)
        stream = self._stream(number, fields)
        self._now = microseconds(fields.get("timestamp")) or self._now
        said = [one for one in _said(fields, self._tally) if one.parts]
        if not said:
            return "" if title_of(fields) else f"{_kind_of(fields)}{WITHOUT_TEXT}"
        uuid = identifier(fields.get("uuid"))
        if uuid and (why := self._held_before(uuid, said)):
            return why
        for one in said:
            one.parts = self._side_files.put_back(fields, one.parts, self._tally) if one.role in {"tool", "user"} else one.parts
            self._add(stream, number, uuid or f"line-{number}", one)
        return ""

    def _held_before(self, uuid: str, said: list[_Said]) -> str:
        line = hashlib.blake2b(repr((self._project, uuid, said)).encode("utf-8"), digest_size=16).digest()
        if line in self._seen:
            return "repeated line"
        self._seen.add(line)
        return "" if self._replays.owns(self._path, line) else "replayed from an earlier session"

    def _add(self, stream: _Stream, number: int, turn_id: str, said: _Said) -> None:
        answer = stream.answers.get(said.message_id) if said.message_id else None
        if answer is not None and (len(answer.said.parts) < _MOST_BLOCKS or _covers(said.parts, answer.said.parts)):
            before = text_bytes(answer.said.parts)
            answer.said.parts = merged(answer.said.parts, said.parts)
            self.size += text_bytes(answer.said.parts) - before
            return
        wanted = f"{turn_id}#wrapper" if said.aside else turn_id
        draft = _Draft(number, stream.new_id(wanted), said, self._now)
        if draft.turn_id != wanted:
            self._tally.note("uuid used again with another text")
        stream.drafts.append(draft)
        self.size += text_bytes(said.parts)
        if said.message_id:
            stream.answers.pop(said.message_id, None)
            stream.answers[said.message_id] = draft
            if len(stream.answers) > _OPEN_ANSWERS:
                del stream.answers[next(iter(stream.answers))]

    def _stream(self, number: int, fields: Object) -> _Stream:
        """The conversation that a line belongs to: a sub-agent's line names it, or hangs on one that began it."""
        if self._is_sub_agent or fields.get("isSidechain") is not True:
            return self._main
        uuid, agent = identifier(fields.get("uuid")), identifier(fields.get("agentId"))
        parent = identifier(fields.get("parentUuid"))
        key = f"agent-{agent}" if agent else self._roots.get(parent) or f"sidechain-{uuid or parent or number}"
        if uuid:
            self._roots[uuid] = key
        if key not in self._side:
            self._side[key] = self._sub_agent(key)
        return self._side[key]

    def hand_out(self, limit: int, *, everything: bool = False) -> Iterator[Chunk]:
        """Yields what is complete, the conversations as they begin in the file; an answer that may go on is held back."""
        everything = everything or self.size >= _HELD_BACK
        waiting = [stream for stream in (self._main, *self._side.values()) if stream.drafts]
        self.size = 0
        for stream in sorted(waiting, key=lambda one: one.drafts[0].line):
            if everything:
                stream.answers.clear()
            still_open = {draft.turn_id for draft in stream.answers.values()}
            end = next((at for at, draft in enumerate(stream.drafts) if draft.turn_id in still_open), len(stream.drafts))
            done, stream.drafts = stream.drafts[:end], stream.drafts[end:]
            self.size += sum(text_bytes(draft.said.parts) for draft in stream.drafts)
            yield from chunks(stream.agent, stream.conversation, (draft.turn() for draft in done), self._tally, limit)


def _kind_of(fields: Object) -> str:
    """A line's type as the report names it."""
    kind = label(fields.get("type"))
    match kind:
        case "attachment":
            return f"attachment {label(as_object(fields.get('attachment')).get('type'))}"
        case "system" if isinstance(fields.get("subtype"), str):
            return f"system {label(fields.get('subtype'))}"
        case _:
            return kind


def _said(fields: Object, tally: Tally) -> Iterator[_Said]:
    """What a line says, by role: at most a wrapper and then the message itself."""
    message = as_object(fields.get("message"))
    kind = fields.get("type", message.get("role"))
    content = message.get("content")
    match kind:
        case "assistant":
            invented = message.get("model") == "<synthetic>" or fields.get("isApiErrorMessage") is True
            message_id = "" if invented else identifier(message.get("id"))
            yield _Said("system" if invented else "assistant", read_content(content, tally), message_id=message_id)
        case "user" if fields.get("isMeta") is True or fields.get("isCompactSummary") is True:
            yield from _by_program(content, tally)
        case "user":
            yield from _by_user(content, tally, typed=_typed(fields))
        case "attachment":
            attachment = as_object(fields.get("attachment"))
            if attachment.get("type") == "queued_command":
                yield from _by_user(attachment.get("prompt"), tally, typed=_typed(attachment))
        case "system":
            yield _Said("system", read_content(fields.get("content"), tally))
        case "summary":
            yield _Said("system", read_content(content, tally))
        case "tool_use" | "tool_result":
            yield _Said("assistant" if kind == "tool_use" else "tool", list(read_block(fields, tally)))


def _typed(fields: Object) -> bool:
    return fields.get("promptSource") == "typed" or as_object(fields.get("origin")).get("kind") == "human"


def _by_program(content: object, tally: Tally) -> Iterator[_Said]:
    parts = read_content(content, tally)
    results = any(isinstance(part, ToolResult) for part in parts)
    yield _Said("tool" if results else "system", parts)


def _by_user(content: object, tally: Tally, *, typed: bool) -> Iterator[_Said]:
    """What the program put around a prompt, as an aside in front; then the prompt, or the tool results."""
    wrappers: list[Part] = []
    parts: list[Part] = []
    spoken = False
    for block in content if isinstance(content, list) else [string(content)]:
        found = read_content([block], tally)
        of_a_tool = any(isinstance(part, ToolResult) for part in found)
        for part in found:
            if isinstance(part, Text):
                prompt = split(part.text, typed=typed)
                wrappers += [Text(prompt.wrapper)] if prompt.wrapper.strip() else []
                if not prompt.said.strip():
                    continue
                part = Text(prompt.said)  # noqa: PLW2901 (the part without what stood around it)
            parts.append(part)
            spoken = spoken or not of_a_tool
    yield _Said("system", wrappers, aside=bool(parts))
    yield _Said("user" if spoken else "tool", parts)


def merged(before: list[Part], after: list[Part]) -> list[Part]:
    """The blocks of one answer from two of its lines: the longer of two snapshots, else both, none of them twice."""
    if _covers(after, before):
        return after
    if _covers(before, after):
        return before
    parts = list(before)
    for part in after:
        same = next((at for at, old in enumerate(parts) if _grew(old, part)), None)
        if same is not None:
            parts[same] = part
        elif not any(_grew(part, old) for old in parts):
            parts.append(part)
    return parts


def _covers(longer: list[Part], shorter: list[Part]) -> bool:
    return len(longer) >= len(shorter) and all(_grew(old, new) for old, new in zip(shorter, longer, strict=False))


def _grew(old: Part, new: Part) -> bool:
    """Says whether a block is another one or a later state of it."""
    match old, new:
        case (Text(before), Text(after)) | (Reasoning(before), Reasoning(after)):
            return after.startswith(before)
        case ToolCall(), ToolCall() if old.call_id and old.call_id == new.call_id:
            return len(new.arguments) >= len(old.arguments)
        case _:
            return old == new
