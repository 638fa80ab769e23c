"""Close spellings: one mistake away, each once, the likeliest first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.query.spelling import LONGEST, SHORTEST, close_spellings
from tests.text.effort import examples

LETTERS = "abcdefghijklmnopqrstuvwxyz"


MEANT = {"deplyo": "deploy", "edploy": "deploy", "dploy": "deploy", "deplo": "deploy", "ddeploy": "deploy", "deploz": "deploy"}
MEANT |= {"превет": "привет", "λογσο": "λογοσ"}


@pytest.mark.parametrize(("word", "meant"), MEANT.items())
def test_a_mistake_is_undone(word: str, meant: str) -> None:
    assert meant in close_spellings(word)


def test_the_likeliest_first() -> None:
    spellings = list(close_spellings("fxoes"))
    assert spellings.index("foxes") < spellings.index("faxoes") < spellings.index("foes") < spellings.index("fuoes")


@pytest.mark.parametrize("word", ["", "fox", "a" * (LONGEST + 1), "fox1", "東京東京", "foxф", "straße", "a_bcd"])
def test_what_has_none(word: str) -> None:
    assert list(close_spellings(word)) == []


@examples(100)
@given(st.text(LETTERS, min_size=SHORTEST, max_size=LONGEST), st.data())
def test_any_one_mistake_is_undone(word: str, data: st.DataObject) -> None:
    at, letter = data.draw(st.integers(0, len(word) - 1)), data.draw(st.sampled_from(LETTERS))
    mistakes = [
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at:],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
    ]
    for mistake in mistakes:
        spellings = list(close_spellings(mistake))
        assert len(spellings) == len(set(spellings))
        assert mistake not in spellings
        assert word in spellings or word == mistake or not SHORTEST <= len(mistake) <= LONGEST
