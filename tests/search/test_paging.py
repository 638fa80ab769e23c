"""Pages and tokens: how long a page is, and that a token is good for one request of one caller and nothing else."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aforesaid_server.errors import InvalidArgument
from aforesaid_server.paging import LONGEST_CURSOR, Seal, binding, limit_of
from tests.text.effort import examples

KEY = bytes(range(32))
SEAL = Seal(KEY)
BOUND = binding("SearchTranscripts", {"query": "zebra crossing"}, "ada", {"user_id": "u"})


def refused(token: str, bound_to: bytes = BOUND, seal: Seal = SEAL) -> str:
    with pytest.raises(InvalidArgument) as error:
        seal.open(token, bound_to)
    assert error.value.field == "pagination.cursor"
    return error.value.problem


@pytest.mark.parametrize(("asked", "length"), [(0, 20), (1, 1), (20, 20), (99, 99), (100, 100), (101, 100), (2**31 - 1, 100)])
def test_how_long_a_page_is(asked: int, length: int) -> None:
    assert limit_of(asked) == length


@pytest.mark.parametrize("asked", [-1, -(2**31)])
def test_a_negative_length_is_refused(asked: int) -> None:
    with pytest.raises(InvalidArgument, match=rf"pagination\.limit: {asked} is less than 0"):
        limit_of(asked)


@examples(100)
@given(st.binary(max_size=1_071))
def test_what_is_sealed_is_opened_again(payload: bytes) -> None:
    token = SEAL.close(payload, BOUND)
    assert SEAL.open(token, BOUND) == payload
    assert Seal(KEY).open(token, BOUND) == payload, "by another worker, after a restart"
    assert len(token) <= LONGEST_CURSOR
    assert token.replace("-", "").replace("_", "").isalnum()
    assert SEAL.close(payload, BOUND) != token, "two tokens do not tell that they hold the same"


def test_any_one_character_altered_is_refused() -> None:
    token = SEAL.close(b"a position of some length", BOUND)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for at, here in enumerate(token):
        # The neighbour in the alphabet differs in the last bit, which is padding at the end of some tokens.
        for other in {alphabet[alphabet.index(here) ^ 1], alphabet[alphabet.index(here) ^ 32], "+", "/", "=", " ", "é"}:
            refused(token[:at] + other + token[at + 1 :])


def test_cut_or_extended_is_refused() -> None:
    token = SEAL.close(b"a position", BOUND)
    for length in range(len(token)):
        refused(token[:length])
    for more in ("A", "AA", "AAAA", "=", "==", "\n", " ", token):
        refused(token + more)
        refused(more + token)
    assert refused("A" * (LONGEST_CURSOR + 1)) == "2049 characters, at most 2048 are allowed"


@examples(200)
@given(st.text(max_size=60))
def test_what_was_not_made_here_is_refused(token: str) -> None:
    assert refused(token) == "not a next_page_token of this request by this caller"


def test_of_another_key_is_refused() -> None:
    token = SEAL.close(b"a position", BOUND)
    refused(token, seal=Seal(bytes(32)))


OTHERS: list[tuple[Any, ...]] = [
    ("ListReads", {"query": "zebra crossing"}, "ada", {"user_id": "u"}),
    ("SearchTranscripts", {"query": "zebra  crossing"}, "ada", {"user_id": "u"}),
    ("SearchTranscripts", {"query": "Zebra crossing"}, "ada", {"user_id": "u"}),
    ("SearchTranscripts", {"query": "zebra crossing", "agent_id": "x"}, "ada", {"user_id": "u"}),
    ("SearchTranscripts", {"query": "zebra crossing"}, "adb", {"user_id": "u"}),
    ("SearchTranscripts", {"query": "zebra crossing"}, "", {"user_id": "u"}),
    ("SearchTranscripts", {"query": "zebra crossing"}, "ada", {}),
    ("SearchTranscripts", {"query": "zebra crossing"}, "ada", {"user_id": "v"}),
    ("SearchTranscripts", {"query": "zebra crossing"}, "ada", {"user": "id_u"}),
    ("SearchTranscripts", {"query": "zebra crossing"}, 'ada", {"user_id": "u"}'),
    (),
]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_of_another_request_or_caller_is_refused(other: tuple[Any, ...]) -> None:
    assert binding(*other) != BOUND
    refused(SEAL.close(b"a position", BOUND), binding(*other))


def test_a_mapping_binds_in_any_order() -> None:
    assert binding({"a": 1, "b": {"c": 2, "d": 3}}) == binding({"b": {"d": 3, "c": 2}, "a": 1})


def test_a_lone_surrogate_binds() -> None:
    assert binding("\ud800") != binding("\ud801")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@examples(100)
@given(st.lists(VALUES, max_size=3), st.lists(VALUES, max_size=3))
def test_different_requests_bind_differently(one: list[Any], other: list[Any]) -> None:
    assume(repr(one) != repr(other))  # True is not 1
    same = one == other and binding(*one) == binding(*other)
    assert (binding(*one) == binding(*other)) is same


@pytest.mark.parametrize("hidden", ["zebra", "crossing", "adalovelace", "position"])
def test_a_token_shows_nothing_of_what_it_is_for(hidden: str) -> None:
    """Neither as it stands nor decoded. Five characters and more: chance does not make them."""
    token = SEAL.close(b"position 17 of zebra crossing by adalovelace", binding("zebra crossing", "adalovelace"))
    assert hidden not in token
    assert hidden.encode() not in base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


def test_tokens_of_neighbours_have_nothing_in_common() -> None:
    first, second = (SEAL.close(b"position %d" % number, BOUND) for number in (17, 18))
    # Some characters are the same by chance; that half are has a chance below 10 to the minus 30.
    assert sum(a == b for a, b in zip(first, second, strict=True)) < len(first) // 2
