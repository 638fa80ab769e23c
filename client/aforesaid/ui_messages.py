"""Messages of a chat -> what a chat's user interface renders: the AI SDK's UI messages, under the ids that the service keeps.

One rendered message for each message, so that a hit, a cited source and a rendered message name the same one. A call of a tool and
its result are `dynamic-tool` parts that share the call's id; a message that answers a call stays a message of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from aforesaid._errors import InvalidArgument
from aforesaid.message_shapes import message_of
from aforesaid.model import File, Part, Reasoning, Text, ToolCall, ToolResult


def ui_messages(messages: Sequence[object], make_id: Callable[[], str], *, message_ids: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Renders messages as maps with `id`, `role` and `parts`.

    The id of each is that of `message_ids` (what a write returned) at its place, else its own, else a new one of `make_id`. Raises
    InvalidArgument, also for more ids than messages.
    """
    if isinstance(message_ids, str) or len(message_ids) > len(messages):
        raise InvalidArgument.of("message_ids", f"{len(message_ids)} ids for {len(messages)} messages")
    read = [message_of(message, f"messages[{at}]") for at, message in enumerate(messages)]
    names = {part.call_id: part.name for message in read for part in message.parts if isinstance(part, ToolCall)}
    rendered = []
    for at, message in enumerate(read):
        stored = message_ids[at] if at < len(message_ids) else ""
        parts = [_rendered(part, names) for part in message.parts]
        rendered.append({"id": stored or message.message_id or make_id(), "role": message.role, "parts": parts})
    return rendered


def _rendered(part: Part, names: dict[str, str]) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Reasoning(text):
            return {"type": "reasoning", "text": text}
        case ToolCall(name, arguments, call_id):
            tool = {"type": "dynamic-tool", "toolName": name, "toolCallId": call_id}
            return {**tool, "state": "input-available", "input": _value(arguments, structured=True)}
        case ToolResult(content, call_id, is_json, is_error):
            tool = {"type": "dynamic-tool", "toolName": names.get(call_id, ""), "toolCallId": call_id}
            if is_error:
                return {**tool, "state": "output-error", "errorText": content}
            return {**tool, "state": "output-available", "output": _value(content) if is_json else content}
        case File(media_type, name):
            return {"type": "file", "mediaType": media_type, "filename": name}


def _value(written: str, *, structured: bool = False) -> Any:
    """Returns the value of JSON; the text itself where it is none, or where only an object or a list will do."""
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        return written
    return value if isinstance(value, dict | list) or not structured else written
