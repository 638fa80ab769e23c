"""Positions of lists: packed and read again, small enough for a token, and what a fixed list holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.index import MOST_PARTIAL, NUMBER_BITS, Found, key_of
from aforesaid_server.paging import LONGEST_CURSOR, Seal, binding
from aforesaid_server.search.cursor import MOST_BESIDE, Position, Reached, Share, shares_of
from tests.text.effort import examples

HIGHEST = (1 << NUMBER_BITS) - 1
NUMBERS = st.one_of(st.integers(1, 1_000_000), st.integers(1, HIGHEST), st.just(HIGHEST))
FOUND = st.builds(lambda rank, size, number: Found(rank, key_of(size, number)), st.integers(1, 4), st.integers(0, 300_000), NUMBERS)
AT = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, -1, -62_135_596_800_000_000, 253_402_300_799_999_999]))
BY_TIME = st.builds(lambda found, at: Found(found.rank, found.key, at), FOUND, AT)
BESIDE = st.lists(NUMBERS, max_size=MOST_BESIDE).map(tuple)
SHARES = st.lists(st.builds(Share, NUMBERS, st.integers(0, 1_000)), max_size=MOST_PARTIAL).map(tuple)
POSITIONS = st.builds(
    Position,
    st.none() | FOUND | BY_TIME,
    st.booleans(),
    st.none() | FOUND,
    st.booleans(),
    st.one_of(st.none(), st.just(()), SHARES),
)


@examples(200)
@given(POSITIONS)
def test_what_is_packed_is_read_again(position: Position) -> None:
    packed, read = position.pack(), Position.unpack(position.pack())
    assert read == position
    assert repr(read) == repr(position), "two turns in a list by time are equal for less"
    by_time = position.matches is not None and position.matches.at is not None
    founds = sum(found is not None for found in (position.matches, position.near))
    assert len(packed) == 1 + 8 * by_time + 9 * founds + 7 * len(position.partial or ())


@examples(200)
@given(st.builds(Reached, st.integers(1, 2**63 - 1), BESIDE, BESIDE))
def test_a_place_that_was_reached_is_read_again(reached: Reached) -> None:
    packed = Position(reached=reached).pack()
    assert Position.unpack(packed) == Position(reached=reached)
    assert len(packed) == 137, "the length tells nothing of the place"


@pytest.mark.parametrize("number", [1, HIGHEST])
def test_the_longest_position_fits_a_token(number: int) -> None:
    found = Found(4, key_of(10**9, number))
    by_time = Found(4, key_of(10**9, number), -(2**63))
    position = Position(by_time, True, found, True, tuple(Share(number, 1_000) for _ in range(MOST_PARTIAL)))
    assert len(position.pack()) == 1 + 8 + 18 + 7 * MOST_PARTIAL
    token = Seal(bytes(32)).close(position.pack(), binding("a request"))
    assert len(token) <= LONGEST_CURSOR
    assert Position.unpack(Seal(bytes(32)).open(token, binding("a request"))) == position


def test_no_list_is_not_an_empty_one() -> None:
    assert Position.unpack(Position(partial=()).pack()).partial == ()
    assert Position.unpack(Position().pack()) == Position()


@examples(200)
@given(FOUND, FOUND)
def test_places_sort_as_the_lists_do(one: Found, other: Found) -> None:
    """Rank before rank, fewer bytes before more, newer before older."""
    before = (-one.rank, one.content_length, -one.number) < (-other.rank, other.content_length, -other.number)
    assert (one < other) is before
    assert key_of(one.content_length, one.number) == one.key < 1 << 63


@examples(200)
@given(BY_TIME, BY_TIME)
def test_places_by_time_sort_as_that_list_does(one: Found, other: Found) -> None:
    """The latest first, then the newest; how they match and their bytes do not count."""
    before = (-(one.at or 0), -one.number) < (-(other.at or 0), -other.number)
    assert (one < other) is before


# -- the fixed list


def test_shares_are_thousandths_of_the_best() -> None:
    shares = shares_of([(7, 8.0), (3, 4.0), (9, 0.0004), (5, 2.0 / 3)])
    assert [(share.number, share.thousandths) for share in shares] == [(7, 1_000), (3, 500), (9, 0), (5, 83)]


def test_no_more_than_a_hundred_and_fifty_are_kept() -> None:
    assert shares_of([(number, 1.0) for number in range(1, 400)]) == tuple(
        Share(number, 1_000) for number in range(1, MOST_PARTIAL + 1)
    )


def test_a_list_without_weights_is_all_of_one_share() -> None:
    assert shares_of([]) == ()
    assert [share.thousandths for share in shares_of([(1, 0.0), (2, 0.0)])] == [1_000, 1_000]
