"""JSON as the text of a turn holds it: a line for each of its leaves. The contract of the service, "A turn's text".

Knows no wire and no store: the service takes it from here, so that both read the same text.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEPEST = 500
"""Levels of JSON that are taken apart. The parser's own limit depends on who calls it, and a turn must read as it was written."""
_LONGEST_KEYS = 32 * 1024 * 1024
"""Characters of all keys of one JSON but for their last names: a long key over a long list would fill the memory otherwise."""


class _Number(str):
    """A number of JSON as it was written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON with its keys in order, repeated ones included."""


def _no_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def well_formed(text: str) -> str:
    """Returns a text whose lone surrogates are U+FFFD, so that it has UTF-8 bytes."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def leaves(written: str) -> list[tuple[str, str]] | None:
    """Returns the leaves of JSON in order as (key, value), `a.b` when nested and `a.0` in a list; None for what is not JSON, or too
    deep or too long in its keys to be taken apart.

    Strings are unescaped, numbers and booleans as JSON writes them; null and empty ones are left out. A bare value has the key "".
    """
    try:
        root = json.loads(written, parse_int=_Number, parse_float=_Number, parse_constant=_no_json, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    found: list[tuple[str, str]] = []
    waiting: list[tuple[int, str, Any]] = [(0, "", root)]
    left = _LONGEST_KEYS
    while waiting:
        depth, key, value = waiting.pop()
        prefix = f"{key}." if key else ""
        if isinstance(value, list):
            left -= len(prefix) * len(value)
            if depth == _DEEPEST or left < 0:
                return None
        if isinstance(value, _Pairs):
            waiting.extend((depth + 1, prefix + name, inner) for name, inner in reversed(value))
        elif isinstance(value, list):
            waiting.extend((depth + 1, f"{prefix}{at}", inner) for at, inner in reversed(list(enumerate(value))))
        elif isinstance(value, bool):
            found.append((key, "true" if value else "false"))
        elif value:
            found.append((well_formed(key), well_formed(value)))
    return found


def lines_of(written: str) -> list[str]:
    """Returns the lines `key: value` of JSON, a bare value alone; what is not JSON, or cannot be taken apart, as it stands."""
    pairs = leaves(written)
    if pairs is None:
        return [written]
    return [f"{key}: {value}" if key else value for key, value in pairs]
