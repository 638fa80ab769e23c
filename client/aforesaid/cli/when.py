"""Times as people type them, in the zone of this machine where they name none.

| typed | is |
|---|---|
| `30s`, `30m`, `12h`, `3d`, `2w` | that long ago; a day is 24 hours |
| `2026-03-04` | the beginning of that day |
| `2026-03-04T10:22`, `2026-03-04 10:22:30.5` | that time |
| `2026-03-04T10:22Z`, `2026-03-04T10:22+05:30` | that time in that zone |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from aforesaid._errors import InvalidArgument
from aforesaid.cli.options import name_of

_AGO = re.compile(r"([0-9]{1,9})(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_when(field: str, text: str, now: datetime) -> datetime:
    """Returns the time that a text means, with its zone. Raises InvalidArgument that names the field."""
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        time = datetime.fromisoformat(text)
        return time if time.tzinfo else time.astimezone()
    except (ValueError, OverflowError, OSError):
        raise InvalidArgument.of(
            field, f"must be a duration such as 3d, a date such as 2026-03-04, or a time such as 2026-03-04T10:22Z: {text}"
        ) from None


class WhenType(click.ParamType[datetime]):
    """A time as people type it."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Returns the time. Raises InvalidArgument."""
        return value if isinstance(value, datetime) else read_when(name_of(param), str(value), datetime.now(UTC))


WHEN = WhenType()
