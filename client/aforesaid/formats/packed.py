"""Files compressed with zstd -> the bytes that they hold, in bounded memory, whatever they claim to hold.

A file is known by its first bytes, not by its name. It may be several frames one after the other; one that is still being written
gives what is there. Lines are held to their own limit by whoever splits them, so that a long session is read however long it is;
what only a bomb does, to unpack to a thousand times its size or to ten lines for each of its bytes, ends the reading and is told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator

if sys.version_info >= (3, 14):
    from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
else:
    from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

FRAME = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = bytes(range(0x50, 0x60))
_SKIPPABLE_TAIL = b"\x2a\x4d\x18"
# What the zstd program itself takes without being asked to: 128 MiB of memory for what a frame refers back to.
_WINDOW_LOG = 27
_PIECE = 1 << 20
# Sessions pack to a tenth of their size and a line takes some ten bytes. What repeats one text or one line over and over packs to a
# thirty thousandth; so much of that is read all the same.
_LARGEST_RATIO = 1_000
_MOST_LINES = 10
_FREE_BYTES = 256 << 20
_FREE_LINES = 1 << 20

DAMAGED = "damaged compressed data: the rest of the file is not read"
BOMB = "compressed data that unpacks to far more than its size: the rest of the file is not read"


def is_packed(head: bytes) -> bool:
    """Says whether a file that begins so is compressed with zstd."""
    return head.startswith(FRAME) or (head[:1] in _SKIPPABLE and head[1:4] == _SKIPPABLE_TAIL and len(head) >= 4)


class _Stop(Exception):
    """The bytes cannot be unpacked any further; its text is the reason."""


def unpack(blocks: Iterable[bytes], stop: Callable[[str], None]) -> Iterator[bytes]:
    """Yields what some blocks of compressed bytes hold, in pieces of at most a MiB.

    Where they cannot be unpacked any further, `stop` is called with the reason, and the blocks that are left are taken and thrown
    away, so that whoever counts them comes to the end.
    """
    blocks = iter(blocks)
    frames = _Frames()
    try:
        for block in blocks:
            yield from frames.pieces(block)
    except _Stop as reason:
        stop(str(reason))
        for _ in blocks:
            pass


class _Frames:
    """Unpacks frame after frame, and watches how much comes out of how little."""

    def __init__(self) -> None:
        self._taken = 0
        self._given = self._lines = 0
        self._frame = _decompressor()

    def pieces(self, block: bytes) -> Iterator[bytes]:
        """Yields what comes out when one more block goes in; raises _Stop."""
        self._taken += len(block)
        data = block
        while data or not self._frame.needs_input:
            try:
                piece = self._frame.decompress(data, _PIECE)
            except ZstdError:
                raise _Stop(DAMAGED) from None
            if piece:
                yield piece
            self._watch(piece)
            data = b""
            if self._frame.eof:
                data, self._frame = self._frame.unused_data, _decompressor()

    def _watch(self, piece: bytes) -> None:
        self._given += len(piece)
        self._lines += piece.count(b"\n")
        most_bytes = max(_FREE_BYTES, _LARGEST_RATIO * self._taken)
        if self._given > most_bytes or self._lines > max(_FREE_LINES, _MOST_LINES * self._taken):
            raise _Stop(BOMB)


def _decompressor() -> ZstdDecompressor:
    return ZstdDecompressor(options={DecompressionParameter.window_log_max: _WINDOW_LOG})
