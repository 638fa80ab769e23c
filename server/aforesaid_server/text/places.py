"""Where words stand in a text, for snippets: folding that remembers places, and the words that are sought with their neighbours.

Says the same as folding and segmenting the whole text would, and looks closely only at the pieces that hold a word that is sought:
of a long turn those are few.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import accumulate

from aforesaid_server.text.words import INDEXED_BYTES, JOINERS, MARKS, Analyser, fold, is_spaceless, word_spans, words_of_folded

GAP = ""
"""Stands for the words between two pieces that were looked at: no word is equal to it."""

_VOICED = "\uff9e\uff9f"  # the half-width marks of Kana are letters until they are normalised
_FOLLOWERS = f"{MARKS}{JOINERS}\\ufe00-\\ufe0f{_VOICED}"
_EXTENDER = re.compile(f"[{_FOLLOWERS}\\u1160-\\u11ff\\ud7b0-\\ud7ff\\U0001f3fb-\\U0001f3ff]")


def is_extender(character: str) -> bool:
    """Tells whether a character belongs to the one before it, so that no cut may stand between them."""
    return _EXTENDER.match(character) is not None


# -- folding in place


def _hangul() -> tuple[str, str, str, str]:
    """Returns the characters, as insides of classes, that normalising turns into or ends in a leading jamo; that end in a leading
    jamo and a vowel; that become a vowel; that become a trailing jamo. Neighbours of these kinds become one syllable.
    """
    leading, open_syllables, vowels, trailing = [], [], [], []
    for low, high in ((0x1100, 0x11FF), (0x3131, 0x318E), (0x3200, 0x327F), (0xAC00, 0xD7A3), (0xFFA0, 0xFFDC)):
        for character in map(chr, range(low, high + 1)):
            plain = unicodedata.normalize("NFKD", character)
            if "\u1100" <= plain[-1] <= "\u1112":
                leading.append(character)
            elif "\u1161" <= plain <= "\u1175":
                vowels.append(character)
            elif "\u11a8" <= plain <= "\u11c2":
                trailing.append(character)
            elif "\u1161" <= plain[-1] <= "\u1175":
                open_syllables.append(character)
    return "".join(leading), "".join(open_syllables), "".join(vowels), "".join(trailing)


_LEADING, _OPEN, _VOWELS, _TRAILING = _hangul()
# What is folded as one: plain ASCII; a sign, to which no mark belongs; jamo that become one syllable; any other character with the
# marks that follow it.
_CLUSTER = re.compile(
    f"[\\x00-\\x7f]+(?![{_FOLLOWERS}])"
    "|[\\x00-/:-@\\[-`{-\\x7f、。，]"
    f"|(?:[{_LEADING}][{_FOLLOWERS}]*+[{_VOWELS}]|[{_OPEN}])[{_FOLLOWERS}]*+(?:[{_TRAILING}][{_FOLLOWERS}]*+)?"
    f"|.[{_FOLLOWERS}]*+",
    re.DOTALL,
)
_LONGEST_KEPT = 8


@lru_cache(65_536)
def _fold_short(cluster: str) -> str:
    return fold(cluster)


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A folded text with, for each of its code points, where in the original text it comes from: `starts` and `ends`."""

    folded: str
    starts: Sequence[int]
    ends: Sequence[int]


def fold_in_place(text: str) -> FoldedText:
    """Folds a text piece by piece, remembering where each folded code point comes from.

    A piece is a character with the marks and jamo that belong to it, so that folding the pieces is folding the whole.
    """
    if text.isascii():
        return FoldedText(text.lower(), range(len(text)), range(1, len(text) + 1))
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for found in _CLUSTER.finditer(text):
        start, end, cluster = found.start(), found.end(), found.group()
        if cluster.isascii():
            pieces.append(cluster.lower())
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
            continue
        folded = _fold_short(cluster) if len(cluster) <= _LONGEST_KEPT else fold(cluster)
        pieces.append(folded)
        starts.extend([start] * len(folded))
        ends.extend([end] * len(folded))
    return FoldedText("".join(pieces), starts, ends)


# -- the words that are sought


def searched_part(text: str) -> str:
    """Returns the beginning of a text with at least all of its words that are searched: of 30 MB mostly 0.3."""
    size = INDEXED_BYTES + INDEXED_BYTES // 4
    while size < len(text):
        part = text[:size]
        words = words_of_folded(fold(part))
        if len(_searched(words)) < len(words):
            return part
        size *= 4
    return text


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of a text, folded in place, and its words; `spans` are places in the folded piece, `said` what is compared."""

    text: FoldedText
    spans: list[tuple[int, int]]
    exact: list[str]
    said: list[str]


class PlacedWords:
    """The words of the pieces that were looked at, in order, a GAP where other words stand between two of them."""

    def __init__(self) -> None:
        self.exact: list[str] = []
        """As typed, folded."""
        self.said: list[str] = []
        """What is compared: stems, or words as typed."""
        self._places: list[tuple[_Piece, int, int]] = []

    def add(self, piece: _Piece, at: int) -> None:
        """Adds the words of a piece that begins at `at`."""
        self.exact += piece.exact
        self.said += piece.said
        self._places += [(piece, at, number) for number in range(len(piece.exact))]

    def add_gap(self) -> None:
        """Adds a GAP."""
        self.exact.append(GAP)
        self.said.append(GAP)
        self._places.append((_NOTHING, 0, 0))

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Returns where in the text the words from `first` to `last` begin and end."""
        piece, at, number = self._places[first]
        start = at + piece.text.starts[piece.spans[number][0]]
        piece, at, number = self._places[last]
        return start, at + piece.text.ends[piece.spans[number][1] - 1]

    def letters(self, word: int, start: int, end: int) -> tuple[int, int]:
        """Returns where in the text some letters of a word, from `start` to `end` in the folded word, begin and end."""
        piece, at, number = self._places[word]
        first = piece.spans[number][0]
        return at + piece.text.starts[first + start], at + piece.text.ends[first + end - 1]


_NOTHING = _Piece(FoldedText("", (), ()), [], [], [])


class _PlainWords(PlacedWords):
    """All words of a text that folds character by character, of which only the sought ones have their places: 0.1 ms for 4 kB."""

    def __init__(
        self, folded: str, analyser: Analyser, sought: frozenset[str], letters: Collection[str], *, as_typed: bool
    ) -> None:
        super().__init__()
        words = words_of_folded(folded)
        # Of a folded text of so many bytes no words, joined by blanks, make more than twice as many.
        self.exact = words if 2 * len(folded.encode()) <= INDEXED_BYTES else _searched(words)
        self.said = self.exact if as_typed else analyser.stems(self.exact)
        numbers = sorted(number for said in sought for number in numbers_of(self.said, said))
        forms = {self.exact[number] for number in numbers}
        if any(some in folded for some in letters):
            forms.update(word for word in set(self.exact) if any(some in word for some in letters))
            numbers = [number for number, word in enumerate(self.exact) if word in forms]
        # A form stands in the text as often as among all words, in the same order; what is not searched comes last.
        self._spans = dict(zip(numbers, sorted(span for form in forms for span in _stands(folded, form)), strict=False))

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Returns where in the text the words from `first` to `last` begin and end."""
        return self._spans[first][0], self._spans[last][1]

    def letters(self, word: int, start: int, end: int) -> tuple[int, int]:
        """Returns where in the text some letters of a word begin and end."""
        first = self._spans[word][0]
        return first + start, first + end


def numbers_of(words: list[str], word: str) -> Iterator[int]:
    """Yields where a word stands among words. Asking the list is ten times as quick as looking at each of them."""
    at = -1
    try:
        while True:
            at = words.index(word, at + 1)
            yield at
    except ValueError:
        return


def _stands(folded: str, word: str) -> Iterator[tuple[int, int]]:
    """Yields where a word stands as a word in a folded text without marks."""
    before, after = not is_spaceless(word[0]), not is_spaceless(word[-1])
    at = folded.find(word)
    while at >= 0:
        end = at + len(word)
        if not ((before and _joins(folded[at - 1 : at])) or (after and _joins(folded[end : end + 1]))):
            yield at, end
        at = folded.find(word, end)


def _joins(neighbour: str) -> bool:
    """Tells whether a character beside a letter belongs to its word."""
    return neighbour.isalnum() and not is_spaceless(neighbour)


class _Folds(Enum):
    """What folding makes of a character that stands alone."""

    ALONE = "one character that no neighbour can change"
    SEPARATES = "nothing of a word"
    DROPPED = "nothing at all"
    OTHER = "anything else: a mark, jamo, something that grows"


@lru_cache(65_536)
def _folds(character: str) -> _Folds:
    folded = fold(character)
    if not folded:
        return _Folds.DROPPED
    if not _OF_A_WORD.search(folded):
        return _Folds.SEPARATES
    jamo = character in _LEADING or character in _VOWELS or character in _TRAILING
    grows = len(folded) != 1 or unicodedata.category(folded)[0] == "M"
    return _Folds.OTHER if grows or jamo or is_extender(character) else _Folds.ALONE


_OF_A_WORD = re.compile(f"[^\\W_]|[{MARKS}]")


def _folded_alike(text: str) -> str | None:
    """Returns a text folded, blanks for signs, if that leaves each letter in its place; else None."""
    if text.isascii():
        return text.lower()
    dropped: list[str] = []
    for character in set(text):
        kind = _Folds.ALONE if character.isascii() else _folds(character)
        if kind is _Folds.OTHER:
            return None
        if kind is _Folds.SEPARATES:
            text = text.replace(character, " ")
        elif kind is _Folds.DROPPED:
            dropped.append(character)
    for character in dropped:  # one that follows no letter, as in an emoji, joins nothing
        if re.search(rf"[^\W_]{character}", text):
            return None
        text = text.replace(character, " ")
    return fold(text)


def _searched(words: list[str]) -> list[str]:
    """Returns as many words as fit into INDEXED_BYTES, joined by blanks."""
    totals = list(accumulate(map(_size, words)))
    return words[: bisect_right(totals, INDEXED_BYTES + 1)]


def sought_words(
    text: str, analyser: Analyser, sought: Collection[str], letters: Collection[str] = (), *, as_typed: bool
) -> PlacedWords:
    """Returns the words of the pieces of a text that hold one of `sought` (stems, or words where as_typed) or the `letters`.

    Neighbours stay neighbours, so a phrase whose words are all sought is found as in the whole text. The text's white space must be
    single blanks. No more words than are searched are looked at.
    """
    wanted = frozenset(sought)
    if (folded := _folded_alike(text)) is not None:
        return _PlainWords(folded, analyser, wanted, letters, as_typed=as_typed)
    pieces = _Pieces(text, analyser, as_typed)
    held = pieces.holders(wanted, letters)
    words = PlacedWords()
    after = 0
    for number in [number for number, piece in enumerate(pieces.texts) if piece in held]:
        if words.said and words.said[-1] != GAP and any(map(pieces.has_words, pieces.texts[after:number])):
            words.add_gap()
        words.add(pieces.looked_at(pieces.texts[number]), pieces.begins[number])
        after = number + 1
    return words


_LONG_PIECE = 100
# Before a character of these scripts that is a word, and after these signs, no word goes on and nothing is composed.
_INSIDE_LONG = re.compile("[一-鿿ぁ-ゖァ-ヺ가-힣]?[^ ,;、。，一-鿿ぁ-ゖァ-ヺ가-힣]*[ ,;、。，]?")


def _split(text: str) -> list[str]:
    """Cuts a text into pieces that no word crosses and that fold as the whole does: after blanks, the long ones at more places."""
    found = re.findall("[^ ]* ?", text)
    if max(map(len, found)) < _LONG_PIECE:
        return found
    return [piece for one in found for piece in (_INSIDE_LONG.findall(one) if len(one) >= _LONG_PIECE else (one,))]


def _folded(pieces: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields each distinct piece with its folding. No piece holds a newline and none folds to one."""
    plain: list[str] = []
    other: list[str] = []
    for piece in dict.fromkeys(pieces):
        (plain if piece.isascii() else other).append(piece)
    for some in (plain, other):
        if some:
            yield from zip(some, fold("\n".join(some)).split("\n"), strict=True)


class _Pieces:
    """The pieces of a text, `texts`, with where they begin, as far as the text is searched; each distinct one is folded once."""

    def __init__(self, text: str, analyser: Analyser, as_typed: bool) -> None:
        self._analyser = analyser
        self._as_typed = as_typed
        self._looked_at: dict[str, _Piece] = {}
        texts = _split(text)
        self._folded = dict(_folded(texts))
        self.texts = texts if len(text) <= INDEXED_BYTES and text.isascii() else self._searched(texts)
        self.begins = list(accumulate(map(len, self.texts), initial=0))

    def _searched(self, texts: list[str]) -> list[str]:
        """Returns the pieces that are searched, the last one cut where the last word ends."""
        # No character that is not ASCII makes more than four bytes and a blank.
        most = {piece: len(folded) + 1 if folded.isascii() else 5 * len(folded) for piece, folded in self._folded.items()}
        if sum(map(most.__getitem__, texts)) <= INDEXED_BYTES:
            return texts
        sizes = {piece: sum(map(_size, _words_of_piece(folded))) for piece, folded in self._folded.items()}
        totals = list(accumulate(map(sizes.__getitem__, texts), initial=0))
        count = bisect_right(totals, INDEXED_BYTES + 1) - 1
        if count == len(texts):
            return texts
        return [*texts[:count], self._cut(texts[count], INDEXED_BYTES + 1 - totals[count])]

    def _cut(self, piece: str, room: int) -> str:
        """Returns the piece as far as its words, each with a blank, fit into some bytes; keeps what it knows of it."""
        text = fold_in_place(piece)
        spans = list(word_spans(text.folded))
        totals = accumulate(_size(text.folded[start:end]) for start, end in spans)
        kept = spans[: sum(total <= room for total in totals)]
        end = text.ends[kept[-1][1] - 1] if kept else 0
        cut = piece[:end] + "\n"  # unlike any other piece
        self._folded[cut] = text.folded[: kept[-1][1]] if kept else ""
        self._looked_at[cut] = self._piece(text, kept)
        return cut

    def _piece(self, text: FoldedText, spans: list[tuple[int, int]]) -> _Piece:
        exact = [text.folded[start:end] for start, end in spans]
        return _Piece(text, spans, exact, exact if self._as_typed else self._analyser.stems(exact))

    def looked_at(self, piece: str) -> _Piece:
        """Returns a piece with its words in place."""
        found = self._looked_at.get(piece)
        if found is None:
            text = fold_in_place(piece)
            found = self._looked_at[piece] = self._piece(text, list(word_spans(text.folded)))
        return found

    def has_words(self, piece: str) -> bool:
        """Tells whether there is a word in a piece."""
        return next(word_spans(self._folded[piece]), None) is not None

    def holders(self, sought: frozenset[str], letters: Iterable[str]) -> set[str]:
        """Returns the distinct pieces that hold one of the sought words or the letters."""
        forms = sought if self._as_typed else self._forms(sought)
        held = {piece for piece, folded in self._folded.items() if not forms.isdisjoint(_words_of_piece(folded))}
        for some in letters:
            held.update(piece for piece, folded in self._folded.items() if some in folded)
        return held

    def _forms(self, stems: frozenset[str]) -> frozenset[str]:
        """Returns the words of the text that have one of the stems."""
        plain = " ".join(filter(str.isascii, self._folded.values()))
        other = " ".join(folded for folded in self._folded.values() if not folded.isascii())
        words = list({*words_of_folded(plain), *words_of_folded(other)})
        return frozenset(word for word, stem in zip(words, self._analyser.stems(words), strict=True) if stem in stems)


def _words_of_piece(folded: str) -> Iterable[str]:
    """Returns the words of a folded piece; mostly it is one."""
    bare = folded.rstrip(" ")
    return (bare,) if bare.isascii() and bare.isalnum() else words_of_folded(folded)


def _size(word: str) -> int:
    """Returns the bytes of a word and the blank after it."""
    return 1 + (len(word) if word.isascii() else len(word.encode()))


__all__ = ["GAP", "FoldedText", "PlacedWords", "fold_in_place", "is_extender", "numbers_of", "sought_words"]
