"""The corpus of the measurements is what its page says: the same for a seed, of the promised shape, and never held in memory."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import re
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest
from Stemmer import Stemmer

from bench.corpus import (
    CORPUS_VERSION,
    LONGEST_BYTES,
    PLANTED_PHRASE,
    PLANTED_WORDS,
    SCATTERED_PHRASE,
    Corpus,
    CorpusTurn,
    Plant,
    cut,
    turn_length,
)
from bench.measuring import ROOT, percentile

SEED = 3
TURNS = 4_000


@pytest.fixture(scope="module")
def turns() -> list[CorpusTurn]:
    return list(Corpus(SEED, TURNS))


def digest(turns: Iterable[CorpusTurn]) -> str:
    hashed = hashlib.sha256()
    for turn in turns:
        hashed.update(repr(turn).encode())
    return hashed.hexdigest()


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def test_a_seed_gives_the_same_turns_in_every_process(turns: list[CorpusTurn]) -> None:
    program = f"from bench.corpus import Corpus\nfrom tests.bench.test_corpus import digest\nprint(digest(Corpus({SEED}, 300)))"
    # The order of sets of strings hangs on PYTHONHASHSEED: a corpus that iterates over one would differ.
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == digest(turns[:300])


def test_the_version_is_raised_when_a_seed_gives_something_else(turns: list[CorpusTurn]) -> None:
    known = {1: "584432b91b4bc296aad0c95d49c7c702ed1c9209a682ecd2ef56e02a7ab9361f"}
    assert digest(turns[:300]) == known[CORPUS_VERSION], "results so far are no longer comparable: raise CORPUS_VERSION"


def test_another_seed_gives_other_turns_and_other_words(turns: list[CorpusTurn]) -> None:
    other = list(Corpus(SEED + 1, 300))
    assert not {turn.text for turn in other} & {turn.text for turn in turns}
    assert Corpus(SEED, 1).vocabulary.words.words[200:] != Corpus(SEED + 1, 1).vocabulary.words.words[200:]


def test_a_small_corpus_is_the_beginning_of_a_large_one(turns: list[CorpusTurn]) -> None:
    assert list(Corpus(SEED, 500)) == turns[:500]
    assert list(itertools.islice(Corpus(SEED, 10**12), 500)) == turns[:500]


def test_turns_are_numbered_and_their_ids_are_unique_in_their_conversation(turns: list[CorpusTurn]) -> None:
    assert [turn.number for turn in turns] == list(range(TURNS))
    assert len({(turn.conversation_id, turn.turn_id) for turn in turns}) == TURNS
    owners: dict[str, set[str]] = {}
    for turn in turns:
        owners.setdefault(turn.conversation_id, set()).add(turn.agent_id)
    assert all(len(agents) == 1 for agents in owners.values())
    # One conversation is written to its end before the next begins, as an import does.
    assert len(list(itertools.groupby(turns, key=lambda turn: turn.conversation_id))) == len(owners)


def test_time_goes_on_within_a_conversation(turns: list[CorpusTurn]) -> None:
    for _, said in itertools.groupby(turns, key=lambda turn: turn.conversation_id):
        times = [turn.created_at for turn in said]
        assert times == sorted(set(times))


def test_lengths_follow_the_measured_archive() -> None:
    random = Random(1)
    lengths = [turn_length(random) for _ in range(100_000)]
    assert 370 <= percentile(lengths, 0.5) <= 405
    assert 1_090 <= sum(lengths) / len(lengths) <= 1_260
    assert 11_500 <= percentile(lengths, 0.99) <= 14_500
    assert max(lengths) <= LONGEST_BYTES


def test_texts_keep_to_the_lengths_that_were_drawn(turns: list[CorpusTurn]) -> None:
    sizes = [len(turn.text.encode()) for turn in turns]
    assert min(sizes) > 0
    assert 350 <= percentile(sizes, 0.5) <= 420
    assert 900 <= sum(sizes) / len(sizes) <= 1_450


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two"),
        ("one two three", 8, "one two"),
        ("one\ntwo three", 5, "one"),
        ("uninterrupted", 5, "unint"),
        ("        indented", 12, "inde"),
        ("東京東京", 7, "東京"),
    ],
)
def test_a_text_is_cut_at_a_blank_and_never_inside_a_character(text: str, length: int, expected: str) -> None:
    assert cut(text, length) == expected


def test_word_frequencies_follow_zipf(turns: list[CorpusTurn]) -> None:
    frequencies = sorted(Counter(word for turn in turns for word in words(turn.text)).values(), reverse=True)
    # The slope of frequency over rank, both logarithms, between rank 10 and rank 2,000: about -1 in any language.
    points = [(math.log(rank), math.log(frequencies[rank - 1])) for rank in range(10, 2_001)]
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    assert -1.4 < slope < -0.8
    assert 0.015 < frequencies[0] / sum(frequencies) < 0.06


def test_words_come_in_forms_that_share_a_stem(turns: list[CorpusTurn]) -> None:
    stem = Stemmer("english").stemWord
    forms: dict[str, set[str]] = {}
    for word in {word for turn in turns for word in words(turn.text) if word.isascii() and word.isalpha()}:
        forms.setdefault(stem(word), set()).add(word)
    assert sum(len(found) >= 3 for found in forms.values()) > 2_000
    assert {"deploy", "deploys", "deployed", "deploying"} <= forms[stem("deploy")]


def test_agents_are_of_zipfian_sizes() -> None:
    corpus = Corpus(SEED, 1)
    agents = [corpus.agent_of(Random(number)) for number in range(3_000)]
    conversations = Counter(agents)
    assert conversations.most_common(1)[0][0] == "agent-0000"
    # Of 1,000 agents the first has 1 / H(1000) = 13 % of the conversations.
    assert 0.09 < conversations["agent-0000"] / len(agents) < 0.18
    assert len(conversations) > 200


def test_planted_texts_stand_where_they_are_said_to_and_nowhere_else(turns: list[CorpusTurn]) -> None:
    for plant in PLANTED_WORDS:
        holding = [turn.number for turn in turns if plant.text in turn.text.lower()]
        assert holding == [number for number in range(TURNS) if plant.stands_in(number)]
        assert len(holding) == plant.turns(TURNS)
    phrase, scattered = PLANTED_PHRASE.text.split(), SCATTERED_PHRASE
    holding = [turn.number for turn in turns if set(phrase) <= set(words(turn.text))]
    assert holding == [number for number in range(TURNS) if PLANTED_PHRASE.stands_in(number) or scattered.stands_in(number)]
    assert sum(PLANTED_PHRASE.text in turn.text for turn in turns) == PLANTED_PHRASE.turns(TURNS)


@pytest.mark.parametrize(("turns_asked", "expected"), [(0, 0), (3, 0), (4, 1), (13, 1), (14, 2), (1_000, 100)])
def test_how_many_turns_hold_a_plant(turns_asked: int, expected: int) -> None:
    assert Plant("word", 10, 3).turns(turns_asked) == expected


def test_there_is_what_makes_an_index_large(turns: list[CorpusTurn]) -> None:
    text = "\n".join(turn.text for turn in turns)
    distinct = set(words(text))
    hexadecimal = {word for word in distinct if re.fullmatch("(?=.*[0-9])(?=.*[a-f])[0-9a-f]{4,40}", word)}
    assert 2.5 < len(hexadecimal) / TURNS < 4.5
    per_turn = {
        "camelCase": len(re.findall(r"\b[a-z]+[A-Z][a-z]", text)),
        "snake_case": len(re.findall(r"\b[a-z]+_[a-z]", text)),
        "a path": len(re.findall(r"\bsrc/[a-z/]+\.[a-z]+", text)),
        "a uuid": len(re.findall(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", text)),
        "a version": len(re.findall(r"\b\d\.\d{1,2}\.\d{1,2}\b", text)),
        "an issue": len(re.findall(r"#\d", text)),
    }
    assert all(count > TURNS / 10 for count in per_turn.values()), per_turn


def test_seven_turns_in_a_hundred_are_not_ascii(turns: list[CorpusTurn]) -> None:
    assert 0.055 < sum(not turn.text.isascii() for turn in turns) / TURNS < 0.09
    text = "".join(turn.text for turn in turns)
    for script in ("[\u3041-\u30ff]", "[\u4e00-\u9fff]", "[\uac00-\ud7a3]", "[\u0e00-\u0e7f]", "[\u0400-\u04ff]", "[àéüßøñ]"):
        assert re.search(script, text)


def test_turns_are_not_held_in_memory() -> None:
    corpus = Corpus(SEED, 10**9)
    stream = iter(corpus)
    next(stream)
    tracemalloc.start()
    try:
        taken = sum(len(turn.text) for turn in itertools.islice(stream, 1_500))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken > 1_000_000
    # The longest turn of these is under 200 kB; the words it is made of are held beside it.
    assert peak < taken
