"""The rows of turns, parts and changes that one write transaction makes. What they shall be is decided by who calls.

Turns that are added, nearly all of an import, wait here and go out together; whatever touches turns that are there already goes out
at once, after those that wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import Connection, Executable, bindparam, select, update

from aforesaid_server.store import Change, StoredTurn
from aforesaid_server.store.changelog import row_of_change
from aforesaid_server.store.rows import Values, row_of_part, row_of_turn
from aforesaid_server.store.tables import changes, parts, turns

_LAST = 2**31 - 1  # no seq is larger
_ONE_TURN = update(turns).where(turns.c.number == bindparam("at"))  # each execution names the columns that it sets
_PARK = _ONE_TURN.values(seq=-1 - turns.c.seq)
_SHIFT = (
    update(turns)
    .where(turns.c.conversation_pk == bindparam("conversation"), turns.c.seq > bindparam("after"), turns.c.seq <= bindparam("last"))
    .values(content_offset=turns.c.content_offset + bindparam("by"))
)
_DROP = turns.delete().where(turns.c.number == bindparam("at"))
_DROP_PARTS = parts.delete().where(parts.c.turn_number == bindparam("at"))

_DROP_PARTS_OF_ALL = parts.delete().where(
    parts.c.turn_number.in_(select(turns.c.number).where(turns.c.conversation_pk == bindparam("conversation")))
)
_DROP_ALL = turns.delete().where(turns.c.conversation_pk == bindparam("conversation"))


class TurnRows:
    """What waits, on the connection of the transaction that it belongs to; `bulk` if that is an import's."""

    def __init__(self, connection: Connection, *, bulk: bool = False) -> None:
        self._connection = connection
        self._bulk = bulk
        self._turns: list[Values] = []
        self._parts: list[Values] = []
        self._changes: list[Values] = []

    def add(self, turn: StoredTurn, logged: int) -> None:
        """Lines up a turn that the change `logged` puts."""
        self._turns.append(row_of_turn(turn, logged))
        self._parts += [row_of_part(turn.number, place, part) for place, part in enumerate(turn.parts)]

    def log(self, happened: Iterable[Change], conversation_pk: int) -> None:
        """Lines up changes of a conversation."""
        self._changes += [row_of_change(change, conversation_pk, bulk=self._bulk) for change in happened]

    def flush(self) -> None:
        """Sends out the rows that wait."""
        for table, rows in ((turns, self._turns), (parts, self._parts), (changes, self._changes)):
            self._each(table.insert(), rows)
            rows.clear()

    def shift(self, conversation_pk: int, shifts: Sequence[tuple[int, int]]) -> None:
        """Moves offsets: behind each seq, up to the next one that is named, by so many bytes. The seqs ascend."""
        self.flush()
        following = [*(seq for seq, _ in shifts), _LAST][1:]
        stretches = [
            {"conversation": conversation_pk, "after": seq, "last": last, "by": by}
            for (seq, by), last in zip(shifts, following, strict=True)
        ]
        self._each(_SHIFT, stretches)

    def move(self, kept: Sequence[tuple[StoredTurn, StoredTurn]]) -> None:
        """Gives turns their new places, by way of negative ones, as no two turns may have the same in between."""
        self.flush()
        self._each(_PARK, [{"at": old.number} for old, new in kept if old.seq != new.seq])
        moved = [
            {"at": old.number, "seq": new.seq, "content_offset": new.content_offset}
            for old, new in kept
            if (old.seq, old.content_offset) != (new.seq, new.content_offset)
        ]
        self._each(_ONE_TURN, moved)

    def rewrite(self, again: Sequence[tuple[StoredTurn, StoredTurn, int]]) -> None:
        """Writes anew turns that the log puts again, and their parts where those differ. Their places are right already."""
        self.flush()
        kept: list[Values] = []
        renumbered: list[Values] = []
        parted: list[tuple[int, StoredTurn]] = []
        for old, new, logged in again:
            row: Values = {"at": old.number, "role": new.role, "created_at": new.created_at, "logged": logged}
            if old.number == new.number:
                kept.append(row)
            else:
                renumbered.append(row | {"number": new.number, "content_length": new.content_length, "digest": new.digest})
            if old.number != new.number or old.parts != new.parts:
                parted.append((old.number, new))
        self._each(_DROP_PARTS, [{"at": number} for number, _ in parted])
        self._each(_ONE_TURN, kept)
        self._each(_ONE_TURN, renumbered)
        self._parts += [row_of_part(new.number, place, part) for _, new in parted for place, part in enumerate(new.parts)]

    def put_again(self, numbers: Mapping[int, int]) -> None:
        """Has turns, by number, be put by later changes, as nothing but what they are put with has changed."""
        self.flush()
        self._each(_ONE_TURN, [{"at": number, "logged": logged} for number, logged in numbers.items()])

    def drop(self, numbers: Collection[int]) -> None:
        """Deletes turns with their parts."""
        self.flush()
        gone = [{"at": number} for number in numbers]
        self._each(_DROP_PARTS, gone)
        self._each(_DROP, gone)

    def drop_all(self, conversation_pk: int) -> None:
        """Deletes the turns of a conversation with their parts."""
        self.flush()
        self._connection.execute(_DROP_PARTS_OF_ALL, {"conversation": conversation_pk})
        self._connection.execute(_DROP_ALL, {"conversation": conversation_pk})

    def _each(self, statement: Executable, rows: Sequence[Values]) -> None:
        if rows:
            self._connection.execute(statement, rows)
