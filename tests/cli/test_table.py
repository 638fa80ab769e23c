"""Tables: aligned where there is room, cut where a column allows it, records where nothing helps, tabs in a pipe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.cli.table import Column, aligned, tab_separated
from aforesaid.cli.terminal import COLOURS, PLAIN, cells
from tests.cli.conftest import ANY_TEXT, obeyed, uncoloured

COLUMNS = (Column("ID"), Column("TITLE", may_be_cut=True), Column("TURNS", to_the_right=True), Column("FILE", in_pipes_only=True))
ROWS = [("a/1", "Fix the double charge", "7", "/f"), ("a/222", "記憶", "1,200", "/g")]


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (80, ["ID     TITLE                  TURNS", "a/1    Fix the double charge      7", "a/222  記憶                   1,200"]),
        (30, ["ID     TITLE             TURNS", "a/1    Fix the double …      7", "a/222  記憶              1,200"]),
        (
            25,
            ["id a/1", "title Fix the double charge", "turns 7", "", "id a/222", "title 記憶", "turns 1,200"],
        ),
    ],
)
def test_a_table_fits_its_terminal(width: int, told: list[str]) -> None:
    assert list(aligned(COLUMNS, ROWS, width, PLAIN)) == told


def test_the_heading_is_coloured_and_nothing_is_a_table_without_one() -> None:
    assert next(iter(aligned(COLUMNS, ROWS, 80, COLOURS))) == "\x1b[1mID     TITLE                  TURNS\x1b[0m"
    assert list(aligned(COLUMNS, [], 80, PLAIN)) == []


def test_a_pipe_gets_every_column_with_tabs_between() -> None:
    assert list(tab_separated([("a\tb", "c\nd", "")])) == ["a b\tc d\t"]


@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT), max_size=5), st.integers(1, 200))
def test_no_row_is_wider_than_the_terminal_or_obeyed(rows: list[tuple[str, str, str, str]], width: int) -> None:
    told = list(aligned(COLUMNS, rows, width, COLOURS))
    assert obeyed(uncoloured("".join(told))) == []
    if told and uncoloured(told[0]).split() == ["ID", "TITLE", "TURNS"]:
        assert len(told) == len(rows) + 1
        assert all(cells(line) <= width for line in told)
    piped = list(tab_separated(rows))
    assert [line.count("\t") for line in piped] == [3] * len(rows)
