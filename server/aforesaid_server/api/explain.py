"""Why JSON is not the message that it should be: the path of the first field that is wrong, and what is wrong with it.

Used after the fast reader has refused, for its own errors name no path and quote what people wrote. Here only numbers, enum names
and field names are told, never text. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TypeAlias

from protobuf import (
    DescEnum,
    DescField,
    DescFieldValueEnum,
    DescFieldValueList,
    DescFieldValueMap,
    DescFieldValueMessage,
    DescFieldValueScalar,
    DescMessage,
    ScalarType,
    message_from_json_value,
)

Problem: TypeAlias = tuple[str, str]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ENUM_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_WHOLE = re.compile(r"-?[0-9]{1,30}(\.0{1,30})?")
_RANGES = {
    ScalarType.INT32: (-(2**31), 2**31 - 1),
    ScalarType.SINT32: (-(2**31), 2**31 - 1),
    ScalarType.SFIXED32: (-(2**31), 2**31 - 1),
    ScalarType.UINT32: (0, 2**32 - 1),
    ScalarType.FIXED32: (0, 2**32 - 1),
    ScalarType.INT64: (-(2**63), 2**63 - 1),
    ScalarType.SINT64: (-(2**63), 2**63 - 1),
    ScalarType.SFIXED64: (-(2**63), 2**63 - 1),
    ScalarType.UINT64: (0, 2**64 - 1),
    ScalarType.FIXED64: (0, 2**64 - 1),
}
_INT32 = range(-(2**31), 2**31)
_WELL_KNOWN = {
    "google.protobuf.Timestamp": "a time such as 2026-01-31T12:00:00Z",
    "google.protobuf.FieldMask": "text that names fields in lowerCamelCase, separated by commas",
}


def explain(message: DescMessage, value: object) -> Problem | None:
    """Returns path and problem of the first thing in `value`, from `json.loads`, that is no `message`; None if there is none."""
    return next(_in_message(message, value, ""), None)


def _in_message(message: DescMessage, value: object, path: str) -> Iterator[Problem]:
    if message.type_name in _WELL_KNOWN:
        yield from _in_well_known(message, value, path)
        return
    if not isinstance(value, dict):
        yield path or "request", f"{_described(value)} is not an object"
        return
    fields = {name: field for field in message.fields for name in (field.json_name, field.name)}
    chosen: dict[str, str] = {}
    for key, held in value.items():
        field = fields.get(key)
        if field is None:
            named = _NAME.fullmatch(key) is not None
            yield (_joined(path, key), "no such field") if named else (path or "request", "holds a field that is not known")
            return
        if held is None:
            continue
        choice = _choice(field)
        if choice is not None and chosen.setdefault(choice, field.name) != field.name:
            yield path or "request", f"{chosen[choice]} and {field.name} exclude each other"
        yield from _in_field(field, held, _joined(path, field.name))


def _choice(field: DescField) -> str | None:
    match field.value:
        case DescFieldValueScalar(oneof=oneof) | DescFieldValueMessage(oneof=oneof) | DescFieldValueEnum(oneof=oneof):
            return oneof.name if oneof is not None else None
        case _:
            return None


def _in_field(field: DescField, value: object, path: str) -> Iterator[Problem]:
    match field.value:
        case DescFieldValueScalar(scalar=scalar):
            yield from _in_element(scalar, value, path)
        case DescFieldValueEnum(enum=enum):
            yield from _in_element(enum, value, path)
        case DescFieldValueMessage(message=message):
            yield from _in_element(message, value, path)
        case DescFieldValueList(element=element):
            if not isinstance(value, list):
                yield path, f"{_described(value)} is not a list"
                return
            for place, item in enumerate(value):
                yield from _in_element(element, item, f"{path}[{place}]")
        case DescFieldValueMap(key=key_type, value=value_type):
            if not isinstance(value, dict):
                yield path, f"{_described(value)} is not an object"
                return
            for key, item in value.items():
                # Keys may be anybody's words: the path ends at the map.
                yield from _in_element(key_type, key, path)
                yield from _in_element(value_type, item, path)


def _in_element(element: ScalarType | DescEnum | DescMessage, value: object, path: str) -> Iterator[Problem]:
    if isinstance(element, DescMessage):
        yield from _in_message(element, value, path)
    elif isinstance(element, DescEnum):
        yield from _in_enum(element, value, path)
    elif element is ScalarType.STRING:
        yield from _in_text(value, path)
    elif element is ScalarType.BOOL:
        if not isinstance(value, bool):
            yield path, f"{_described(value)} is not true or false"
    elif element in _RANGES:
        yield from _in_integer(element, value, path)


def _in_text(value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield path, f"{_described(value)} is not text"
        return
    try:
        value.encode()
    except UnicodeEncodeError:
        yield path, "holds half of a surrogate pair, which is no character"


def _in_integer(scalar: ScalarType, value: object, path: str) -> Iterator[Problem]:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        number: int | float = int(value.partition(".")[0])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    else:
        yield path, f"{_described(value)} is not a whole number"
        return
    if not math.isfinite(number) or number != int(number):
        yield path, f"{_described(number)} is not a whole number"
        return
    least, most = _RANGES[scalar]
    if not least <= number <= most:
        yield path, f"{_described(number)} is {'less' if number < least else 'more'} than {least if number < least else most}"


def _in_enum(enum: DescEnum, value: object, path: str) -> Iterator[Problem]:
    names = [known.name for known in enum.values]
    if isinstance(value, str):
        if value not in names:
            told = value if _ENUM_NAME.fullmatch(value) else "text"
            yield path, f"{told} is none of {', '.join(names)}"
    elif not isinstance(value, int) or isinstance(value, bool) or not _INT32.start <= value < _INT32.stop:
        yield path, f"{_described(value)} is none of {', '.join(names)}"


def _in_well_known(message: DescMessage, value: object, path: str) -> Iterator[Problem]:
    try:
        message_from_json_value(message.type, value)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError, RecursionError):
        yield path, f"{_described(value)} is not {_WELL_KNOWN[message.type_name]}"


def _described(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            told = repr(value)
            return told if len(told) <= 40 else "a number of that size"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
