"""What becomes of each turn of a write: added, replaced, kept. Pure; `writing.py` looks up before and writes down after.

The conversation
    has no such id                added at the end; in a whole conversation where it stands in the request
    has it, with another text     replaced in its place, under a new number
    has it, with the same text    kept with its number; a whole conversation takes role, parts and time from the request

Numbers are asked for in the order of the seqs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from aforesaid_server.store import NewTurn, StoredConversation, StoredTurn

NOT_ASKED = -1


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one turn, None as `old` if it is new. `logged` is the change that puts it, 0 if none does.

    `place` is its index in the request, NOT_ASKED for a turn that the request does not name.
    """

    old: StoredTurn | None
    new: StoredTurn
    logged: int
    place: int

    @property
    def outcome(self) -> str:
        """Tells it in one word, as in `WrittenTurn`."""
        if self.old is None:
            return "added"
        return "unchanged" if self.old.number == self.new.number and _told(self.old) == _told(self.new) else "replaced"

    @property
    def grown(self) -> int:
        """By how many bytes the transcript gets longer."""
        return self.new.content_length + 1 if self.old is None else self.new.content_length - self.old.content_length


@dataclass(frozen=True, slots=True)
class Plan:
    """Makes the steps of one conversation. `known` holds its turns by id, `put_all` asks for a change of each of them."""

    conversation: StoredConversation
    known: Mapping[str, StoredTurn]
    put_all: bool
    next_number: Callable[[], int]
    now: int

    def append(self, given: Sequence[NewTurn], named: Sequence[tuple[str, int]]) -> list[Step]:
        """Returns the steps of an append, and with `put_all` of all other turns, by seq. `named`: an id and a seq for each turn."""
        asked = {seq: place for place, (_, seq) in enumerate(named)}
        others = {turn.seq: turn for turn in self.known.values() if turn.seq not in asked} if self.put_all else {}
        steps: list[Step] = []
        longer = 0
        for seq in sorted([*asked, *others]):
            place = asked.get(seq, NOT_ASKED)
            if place == NOT_ASKED:
                old = others[seq]
                step = self._kept(old, replace(old, content_offset=old.content_offset + longer), place)
            else:
                new, turn_id = given[place], named[place][0]
                known = self.known.get(turn_id)
                start = self.conversation.content_length if known is None else known.content_offset
                if known is None or not _same_text(known, new):
                    step = self._written(known, new, turn_id, seq, start + longer, place)
                else:
                    step = self._kept(known, replace(known, content_offset=start + longer) if longer else known, place)
            longer += step.grown
            steps.append(step)
        return steps

    def write(self, given: Sequence[NewTurn], named: Sequence[tuple[str, int]]) -> list[Step]:
        """Returns the steps of a whole conversation, one for each turn of the request."""
        steps: list[Step] = []
        offset = 0
        for place, (new, (turn_id, seq)) in enumerate(zip(given, named, strict=True)):
            old = self.known.get(turn_id)
            if old is None or not _same_text(old, new):
                step = self._written(old, new, turn_id, seq, offset, place)
            else:
                created_at = old.created_at if new.created_at is None else new.created_at
                now = replace(old, seq=seq, content_offset=offset, role=new.role, parts=new.parts, created_at=created_at)
                step = self._kept(old, now, place)
            offset += new.content_length + 1
            steps.append(step)
        return steps

    def _written(self, old: StoredTurn | None, new: NewTurn, turn_id: str, seq: int, offset: int, place: int) -> Step:
        created_at = new.created_at
        if created_at is None:
            created_at = self.now if old is None else old.created_at
        number = self.next_number()
        turn = StoredTurn(
            number,
            self.conversation.pk,
            turn_id,
            seq,
            new.role,
            new.parts,
            created_at,
            offset,
            new.content_length,
            new.digest,
        )
        return Step(old, turn, number, place)

    def _kept(self, old: StoredTurn, now: StoredTurn, place: int) -> Step:
        return Step(old, now, self.next_number() if self.put_all or _told(old) != _told(now) else 0, place)


def _same_text(old: StoredTurn, new: NewTurn) -> bool:
    return old.digest == new.digest and old.content_length == new.content_length


def _told(turn: StoredTurn) -> tuple[object, ...]:
    """Returns what else than its text and project an index holds of a turn."""
    return turn.role, turn.parts, turn.created_at
