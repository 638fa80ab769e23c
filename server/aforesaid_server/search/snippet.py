"""The snippet of a hit: a window of the searched text around the matches, each marked. contract.md, "Snippet".

The text's white space is folded and its own ⟦ ⟧ become [ ], so that a mark is always a mark. Lengths are code points of the text;
marks and … are not counted. A cut stands at a blank, or between two characters in a stretch of LONG_STRETCH and more without one;
a character is what people see as one (`aforesaid/graphemes.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import NamedTuple

from aforesaid.graphemes import cluster_at
from aforesaid_server.query.ast import Clause, Optional
from aforesaid_server.query.judge import Question
from aforesaid_server.text.places import PlacedWords, is_extender, numbers_of, searched_part, sought_words
from aforesaid_server.text.words import Analyser

WIDTH = 240
LEAD = 80
"""How far before the first match a snippet begins at most."""
LONG_STRETCH = 100
_BEGINNING, _LONG = 16_384, 49_152
"""Code points of the beginning of a text that is longer than _LONG which are looked at first."""
_MOST_MARKS = 10_000
"""Of what a turn says more often the first so many are looked at: the window stands among them."""
OPEN, CLOSE, CUT = "⟦", "⟧", "…"


class Shown(Enum):
    """Which list the hit stands in: it decides what is marked."""

    MATCHES = "matches"
    NEAR = "near"
    PARTIAL = "partial"
    ANY_WORD = "any word"


class Mark(NamedTuple):
    """A match in the text: `start` and `end` in code points, and which clause it is of. A tuple: a text may hold thousands."""

    start: int
    end: int
    clause: int


def snippet_of(searched: str, question: Question, shown: Shown, analyser: Analyser) -> str:
    """Returns the snippet of a turn's searched text."""
    return _looked_at(searched, question, shown, analyser).drawn


def snippet_of_stretches(stretches: Sequence[str], question: Question, shown: Shown, analyser: Analyser) -> str:
    """Returns the snippet of a turn between whose stretches something was left out: a window of one of them, the one whose window
    has the most different clauses, the first of several. A … stands where the turn goes on.
    """
    if len(stretches) == 1:
        return snippet_of(stretches[0], question, shown, analyser)
    best = _Snippet("", -1)
    for number, stretch in enumerate(stretches):
        found = _looked_at(stretch, question, shown, analyser)
        if found.clauses > best.clauses:
            before = CUT if number and not found.drawn.startswith(CUT) else ""
            after = CUT if number < len(stretches) - 1 and not found.drawn.endswith(CUT) else ""
            best = _Snippet(f"{before}{found.drawn}{after}", found.clauses)
    return best.drawn


@dataclass(frozen=True, slots=True)
class _Snippet:
    """A snippet as it is drawn, and how many different clauses are said in it."""

    drawn: str
    clauses: int


def _looked_at(searched: str, question: Question, shown: Shown, analyser: Analyser) -> _Snippet:
    """Returns the snippet of a text. Where the beginning of a long one has a window with every clause, it is that one."""
    different = _different(question, shown)
    if len(searched) > _LONG and (cut := searched.find(" ", _BEGINNING)) >= 0:
        found, rest = _window_of(searched[:cut], question, different, analyser)
        if found.clauses == len(different) and _has_room(rest, different):
            return found
    return _window_of(searched_part(searched), question, different, analyser)[0]


def _window_of(searched: str, question: Question, different: Sequence[_Sought], analyser: Analyser) -> tuple[_Snippet, str]:
    """Returns the snippet of a text, and the text that follows the longest window from there."""
    text = unbracketed(" ".join(searched.split()))
    marks = sorted(set(_marks(text, question, different, analyser)))
    begin, end, split = _window(text, marks)
    clauses = {mark.clause for mark in marks if mark.start >= begin and (mark.end <= end or mark is split)}
    drawn = _drawn(text, begin, end, _merged(marks, begin, end, split))
    return _Snippet(drawn, len(clauses)), "" if split else text[begin + WIDTH :]


def unbracketed(text: str) -> str:
    """Returns a text whose own ⟦ ⟧ are [ ]."""
    return text.replace(OPEN, "[").replace(CLOSE, "]")


def window_around(text: str, marks: Sequence[Mark]) -> str:
    """Returns the window of a text, its white space folded and its brackets replaced, that shows its matches, sorted."""
    begin, end, split = _window(text, marks)
    return _drawn(text, begin, end, _merged(marks, begin, end, split))


def _has_room(rest: str, different: Sequence[_Sought]) -> bool:
    """Tells whether a match that begins in the window, of as many words as it may have, ends in the rest of what was looked at."""
    most = max(len(one.said) for one in different)
    return len(rest) > LONG_STRETCH and next(islice(re.finditer(r"[^\W_]+", rest), most, None), None) is not None


# -- which pieces of the text are matches


class _Sought(NamedTuple):
    """What is marked of a clause: what it is said by, and letters inside words, empty for none."""

    said: tuple[str, ...]
    letters: str


def _different(question: Question, shown: Shown) -> list[_Sought]:
    """Returns what is sought, each once: a clause that was typed twice is marked once."""
    terms = question.terms if shown is Shown.NEAR else ()
    clauses = _clauses(question, shown)
    return list(dict.fromkeys(_Sought(question.sought(one), one.words[0] if one in terms else "") for one in clauses))


def _marks(text: str, question: Question, different: Sequence[_Sought], analyser: Analyser) -> Iterator[Mark]:
    sought = {word for one in different for word in one.said}
    letters = [one.letters for one in different if one.letters]
    words = sought_words(text, analyser, sought, letters, as_typed=question.as_typed)
    for number, one in enumerate(different):
        yield from islice(_said(words, one.said, number), _MOST_MARKS)
        if one.letters:
            yield from islice(_letters(words, one.letters, number), _MOST_MARKS)


def _clauses(question: Question, shown: Shown) -> Sequence[Clause | Optional]:
    if shown in (Shown.MATCHES, Shown.NEAR):
        return question.query.wanted
    return [*question.bound, *question.counted(every_word=shown is Shown.ANY_WORD)]


def _said(words: PlacedWords, wanted: tuple[str, ...], clause: int) -> Iterator[Mark]:
    size, said = len(wanted), words.said
    for at in numbers_of(said, wanted[0]):
        if size == 1 or tuple(said[at : at + size]) == wanted:
            yield Mark(*words.span(at, at + size - 1), clause)


def _letters(words: PlacedWords, letters: str, clause: int) -> Iterator[Mark]:
    for number, word in enumerate(words.exact):
        at = word.find(letters)
        while at >= 0:
            yield Mark(*words.letters(number, at, at + len(letters)), clause)
            at = word.find(letters, at + 1)


# -- which window of the text is shown


class _Stretches:
    """The stretches of a text between blanks."""

    def __init__(self, text: str) -> None:
        self._text = text

    def around(self, place: int) -> tuple[int, int]:
        """Returns where the stretch that holds a place begins and ends."""
        end = self._text.find(" ", place)
        return self._text.rfind(" ", 0, place) + 1, len(self._text) if end < 0 else end

    def whole(self, mark: Mark) -> tuple[int, int]:
        """Returns a match with what is glued to it, up to the blanks; long stretches may be cut, so that they do not count."""
        start, end = self.around(mark.start)
        first = mark.start if end - start >= LONG_STRETCH else start
        if mark.end > end:
            start, end = self.around(mark.end - 1)
        return first, mark.end if end - start >= LONG_STRETCH else end


def _window(text: str, marks: Sequence[Mark]) -> tuple[int, int, Mark | None]:
    """Returns the window with the most different clauses, the first where several tie; and, where no match fits into one, the match
    whose beginning it shows.
    """
    stretches = _Stretches(text)
    if not marks:
        return 0, _last_cut(text, stretches, 0, WIDTH, 0), None
    wholes = [stretches.whole(mark) for mark in marks]
    first = _best(marks, wholes)
    if first is None:
        begin = _character_at(text, wholes[0][0])
        return begin, _last_cut(text, stretches, begin, begin + WIDTH, 0), marks[0]
    latest = wholes[first][0]
    group_end = _end_of_group(marks, wholes, first)
    begin = _first_cut(text, stretches, max(0, marks[first].start - LEAD, group_end - WIDTH), latest)
    begin = max(_character_at(text, begin), group_end - WIDTH)
    return begin, _last_cut(text, stretches, begin, begin + WIDTH, group_end, marks[first + 1 :]), None


def _best(marks: Sequence[Mark], wholes: Sequence[tuple[int, int]]) -> int | None:
    """Returns the first match of the group with the most different clauses, None if no match fits into a window. Linear but for the
    sorting: a turn may say a word 100,000 times.
    """
    everything = len({mark.clause for mark in marks})
    by_end = sorted(range(len(marks)), key=lambda number: wholes[number][1])
    inside: Counter[int] = Counter()
    best, found, taken, limit = 0, None, 0, -1
    for first, (begin, end) in enumerate(wholes):
        if first and wholes[first - 1][1] <= limit:
            gone = marks[first - 1].clause
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
        limit = begin + WIDTH
        while taken < len(marks) and wholes[by_end[taken]][1] <= limit:
            if by_end[taken] >= first:
                inside[marks[by_end[taken]].clause] += 1
            taken += 1
        if end <= limit and len(inside) > best:
            best, found = len(inside), first
            if best == everything:
                break
    return found


def _end_of_group(marks: Sequence[Mark], wholes: Sequence[tuple[int, int]], first: int) -> int:
    """Returns where the group that begins with a match ends: the first match of each clause that fits belongs to it."""
    limit = wholes[first][0] + WIDTH
    seen: set[int] = set()
    group_end = 0
    for mark, (_, end) in zip(marks[first:], wholes[first:], strict=True):
        if mark.start > limit:
            break
        if mark.clause not in seen and end <= limit:
            seen.add(mark.clause)
            group_end = max(group_end, end)
    return group_end


def _first_cut(text: str, stretches: _Stretches, wanted: int, latest: int) -> int:
    """Returns where a window may begin: at `wanted` or as soon after it as a cut is allowed, and not after `latest`."""
    if wanted >= latest:
        return latest
    start, end = stretches.around(wanted)
    if wanted in (0, start):
        return wanted
    if wanted == end or end - start < LONG_STRETCH:
        return min(end + 1, latest)
    cut = _next_cut(text, wanted)
    return min(cut + 1 if cut == end else cut, latest)


def _character_at(text: str, place: int) -> int:
    """Returns where a character begins that a match begins in, as one after a sign that belongs to what follows it."""
    return place if text[place - 1 : place] == " " else cluster_at(text, place)[0]


def _next_cut(text: str, place: int) -> int:
    """Returns the first place from this one on where no character is cut in two."""
    while place < len(text):
        _, end = cluster_at(text, place)
        if end == place and not is_extender(text[place]):
            break
        place = max(end, place + 1)
    return place


def _previous_cut(text: str, place: int) -> int:
    """Returns the last place up to this one where no character is cut in two."""
    while 0 < place < len(text):
        begin, _ = cluster_at(text, place)
        if begin == place and not is_extender(text[place]):
            break
        place = min(begin, place - 1)
    return place


def _last_cut(text: str, stretches: _Stretches, begin: int, wanted: int, earliest: int, later: Sequence[Mark] = ()) -> int:
    """Returns where a window may end: at `wanted` or as shortly before it as a cut is allowed, and not before `earliest`."""
    if wanted >= len(text):
        return len(text)
    start, end = stretches.around(wanted)
    if wanted == end:
        return wanted
    if end - start < LONG_STRETCH:
        return max(start - 1, earliest)
    whole = wanted
    for mark in reversed(later):
        if start <= mark.start < whole < mark.end:
            whole = mark.start
    # Not at any price: matches that overlap far back (哈哈哈) are cut.
    if whole >= max(earliest, wanted - LONG_STRETCH):
        wanted = whole
    wanted = max(_previous_cut(text, wanted), begin + 1, earliest)
    return wanted - 1 if wanted == start > earliest else wanted


# -- how it is drawn


def _merged(marks: Iterable[Mark], begin: int, end: int, split: Mark | None) -> list[tuple[int, int]]:
    """Returns the pieces to mark inside a window: the matches that stand in it whole, overlapping ones as one, and of `split` what
    is shown.
    """
    found: list[tuple[int, int]] = []
    for mark in marks:
        start, stop = mark.start, min(mark.end, end) if mark is split else mark.end
        if start < begin or stop > end:
            continue
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return found


def _drawn(text: str, begin: int, end: int, pieces: Sequence[tuple[int, int]]) -> str:
    drawn = [CUT] if begin > 0 else []
    at = begin
    for start, stop in pieces:
        drawn += [text[at:start], OPEN, text[start:stop], CLOSE]
        at = stop
    drawn.append(text[at:end])
    if end < len(text):
        drawn.append(CUT)
    return "".join(drawn)
