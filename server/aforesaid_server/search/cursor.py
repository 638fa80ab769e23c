"""Where each list of a search goes on: what a page token of SearchTranscripts holds.

Sort keys (tier or step, bytes and number; with ORDER_NEWEST the time too), not offsets: tokens survive restarts, rebuilds and
writes. `paging.py` seals them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from aforesaid_server.index import MOST_PARTIAL, NUMBER_BITS, Found

_WEIGHTS = 1_000
_PARTIAL_BYTES = 7


@dataclass(frozen=True, slots=True)
class Share:
    """A turn of the fixed partial list: its number and its share of the best turn's weight, in thousandths."""

    number: int
    thousandths: int


@dataclass(frozen=True, slots=True)
class Position:
    """Where a search goes on. A list that is `done` is not looked at again; `partial` is None until it is first looked at."""

    matches: Found | None = None
    matches_done: bool = False
    near: Found | None = None
    near_done: bool = False
    partial: tuple[Share, ...] | None = None

    def pack(self) -> bytes:
        """Returns the position as bytes, at most 1,079."""
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
