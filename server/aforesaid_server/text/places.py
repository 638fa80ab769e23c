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

from aforesaid_server.text.words import (
    GAP,
    INDEXED_BYTES,
    JOINERS,
    MARK,
    Analyser,
    fold,
    is_spaceless,
    word_spans,
    words_of_folded,
)

_VOICED = "\uff9e\uff9f"  # the half-width marks of Kana are letters until they are normalised
_FOLLOWER = f"(?:{MARK}|[{JOINERS}\\ufe00-\\ufe0f{_VOICED}])"
_EXTENDER = re.compile(f"{_FOLLOWER}|[\\u1160-\\u11ff\\ud7b0-\\ud7ff\\U0001f3fb-\\U0001f3ff]")


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
    f"[\\x00-\\x7f]+(?!{_FOLLOWER})"
    "|[\\x00-/:-@\\[-`{-\\x7f、。，]"
    f"|(?:[{_LEADING}]{_FOLLOWER}*+[{_VOWELS}]|[{_OPEN}]){_FOLLOWER}*+(?:[{_TRAILING}]{_FOLLOWER}*+)?"
    f"|.{_FOLLOWER}*+",
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
    """The sought words of a text that folds character by character, found without looking at the others: 0.2 ms for 100 kB."""

    def __init__(self, text: _PlainText, spans: Sequence[tuple[int, int]], analyser: Analyser, *, as_typed: bool) -> None:
        """Takes where the words stand, in order."""
        super().__init__()
        self._spans: list[tuple[int, int]] = []
        before = -1
        for start, end in spans:
            if before >= 0 and text.has_word(before, start):
                self.exact.append(GAP)
                self._spans.append((before, before))
            self.exact.append(text.folded[start:end])
            self._spans.append((start, end))
            before = end
        self.said = self.exact if as_typed else analyser.stems(self.exact)

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


class _PlainText:
    """A folded text without marks: each letter stands where it stands in the text. Looking for some letters costs 0.5 ns a
    character, cutting all of it into words twenty times that.
    """

    def __init__(self, folded: str) -> None:
        self.folded = folded

    def words_from(self, beginning: str) -> Iterator[tuple[int, int]]:
        """Yields where words stand that begin so."""
        alone = is_spaceless(beginning[0])
        at = self.folded.find(beginning)
        while at >= 0:
            if alone or not _joins(self.folded[at - 1 : at]):
                yield at, self._end(at)
            at = self.folded.find(beginning, at + 1)

    def words_with(self, letters: str) -> Iterator[tuple[int, int]]:
        """Yields where words stand that hold some letters, each once."""
        at = self.folded.find(letters)
        while at >= 0:
            start = at
            while not is_spaceless(self.folded[start]) and _joins(self.folded[start - 1 : start]):
                start -= 1
            end = self._end(start)
            if at + len(letters) <= end:
                yield start, end
            at = self.folded.find(letters, max(end, at + 1))

    def has_word(self, start: int, end: int) -> bool:
        """Tells whether a word stands between two places that are the edges of words."""
        return _LETTERS.search(self.folded, start, end) is not None

    def _end(self, start: int) -> int:
        if is_spaceless(self.folded[start]):
            return start + 1
        found = _LETTERS.match(self.folded, start)
        end = found.end() if found else start
        return next((at for at in range(start, end) if is_spaceless(self.folded[at])), end)

    def surely_searched(self, end: int) -> bool:
        """Tells whether the words up to a place are searched, without looking at them."""
        # Of a folded text of so many bytes no words, joined by blanks, make more than twice as many.
        return 2 * len(self.folded[:end].encode()) <= INDEXED_BYTES


class _AsciiText(_PlainText):
    """A text of ASCII, in which whatever is no word is a blank."""

    def __init__(self, folded: str) -> None:
        super().__init__(folded)
        self._blank = f" {folded.translate(_BLANKS)} "  # one further to the right

    def words_from(self, beginning: str) -> Iterator[tuple[int, int]]:
        """Yields where words stand that begin so."""
        beginning = f" {beginning}"
        at = self._blank.find(beginning)
        while at >= 0:
            end = self._blank.find(" ", at + 1)
            yield at, end - 1
            at = self._blank.find(beginning, end)

    def words_with(self, letters: str) -> Iterator[tuple[int, int]]:
        """Yields where words stand that hold some letters, each once."""
        at = self._blank.find(letters)
        while at >= 0:
            end = self._blank.find(" ", at)
            yield self._blank.rfind(" ", 0, at), end - 1
            at = self._blank.find(letters, end)

    def has_word(self, start: int, end: int) -> bool:
        """Tells whether a word stands between two places that are the edges of words."""
        return end - start > 1 and (self._blank[start + 2] != " " or not self._blank[start + 1 : end + 1].isspace())

    def surely_searched(self, end: int) -> bool:
        """Tells whether the words up to a place are searched: there is a blank at least between two of them."""
        return end <= INDEXED_BYTES


_LETTERS = re.compile(r"[^\W_]+")
_BLANKS = {point: " " for point in range(128) if not chr(point).isalnum()}


def _joins(neighbour: str) -> bool:
    """Tells whether a character beside a letter belongs to its word."""
    return neighbour.isalnum() and not is_spaceless(neighbour)


def _end_of_searched(folded: str) -> int:
    """Returns where the last word ends that is searched."""
    at, size = 0, -1
    while at < len(folded):
        cut = folded.find(" ", at + _AT_ONCE)
        cut = len(folded) if cut < 0 else cut
        more = sum(map(_size, words_of_folded(folded[at:cut])))
        if size + more > INDEXED_BYTES:
            end = at
            for start, stop in word_spans(folded[at:cut]):
                size += _size(folded[at + start : at + stop])
                if size > INDEXED_BYTES:
                    break
                end = at + stop
            return end
        at, size = cut, size + more
    return len(folded)


_AT_ONCE = 16_384


def _plain_words(
    folded: str, analyser: Analyser, sought: frozenset[str], letters: Collection[str], *, as_typed: bool
) -> PlacedWords:
    """Returns the sought words of a folded text whose letters stand in their places."""
    text = _AsciiText(folded) if folded.isascii() else _PlainText(folded)
    beginnings, forms = _beginnings(folded, analyser, sought, as_typed=as_typed)
    found: set[tuple[int, int]] = set()
    for beginning in beginnings:
        found.update(text.words_from(beginning))
    words = list({folded[start:end] for start, end in found})
    if forms is None:
        forms = frozenset(word for word, stem in zip(words, analyser.stems(words), strict=True) if stem in sought)
    spans = {(start, end) for start, end in found if folded[start:end] in forms}
    for some in letters:
        spans.update(text.words_with(some))
    ordered = sorted(spans)
    if ordered and not text.surely_searched(ordered[-1][1]):
        last = _end_of_searched(folded)
        ordered = [span for span in ordered if span[1] <= last]
    return _PlainWords(text, ordered, analyser, as_typed=as_typed)


def _beginnings(
    folded: str, analyser: Analyser, sought: frozenset[str], *, as_typed: bool
) -> tuple[list[str], frozenset[str] | None]:
    """Returns how the sought words begin, none of them the beginning of another; and the words themselves where they are known."""
    forms: frozenset[str] | None = None
    if as_typed:
        forms = sought
    elif analyser.language != "english":
        words = list(set(words_of_folded(folded)))
        forms = frozenset(word for word, stem in zip(words, analyser.stems(words), strict=True) if stem in sought)
    some = forms if forms is not None else map(beginning_of, sought)
    fewest: list[str] = []
    for beginning in sorted(filter(None, some)):
        if not fewest or not beginning.startswith(fewest[-1]):
            fewest.append(beginning)
    return fewest, forms


def beginning_of(stem: str) -> str:
    """Returns letters with which every word of an English stem begins: all but the end, where the stemmer writes i for y (carri),
    adds an e (hope, of hoping), and makes ble of bility (abl, once the e is gone) and ie of ying (die).
    """
    for end, changed in (("ble", 2), ("bl", 1), ("ie", 2), ("e", 1), ("i", 1), ("y", 1)):
        if stem.endswith(end) and len(stem) > changed:
            return stem[:-changed]
    return stem


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


_OF_A_WORD = re.compile(f"[^\\W_]|{MARK}")


def _folded_alike(text: str) -> str | None:
    """Returns a text folded, blanks for signs, if that leaves each letter in its place; else None."""
    if text.isascii():
        return text.lower()
    kinds: dict[_Folds, list[str]] = {kind: [] for kind in _Folds}
    for character in set(text):
        if not character.isascii():
            kinds[_folds(character)].append(character)
    if kinds[_Folds.OTHER]:
        return None
    for character in kinds[_Folds.SEPARATES]:
        text = text.replace(character, " ")
    for character in kinds[_Folds.DROPPED]:  # one that follows no letter, as in an emoji, joins nothing
        if re.search(rf"[^\W_]{character}", text):
            return None
        text = text.replace(character, " ")
    otherwise = [character for character in kinds[_Folds.ALONE] if not _only_lowers(character)]
    if len(otherwise) > _FEW or not all(map(_stays, otherwise)):
        return fold(text)
    for character in otherwise:
        text = text.replace(character, fold(character))
    return text.lower()


_FEW = 64
"""Different characters that are replaced one by one: each costs 0.5 ns a character of the text, folding the whole 80."""


@lru_cache(65_536)
def _only_lowers(character: str) -> bool:
    """Tells whether folding a character is writing it small; of a final sigma that depends on its neighbours."""
    return character not in "Σς" and fold(character) == character.lower()


def _stays(character: str) -> bool:
    """Tells whether a folded character stays as it is when it is written small."""
    return fold(character) == fold(character).lower()


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
        return _plain_words(folded, analyser, wanted, letters, as_typed=as_typed)
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
