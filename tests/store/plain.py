"""The store as a person would tell it: lists and dicts, turn by turn, at any cost. What the real one must agree with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TypeAlias

from aforesaid.model import EMPTY_SCOPE, Part, Reasoning, Source, Text, ToolCall, ToolResult
from aforesaid_server.store import (
    Append,
    Change,
    Forget,
    ForgetConversation,
    NewRead,
    NewTurn,
    Put,
    ReadHead,
    ReadListing,
    ReadRow,
    Scope,
    Store,
    StoredTurn,
)


def said(
    text: str, turn_id: str = "", *, role: str = "user", at: int | None = None, parts: tuple[Part, ...] | None = None
) -> NewTurn:
    """A turn to write with that text, as one part unless `parts` tells others with the same text."""
    data = text.encode()
    return NewTurn(turn_id, role, (Text(text),) if parts is None else parts, at, len(data), sha256(data).digest())


def thought(text: str, turn_id: str = "", *, role: str = "user", at: int | None = None) -> NewTurn:
    """The same text, as reasoning."""
    return said(text, turn_id, role=role, at=at, parts=(Reasoning(text),))


def record(store: Store, row: ReadRow, scope: Scope = EMPTY_SCOPE, targets: Sequence[tuple[str, int | None]] = ()) -> None:
    """Keeps an audit record, with a head that ends at it."""
    new = NewRead(row, ReadListing(scope, tuple(targets)), ReadHead(row.number, row.mac, b"proof"))
    assert store.add_read(row.number, lambda _rows, _head: new) == new


def plain_answers(turns: Sequence[StoredTurn]) -> dict[int, dict[int, str]]:
    """The names of the calls that results answer, by number and place: of the last call of that id before it, or else of the
    first after; those without an id by their order in the turn.
    """
    found: dict[int, dict[int, str]] = {turn.number: _answers_without_ids(turn.parts) for turn in turns}
    everything = [
        (turn, place, part)
        for turn in sorted(turns, key=lambda turn: (turn.conversation_pk, turn.seq))
        for place, part in enumerate(turn.parts)
    ]
    for at, (turn, place, part) in enumerate(everything):
        if not isinstance(part, ToolResult) or not part.call_id:
            continue
        calls = [
            (other > at, abs(other - at), call.name)
            for other, (its, _, call) in enumerate(everything)
            if isinstance(call, ToolCall) and its.conversation_pk == turn.conversation_pk and call.call_id == part.call_id
        ]
        if calls:
            found[turn.number][place] = min(calls)[2]
    return found


def _answers_without_ids(parts: Sequence[Part]) -> dict[int, str]:
    answers: dict[int, str] = {}
    waiting: list[str] = []
    for place, part in enumerate(parts):
        match part:
            case ToolCall(name, call_id=""):
                waiting = [*waiting, name]
            case ToolResult(call_id="") if waiting:
                answers[place], *waiting = waiting
            case _:
                pass
    return answers


@dataclass
class PlainTalk:
    """A conversation: its turns stand in order; number 0 has not been given yet."""

    conversation_id: str
    turns: list[StoredTurn] = field(default_factory=list)
    revision: int = 0
    title: str = ""
    source: Source = Source()
    updated_at: int = 0
    tombstoned: bool = False


class PlainStore:
    """Conversations of one agent, and the log of their changes after the number `began`. Keys of conversations are all 0."""

    def __init__(self, began: int) -> None:
        self.began = began
        self.talks: dict[str, PlainTalk] = {}
        self.log: list[Put | Forget | ForgetConversation] = []

    def _next(self) -> int:
        return self.began + len(self.log) + 1

    def ids(self, append: Append, *, whole: bool) -> list[str]:
        """The ids that the turns of a request get."""
        old = [] if whole else [turn.turn_id for turn in self.talks.get(append.conversation_id, PlainTalk("")).turns]
        given: list[str] = []
        for turn in append.turns:
            given.append(turn.turn_id if turn.turn_id and turn.turn_id not in given else "")
        seq = len(old)
        ids: list[str] = []
        for turn_id in given:
            name = turn_id
            if not name:
                name = f"{append.conversation_id}:{seq}"
                while name in old or name in given or name in ids:
                    name += f":{seq}"
            if name not in old:
                seq += 1
            ids.append(name)
        return ids

    def append(self, append: Append, now: int) -> bool:
        """Whether it could be done; the turns go to the end one by one, or into the place of the one with their id."""
        return self._do(append, now, whole=False)

    def write(self, append: Append, now: int) -> bool:
        return self._do(append, now, whole=True)

    def _do(self, append: Append, now: int, *, whole: bool) -> bool:
        talk = self.talks.setdefault(append.conversation_id, PlainTalk(append.conversation_id))
        if talk.tombstoned:
            return False
        before, began = replace(talk, turns=list(talk.turns)), len(self.log)
        ids = self.ids(append, whole=whole)
        old = {turn.turn_id: turn for turn in before.turns}
        turns = [] if whole else list(talk.turns)
        for new, turn_id in zip(append.turns, ids, strict=True):
            turn = self._turn(old.get(turn_id), new, turn_id, now, whole=whole)
            if turn_id in old and not whole:
                turns[old[turn_id].seq] = turn
            else:
                turns.append(turn)
        talk.title = append.title or talk.title
        source = append.source
        talk.source = Source(
            source.format or talk.source.format, source.file or talk.source.file, source.project or talk.source.project
        )
        for gone in before.turns:
            if gone.turn_id not in {turn.turn_id for turn in turns}:
                self.log.append(Forget(self._next(), gone.number))
        offset = 0
        talk.turns = []
        for seq, turn in enumerate(turns):
            number = turn.number or self._next()
            talk.turns.append(replace(turn, number=number, seq=seq, content_offset=offset))
            offset += turn.content_length + 1
            was = old.get(turn.turn_id)
            if not turn.number:
                self.log.append(Put(number, number, was.number if was else 0, None))
            elif was and (talk.source.project != before.source.project or told(was) != told(turn)):
                self.log.append(Put(self._next(), number, 0, None))
        self._put_again(before, talk, self.log[began:])
        if replace(talk, turns=[]) != replace(before, turns=[]) or talk.turns != before.turns or not talk.revision:
            talk.revision += 1
            talk.updated_at = now
        return True

    def _put_again(self, before: PlainTalk, talk: PlainTalk, log: Sequence[Change]) -> None:
        """Puts turns whose results answer other calls than before."""
        was, now = plain_answers(before.turns), plain_answers(talk.turns)
        put = {change.turn_number for change in log if isinstance(change, Put)}
        for turn in talk.turns:
            number = turn.number
            if number in was and was[number] != now[number] and number not in put:
                self.log.append(Put(self._next(), number, 0, None))

    def _turn(self, old: StoredTurn | None, new: NewTurn, turn_id: str, now: int, *, whole: bool) -> StoredTurn:
        at = new.created_at if new.created_at is not None else old.created_at if old else now
        length, digest = new.content_length, new.digest
        if old and old.digest == digest:
            return replace(old, role=new.role, parts=new.parts, created_at=at) if whole else old
        return StoredTurn(0, 0, turn_id, 0, new.role, new.parts, at, 0, length, digest)

    def delete(self, conversation_id: str) -> bool:
        talk = self.talks.get(conversation_id)
        if talk is None or talk.tombstoned:
            return False
        talk.tombstoned = True
        talk.turns = []
        self.log.append(ForgetConversation(self._next(), 0))
        return True

    def numbers(self) -> set[int]:
        """The numbers of all turns."""
        return {turn.number for talk in self.talks.values() for turn in talk.turns}


def told(turn: StoredTurn) -> tuple[object, ...]:
    return turn.role, turn.parts, turn.created_at


Held: TypeAlias = dict[int, tuple[int, dict[int, str]]]
"""What a follower has of turns, by number: the conversation, and the calls that its results answer."""


def replay(found: Held, changes: Sequence[Change]) -> Held:
    """What a follower has that had `found` and then went through the changes."""
    found = dict(found)
    for change in changes:
        match change:
            case Put(_, turn_number, replaces, place):
                found.pop(replaces, None)
                if place is not None:
                    found[turn_number] = place.conversation.pk, dict(place.answers)
            case Forget(_, turn_number):
                found.pop(turn_number, None)
            case ForgetConversation(_, conversation_pk):
                found = {number: held for number, held in found.items() if held[0] != conversation_pk}
    return found
