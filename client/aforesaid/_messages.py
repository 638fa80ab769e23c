"""What `transcript_search` looks at: the messages of a conversation, and of each its role and the texts of its parts.

message_shapes.py knows the shapes that messages come in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from aforesaid import message_shapes
from aforesaid._errors import InvalidArgument
from aforesaid.leaves import lines_of, well_formed
from aforesaid.model import File, Part, Reasoning, Text, ToolCall, ToolResult

_MESSAGES = ("messages", "turns")


class NotReadable(Exception):
    """A conversation that cannot be searched; its text is the reason."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message: its role, and its texts in order. Letters are looked for in each text by itself."""

    role: str
    texts: tuple[str, ...]


def messages_of(conversation: object) -> Iterator[object]:
    """Yields the messages of a conversation: a list of them, or a map or value that holds them as `messages` or `turns`.

    Raises NotReadable for anything else. None is a conversation that is gone, without messages.
    """
    if conversation is None:
        return
    listed: object = conversation
    if not _is_list(conversation):
        values = (
            conversation.get(name) if isinstance(conversation, Mapping) else getattr(conversation, name, None) for name in _MESSAGES
        )
        listed = next((value for value in values if value is not None), None)
    if not _is_list(listed) or not isinstance(listed, Iterable):
        raise NotReadable(f"is of type {type(conversation).__name__} and holds no list of messages")
    yield from listed


def said_in(message: object) -> Said:
    """Returns what a message says. Raises NotReadable for what is no message."""
    try:
        role, parts = message_shapes.said_in(message)
    except InvalidArgument as error:
        raise NotReadable(error.message.removeprefix("message: ")) from None
    texts = (_text(part) for part in parts)
    return Said(well_formed(role) or "unknown", tuple(well_formed(text) for text in texts if text))


def _text(part: Part) -> str:
    """The text of a part as it is looked through; empty for reasoning, files, and the name of a tool."""
    match part:
        case Text(text):
            return text
        case ToolCall(arguments=arguments):
            return arguments
        case ToolResult(content, is_json=is_json):
            return "\n".join(lines_of(content)) if is_json else content
        case Reasoning() | File():
            return ""
        case _:
            assert_never(part)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) and not hasattr(value, "model_dump")
