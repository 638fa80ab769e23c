"""What a reading hands out and what it counts: chunks of conversations, and a report in which every line of the file has its place.

A line is taken (it gave a turn, a part of one, or a title) or skipped for a reason. Notes count what was mended, cut or left out
inside lines that were taken. The sum always holds: `lines == taken + sum(skipped.values())`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from aforesaid.model import Agent, Conversation, File, Part, Reasoning, Text, ToolCall, ToolResult, Turn

CHUNK_BYTES = 2 << 20
TURN_BYTES = 16 << 20
"""Text of one turn that is kept: two of them fit into one request of the service (32 MiB), whatever else stands in it."""

WITHOUT_TEXT = ": no conversation text"
"""Ends the reason of a line that holds none by its nature: there are dozens of kinds."""

# Types and reasons hold names out of the file: a file that makes up a new one on every line must not grow the report without end.
_KINDS = 200
_LABEL = 60
_NONE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some turns of one conversation with its agent; the next chunk of that conversation goes on where this one ends."""

    agent: Agent
    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a file's lines. `skipped` and `notes` map a reason to how often it applied, in the order of the file."""

    lines: int = 0
    taken: int = 0
    skipped: Mapping[str, int] = field(default_factory=lambda: _NONE)
    turns: int = 0
    notes: Mapping[str, int] = field(default_factory=lambda: _NONE)


class Tally:
    """Counts while a file is read."""

    def __init__(self) -> None:
        self.taken = 0
        self.turns = 0
        self._skipped: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()

    def take(self, lines: int = 1) -> None:
        """Counts lines that gave something."""
        self.taken += lines

    def skip(self, why: str, lines: int = 1) -> None:
        """Counts lines that gave nothing, and why."""
        self._skipped[why if why in self._skipped or len(self._skipped) < _KINDS else "other reasons"] += lines

    def note(self, what: str) -> None:
        """Counts something that was mended, cut or left out."""
        self._notes[what if what in self._notes or len(self._notes) < _KINDS else "other notes"] += 1

    def report(self) -> Report:
        """The counts so far."""
        lines = self.taken + self._skipped.total()
        return Report(lines, self.taken, MappingProxyType(dict(self._skipped)), self.turns, MappingProxyType(dict(self._notes)))


def label(value: object) -> str:
    """A name out of a file as a report may show it: one line, short."""
    if not isinstance(value, str) or not value.strip():
        return "untyped line"
    name = " ".join("".join(c if c.isprintable() else " " for c in value[: 4 * _LABEL]).split())
    return name if len(name) <= _LABEL else name[: _LABEL - 1] + "…"


def utf8_length(text: str) -> int:
    """How many bytes a text takes, without making a copy of the common ones."""
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def text_bytes(parts: Iterable[Part]) -> int:
    """How many bytes of text some parts hold."""
    return sum(utf8_length(text) for part in parts for text in _texts(part))


def _texts(part: Part) -> tuple[str, ...]:
    match part:
        case Text(text) | Reasoning(text):
            return (text,)
        case ToolCall(name, arguments, call_id):
            return name, arguments, call_id
        case ToolResult(content, call_id):
            return content, call_id
        case File(media_type, name):
            return media_type, name


def chunks(
    agent: Agent, conversation: Conversation, turns: Iterable[Turn], tally: Tally, limit: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """Packs turns, in order, into chunks of at most `limit` bytes of text; a turn that is larger gets a chunk of its own."""
    packed: list[Turn] = []
    size = 0
    for turn in turns:
        fitting = _fit(turn, tally)
        bytes_of_turn = text_bytes(fitting.parts)
        if packed and size + bytes_of_turn > limit:
            yield Chunk(agent, replace(conversation, turns=tuple(packed)))
            packed, size = [], 0
        packed.append(fitting)
        size += bytes_of_turn
        tally.turns += 1
    if packed:
        yield Chunk(agent, replace(conversation, turns=tuple(packed)))


def _fit(turn: Turn, tally: Tally) -> Turn:
    """Cuts a turn off behind TURN_BYTES of text and says so; the parts before stay whole."""
    if text_bytes(turn.parts) <= TURN_BYTES:
        return turn
    tally.note(f"turn cut off at {TURN_BYTES} bytes")
    kept: list[Part] = []
    room = TURN_BYTES
    for part in turn.parts:
        kept.append(_cut(part, room))
        room -= text_bytes(kept[-1:])
        if room <= 0:
            break
    return replace(turn, parts=tuple(kept))


def _cut(part: Part, room: int) -> Part:
    match part:
        case Text(text):
            return Text(_head(text, room))
        case Reasoning(text):
            return Reasoning(_head(text, room))
        case ToolCall():
            return replace(part, arguments=_head(part.arguments, room))
        case ToolResult():
            # What is left of JSON after a cut is text.
            head = _head(part.content, room)
            return replace(part, content=head, is_json=part.is_json and head == part.content)
        case File():
            return part


def _head(text: str, room: int) -> str:
    return text if utf8_length(text) <= room else text.encode("utf-8")[:room].decode("utf-8", "ignore")
