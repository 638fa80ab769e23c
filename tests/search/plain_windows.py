"""Snippets said again from contract.md: which pieces of a text are matches, which windows are allowed, which of them is the one.

Slow and without shortcuts: every word is looked at, and every window is tried.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import regex

from aforesaid_server.query.judge import Question
from aforesaid_server.search.snippet import Mark, Shown
from aforesaid_server.text.places import fold_in_place, is_extender
from aforesaid_server.text.words import Analyser, word_spans

WIDTH, LEAD, LONG_STRETCH = 240, 80, 100


def shown_text(searched: str) -> str:
    """ "white space folded to single spaces"; the brackets of marks inside a turn's own text become [ and ]."""
    return " ".join(searched.split()).replace("⟦", "[").replace("⟧", "]")


def all_marks(text: str, question: Question, shown: Shown, analyser: Analyser) -> list[Mark]:
    """Returns every match in a text, sorted."""
    folded = fold_in_place(text)
    spans = list(word_spans(folded.folded))
    exact = [folded.folded[start:end] for start, end in spans]
    said = exact if question.as_typed else analyser.stems(exact)
    if shown in (Shown.MATCHES, Shown.NEAR):
        clauses = [*question.query.wanted]
    else:
        clauses = [*question.bound, *question.counted(every_word=shown is Shown.ANY_WORD)]  # type: ignore[list-item]
    found: set[Mark] = set()
    for number, clause in enumerate(clauses):
        sought = list(question.sought(clause))
        for at in range(len(said) - len(sought) + 1):
            if said[at : at + len(sought)] == sought:
                found.add(Mark(folded.starts[spans[at][0]], folded.ends[spans[at + len(sought) - 1][1] - 1], number))
        if shown is Shown.NEAR and clause in question.terms:
            letters = clause.words[0]
            for word, (start, _) in zip(exact, spans, strict=True):
                for at in range(len(word)):
                    if word.startswith(letters, at):
                        found.add(Mark(folded.starts[start + at], folded.ends[start + at + len(letters) - 1], number))
    return sorted(found, key=lambda mark: (mark.start, mark.end, mark.clause))


def clauses(marks: Iterable[Mark]) -> set[int]:
    """Returns the different clauses of some matches."""
    return {mark.clause for mark in marks}


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of a text."""

    begin: int
    end: int


class Text:
    """A text whose white space is folded, its matches, and the windows that may be shown of it."""

    def __init__(self, text: str, marks: Sequence[Mark]) -> None:
        self.text = text
        self.marks = marks
        self.characters = {found.start() for found in regex.finditer(r"\X", text)}
        self.cuts = [place for place in range(len(text) + 1) if self._may_cut(place)]

    def _may_cut(self, place: int) -> bool:
        """ "cut at blanks, or between characters in a stretch of 100 and more without one"."""
        text = self.text
        if place in (0, len(text)) or " " in text[place - 1 : place + 1]:
            return True
        before, after = text.rfind(" ", 0, place), text.find(" ", place)
        whole = place in self.characters and not is_extender(text[place])
        return (after if after >= 0 else len(text)) - before - 1 >= LONG_STRETCH and whole

    def inside(self, window: Window) -> list[Mark]:
        """Returns the matches that lie wholly in a window."""
        return [mark for mark in self.marks if window.begin <= mark.start and mark.end <= window.end]

    @cached_property
    def windows(self) -> list[list[Mark]]:
        """What the longest window holds that begins at each place where one may."""
        ends = (self.cuts[bisect_right(self.cuts, begin + WIDTH) - 1] for begin in self.cuts)
        return [self.inside(Window(begin, end)) for begin, end in zip(self.cuts, ends, strict=True)]

    @cached_property
    def most(self) -> int:
        """How many different clauses the best window holds."""
        return max(len(clauses(inside)) for inside in self.windows)

    @cached_property
    def first(self) -> Mark | None:
        """The match with which the first of the best groups begins, None if no match fits into a window."""
        groups = [inside for inside in self.windows if inside and len(clauses(inside)) == self.most]
        return min((inside[0] for inside in groups), key=self.marks.index, default=None)

    def drawn(self, window: Window) -> str:
        """Returns a window as it is shown; where no match fits, of the first one what is shown."""
        pieces: list[list[int]] = []
        marks = [(mark.start, mark.end) for mark in self.inside(window)]
        if self.first is None and self.marks:
            marks.append((self.marks[0].start, min(self.marks[0].end, window.end)))
        for start, end in sorted(marks):
            if pieces and start < pieces[-1][1]:
                pieces[-1][1] = max(end, pieces[-1][1])
            else:
                pieces.append([start, end])
        shown, at = "…" if window.begin else "", window.begin
        for start, end in pieces:
            shown += f"{self.text[at:start]}⟦{self.text[start:end]}⟧"
            at = end
        return shown + self.text[at : window.end] + ("…" if window.end < len(self.text) else "")

    def places(self, snippet: str) -> Iterator[Window]:
        """Yields where in the text a snippet may have been taken from."""
        plain = snippet.replace("⟦", "").replace("⟧", "")
        for front in (False, True):
            for back in (False, True):
                piece = plain[front : len(plain) - back]
                if (front and not plain.startswith("…")) or (back and not plain.endswith("…")) or len(plain) < front + back:
                    continue
                at = self.text.find(piece)
                while at >= 0:
                    if (at > 0) is front and (at + len(piece) < len(self.text)) is back:
                        yield Window(at, at + len(piece))
                    at = self.text.find(piece, at + 1)

    def faults(self, window: Window) -> Iterator[str]:
        """Yields what is wrong with a window."""
        begin, end = window.begin, window.end
        if end - begin > WIDTH:
            yield f"{end - begin} code points"
        if begin not in self.cuts or end not in self.cuts:
            yield f"cut at {begin} and {end}"
        if not self.marks:
            if begin:
                yield f"begins at {begin} though nothing is marked"
            return
        if (first := self.first) is None:
            edge = max(cut for cut in self.cuts if cut <= self.marks[0].start)
            if begin not in (edge, edge - 1):
                yield f"begins at {begin}, not where the match that is too long begins, {edge}"
            return
        if begin != (expected := self._begin(first)):
            yield f"begins at {begin}, not at {expected}"
        group = [mark for mark in self.inside(window) if self.marks.index(mark) >= self.marks.index(first)]
        if len(clauses(group)) < self.most:
            yield "does not hold the best group"
        longest = max(cut for cut in self.cuts if cut <= begin + WIDTH)
        if end != longest and not self._kept_whole(end, longest):
            yield f"ends at {end}, not at {longest}"

    def _begin(self, first: Mark) -> int:
        """Returns where the window begins: as far before the first match as may be, and as its group leaves room.

        The rule gives way to the edge of a token: none of fewer than a hundred characters is cut, so that a window may begin up to
        98 before the match.
        """
        starts = [cut for cut in self.cuts if cut == 0 or self.text[cut : cut + 1] != " "]
        edge = max(cut for cut in starts if cut <= first.start)
        later = self.marks[self.marks.index(first) :]
        ends = sorted({mark.end for mark in later})
        last = next(end for end in ends if len(clauses(mark for mark in later if mark.end <= end)) == self.most)
        group_end = min(cut for cut in self.cuts if cut >= last)
        return min((cut for cut in starts if max(0, first.start - LEAD, group_end - WIDTH) <= cut <= edge), default=edge)

    def _kept_whole(self, end: int, longest: int) -> bool:
        """Tells whether a window ends early for a reason: before a match that would be cut, or before a blank at `longest`."""
        if longest - 1 == end and " " in self.text[end:longest]:
            return True
        place = longest
        while cut := [mark.start for mark in self.marks if mark.start < place < mark.end]:
            place = min(cut)  # where others may overlap, and would be cut in turn
        return longest - LONG_STRETCH <= place < longest and end in (place, place - 1)
