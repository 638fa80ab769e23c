"""Searching and reading: the use cases, what they are asked and what they answer. No protobuf here.

Times are microseconds since 1970-01-01 UTC, offsets and lengths UTF-8 bytes of a transcript.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from aforesaid.model import EMPTY_SCOPE
from aforesaid_server.paging import Page
from aforesaid_server.store import Scope, StoredAgent, StoredConversation, StoredTurn
from aforesaid_server.text.transcript import NO_KIND, Kind


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What SearchTranscripts is asked, in contract.md's fields. `kinds` are its `part_kinds`, none of which narrows nothing."""

    query: str
    page: Page = Page()
    agent_id: str = ""
    conversation_id: str = ""
    roles: frozenset[str] = frozenset()
    kinds: Kind = NO_KIND
    since: int | None = None
    until: int | None = None
    project: str = ""
    any_word: bool = False
    substring: bool = False
    as_typed: bool = False
    around: int = 0
    every_agent: bool = False
    newest: bool = False
    include_own_searches: bool = False
    reason: str = ""
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


@dataclass(frozen=True, slots=True)
class ContextTurn:
    """A turn beside a hit, its text cut at 4,000 code points."""

    turn_id: str
    seq: int
    role: str
    text: str
    cut: bool
    created_at: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One turn that was found."""

    agent: StoredAgent
    conversation: StoredConversation
    turn: StoredTurn
    snippet: str
    score: float
    before: tuple[ContextTurn, ...] = ()
    after: tuple[ContextTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchReply:
    """One page of the lists."""

    matches: Sequence[Hit]
    near: Sequence[Hit]
    partial: Sequence[Hit]
    next_page_token: str
    notice: str
    turns_pending: int
    as_of: int


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What ReadTranscript is asked: a range of bytes (length 0: to the end), or one turn by id."""

    agent_id: str
    conversation_id: str
    offset: int = 0
    length: int = 0
    turn_id: str = ""
    reason: str = ""
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


@dataclass(frozen=True, slots=True)
class ReadReply:
    """Whole turns; `next_offset` 0 at the end of what was asked for."""

    turns: Sequence[StoredTurn]
    next_offset: int


__all__ = ["ContextTurn", "Hit", "Page", "ReadReply", "ReadRequest", "SearchReply", "SearchRequest"]
