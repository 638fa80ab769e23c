"""Control characters that are shown and never obeyed, colours, widths and times."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.cli.terminal import cells, cut, error_line, json_line, utc_time, visible, visible_lines, wants_colour
from tests.cli.conftest import ANY_TEXT, obeyed


@pytest.mark.parametrize(
    ("is_terminal", "environment", "colour"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "", "TERM": "xterm"}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {"TERM": "xterm"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": ""}, False),
        (True, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_only_on_a_terminal_that_wants_it(is_terminal: bool, environment: dict[str, str], colour: bool) -> None:
    assert wants_colour(is_terminal, environment) is colour
    assert wants_colour(is_terminal, environment, "always") is True
    assert wants_colour(is_terminal, environment, "never") is False


# What a terminal would obey


@given(ANY_TEXT)
def test_nothing_is_left_to_obey_and_all_that_can_be_seen_stays(text: str) -> None:
    shown = visible(text)
    assert obeyed(shown) == []
    assert visible(shown) == shown
    harmless = "".join(char for char in text if not obeyed(char) and not 0xE0000 <= ord(char) < 0xE0080)
    left = iter(shown)
    assert all(char in left for char in harmless)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("a\x9b31m", "a<U+009B>31m"),
        ("a\tb\r\nc", "a b  c"),
        ("\x00\x7f", "␀␡"),
        ("a\u202eb", "a<U+202E>b"),
        ("👩\u200d💻 记憶 é", "👩\u200d💻 记憶 é"),
        ("<U+009B>␛", "<U+009B>␛"),
    ],
)
def test_how_control_characters_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_errors_begin_with_the_program_and_are_one_safe_line() -> None:
    assert error_line("no such agent: a\x1bb\nc") == "aforesaid: no such agent: a␛b c"


@given(ANY_TEXT)
def test_json_says_the_same_and_holds_nothing_to_obey(text: str) -> None:
    written = json.dumps({"snippet": text}, ensure_ascii=False)
    shown = json_line(written)
    assert json.loads(shown) == {"snippet": text}
    assert obeyed(shown) == []


@given(ANY_TEXT)
def test_lines_of_a_text_are_safe_too(text: str) -> None:
    shown = visible_lines(text)
    assert len(shown) == text.count("\n") + 1
    assert obeyed("".join(shown)) == []


def test_tabs_of_a_text_keep_columns_and_ends_of_lines_of_windows_are_ends() -> None:
    assert visible_lines("a\tb\r\n\tc\rd") == ["a       b", "        c d"]


# Widths


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("記憶", 4), ("e\u0301", 1), ("\x1b[1;31mab\x1b[0m", 2), ("", 0), ("ｗｉｄｅ", 8), ("a\u200bb", 2)],
)
def test_how_many_columns_a_text_takes(text: str, width: int) -> None:
    assert cells(text) == width


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("記憶力", 5, "記憶…"), ("記憶力", 4, "記…"), ("abc", 1, "…"), ("abc", 0, "")],
)
def test_what_is_too_wide_is_cut(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown


@given(ANY_TEXT.map(visible), st.integers(0, 40))
def test_a_cut_text_fits_and_begins_as_it_did(text: str, width: int) -> None:
    shown = cut(text, width)
    assert cells(shown) <= width
    assert text.startswith(shown.removesuffix("…")) or shown == text


@pytest.mark.parametrize(
    ("micros", "told"),
    [
        (None, ""),
        (0, "1970-01-01T00:00:00Z"),
        (1_772_619_720_000_001, "2026-03-04T10:22:00.000001Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
    ],
)
def test_times_for_programs(micros: int | None, told: str) -> None:
    assert utc_time(micros) == told
