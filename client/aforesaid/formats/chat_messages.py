"""Chat messages as OpenAI's interfaces take them: conversations or messages as JSON lines, or one JSON document.

A line is a conversation (`{"messages": [...]}`, `{"body": {"messages": [...]}}` of a batch, or a bare list of messages) or one
message of the conversation that the whole file is (`{"role": ..., "content": ...}`). A file that is one JSON value over several
lines is read as a whole: a list of messages, a list of conversations, or one conversation.

The file is the agent, known by its name without the suffix. Other ids come from names and from places, counted from 0: of
`runs/chat.jsonl`, line 3 is the conversation `runs/chat.jsonl:3` and its message 7 the turn `chat.jsonl:3:7`; where each line is a
message, the conversation is `runs/chat.jsonl` and line 3 the turn `chat.jsonl:3`. The folder is named because many have a file of
the same name in each, and one must not overwrite the other. These files hold no times as a rule: the time of the file's last change
is taken then, and noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aforesaid.formats.lines import BOM, LINE_LIMIT, Line, Unreadable, parse, parse_line
from aforesaid.formats.parts import read_content, reasoning, tool_call, tool_result
from aforesaid.formats.tally import CHUNK_BYTES, Chunk, Tally, chunks, label, text_bytes
from aforesaid.formats.values import Object, as_object, microseconds, on_disk, string
from aforesaid.model import Agent, Conversation, Part, Source, Turn

NAME = "chat-messages"

ROLES = {"developer": "system", "function": "tool"}
"""Roles that are others by another name."""
_TIMES = ("timestamp", "created_at", "create_time")
_LONGEST_ROLE = 60
_TITLE_LENGTH = 300


def speaks(value: object) -> bool:
    """Says whether a line is a message or a conversation of this format. Other formats have typed lines with a role, too."""
    return (_is_message(value) and "type" not in as_object(value)) or bool(_messages(value))


def speaks_document(value: object) -> bool:
    """Says whether a whole file's JSON value is a conversation, a list of messages or a list of conversations."""
    return speaks(value) or (isinstance(value, list) and any(_messages(item) for item in value))


def _is_message(value: object) -> bool:
    fields = as_object(value)
    role, content = fields.get("role"), fields.get("content")
    if not isinstance(role, str) or fields.get("type", "message") != "message":
        return False
    said = isinstance(content, str | list) and "content" in fields
    return said or any(fields.get(key) for key in ("tool_calls", "function_call", "refusal"))


def _messages(value: object) -> list[object]:
    """The messages of a conversation; an empty list where the value is none, or where most of what it lists is something else."""
    fields = as_object(value)
    listed = value if isinstance(value, list) else fields.get("messages", as_object(fields.get("body")).get("messages"))
    return listed if isinstance(listed, list) and 2 * sum(map(_is_message, listed)) >= max(len(listed), 1) else []


@dataclass(frozen=True, slots=True)
class Chat:
    """One file of this format: where it lies, when it last changed (microseconds)."""

    path: Path
    modified_at: int


def read(chat: Chat, lines: Iterable[Line], tally: Tally, limit: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Yields the turns of a file of JSON lines."""
    file = _File(chat, tally)
    waiting: list[Turn] = []
    size = 0
    for line in lines:
        try:
            value = parse_line(line, tally)
        except Unreadable as verdict:
            tally.skip(str(verdict))
            continue
        messages = _messages(value)
        turns = list(file.turns(value, messages, f":{line.number}")) if messages else list(file.message(value, f":{line.number}"))
        if not turns:
            tally.skip(_why_not(value, messages))
            continue
        tally.take()
        if messages:
            yield from chunks(file.agent, file.conversation(f":{line.number}", value), turns, tally, limit)
            continue
        waiting += turns
        size += sum(text_bytes(turn.parts) for turn in turns)
        if size >= limit:
            yield from chunks(file.agent, file.conversation(), waiting, tally, limit)
            waiting, size = [], 0
    yield from chunks(file.agent, file.conversation(), waiting, tally, limit)


def read_document(chat: Chat, data: bytes, tally: Tally, limit: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Yields the turns of a file that is one JSON value; all its lines are taken with it, or none."""
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    try:
        value = parse_document(data, tally)
    except Unreadable as verdict:
        tally.skip(str(verdict), lines)
        return
    file = _File(chat, tally)
    taken = False
    for name, part in _conversations(value):
        messages = _messages(part)
        turns = list(file.turns(part, messages, name))
        taken = taken or bool(turns)
        if not turns:
            tally.note(_why_not(part, messages))
        yield from chunks(file.agent, file.conversation(name, part), turns, tally, limit)
    if taken:
        tally.take(lines)
    else:
        tally.skip(_why_not(value, _messages(value)), lines)


def parse_document(data: bytes, tally: Tally) -> object:
    """Answers a whole file's JSON value; raises Unreadable with the reason where there is none."""
    if len(data) > LINE_LIMIT:
        raise Unreadable(f"document of more than {LINE_LIMIT} bytes is over the limit")
    try:
        return parse(data.removeprefix(BOM).strip(b" \t\r\n\0"), tally)
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except ValueError:
        raise Unreadable("malformed JSON") from None


def _conversations(value: object) -> Iterator[tuple[str, object]]:
    """The conversations of a document with what their ids end in."""
    if not isinstance(value, list):
        yield ":0", value
    elif _messages(value):
        yield "", value
    else:
        yield from ((f":{at}", item) for at, item in enumerate(value))


class _File:
    """Makes turns and conversations of one file, and counts what it cannot use."""

    def __init__(self, chat: Chat, tally: Tally) -> None:
        stem = on_disk(chat.path.stem)
        self.agent = Agent(stem, stem)
        self._name = on_disk(chat.path.name)
        self._conversation = f"{on_disk(chat.path.parent.name)}/{self._name}"
        self._source = Source(NAME, on_disk(str(chat.path)))
        self._modified_at = chat.modified_at
        self._tally = tally

    def conversation(self, suffix: str = "", value: object = None) -> Conversation:
        """The conversation without its turns; its title where the value has one, or the id that a batch gives it."""
        fields = as_object(value)
        title = string(fields.get("title")) or string(fields.get("custom_id"))
        return Conversation(
            self._conversation + suffix, self.agent.agent_id, " ".join(title.split())[:_TITLE_LENGTH], source=self._source
        )

    def turns(self, value: object, messages: list[object], suffix: str) -> Iterator[Turn]:
        """The turns of one conversation's messages; those without text are noted."""
        for at, message in enumerate(messages):
            turns = list(self.message(message, f"{suffix}:{at}", as_object(value)))
            if not turns:
                self._tally.note(_why_not(message, []))
            yield from turns

    def message(self, value: object, suffix: str, around: Object | None = None) -> Iterator[Turn]:
        """The turn of one message, or none where it says nothing; its time, else that of what is around it, else the file's."""
        fields = as_object(value)
        role = string(fields.get("role")).strip()[:_LONGEST_ROLE]
        try:
            parts = message_parts(fields, self._tally) if role else []
        except RecursionError:
            # Reading JSON goes deeper than writing it does.
            self._tally.note("message nested too deeply")
            return
        if not parts:
            return
        given = (fields.get(key) for key in _TIMES)
        given_around = ((around or {}).get(key) for key in _TIMES)
        time = next((found for raw in (*given, *given_around) if (found := microseconds(raw))), None)
        if time is None:
            self._tally.note("turn without a time: the file's last change is taken")
            time = self._modified_at
        yield Turn(ROLES.get(role, role), tuple(parts), self._name + suffix, time)


def message_parts(fields: Object, tally: Tally, read: Callable[[object, Tally], list[Part]] = read_content) -> list[Part]:
    """What a message says, in the order in which it came about: thoughts, text, calls. `read` reads its content."""
    content = fields.get("content")
    if fields.get("role") in {"tool", "function"} and not _holds_results(content):
        return tool_result(content, fields.get("tool_call_id", fields.get("name")), tally) if "content" in fields else []
    thoughts = dict.fromkeys(string(fields.get(key)) for key in ("reasoning_content", "reasoning"))
    parts: list[Part] = [part for thought in thoughts for part in reasoning(thought)]
    parts += read(content, tally)
    for said in (fields.get("refusal"), as_object(fields.get("audio")).get("transcript")):
        parts += read_content(said, tally)
    calls = fields.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        parts += _call(as_object(call), tally)
    old_call = as_object(fields.get("function_call"))
    if old_call:
        parts.append(tool_call(old_call.get("name"), old_call.get("arguments"), ""))
    return parts


def _holds_results(content: object) -> bool:
    """Tells whether a tool's message lists results that say so themselves, each with its call, instead of what one call gave."""
    kinds = [string(as_object(block).get("type")) for block in content] if isinstance(content, list) else []
    return any(kind in {"tool-result", "tool_result", "dynamic-tool"} for kind in kinds)


def _call(call: Object, tally: Tally) -> Iterator[Part]:
    function = as_object(call.get("function")) or as_object(call.get("custom")) or call
    if not string(function.get("name")):
        tally.note("tool call without a name")
        return
    yield tool_call(function.get("name"), function.get("arguments", function.get("input", function.get("args"))), call.get("id"))


def _why_not(value: object, messages: list[object]) -> str:
    """Why a value gives no turn."""
    if messages:
        return "conversation without text"
    if not isinstance(value, dict | list):
        return "not a JSON object"
    if isinstance(value, list):
        return "not a conversation"
    if isinstance(value.get("role"), str):
        return "message without text"
    return f"not a message: {label(value.get('type'))}" if "type" in value else "not a message"
