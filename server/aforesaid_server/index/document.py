"""From stored turns to documents: the searched text of the chosen parts, and its words; and what a piece of the change log
brings.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from aforesaid.model import Part
from aforesaid_server.index import Document, Narrowed
from aforesaid_server.store import Change, Forget, ForgetConversation, Put, TurnInPlace
from aforesaid_server.text.transcript import (
    NO_KIND,
    SAYING,
    Kind,
    Literal,
    Searched,
    are_several,
    fold_letters,
    kind_of,
    stretches_between,
)
from aforesaid_server.text.words import Analyser, TurnWords, joined

SCHEMA = "documents-3"
"""Names what a document holds; a change of it rebuilds every index."""


@dataclass(frozen=True, slots=True)
class FoundWords:
    """The words of a turn; where its searched parts are of several kinds those of each of them too, by place, so that none is found
    twice. `by_place` is None where they are of one kind, or where some words are cut off: which ones depends on the parts.
    """

    words: TurnWords
    by_place: Mapping[int, TurnWords] | None = None


KnownWords: TypeAlias = Mapping[tuple[str, tuple[Part, ...]], FoundWords]
"""The words of turns, by role and parts."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """A document at its place in the change log."""

    position: int
    document: Document


@dataclass(frozen=True, slots=True)
class Brought:
    """What changes bring: documents to put, turn numbers and conversations to forget. `position` is the place of the last one in
    the log, `first` that of the first one where they are all that stand between, else 0.
    """

    position: int
    fresh: Sequence[Fresh]
    forget: Sequence[int]
    forget_conversations: Sequence[int]
    first: int = 0


class Documents:
    """Turns stored turns into documents: the searched text of the chosen parts, and its words."""

    def __init__(self, analyser: Analyser, searched: Searched) -> None:
        self.analyser = analyser
        self.searched = searched

    @property
    def fingerprint(self) -> str:
        """Names all that an index depends on."""
        return f"{SCHEMA} {self.analyser.fingerprint} {self.searched.fingerprint}"

    def words_of(self, role: str, parts: tuple[Part, ...]) -> FoundWords:
        """Returns the words of a turn that are searched, own searches included."""
        texts = self.searched.texts_of(role, parts)
        if are_several(self.searched.kinds_in(role, parts) & SAYING) and (each := self.analyser.each_of([*texts.values()])):
            return FoundWords(joined([each]), dict(zip(texts, each, strict=True)))
        return FoundWords(self.analyser.turn("\n".join(texts.values())))

    def stretches_of(self, place: TurnInPlace, *, own_searches: bool = False, kinds: Kind = NO_KIND) -> list[str]:
        """Returns the searched text of a turn, in stretches between what is left out: calls of search tools and their results, and,
        where some kinds are named, the parts of others.
        """
        turn = place.turn
        left_out = self._own_searches(place, counted=own_searches)
        if kinds:
            left_out |= self.searched.beside(turn.parts, kinds)
        return self.searched.stretches_of(turn.role, turn.parts, left_out)

    def literal_of(self, place: TurnInPlace, *, own_searches: bool = False, kinds: Kind = NO_KIND) -> Literal:
        """Returns what MATCH_SUBSTRING looks in of a turn, without what is left out there too."""
        turn = place.turn
        left_out = self._own_searches(place, counted=own_searches)
        if kinds:
            left_out |= frozenset(at for at, part in enumerate(turn.parts) if not kind_of(part) & kinds)
        return self.searched.literal_of(turn.role, turn.parts, left_out)

    def of(self, place: TurnInPlace, known: KnownWords = MappingProxyType({}), *, letters: bool = True) -> Document:
        """Returns the document of a turn, its words from `known` where they are there; without `letters` it may hold any."""
        turn = place.turn
        found = known.get((turn.role, turn.parts)) or self.words_of(turn.role, turn.parts)
        left_out = self._own_searches(place)
        kinds = self.searched.kinds_in(turn.role, turn.parts)
        return Document(
            number=turn.number,
            content_length=turn.content_length,
            agent_pk=place.agent.pk,
            conversation_pk=place.conversation.pk,
            role=turn.role,
            project=place.conversation.source.project,
            scope=place.agent.scope,
            created_at=turn.created_at,
            words=found.words,
            without=self._words_without(place, found, left_out) if left_out else None,
            kinds=kinds,
            narrowed=self._narrowed(place, found, left_out) if are_several(kinds & SAYING) else None,
            letters=fold_letters("\n".join(self.literal_of(place, own_searches=True).texts)) if letters else None,
        )

    def _own_searches(self, place: TurnInPlace, *, counted: bool = False) -> frozenset[int]:
        return frozenset() if counted else self.searched.own_searches(place.turn.parts, place.answers)

    def _narrowed(self, place: TurnInPlace, found: FoundWords, own_searches: frozenset[int]) -> Narrowed:
        @cache
        def narrowed(kinds: Kind, own: bool) -> TurnWords:
            beside = self.searched.beside(place.turn.parts, kinds)
            return self._words_without(place, found, beside if own else beside | own_searches)

        return narrowed

    def _words_without(self, place: TurnInPlace, found: FoundWords, left_out: Collection[int]) -> TurnWords:
        turn, words = place.turn, found.by_place
        if words is None:
            return self.analyser.turn_of_stretches(self.searched.stretches_of(turn.role, turn.parts, left_out))
        stretches = stretches_between(len(turn.parts), left_out)
        return joined([words[at] for at in stretch if at in words] for stretch in stretches)

    def wordless(self, place: TurnInPlace) -> Document:
        """Returns the document of a turn whose words cannot be found: its place is known, no word finds it, and it may hold any
        letters.
        """
        bare = replace(place.turn, parts=())
        made = self.of(replace(place, turn=bare, answers={}), letters=False)
        return replace(made, kinds=self.searched.kinds_in(place.turn.role, place.turn.parts))


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
    """Returns what the changes of one write bring, without letters. Words are taken from `known` where they are there."""
    left = lasting(changes)
    fresh = [Fresh(position, documents.of(place, known, letters=False)) for position, place in left.puts]
    return Brought(left.position, fresh, left.forget, left.forget_conversations, changes[0].number)
