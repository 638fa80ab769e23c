"""The searches letter by letter are of the kinds they claim to be, and both other sides find what a plain look finds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.corpus import Corpus, CorpusTurn
from bench.grep import PROGRAMS, Grep, installed, line
from bench.letters import Kind, LettersQuery, known, queries
from bench.measuring import ROOT
from bench.trigrams import Trigrams, literal
from tests.conftest import missing

TURNS = 2_000
CORPUS = Corpus(5, TURNS)


@pytest.fixture(scope="module")
def turns() -> list[CorpusTurn]:
    return list(CORPUS)


@pytest.fixture(scope="module")
def asked() -> list[LettersQuery]:
    return queries(CORPUS, 5)


@pytest.fixture(scope="module")
def trigrams(turns: list[CorpusTurn], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trigrams]:
    with Trigrams(tmp_path_factory.mktemp("trigrams") / "turns.db") as database:
        database.add(turns[:700])
        database.add(turns[700:])
        database.optimize()
        yield database


@pytest.fixture(scope="module", params=PROGRAMS)
def files(request: pytest.FixtureRequest, turns: list[CorpusTurn], tmp_path_factory: pytest.TempPathFactory) -> Grep:
    program = str(request.param)
    if shutil.which(program) is None:
        if program == "rg":
            pytest.skip("no ripgrep on this machine: grep does")
        missing(f"no {program} on this machine")
    made = Grep(tmp_path_factory.mktemp("texts") / "texts", program)
    made.add(turns[:700])
    made.add(turns[700:])
    return made


def holding(turns: list[CorpusTurn], letters: str) -> int:
    return sum(letters.lower() in line(turn.text).lower() for turn in turns)


def test_letters_stand_where_their_kind_says(asked: list[LettersQuery], turns: list[CorpusTurn]) -> None:
    assert {kind: sum(query.kind is kind for query in asked) for kind in Kind} == dict.fromkeys(Kind, 5)
    shapes = {
        Kind.COMMON_WORD: "[a-z]{3,}",
        Kind.MIDDLE_WORD: "[a-z]{3,}",
        Kind.RARE_WORD: "[a-z]{3,}",
        Kind.PART: "[a-z]{3,6}",
        Kind.SEPARATED: r".*[./_-].*",
        Kind.ACROSS: "[a-z]{3} [a-z]{3}",
        Kind.SENTENCE: ".{40}",
        Kind.SPACELESS: "[^\x00-\x7f]{2}",
        Kind.TWO_LETTERS: "[a-z]{2}",
        Kind.MISSING: "[a-z]{8,}",
    }
    for query in asked:
        assert re.fullmatch(shapes[query.kind], query.text), query
        assert bool(holding(turns, query.text)) == query.finds, query


def test_trigrams_find_the_last_turns_that_hold_the_letters(
    asked: list[LettersQuery], turns: list[CorpusTurn], trigrams: Trigrams
) -> None:
    for query in asked:
        found = trigrams.search(query.text)
        there = [turn.number for turn in turns if query.text.lower() in turn.text.lower()]
        assert [number for number, *_ in found] == there[::-1][:20], query
        assert trigrams.count(query.text) == len(there)


def test_the_program_over_files_counts_the_turns(asked: list[LettersQuery], turns: list[CorpusTurn], files: Grep) -> None:
    for query in asked:
        assert files.count(query.text) == holding(turns, query.text), query
    assert files.version().startswith(("ripgrep", "grep"))


def test_planted_letters_are_counted_everywhere(turns: list[CorpusTurn], trigrams: Trigrams, files: Grep) -> None:
    planted = known(TURNS)
    assert max(there for _, there in planted) == TURNS // 10
    for letters, there in planted:
        assert holding(turns, letters) == trigrams.count(letters) == files.count(letters) == there, letters


def test_letters_that_could_be_syntax_are_themselves(tmp_path: Path) -> None:
    texts = ["--count 'x' %_ .*", 'say "NOW" or\nnever', "back\\slash", ""]
    turns = [CorpusTurn(number, "a", "c", str(number), "user", text, 0) for number, text in enumerate(texts)]
    files = Grep(tmp_path / "texts", installed())
    files.add(turns)
    with Trigrams(tmp_path / "turns.db") as trigrams:
        trigrams.add(turns)
        for letters in ("--count", "'x'", "%_ .*", '"now"', "%_"):
            assert trigrams.count(letters) == files.count(letters) == 1, letters
    assert literal('"now"') == '"""now"""'
    assert line("a\nb\\c\r") == "a\\nb\\\\c\\r"


def test_what_is_drawn_does_not_hang_on_the_order_of_sets() -> None:
    program = "from bench.corpus import Corpus\nfrom bench.letters import queries\nprint(queries(Corpus(5, 400), 6))"
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == repr(queries(Corpus(5, 400), 6))
