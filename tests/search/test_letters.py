"""Snippets of MATCH_SUBSTRING: the laws of contract.md over random texts, said again plainly, and the cases where folding, white
space and characters of several code points meet.
"""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import assume, given
from hypothesis import strategies as st

from aforesaid_server.search.letters import snippet_of_letters
from aforesaid_server.search.snippet import Mark
from aforesaid_server.text.transcript import Literal, fold_letters
from tests.search.plain_windows import Text
from tests.text.effort import examples


def snippet(text: str, query: str) -> str:
    return snippet_of_letters(Literal((text,)), fold_letters(query))


# -- laws


def plainly(text: str, query: str) -> Text:
    """The text on one line with every place of the letters, character by character."""
    folded = [fold_letters(character) for character in text]
    origin = [place for place, piece in enumerate(folded) for _ in piece]
    whole, letters = "".join(folded), fold_letters(query)
    found = [at for at in range(len(whole)) if whole.startswith(letters, at)]
    places = [(origin[at], origin[at + len(letters) - 1] + 1) for at in found]
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    begin, end = min(first, places[0][0]), max(last, *(stop for _, stop in places))
    line, where = "", {}
    for place in range(begin, end):
        if not (text[place].isspace() and place > begin and text[place - 1].isspace()):
            line += " " if text[place].isspace() else {"⟦": "[", "⟧": "]"}.get(text[place], text[place])
        where[place] = len(line) - 1
    characters = [found.span() for found in regex.finditer(r"\X", line)]
    marks = {
        Mark(
            max(start for start, _ in characters if start <= where[start_of_place]),
            min(stop for _, stop in characters if stop > where[stop_of_place - 1]),
            0,
        )
        for start_of_place, stop_of_place in places
    }
    return Text(line, sorted(marks))


PIECES = [
    *("fox", "Fox", "foxfox", "ox", "o", "ß", "SS", "İ", "i", "ﬁ", "ſ", " ", "  ", "\n", "\t \n", "pad ", "pad " * 12, "x" * 60),
    *(
        "─" * 120,
        "e\u0301" * 30,
        "é",
        "👩\u200d👩🏽" * 15,
        "🇹🇷" * 30,
        "क्षि" * 30,
        "東京" * 40,
        "⟦",
        "⟧",
        "…",
        "a" * 99,
        "\u0600fox",
        "가",
        "\u1100\u1161",
    ),
]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from(PIECES[:18]), st.text(max_size=5)), max_size=14).map("".join)
ASKED = st.sampled_from(
    ["fox", "o", "ss", "s", "i", " ", "f", "\n", "xf", "x pad", "🇹", "👩", "e", "क", "東", "a", "d x", "⟦", "\u1100"]
)


@st.composite
def asked_of(draw: st.DrawFn) -> tuple[str, str]:
    """A text and letters that it holds: some that were chosen, or a piece of it."""
    text = draw(TEXTS)
    if text and draw(st.booleans()):
        at = draw(st.integers(0, len(text) - 1))
        return text, text[at : at + draw(st.integers(1, 300))]
    return text, draw(ASKED)


@examples(400)
@given(asked_of())
def test_a_snippet_is_the_window_that_the_contract_names(asked: tuple[str, str]) -> None:
    text, query = asked
    drawn = snippet(text, query)
    if fold_letters(query) not in fold_letters(text):
        assert not drawn
        return
    plain = plainly(text, query)
    # A text of which one character is longer than a window is cut inside of it.
    assume(all(len(character) < 80 for character in regex.findall(r"\X", plain.text)))
    places = list(plain.places(drawn))
    assert places, f"{drawn!r} is no piece of the text"
    faults = [[*plain.faults(place), *(["marks"] if plain.drawn(place) != drawn else [])] for place in places]
    assert [] in faults, f"{drawn!r} of {plain.text!r}: {faults}"


@examples(100)
@given(TEXTS, st.integers(0, 5_000), st.sampled_from(["pad ", "é ", "ßx", "🇹🇷", "\n", "ﬁ"]))
def test_where_it_stands_in_a_long_text_makes_no_difference(text: str, times: int, filler: str) -> None:
    """What is far before and behind is not looked at."""
    around = f"{'pad ' * 100}{text} needle {text}{' pad' * 200}"
    assume("needle" not in text)
    assert snippet(filler * times + " " + around + " " + filler * times, "NEEDLE").strip("…") == snippet(around, "needle").strip(
        "…"
    )


# -- cases


@pytest.mark.parametrize(
    ("text", "query", "drawn"),
    [
        ("die Straße", "STRASSE", "die ⟦Straße⟧"),
        ("Maß", "s", "Ma⟦ß⟧"),
        ("İİİ fox", "fox", "İİİ ⟦fox⟧"),
        ("aİb", "\u0307b", "a⟦İb⟧"),
        ("ﬃ", "fi", "⟦ﬃ⟧"),
        ("a\u0301 b", "a", "⟦a\u0301⟧ b"),
        ("  a  b  ", "a", "⟦a⟧ b"),
        ("  a  b  ", " a", "⟦ a⟧ b"),
        ("  a  b  ", "b ", "a ⟦b ⟧"),
        ("  a  b  ", "\n", ""),
        ("a\u00a0b", "\u00a0", "a⟦ ⟧b"),
        ("a\x1cb", "\x1c", "a⟦ ⟧b"),
        ("a\u0000b", "\u0000", "a⟦\u0000⟧b"),
        ("⟦⟧", "⟧", "[⟦]⟧"),
        ("x" + " " * 300_000 + "y", "y", "…⟦y⟧"),
        (" " * 300_000, " ", "⟦ ⟧…"),
        ("ß" * 100_000 + "fox", "fox", "…" + "ß" * 80 + "⟦fox⟧"),
        ("🇹🇷" * 400 + "fox", "fox", "…" + "🇹🇷" * 40 + "⟦fox⟧"),
        ("x" + "🇹🇷" * 400 + "fox", "fox", "…" + "🇹🇷" * 40 + "⟦fox⟧"),
    ],
)
def test_case(text: str, query: str, drawn: str) -> None:
    assert snippet(text, query) == drawn


@pytest.mark.parametrize("query", ["fox", "o", "pad", " "])
def test_a_text_that_holds_it_a_hundred_thousand_times(query: str) -> None:
    drawn = snippet("fox pad " * 100_000, query)
    assert drawn.endswith("…")
    assert len(re.sub("[⟦⟧…]", "", drawn)) <= 240


@pytest.mark.parametrize(
    ("literal", "drawn"),
    [
        (Literal(("a fox",)), "a ⟦fox⟧"),
        (Literal(("a fox", "den")), "a ⟦fox⟧…"),
        (Literal(("den", "a fox")), "…a ⟦fox⟧"),
        (Literal(("den", "a fox", "hen")), "…a ⟦fox⟧…"),
        (Literal(("den", "hen"), ('{"fox"}',)), '{"⟦fox⟧"}'),
        (Literal((), ("x", '"fox"')), '"⟦fox⟧"'),
        (Literal(("a fox",), ("fox",)), "a ⟦fox⟧"),
        (Literal(("hen",), ("den",)), ""),
        (Literal(), ""),
    ],
)
def test_the_first_text_that_holds_it(literal: Literal, drawn: str) -> None:
    assert snippet_of_letters(literal, "fox") == drawn
