"""What an application's prompt compiler may quote from chats: the messages that recalled memories cite, and what a search finds.

Nothing happens unless the application makes a source and asks it. What it gives is quoted material, not instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, overload

from aforesaid._chat_fields import asked
from aforesaid._client import Client
from aforesaid._errors import InvalidArgument
from aforesaid._replies import CompiledContext, ContextCandidate
from aforesaid.chat_records import CHAT_AGENT, MESSAGE, MessageRef, check_ids, ref_of, scope_of
from aforesaid.message_shapes import check_text
from aforesaid.model import SourceRef

References = Callable[[], Iterable[MessageRef | Mapping[str, Any]]]

# The most code points that the service is asked for.
_MOST_CODE_POINTS = 1_000_000
_MOST_SOURCES = 100
_MOST_CHATS = 100
_MOST_AROUND = 10


class Calling(Protocol):
    """Whoever calls a service, as a TranscriptIndex does."""

    client: Client


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece of a chat as lines of `role: text`. `match` is "source-ref" where it was cited, "search" where it was found.

    `index` is the message's place in its chat, `score` 1 for the best hit and for what was cited.
    """

    text: str
    match: Literal["source-ref", "search"]
    chat_id: str
    message_id: str
    index: int
    score: float


@dataclass(frozen=True, slots=True)
class Candidates(Sequence[Candidate]):
    """What a source offers for one prompt, the cited messages first.

    `claimed` is the source's share of the budget, 0 where it offers nothing; `used` what the texts, joined by newlines, come to;
    `left_out` how many pieces did not fit.
    """

    entries: tuple[Candidate, ...] = ()
    claimed: int = 0
    used: int = 0
    left_out: int = 0

    @overload
    def __getitem__(self, at: int) -> Candidate: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, at: int | slice) -> Candidate | tuple[Candidate, ...]:
        return self.entries[at]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.entries)

    @property
    def text(self) -> str:
        """The texts, joined by newlines."""
        return "\n".join(one.text for one in self.entries)


@dataclass(frozen=True, slots=True)
class ContextSource:
    """Offers pieces of the chats of one scope; made by `context_source`."""

    index: Calling
    scope: Mapping[str, str]
    chat_ids: tuple[str, ...] | None
    around: int
    refs: References | None
    budget: int
    share: float
    count: Callable[[str], int]
    limit: int
    stem: bool

    def candidates(self, query: str = "") -> Candidates:
        """Returns what may be quoted for a query; never more than the share of the budget. Raises AforesaidError."""
        check_text("query", query)
        room = int(self.budget * self.share)
        cited = self._cited()
        sources = cited[:_MOST_SOURCES]
        searched = query if self.chat_ids != () else ""
        if room < 1 or not (sources or searched):
            return Candidates()
        # Whoever counts otherwise than in code points gets all of it, and counts.
        most = min(room, _MOST_CODE_POINTS) if self.count is len else _MOST_CODE_POINTS
        found = self._compiled(searched, sources, most, self.around)
        page = _Page(room, self.count)
        fit = [page.put(one) for one in found.candidates]
        left_out = found.left_out + fit.count(False)
        if self.around and self.count is not len and not all(fit):
            # As the service does by its own count: a hit for which there is no room with its neighbours is quoted by itself.
            alone = self._compiled(searched, sources, most, 0)
            left_out = alone.left_out + [page.put(one) for one in alone.candidates if not page.holds(one)].count(False)
        entries = tuple(map(_candidate_of, page.taken))
        return Candidates(entries, room if entries else 0, page.used, len(cited) - len(sources) + left_out)

    def _compiled(self, query: str, sources: Sequence[SourceRef], budget: int, around: int) -> CompiledContext:
        return asked(
            self.index.client.compile_context,
            query,
            sources=sources,
            budget=budget,
            limit=self.limit,
            conversation_ids=self.chat_ids or (),
            agent_ids=[CHAT_AGENT],
            stem=self.stem,
            around=around,
            scope=self.scope,
        )

    def _cited(self) -> list[SourceRef]:
        """Returns the messages that are cited, each once; what else a memory may cite is not ours."""
        given = [ref_of(ref, f"refs[{at}]") for at, ref in enumerate(self.refs() if self.refs is not None else ())]
        cited = dict.fromkeys(
            (ref.chat_id, ref.message_id) for ref in given if ref.kind == MESSAGE and ref.chat_id and ref.message_id
        )
        return [SourceRef(chat_id, message_id, agent_id=CHAT_AGENT) for chat_id, message_id in cited]


def context_source(
    index: Calling,
    scope: Mapping[str, str | None],
    *,
    chat_ids: Iterable[str] | None = None,
    around: int = 0,
    refs: References | None = None,
    budget: int,
    share: float = 1,
    count: Callable[[str], int] = len,
    limit: int = 20,
    stem: bool = False,
) -> ContextSource:
    """Makes a source of what a prompt may quote from the chats of a scope.

    `refs` is called each time for the messages that recalled memories cite; they come first, each resolved under the same scope.
    Then comes what a search finds, in `chat_ids` only if they are given. All texts together take at most `share` of the `budget`,
    as `count` counts them: code points, or tokens. Raises InvalidArgument.
    """
    _check_number("budget", budget, 0)
    _check_number("around", around, 0, _MOST_AROUND)
    _check_number("limit", limit, 1)
    if not 0 < share <= 1:
        raise InvalidArgument.of("share", f"must be above 0 and at most 1: {share}")
    only = None if chat_ids is None else tuple(check_ids("chat_ids", chat_ids))
    if only and len(only) > _MOST_CHATS:
        raise InvalidArgument.of("chat_ids", f"{len(only)} entries, at most {_MOST_CHATS} are allowed")
    return ContextSource(index, scope_of(scope), only, around, refs, budget, share, count, limit, stem)


def _check_number(field: str, value: object, least: int, most: int | None = None) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgument.of(field, f"must be a whole number, and is of type {type(value).__name__}")
    if value < least:
        raise InvalidArgument.of(field, f"{value} is less than {least}")
    if most is not None and value > most:
        raise InvalidArgument.of(field, f"{value} is more than {most}")


class _Page:
    """The pieces that fit so far. One that does not is left out, and others may follow."""

    def __init__(self, room: int, count: Callable[[str], int]) -> None:
        self.taken: list[ContextCandidate] = []
        self.used = 0
        self._room, self._count = room, count

    def put(self, one: ContextCandidate) -> bool:
        """Adds a piece; tells whether it fits. Counted is the whole: its tokens are not the sum of those of its parts."""
        with_it = self._count("\n".join(each.text for each in (*self.taken, one)))
        if with_it > self._room:
            return False
        self.taken.append(one)
        self.used = with_it
        return True

    def holds(self, one: ContextCandidate) -> bool:
        """Tells whether the lines of a piece stand among those taken."""
        return any(f"\n{one.text}\n" in f"\n{each.text}\n" for each in self.taken if each.conversation_id == one.conversation_id)


def _candidate_of(found: ContextCandidate) -> Candidate:
    match: Literal["source-ref", "search"] = "source-ref" if found.match == "source-ref" else "search"
    return Candidate(found.text, match, found.conversation_id, found.turn_id, found.seq, found.score)
