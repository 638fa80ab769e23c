"""The vocabulary: which words hold some letters and where, and the pieces of huge words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.index.vocabulary import CUT, LONGEST_WORD, Holders, Vocabulary, pieces_of
from tests.text.effort import examples

_marks = itertools.count()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vocabulary]:
    """One vocabulary for all words of this file."""
    vocabulary = Vocabulary(tmp_path_factory.mktemp("vocabulary"))
    yield vocabulary
    vocabulary.close()


def sorted_holders(holders: Holders) -> tuple[list[str], list[str], list[str]]:
    return sorted(holders.begins), sorted(holders.ends), sorted(holders.inside)


def by_hand(words: set[str], term: str) -> tuple[list[str], list[str], list[str]]:
    """Sorts the words that hold a term, said again."""
    begins = {word for word in words if word.startswith(term)}
    ends = {word for word in words if word.endswith(term)} - begins
    return sorted(begins), sorted(ends), sorted({word for word in words if term in word} - begins - ends)


def test_holders_are_sorted_by_where_the_letters_stand(tmp_path: Path) -> None:
    vocabulary = Vocabulary(tmp_path)
    vocabulary.add(["ingot", "king", "kings", "kingsing", "ing", "gin", "in", "東京ing", "ingéing", "x\x01y"])
    assert sorted_holders(vocabulary.holders("ing")) == (["ing", "ingot", "ingéing"], ["king", "kingsing", "東京ing"], ["kings"])
    assert sorted_holders(vocabulary.holders("gin")) == (["gin"], [], [])
    assert sorted_holders(vocabulary.holders("zebra")) == ([], [], [])
    assert sorted_holders(vocabulary.holders("kingsing")) == (["kingsing"], [], [])
    # All trigrams of it, but not it.
    assert sorted_holders(vocabulary.holders("ingking")) == ([], [], [])
    vocabulary.close()


# Few letters, of one to four bytes, so that words hold each other and trigrams come again.
LETTERS = "aab東é𐌰"
WORDS = st.sets(st.text(LETTERS, min_size=3, max_size=9), max_size=12)


@examples(25)
@given(WORDS, st.lists(st.text(LETTERS, min_size=3, max_size=5), max_size=8))
def test_holders_of_any_words(kept: Vocabulary, words: set[str], terms: list[str]) -> None:
    # A letter of their own keeps the words of an example apart from all others.
    mark = chr(0x1_0000 + next(_marks))
    kept.add({f"{word}{mark}{word}" for word in words})
    mine = {f"{word}{mark}{word}" for word in words}
    for term in [*terms, *(word[-3:] for word in words), *(f"{word[-1]}{mark}{word[0]}" for word in words)]:
        found = kept.holders(term)
        assert tuple(sorted(word for word in part if mark in word) for part in (found.begins, found.ends, found.inside)) == by_hand(
            mine, term
        )


def test_words_may_come_twice_and_show_at_once(tmp_path: Path) -> None:
    vocabulary = Vocabulary(tmp_path)
    vocabulary.add(["zebra"])
    assert vocabulary.holders("ebr").inside == ("zebra",)
    vocabulary.add(["zebra", "zebras", "zebra"])
    assert sorted_holders(vocabulary.holders("ebr")) == ([], [], ["zebra", "zebras"])
    vocabulary.add([])
    assert sorted_holders(vocabulary.holders("ebr")) == ([], [], ["zebra", "zebras"])
    vocabulary.close()


def test_words_are_there_after_it_is_opened_again(tmp_path: Path) -> None:
    vocabulary = Vocabulary(tmp_path)
    vocabulary.add(["zebra"])
    vocabulary.close()
    again = Vocabulary(tmp_path)
    assert again.holders("ebr").inside == ("zebra",)
    again.add(["okapi"])
    assert again.holders("oka").begins == ("okapi",)
    again.close()


# -- huge words


@pytest.mark.parametrize("size", [LONGEST_WORD + 1, 20_000, 28_672, 28_673, 100_000, 262_144])
def test_pieces_hold_all_that_a_query_may_ask_for(size: int) -> None:
    word = "".join(chr(0xAC00 + at % 11_000) for at in range(size))
    pieces = list(pieces_of(word))
    assert all(len(piece.strip(CUT)) <= LONGEST_WORD for piece in pieces)
    # The first begins as the word does, the last ends so, and all others are marked.
    assert [piece.startswith(CUT) for piece in pieces] == [False] + [True] * (len(pieces) - 1)
    assert [piece.endswith(CUT) for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    assert word.startswith(pieces[0].strip(CUT))
    assert word.endswith(pieces[-1].strip(CUT))
    # A query has 500 code points, and folding makes at most eighteen of one (U+FDFA): 9,000, of which no word is longer than 1,500.
    for at in range(0, size - 1_500, 499):
        assert any(word[at : at + 1_500] in piece for piece in pieces), at
    assert sum(len(piece) for piece in pieces) < 2 * size + LONGEST_WORD


def test_pieces_fit_into_the_dictionary() -> None:
    """It drops, without a word, what is longer than 65,530 bytes."""
    assert all(len(piece.encode()) <= 65_530 for piece in pieces_of("𐌰" * 65_000))
    assert LONGEST_WORD * len("𐌰".encode()) <= 65_530
