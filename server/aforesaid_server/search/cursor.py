"""Where each list of a search goes on: what a page token of SearchTranscripts holds.

Sort keys (tier or step, bytes and number; with ORDER_NEWEST the time too; with MATCH_SUBSTRING the turns beside a place), not
offsets: tokens survive restarts, rebuilds and writes. `paging.py` seals them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from aforesaid_server.index import MOST_PARTIAL, NUMBER_BITS, Found

_WEIGHTS = 1_000
_PARTIAL_BYTES = 7
MOST_BESIDE = 8
"""Turns on each side of a place in a conversation by which it is known again."""
_REACHED, _IS_REACHED = struct.Struct(f">Bq{2 * MOST_BESIDE}q"), 1 << 6
_NOBODY = (0,) * MOST_BESIDE  # no turn has this number


@dataclass(frozen=True, slots=True)
class Share:
    """A turn of the fixed partial list: its number and its share of the best turn's weight, in thousandths."""

    number: int
    thousandths: int


@dataclass(frozen=True, slots=True)
class Reached:
    """Where MATCH_SUBSTRING goes on in a conversation: between the last turns that it looked at and the next ones. By their
    numbers, up to 8 on each side, the place is known again where turns were put before it, rewritten or taken away.
    """

    conversation_pk: int
    looked_at: tuple[int, ...]
    ahead: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """Where a search goes on. A list that is `done` is not looked at again; `partial` is None until it is first looked at.
    `reached` is what MATCH_SUBSTRING has instead of lists.
    """

    matches: Found | None = None
    matches_done: bool = False
    near: Found | None = None
    near_done: bool = False
    partial: tuple[Share, ...] | None = None
    reached: Reached | None = None

    def pack(self) -> bytes:
        """Returns the position as bytes, at most 1,079."""
        if self.reached is not None:
            place = self.reached
            beside = [number for side in (place.looked_at, place.ahead) for number in (*side, *_NOBODY)[:MOST_BESIDE]]
            return _REACHED.pack(_IS_REACHED, place.conversation_pk, *beside)
        at = self.matches.at if self.matches is not None else None
        flags = self.matches_done | self.near_done << 1 | (self.partial is not None) << 2
        flags |= (self.matches is not None) << 3 | (self.near is not None) << 4 | (at is not None) << 5
        packed = struct.pack(">B", flags)
        if at is not None:
            packed += struct.pack(">q", at)
        for found in (self.matches, self.near):
            if found is not None:
                packed += struct.pack(">Bq", found.rank, found.key)
        for share in self.partial or ():
            packed += (share.thousandths << NUMBER_BITS | share.number).to_bytes(_PARTIAL_BYTES, "big")
        return packed

    @classmethod
    def unpack(cls, packed: bytes) -> Position:
        """Reads what pack() wrote."""
        flags, place = packed[0], 1
        if flags == _IS_REACHED:
            _, conversation_pk, *beside = _REACHED.unpack(packed)
            looked_at, ahead = (tuple(filter(None, side)) for side in (beside[:MOST_BESIDE], beside[MOST_BESIDE:]))
            return cls(reached=Reached(conversation_pk, looked_at, ahead))
        time = None
        if flags >> 5 & 1:
            (time,), place = struct.unpack_from(">q", packed, place), place + 8
        founds: list[Found | None] = [None, None]
        for which, bit in enumerate((3, 4)):
            if flags >> bit & 1:
                rank, key = struct.unpack_from(">Bq", packed, place)
                founds[which], place = Found(rank, key, None if which else time), place + 9
        shares = tuple(_share(packed[p : p + _PARTIAL_BYTES]) for p in range(place, len(packed), _PARTIAL_BYTES))
        return cls(founds[0], bool(flags & 1), founds[1], bool(flags & 2), shares if flags & 4 else None)


def _share(packed: bytes) -> Share:
    value = int.from_bytes(packed, "big")
    return Share(value & ((1 << NUMBER_BITS) - 1), value >> NUMBER_BITS)


def shares_of(numbers_and_weights: Sequence[tuple[int, float]]) -> tuple[Share, ...]:
    """Returns the fixed partial list: each turn's share of the best turn's weight, to three decimals."""
    best = max((weight for _, weight in numbers_and_weights), default=0.0)
    return tuple(
        Share(number, round(_WEIGHTS * weight / best) if best > 0 else _WEIGHTS)
        for number, weight in numbers_and_weights[:MOST_PARTIAL]
    )
