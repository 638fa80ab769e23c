"""From stored turns to documents: the searched text of the chosen parts, and its words; and what a piece of the change log
brings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from aforesaid.model import Part
from aforesaid_server.index import Document
from aforesaid_server.store import Change, Forget, ForgetConversation, Put, TurnInPlace
from aforesaid_server.text.transcript import Searched
from aforesaid_server.text.words import Analyser, TurnWords

SCHEMA = "documents-2"
"""Names what a document holds; a change of it rebuilds every index."""

KnownWords: TypeAlias = Mapping[tuple[str, tuple[Part, ...]], TurnWords]
"""The words of turns, by role and parts."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """A document at its place in the change log."""

    position: int
    document: Document


@dataclass(frozen=True, slots=True)
class Brought:
    """What changes bring: documents to put, turn numbers and conversations to forget. `position` is the place of the last one in
    the log.
    """

    position: int
    fresh: Sequence[Fresh]
    forget: Sequence[int]
    forget_conversations: Sequence[int]


class Documents:
    """Turns stored turns into documents: the searched text of the chosen parts, and its words."""

    def __init__(self, analyser: Analyser, searched: Searched) -> None:
        self.analyser = analyser
        self.searched = searched

    @property
    def fingerprint(self) -> str:
        """Names all that an index depends on."""
        return f"{SCHEMA} {self.analyser.fingerprint} {self.searched.fingerprint}"

    def words_of(self, role: str, parts: tuple[Part, ...]) -> TurnWords:
        """Returns the words of a turn that are searched, own searches included."""
        return self.analyser.turn(self.searched.text_of(role, parts))

    def stretches_of(self, place: TurnInPlace, *, own_searches: bool = False) -> list[str]:
        """Returns the searched text of a turn: whole, or the stretches between calls of search tools and their results."""
        turn = place.turn
        left_out: frozenset[int] = frozenset() if own_searches else self.searched.own_searches(turn.parts, place.answers)
        return self.searched.stretches_of(turn.role, turn.parts, left_out)

    def of(self, place: TurnInPlace, known: KnownWords = MappingProxyType({})) -> Document:
        """Returns the document of a turn, its words from `known` where they are there."""
        turn = place.turn
        words = known.get((turn.role, turn.parts))
        left_out = self.searched.own_searches(turn.parts, place.answers)
        return Document(
            number=turn.number,
            content_length=turn.content_length,
            agent_pk=place.agent.pk,
            conversation_pk=place.conversation.pk,
            role=turn.role,
            project=place.conversation.source.project,
            scope=place.agent.scope,
            created_at=turn.created_at,
            words=words if words is not None else self.words_of(turn.role, turn.parts),
            without=self._words_without(turn.role, turn.parts, left_out) if left_out else None,
        )

    def _words_without(self, role: str, parts: tuple[Part, ...], left_out: frozenset[int]) -> TurnWords:
        return self.analyser.turn_of_stretches(self.searched.stretches_of(role, parts, left_out))

    def wordless(self, place: TurnInPlace) -> Document:
        """Returns the document of a turn whose words cannot be found: its place is known, and nothing finds it."""
        bare = replace(place.turn, parts=())
        return self.of(replace(place, turn=bare, answers={}))


@dataclass(frozen=True, slots=True)
class Lasting:
    """What is left of changes when later ones have won: turns to put, each with its place in the log; what to forget."""

    position: int
    puts: Sequence[tuple[int, TurnInPlace]]
    forget: Sequence[int]
    forget_conversations: Sequence[int]


def lasting(changes: Sequence[Change]) -> Lasting:
    """Returns what changes, one at least, leave."""
    puts: dict[int, tuple[int, TurnInPlace]] = {}
    forget: list[int] = []
    conversations: list[int] = []
    for change in changes:
        match change:
            case Put(number=number, turn_number=turn_number, replaces=replaces, place=place):
                forget += [old for old in (replaces, turn_number if turn_number != number else 0) if old]
                puts.pop(replaces, None)
                if place is not None:
                    puts[turn_number] = number, place
            case Forget(turn_number=turn_number):
                forget.append(turn_number)
                puts.pop(turn_number, None)
            case ForgetConversation(conversation_pk=conversation):
                conversations.append(conversation)
                puts = {number: put for number, put in puts.items() if put[1].conversation.pk != conversation}
    return Lasting(changes[-1].number, list(puts.values()), forget, conversations)


def brought_by(changes: Sequence[Change], documents: Documents, known: KnownWords) -> Brought:
    """Returns what the changes of one write bring. Words are taken from `known` where they are there."""
    left = lasting(changes)
    fresh = [Fresh(position, documents.of(place, known)) for position, place in left.puts]
    return Brought(left.position, fresh, left.forget, left.forget_conversations)
