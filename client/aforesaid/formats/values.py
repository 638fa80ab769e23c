"""Fields of JSON values that may hold anything: objects, strings, ids and times, each with an answer for what is not one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, cast

from aforesaid.formats.lines import AsTyped

Object: TypeAlias = Mapping[str, object]

_NOTHING: Object = {}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LONGEST_ID = 200
_UNDECODED = re.compile("[\ud800-\udfff]")


def as_object(value: object) -> Object:
    """The value where it is a JSON object, an empty one otherwise."""
    return cast("Object", value) if isinstance(value, dict) else _NOTHING


def string(value: object) -> str:
    """The value where it is a string, an empty one otherwise."""
    return value if isinstance(value, str) and not isinstance(value, AsTyped) else ""


def identifier(value: object) -> str:
    """The value where it can serve as an id: not blank, not endless, without NUL; an empty string otherwise."""
    text = string(value)
    return text if text.strip() and len(text) <= _LONGEST_ID and "\0" not in text else ""


def on_disk(name: str) -> str:
    """A file's name or path as text: bytes that are no UTF-8 replaced by U+FFFD."""
    return _UNDECODED.sub("\ufffd", name)


def microseconds(value: object) -> int | None:
    """A time as microseconds since 1970: ISO 8601 (UTC where it names no zone), or seconds or milliseconds as a number."""
    if isinstance(value, str):
        return _from_iso(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return None
    # 1e11 seconds is the year 5138, 1e11 milliseconds is 1973: no transcript lies in between.
    seconds = value if value < 1e11 else value / 1e3
    return round(seconds * 1_000_000) if seconds < 1e11 else None


def _from_iso(text: str) -> int | None:
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
