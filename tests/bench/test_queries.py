"""The searches that are measured are of the kinds they claim to be, on both sides alike."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bench.comparing import WrongCountError
from bench.corpus import PLANTED_PHRASE, Corpus, CorpusTurn
from bench.fts5 import Fts5, all_words, any_word, of_agent, phrase
from bench.measuring import ROOT
from bench.queries import BIGGEST_AGENTS, BenchQuery, Kind, known, plain_stretches, plain_words, queries
from bench.searching import Counter, check

TURNS = 4_000
CORPUS = Corpus(5, TURNS)


@pytest.fixture(scope="module")
def turns() -> list[CorpusTurn]:
    return list(CORPUS)


@pytest.fixture(scope="module")
def asked() -> list[BenchQuery]:
    return queries(CORPUS, 6)


@pytest.fixture(scope="module")
def fts5(turns: list[CorpusTurn], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fts5]:
    with Fts5(tmp_path_factory.mktemp("fts5") / "turns.db") as database:
        database.add(turns[:1_000])
        database.add(turns[1_000:])
        database.optimize()
        yield database


def of(asked: list[BenchQuery], kind: Kind) -> list[BenchQuery]:
    return [query for query in asked if query.kind is kind]


def test_there_are_as_many_of_each_kind_as_asked_for(asked: list[BenchQuery]) -> None:
    assert {kind: len(of(asked, kind)) for kind in Kind} == dict.fromkeys(Kind, 6)


def test_the_same_seed_asks_the_same_whatever_the_size() -> None:
    small, large, other = (queries(Corpus(seed, turns), 2, sample=400) for seed, turns in ((5, 400), (5, 10**9), (6, 400)))
    assert small == large
    assert {query.text for query in of(small, Kind.THREE_WORDS)}.isdisjoint(query.text for query in of(other, Kind.THREE_WORDS))


def test_kinds_say_how_many_turns_say_a_word(asked: list[BenchQuery], turns: list[CorpusTurn]) -> None:
    said = [set(plain_words(turn.text)) for turn in turns]

    def share(query: BenchQuery) -> float:
        return sum(query.text in words for words in said) / TURNS

    assert all(share(query) >= 0.2 for query in of(asked, Kind.COMMON_WORD))
    assert all(0.005 <= share(query) <= 0.05 for query in of(asked, Kind.MIDDLE_WORD))
    assert all(share(query) >= 0.2 and query.newest for query in of(asked, Kind.NEWEST_COMMON))
    assert all(0.005 <= share(query) <= 0.05 and query.newest for query in of(asked, Kind.NEWEST_MIDDLE))
    assert all(share(query) == 1 / TURNS for query in of(asked, Kind.RARE_WORD))


def test_three_words_and_phrases_stand_together_in_some_turn(asked: list[BenchQuery], turns: list[CorpusTurn]) -> None:
    for query in of(asked, Kind.THREE_WORDS):
        assert any(set(query.text.split()) <= set(plain_words(turn.text)) for turn in turns)
    for query in of(asked, Kind.PHRASE):
        side_by_side = r"[.,?:]?\s+".join(query.text[1:-1].split())
        assert any(re.search(rf"\b{side_by_side}\b", turn.text, re.IGNORECASE) for turn in turns)


def test_fts5_finds_what_is_asked_for(asked: list[BenchQuery], fts5: Fts5) -> None:
    for query in asked:
        hits = fts5.search(query.expression, newest=query.newest)
        assert hits, query
        assert len(hits) <= 20
        assert [hit.rank for hit in hits] == sorted((hit.rank for hit in hits), reverse=query.newest)
        if query.kind is Kind.ONE_AGENT:
            assert query.agent_id not in BIGGEST_AGENTS
            assert {hit.agent_id for hit in hits} == {query.agent_id}


def test_fts5_finds_the_planted_texts_as_often_as_they_stand(fts5: Fts5) -> None:
    planted = known(TURNS)
    assert [search.turns for search in planted] == [400, 40, 4, 1, 4]
    check([Counter("FTS5", lambda search: fts5.count(search.expression))], planted)


def test_a_side_that_finds_too_little_is_not_timed(fts5: Fts5) -> None:
    blind = Counter("FTS5", lambda search: fts5.count(search.expression) - 1)
    with pytest.raises(WrongCountError, match="FTS5 finds xylophyte in 399 turns, but it stands in 400"):
        check([blind], known(TURNS))


def test_expressions_mean_all_any_and_side_by_side(fts5: Fts5, turns: list[CorpusTurn]) -> None:
    words = PLANTED_PHRASE.text.split()
    together = fts5.count(phrase(words))
    assert together < fts5.count(all_words(words)) == fts5.count(any_word(words))
    owner = next(turn.agent_id for turn in turns if "xylophyte" in turn.text)
    expected = sum(turn.agent_id == owner and "xylophyte" in turn.text for turn in turns)
    assert fts5.count(of_agent(all_words(["xylophyte"]), owner)) == expected > 0


def test_plain_words_are_no_parts_of_anything_else() -> None:
    text = "Retry the getUserId call, see src/retry/log.py: it failed_once at 10:12 (again) or B2B. Ünder done?"
    assert plain_words(text) == ["retry", "the", "call", "see", "done"]
    assert plain_stretches(text) == [["retry", "the"], ["call", "see"], ["done"]]


def test_what_is_drawn_does_not_hang_on_the_order_of_sets() -> None:
    program = "from bench.corpus import Corpus\nfrom bench.queries import queries\nprint(queries(Corpus(5, 400), 6))"
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == repr(queries(Corpus(5, 400), 6))
