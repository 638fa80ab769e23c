"""Where a character, as people see it, begins and ends: the extended grapheme clusters of UAX #29, as `regex` knows them.

Looks at a little of the text around a place, not at all of it. The service takes it from here too.
"""

from __future__ import annotations

import re

import regex

_CLUSTER = regex.compile(r"\X")
# Between two of these a cluster always ends: ASCII, Latin, Cyrillic, Kana, Han and Hangul syllables, no marks among them.
_PLAIN = re.compile("[\\x20-\\x7e\u00c0-\u024f\u0400-\u0481\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]")
_FARTHEST = 1_000
"""Code points that are gone back at most. Only in a run of more flags than that could one be cut in two."""


def cluster_at(text: str, place: int) -> tuple[int, int]:
    """Returns where the cluster begins and ends that a place lies in; the place twice where one ends and the next begins."""
    if not 0 < place < len(text):
        return place, place
    at = place
    farthest = max(0, place - _FARTHEST)
    while at > farthest and not (_PLAIN.match(text, at - 1) and _PLAIN.match(text, at)):
        at -= 1
    stop = place + _FARTHEST
    while True:
        # A piece of its own: in a run of flags each cluster looks back to where the text begins.
        piece = text[at:stop]
        begin, end = next(found.span() for found in _CLUSTER.finditer(piece) if at + found.end() > place)
        if end < len(piece) or stop >= len(text):
            return (place, place) if at + begin == place else (at + begin, at + end)
        stop += stop - at


def cluster_bounds(text: str) -> list[int]:
    """Returns where the clusters of a text begin, and its end."""
    return [*(found.start() for found in _CLUSTER.finditer(text)), len(text)]
