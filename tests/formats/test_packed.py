"""Compressed files: what comes out of whole, cut, joined, damaged and hostile ones, and how much of it at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.formats.packed import BOMB, DAMAGED, is_packed, unpack
from tests.text.effort import examples

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, compress
else:
    from backports.zstd import ZstdCompressor, compress

SKIPPED = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
contents = st.binary(max_size=300) | st.builds(lambda one, times: one * times, st.binary(max_size=20), st.integers(0, 300))


def unpacked(data: bytes, block: int = 1 << 16) -> tuple[bytes, list[str]]:
    why: list[str] = []
    return b"".join(unpack((data[at : at + block] for at in range(0, len(data), block)), why.append)), why


@given(frames=st.lists(contents, min_size=1, max_size=4), between=st.sampled_from([b"", SKIPPED]), block=st.integers(1, 100))
@examples(200)
def test_frames_give_what_went_in(frames: list[bytes], between: bytes, block: int) -> None:
    data = between.join(map(compress, frames))
    assert unpacked(data, block) == (b"".join(frames), [])
    assert is_packed(data)
    assert is_packed(SKIPPED + data)


@given(content=st.binary(min_size=1, max_size=2000), cut=st.floats(0, 1), first=contents)
@examples(200)
def test_what_is_cut_off_gives_a_beginning(content: bytes, cut: float, first: bytes) -> None:
    data = compress(content)
    whole = compress(first) + data[: int(len(data) * cut)]
    out, why = unpacked(whole)
    assert (first + content).startswith(out)
    assert out.startswith(first)
    assert why == []


@given(content=contents, junk=st.binary(min_size=1, max_size=50))
@examples(200)
def test_what_is_damaged_is_told_and_read_up_to_there(content: bytes, junk: bytes) -> None:
    out, why = unpacked(compress(content) + b"\0\0\0\0" + junk)
    assert (out, why) == (content, [DAMAGED])


@given(st.binary(max_size=300))
@examples(300)
def test_any_bytes_end(junk: bytes) -> None:
    for data in (junk, compress(b"")[:5] + junk):
        _, why = unpacked(data)
        assert why in ([], [DAMAGED])


def test_all_blocks_are_taken_whatever_becomes_of_them() -> None:
    taken = []

    def blocks() -> Iterator[bytes]:
        for number in range(20):
            taken.append(number)
            yield b"\xff" * 10

    assert list(unpack(blocks(), lambda _: None)) == []
    assert taken == list(range(20))


@pytest.mark.parametrize(
    ("piece", "count", "told"),
    [
        pytest.param(bytes(1 << 20), 200, [], id="a long line"),
        pytest.param(bytes(1 << 20), 2048, [BOMB], id="gigabytes in one line"),
        pytest.param(b"\n" * (1 << 20), 1, [], id="a million blank lines"),
        pytest.param(b"\n" * (1 << 20), 64, [BOMB], id="millions of blank lines"),
        pytest.param((b"x" * 1023 + b"\n") * 1024, 2048, [BOMB], id="gigabytes of the same line"),
    ],
)
def test_a_bomb_is_not_unpacked(piece: bytes, count: int, told: list[str]) -> None:
    packing = ZstdCompressor()
    data = b"".join(packing.compress(piece) for _ in range(count)) + packing.flush()
    assert len(data) < 300_000
    why: list[str] = []
    sizes = [len(out) for out in unpack([data], why.append)]
    assert why == told
    assert max(sizes) <= 1 << 20
    assert sum(sizes) == count << 20 if not told else sum(sizes) < 300 << 20


def test_a_window_that_takes_more_memory_than_the_tool_allows_is_not_opened() -> None:
    # A frame of one block without content whose header asks for 2 GiB.
    huge = b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3]) + b"\x01\x00\x00"
    assert unpacked(huge) == (b"", [DAMAGED])
    usual = b"\x28\xb5\x2f\xfd\x00" + bytes([(27 - 10) << 3]) + b"\x01\x00\x00"
    assert unpacked(usual) == (b"", [])


@pytest.mark.parametrize("head", [b"", b"{", b"\x28\xb5\x2f", b"\x60\x2a\x4d\x18", b"\x50\x2a\x4d"])
def test_other_files_are_not_compressed(head: bytes) -> None:
    assert not is_packed(head)
