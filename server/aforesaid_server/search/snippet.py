"""The snippet of a hit: a window of the searched text around the matches, each marked. contract.md, "Snippet".

The text's white space is folded and its own ⟦ ⟧ become [ ], so that a mark is always a mark. Lengths are code points of the text;
marks and … are not counted. A cut stands at a blank, or between two characters in a stretch of LONG_STRETCH and more without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from aforesaid_server.query.ast import Clause, Optional
from aforesaid_server.query.judge import Question
from aforesaid_server.text.words import Analyser, FoldedText, fold_in_place, is_extender, word_spans

WIDTH = 240
LEAD = 80
"""How far before the first match a snippet begins at most."""
LONG_STRETCH = 100
OPEN, CLOSE, CUT = "⟦", "⟧", "…"
_OWN_BRACKETS = str.maketrans({OPEN: "[", CLOSE: "]"})


class Shown(Enum):
    """Which list the hit stands in: it decides what is marked."""

    MATCHES = "matches"
    NEAR = "near"
    PARTIAL = "partial"
    ANY_WORD = "any word"


@dataclass(frozen=True, slots=True)
class Mark:
    """A match in the text: `start` and `end` in code points, and which clause it is of."""

    start: int
    end: int
    clause: int


def snippet_of(searched: str, question: Question, shown: Shown, analyser: Analyser) -> str:
    """Returns the snippet of a turn's searched text."""
    text = " ".join(searched.split()).translate(_OWN_BRACKETS)
    marks = sorted(set(_marks(text, question, shown, analyser)), key=lambda mark: (mark.start, mark.end))
    begin, end = _window(text, marks)
    return _drawn(text, begin, end, _merged(marks, begin, end))


# -- which pieces of the text are matches


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a text with their places in the folded text."""

    text: FoldedText
    spans: list[tuple[int, int]]
    said: list[str]

    def mark(self, first: int, last: int, clause: int) -> Mark:
        """Marks the words from `first` to `last`."""
        return self.letters(self.spans[first][0], self.spans[last][1], clause)

    def letters(self, start: int, end: int, clause: int) -> Mark:
        """Marks a piece of the folded text."""
        return Mark(self.text.starts[start], self.text.ends[end - 1], clause)


def _marks(text: str, question: Question, shown: Shown, analyser: Analyser) -> Iterator[Mark]:
    folded = fold_in_place(text)
    spans = list(word_spans(folded))
    exact = [folded.folded[start:end] for start, end in spans]
    words = _Words(folded, spans, exact if question.as_typed else analyser.stems(exact))
    for number, clause in enumerate(_clauses(question, shown)):
        yield from _said(words, question.sought(clause), number)
        if shown is Shown.NEAR and clause in question.terms:
            yield from _letters(words, exact, clause.words[0], number)


def _clauses(question: Question, shown: Shown) -> Sequence[Clause | Optional]:
    if shown in (Shown.MATCHES, Shown.NEAR):
        return question.query.wanted
    return [*question.bound, *question.counted(every_word=shown is Shown.ANY_WORD)]


def _said(words: _Words, wanted: tuple[str, ...], clause: int) -> Iterator[Mark]:
    first, size, said = wanted[0], len(wanted), words.said
    at = -1
    try:
        while True:
            at = said.index(first, at + 1)
            if size == 1 or tuple(said[at : at + size]) == wanted:
                yield words.mark(at, at + size - 1, clause)
    except ValueError:
        return


def _letters(words: _Words, exact: list[str], letters: str, clause: int) -> Iterator[Mark]:
    for word, (start, _) in zip(exact, words.spans, strict=True):
        at = word.find(letters)
        while at >= 0:
            yield words.letters(start + at, start + at + len(letters), clause)
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
        start, end = self.around(max(mark.start, mark.end - 1))
        return first, mark.end if end - start >= LONG_STRETCH else end


def _window(text: str, marks: Sequence[Mark]) -> tuple[int, int]:
    """Returns the window with the most different clauses, the first where several tie."""
    stretches = _Stretches(text)
    if not marks:
        return 0, _last_cut(text, stretches, 0, WIDTH, 0)
    wholes = [stretches.whole(mark) for mark in marks]
    first, last = _group(marks, wholes)
    begin, _ = wholes[first]
    group_end = max(end for _, end in wholes[first : last + 1])
    begin = _first_cut(text, stretches, max(0, marks[first].start - LEAD, group_end - WIDTH), begin)
    return begin, _last_cut(text, stretches, begin, begin + WIDTH, group_end, marks[last + 1 :])


def _group(marks: Sequence[Mark], wholes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Returns the first and last mark of the best group that fits into a window."""
    everything = len({mark.clause for mark in marks})
    best, found = 0, (0, 0)
    for first, (begin, _) in enumerate(wholes):
        seen: set[int] = set()
        for last in range(first, len(marks)):
            if last > first and wholes[last][1] - begin > WIDTH:
                break
            seen.add(marks[last].clause)
            if len(seen) > best:
                best, found = len(seen), (first, last)
                if best == everything:
                    return found
    return found


def _first_cut(text: str, stretches: _Stretches, wanted: int, latest: int) -> int:
    """Returns where a window may begin: at `wanted` or as soon after it as a cut is allowed, and not after `latest`."""
    if wanted >= latest:
        return latest
    start, end = stretches.around(wanted)
    if wanted in (0, start):
        return wanted
    if end - start < LONG_STRETCH:
        return min(end + 1, latest)
    while wanted < latest and is_extender(text[wanted]):
        wanted += 1
    return wanted


def _last_cut(text: str, stretches: _Stretches, begin: int, wanted: int, earliest: int, later: Sequence[Mark] = ()) -> int:
    """Returns where a window may end: at `wanted` or as shortly before it as a cut is allowed, and not before `earliest`."""
    if wanted >= len(text):
        return len(text)
    start, end = stretches.around(wanted)
    if end - start < LONG_STRETCH and start > begin:
        return wanted if wanted == end else max(start - 1, earliest)
    for mark in later:
        if mark.start < wanted < mark.end:
            wanted = max(mark.start, earliest)
    while wanted > max(begin + 1, earliest) and is_extender(text[wanted]):
        wanted -= 1
    return wanted


# -- how it is drawn


def _merged(marks: Iterable[Mark], begin: int, end: int) -> list[tuple[int, int]]:
    """Returns the pieces to mark inside a window: overlapping matches as one; of a match longer than the window what is shown."""
    found: list[tuple[int, int]] = []
    for mark in marks:
        start, stop = mark.start, mark.end
        if start >= end or stop <= begin:
            continue
        if start < begin or stop > end:
            if stop - start <= WIDTH:
                continue
            start, stop = max(start, begin), min(stop, end)
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
