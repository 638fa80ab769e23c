"""Bytes to messages and back, for every door. What cannot be read is refused with the field's name and never with the text itself.

JSON is read strictly: an unknown field or enum name is refused, because a search that silently ignores one would answer another
question. In protobuf's binary form unknown fields are skipped, as everywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from connectrpc.codec import Codec
from protobuf import (
    DescEnum,
    DescFieldValue,
    DescFieldValueEnum,
    DescFieldValueList,
    DescFieldValueMap,
    DescFieldValueMessage,
    DescMessage,
    Message,
    Registry,
)

from aforesaid.agent.v1 import agent_service_pb, audit_service_pb, conversation_service_pb
from aforesaid_server.api.explain import explain
from aforesaid_server.api.interceptors import unwritable
from aforesaid_server.api.translate import connect_error
from aforesaid_server.errors import AforesaidError, InvalidArgument

M = TypeVar("M", bound=Message)

REGISTRY = Registry(agent_service_pb.desc(), conversation_service_pb.desc(), audit_service_pb.desc())

# Our messages are seven deep at most.
MAX_DEPTH = 64
# protobuf-py 0.7 reads a value of the wrong type by recursion without a limit: 1 MB of `[` ended the process on an 8 MiB stack,
# 10,000 did not. So few brackets cannot be too deep; more are looked at.
FEW_BRACKETS = 1000

# A string that does not end goes to the end, or each of its quotes would be looked at as the beginning of another one.
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")


class BinaryCodec(Codec[Message, M]):
    """Protobuf's binary form."""

    def name(self) -> str:
        """Returns the name in content types."""
        return "proto"

    def encode(self, message: Message) -> bytes:
        """Returns the bytes of a message. Raises ConnectError, internal, for one that has none."""
        try:
            return message.to_binary()
        except (ValueError, TypeError) as error:
            raise unwritable(error) from None

    def decode(self, data: bytes | bytearray, message_class: type[M]) -> M:
        """Returns the message of the bytes. Raises ConnectError, invalid_argument."""
        try:
            return read_binary(message_class, data)
        except AforesaidError as error:
            raise connect_error(error) from None


class JsonCodec(Codec[Message, M]):
    """Proto3's JSON form."""

    def name(self) -> str:
        """Returns the name in content types."""
        return "json"

    def encode(self, message: Message) -> bytes:
        """Returns the JSON of a message, zero values left out. Raises ConnectError, internal, for one that has none."""
        try:
            return message.to_json(registry=REGISTRY).encode()
        except (ValueError, TypeError) as error:
            raise unwritable(error) from None

    def decode(self, data: bytes | bytearray, message_class: type[M]) -> M:
        """Returns the message of the JSON. Raises ConnectError, invalid_argument."""
        try:
            return read_json(message_class, data)
        except AforesaidError as error:
            raise connect_error(error) from None


def read_binary(message_class: type[M], data: bytes | bytearray) -> M:
    """Returns the message of protobuf's binary form. Raises InvalidArgument."""
    try:
        return message_class.from_binary(data)
    except UnicodeDecodeError:
        raise InvalidArgument("request", "holds text that is not UTF-8") from None
    except (ValueError, RecursionError):
        raise InvalidArgument("request", f"is no {message_class.desc().type_name} in protobuf's binary form") from None


def read_json(message_class: type[M], data: bytes | bytearray) -> M:
    """Returns the message of its JSON form. Raises InvalidArgument with the field where it can be known."""
    if _too_deep(data):
        raise InvalidArgument("request", f"is nested more than {MAX_DEPTH} deep")
    try:
        message = message_class.from_json(data, registry=REGISTRY)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise _reason(message_class, data) from None
    shape = _shape(message_class)
    if shape.choices and _may_choose_twice(data) and (problem := _explained(message_class, data)) is not None:
        # protobuf-py keeps the last one of a oneof and drops the others without a word.
        raise problem
    if shape.enums and not _fits(message):
        raise _reason(message_class, data)
    return message


def _fits(message: Message) -> bool:
    """Tells whether a message can be written: protobuf-py takes any number for an enum, also one of more than 32 bits."""
    try:
        message.to_binary()
    except OverflowError:
        return False
    return True


def _too_deep(data: bytes | bytearray) -> bool:
    """Tells whether JSON is nested deeper than MAX_DEPTH. 0.1 µs for each string and bracket, up to the one that is too deep."""
    if data.count(b"[") + data.count(b"{") <= FEW_BRACKETS:
        return False
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(data):
        first = data[token.start()]
        if first in _OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif first in _CLOSING:
            depth -= 1
    return False


def _reason(message_class: type[Message], data: bytes | bytearray) -> InvalidArgument:
    try:
        found = _explained(message_class, data)
    except json.JSONDecodeError as error:
        return InvalidArgument("request", f"is not JSON: line {error.lineno} column {error.colno}")
    except (ValueError, RecursionError):
        return InvalidArgument("request", "is not JSON in UTF-8")
    return found or InvalidArgument("request", f"is no {message_class.desc().type_name} in JSON")


def _explained(message_class: type[Message], data: bytes | bytearray) -> InvalidArgument | None:
    found = explain(message_class.desc(), json.loads(data.decode()))
    return InvalidArgument(*found) if found is not None else None


@dataclass(frozen=True, slots=True)
class Shape:
    """Whether a message holds a oneof, and whether it holds an enum, at any depth."""

    choices: bool
    enums: bool


_shapes: dict[type[Message], Shape] = {}


def _shape(message_class: type[Message]) -> Shape:
    if message_class not in _shapes:
        found = list(_messages(message_class.desc(), set()))
        enums = any(_is_enum(field.value) for message in found for field in message.fields)
        _shapes[message_class] = Shape(any(message.oneofs for message in found), enums)
    return _shapes[message_class]


def _messages(message: DescMessage, seen: set[str]) -> Iterator[DescMessage]:
    """Yields a message and those that it holds, at any depth."""
    if message.type_name in seen:
        return
    seen.add(message.type_name)
    yield message
    for field in message.fields:
        match field.value:
            case (
                DescFieldValueMessage(message=DescMessage() as held)
                | DescFieldValueList(element=DescMessage() as held)
                | DescFieldValueMap(value=DescMessage() as held)
            ):
                yield from _messages(held, seen)
            case _:
                pass


def _is_enum(value: DescFieldValue) -> bool:
    match value:
        case DescFieldValueEnum() | DescFieldValueList(element=DescEnum()) | DescFieldValueMap(value=DescEnum()):
            return True
        case _:
            return False


def _may_choose_twice(data: bytes | bytearray) -> bool:
    """Tells whether some object of the JSON has two keys of one oneof; cheap, and it may be wrong the other way round."""
    twice = False

    def look(found: dict[str, object]) -> dict[str, object]:
        nonlocal twice
        if len(found) > 1 and not twice:
            twice = len(_PART_KEYS & found.keys()) > 1 or found.keys() >= _RESULT_KEYS
        return found

    json.loads(data, object_hook=look)
    return twice


_PART_KEYS = frozenset({"text", "reasoning", "toolCall", "tool_call", "toolResult", "tool_result", "file"})
_RESULT_KEYS = frozenset({"text", "json"})
