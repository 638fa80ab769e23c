"""What `search` prints of a hit: who said it and when, marks, context, and the way back; nothing that a terminal would obey."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid import SearchHit, SearchPage, Source
from aforesaid._replies import ContextTurn
from aforesaid.cli.hits import CONTEXT_LENGTH, page_lines
from aforesaid.cli.terminal import COLOURS, PLAIN
from tests.cli.conftest import ANY_TEXT, obeyed

HIT = SearchHit(
    agent_id="rev-1",
    name="The reviewer",
    archived=False,
    parent_agent_id="",
    conversation_id="c1",
    title="Review of the shop",
    turn_id="t",
    seq=4,
    role="user",
    created_at=1_772_619_720_000_000,
    snippet="the ⟦login⟧ page",
    score=3.5,
    content_offset=0,
    content_length=14,
    digest="sha256:00",
)


def page(matches: tuple[SearchHit, ...] = (), near: tuple[SearchHit, ...] = (), partial: tuple[SearchHit, ...] = ()) -> SearchPage:
    return SearchPage(matches, near, partial, "", "", 0, None)


def lines(hit: SearchHit) -> list[str]:
    return list(page_lines(page((hit,)), PLAIN))


def test_a_hit_tells_who_said_it_where_and_when_and_the_snippet_stands_below(zone: pytest.MonkeyPatch) -> None:
    assert lines(HIT) == [
        "matches",
        "  The reviewer (rev-1) · Review of the shop · user · 2026-03-04 10:22",
        "    the ⟦login⟧ page",
        "    rev-1/c1:4",
    ]


def test_times_are_those_of_this_machine(zone: pytest.MonkeyPatch) -> None:
    zone.setenv("TZ", "XXX-05:30")
    time.tzset()
    assert "2026-03-04 15:52" in lines(HIT)[1]


@pytest.mark.parametrize(
    ("changes", "header"),
    [
        ({"name": "rev-1"}, "  rev-1 · Review of the shop · user · 2026-03-04 10:22"),
        ({"name": ""}, "  rev-1 · Review of the shop · user · 2026-03-04 10:22"),
        ({"title": "", "role": "", "created_at": None}, "  The reviewer (rev-1)"),
        (
            {"archived": True, "parent_agent_id": "lead"},
            "  The reviewer (rev-1) · sub-agent of lead · archived · Review of the shop · user · 2026-03-04 10:22",
        ),
        ({"title": "x" * 61}, f"  The reviewer (rev-1) · {'x' * 59}… · user · 2026-03-04 10:22"),
        ({"created_at": -62_135_596_800_000_000}, "  The reviewer (rev-1) · Review of the shop · user · 0001-01-01 00:00"),
        ({"created_at": 253_402_300_799_999_999}, "  The reviewer (rev-1) · Review of the shop · user · 9999-12-31 23:59"),
    ],
)
def test_what_is_not_known_is_left_out(zone: pytest.MonkeyPatch, changes: dict[str, Any], header: str) -> None:
    assert lines(replace(HIT, **changes))[1] == header


def test_the_lists_name_stands_where_it_changes() -> None:
    told = list(page_lines(page((HIT, HIT), (), (HIT,)), PLAIN))
    assert [line for line in told if not line.startswith("  ")] == ["matches", "", "partial"]
    assert list(page_lines(page(), PLAIN)) == []


def test_marks_are_coloured_or_stand_as_they_are() -> None:
    hit = replace(HIT, snippet="⟦a⟧ b⟦c d⟧, ⟦ and ⟧")
    assert lines(hit)[2] == "    ⟦a⟧ b⟦c d⟧, ⟦ and ⟧"
    assert list(page_lines(page((hit,)), COLOURS))[2] == "    \x1b[1;31ma\x1b[0m b\x1b[1;31mc d\x1b[0m, \x1b[1;31m and \x1b[0m"


@given(
    st.builds(
        replace,
        st.just(HIT),
        **dict.fromkeys(("snippet", "name", "title", "role", "agent_id", "conversation_id", "parent_agent_id"), ANY_TEXT),
    )
)
def test_no_field_of_a_hit_reaches_a_terminal_as_a_command(hit: SearchHit) -> None:
    told = lines(hit)
    assert len(told) == 4
    assert obeyed("".join(told)) == []
    coloured = "".join(page_lines(page((hit,)), COLOURS))
    for ours in ("\x1b[1m", "\x1b[36m", "\x1b[2m", "\x1b[0m", "\x1b[1;31m"):
        coloured = coloured.replace(ours, "")
    assert obeyed(coloured) == []


SESSION = "5b0c7a52-3f0e-4c1b-9a6d-2f8e41d7c903"


def test_below_a_hit_stand_its_id_its_file_and_how_to_go_on() -> None:
    source = Source("claude-code", f"/home/me/.claude/projects/-srv-shop/{SESSION}.jsonl", "/srv/my shop")
    told = list(page_lines(page((replace(HIT, turn_id="line-7", source=source),)), PLAIN))
    assert told[3:] == [
        f"    rev-1/c1:4 · /home/me/.claude/projects/-srv-shop/{SESSION}.jsonl:8",
        f"    cd '/srv/my shop' && claude --resume {SESSION}",
    ]
    assert list(page_lines(page((HIT,)), PLAIN))[3:] == ["    rev-1/c1:4"]


def test_turns_around_a_hit_stand_on_a_line_each() -> None:
    before = ContextTurn("b", 3, "user", "first\n\nthen", False, None)
    after = ContextTurn("a", 5, "tool\x1b", "y" * 500, True, None)
    told = lines(replace(HIT, before=(before,), after=(after,)))
    assert told[2:5] == ["    [3] user: first then", "    the ⟦login⟧ page", f"    [5] tool␛: {'y' * (CONTEXT_LENGTH - 1)}…"]
