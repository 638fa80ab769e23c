"""From text to Query. docs/query-syntax.md tells people the same.

Tokens are cut at white space; a quote opens only at the start of a token and ends at its own kind; one minus before a letter, a
digit or a quote excludes. Nothing else is syntax. The syntax is read before anything is normalised.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from aforesaid_server.errors import InvalidArgument
from aforesaid_server.query.ast import Clause, Query
from aforesaid_server.text.words import Analyser, fold, is_letter_or_digit, is_spaceless, words_of, words_of_folded

LONGEST_QUERY = 500
"""Code points."""
_CLOSES = {'"': '"', "“": "”"}


def _is_blank(character: str) -> bool:
    return character.isspace() or character == "\u200b"


def _tokens(text: str) -> Iterator[tuple[bool, bool, str]]:
    """Yields (excluded, quoted, raw) from left to right."""
    at = 0
    while at < len(text):
        if _is_blank(text[at]):
            at += 1
            continue
        follower = text[at + 1 : at + 2]
        excluded = text[at] == "-" and follower != "" and (follower in _CLOSES or is_letter_or_digit(follower))
        at += excluded
        if text[at] in _CLOSES:
            end = text.find(_CLOSES[text[at]], at + 1)
            end = len(text) if end < 0 else end
            yield excluded, True, text[at + 1 : end]
            at = end + 1
        else:
            end = at
            while end < len(text) and not _is_blank(text[end]):
                end += 1
            yield excluded, False, text[at:end]
            at = end


def parse(text: str, analyser: Analyser) -> Query:
    """Parses a query. Raises InvalidArgument for one over 500 code points or without a letter or digit to look for."""
    if len(text) > LONGEST_QUERY:
        raise InvalidArgument("query", f"{len(text)} characters, at most {LONGEST_QUERY} are allowed")
    wanted: list[Clause] = []
    excluded: list[Clause] = []
    ignored: list[str] = []
    for minus, quoted, raw in _tokens(text):
        words = words_of(raw)
        if words:
            clause = Clause(raw, quoted, tuple(words), tuple(analyser.stems(words)))
            (excluded if minus else wanted).append(clause)
        elif not minus:
            ignored.append(str(Clause(raw, quoted, (), ())))
    if not wanted:
        raise InvalidArgument("query", "needs a word to look for: a letter or digit outside of exclusions")
    return Query(tuple(wanted), tuple(excluded), tuple(ignored))


# -- plain text, without any syntax


def terms_of(text: str) -> list[tuple[str, ...]]:
    """Returns the different terms of a plain text in order: each of its words; of a run of a script that is written without spaces
    each two characters that follow each other, as a phrase.
    """
    return list(dict.fromkeys(term for run in _runs(fold(text)) for term in _terms(words_of_folded(run))))


def terms_query(terms: Sequence[tuple[str, ...]], analyser: Analyser) -> Query:
    """Returns the query for any of some terms."""
    return Query(tuple(Clause("".join(words), False, words, tuple(analyser.stems(list(words)))) for words in terms))


def _runs(folded: str) -> Iterator[str]:
    """Yields the stretches of letters, digits and marks."""
    if folded.isascii():
        yield folded  # nothing in it is written without spaces
        return
    for is_run, characters in groupby(folded, lambda character: unicodedata.category(character)[0] in "LNM"):
        if is_run:
            yield "".join(characters)


def _terms(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for spaceless, some in groupby(words, is_spaceless):
        run = list(some)
        yield from pairwise(run) if spaceless and len(run) > 1 else ((word,) for word in run)
