"""`notice`: what a person should know of a search, in a sentence or two on one line.

Whatever was asked, it stays under LONGEST_NOTICE code points and quotes a few words of the query at most; nothing in it comes from
turns but spellings of words, which the caller may read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aforesaid_server.access import Patience
from aforesaid_server.index import Lists, Reach
from aforesaid_server.index.document import Documents
from aforesaid_server.query.ast import Clause
from aforesaid_server.query.judge import Question
from aforesaid_server.search import SearchReply
from aforesaid_server.search.substring import Looked, Substrings
from aforesaid_server.search.why import Explained, Finding, State, Suggestion, Why, typed
from aforesaid_server.search.why_letters import Unheld, WhyLetters
from aforesaid_server.store import Store
from aforesaid_server.text.transcript import Kind

LONGEST_NOTICE = 500
"""Code points."""
_KEPT_FOR_THE_REST = 150
"""What was ignored, what was left out around hits and an import under way mostly take so many at most."""
_LONGEST_QUOTE = 32
_MOST_QUOTED = 3


@dataclass(frozen=True, slots=True)
class Searched:
    """A search as `notice` speaks of it. `whose` is the agent that was searched; a scope is `contradictory` that leaves nothing of
    the caller's. `letters` are those of MATCH_SUBSTRING, folded, and `looked` is what was looked at for them.
    """

    query: str
    question: Question
    reach: Reach
    any_word: bool
    as_typed: bool
    whose: str
    conversation_id: str
    contradictory: bool
    first_page: bool
    letters: str = ""
    looked: Looked | None = None


class Notices:
    """Tells of searches. Most need no look-up: only a first page without matches is explained."""

    def __init__(self, store: Store, documents: Documents, substrings: Substrings) -> None:
        self._store = store
        self._analyser = documents.analyser
        self._kinds = documents.searched.kinds
        self._substrings = substrings

    def of(self, searched: Searched, reply: SearchReply, left_out: int, lists: Lists, patience: Patience) -> str:
        """Returns the notice of a reply; `left_out` counts the hits whose turns around them were. Raises Stopped."""
        told = self._ignored(searched)
        if left_out:
            told.append(f"Turns around {left_out} of the hits were left out: the reply holds at most 1 MiB of them")
        pending = ["An import is still being indexed: more may be found soon"] if reply.turns_pending else []
        if searched.looked is not None and (searched.looked.more or searched.looked.ended_early):
            told.append(_GO_ON if searched.looked.more else _NOT_ALL_YET)
        elif searched.first_page and not (reply.matches or reply.near):
            told += self._why(searched, reply, lists, patience, len(". ".join([*told, *pending])) + 4)
        return ". ".join([*told, *pending]) + "." if told or pending else ""

    def _ignored(self, searched: Searched) -> list[str]:
        """Returns what of the request made no difference."""
        told: list[str] = []
        if searched.question.query.ignored:
            told.append(f"Ignored, having no letter or digit: {_listed(_few(map(_quoted, searched.question.query.ignored)))}")
        if searched.letters and searched.as_typed:
            told.append("WORDS_AS_TYPED makes no difference to MATCH_SUBSTRING")
        kinds = searched.reach.kinds
        if kinds & Kind.REASONING & ~self._kinds:
            told.append("Reasoning is not searched here")
        if kinds & Kind.FILE and not searched.letters:
            told.append("Names of files are found by MATCH_SUBSTRING alone")
        return told

    def _why(self, searched: Searched, reply: SearchReply, lists: Lists, patience: Patience, taken: int) -> list[str]:
        """Explains a page without hits, or with partial ones alone; `taken` is how much of the notice is."""
        if reply.partial:
            explained = self._why_words(searched, lists, patience).no_match([hit.snippet for hit in reply.partial])
            if explained is None:
                return []
            return [_told("No turn says all of this", _reasons(explained), explained.suggestion, taken)]
        agents = searched.reach.agents
        if searched.contradictory:
            return [f"{_NOTHING}: the scope of the request contradicts the caller's"]
        if agents is not None and not self._store.has_turns(agents):
            return [f"{_NOTHING}: {_cut(searched.whose)} has no conversation here"]
        if searched.letters:
            return [_nothing_held(self._why_letters(searched, lists, patience).nothing(), searched, taken)]
        return [_nothing_found(self._why_words(searched, lists, patience).nothing(), searched, taken)]

    def _why_words(self, searched: Searched, lists: Lists, patience: Patience) -> Why:
        return Why(
            searched.question,
            searched.reach,
            any_word=searched.any_word,
            lists=lists,
            store=self._store,
            analyser=self._analyser,
            patience=patience,
        )

    def _why_letters(self, searched: Searched, lists: Lists, patience: Patience) -> WhyLetters:
        return WhyLetters(
            searched.query,
            searched.letters,
            searched.reach,
            as_typed=searched.as_typed,
            substrings=self._substrings,
            lists=lists,
            store=self._store,
            analyser=self._analyser,
            patience=patience,
        )


# -- its sentences

_NOTHING = "Nothing was found"
_GO_ON = "There are more: next_page_token goes on"
_NOT_ALL_YET = "Not all turns were looked at yet: next_page_token goes on"


def _nothing_found(why: Explained, searched: Searched, taken: int) -> str:
    reasons = [*_no_conversation(searched), *_reasons(why)]
    if not reasons:
        reasons = ["turns say each of these, but none says all" if why.findings else "no turn that was searched says this"]
    if why.question_words:
        reasons.append("question words do not count")
    return _told(_NOTHING, reasons, why.suggestion, taken)


def _nothing_held(why: Unheld, searched: Searched, taken: int) -> str:
    """Says why MATCH_SUBSTRING found nothing."""
    quoted, suggestion = _quoted(searched.query), why.suggestion
    if suggestion is None or suggestion.all_words:
        nowhere = f"no turn that was searched holds {quoted} letter by letter"
        reasons = [nowhere + (f", even without {_listed(why.filters)}" if why.filters else "")]
    elif not suggestion.without:
        reasons = [f"only calls of search tools, which are left out, hold {quoted}"]
    elif suggestion.own_searches:
        reasons = [f"{quoted} is there, but not where this search looks"]
    else:
        reasons = [f"{quoted} is there, but not within {_listed(suggestion.without)}"]
    return _told(_NOTHING, [*_no_conversation(searched), *reasons], suggestion, taken)


def _no_conversation(searched: Searched) -> list[str]:
    if searched.reach.conversation_pks is None or searched.reach.conversation_pks:
        return []
    return [f"there is no conversation {_quoted(searched.conversation_id)} here"]


def _told(what: str, reasons: Sequence[str], suggestion: Suggestion | None, taken: int) -> str:
    end = f". {_try(suggestion)}" if suggestion else ""
    room = LONGEST_NOTICE - max(_KEPT_FOR_THE_REST, taken) - len(what) - len(end)
    while len(reasons) > 1 and len("; ".join(reasons)) > room:
        reasons = reasons[:-1]
    return f"{what}: {'; '.join(reasons)}{end}"


def _try(suggestion: Suggestion) -> str:
    text = f"Try `{suggestion.query}`" if suggestion.query else "Try it"
    text += f" without {_listed(suggestion.without)}" if suggestion.without else ""
    text += " with words WORDS_STEMMED" if suggestion.by_stem else ""
    text += " with match MATCH_ALL_WORDS" if suggestion.all_words else ""
    return text + (" with include_own_searches" if suggestion.own_searches else "")


def _quoted(text: str) -> str:
    """Returns a piece of a query between backticks."""
    return f"`{_cut(text)}`"


def _cut(text: str) -> str:
    """Returns a text on one line, without what is not shown and without backticks, cut where it is long."""
    shown = "".join(filter(str.isprintable, " ".join(text.split()))).replace("`", "'")
    return shown if len(shown) <= _LONGEST_QUOTE else f"{shown[: _LONGEST_QUOTE - 1]}…"


def _listed(names: Sequence[str]) -> str:
    """Returns names as people list them: `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# -- what became of the words

_WORDINGS = {
    State.OWN: "only calls of search tools, which are left out, say {which}",
    State.FORMS: "{which} {are} said only in other forms than typed",
    State.BARRED: "what says {which} says something excluded too",
    State.APART: "the words of {which}, read as a phrase, are said but not side by side",
    State.ELSEWHERE: "{which} {are} said, but not where this search looks",
}


def _reasons(why: Explained) -> list[str]:
    reasons: list[str] = []
    for state in State:
        found = [one for one in why.findings if one.state is state]
        if state is State.NOWHERE:
            reasons += _nowhere(found, why.filters)
        elif state is State.OUTSIDE:
            reasons += _outside(found)
        elif found and state in _WORDINGS:
            reasons.append(_filled(_WORDINGS[state], [_quoted(typed(one.clause)) for one in found]))
    return reasons


def _nowhere(found: Sequence[Finding], filters: tuple[str, ...]) -> list[str]:
    which = [_read_as(one.clause) if len(one.clause.words) == 1 else _missing(one) for one in found]
    even = f", even without {_listed(filters)}" if filters else ""
    return [_filled("{which} {are} said nowhere", which) + even] if which else []


def _read_as(clause: Clause) -> str:
    word, stem = clause.words[0], clause.stems[0]
    return _quoted(typed(clause)) + (f" (by its stem {_quoted(stem)})" if stem != word else "")


def _missing(one: Finding) -> str:
    return f"{_quoted(one.missing[0])} of the phrase {_quoted(typed(one.clause))}"


def _outside(found: Sequence[Finding]) -> list[str]:
    by_filters: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        by_filters.setdefault(one.filters, []).append(_quoted(typed(one.clause)))
    return [f"{_filled('{which} {are} said', which)}, but not within {_listed(filters)}" for filters, which in by_filters.items()]


def _filled(wording: str, which: Iterable[str]) -> str:
    few = _few(which)
    return wording.format(which=_listed(few), are="is" if len(few) == 1 else "are")


def _few(which: Iterable[str]) -> list[str]:
    """Returns the first few, each once, and how many more there are."""
    different = list(dict.fromkeys(which))
    rest = len(different) - _MOST_QUOTED
    return different[:_MOST_QUOTED] + ([f"{rest} more"] if rest > 0 else [])
