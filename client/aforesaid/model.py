"""The nouns of aforesaid as plain values: what formats read, clients send and the server keeps.

Nothing here knows protobuf, a database or an index. Times are microseconds since 1970-01-01 UTC; texts may hold any Unicode
scalar value, NUL included, but no lone surrogate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

EMPTY_SCOPE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Text:
    """Text that was said."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text that was thought."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; `arguments` as they were written, usually JSON."""

    name: str
    arguments: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered: plain text, or JSON as it was written where `is_json`."""

    content: str
    call_id: str = ""
    is_json: bool = False
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """A file or image by type and name, never its bytes."""

    media_type: str
    name: str = ""


Part: TypeAlias = Text | Reasoning | ToolCall | ToolResult | File


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as it is written. An empty `turn_id` is filled in by the service; `created_at` None means now."""

    role: str
    parts: tuple[Part, ...]
    turn_id: str = ""
    created_at: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a conversation came from: the format's name, the file, the project folder."""

    format: str = ""
    file: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class SourceRef:
    """Names a turn, as a memory cites it; `digest` ("sha256:" and 64 hex digits) is that of its text then, or empty.

    An empty `agent_id` is any agent of the scope.
    """

    conversation_id: str
    turn_id: str
    digest: str = ""
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """Somebody with conversations, known by scope and id together."""

    agent_id: str
    name: str = ""
    role: str = ""
    archived: bool = False
    scope: Mapping[str, str] = field(default_factory=lambda: EMPTY_SCOPE)
    parent_agent_id: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One chat of one agent as it is written, its turns in order."""

    conversation_id: str
    agent_id: str
    title: str = ""
    turns: tuple[Turn, ...] = ()
    source: Source = Source()
