"""SearchTranscripts, from top to bottom: parse, ask what the caller may read, ask the index for a page of each list, read the
turns, record the read if it is somebody else's, draw the snippets, seal the token.

The store is the truth: a turn that it no longer has is dropped and the page filled up. The next list is looked at only when
`matches` did not fill the page. With MATCH_SUBSTRING there is no list but `matches`, and `substring.py` finds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aforesaid_server.access import Access, Call, Readable, Refused, Who, holds
from aforesaid_server.audit import Audit, Reading
from aforesaid_server.errors import InvalidArgument
from aforesaid_server.index import Found, Lists, Reach
from aforesaid_server.index.document import Documents
from aforesaid_server.index.live import LiveIndex
from aforesaid_server.paging import Seal, binding, limit_of
from aforesaid_server.query.ast import Query
from aforesaid_server.query.judge import Question, match_score, near_score
from aforesaid_server.query.parse import parse
from aforesaid_server.search import ContextTurn, Hit, SearchReply, SearchRequest
from aforesaid_server.search.cursor import Position, Share, shares_of
from aforesaid_server.search.letters import snippet_of_letters
from aforesaid_server.search.notice import Notices, Searched
from aforesaid_server.search.snippet import Shown, snippet_of_stretches
from aforesaid_server.search.substring import SCORE, Bounds, Looked, Substrings, letters_of
from aforesaid_server.store import Store, StoredTurn, TurnInPlace
from aforesaid_server.text.transcript import text_of

CONTEXT_CHARACTERS = 4_000
"""Code points of a turn beside a hit."""
CONTEXT_BYTES = 1_048_576
"""Bytes of all turns beside hits in one reply."""
_HURRY_SECONDS = 1.0
_MOST_AT_ONCE = 1_000
_HIGHEST_AROUND = 10

LookUp = Callable[[Question, Reach, Found | None, int], list[Found]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request joined to what it means: the question, or the folded letters that are looked for instead, whom it may look at,
    where it goes on.
    """

    request: SearchRequest
    who: Who
    readable: Readable
    question: Question
    letters: str
    reach: Reach
    limit: int
    bound_to: bytes
    position: Position


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of the lists, its turns with their scores; `position` None where there is no other. `looked` is how MATCH_SUBSTRING
    came to it.
    """

    matches: Sequence[tuple[TurnInPlace, float]]
    near: Sequence[tuple[TurnInPlace, float]] = ()
    partial: Sequence[tuple[TurnInPlace, float]] = ()
    position: Position | None = None
    looked: Looked | None = None


@dataclass(slots=True)
class _Listed:
    """One list's page: its hits as (turn, score), and how far it has come."""

    turns: list[tuple[TurnInPlace, float]]
    after: Found | None
    done: bool


class Searcher:
    """Answers searches."""

    def __init__(self, store: Store, live: LiveIndex, access: Access, audit: Audit, seal: Seal, documents: Documents) -> None:
        self._store = store
        self._live = live
        self._access = access
        self._audit = audit
        self._seal = seal
        self._documents = documents
        self._substrings = Substrings(store, documents)
        self._notices = Notices(store, documents, self._substrings)

    def search(self, call: Call, request: SearchRequest) -> SearchReply:
        """Returns one page of the lists."""
        asked = self._asked(call, request)
        as_of = time.time_ns() // 1_000
        pending = self._live.pending(asked.reach)  # asked first: 0 means that the lists hold all
        lists = self._live.lists()
        page = self._holding(call, asked, lists) if request.substring else self._page(call, asked, lists)
        call.patience.check()
        around = _Around(self._store, request.around)
        any_word = Shown.ANY_WORD if request.any_word else Shown.MATCHES
        reply = SearchReply(
            matches=self._hits(call, asked, any_word, page.matches, around),
            near=self._hits(call, asked, Shown.NEAR, page.near, around),
            partial=self._hits(call, asked, Shown.PARTIAL, page.partial, around),
            next_page_token=self._seal.close(page.position.pack(), asked.bound_to) if page.position is not None else "",
            notice="",
            turns_pending=pending,
            as_of=as_of,
        )
        if asked.readable.recorded:
            self._audit.record(call, _reading(asked, [*reply.matches, *reply.near, *reply.partial]))
        return replace(reply, notice=self._notice(call, asked, lists, reply, page, around))

    # -- what is asked

    def _asked(self, call: Call, request: SearchRequest) -> _Asked:
        limit = limit_of(request.page.limit)
        if not 0 <= request.around <= _HIGHEST_AROUND:
            raise InvalidArgument("around", f"{request.around} is not between 0 and {_HIGHEST_AROUND}")
        question, letters = self._sought(request)
        who = self._access.who(call, request.scope)
        try:
            readable = self._access.readable(who, request.agent_id, request.scope, every_agent=request.every_agent)
        except Refused as refused:
            reading = Reading(
                who, refused.targets, False, request.query, _filters(request), bool(request.page.cursor), (), request.reason
            )
            self._audit.record(call, reading)
            raise refused.error from None
        bound_to = binding("SearchTranscripts", _binding_fields(request), call.agent_id, dict(call.scope))
        cursor = request.page.cursor
        position = Position.unpack(self._seal.open(cursor, bound_to)) if cursor else Position()
        return _Asked(request, who, readable, question, letters, self._reach(request, who, readable), limit, bound_to, position)

    def _sought(self, request: SearchRequest) -> tuple[Question, str]:
        """Returns what is looked for: a question, or letters and a question that asks nothing."""
        if not request.substring:
            return Question(parse(request.query, self._documents.analyser), request.as_typed), ""
        if request.newest:
            fixed = "ORDER_NEWEST is not for match MATCH_SUBSTRING, which has one order: conversations newest first, turns in order"
            raise InvalidArgument("order", fixed)
        return Question(Query(())), letters_of(request.query)

    def _reach(self, request: SearchRequest, who: Who, readable: Readable) -> Reach:
        scope = who.scope or {}
        agents = readable.agents if who.scope is not None else frozenset()
        conversations = None
        if request.conversation_id:  # several agents may have a conversation of that id
            conversations = frozenset(self._store.conversations_with_id(request.conversation_id, scope, agents))
        own, kinds = request.include_own_searches, request.kinds
        return Reach(scope, agents, conversations, request.roles, request.project, request.since, request.until, own, kinds)

    # -- the page

    def _holding(self, call: Call, asked: _Asked, lists: Lists) -> _Page:
        after = asked.position.reached
        looked = self._substrings.look(
            asked.letters, asked.reach, after, asked.limit, lists=lists, patience=call.patience, bounds=Bounds()
        )
        position = Position(reached=looked.reached) if looked.more or looked.ended_early else None
        return _Page([(turn, SCORE) for turn in looked.turns], position=position, looked=looked)

    def _page(self, call: Call, asked: _Asked, lists: Lists) -> _Page:
        position = asked.position
        if asked.request.any_word:
            lists = self._caught_up() if position.partial is None else lists
            shown, position = self._fixed(call, asked, position, lists)
            return _Page(shown, position=position if position.partial else None)
        in_order = lists.newest if asked.request.newest else lists.matches
        matches = self._listed(call, asked, in_order, position.matches, position.matches_done, match_score)
        position = replace(position, matches=matches.after, matches_done=matches.done)
        if len(matches.turns) >= asked.limit:
            return _Page(matches.turns, position=position)
        several = asked.question.query.several
        if several and position.partial is None:
            lists = self._caught_up()
        near = self._listed(call, asked, lists.near, position.near, position.near_done, near_score)
        whole = near.done and position.near is None
        position = replace(position, near=near.after, near_done=near.done)
        partial: list[tuple[TurnInPlace, float]] = []
        if several:
            known = frozenset(turn.turn.number for turn, _ in near.turns) if whole else None
            partial, position = self._fixed(call, asked, position, lists, near=known)
        more = not (position.near_done and not position.partial)
        return _Page(matches.turns, near.turns, partial, position if more else None)

    def _listed(
        self,
        call: Call,
        asked: _Asked,
        look_up: LookUp,
        after: Found | None,
        done: bool,
        score: Callable[[int, int], float],
    ) -> _Listed:
        """Fills a page of one list, and looks one turn further to tell whether it is the last."""
        kept: list[tuple[Found, TurnInPlace]] = []
        last = after
        wanted = asked.limit + 1
        while not done and len(kept) <= asked.limit:
            call.patience.check()
            found = look_up(asked.question, asked.reach, last, wanted)
            turns = self._store.turns([one.number for one in found])
            kept += [(one, turns[one.number]) for one in found if one.number in turns]
            done = len(found) < wanted
            last = found[-1] if found else last
            wanted = min(2 * wanted, _MOST_AT_ONCE)  # a deleted conversation may lie in the index a while longer
        if len(kept) > asked.limit:
            kept, done = kept[: asked.limit], False
        shown_last = kept[-1][0] if kept else after
        return _Listed([(turn, score(one.rank, turn.turn.content_length)) for one, turn in kept], shown_last, done)

    def _caught_up(self) -> Lists:
        """Returns the lists when the engine, which alone weighs turns well, holds what writes brought."""
        self._live.hurry_fresh(_HURRY_SECONDS)
        return self._live.lists()

    def _fixed(
        self, call: Call, asked: _Asked, position: Position, lists: Lists, near: frozenset[int] | None = None
    ) -> tuple[list[tuple[TurnInPlace, float]], Position]:
        """Shows a page of the list that is fixed when it is first looked at; turns deleted or rewritten since are left out.

        `near` holds the numbers of that whole list, None where it is longer than a page.
        """
        call.patience.check()
        if position.partial is None:
            weighed = lists.partial(asked.question, asked.reach, every_word=asked.request.any_word, near=near)
            if asked.request.any_word and asked.request.newest:
                weighed = sorted(weighed, key=lambda one: (-one.at, -one.number))
            position = replace(position, partial=shares_of([(one.number, one.weight) for one in weighed]))
        rest: Sequence[Share] = position.partial or ()
        shown: list[tuple[TurnInPlace, float]] = []
        while rest and len(shown) < asked.limit:
            some, rest = rest[: asked.limit - len(shown)], rest[asked.limit - len(shown) :]
            turns = self._store.turns([share.number for share in some])
            shown += [
                (turns[share.number], share.thousandths / 1_000)
                for share in some
                if share.number in turns and self._admits(asked, turns[share.number])
            ]
        return shown, replace(position, partial=tuple(rest))

    def _admits(self, asked: _Asked, place: TurnInPlace) -> bool:
        """Tells whether a turn of the fixed list may still be read: rights are checked anew on every page."""
        reach = asked.reach
        return (reach.agents is None or place.agent.pk in reach.agents) and holds(place.agent.scope, reach.scope)

    # -- the answer

    def _hits(
        self, call: Call, asked: _Asked, shown: Shown, listed: Iterable[tuple[TurnInPlace, float]], around: _Around
    ) -> tuple[Hit, ...]:
        hits = []
        for place, score in listed:
            call.patience.check()
            snippet = self._snippet(asked, shown, place)
            before, after = around.of(place)
            agent = self._access.seen_by(asked.who, place.agent)
            hits.append(Hit(agent, place.conversation, place.turn, snippet, score, before, after))
        return tuple(hits)

    def _snippet(self, asked: _Asked, shown: Shown, place: TurnInPlace) -> str:
        own_searches, kinds = asked.reach.own_searches, asked.reach.kinds
        if asked.letters:
            return snippet_of_letters(self._documents.literal_of(place, own_searches=own_searches, kinds=kinds), asked.letters)
        stretches = self._documents.stretches_of(place, own_searches=own_searches, kinds=kinds)
        return snippet_of_stretches(stretches, asked.question, shown, self._documents.analyser)

    def _notice(self, call: Call, asked: _Asked, lists: Lists, reply: SearchReply, page: _Page, around: _Around) -> str:
        request, who = asked.request, asked.who
        searched = Searched(
            request.query,
            asked.question,
            asked.reach,
            any_word=request.any_word,
            as_typed=request.as_typed,
            letters=asked.letters,
            looked=page.looked,
            whose=request.agent_id or who.agent_id,
            conversation_id=request.conversation_id,
            contradictory=who.scope is None,
            first_page=not request.page.cursor,
        )
        return self._notices.of(searched, reply, around.left_out, lists, call.patience)


class _Around:
    """The turns on each side of hits, within the reply's budget: best hits first."""

    def __init__(self, store: Store, sides: int) -> None:
        self._store = store
        self._sides = sides
        self._left = CONTEXT_BYTES
        self.left_out = 0

    def of(self, place: TurnInPlace) -> tuple[tuple[ContextTurn, ...], tuple[ContextTurn, ...]]:
        """Returns the turns before and after a hit."""
        if not self._sides:
            return (), ()
        seq = place.turn.seq
        first = max(0, seq - self._sides)
        turns = self._store.turns_from(place.conversation.pk, first, seq - first + 1 + self._sides)
        context = [_context(turn) for turn in turns if turn.seq != seq]
        size = sum(len(one.text.encode()) for one in context)
        if size > self._left:
            self.left_out += 1
            self._left = 0
            return (), ()
        self._left -= size
        return tuple(one for one in context if one.seq < seq), tuple(one for one in context if one.seq > seq)


def _context(turn: StoredTurn) -> ContextTurn:
    text = text_of(turn.parts)
    return ContextTurn(
        turn.turn_id, turn.seq, turn.role, text[:CONTEXT_CHARACTERS], len(text) > CONTEXT_CHARACTERS, turn.created_at
    )


def _filters(request: SearchRequest) -> dict[str, Any]:
    """Returns the fields of a request beside query, page and reason that are set, under their names on the wire."""
    fields = {
        "agent_id": request.agent_id,
        "conversation_id": request.conversation_id,
        "roles": sorted(request.roles),
        "part_kinds": [f"PART_KIND_{kind.name}" for kind in request.kinds],
        "since": request.since,
        "until": request.until,
        "project": request.project,
        "match": "MATCH_SUBSTRING" if request.substring else "MATCH_ANY_WORD" if request.any_word else "",
        "order": "ORDER_NEWEST" if request.newest else "",
        "words": "WORDS_AS_TYPED" if request.as_typed else "",
        "around": request.around,
        "every_agent": request.every_agent,
        "include_own_searches": request.include_own_searches,
        "scope": dict(request.scope),
    }
    return {name: value for name, value in fields.items() if value not in ("", None, 0, False, [], {})}


def _binding_fields(request: SearchRequest) -> Mapping[str, Any]:
    return {"query": request.query, **_filters(request), "since": request.since, "until": request.until}


def _reading(asked: _Asked, hits: Sequence[Hit]) -> Reading:
    """Returns what is recorded of a search: every turn of somebody else's whose text goes out, those around hits included."""
    request, readable = asked.request, asked.readable
    others = [hit for hit in hits if hit.agent.pk not in readable.own]
    targets = readable.targets or tuple(dict.fromkeys((hit.agent.agent_id, hit.agent.pk) for hit in others))
    returned = [
        (hit.agent.pk, turn_id)
        for hit in others
        for turn_id in (*(t.turn_id for t in hit.before), hit.turn.turn_id, *(t.turn_id for t in hit.after))
    ]
    return Reading(asked.who, targets, True, request.query, _filters(request), bool(request.page.cursor), returned, request.reason)
