"""Letters inside a text, case aside, and the stretch of the text around them that is shown. Places are code points of the text."""

from __future__ import annotations

import re

_LINE_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_CUT = "…"
_LONGEST_CLUSTER = 256
"""Code points of a grapheme that is never cut. Real ones have a few; one that is longer is letters piled up on purpose."""
_PIECE = 4096


def fold(text: str) -> str:
    """Returns a text as it is compared: Unicode's full case folding of each code point, on its own, and nothing else.

    It is what the service means by MATCH_SUBSTRING: `ß` is `ss`; `é` in one code point and in two stay different.
    """
    return text.casefold()


def find(text: str, folded: str) -> tuple[int, int] | None:
    """Returns where folded letters first stand in a text, from and to, None where they do not.

    A character of which only a part was asked for (`s` of `ß`) belongs to the place as a whole.
    """
    there = fold(text)
    at = there.find(folded)
    if at < 0:
        return None
    end = at + len(folded)
    # No code point folds to nothing, so that of the same length means one for one.
    if len(there) == len(text):
        return at, end
    return _unfolded(text, at), _unfolded(text, end - 1) + 1


def _unfolded(text: str, place: int) -> int:
    """Returns the code point of a text that a place in its folded form comes from."""
    begin = 0
    while (size := len(fold(text[begin : begin + _PIECE]))) <= place:
        place -= size
        begin += _PIECE
    while (size := len(fold(text[begin]))) <= place:
        place -= size
        begin += 1
    return begin


def on_one_line(text: str) -> str:
    """Returns a text with a blank for each run of line breaks."""
    return _LINE_BREAKS.sub(" ", text)


def snippet(text: str, start: int, end: int, width: int) -> str:
    """Returns up to `width` code points of a text on one line, the match from `start` to `end` in the middle, `…` where it is cut.

    The marks are not counted. No grapheme is cut at the edges; where the match alone is too long, its beginning is shown.
    """
    line = on_one_line(text)
    first = len(on_one_line(text[:start])) - (start > 0 and _is_break(text[start - 1]) and _is_break(text[start]))
    begin, stop = _window(line, first, len(on_one_line(text[:end])), width)
    return f"{_CUT if begin else ''}{line[begin:stop]}{_CUT if stop < len(line) else ''}"


def _is_break(character: str) -> bool:
    return _LINE_BREAKS.fullmatch(character) is not None


def _window(line: str, start: int, end: int, width: int) -> tuple[int, int]:
    start, end = _around(line, start)[0], _around(line, end)[1]
    room = width - (end - start)
    if room < 0:
        stop = _around(line, start + width)
        return start, stop[0] if stop[0] > start else stop[1]
    begin = max(0, min(start - room // 2, len(line) - width))
    return _around(line, begin)[1], _around(line, begin + width)[0]


def _around(line: str, place: int) -> tuple[int, int]:
    """Returns where the grapheme begins and ends that a place lies in."""
    # What knows graphemes takes a moment to load, and a search without hits does without.
    from aforesaid.graphemes import cluster_at

    begin, end = cluster_at(line, place)
    return (begin, end) if end - begin <= _LONGEST_CLUSTER else (place, place)
