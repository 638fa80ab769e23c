"""Bytes of a file -> lines -> JSON values, in bounded memory and without believing that the file is well.

Lines end at `\\n` only; one `\\r` before it and a byte order mark at the start of the file are not part of them. What cannot be
read is told as `Unreadable` with a reason for the report; what can be mended (lone surrogates, invalid UTF-8, NUL bytes around a
line) is mended and noted. Nothing here knows what a line means.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from aforesaid.formats.tally import Tally

BLOCK_BYTES = 1 << 20
LINE_LIMIT = 64 << 20
"""Bytes of a line that are held in memory at most. Lines of 70 MB have been seen, all of it two copies of a screenshot."""

BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n\v\f"
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Unreadable(Exception):
    """A line that cannot be taken; its text is the reason as the report names it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number from 0, its bytes, their count, whether its newline was there. Over the limit, `data` is empty."""

    number: int
    data: bytes
    size: int
    ended: bool


def open_regular(path: Path) -> BinaryIO:
    """Opens a file that was named by another one. Raises OSError, for what is no regular file as well: a pipe would wait for its
    writer, a device may never end.
    """
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file")
    return open(file, "rb")


def read_blocks(file: BinaryIO, block_bytes: int = BLOCK_BYTES, on_bytes: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """Yields the rest of a file in blocks, telling `on_bytes` the length of each when it has been worked on."""
    while block := file.read(block_bytes):
        yield block
        if on_bytes is not None:
            on_bytes(len(block))


def read_lines(blocks: Iterable[bytes], limit: int = LINE_LIMIT) -> Iterator[Line]:
    """Yields every line in order; the last one also where its newline is missing. Holds one line and one block, never more."""
    number = 0
    pieces: list[bytes] = []
    size = 0
    for block in blocks:
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            pieces.append(block[start:end])
            yield _line(number, pieces, size + end - start, limit, ended=True)
            pieces.clear()
            number, size, start = number + 1, 0, end + 1
        size += len(block) - start
        if size > limit:
            pieces.clear()
        elif start < len(block):
            pieces.append(block[start:])
    if size:
        yield _line(number, pieces, size, limit, ended=False)


def _line(number: int, pieces: Sequence[bytes], size: int, limit: int, *, ended: bool) -> Line:
    if size > limit:
        return Line(number, b"", size, ended)
    data = b"".join(pieces).removesuffix(b"\r")
    return Line(number, data.removeprefix(BOM) if number == 0 else data, size, ended)


def parse_line(line: Line, tally: Tally, limit: int = LINE_LIMIT) -> object:
    """Answers the JSON value of a line; raises Unreadable with the reason where there is none."""
    if line.size > limit:
        raise Unreadable(f"line of {line.size} bytes is over the limit of {limit}")
    data = line.data.strip(_BLANK + b"\0")
    if not data:
        raise Unreadable("NUL bytes" if b"\0" in line.data else "blank line")
    try:
        value = parse(data, tally)
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except ValueError:
        raise Unreadable("malformed JSON" if line.ended else "incomplete last line") from None
    if b"\0" in line.data[:1] or b"\0" in line.data[-1:]:
        tally.note("NUL bytes around a line left out")
    return value


def take_line(line: Line, tally: Tally, take: Callable[[int, object], str]) -> None:
    """Takes one line in, or skips it with its reason.

    `take` is given the number of the line and its JSON value, and answers why it is skipped; an empty string where it is taken.
    """
    try:
        why = take(line.number, parse_line(line, tally))
    except Unreadable as verdict:
        why = str(verdict)
    except RecursionError:
        why = "nested too deeply"
    if why:
        tally.skip(why)
    else:
        tally.take()


def parse(data: bytes, tally: Tally) -> object:
    """Parses JSON, mending invalid UTF-8 and surrogates; raises ValueError where it is none, RecursionError if it is too deep."""
    try:
        text = data.decode("utf-8")
        mend = _ESCAPED_SURROGATE.search(data) is not None
    except UnicodeDecodeError:
        text, mend = _decode_anyway(data, tally), True
    # Raw control characters are no JSON, but a line that holds them was said all the same.
    value: object = json.loads(text, strict=False, parse_float=_float, parse_int=_int, parse_constant=str)
    return _mended(value, tally) if mend else value


def _decode_anyway(data: bytes, tally: Tally) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        tally.note("invalid UTF-8 replaced by U+FFFD")
        return data.decode("utf-8", "replace")


def _mended(value: object, tally: Tally) -> object:
    match value:
        case str():
            return without_surrogates(value, tally)
        case list():
            return [_mended(item, tally) for item in value]
        case dict():
            return {without_surrogates(key, tally): _mended(item, tally) for key, item in value.items()}
        case _:
            return value


def without_surrogates(text: str, tally: Tally) -> str:
    """Joins pairs of surrogates and replaces lone ones by U+FFFD: no engine stores them, and the rest is worth keeping."""

    def replaced(found: re.Match[str]) -> str:
        pair = found[0]
        if len(pair) == 2:
            return chr(0x10000 + ((ord(pair[0]) - 0xD800) << 10) + ord(pair[1]) - 0xDC00)
        tally.note("lone surrogate replaced by U+FFFD")
        return "\ufffd"

    return _SURROGATES.sub(replaced, text)


class AsTyped(str):
    """A number that Python would write in another way than the file does."""

    __slots__ = ()


def _float(text: str) -> float | AsTyped:
    number = float(text)
    return number if repr(number) == text else AsTyped(text)


def _int(text: str) -> int | AsTyped:
    # Python refuses to read integers of more than 4,300 digits.
    return int(text) if len(text) < 4000 and text != "-0" else AsTyped(text)


def written(value: object) -> str:
    """Writes a parsed value as compact JSON, its numbers as they stood in the file, its characters unescaped."""
    match value:
        case AsTyped():
            return str(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return "[" + ",".join(map(written, value)) + "]"
        case dict():
            return "{" + ",".join(f"{written(key)}:{written(item)}" for key, item in value.items()) + "}"
        case _:
            return json.dumps(value)
