"""What a word is: one row for each dress and script, laws over every code point, and the same words as the slow definition."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.text import words as words_module
from aforesaid_server.text.transcript import without_bytes
from aforesaid_server.text.words import (
    GAP,
    INDEXED_BYTES,
    NO_WORDS,
    SHORTEST_PART,
    Analyser,
    bare,
    fold,
    is_letter_or_digit,
    is_spaceless,
    parts_of,
    signed_tokens,
    word_spans,
    words_of,
)
from tests.text import plain_words as plain
from tests.text.alphabets import NASTY, texts
from tests.text.effort import examples

ENGLISH = Analyser()
EVERY = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point <= 0xDFFF]
MANY = (
    *("CJK UNIFIED", "HANGUL SYLLABLE", "TANGUT", "EGYPTIAN", "CUNEIFORM", "ANATOLIAN", "BAMUM", "YI SYLLABLE", "LINEAR", "KHITAN"),
    *("NUSHU", "SIGNWRITING", "ETHIOPIC", "VAI", "CANADIAN"),
)
# All that has a meaning; of the thousands of ideographs, syllables and signs, and of what has no meaning, some.
CHOSEN = [
    c
    for c in EVERY
    if ord(c) % 61 == 0 or (unicodedata.category(c) not in ("Cn", "Co") and not unicodedata.name(c, "").startswith(MANY))
]


# -- dresses of a word

FOLDED = {
    "dotted capital i": ("İzmir", "izmir"),
    "dotless i": ("ızmır", "izmir"),
    "i and a dot above": ("i\u0307zmir", "izmir"),
    "sharp s": ("straße", "strasse"),
    "capital sharp s": ("STRAẞE", "strasse"),
    "long s": ("ſtraſſe", "strasse"),
    "composed": ("caf\u00e9", "cafe"),
    "decomposed": ("cafe\u0301", "cafe"),
    "stacked marks": ("Nguy\u1ec5n", "nguyen"),
    "marks in another order": ("a\u0323\u0302", "a"),
    "full width": ("ＡＢＣ１２３＃", "abc123#"),
    "half width katakana": ("ｶﾀｶﾅ", "カタカナ"),
    "half width voiced katakana": ("ｶﾞ", "ガ"),
    "ligature": ("ﬁﬃ", "fiffi"),
    "roman numeral": ("Ⅳ", "iv"),
    "mathematical letters": ("𝐃𝔢𝓅𝗅𝚘𝕪", "deploy"),
    "circled digit": ("①", "1"),
    "superscript": ("x²", "x2"),
    "ae and oe": ("Ærø cœur", "aero coeur"),
    "stroked letters": ("Łódź đ ħ", "lodz d h"),
    "thorn and eth": ("Þórður", "thordur"),
    "greek final sigma": ("ΟΔΟΣ οδός", "οδοσ οδοσ"),
    "greek iota below": ("ᾳ", "α"),
    "cyrillic": ("Ёлка Й", "елка и"),
    "hebrew points": ("שָׁלוֹם", "שלום"),
    "arabic vowels": ("مُحَمَّد", "محمد"),
    "devanagari vowel signs stay": ("हिन्दी", "हिन्दी"),
    "kana marks stay": ("が", "が"),
    "decomposed kana": ("か\u3099", "が"),
    "decomposed hangul": ("\u1112\u116c\u110b\u1174", "회의"),
    "thai sara am": ("น้ำ", "น\u0e49\u0e4dา"),
    "soft hyphen": ("soft\u00adware", "software"),
    "joiners": ("a\u200cb\u200dc\u2060d\ufeffe", "abcde"),
    "variation selectors": ("a\ufe0fb\U000e0100c\u180bd", "abcd"),
    "zero width space": ("a\u200bb", "a b"),
    "cherokee": ("ꭰ", "Ꭰ"),
    "kelvin and angstrom": ("K Å", "k a"),
}


@pytest.mark.parametrize("dress", FOLDED)
def test_folds(dress: str) -> None:
    text, folded = FOLDED[dress]
    assert fold(text) == folded


WORDS = {
    "signs separate": ("src/main.py, foo_bar!", "src main py foo bar"),
    "control characters separate": ("a\x00b\x1bc\x7fd", "a b c d"),
    "digits and letters are one": ("http2 x86", "http2 x86"),
    "a mark at the start": ("\u0903a", "\u0903a"),
    "a mark alone is no word": ("\u0903 \u0e48", ""),
    "a mark after a sign begins no word of its own": ("-\u0903a", "\u0903a"),
    "devanagari": ("मुझे हिन्दी", "मुझे हिन्दी"),
    "han": ("東京へ", "東 京 へ"),
    "han beyond the first plane": ("𠀀𠀁", "𠀀 𠀁"),
    "kana with a long mark": ("タワー", "タ ワ ー"),
    "hangul": ("회의록", "회 의 록"),
    "jamo alone are letters": ("ㅋㅋㅋ", "\u110f\u110f\u110f"),
    "thai with tone marks": ("ก่า", "ก่ า"),
    "lao": ("ນີ້", "ນີ້"),
    "khmer": ("ខ្មែ", "ខ្ មែ"),
    "myanmar": ("မြန်", "မြ န်"),
    "thai digits": ("๑๒", "๑ ๒"),
    "latin glued to han": ("修改youer服务端", "修 改 youer 服 务 端"),
    "a mark of another script after han": ("東\u0301京", "東 京"),
    "an emoji separates": ("red😀fox", "red fox"),
    "an emoji with skin and joiner": ("a👩🏽\u200d💻b", "a b"),
    "one character, several words": ("ﷺ", "صلى الله عليه وسلم"),
    "a fraction": ("½x", "1 2x"),
    "an accent of its own": ("a´b", "a b"),
    "private and unassigned": ("a\ue000b\u0378c", "a b c"),
    "other numbers": ("𐄇 ౸", "𐄇 ౸"),
}


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    text, words = WORDS[name]
    assert words_of(text) == words.split()
    assert ENGLISH.turn(text).exact == tuple(words.split())


# -- over every code point


def test_folding_twice_is_folding_once() -> None:
    # All at once, which is quicker by far: no line end is folded away, and none composes with what stands beside it.
    written = [c for c in EVERY if c != "\n"]
    once = fold("\n".join(written)).split("\n")
    twice = fold("\n".join(once)).split("\n")
    assert [c for c, one, two in zip(written, once, twice, strict=True) if one != two] == []


def test_what_a_letter_is() -> None:
    assert [c for c in EVERY if is_letter_or_digit(c) != (plain.kind(c) in "LN")] == []


def test_which_scripts_have_no_spaces() -> None:
    lettered = [c for c in EVERY if plain.kind(c) in "LNM"]
    assert [unicodedata.name(c) for c in lettered if is_spaceless(c) != plain.is_spaceless(c)] == []


def test_every_character_folds_and_cuts_as_the_slow_definition_says() -> None:
    assert len(CHOSEN) > 35_000
    assert [c for c in CHOSEN if fold(c) != plain.folded(c)] == []
    # Alone, and beside letters, which it may join.
    for around in ("{}", "a{}b", "東{}x"):
        written = [around.format(c) for c in CHOSEN]
        assert [text for text in written if words_of(text) != plain.words(text)] == []


def test_case_and_composition_make_no_difference() -> None:
    cased = [c for c in CHOSEN if len(c.upper()) == len(c.lower()) == 1]
    assert [c for c in cased if not fold(c) == fold(c.upper()) == fold(c.lower())] == ["\u0345"]  # a mark whose capital is a letter
    for form in ("NFD", "NFKC"):
        assert [c for c in CHOSEN if fold(c) != fold(unicodedata.normalize(form, c))] == []


# -- over any text


@examples(300)
@given(texts)
def test_any_text_has_the_words_of_the_slow_definition(text: str) -> None:
    assert fold(text) == plain.folded(text)
    assert words_of(text) == plain.words(text)
    assert fold(fold(text)) == fold(text)
    assert words_of(fold(text)) == words_of(text)


@examples(150)
@given(st.lists(texts))
def test_blanks_keep_texts_apart(pieces: list[str]) -> None:
    assert words_of(" ".join(pieces)) == [word for piece in pieces for word in words_of(piece)]


@examples(300)
@given(texts)
def test_turn_says_what_its_pieces_say(text: str) -> None:
    turn = ENGLISH.turn(text)
    folded = fold(text)
    assert list(turn.exact) == words_of(text) == [folded[a:b] for a, b in word_spans(folded)]
    assert list(turn.stems) == ENGLISH.stems(words_of(text))
    assert turn.symbols == signed_tokens(folded)


# -- signs

SIGNED = {
    "C++ and C#, .NET; net": {"c++", "c#", ".net"},
    "(#123).": {"#123"},
    "<b>bold</b>": {"b>bold</b"},
    '"quoted" (bracketed) [x] {y} `z` *w*': set(),
    "stop. comma, colon: semi; what? no! …": set(),
    ".start ...dots": {".start", "...dots"},
    "end... ok?!": set(),
    "don't t-shirt": {"don't", "t-shirt"},
    "don’t ‘so’": {"don’t"},
    "src/main.py:12:": {"src/main.py:12"},
    "a -> b": {"-"},
    "--force -x": {"--force", "-x"},
    "50% $5 a@b.c": {"50%", "$5", "a@b.c"},
    "snake_case __init__": {"snake_case", "__init__"},
    "修改C++服务 .NET東京": {"c++", ".net"},
    "か゛": set(),
    "Ｃ＋＋": {"c++"},
    "a\u200bb+": {"b+"},
    "naïve+ é": {"naive+"},
    "हिन्दी": set(),
    "a\u0903": set(),
    "😀 a😀": {"😀", "a😀"},
    "**bold**-ish": {"bold**-ish"},
    "((a)": set(),
    "(.a)": {".a"},
}


@pytest.mark.parametrize("text", SIGNED)
def test_signs(text: str) -> None:
    assert signed_tokens(fold(text)) == SIGNED[text]


@examples(300)
@given(st.one_of(texts, st.text(st.sampled_from("aB1 .,;!?()<>*`'\"+-#/_\n東か\u0301\u0903“’…"), max_size=30)))
def test_signs_as_the_slow_definition_says(text: str) -> None:
    assert signed_tokens(fold(text)) == plain.signed(text)


def test_signs_at_the_ends_of_every_kind() -> None:
    for sign in map(chr, range(33, 127)):
        if not sign.isalnum():
            for token in (f"{sign}a", f"a{sign}", f"{sign}a{sign}", f"a{sign}b", sign, sign * 3, f"{sign}.a", f"a.{sign}"):
                assert signed_tokens(token) == plain.signed(token), token


# -- parts

PARTS = {
    "getUserId": "get User Id",
    "HTTPServer": "HTTP Server",
    "HTTP": "HTTP",
    "HTTPs": "HTT Ps",
    "http2": "http 2",
    "x86asm": "x 86 asm",
    "iOS": "i OS",
    "parseURL2": "parse URL 2",
    "Server": "Server",
    "aB": "a B",
    "ABc": "A Bc",
    "A1b2C3": "A 1 b 2 C 3",
    "getÜberId": "get Über Id",
    "ДомЗавтра": "Дом Завтра",
    "версия2": "версия 2",
    "ХТТПСервер": "ХТТП Сервер",
}


@pytest.mark.parametrize("word", PARTS)
def test_parts(word: str) -> None:
    assert parts_of(word) == PARTS[word].split()


@examples(300)
@given(st.text("aBcDeZ09", min_size=1, max_size=12))
def test_parts_as_the_slow_definition_says(word: str) -> None:
    found = plain.parts(word)
    assert parts_of(word) == found
    kept = {part.lower() for part in found if len(part) >= SHORTEST_PART}
    assert ENGLISH.turn(f"see {word}.").parts == (kept if len(found) > 1 else set())
    # The way of text that is not all ASCII gives the same.
    assert ENGLISH.turn(f"see {word}. é").parts == ENGLISH.turn(f"see {word}.").parts


def test_parts_are_folded_and_those_of_one_part_are_none() -> None:
    assert ENGLISH.turn("Straße GroßeStraße getCafé").parts == {"grosse", "strasse", "get", "cafe"}
    assert ENGLISH.turn("deployed Deploy DEPLOY").parts == frozenset()
    assert ENGLISH.turn("xHTTPd").parts == {"htt"}


@examples(100)
@given(texts)
def test_parts_join_to_their_word(text: str) -> None:
    for word in words_of(text):
        assert "".join(parts_of(word)) == word
    assert all(len(part) >= SHORTEST_PART and part == fold(part) for part in ENGLISH.turn(text).parts)
    assert all(any(part in word for word in words_of(text)) for part in ENGLISH.turn(text).parts)


# -- how much of a turn is searched


def joined(words: tuple[str, ...]) -> int:
    return len(" ".join(words).encode())


LONG = {
    "short words": "a " * 140_000,
    "words of three": "abc " * 66_000,
    "han": "東京" * 33_000,
    "han of four bytes": "𠀀" * 55_000,
    "gothic": "𐌰𐌱𐌲 " * 25_000,
    "cyrillic": "слово " * 25_000,
    "growing": "ﬃ " * 90_000,
    "accents": "é " * 140_000,
    "signs between": "ab+cd-ef " * 30_000,
    "one long word": "x" * 270_000,
    "a word after a long one": "y" * 262_143 + " z w",
}


@pytest.mark.parametrize("name", LONG)
def test_words_end_at_the_limit(name: str) -> None:
    text = LONG[name]
    turn = ENGLISH.turn(text)
    whole, folded = words_of(text), fold(text)
    kept = [folded[a:b] for a, b in word_spans(folded)]
    # Not `assert ... == ...`: the difference of two such lists would be printed for hours.
    assert [turn.exact == tuple(kept), kept == whole[: len(kept)]] == [True, True]
    assert len(turn.exact) < len(whole), "the text is long enough to be cut"
    size = joined(turn.exact)
    assert size <= INDEXED_BYTES
    assert size + 1 + len(whole[len(turn.exact)].encode()) > INDEXED_BYTES or not turn.exact
    assert len(turn.stems) == len(turn.exact)


@pytest.mark.parametrize(("last", "kept"), [("", True), ("b", False)])
def test_a_word_is_taken_whole_or_not_at_all(last: str, kept: bool) -> None:
    # 131,071 words of one letter and their blanks are 262,142 bytes: two are left.
    turn = ENGLISH.turn("a " * 131_071 + "bb" + last)
    assert (turn.exact[-1] == "bb") is kept
    assert len(turn.exact) == 131_071 + kept


def test_signs_and_parts_beyond_the_limit_are_not_searched() -> None:
    within = ENGLISH.turn("C++ getUser " + "a " * 131_000 + "F# setGroup")
    assert within.symbols == {"c++", "f#"}
    beyond = ENGLISH.turn("C++ getUser " + "a " * 132_000 + "F# setGroup")
    assert beyond.symbols == {"c++"}
    assert beyond.parts == {"get", "user"}
    accented = ENGLISH.turn("é C++ getUser " + "a " * 132_000 + "F# setGroup")
    assert (accented.symbols, accented.parts) == (beyond.symbols, beyond.parts)


def test_nothing_is_nothing() -> None:
    assert ENGLISH.turn("") == ENGLISH.turn(" \u200b\u00ad") == NO_WORDS


# -- stretches


@examples(200)
@given(st.lists(texts, max_size=5), st.one_of(st.just(INDEXED_BYTES), st.integers(0, 40)))
def test_stretches_say_what_they_say_as_one_text(stretches: list[str], most: int) -> None:
    """But for the gaps; together they are cut as one text is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(words_module, "INDEXED_BYTES", most)
        whole, found = ENGLISH.turn("\n".join(stretches)), ENGLISH.turn_of_stretches(stretches)
    assert tuple(word for word in found.exact if word != GAP) == whole.exact
    assert tuple(stem for stem in found.stems if stem != GAP) == whole.stems
    assert [word == GAP for word in found.exact] == [stem == GAP for stem in found.stems]
    assert found.parts == whole.parts
    if most == INDEXED_BYTES:  # at a cut, signs at the end of a stretch are kept that the whole text loses
        assert found.symbols == whole.symbols


@examples(200)
@given(st.lists(texts, max_size=5), st.one_of(st.just(INDEXED_BYTES), st.integers(0, 40)))
def test_texts_of_one_turn_are_found_one_by_one(several: list[str], most: int) -> None:
    """Joined they are what they are as one text; where some would be cut off, nothing is told."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(words_module, "INDEXED_BYTES", most)
        each = ENGLISH.each_of(several)
        whole, gapped = ENGLISH.turn("\n".join(several)), ENGLISH.turn_of_stretches(several)
    if each is None:
        assert most < 40 or len(" ".join(words_of("\n".join(several))).encode()) > most - 2
    else:
        assert each == [ENGLISH.turn(text) for text in several]
        assert words_module.joined([each]) == whole
        assert words_module.joined([one] for one in each) == gapped


def test_no_two_words_of_different_stretches_are_neighbours() -> None:
    assert ENGLISH.turn_of_stretches(["a red", "…", "", "foxes ran"]).exact == ("a", "red", GAP, "foxes", "ran")
    assert ENGLISH.turn_of_stretches(["a red", "foxes"]).stems == ("a", "red", GAP, "fox")
    assert ENGLISH.turn_of_stretches(["", "a"]).exact == ("a",)
    assert ENGLISH.turn_of_stretches(["a"]) == ENGLISH.turn("a")
    assert ENGLISH.turn_of_stretches([]) == NO_WORDS


# -- time

# Each took a quadratic number of steps in some form of the expressions: 43 seconds for 8,000 marks in a row.
HOSTILE = {
    "marks": "\u093f",
    "marks of a spaceless script": "\u0e48",
    "diacritics": "\u0301",
    "marks and blanks": "\u093f ",
    "marks of two classes": "\u0301\u0323",
    "marks of two classes that stay": "\u0e49\u0e38",
    "voiced and other marks": "\uff9e\u0e38",
    "joiners": "a\u200d",
    "capitals": "A",
    "humps": "aB",
    "capitals and digits": "A1",
    "signs": "-",
    "quotes and stops": '".',
    "letters and marks": "a\u093f",
    "han": "東",
    "jamo": "ㄱㅏ",
    "data urls": "data:x/y;",
    "data url parameters": "data:;",
    "data url types": "data:x",
    "almost base64": "aA0" * 66 + " ",
}


@pytest.mark.parametrize("look", [ENGLISH.turn, without_bytes], ids=["words", "cut"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_take_no_longer(name: str, look: Callable[[str], object]) -> None:
    """A linear scan takes a blink, a quadratic one minutes. What follows is found all the same."""
    text = HOSTILE[name] * (60_000 // len(HOSTILE[name]))
    for end in (" zebra", " zèbrà"):
        seen = look(text + end)
        assert seen == text + end or "zebra" in fold(str(seen))


# -- languages


def test_stems_of_another_language() -> None:
    german = Analyser("german")
    assert german.turn("Häuser").exact == ("hauser",)
    assert german.stems(["hauser"]) == german.stems(["haus"]) != ENGLISH.stems(["hauser"])
    assert german.fingerprint != ENGLISH.fingerprint


def test_a_language_without_a_stemmer() -> None:
    with pytest.raises(ValueError, match=r"language klingon has no Snowball stemmer; there are .*english"):
        Analyser("klingon")


def test_bare_keeps_the_case() -> None:
    assert bare("GetÜberId") == "GetUberId"
    assert bare("plain") == "plain"
    assert {fold(bare(c)) == fold(c) for c in NASTY} == {True}
