"""The snippet of a turn in which MATCH_SUBSTRING found letters: a window of its text, every place of them marked.

The same rules as `snippet.py`, over the turn's text instead of the searched text. Of a long text only what lies around the first
place is looked at. Folding may make one character two (`ß` is `ss`): a mark holds whole characters, and with them the marks and
joiners that people see as part of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from aforesaid.graphemes import cluster_at, cluster_bounds
from aforesaid_server.search.snippet import CUT, LEAD, LONG_STRETCH, WIDTH, Mark, unbracketed, window_around
from aforesaid_server.text.transcript import Literal, fold_letters

_WHITE = re.compile(r"\s+")
_BEFORE = LEAD + LONG_STRETCH + 20
_AFTER = WIDTH + LONG_STRETCH + 20
"""Code points on each side of the first place that show where a window may begin and end, white space folded."""
_FARTHEST = 65_536
"""Code points that are looked at for them: a longer run of white space ends the window."""
_CHUNK = 65_536
_MOST_MARKS = 10_000


def snippet_of_letters(literal: Literal, letters: str) -> str:
    """Returns the snippet of the first text that holds folded letters, empty if none does. A … stands where a turn goes on with
    another stretch.
    """
    for number, text in enumerate(literal.texts):
        at = fold_letters(text).find(letters)
        if at >= 0:
            last = len(literal.stretches) - 1
            drawn = _around(text, _unfolded(text, at), letters)
            return _cut(drawn, before=0 < number <= last, after=number < last)
    return ""


def _cut(drawn: str, *, before: bool, after: bool) -> str:
    """Returns a snippet with a … where the text goes on, each once."""
    first = CUT if before and not drawn.startswith(CUT) else ""
    last = CUT if after and not drawn.endswith(CUT) else ""
    return f"{first}{drawn}{last}"


def _unfolded(text: str, at: int) -> int:
    """Returns which code point of a text stands at a place of the folded text."""
    if text.isascii():
        return at
    for begin in range(0, len(text), _CHUNK):
        size = len(fold_letters(text[begin : begin + _CHUNK]))
        if at >= size:
            at -= size
            continue
        for place in range(begin, len(text)):
            at -= len(fold_letters(text[place]))
            if at < 0:
                return place
    return len(text)


def _around(text: str, first: int, letters: str) -> str:
    """Returns the window around the letters that begin at a code point, which is the first place of them."""
    begin, _ = cluster_at(text, _begin(text, first))
    end = _end(text, first + len(letters))
    piece = text[begin:end]
    shown, marks = _on_one_line(piece, [*islice(_places(piece, letters), _MOST_MARKS)])
    return _cut(window_around(shown, marks), before=begin > 0, after=end < len(text))


def _begin(text: str, first: int) -> int:
    size = _BEFORE
    while first - size > 0 and size < _FARTHEST and _folded_size(text[first - size : first]) < _BEFORE:
        size *= 2
    return max(0, first - size)


def _end(text: str, last: int) -> int:
    size = _AFTER
    while last + size < len(text) and size < _FARTHEST and _folded_size(text[last : last + size]) < _AFTER:
        size *= 2
    return min(len(text), last + size)


def _folded_size(text: str) -> int:
    return len(_WHITE.sub(" ", text))


def _places(text: str, letters: str) -> Iterator[tuple[int, int]]:
    """Yields every place of folded letters as a range of code points of a text, in order."""
    pieces = [fold_letters(character) for character in text]
    folded = "".join(pieces)
    origins = [place for place, piece in enumerate(pieces) for _ in piece]
    at = folded.find(letters)
    while at >= 0:
        yield origins[at], origins[at + len(letters) - 1] + 1
        at = folded.find(letters, at + 1)


def _on_one_line(text: str, places: Sequence[tuple[int, int]]) -> tuple[str, list[Mark]]:
    """Returns a text with its white space folded, and where in it the places are, each widened to whole characters. White space at
    the ends of the text stays where a place is in it.
    """
    if not places:
        return unbracketed(" ".join(text.split())), []
    begin = min(len(text) - len(text.lstrip()), places[0][0])
    end = max(len(text.rstrip()), *(stop for _, stop in places))
    pieces: list[str] = []
    starts: list[int] = []  # of each code point, where it stands in the folded text
    size, at = 0, begin
    for white in _WHITE.finditer(text, begin, end):
        kept = text[at : white.start()]
        pieces += [kept, " "]
        starts += [*range(size, size + len(kept)), *[size + len(kept)] * len(white.group())]
        size += len(kept) + 1
        at = white.end()
    pieces.append(text[at:end])
    starts += range(size, size + end - at)
    shown = unbracketed("".join(pieces))
    found = {(starts[start - begin], starts[stop - 1 - begin] + 1) for start, stop in places}
    return shown, sorted(Mark(start, stop, 0) for start, stop in _whole_characters(shown, found))


def _whole_characters(text: str, places: Collection[tuple[int, int]]) -> Collection[tuple[int, int]]:
    """Returns places widened to whole characters."""
    if text.isascii():  # white space is folded: each is one
        return places
    bounds = cluster_bounds(text)
    return {(bounds[bisect_right(bounds, start) - 1], bounds[bisect_left(bounds, stop)]) for start, stop in places}
