"""Snippets: the laws of contract.md over random texts, and the cases where the rules meet."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.query.judge import Question
from aforesaid_server.query.parse import parse
from aforesaid_server.search.snippet import Shown, snippet_of, snippet_of_stretches
from aforesaid_server.text.words import Analyser
from tests.search.plain_windows import Text, all_marks, shown_text
from tests.text.alphabets import texts
from tests.text.effort import EFFORT, examples

ENGLISH = Analyser()


def ask(query: str, *, as_typed: bool = False) -> Question:
    return Question(parse(query, ENGLISH), as_typed)


def snippet(text: str, query: str, shown: Shown = Shown.MATCHES) -> str:
    return snippet_of(text, ask(query), shown, ENGLISH)


# -- laws

SAYINGS = [
    *(
        "fox",
        "foxes",
        "Fox,",
        "red",
        "(red)",
        "red fox",
        "red — fox",
        "old",
        "Straße",
        "cafe\u0301",
        "東京",
        "昨日は東京タワーへ",
        "don't",
    ),
    *(
        "getFoxes",
        "redfox",
        "ﬁne",
        "⟦fox⟧",
        "⟧⟦",
        "…",
        "—",
        "pad",
        "pad " * 12,
        "x" * 60 + "-fox",
        "fox-" + "y" * 70,
        "👩\u200d👩🏽" * 3,
    ),
]
STRETCHES = [
    "x" * 99,
    "x" * 100,
    "─" * 120,
    "記憶の断片、" * 20,
    "e\u0301" * 60,
    "東京" * 70,
    "-".join(["fox"] * 40),
    "あ" * 90 + "東京" + "い" * 30,
    "🇹🇷" * 60,
    "x" + "🇹🇷" * 60,
    "क्षि" * 40,
    "👩\u200d👩\u200d👧" * 30,
]
SAYING = st.one_of(*[st.sampled_from(SAYINGS)] * 6, st.sampled_from(STRETCHES), texts)
# How many words, or characters without a blank, stand between two sayings: few, or about as many as a window holds.
FILLERS = st.one_of(st.integers(0, 3), st.integers(10, 24), st.integers(38, 62))
SPACED = st.tuples(FILLERS, SAYING).map(lambda one: "pad " * one[0] + one[1] + " ")
RUNNING = st.tuples(FILLERS, st.sampled_from(["─", "あ", "e\u0301", "-x", "、", "🇩🇪", "👩\u200d👧", "क्ष"]), SAYING).map(
    lambda one: one[1] * one[0] + one[2]
)
TEXTS = st.one_of(
    st.lists(SPACED, max_size=9).map("".join),
    st.lists(RUNNING, max_size=9).map("".join),
    st.lists(st.one_of(SPACED, RUNNING), max_size=12).map("".join),
)
ASKED = [
    *(
        "fox",
        "red fox",
        '"red fox"',
        "red old fox",
        "fox 東京",
        "東",
        "strasse cafe don't",
        "fine redfox",
        "fox foxes",
        "red -den old",
    ),
    *("get fox", "ox red", '"fox fox fox fox fox fox fox fox fox fox fox fox fox fox fox fox"', "what red fox", "the"),
]


def check(text: str, question: Question, shown: Shown) -> None:
    folded = shown_text(text)
    plain = Text(folded, all_marks(folded, question, shown, ENGLISH))
    drawn = snippet_of(text, question, shown, ENGLISH)
    places = list(plain.places(drawn))
    assert places, f"{drawn!r} is no piece of the text"
    faults = [[*plain.faults(place), *(["marks"] if plain.drawn(place) != drawn else [])] for place in places]
    assert [] in faults, f"{drawn!r} of {folded!r}: {faults}"


@examples(150)
@given(TEXTS, st.sampled_from(ASKED), st.sampled_from(Shown), st.booleans())
def test_a_snippet_is_the_window_that_the_contract_names(text: str, query: str, shown: Shown, as_typed: bool) -> None:
    check(text, ask(query, as_typed=as_typed), shown)


WORDS = ["fox", "foxes", "red", "old", "den", "東京", "getFoxes", "red fox", "red — fox", "fox-red,old", "redfox"]
WORDS += ["red " + "- " * 95 + "fox", "red" + "…" * 130 + "fox"]


def long_text(chance: random.Random) -> str:
    """Makes a text of some windows' length: words that are asked for, few or many fillers between them, a long stretch or none."""
    text = ""
    filler = chance.choice(["pad ", "pad ", "pad ", "-x", "あ", "é, "])
    for _ in range(chance.randint(3, 16)):
        text += filler * chance.choice([0, 1, 2, 5, 10, 15, 20, 30, 60]) + chance.choice(["", " ", " "])
        text += chance.choice(WORDS if chance.random() < 0.9 else STRETCHES) + chance.choice(["", " ", " ", " "])
    return text


LONG_ASKED = ["fox", "red fox", "red old fox", '"red fox" old', "red old den fox", "fox 東京", "ox re", "get fox old", '"red fox"']


@pytest.mark.parametrize("seed", range(20))
def test_windows_of_long_texts(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(12 * EFFORT):
        check(long_text(chance), ask(chance.choice(LONG_ASKED)), chance.choice([*Shown]))


@pytest.mark.parametrize("seed", range(20, 40))
@pytest.mark.parametrize(("beginning", "long"), [(300, 600), (700, 1_000)])
def test_the_beginning_of_a_long_text_is_enough_where_it_says_everything(
    seed: int, beginning: int, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of a readable length, looked at as those of 50,000 characters are."""
    monkeypatch.setattr("aforesaid_server.search.snippet._BEGINNING", beginning)
    monkeypatch.setattr("aforesaid_server.search.snippet._LONG", long)
    chance = random.Random(seed)
    for _ in range(8 * EFFORT):
        text = " ".join(long_text(chance) for _ in range(3))
        check(text, ask(chance.choice(LONG_ASKED)), chance.choice([*Shown]))


@examples(100)
@given(
    st.lists(st.tuples(FILLERS, st.text(st.sampled_from("ab -,"), max_size=8)), max_size=14).map(
        lambda pieces: " ".join("- " * size + letters for size, letters in pieces)
    ),
    st.sampled_from(["a", "a b", '"a b"', "ab a b", "ba bb aa"]),
)
def test_texts_of_few_letters(text: str, query: str) -> None:
    check(text, ask(query), Shown.MATCHES)


@examples(100)
@given(texts, st.sampled_from(ASKED), st.sampled_from(Shown))
def test_any_text_has_a_snippet(text: str, query: str, shown: Shown) -> None:
    drawn = snippet(text, query, shown)
    assert drawn.count("⟦") == drawn.count("⟧")
    assert drawn.replace("⟦", "").replace("⟧", "") == shown_text(text)


# -- cases

PAD = "pad " * 100


@pytest.mark.parametrize(
    ("text", "query", "shown", "expected"),
    [
        ("", "fox", Shown.MATCHES, ""),
        ("no such word", "fox", Shown.MATCHES, "no such word"),
        ("a fox", "fox", Shown.MATCHES, "a ⟦fox⟧"),
        ("Foxes' den", "fox", Shown.MATCHES, "⟦Foxes⟧' den"),
        ("red\r\n\t fox", '"red fox"', Shown.MATCHES, "⟦red fox⟧"),
        ("red -- fox", '"red fox"', Shown.MATCHES, "⟦red -- fox⟧"),
        ("red red fox", '"red fox"', Shown.MATCHES, "red ⟦red fox⟧"),
        ("red fox", "red fox", Shown.MATCHES, "⟦red⟧ ⟦fox⟧"),
        ("the fox the", "the fox", Shown.MATCHES, "⟦the⟧ ⟦fox⟧ ⟦the⟧"),
        # Overlapping matches as one, those that touch as two.
        ("a b c d", '"a b c" "b c d"', Shown.MATCHES, "⟦a b c d⟧"),
        ("東京東京", "東京", Shown.MATCHES, "⟦東京⟧⟦東京⟧"),
        ("東東東", "東東", Shown.MATCHES, "⟦東東東⟧"),
        ("aaaa", "aaa", Shown.NEAR, "⟦aaaa⟧"),
        ("getUserId", "user id", Shown.NEAR, "get⟦User⟧Id"),
        ("getUserId", "getuser userid", Shown.NEAR, "⟦getUserId⟧"),
        # In near a word that is said is marked whole, and letters wherever they stand.
        ("users superuser user", "user get", Shown.NEAR, "⟦users⟧ super⟦user⟧ ⟦user⟧"),
        # In matches letters inside words are not.
        ("user superuser", "user", Shown.MATCHES, "⟦user⟧ superuser"),
        ("Straße", "ass", Shown.NEAR, "Str⟦aß⟧e"),
        ("ﬁne", "ine", Shown.NEAR, "⟦ﬁne⟧"),
        ("회의ㅠㅠ 회의록", "회의", Shown.MATCHES, "⟦회의⟧ㅠㅠ ⟦회의⟧록"),
        # Partial marks what counts; any word marks all.
        ("what the fox", "what fox", Shown.PARTIAL, "what the ⟦fox⟧"),
        ("what the fox", "what fox", Shown.ANY_WORD, "⟦what⟧ the ⟦fox⟧"),
        ("what day", "what the", Shown.PARTIAL, "⟦what⟧ day"),
        ("red fox and red", '"red fox" den', Shown.PARTIAL, "⟦red fox⟧ and red"),
        ("記憶が断裂", "記憶断裂", Shown.PARTIAL, "⟦記憶⟧が⟦断裂⟧"),
        # Exclusions are never marked.
        ("red den", "red -x", Shown.MATCHES, "⟦red⟧ den"),
        # The marks' own brackets.
        ("⟦a⟧ ⟦fox⟧", "fox", Shown.MATCHES, "[a] [⟦fox⟧]"),
        ("fox\u200d\ufe0f.", "fox", Shown.MATCHES, "⟦fox\u200d\ufe0f⟧."),
    ],
)
def test_marks(text: str, query: str, shown: Shown, expected: str) -> None:
    assert snippet(text, query, shown) == expected


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        # Eighty code points before the match, to the next blank.
        (PAD + "fox", "fox", "…" + "pad " * 20 + "⟦fox⟧"),
        (PAD + "abc fox", "fox", "…" + "pad " * 19 + "abc ⟦fox⟧"),
        # Up to the edge of the token that holds the match, 95 before it.
        ("pad " + "x" * 94 + "-fox", "fox", "…" + "x" * 94 + "-⟦fox⟧"),
        # In a stretch of a hundred, between characters.
        ("pad " + "x" * 99 + "-fox", "fox", "…" + "x" * 79 + "-⟦fox⟧"),
        # Less where the group needs the room.
        (PAD + "red " + "pad " * 45 + "fox end", "red fox", "…" + "pad " * 13 + "⟦red⟧ " + "pad " * 45 + "⟦fox⟧…"),
        (PAD + "red " + "pad " * 58 + "fox end", "red fox", "…⟦red⟧ " + "pad " * 58 + "⟦fox⟧…"),
        # One more and it does not fit: the first match alone.
        (PAD + "red " + "pad " * 59 + "fox", "red fox", "…" + "pad " * 20 + "⟦red⟧" + " pad" * 39 + "…"),
        # One that fits into no window counts for none.
        ("red " + "- " * 150 + "fox " + "pad " * 70 + "red fox", '"red fox" fox', "…" + "pad " * 20 + "⟦red fox⟧"),
        # No blank at the end, and no match cut in a stretch that may be.
        ("fox " + "pad " * 59 + "x" * 120, "fox", "⟦fox⟧ " + "pad " * 58 + "pad…"),
        ("東京" + "あ" * 237 + "東京" + "あ" * 100, "東京", "⟦東京⟧" + "あ" * 237 + "…"),
        ("東東" + "あ" * 236 + "東東東" + "あ" * 100, "東東", "⟦東東⟧" + "あ" * 236 + "…"),
        ("哈" * 300, "哈哈", "⟦" + "哈" * 240 + "⟧…"),
        # A match in between that does not fit hinders no other.
        ("red " + "x" * 30 + ' old "' + "- " * 120 + "hat fox", "red fox", "⟦red⟧ " + "x" * 30 + ' old "' + "- " * 99 + "-…"),
    ],
)
def test_windows(text: str, query: str, expected: str) -> None:
    assert snippet(text, query) == expected


def test_a_long_phrase_between_two_words_does_not_part_them() -> None:
    # The phrase begins inside the window and ends far behind it.
    text = "red " + "a " + "- " * 200 + "b"
    assert snippet("red hat fox " + text, '"a b" red fox').startswith("⟦red⟧ hat ⟦fox⟧ ⟦red⟧ a -")
    assert snippet("red a fox " + "- " * 200 + "b", 'red "a fox b" fox').startswith("⟦red⟧ a ⟦fox⟧ -")


def test_of_a_match_that_is_too_long_the_beginning_is_shown() -> None:
    drawn = snippet(PAD + "red " + "- " * 200 + "fox " + PAD, '"red fox"')
    assert drawn == "…⟦red " + "- " * 117 + "-⟧…"
    # Glued to a token that leaves no room for it.
    drawn = snippet("x" * 90 + "-red " + "word " * 35 + "fox", '"red ' + "word " * 35 + 'fox"')
    assert drawn == "x" * 90 + "-⟦red" + " word" * 29 + "⟧…"
    # A match that fits is shown rather than one that does not.
    drawn = snippet("red " + "- " * 200 + "fox " + PAD + "red fox", '"red fox"')
    assert drawn == "…" + "pad " * 20 + "⟦red fox⟧"


@pytest.mark.parametrize(
    ("before", "after", "near"),
    [
        ("plain filler of no weight " * 2_000, " filler" * 2_000, "weight here a ⟦zebra⟧ filler"),
        ("обычный текст без смысла " * 900, " текст" * 900, "смысла here a ⟦zebra⟧ текст"),
        ("無関係な文章。" * 3_000, "無関係な文章" * 900, "文章。here a ⟦zebra⟧無関係"),
        ("─" * 5_000, "─" * 5_000, "──here a ⟦zebra⟧──"),
        ("e\u0301" * 5_000 + " ", " " + "e\u0301" * 5_000, "e\u0301 here a ⟦zebra⟧ e"),
        ("😀🔥" * 3_000, " 👩\u200d👩\u200d👧" * 900, "🔥here a ⟦zebra⟧ 👩"),
        ("x" * 50_000, "\u200b" + "x" * 50_000, "here a ⟦zebra⟧"),
    ],
)
def test_a_hit_deep_in_a_long_turn(before: str, after: str, near: str) -> None:
    drawn = snippet(before + "here a zebra" + after, "zebra")
    assert near in drawn
    assert drawn.startswith("…")
    assert drawn.endswith("…")
    assert len(drawn.translate({ord(c): None for c in "⟦⟧…"})) <= 240


def test_a_hit_beyond_what_is_searched_is_not_marked() -> None:
    assert snippet("fox " + "a " * 132_000 + "zebra", "zebra fox").startswith("⟦fox⟧ a a")
    assert "⟦" not in snippet("a " * 132_000 + "zebra", "zebra")


@pytest.mark.parametrize("query", ["zebra quagga", "zebra", '"zebra zebra"', '"zebra quagga"', "zeb quagga"])
def test_a_word_that_is_said_a_hundred_thousand_times(query: str) -> None:
    """In steps quadratic in the matches it would need minutes."""
    drawn = snippet("zebra " * 43_000 + "pad " * 100 + "quagga", query, Shown.NEAR)
    assert len(drawn) < 400


# -- stretches, between which something was left out

LEFT = {
    "of one stretch it is the snippet": (["a red fox"], "red fox", "a ⟦red⟧ ⟦fox⟧"),
    "the one that says most": (["a red hen", "a red old fox", "fox"], "red fox", "…a ⟦red⟧ old ⟦fox⟧…"),
    "the first of several": (["red hen", "a fox"], "red fox", "⟦red⟧ hen…"),
    "the last": (["a hen", "the fox"], "fox", "…the ⟦fox⟧"),
    "no match is marked across": (["the red", "fox and a red fox"], '"red fox"', "…fox and a ⟦red fox⟧"),
    "a clause that is said twice counts once": (["fox fox fox", "red fox"], "red fox", "…⟦red⟧ ⟦fox⟧"),
    "nothing is marked": (["a hen", "a cow"], "fox", "a hen…"),
    "nothing is left": ([], "fox", ""),
    "brackets of the text": (["⟦hen⟧", "⟦fox⟧"], "fox", "…[⟦fox⟧]"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_out_is_not_shown(name: str) -> None:
    stretches, query, expected = LEFT[name]
    assert snippet_of_stretches(stretches, ask(query), Shown.MATCHES, ENGLISH) == expected


def test_a_cut_window_of_a_stretch_has_one_sign_on_each_side() -> None:
    stretches = ["hen", "pad " * 200 + "fox " + "pad " * 200, "hen"]
    found = snippet_of_stretches(stretches, ask("fox"), Shown.MATCHES, ENGLISH)
    assert found == snippet(stretches[1], "fox")
    assert found.count("…") == 2
