"""The fields of a request as flags, and the flags as a request again: what `aforesaid rpc` takes, derived from the descriptors.

`agent_id` is --agent-id, `pagination.limit` --pagination.limit. A repeated field is its flag repeated, a map KEY=VALUE repeated, an
enum a name with or without its prefix, a time what `when.py` reads, any message JSON. The help is the comment in the proto file.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click
from click.shell_completion import CompletionItem
from protobuf import (
    DescEnum,
    DescField,
    DescFieldValueEnum,
    DescFieldValueList,
    DescFieldValueMap,
    DescFieldValueMessage,
    DescFieldValueScalar,
    DescMessage,
    Message,
    ScalarType,
)

from aforesaid._errors import InvalidArgument
from aforesaid.cli.options import PAIR, TEXT, name_of, scope_of
from aforesaid.cli.when import WHEN

TIMESTAMP, FIELD_MASK = "google.protobuf.Timestamp", "google.protobuf.FieldMask"

_INTEGERS = frozenset(kind for kind in ScalarType if re.search(r"INT|FIXED", kind.name))
_COMMENT = re.compile(r"^ {4}(\w+):\n((?: {8}.*\n|\n)+?)\s*^ {8}```proto", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Flag:
    """One field as an option. `path` are its names in JSON, `to_json` what makes the option's value one of JSON."""

    option: click.Option
    path: tuple[str, ...]
    to_json: Callable[[Any], Any]


def flags(message: DescMessage) -> list[Flag]:
    """Returns a flag for each field of a message, and for those of the messages in it that are not repeated."""
    return list(_flags(message, (), (), frozenset()))


def request_of(kind: type[Message], body: object, given: Mapping[Flag, Any]) -> Message:
    """Builds a request from a JSON body and, over it, the flags. Raises InvalidArgument."""
    try:
        fields = json.loads(_read(kind, body).to_json())
        for flag, value in given.items():
            _put(fields, flag.path, flag.to_json(value))
        return _read(kind, fields)
    except InvalidArgument:
        raise
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidArgument(f"the request cannot be read: {_one_line(str(error))}") from error


def comment_of(documented: object) -> str:
    """Returns the comment of the proto file that the generated code carries for a message or method, on one line."""
    return _one_line((inspect.getdoc(documented) or "").partition("```proto")[0])


def _read(kind: type[Message], body: object) -> Message:
    return kind.from_json(json.dumps(body))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _put(fields: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for name in path[:-1]:
        fields = fields.setdefault(name, {})
    fields[path[-1]] = value


def _flags(message: DescMessage, names: tuple[str, ...], path: tuple[str, ...], above: frozenset[str]) -> Iterator[Flag]:
    comments = _comments(message.type)
    for field in message.fields:
        flag = _flag(field, (*names, field.name), (*path, field.json_name), comments.get(field.name, ""))
        yield flag
        inner = field.value.message if isinstance(field.value, DescFieldValueMessage) else None
        if inner is not None and inner.type_name not in {TIMESTAMP, FIELD_MASK, message.type_name, *above}:
            yield from _flags(inner, (*names, field.name), (*path, field.json_name), above | {message.type_name})


def _flag(field: DescField, names: tuple[str, ...], path: tuple[str, ...], comment: str) -> Flag:
    name = ".".join(names).replace("_", "-")
    kind = _kind(field)
    declared = [f"--{name}/--no-{name}" if kind.is_flag else f"--{name}", "field_" + "__".join(names)]
    if kind.is_flag:
        return Flag(click.Option(declared, default=None, help=comment), path, kind.to_json)
    option = click.Option(declared, default=None, help=comment, multiple=kind.many, metavar=kind.metavar, type=kind.type)
    return Flag(option, path, kind.to_json)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How values of a field are typed."""

    type: click.ParamType[Any] = TEXT
    metavar: str | None = "TEXT"
    many: bool = False
    is_flag: bool = False
    to_json: Callable[[Any], Any] = lambda value: value


def _kind(field: DescField) -> _Kind:
    match field.value:
        case DescFieldValueMap(value=ScalarType.STRING):
            return _Kind(PAIR, "KEY=VALUE", many=True, to_json=lambda pairs: scope_of(pairs, field.name))
        case DescFieldValueMap():
            return _Kind(JSON, "JSON")
        case DescFieldValueList(element=element):
            one = _kind_of(element)
            if one.type is JSON:
                return _Kind(JSON, "JSON", many=True, to_json=_flattened)
            return _Kind(one.type, one.metavar, many=True, to_json=lambda values: [one.to_json(value) for value in values])
        case DescFieldValueScalar(scalar=element) | DescFieldValueEnum(enum=element) | DescFieldValueMessage(message=element):
            return _kind_of(element)


def _kind_of(element: object) -> _Kind:
    match element:
        case ScalarType.BOOL:
            return _Kind(click.BOOL, "BOOLEAN", is_flag=True)
        case ScalarType.STRING:
            return _Kind()
        case ScalarType() if element in _INTEGERS:
            return _Kind(click.INT, "N")
        case ScalarType.DOUBLE | ScalarType.FLOAT:
            return _Kind(click.FLOAT, "NUMBER")
        case DescEnum():
            return _Kind(EnumType(element), None)
        case DescMessage(type_name="google.protobuf.Timestamp"):
            return _Kind(WHEN, "WHEN", to_json=_time)
        case DescMessage(type_name="google.protobuf.FieldMask"):
            return _Kind(TEXT, "FIELD", many=True, to_json=lambda names: ",".join(map(_camel, names)))
        case _:
            return _Kind(JSON, "JSON")


def _time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _camel(name: str) -> str:
    return re.sub("[-_]([a-z])", lambda match: match[1].upper(), name)


def _flattened(values: object) -> list[object]:
    """Each value of a repeated message is one of them or a list of them."""
    assert isinstance(values, tuple)
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


def _comments(kind: type) -> dict[str, str]:
    """The comments of a message's fields or an enum's values, by name, from the docstring of the generated class."""
    return {found[1]: _one_line(found[2]) for found in _COMMENT.finditer(inspect.getdoc(kind) or "")}


class JsonType(click.ParamType[Any]):
    """JSON, such as {"text": "x"}."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the value that the text means. Raises InvalidArgument."""
        try:
            return json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError) as error:
            raise InvalidArgument.of(name_of(param), f"must be JSON: {_one_line(str(error))}") from None


JSON = JsonType()


class EnumType(click.ParamType[str]):
    """A name of an enum, in any case, with or without its prefix."""

    name = "enum"

    def __init__(self, enum: DescEnum) -> None:
        self._names = {value.local_name.lower(): value.name for value in enum.values}
        self._comments = _comments(enum.type)
        self._enum = enum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the name as JSON has it. Raises InvalidArgument that lists the names."""
        wanted = str(value).lower().replace("-", "_")
        for short, name in self._names.items():
            if wanted in {short, name.lower()}:
                return name
        raise InvalidArgument.of(name_of(param), f"must be one of {', '.join(self._shown())}: {value}")

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Offers the names that begin so, with their comments."""
        begin = incomplete.lower().replace("-", "_")
        return [
            CompletionItem(short, help=self._comments.get(short.upper()))
            for short in self._shown()
            if short.startswith(begin) or self._names[short].lower().startswith(begin)
        ]

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Returns the names, for the help."""
        return "|".join(self._shown())

    def _shown(self) -> list[str]:
        return [short for short in self._names if short != "unspecified"]
