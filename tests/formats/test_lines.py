"""Lines and JSON values out of bytes that need not be well."""

from __future__ import annotations

import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.formats.lines import Line, Unreadable, parse_line, read_blocks, read_lines, written
from aforesaid.formats.tally import Tally


def lines(data: bytes, block_bytes: int = 1 << 20, limit: int = 1 << 20) -> list[Line]:
    return list(read_lines(read_blocks(io.BytesIO(data), block_bytes), limit))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"a\nb\n", [b"a", b"b"], id="two lines"),
        pytest.param(b"a\nb", [b"a", b"b"], id="the last without its newline"),
        pytest.param(b"\n\na\n", [b"", b"", b"a"], id="blank lines count"),
        pytest.param(b"a\r\nb\r\n", [b"a", b"b"], id="carriage returns"),
        pytest.param(b"a\r\r\n", [b"a\r"], id="one carriage return only"),
        pytest.param(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [b"a", b"\xef\xbb\xbfb"], id="a byte order mark at the start only"),
        pytest.param("a\u2028b\u0085c\x0bd\x0ce\n".encode(), ["a\u2028b\u0085c\x0bd\x0ce".encode()], id="nothing else ends a line"),
    ],
)
def test_lines_of(data: bytes, expected: list[bytes]) -> None:
    assert [line.data for line in lines(data)] == expected


def test_numbers_and_newlines() -> None:
    assert [(line.number, line.ended) for line in lines(b"a\n\nb")] == [(0, True), (1, True), (2, False)]


@given(
    data=st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"\xef\xbb\xbf", b"\0", b"bcdefgh"]), max_size=40), block=st.integers(1, 9)
)
def test_lines_do_not_depend_on_blocks(data: list[bytes], block: int) -> None:
    whole = b"".join(data)
    assert lines(whole, block, limit=5) == lines(whole, limit=5)
    assert sum(line.size + line.ended for line in lines(whole)) == len(whole)


def test_a_line_over_the_limit_is_counted_and_dropped() -> None:
    found = lines(b"a\n" + b"x" * 11 + b"\nb\n" + b"y" * 12, block_bytes=4, limit=10)
    assert [(line.data, line.size) for line in found] == [(b"a", 1), (b"", 11), (b"b", 1), (b"", 12)]


def test_a_line_without_end_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        (found,) = read_lines((bytes(1 << 20) for _ in range(40)), limit=1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert (found.data, found.size) == (b"", 40 << 20)


def test_bytes_are_told_as_they_are_worked_on() -> None:
    told: list[int] = []
    file = io.BytesIO(b"a\nb\nc")
    # A block counts when all its lines were taken; the last line is only known to be whole at the end of the file.
    assert [sum(told) for _ in read_lines(read_blocks(file, 2, told.append))] == [0, 2, 5]
    assert told == [2, 2, 1]


def parsed(data: bytes, *, ended: bool = True) -> tuple[object, dict[str, int]]:
    tally = Tally()
    return parse_line(Line(0, data, len(data), ended), tally), dict(tally.report().notes)


@pytest.mark.parametrize(
    ("data", "expected", "noted"),
    [
        pytest.param(b' {"a": 1}\t', {"a": 1}, {}, id="blanks around"),
        pytest.param(b'"\\ud83d\\ude00"', "😀", {}, id="a pair of escapes is a character"),
        pytest.param(b'"\\ud83c!"', "\ufffd!", {"lone surrogate replaced by U+FFFD": 1}, id="half a pair"),
        pytest.param(
            b'{"\\udc00": ["\\uD800\\ud800"]}',
            {"\ufffd": ["\ufffd\ufffd"]},
            {"lone surrogate replaced by U+FFFD": 3},
            id="everywhere",
        ),
        pytest.param(b'"\xed\xa0\xbd\xed\xb8\x80"', "😀", {}, id="a pair encoded as two characters"),
        pytest.param(b'"\xed\xa0\xbd"', "\ufffd", {"lone surrogate replaced by U+FFFD": 1}, id="half a pair encoded"),
        pytest.param(b'"caf\xe9"', "caf\ufffd", {"invalid UTF-8 replaced by U+FFFD": 1}, id="not UTF-8"),
        pytest.param(b'\0\0\0{"a": 1}\0', {"a": 1}, {"NUL bytes around a line left out": 1}, id="NUL bytes around"),
        pytest.param(b'"a\0b\tc"', "a\0b\tc", {}, id="raw control characters in a string"),
        pytest.param(b'"\\u0000"', "\0", {}, id="NUL as an escape"),
        pytest.param(b"[NaN, -Infinity]", ["NaN", "-Infinity"], {}, id="what is no number of JSON is text"),
    ],
)
def test_mended_values(data: bytes, expected: object, noted: dict[str, int]) -> None:
    assert parsed(data) == (expected, noted)


@pytest.mark.parametrize(
    ("data", "ended", "why"),
    [
        pytest.param(b"", True, "blank line", id="empty"),
        pytest.param(b" \t\r", True, "blank line", id="blanks"),
        pytest.param(b"\0" * 4096, True, "NUL bytes", id="a run of NUL bytes"),
        pytest.param(b"\0" * 4096, False, "NUL bytes", id="a run of NUL bytes at the end"),
        pytest.param(b'{"a": ', True, "malformed JSON", id="cut off in the middle"),
        pytest.param(b'{"a": ', False, "incomplete last line", id="cut off at the end"),
        pytest.param(b'{"a": 1}{"b": 2}', True, "malformed JSON", id="two values"),
        pytest.param(b'{"a": "\0\0', True, "malformed JSON", id="NUL bytes over the end of a line"),
        pytest.param(b"[" * 200_000, True, "nested too deeply", id="nested without end"),
        pytest.param(b"[" * 200_000 + b"]" * 200_000, True, "nested too deeply", id="nested deeply"),
        pytest.param(b"1" * 5000 + b"x", True, "malformed JSON", id="a number too long for Python"),
    ],
)
def test_unreadable_lines(data: bytes, ended: bool, why: str) -> None:
    with pytest.raises(Unreadable) as verdict:
        parsed(data, ended=ended)
    assert str(verdict.value) == why


def test_a_line_over_the_limit_says_how_long_it_is() -> None:
    with pytest.raises(Unreadable, match="line of 73400320 bytes is over the limit of 67108864"):
        parse_line(Line(0, b"", 70 << 20, True), Tally())


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"é \\"q\\" \\n","b":[1,-2,true,false,null],"c":{}}',
        "[1.0,1.50,1e5,1E+2,-0,0.000001,12345678901234567890,3.141592653589793238462643]",
        "[" + "9" * 5000 + "]",
        '"😀\u2028"',
    ],
)
def test_numbers_and_characters_are_written_as_they_stood(text: str) -> None:
    value, _ = parsed(text.encode())
    assert written(value) == text


@given(
    value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s))
)
def test_written_is_what_was_read(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    read, _ = parsed(text.encode())
    assert written(read) == text
