"""What a word is: normalise, fold, segment, stem. The one definition that turns, queries and snippets share.

A word is a run of letters and digits, combining marks included; each character of a script written without spaces is a word of its
own. Both sides are normalised, stripped of diacritics and case-folded, then stemmed. Nothing is a stop word. contract.md, "What a
word is".

Engines get the words of a turn from here, separated by blanks, and never analyse text themselves: no engine can then differ from
another or from an older version of itself. `RULES` names this version of the rules; a change of them must change it, and rebuilds
every index.
"""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import Stemmer

RULES = "words-1"
INDEXED_BYTES = 262_144
"""Of a turn, the first so many UTF-8 bytes of its folded words, joined by blanks, are searched; a word cut there is not."""

JOINERS = "\u00ad\u200c\u200d\u2060\ufeff"
_DROPPED = re.compile(f"[{JOINERS}\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180d\u180f]+")
"""Joiners and variation selectors, dropped before anything else, so that they never split a word. U+200B does split."""

# Latin letters that carry no mark of their own after decomposition and yet are typed without.
_PLAIN_LETTERS = {
    "ı": "i",
    "æ": "ae",
    "Æ": "AE",
    "œ": "oe",
    "Œ": "OE",
    "ø": "o",
    "Ø": "O",
    "đ": "d",
    "Đ": "D",
    "ð": "d",
    "Ð": "D",
    "ł": "l",
    "Ł": "L",
    "þ": "th",
    "Þ": "TH",
    "ħ": "h",
    "Ħ": "H",
}

_SPACELESS_RANGES = (
    (0x0E01, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x19E0, 0x19FF),  # Khmer symbols
    (0x3005, 0x3007),  # Han iteration and zero
    (0x3021, 0x3029),  # Hangzhou numerals
    (0x3031, 0x303C),  # Kana repeat marks, Han numerals
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # Katakana phonetic extensions
    (0x3400, 0x4DBF),  # Han extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA9E0, 0xA9FF),  # Myanmar extended B
    (0xAA60, 0xAA7F),  # Myanmar extended A
    (0xAC00, 0xD7A3),  # Hangul syllables
    (0xF900, 0xFAFF),  # Han compatibility
    (0x16FE2, 0x16FFF),  # Han punctuation and repeat marks
    (0x1AFF0, 0x1B16F),  # Kana extensions
    (0x20000, 0x3FFFF),  # Han extensions
)


def _is_diacritic(point: int) -> bool:
    """Tells of the marks that are stripped: not every mark, for that would break Japanese が and Indic vowel signs."""
    if 0x300 <= point <= 0x36F or 0x1AB0 <= point <= 0x1AFF or 0x1DC0 <= point <= 0x1DFF:
        return True
    if 0x20D0 <= point <= 0x20FF or 0xFE20 <= point <= 0xFE2F:
        return True
    return 0x591 <= point <= 0x6ED and unicodedata.category(chr(point)) == "Mn"


def _ranges(points: Iterable[int]) -> str:
    """Writes code points as the inside of a regular expression's class."""
    found: list[list[int]] = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return "".join(f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in found)


def _one_of(points: Iterable[int]) -> str:
    """Writes a pattern of one of some code points: a class of those below U+10000, which Python looks up at once, and only where a
    character from above stands one of the others (all marks in one class are gone through, 0.25 µs a character).
    """
    some = list(points)
    low, high = _ranges(p for p in some if p < _ABOVE), _ranges(p for p in some if p >= _ABOVE)
    return f"(?:[{low}]|(?=[{_ABOVE_RANGE}])[{high}])" if high else f"[{low}]"


_ABOVE = 0x10000
_ABOVE_RANGE = "\U00010000-\U0010ffff"
_CATEGORIES = [unicodedata.category(chr(point)) for point in range(sys.maxunicode + 1)]
_IN_SPACELESS = {point for low, high in _SPACELESS_RANGES for point in range(low, high + 1)}
MARK = _one_of(p for p, kind in enumerate(_CATEGORIES) if kind[0] == "M")
"""Any mark, as a regular expression."""
_LOW_MARKS = _ranges(p for p, kind in enumerate(_CATEGORIES[:_ABOVE]) if kind[0] == "M")
_DIACRITICS = re.compile(f"[{_ranges(p for p, kind in enumerate(_CATEGORIES) if kind[0] == 'M' and _is_diacritic(p))}]+")
_ALONE = _one_of(p for p in sorted(_IN_SPACELESS) if _CATEGORIES[p][0] in "LN")
_JOINED_MARK = _one_of(p for p, kind in enumerate(_CATEGORIES) if kind[0] == "M" and p not in _IN_SPACELESS)
del _CATEGORIES

# Of a word: letters and digits, then marks and more of them. `\w` but for `_` is the letters and digits, and quicker than naming
# them (0.13 µs a character of Cyrillic against 0.26).
_LETTERS = f"[^\\W_{_ranges(sorted(_IN_SPACELESS))}]"
_RUN = f"{_LETTERS}++(?:{_JOINED_MARK}++{_LETTERS}*+)*+"
# A run; a spaceless character with the marks that follow it; marks, then a run. Marks are looked at where they begin and never
# given back, so that it is linear on any input: 8,000 marks in a row cost 43 seconds without.
_WORD = re.compile(f"{_RUN}|{_ALONE}{MARK}*+|(?={_JOINED_MARK})(?<!{_JOINED_MARK}){_JOINED_MARK}++{_RUN}")
_ASCII_WORD = re.compile("[a-z0-9]+")
_SPACELESS = re.compile(f"{_ALONE}{MARK}*+")
_ASCII_BLANKS = {point: " " for point in range(128) if not chr(point).isalnum()}

# A token with a sign in it. Tried at the starts of tokens only and never gives back what it took: linear on any input.
_ASCII_SIGNED = re.compile(r"(?<!\S)[a-z0-9]*+[^a-z0-9\s]\S*")
_ENDS = "\"'“”‘’()[]{}<>*`"
_STOPS = ".,;:!?…"

# A word of which a part is more than nothing: a hump, the end of an acronym, a change between letter and digit.
_ASCII_HUMPED = re.compile(r"(?<![A-Za-z0-9])(?:[A-Z]*[a-z]+[A-Z0-9]|[A-Z]+[0-9]|[0-9]+[A-Za-z]|[A-Z]{2,}[a-z])[A-Za-z0-9]*")
_ASCII_PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
SHORTEST_PART = 3
"""Letters of a term under this length are never looked for inside words, so shorter parts need not be kept."""


# Normalising sorts each run of marks, in time quadratic in its length: 80,000 marks cost 17 seconds. Unicode's stream-safe form
# (UAX #15, section 13) cuts runs after 30 by this joiner, which is a diacritic and so not there otherwise.
_CUT_OF_MARKS = "\u034f"
_LONG_MARKS = re.compile(f"((?:{MARK}|[\uff9e\uff9f]){{30}})(?={MARK}|[\uff9e\uff9f])")
_MAY_BE_LONG_MARKS = re.compile(f"[{_LOW_MARKS}\uff9e\uff9f{_ABOVE_RANGE}]{{31}}")


def _normalised(form: Literal["NFC", "NFKD"], text: str) -> str:
    """Normalises a text in time linear in its length."""
    cut = _LONG_MARKS.sub(rf"\1{_CUT_OF_MARKS}", text) if _MAY_BE_LONG_MARKS.search(text) else text
    done = unicodedata.normalize(form, cut)
    return done if len(cut) == len(text) else done.replace(_CUT_OF_MARKS, "")


def bare(text: str) -> str:
    """Returns the text normalised and without diacritics, letter case still there."""
    if text.isascii():
        return text
    kept = _DROPPED.sub("", text.replace("\u200b", " "))
    return _normalised("NFC", _in_plain_letters(_DIACRITICS.sub("", _normalised("NFKD", kept))))


def _in_plain_letters(text: str) -> str:
    """Returns a text with its _PLAIN_LETTERS replaced: asking for each of them costs a hundredth of `translate`."""
    for letter, plain in _PLAIN_LETTERS.items():
        if letter in text:
            text = text.replace(letter, plain)
    return text


def _casefold(text: str) -> str:
    """Folds the case of a bare text."""
    return text.lower() if text.isascii() else _normalised("NFC", _in_plain_letters(text.casefold()))


def fold(text: str) -> str:
    """Returns the text normalised, without diacritics and case-folded: equal for every dress of the same word."""
    return _casefold(bare(text))


def is_spaceless(character: str) -> bool:
    """Tells whether a character belongs to a script that is written without spaces."""
    return ord(character[0]) in _IN_SPACELESS


def is_letter_or_digit(character: str) -> bool:
    """Tells whether a character can begin a word."""
    return unicodedata.category(character)[0] in "LN"


def words_of_folded(folded: str) -> list[str]:
    """Returns the words of a folded text in order, unlimited."""
    return folded.translate(_ASCII_BLANKS).split() if folded.isascii() else _WORD.findall(folded)


def words_of(text: str) -> list[str]:
    """Returns all folded words of a text in order, unlimited."""
    return words_of_folded(fold(text))


def _indexed(words: list[str], most: int) -> int:
    """Counts the words, from the first on, that fit into so many bytes joined by blanks."""
    size = -1
    for count, word in enumerate(words):
        size += 1 + _bytes_of(word)
        if size > most:
            return count
    return len(words)


def _bytes_of(word: str) -> int:
    return len(word) if word.isascii() else len(word.encode())


def _trimmed(token: str) -> str:
    return token.rstrip(_ENDS + _STOPS).lstrip(_ENDS)


def _is_plain(token: str) -> bool:
    """Tells whether a folded token is letters, digits and marks alone."""
    return token.isalnum() or all(unicodedata.category(c)[0] in "LNM" for c in token)


def signed_tokens(folded: str) -> set[str]:
    """Returns the tokens of a folded text that carry signs, trimmed: `c++`, `.net`, `#123`, `src/main.py`. contract.md, tier 3."""
    if folded.isascii():
        candidates: list[str] = _ASCII_SIGNED.findall(folded)
    else:
        candidates = _SPACELESS.sub(" ", folded).split()
    trimmed = {_trimmed(token) for token in candidates}
    return {token for token in trimmed if token and not _is_plain(token)}


def parts_of(word: str) -> list[str]:
    """Returns the parts of a bare word in its own case: they end between letter and digit, before a capital after a small letter,
    and before the last capital of a run that a small letter follows (`HTTP|Server`).
    """
    if word.isascii():
        return _ASCII_PART.findall(word)
    cuts = [0]
    for at in range(1, len(word)):
        before, here, after = word[at - 1], word[at], word[at + 1 : at + 2]
        digits = before.isdigit() != here.isdigit()
        hump = before.islower() and here.isupper()
        acronym = before.isupper() and here.isupper() and after.islower()
        if digits or hump or acronym:
            cuts.append(at)
    return [word[a:b] for a, b in zip(cuts, [*cuts[1:], len(word)], strict=True)]


def _folded_parts(bare_text: str) -> set[str]:
    """Returns the folded parts, SHORTEST_PART characters and more, of the words that have more than one part."""
    ascii_only = bare_text.isascii()
    candidates = _ASCII_HUMPED.findall(bare_text) if ascii_only else _WORD.findall(bare_text)
    found: set[str] = set()
    for word in set(candidates):
        parts = parts_of(word)
        if len(parts) > 1:
            found.update(folded for part in parts if len(folded := _casefold(part)) >= SHORTEST_PART)
    return found


@dataclass(frozen=True, slots=True)
class TurnWords:
    """What is searched of a turn: its words as typed and by stem, in order; its tokens with signs; parts of its humped words."""

    exact: tuple[str, ...]
    stems: tuple[str, ...]
    symbols: frozenset[str]
    parts: frozenset[str]


NO_WORDS = TurnWords((), (), frozenset(), frozenset())
GAP = ""
"""Stands among words where others were left out, so that no phrase runs across: no word is equal to it."""


def joined(stretches: Iterable[Iterable[TurnWords]]) -> TurnWords:
    """Returns the words of several texts as one turn's, not cut: those of one stretch side by side, a GAP between two stretches."""
    exact: list[str] = []
    stems: list[str] = []
    symbols: set[str] = set()
    parts: set[str] = set()
    for stretch in stretches:
        gap = bool(exact)
        for words in stretch:
            if gap and words.exact:
                exact.append(GAP)
                stems.append(GAP)
                gap = False
            exact += words.exact
            stems += words.stems
            symbols |= words.symbols
            parts |= words.parts
    return TurnWords(tuple(exact), tuple(stems), frozenset(symbols), frozenset(parts))


_MOST_STEMS = 100_000
"""Words that a thread remembers the stems of, about 15 MB; the common ones come back soon after it forgot."""
_LONGEST_REMEMBERED = 64
"""Characters of a word that is worth remembering: one word may have 262,144, and 100,000 of those do not fit into any memory."""


class _Stems(dict[str, str]):
    """The stems of words, each found once. PyStemmer's own memory costs two to three times as much."""

    __slots__ = ("_stem",)

    def __init__(self, language: str) -> None:
        super().__init__()
        self._stem = Stemmer.Stemmer(language, 0).stemWord

    def __missing__(self, word: str) -> str:
        stem: str = self._stem(word)
        stem = word if stem == word else stem
        if len(word) <= _LONGEST_REMEMBERED:
            self[word] = stem
        return stem


class Analyser:
    """Finds the words of turns and queries for one language. Safe to use from several threads."""

    def __init__(self, language: str = "english") -> None:
        """Takes a Snowball language; raises ValueError naming it if there is none."""
        try:
            Stemmer.Stemmer(language)
        except KeyError:
            raise ValueError(f"language {language} has no Snowball stemmer; there are {', '.join(Stemmer.algorithms())}") from None
        self.language = language
        self._local = threading.local()  # a PyStemmer object serves one thread at a time

    @property
    def fingerprint(self) -> str:
        """Names everything that the words depend on; an index built under another one is rebuilt."""
        return f"{RULES} {self.language} pystemmer-{Stemmer.version()} unicode-{unicodedata.unidata_version}"

    def stems(self, words: list[str]) -> list[str]:
        """Returns the stem of each word."""
        memory: _Stems | None = getattr(self._local, "stems", None)
        if memory is None or len(memory) > _MOST_STEMS:
            memory = self._local.stems = _Stems(self.language)
        return list(map(memory.__getitem__, words))

    def turn(self, searched: str) -> TurnWords:
        """Returns the words of a turn's searched text, cut at INDEXED_BYTES."""
        return self._turn(searched, INDEXED_BYTES)[0]

    def _turn(self, searched: str, most: int) -> tuple[TurnWords, bool]:
        """Returns the words of a text, cut at so many bytes, and whether some were cut off."""
        bared = bare(searched)
        folded = _casefold(bared)
        exact = words_of_folded(folded)
        # No character of the folded text makes more than four bytes and a blank.
        cut = len(folded) * 5 > most and (count := _indexed(exact, most)) < len(exact)
        if cut:
            end = _end_of_word(folded, count)
            exact, folded = exact[:count], folded[:end]
            bared = bared[: _end_of_word(bared, count)]
        symbols, parts = frozenset(signed_tokens(folded)), frozenset(_folded_parts(bared))
        return TurnWords(tuple(exact), tuple(self.stems(exact)), symbols, parts), cut

    def turn_of_stretches(self, stretches: Iterable[str]) -> TurnWords:
        """Returns the words of a turn of whose searched text only stretches count, a GAP between two of them; all together are cut
        at INDEXED_BYTES.
        """
        return joined((words,) for words, _ in self._each(stretches))

    def each_of(self, texts: Sequence[str]) -> list[TurnWords] | None:
        """Returns the words of each text of one turn; None where all together are more than are searched."""
        found = list(self._each(texts))
        return None if any(cut for _, cut in found) or len(found) < len(texts) else [words for words, _ in found]

    def _each(self, texts: Iterable[str]) -> Iterator[tuple[TurnWords, bool]]:
        """Yields the words of each text and whether some were cut off: joined by blanks all are INDEXED_BYTES at most."""
        left = INDEXED_BYTES
        for text in texts:
            words, cut = self._turn(text, left)
            yield words, cut
            left -= sum(map(_bytes_of, words.exact)) + len(words.exact)
            if cut or left <= 0:
                return


def _end_of_word(text: str, count: int) -> int:
    """Returns where the count-th word of a bare or folded text ends."""
    if count == 0:
        return 0
    for at, found in enumerate(_WORD.finditer(text), 1):
        if at == count:
            return found.end()
    return len(text)


def word_spans(folded: str) -> Iterator[tuple[int, int]]:
    """Yields where the words of a folded text begin and end, in order; no more than are searched."""
    size = -1
    for found in (_ASCII_WORD if folded.isascii() else _WORD).finditer(folded):
        word = found.group()
        size += 1 + _bytes_of(word)
        if size > INDEXED_BYTES:
            return
        yield found.span()
