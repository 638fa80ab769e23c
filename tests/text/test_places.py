"""Folding that remembers places folds as ever, every word has its place, and what is sought is found where a scan finds it."""

from __future__ import annotations

import itertools
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.text.places import GAP, PlacedWords, beginning_of, fold_in_place, is_extender, sought_words
from aforesaid_server.text.words import INDEXED_BYTES, Analyser, fold, word_spans, words_of
from tests.text.alphabets import PLACED, texts
from tests.text.effort import examples
from tests.text.test_words import CHOSEN, LONG

ENGLISH = Analyser()


def placed(text: str) -> list[tuple[str, str]]:
    """Returns each word with the piece of the text that it stands in."""
    folded = fold_in_place(text)
    return [(folded.folded[a:b], text[folded.starts[a] : folded.ends[b - 1]]) for a, b in word_spans(folded.folded)]


PLACES = {
    "Hello, World": ["Hello", "World"],
    "un cafe\u0301 noir": ["un", "cafe\u0301", "noir"],
    "die Straße": ["die", "Straße"],
    "soft\u00adware here": ["soft\u00adware", "here"],
    "\u00adsoft": ["soft"],
    "fox\ufe0f!": ["fox\ufe0f"],
    "x\u200by": ["x", "y"],
    "東京タワー": ["東", "京", "タ", "ワ", "ー"],
    "か\u3099く": ["か\u3099", "く"],
    "ｶﾞｽ": ["ｶﾞ", "ｽ"],
    "น้ำ": ["น้ำ", "ำ"],
    "회의ㅠㅠ": ["회", "의", "ㅠㅠ"],
    "회의\u1172": ["회", "의", "\u1172"],
    "\u1112\u116c\u110b\u1174\u11ab": ["\u1112\u116c", "\u110b\u1174\u11ab"],
    "ㅎㅏㄴ글": ["ㅎㅏ", "ㄴ", "글"],
    "ﾡￂￇ": ["ﾡￂ", "ￇ"],
    "ㄱㅅ": ["ㄱㅅ"],
    "ﬁne": ["ﬁne"],
    "𝔷ebra": ["𝔷ebra"],
    "修改youer服": ["修", "改", "youer", "服"],
    "\u0903a b": ["\u0903a", "b"],
    "fox \u0903a": ["fox", "\u0903a"],
    "x,\u0301y": ["x", "y"],
}


@pytest.mark.parametrize("text", PLACES)
def test_places(text: str) -> None:
    assert [piece for _, piece in placed(text)] == PLACES[text]


@pytest.mark.parametrize("before", ["", "e\u0301", "ｶ", "가", "ㄱ", "\u1100\u1161", "㉮"])
def test_every_character_folds_in_place_as_ever(before: str) -> None:
    texts = [f"{before}{c}\u0323x" for c in CHOSEN]
    assert [text for text in texts if fold_in_place(text).folded != fold(text)] == []


@examples(400)
@given(texts)
def test_any_text_folds_in_place_as_ever(text: str) -> None:
    folded = fold_in_place(text)
    assert folded.folded == fold(text)
    assert len(folded.starts) == len(folded.ends) == len(folded.folded)
    assert list(folded.starts) == sorted(folded.starts)
    assert list(folded.ends) == sorted(folded.ends)
    assert all(0 <= start < end <= len(text) for start, end in zip(folded.starts, folded.ends, strict=True))


@examples(400)
@given(texts)
def test_words_in_place_are_those_of_the_turn(text: str) -> None:
    assert tuple(word for word, _ in placed(text)) == ENGLISH.turn(text).exact


@examples(400)
@given(st.text(st.sampled_from(PLACED), max_size=30))
def test_the_place_of_a_word_holds_that_word(text: str) -> None:
    for word, piece in placed(text):
        # A vowel sign that normalising cuts from its consonant (น้ำ is น้ํ and า) shares the place of the whole.
        assert word in words_of(piece)


def test_where_no_cut_may_stand() -> None:
    assert all(map(is_extender, "\u0301\u093f\u0e48\u3099\u200d\ufe0f\u1161\u11a8\uff9e\U0001f3fd"))
    assert not any(map(is_extender, "aé東가ก😀 .\u1100ㅏ"))


# -- what is sought


Place = tuple[str, str, tuple[int, int]]


def found(words: PlacedWords, sought: Collection[str], letters: Collection[str] = ()) -> list[tuple[int, Place]]:
    """Returns what is sought, as (number, (word, stem or word, place)); nothing else needs a place."""
    pairs = enumerate(zip(words.exact, words.said, strict=True))
    return [(n, (word, said, words.span(n, n))) for n, (word, said) in pairs if is_sought(word, said, sought, letters)]


def is_sought(word: str, said: str, sought: Collection[str], letters: Collection[str]) -> bool:
    return word != GAP and (said in sought or any(part in word for part in letters))


def scanned(text: str, *, as_typed: bool) -> list[Place]:
    """Every word of a text, in the way that looks at all of it."""
    folded = fold_in_place(text)
    spans = list(word_spans(folded.folded))
    exact = [folded.folded[a:b] for a, b in spans]
    said = exact if as_typed else ENGLISH.stems(exact)
    places = [(folded.starts[a], folded.ends[b - 1]) for a, b in spans]
    return list(zip(exact, said, places, strict=True))


SAID = [
    "fox",
    "foxes",
    "red",
    "Straße",
    "cafe\u0301",
    "東京",
    "타워",
    "don't",
    "x",
    "--",
    "…",
    "ﷺ",
    "\u0903a",
    "getFoxes",
    "ＦＯＸ",
    "ing",
]
SOUGHT = [
    "fox",
    "foxes",
    "red",
    "strasse",
    "strass",
    "cafe",
    "東",
    "京",
    "타",
    "don",
    "t",
    "x",
    "\u0903a",
    "getfoxes",
    "getfox",
    "ing",
]
# Long stretches without a blank are cut at other places.
STRETCHES = st.lists(st.sampled_from([*SAID, ",", "、", "か\u3099", "\u0301", ";", "記憶の", "aaaaaaaa", "ㄱㅏ"]), max_size=60).map(
    "".join
)
SAYINGS = st.lists(st.one_of(st.sampled_from(SAID), st.sampled_from(SAID), texts, STRETCHES), max_size=14).map(
    lambda pieces: " ".join(" ".join(pieces).split())
)


@examples(400)
@given(
    SAYINGS,
    st.sets(st.sampled_from(SOUGHT), min_size=1, max_size=4),
    st.sets(st.sampled_from(["fox", "ing", "strass"]), max_size=1),
    st.booleans(),
)
def test_sought_words_stand_where_a_scan_finds_them(text: str, sought: set[str], letters: set[str], as_typed: bool) -> None:
    words = sought_words(text, ENGLISH, sought, letters, as_typed=as_typed)
    some = found(words, sought, letters)
    whole = list(enumerate(scanned(text, as_typed=as_typed)))
    wanted = [(n, place) for n, place in whole if is_sought(place[0], place[1], sought, letters)]
    assert [place for _, place in some] == [place for _, place in wanted]
    # Neighbours stay neighbours, and nothing else becomes one.
    for (here, _), (there, _), (at, _), (then, _) in zip(some, some[1:], wanted, wanted[1:], strict=False):
        assert (there - here == 1) == (then - at == 1)


GERMAN = Analyser("german")


@examples(100)
@given(SAYINGS, st.sets(st.sampled_from(SOUGHT), min_size=1, max_size=4))
def test_in_a_language_of_which_no_beginnings_are_known(text: str, sought: set[str]) -> None:
    words = sought_words(text, GERMAN, sought, as_typed=False)
    places = [place for _, (_, _, place) in found(words, sought)]
    exact = scanned(text, as_typed=True)
    stems = GERMAN.stems([word for word, _, _ in exact])
    assert places == [place for (_, _, place), stem in zip(exact, stems, strict=True) if stem in sought]


SUFFIXES = """
s ss sses ied ies us eed eedly ed edly ing ingly ying y ly li tional enci anci abli entli izer ization ational ation
ator alism aliti alli fulness ousli ousness iveness iviti biliti bli ogi fulli lessli ative alize icate iciti ical ful
ness al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize ion sion tion e l ll le ble ibility ability
ity ency ancy ogy ist es at bl iz bled ys
""".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@examples(2_000)
@given(st.text(LETTERS, max_size=5), st.lists(st.sampled_from(SUFFIXES), max_size=3))
def test_every_word_of_an_english_stem_begins_as_it_is_said(root: str, suffixes: list[str]) -> None:
    word = root + "".join(suffixes)
    if word:
        assert word.startswith(beginning_of(ENGLISH.stems([word])[0]))


@pytest.mark.parametrize("first", LETTERS)
def test_every_short_english_word_begins_as_its_stem_says(first: str) -> None:
    words = [first + "".join(rest) for size in range(3) for rest in itertools.product(LETTERS, repeat=size)]
    words += "dying lying tying skies skis gently early only news inning possibility ability hoping carries cries".split()
    wrong = [word for word, stem in zip(words, ENGLISH.stems(words), strict=True) if not word.startswith(beginning_of(stem))]
    assert wrong == []
    assert all(map(beginning_of, ENGLISH.stems(words)))


@examples(150)
@given(SAYINGS)
def test_letters_have_places_of_their_own(text: str) -> None:
    words = sought_words(text, ENGLISH, (), ["fox"], as_typed=False)
    for number, word in enumerate(words.exact):
        at = word.find("fox")
        if at >= 0:
            start, end = words.letters(number, at, at + 3)
            assert "".join(filter(str.isalnum, fold(text[start:end]))) == "fox"


@pytest.mark.parametrize("name", LONG)
def test_no_more_is_looked_at_than_is_searched(name: str) -> None:
    text = " ".join(LONG[name].split())
    whole = scanned(text, as_typed=True)
    sought = {whole[0][0], whole[-1][0]} if whole else {words_of(text)[0]}
    some = [place for _, place in found(sought_words(text, ENGLISH, sought, as_typed=True), sought)]
    # Not `assert ... == ...`: the difference of two such lists would be printed for hours.
    assert (some == [one for one in whole if one[1] in sought]) is True


def test_a_piece_is_cut_where_the_words_end() -> None:
    # The last stretch has several words, of which the first two are searched.
    text = "a " * (INDEXED_BYTES // 2 - 3) + "bb,cc,dd,ee"
    exact = ENGLISH.turn(text).exact
    assert exact[-2:] == ("bb", "cc")
    for sought in ("bb", "cc", "dd", "ee"):
        some = found(sought_words(text, ENGLISH, [sought], as_typed=True), [sought])
        assert len(some) == (sought in exact)
