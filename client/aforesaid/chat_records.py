"""Chats as applications keep them -> conversations of the service. Nothing here knows the wire.

message_shapes.py reads their messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aforesaid._errors import InvalidArgument
from aforesaid.message_shapes import check_text, message_of, not_a
from aforesaid.model import EMPTY_SCOPE, Conversation, Source, Turn

CHAT_AGENT = "chat"
"""Whose conversations chats are: the agent of this id in the chat's scope."""
MESSAGE = "message"
"""The kind of a reference that names a message."""
LONGEST_ID = 512
"""Bytes of a chat's or a message's id."""

_SHOWN = 64


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A whole chat: its id, its scope, its messages in order, each a ChatMessage where the chat was read, or what can become one.

    An empty title leaves the one that is there. `revision` is the one that it was read at; on writing it is not looked at,
    `expected_revision` is.
    """

    chat_id: str
    scope: Mapping[str, str | None] = field(default_factory=lambda: EMPTY_SCOPE)
    messages: Sequence[Any] = ()
    title: str = ""
    source: Source = Source()
    revision: int = 0


@dataclass(frozen=True, slots=True)
class MessageRef:
    """Names a message, as a memory cites it; `digest` ("sha256:" and 64 hex digits) is that of its text then, or empty."""

    chat_id: str
    message_id: str
    digest: str = ""
    kind: str = MESSAGE


def conversation_of(record: ChatRecord) -> Conversation:
    """Returns what is written for a chat, each message with an id. Raises InvalidArgument."""
    if not isinstance(record, ChatRecord):
        raise not_a("record", "a ChatRecord", record)
    check_id("chat_id", record.chat_id)
    if isinstance(record.messages, str | bytes | Mapping) or not isinstance(record.messages, Sequence):
        raise not_a("messages", "a list of messages", record.messages)
    check_text("title", record.title)
    messages = [message_of(message, f"messages[{at}]") for at, message in enumerate(record.messages)]
    for at, message in enumerate(messages):
        # The ids that are given here to messages without one are a little longer than the chat's.
        if message.message_id and not message.message_id.startswith(f"{record.chat_id}:"):
            check_id(f"messages[{at}].id", message.message_id)
    ids = message_ids(record.chat_id, [message.message_id for message in messages])
    turns = [Turn(one.role, one.parts, named, one.created_at) for one, named in zip(messages, ids, strict=True)]
    return Conversation(record.chat_id, CHAT_AGENT, record.title, tuple(turns), record.source)


def message_ids(chat_id: str, given: Sequence[str]) -> tuple[str, ...]:
    """Returns the ids of a chat's messages: those given, `<chat_id>:<index>` where there is none or one that came before.

    Where an id of that form is given to another message, `:<index>` is added until it is free.
    """
    ids: list[str] = []
    seen: set[str] = set()
    taken = set(given)
    for at, one in enumerate(given):
        named = one
        if not one or one in seen:
            named = f"{chat_id}:{at}"
            while named in taken:
                named += f":{at}"
        seen.add(one)
        ids.append(named)
    return tuple(ids)


def check_id(field: str, value: str) -> None:
    """Raises InvalidArgument for what is no id: not a text, empty, too long."""
    check_text(field, value)
    if not value:
        raise InvalidArgument.of(field, "is empty")
    size = len(value.encode())
    if size > LONGEST_ID:
        raise InvalidArgument.of(field, f"{size} bytes, at most {LONGEST_ID} are allowed: {value[:_SHOWN]}…")


def check_ids(field: str, given: Iterable[str]) -> list[str]:
    """Returns ids as a list. Raises InvalidArgument for one text, which would be taken for a list, and for what is no id."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise not_a(field, "a list of ids", given)
    ids = list(given)
    for at, one in enumerate(ids):
        check_id(f"{field}[{at}]", one)
    return ids


def scope_of(scope: Mapping[str, str | None] | None) -> dict[str, str]:
    """Returns the fields that are set in a scope: None means not set. Raises InvalidArgument."""
    if not isinstance(scope, Mapping | None):
        raise not_a("scope", "a map", scope)
    pairs = {key: value for key, value in (scope or {}).items() if value is not None}
    for key, value in pairs.items():
        for what, text in (("a key", key), ("a value", value)):
            if not isinstance(text, str):
                raise InvalidArgument.of("scope", f"{what} must be a text, and is of type {type(text).__name__}")
            check_text("scope", text)
    return pairs


def ref_of(ref: MessageRef | Mapping[str, Any], field: str = "ref") -> MessageRef:
    """Returns a reference for one, or for a map with its fields, written as here or as JavaScript does. Raises InvalidArgument.

    Of one of another kind nothing but that is looked at: it names no message.
    """
    if isinstance(ref, Mapping) and ref.get("kind") not in {None, "", MESSAGE}:
        return MessageRef("", "", kind=str(ref["kind"]))
    if isinstance(ref, Mapping):
        named = {
            "chat_id": ref.get("chat_id", ref.get("chatId")),
            "message_id": ref.get("message_id", ref.get("messageId")),
            "digest": ref.get("digest") or "",
            "kind": MESSAGE,
        }
    elif isinstance(ref, MessageRef):
        named = {"chat_id": ref.chat_id, "message_id": ref.message_id, "digest": ref.digest, "kind": ref.kind}
    else:
        raise not_a(field, "a MessageRef or a map", ref)
    for key, value in named.items():
        check_text(f"{field}.{key}", value)
    return MessageRef(**named)
