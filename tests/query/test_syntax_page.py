"""docs/query-syntax.md tells what is done: its list of question words is the one that is used, and each row of its tables holds."""

from __future__ import annotations

import re

import pytest

from aforesaid_server.query.judge import Question
from aforesaid_server.query.parse import parse
from aforesaid_server.query.question_words import QUESTION_WORDS
from aforesaid_server.text.words import Analyser
from scripts.running_server import ROOT

PAGE = (ROOT / "docs" / "query-syntax.md").read_text("utf-8")
ENGLISH = Analyser()
ROW = re.compile(r"^\| `(?P<query>[^`]+)` \| `(?P<turn>[^`]*)` \| (?P<list>[a-z, 0-9]+) \|$", re.MULTILINE)
EXAMPLES = [(row["query"], row["turn"].replace("\\n", "\n"), row["list"]) for row in ROW.finditer(PAGE)]


def test_the_page_shows_the_question_words() -> None:
    fences = re.findall(r"^```question-words\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(fences) == 1
    shown = fences[0].split()
    assert shown == sorted(QUESTION_WORDS)


def test_no_table_of_examples_is_left_out() -> None:
    heads = PAGE.count("| query | turn | list |")
    assert heads == 7
    # The rows of these tables, counted in another way: lines between such a head and the next blank one.
    tables = re.findall(r"^\| query \| turn \| list \|\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert sum(table.count("\n") for table in tables) == len(EXAMPLES) > 60


@pytest.mark.parametrize(("query", "turn", "expected"), EXAMPLES)
def test_example(query: str, turn: str, expected: str) -> None:
    name, _, rank = expected.partition(", ")
    question, words = Question(parse(query, ENGLISH)), ENGLISH.turn(turn)
    tier, step = question.tier(words), question.step(words)
    partial = question.query.several and not tier and not step and question.says_some(words, every_word=False)
    assert name == ("matches" if tier else "near" if step else "partial" if partial else "none")
    if rank:
        assert rank == (f"tier {tier}" if tier else f"step {step}")
