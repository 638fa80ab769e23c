"""What a terminal does to text, and what it shall not: colours, widths, and control characters that are seen and never obeyed.

Text from the wire may hold whatever an agent once printed. `visible` takes from it what a terminal would obey, colour or not, piped
or not, because a pipe often ends at a terminal. Pure; nothing here writes anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

PROGRAM = "aforesaid"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Style:
    """What stands around the pieces of a line: escape sequences of a terminal, or nothing. `mark` is put around a match."""

    heading: str = ""
    name: str = ""
    place: str = ""
    end: str = ""
    mark: tuple[str, str] = ("⟦", "⟧")


PLAIN = Style()
COLOURS = Style(heading="\x1b[1m", name="\x1b[36m", place="\x1b[2m", end="\x1b[0m", mark=("\x1b[1;31m", "\x1b[0m"))


def wants_colour(is_terminal: bool, environment: Mapping[str, str], when: str = "auto") -> bool:
    """Tells whether to colour: as `when` says (always, never), else NO_COLOR, else FORCE_COLOR, else on a terminal that can."""
    if when != "auto":
        return when == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return is_terminal and environment.get("TERM") != "dumb"


def _unsafe() -> Iterator[tuple[int, str]]:
    # Control characters: those of ASCII as their pictures, the rest by number, since C1 ones begin sequences too.
    yield from ((code, chr(0x2400 + code)) for code in range(0x20))
    yield 0x7F, "␡"
    yield from ((code, f"<U+{code:04X}>") for code in range(0x80, 0xA0))
    # What turns the direction of the text around it, breaks lines, or is read by machines and seen by nobody.
    unseen = (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), *range(0xE0000, 0xE0080))
    yield from ((code, f"<U+{code:04X}>") for code in unseen)
    yield from ((ord(blank), " ") for blank in "\t\n\r")


_VISIBLE = dict(_unsafe())
_ESCAPED = re.compile(f"[{''.join(map(re.escape, map(chr, sorted(code for code in _VISIBLE if code > 0x20))))}]")


def visible(text: str) -> str:
    """Returns text on one line in which every control character can be seen and none works."""
    return text.translate(_VISIBLE)


def visible_lines(text: str) -> list[str]:
    """Returns the lines of a text, each as `visible` shows it; tabs reach to the next column of eight."""
    return [visible(line.removesuffix("\r").expandtabs()) for line in text.split("\n")]


def json_line(json: str) -> str:
    """Returns JSON in which the characters that JSON lets stand and a terminal would obey are escaped; it says the same."""
    # Outside of strings JSON holds none of them. Those under U+0020 are escaped already.
    return _ESCAPED.sub(lambda match: "".join(f"\\u{unit:04x}" for unit in _utf16(match[0])), json)


def _utf16(char: str) -> Iterator[int]:
    code = ord(char)
    yield from (code,) if code < 0x10000 else (0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF))


def note_line(note: str) -> str:
    """Returns what a person should know, on one line."""
    return visible(note)


def error_line(message: str) -> str:
    """Returns an error on one line that begins with the program's name."""
    return f"{PROGRAM}: {visible(message)}"


def local_time(micros: int | None) -> str:
    """Returns a time to the minute in the zone of this machine, nothing for none."""
    if micros is None:
        return ""
    time = _EPOCH + timedelta(microseconds=micros)
    # The first and the last day of the calendar have no other zone.
    with suppress(OverflowError, ValueError, OSError):
        time = time.astimezone()
    return time.replace(tzinfo=None).isoformat(" ", "minutes")


def utc_time(micros: int | None) -> str:
    """Returns a time as programs read it: ISO 8601 in UTC, to the second or as fine as it is; nothing for none."""
    if micros is None:
        return ""
    return (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat() + "Z"


def cells(text: str) -> int:
    """Returns how many columns of a terminal a text takes; colours take none, a wide character two."""
    plain = _SEQUENCE.sub("", text)
    if plain.isascii():
        return len(plain)
    from rich.cells import cell_len  # a few milliseconds: only for who has such text

    return cell_len(plain)


def cut(text: str, width: int) -> str:
    """Returns a text without colours in at most `width` columns, cut with `…` where it is longer."""
    if cells(text) <= width:
        return text
    kept = text[: max(0, width - 1)]
    while kept and cells(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…" if width > 0 else ""
