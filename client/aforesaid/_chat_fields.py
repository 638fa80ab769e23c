"""Errors of the service in the words of chats: it names the fields of conversations and turns, a caller of chats gave others."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from aforesaid._errors import AforesaidError, FieldViolation, InvalidArgument

Asked = ParamSpec("Asked")
Value = TypeVar("Value")

# What the wire calls a field, and what it is called here. The first that an error begins with counts.
_FIELDS = (
    ("conversation.conversation_id", "chat_id"),
    ("conversation.turns", "messages"),
    ("conversation.", ""),
    ("conversation_ids", "chat_ids"),
    ("conversation_id", "chat_id"),
    ("source.conversation_id", "ref.chat_id"),
    ("source.turn_id", "ref.message_id"),
    ("source.", "ref."),
)


def asked(call: Callable[Asked, Value], *args: Asked.args, **kwargs: Asked.kwargs) -> Value:
    """Calls, and returns what comes back. An error names the fields as callers of chats know them."""
    try:
        return call(*args, **kwargs)
    except AforesaidError as error:
        message = _known_here(error.message)
        if message != error.message:
            error.message, error.args = message, (message,)
            if isinstance(error, InvalidArgument):
                error.violations = tuple(FieldViolation(_known_here(one.field), one.description) for one in error.violations)
        raise


def _known_here(text: str) -> str:
    for there, here in _FIELDS:
        if text.startswith(there):
            return here + text[len(there) :].replace(".turn_id", ".id", 1)
    return text
