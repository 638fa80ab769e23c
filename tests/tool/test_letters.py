"""Letters in a text: case folding and its places, and the snippet around a match, whose edges cut no grapheme."""

from __future__ import annotations

import re
import sys

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from aforesaid._letters import find, fold, on_one_line, snippet
from aforesaid.graphemes import cluster_bounds

# Letters that fold to more code points than they are, marks, joiners, emoji, flags, jamo, and line breaks.
PIECES = [
    "a",
    "B",
    "ß",
    "İ",
    "ﬃ",
    "ΐ",
    "e\u0301",
    "\u0301",
    "\u200d",
    "👨",
    "👩",
    "🏽",
    "🇩",
    "🇪",
    "ᄀ",
    "ᅡ",
    "ᆨ",
    "각",
    "क",
    "्",
    "षि",
    "\ufe0f",
]
WRITTEN = st.lists(st.sampled_from([*PIECES, "\n", "\r\n", " "]), max_size=40).map("".join)


def all_places(text: str, query: str) -> tuple[int, int] | None:
    """Where a query first stands, found the slow way: the folded text with the code point that each folded one comes from."""
    origin = [place for place, character in enumerate(text) for _ in fold(character)]
    at = "".join(map(fold, text)).find(fold(query))
    return None if at < 0 else (origin[at], origin[at + len(fold(query)) - 1] + 1)


@given(WRITTEN, st.one_of(st.text("aABbsSßfiİ\u0307", min_size=1, max_size=3), WRITTEN.filter(bool)))
def test_a_match_is_found_where_it_stands(text: str, query: str) -> None:
    assert find(text, fold(query)) == all_places(text, query)


def test_matches_far_into_a_text_are_found_where_they_stand() -> None:
    text = "ß" * 10_000 + "ﬃ needle" + "ß" * 10
    assert find(text, "needle") == (10_002, 10_008)
    assert find(text, "fi") == (10_000, 10_001)


def test_no_code_point_folds_to_nothing_or_with_its_neighbours() -> None:
    # What `find` relies on: folding is by code point, and each gives at least one.
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    folded = [fold(character) for character in every]
    assert all(folded)
    assert fold("".join(every)) == "".join(folded)


@pytest.mark.parametrize("breaks", ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\n\n\r\n"])
def test_a_run_of_line_breaks_is_one_blank(breaks: str) -> None:
    assert on_one_line(f"a{breaks}b") == "a b"
    assert len(on_one_line(breaks).splitlines()) == 1


@given(st.text(max_size=30))
def test_one_line_is_one_line(text: str) -> None:
    assert len(on_one_line(text).splitlines()) <= 1
    assert on_one_line(text).replace(" ", "") == "".join(text.splitlines()).replace(" ", "")


@given(WRITTEN, WRITTEN.filter(bool), WRITTEN, st.integers(1, 30))
def test_a_snippet_is_a_stretch_of_whole_graphemes_around_the_match(before: str, match: str, after: str, width: int) -> None:
    text = before + match + after
    drawn = snippet(text, len(before), len(before) + len(match), width)
    line = on_one_line(text)
    inside = drawn.removeprefix("…").removesuffix("…")
    bounds = {0, *cluster_bounds(line)}
    places = [found.start() for found in re.finditer(f"(?={re.escape(inside)})", line)]
    cut_before, cut_after = drawn.startswith("…"), drawn.endswith("…")
    fitting = [
        place
        for place in places
        if place in bounds
        and place + len(inside) in bounds
        and (place > 0) is cut_before
        and (place + len(inside) < len(line)) is cut_after
    ]
    assert fitting, "the edges cut a grapheme"
    assert inside
    # No more than asked for, unless a single grapheme is longer.
    assert len(inside) <= width or len(regex.findall(r"\X", inside)) == 1


@given(st.text("ab", max_size=30), st.text("c", min_size=1, max_size=10), st.text("de", max_size=30), st.integers(10, 40))
def test_a_snippet_of_plain_letters_is_full_and_its_match_in_the_middle(before: str, match: str, after: str, width: int) -> None:
    text = before + match + after
    inside = snippet(text, len(before), len(before) + len(match), width).strip("…")
    assert len(inside) == min(width, len(text))
    left, right = inside.split(match) if inside.count(match) == 1 else ("", "")
    assert match in inside
    if len(left) < len(before) and len(right) < len(after):
        assert abs(len(left) - len(right)) <= 1


FAMILY, FLAGS, JAMO = "👨\u200d👩\u200d👧\u200d👦", "🇩🇪🇫🇷🇯🇵", "\u1100\u1161\u11a8"


@pytest.mark.parametrize(
    ("text", "match", "width", "expected"),
    [
        (f"{FAMILY}needle{FAMILY}", "needle", 10, "…needle…"),
        (f"{FAMILY}needle{FAMILY}", "needle", 20, f"{FAMILY}needle{FAMILY}"),
        (f"{FAMILY}needle{FAMILY}", "👩", 3, f"{FAMILY}…"),
        (f"{FLAGS}needle", "needle", 9, "…🇯🇵needle"),
        (f"needle{FLAGS}", "needle", 9, "needle🇩🇪…"),
        (f"needle{FLAGS}", "🇫", 3, "…🇫🇷…"),
        (f"{JAMO * 3}needle", "needle", 8, "…needle"),
        (f"{JAMO * 3}needle", "needle", 10, f"…{JAMO}needle"),
        ("e\u0301e\u0301e\u0301needle", "needle", 9, "…e\u0301needle"),
        ("needle👍🏽👍🏽", "needle", 7, "needle…"),
        ("needle❤️x", "needle", 7, "needle…"),
        ("क्षि needle", "needle", 8, "… needle"),
        ("needleนี้ นี้", "needle", 8, "needle…"),
    ],
)
def test_graphemes_at_the_edges(text: str, match: str, width: int, expected: str) -> None:
    start = text.index(match)
    assert snippet(text, start, start + len(match), width) == expected


def test_letters_piled_up_do_not_make_a_snippet_endless() -> None:
    text = "x" + "\u0301" * 100_000
    assert len(snippet(text, 0, 1, 20)) <= 22
    assert len(snippet(text, 50_000, 50_001, 20)) <= 22
