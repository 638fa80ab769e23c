"""What a word is, said again from contract.md, character by character and slowly: what the quick version must agree with.

Shares no code and no table with it: scripts are told by the names of characters, kinds by their category.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

DROPPED = "\u00ad\u200c\u200d\u2060\ufeff"
# "stripped of diacritics"; index.md names the first and the last, and says why no other marks: か is not が.
DIACRITICS = (
    *range(0x300, 0x370),
    *range(0x1AB0, 0x1B00),
    *range(0x1DC0, 0x1E00),
    *range(0x20D0, 0x2100),
    *range(0xFE20, 0xFE30),
    *range(0x591, 0x6EE),
)
LETTERS = {"ı": "i", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h"}
SPACELESS = (
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC ITERATION MARK",
    "VERTICAL IDEOGRAPHIC ITERATION MARK",
    "IDEOGRAPHIC CLOSING MARK",
    "IDEOGRAPHIC NUMBER ZERO",
    "HANGZHOU NUMERAL",
    "OLD CHINESE",
    "VIETNAMESE ALTERNATE",
    "KHITAN SMALL SCRIPT FILLER",
    "MASU MARK",
    "HIRAGANA",
    "KATAKANA",
    "COMBINING KATAKANA",
    "VERTICAL KANA",
    "HENTAIGANA",
    "HANGUL SYLLABLE",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)
ENDS = "\"'“”‘’()[]{}<>*`"
STOPS = ".,;:!?…"


def kind(character: str) -> str:
    """Returns L, N, M or another first letter of the category."""
    return unicodedata.category(character)[0]


def is_variation_selector(character: str) -> bool:
    return "VARIATION SELECTOR" in unicodedata.name(character, "")


def is_spaceless(character: str) -> bool:
    """Tells of a character of the scripts without spaces; marks of theirs included."""
    return unicodedata.name(character, "").startswith(SPACELESS)


def is_diacritic(character: str) -> bool:
    return ord(character) in DIACRITICS and kind(character) == "M" and unicodedata.category(character) != "Mc"


def folded(text: str) -> str:
    """Drops, normalises, strips, folds the case; letters that carry no mark of their own become those that people type."""
    kept = "".join(" " if c == "\u200b" else c for c in text if c not in DROPPED and not is_variation_selector(c))
    bare = "".join(c for c in unicodedata.normalize("NFKD", kept) if not is_diacritic(c))
    lowered = unicodedata.normalize("NFC", bare).casefold()
    return unicodedata.normalize("NFC", "".join(LETTERS.get(c, c) for c in lowered))


def words(text: str) -> list[str]:
    """Cuts a text into words."""
    return list(words_of_folded(folded(text)))


def words_of_folded(text: str) -> Iterator[str]:
    """Walks over the text: a spaceless letter takes the marks after it, any other run goes on to the next sign or spaceless letter.

    A run needs a letter or digit; marks of the spaceless scripts belong to their own letters only.
    """
    at = 0
    while at < len(text):
        start = at
        if is_spaceless(text[at]):
            at += 1
            if kind(text[start]) in "LN":
                while at < len(text) and kind(text[at]) == "M":
                    at += 1
                yield text[start:at]
            continue
        while at < len(text) and kind(text[at]) in "LNM" and not is_spaceless(text[at]):
            at += 1
        run = text[start:at]
        if any(kind(c) in "LN" for c in run):
            yield run
        at = max(at, start + 1)


def signed(text: str) -> set[str]:
    """Returns the tokens with signs, trimmed at the end of quotes, brackets and stops, at the start of all but stops."""
    apart = "".join(" " if c == "\u200b" or kind(c) == "Z" else c for c in text)
    tokens = [token for piece in apart.split() for token in without_spaceless(folded(piece)).split()]
    trimmed = [token.rstrip(ENDS + STOPS).lstrip(ENDS) for token in tokens]
    return {token for token in trimmed if any(kind(c) not in "LNM" for c in token)}


def without_spaceless(text: str) -> str:
    """Puts a blank where a letter of a spaceless script stands with its marks."""
    kept: list[str] = []
    inside = False
    for c in text:
        inside = (is_spaceless(c) and kind(c) in "LN") or (inside and kind(c) == "M")
        kept.append(" " if inside else c)
    return "".join(kept)


def parts(word: str) -> list[str]:
    """Cuts an ASCII word where a digit meets a letter, before a capital after a small letter, and before the last capital of a run
    that a small letter follows.
    """
    found = [word[:1]]
    for before, here, after in zip(word, word[1:], word[2:] + " ", strict=False):
        meets = before.isdigit() != here.isdigit()
        hump = before.islower() and here.isupper()
        last_capital = before.isupper() and here.isupper() and after.islower()
        if meets or hump or last_capital:
            found.append("")
        found[-1] += here
    return found
