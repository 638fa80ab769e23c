"""Where graphemes begin and end: UAX #29's cases, and that a place alone is judged as in the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.graphemes import cluster_at, cluster_bounds

# As Unicode's GraphemeBreakTest writes them: ÷ where a grapheme ends, × where it goes on.
CASES = [
    "0020 ÷ 0020",
    "000D × 000A ÷ 0061",
    "0061 ÷ 000A ÷ 0308",
    "000D ÷ 0300",
    "0020 × 0308 ÷ 0020",
    "0061 × 0301 × 0302 ÷ 0062",
    "0061 × 200D ÷ 0062",
    "0061 × 0308 ÷ 0062",
    "0061 × 0903 ÷ 0062",
    "0061 ÷ 0600 × 0062",
    "1100 × 1160 ÷ 0061",
    "1100 × AC00 × 11A8 ÷ 1100",
    "AC00 × 11A8 ÷ 1100",
    "AC01 × 11A8 ÷ 1100",
    "AC00 ÷ AC00",
    "0061 ÷ 1F1E6 × 1F1E7 ÷ 1F1E8 ÷ 0062",
    "1F1E6 × 1F1E7 × 200D ÷ 1F1E8 ÷ 0062",
    "1F1E6 × 1F1E7 ÷ 1F1E8 × 1F1E9 ÷ 0062",
    "1F476 × 1F3FF ÷ 1F476",
    "0061 × 1F3FF ÷ 1F476",
    "1F468 × 200D × 1F469 × 200D × 1F467 ÷ 0062",
    "1F476 × 1F3FF × 0308 × 200D × 1F476 × 1F3FF ÷ 0061",
    "2702 × 200D × 2702",
    "0061 × 200D ÷ 2702",
    "2764 × FE0F ÷ 0078",
    "0915 ÷ 0924",
    "0915 × 094D × 0924 ÷ 0061",
    "0915 × 094D × 200D × 0924",
    "0915 × 093C × 200D × 094D × 0924",
    "0E01 × 0E33 ÷ 0E01",
    "1F3F4 × E0067 × E0062 × E007F ÷ 0061",
]


@pytest.mark.parametrize("case", CASES)
def test_graphemes_end_where_unicode_says(case: str) -> None:
    marks = case.split()
    text = "".join(chr(int(mark, 16)) for mark in marks[::2])
    ends = {place for place, mark in enumerate(marks[1::2], 1) if mark == "÷"}
    assert set(cluster_bounds(text)) == {0, *ends, len(text)}
    for place in range(len(text) + 1):
        begin, end = cluster_at(text, place)
        assert (begin == end == place) is (place in {0, *ends, len(text)})


@given(
    st.lists(
        st.sampled_from("a b \r \n é 記 각 ᄀ ᅡ ᆨ \u0301 \u0903 \u200d 🇩 🇪 👩 🏽 क ् \u0600 ำ \ufe0f".split(" ")), max_size=60
    ).map("".join)
)
def test_a_place_is_judged_as_in_the_whole_text(text: str) -> None:
    bounds = cluster_bounds(text)
    for place in range(len(text) + 1):
        before, after = max(b for b in bounds if b <= place), min(b for b in bounds if b >= place)
        assert cluster_at(text, place) == (before, after)


def test_a_place_in_a_long_text_is_found_at_once() -> None:
    text = "x" * 5_000_000 + "👨\u200d👩\u200d👧" + "y" * 10
    assert cluster_at(text, 5_000_002) == (5_000_000, 5_000_005)


def test_a_place_behind_many_flags_is_found_at_once() -> None:
    """To count them all for each that is passed would take hours."""
    text = "🇩🇪" * 3_000_000 + "y"
    assert cluster_at(text, 6_000_000) == (6_000_000, 6_000_000)
    begin, end = cluster_at(text, 5_999_999)
    assert end - begin in {0, 2}, "in a run of so many it may be cut in two"


@pytest.mark.parametrize("marks", [900, 1_000, 1_001, 5_000, 300_000])
def test_a_cluster_may_be_long(marks: int) -> None:
    text = "xa" + "\u0301" * marks + "y"
    assert cluster_at(text, 2) == (1, marks + 2)
    assert cluster_at(text, marks + 2) == (marks + 2, marks + 2)
