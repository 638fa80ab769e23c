"""Messages of the common shapes -> who speaks and the parts of it, and back. Nothing here knows the wire.

A message is a `ChatMessage`, a `Turn` or what else has a `role` and `parts`, or a map of one of the common shapes: OpenAI's chat
messages and items of its Responses interface, Anthropic's blocks of content, the AI SDK's model messages and UI messages (with
`parts`), and what `ChatMessage.to_dict` gives. Objects of those SDKs, which know how to become a map (`model_dump`), are taken as
that map. Times and ids in arguments and results become text. Of files and images only type and name are kept.

    role                 content                                                   becomes
    user, assistant      "text", or a list of texts and blocks                     Text, Reasoning, ToolCall, ToolResult, File
    tool                 what one call gave (`tool_call_id`), or a list of results ToolResult: text is plain, else JSON
    developer, function                                                            the roles system and tool
    none                 an item by its `type`: a call, a result, thoughts         the roles assistant and tool
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from aforesaid._errors import InvalidArgument
from aforesaid._replies import StoredTurn
from aforesaid.formats.chat_messages import ROLES, message_parts
from aforesaid.formats.parts import read_block, reasoning, tool_call, tool_result
from aforesaid.formats.tally import Tally
from aforesaid.formats.values import Object, as_object, microseconds, string
from aforesaid.model import File, Part, Reasoning, Text, ToolCall, ToolResult

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# A number this large is no time in milliseconds before the year 5138.
_LEAST_MICROSECONDS = 10**14
_TOOL = "tool"
_PARTS = (Text, Reasoning, ToolCall, ToolResult, File)
_KEYS = frozenset({"role", "type", "content", "parts"})
_ARGUMENTS = ("arguments", "input", "action", "code", "queries")
"""What a call is made with, as the items of the Responses interface name it."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a chat: who speaks, what it is made of, its id, and when it was said (microseconds since 1970)."""

    role: str
    parts: tuple[Part, ...]
    message_id: str = ""
    created_at: int | None = None

    @property
    def text(self) -> str:
        """What is said in it: its text parts and plain tool results, joined by newlines."""
        return "\n".join(text for part in self.parts for text in _spoken(part))

    def to_dict(self) -> dict[str, Any]:
        """Returns the message as a map of plain values: `id`, `role`, `content`, `created_at`. Read back it is the same message.

        `content` is a text where the message is one, else a list of maps by `type`: text, reasoning, tool_call, tool_result, file.
        """
        content: object = [_part_dict(part) for part in self.parts]
        match self.parts:
            # A text in a tool's message would be what a call gave.
            case () if self.role != _TOOL:
                content = ""
            case (Text(text),) if text and self.role != _TOOL:
                content = text
        made: dict[str, Any] = {"id": self.message_id} if self.message_id else {}
        made |= {"role": self.role, "content": content}
        if self.created_at is not None:
            made["created_at"] = (_EPOCH + self.created_at * _MICROSECOND).isoformat()
        return made


def message_of(given: object, field: str = "message") -> ChatMessage:
    """Returns the message for one, for a turn, or for a map. Raises InvalidArgument that names the `field`."""
    if _is_turn(given):
        role, parts = _of_turn(given, field)
        message_id, created_at = getattr(given, "message_id", getattr(given, "turn_id", "")), getattr(given, "created_at", None)
    else:
        fields = _map(given, field)
        role, parts = _of_map(fields, field)
        message_id = next((fields[key] for key in ("id", "message_id", "messageId") if fields.get(key) is not None), "")
        created_at = _time(fields, field)
    check_text(f"{field}.role", role)
    if not role:
        raise InvalidArgument.of(f"{field}.role", "is empty")
    check_text(f"{field}.id", message_id)
    for text in (text for part in parts for text in _fields_of(part)):
        check_text(f"{field}.parts", text)
    return ChatMessage(ROLES.get(role, role), parts, message_id, created_at)


def message_of_turn(turn: StoredTurn) -> ChatMessage:
    """Returns the message for a turn that the service keeps."""
    return ChatMessage(turn.role, turn.parts, turn.turn_id, turn.created_at)


def said_in(given: object, field: str = "message") -> tuple[str, tuple[Part, ...]]:
    """Returns what `message_of` reads from, as it was written: the role, empty where there is none, and the parts.

    Its id and its time are not looked at, and texts may have no UTF-8. Raises InvalidArgument for what is no message.
    """
    return _of_turn(given, field) if _is_turn(given) else _of_map(_map(given, field), field)


def check_text(field: str, text: object) -> None:
    """Raises InvalidArgument for what is no text, and for one that has no UTF-8."""
    if not isinstance(text, str):
        raise not_a(field, "a text", text)
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument.of(field, f"holds half a character (U+{ord(text[error.start]):04X})") from None


def check_number(field: str, number: object) -> None:
    """Raises InvalidArgument for what is no whole number."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise not_a(field, "a whole number", number)


def not_a(field: str, wanted: str, given: object) -> InvalidArgument:
    """Returns the error for a value of another type than is wanted."""
    # Its type and not its value, which may be what somebody said.
    return InvalidArgument.of(field, f"must be {wanted}, and is of type {type(given).__name__}")


# Turns, and maps of the common shapes


def _is_turn(given: object) -> bool:
    return not isinstance(given, Mapping) and _dump(given) is None and hasattr(given, "role") and hasattr(given, "parts")


def _of_turn(given: Any, field: str) -> tuple[str, tuple[Part, ...]]:
    if not isinstance(given.role, str):
        raise not_a(f"{field}.role", "a text", given.role)
    for part in given.parts if isinstance(given.parts, Iterable) else (given.parts,):
        if not isinstance(part, _PARTS):
            raise not_a(f"{field}.parts", "a list of Text, Reasoning, ToolCall, ToolResult and File", part)
    return given.role, tuple(given.parts)


def _of_map(fields: Object, field: str) -> tuple[str, tuple[Part, ...]]:
    if _KEYS.isdisjoint(fields):
        raise InvalidArgument.of(field, "is no message: it has neither a role nor a content")
    role = fields.get("role")
    if not isinstance(role, str | None):
        raise not_a(f"{field}.role", "a text", role)
    try:
        plain = as_object(_plain(fields))
        kind = string(fields.get("type"))
        if not role and (kind == "reasoning" or kind.endswith(("_call", "_call_output"))):
            return _TOOL if kind.endswith("_output") else "assistant", tuple(_item(kind, plain))
        return role or "", tuple(_said(plain, field))
    except RecursionError:
        raise InvalidArgument.of(field, "is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise InvalidArgument.of(field, f"holds what cannot be written as JSON: {error}") from None


def _said(fields: Object, field: str) -> Iterator[Part]:
    content = fields.get("parts") or fields.get("content")
    if not isinstance(content, str | list | dict | None):
        raise not_a(f"{field}.content", "a text or a list of parts", content)
    if isinstance(content, dict) and fields.get("role") not in {_TOOL, "function"}:
        content = [content]
    for at, block in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(block, (str, dict, *_PARTS)):
            raise not_a(f"{field}.content[{at}]", "a text, a part or a map", block)
    if _is_ours(fields, content):
        yield from _read(content, Tally())
        return
    others = {key: value for key, value in fields.items() if key != "content"}
    yield from message_parts(others if content is None else {**others, "content": content}, Tally(), _read)
    # Where a message of the AI SDK has parts, they hold the same once more.
    invocations = None if fields.get("parts") else fields.get("toolInvocations")
    for one in invocations if isinstance(invocations, list) else ():
        yield from read_block({"type": "tool-invocation", "toolInvocation": one}, Tally())


def _is_ours(fields: Object, content: object) -> bool:
    """Tells whether a tool's message lists parts, and not what one call gave, which it would name."""
    return (
        isinstance(content, list)
        and fields.get("role") == _TOOL
        and (not fields.get("tool_call_id") or any(isinstance(block, _PARTS) for block in content))
    )


def _item(kind: str, fields: Object) -> Iterator[Part]:
    """Reads an item of the Responses interface that is no message: a call, maybe with its result, a result, or thoughts."""
    for key in ("summary", "content"):
        thoughts = fields.get(key)
        for block in thoughts if isinstance(thoughts, list) else ():
            yield from reasoning(as_object(block).get("text"))
    call_id, output = fields.get("call_id") or fields.get("id"), fields.get("output")
    if kind.endswith("_call"):
        arguments = next((fields[key] for key in _ARGUMENTS if fields.get(key) is not None), None)
        yield tool_call(fields.get("name") or kind.removesuffix("_call"), arguments, call_id)
    if output is not None:
        # One block is no JSON: it may be an image.
        yield from tool_result([output] if "type" in as_object(output) else output, call_id, Tally())


def _map(given: object, field: str) -> Object:
    dump = _dump(given)
    if dump is not None:
        given = dump(exclude_none=True)
    if not isinstance(given, Mapping):
        raise not_a(field, "a ChatMessage, a Turn or a map", given)
    return given


def _dump(given: object) -> Callable[..., object] | None:
    dump = getattr(given, "model_dump", None)
    return dump if callable(dump) and not isinstance(given, type) else None


def _plain(value: object) -> object:
    """Returns a value as JSON has it: maps and objects of SDKs as dicts, sequences as lists, times and ids as text."""
    match value:
        case str() | None:
            return value
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case date() | time() | UUID() | Decimal():
            return str(value)
        case _:
            dump = _dump(value)
            return value if dump is None else _plain(dump(exclude_none=True))


def _read(content: object, tally: Tally) -> list[Part]:
    """Reads a content as the formats do, but keeps what was written here as it is, blank texts too."""
    if isinstance(content, str):
        return [Text(content)] if content else []
    blocks = content if isinstance(content, list) else []
    return [part for block in blocks for part in _parts_of(block, tally)]


def _parts_of(block: object, tally: Tally) -> list[Part]:
    if isinstance(block, _PARTS):
        return [block]
    if isinstance(block, str):
        return [Text(block)] if block else []
    kept = _kept_part(as_object(block))
    return [kept] if kept is not None else list(read_block(block, tally))


def _kept_part(block: Object) -> Part | None:
    """Returns the part for a map that `_part_dict` made, or somebody by hand; None for one of another shape."""
    text = block.get("text")
    match block.get("type"):
        case "text" | "input_text" | "output_text" if isinstance(text, str):
            return Text(text)
        case "reasoning" if isinstance(text, str):
            return Reasoning(text)
        case "tool_call":
            return tool_call(block.get("name"), block.get("arguments"), block.get("call_id"))
        case "tool_result" if "call_id" in block and ("text" in block or "json" in block):
            is_json = "json" in block
            return ToolResult(
                string(block["json"] if is_json else text), string(block["call_id"]), is_json, block.get("is_error") is True
            )
        case "file" if set(block) <= {"type", "media_type", "name"}:
            return File(string(block.get("media_type")), string(block.get("name")))
        case _:
            return None


def _time(fields: Object, field: str) -> int | None:
    for key in ("created_at", "createdAt", "timestamp"):
        given = fields.get(key)
        if given is None:
            continue
        if isinstance(given, datetime):
            given = given.isoformat() if given.tzinfo else None
        found = given if isinstance(given, int) and given >= _LEAST_MICROSECONDS else microseconds(given)
        if found is None:
            raise InvalidArgument.of(f"{field}.{key}", f"is no time with a zone: {fields[key]}")
        return found
    return None


# Parts


def _spoken(part: Part) -> tuple[str, ...]:
    match part:
        case Text(text) | ToolResult(text, is_json=False):
            return (text,)
        case _:
            return ()


def _fields_of(part: Part) -> tuple[str, ...]:
    match part:
        case Text(text) | Reasoning(text):
            return (text,)
        case ToolCall(name, arguments, call_id):
            return name, arguments, call_id
        case ToolResult(content, call_id):
            return content, call_id
        case File(media_type, name):
            return media_type, name


def _part_dict(part: Part) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Reasoning(text):
            return {"type": "reasoning", "text": text}
        case ToolCall(name, arguments, call_id):
            return {"type": "tool_call", "name": name, "arguments": arguments, "call_id": call_id}
        case ToolResult(content, call_id, is_json, is_error):
            said = {"type": "tool_result", "call_id": call_id, "json" if is_json else "text": content}
            return {**said, "is_error": True} if is_error else said
        case File(media_type, name):
            return {"type": "file", "media_type": media_type, "name": name}
