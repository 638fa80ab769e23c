"""What the command line prints: hits, marks, sums, and nothing that a terminal would obey."""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid import Imported, LeftOut, SearchHit, SearchPage
from aforesaid.cli.printer import (
    COLOURS,
    PLAIN,
    TROUBLES,
    error_line,
    import_lines,
    import_troubles,
    json_line,
    page_lines,
    visible,
    wants_colour,
)
from aforesaid.cli.tally import Tally
from aforesaid.formats import FoundFile, Report

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


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Sets the zone of this process, to UTC first, and puts it back."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield patch
    time.tzset()


# Hits


def test_a_hit_tells_who_said_it_where_and_when_and_the_snippet_stands_below(zone: pytest.MonkeyPatch) -> None:
    assert lines(HIT) == [
        "matches",
        "  The reviewer (rev-1) · Review of the shop · user · 2026-03-04 10:22 · c1#4",
        "    the ⟦login⟧ page",
    ]


def test_times_are_those_of_this_machine(zone: pytest.MonkeyPatch) -> None:
    zone.setenv("TZ", "XXX-05:30")
    time.tzset()
    assert "2026-03-04 15:52" in lines(HIT)[1]


@pytest.mark.parametrize(
    ("changes", "header"),
    [
        ({"name": "rev-1"}, "  rev-1 · Review of the shop · user · 2026-03-04 10:22 · c1#4"),
        ({"name": ""}, "  rev-1 · Review of the shop · user · 2026-03-04 10:22 · c1#4"),
        ({"title": "", "role": "", "created_at": None}, "  The reviewer (rev-1) · c1#4"),
        (
            {"archived": True, "parent_agent_id": "lead"},
            "  The reviewer (rev-1) · sub-agent of lead · archived · Review of the shop · user · 2026-03-04 10:22 · c1#4",
        ),
        ({"title": "x" * 61}, f"  The reviewer (rev-1) · {'x' * 59}… · user · 2026-03-04 10:22 · c1#4"),
        ({"created_at": -62_135_596_800_000_000}, "  The reviewer (rev-1) · Review of the shop · user · 0001-01-01 00:00 · c1#4"),
        ({"created_at": 253_402_300_799_999_999}, "  The reviewer (rev-1) · Review of the shop · user · 9999-12-31 23:59 · c1#4"),
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


@pytest.mark.parametrize(
    ("is_terminal", "environment", "colour"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "", "TERM": "xterm"}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_colour_only_on_a_terminal_that_wants_it(is_terminal: bool, environment: dict[str, str], colour: bool) -> None:
    assert wants_colour(is_terminal, environment) is colour


# What a terminal would obey

ANY_TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("\x00\x07\x08\x1b\x7f\x85\x9b\u2028\u202e\u2066\U000e0041⟦⟧"))


def obeyed(text: str) -> list[str]:
    """The characters of a text that a terminal acts on instead of showing them."""
    turning = {0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    return [char for char in text if unicodedata.category(char) in {"Cc", "Zl", "Zp"} or ord(char) in turning]


@given(ANY_TEXT)
def test_nothing_is_left_to_obey_and_all_that_can_be_seen_stays(text: str) -> None:
    shown = visible(text)
    assert obeyed(shown) == []
    assert visible(shown) == shown
    harmless = "".join(char for char in text if not obeyed(char) and not 0xE0000 <= ord(char) < 0xE0080)
    left = iter(shown)
    assert all(char in left for char in harmless)


@given(
    st.builds(
        replace,
        st.just(HIT),
        **dict.fromkeys(("snippet", "name", "title", "role", "agent_id", "conversation_id", "parent_agent_id"), ANY_TEXT),
    )
)
def test_no_field_of_a_hit_reaches_a_terminal_as_a_command(hit: SearchHit) -> None:
    told = lines(hit)
    assert len(told) == 3
    assert obeyed("".join(told)) == []
    ours = ("\x1b[1m", "\x1b[36m", "\x1b[2m", "\x1b[0m", "\x1b[1;31m")
    coloured = "".join(page_lines(page((hit,)), COLOURS))
    for sequence in ours:
        coloured = coloured.replace(sequence, "")
    assert obeyed(coloured) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("a\x9b31m", "a<U+009B>31m"),
        ("a\tb\r\nc", "a b  c"),
        ("\x00\x7f", "␀␡"),
        ("a\u202eb", "a<U+202E>b"),
        ("👩\u200d💻 记憶 é", "👩\u200d💻 记憶 é"),
        ("<U+009B>␛", "<U+009B>␛"),
    ],
)
def test_how_control_characters_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_errors_begin_with_the_program_and_are_one_safe_line() -> None:
    assert error_line("no such agent: a\x1bb\nc") == "aforesaid: no such agent: a␛b c"


@given(ANY_TEXT)
def test_json_says_the_same_and_holds_nothing_to_obey(text: str) -> None:
    written = json.dumps({"snippet": text}, ensure_ascii=False)
    shown = json_line(written)
    assert json.loads(shown) == {"snippet": text}
    assert obeyed(shown) == []


# Imports


@dataclass
class Read:
    report: Report


def tally() -> Tally:
    made = Tally()
    made.begin(Read(Report(lines=1200, taken=1100, skipped={"mode": 60, "not JSON": 40}, turns=900, notes={"lone surrogate": 2})))
    made.begin(Read(Report(lines=1, taken=1, turns=1)))
    made.settle()
    made.take(
        Imported(
            added=1000, replaced=2, unchanged=300, skipped=(LeftOut("a", "c", 4, "tombstoned"), LeftOut("a", "d", 5, "tombstoned"))
        )
    )
    made.take(Imported(added=1))
    made.leave_out(FoundFile(Path("/x/notes.txt"), why="no known format"))
    made.leave_out(FoundFile(Path("/x/b\x1b.txt"), why="no known format"))
    made.leave_out(FoundFile(Path("/x/.git"), why="hidden folder"))
    return made


def test_the_sums_of_an_import() -> None:
    assert list(import_lines(tally())) == [
        "2 files: 1,001 turns added, 2 replaced, 300 unchanged",
        "1,201 lines: 1,101 taken, 100 skipped",
        "  60 mode",
        "  40 not JSON",
        "in lines that were taken:",
        "  2 lone surrogate",
        "9 turns left out by the service:",
        "  9 tombstoned",
        "3 files left out:",
        "  2 no known format: /x/notes.txt, /x/b␛.txt",
        "  1 hidden folder: /x/.git",
    ]
    assert list(import_troubles(tally())) == []


def of_many_kinds() -> Tally:
    made = Tally()
    skipped = {"mode: no conversation text": 50, "not JSON": 30, "user: no conversation text": 20}
    made.begin(Read(Report(lines=100, skipped=skipped)))
    made.settle()
    for number in range(5):
        made.leave_out(FoundFile(Path(f"/x/{number}"), why="no known format"))
    return made


def test_lines_without_text_are_one_sum_and_three_files_stand_for_all_of_a_kind() -> None:
    assert list(import_lines(of_many_kinds()))[1:] == [
        "100 lines: 0 taken, 100 skipped",
        "  70 without conversation text",
        "  30 not JSON",
        "5 files left out:",
        "  5 no known format: /x/0, /x/1, /x/2 and 2 more",
    ]


def test_verbose_tells_every_kind_and_file() -> None:
    assert list(import_lines(of_many_kinds(), verbose=True))[1:] == [
        "100 lines: 0 taken, 100 skipped",
        "  50 mode: no conversation text",
        "  30 not JSON",
        "  20 user: no conversation text",
        "5 files left out:",
        "  5 no known format: /x/0, /x/1, /x/2, /x/3, /x/4",
    ]


def test_of_an_import_that_was_cut_short_only_turns_are_claimed() -> None:
    made = tally()
    made.cut_short = True
    assert list(import_lines(made)) == [
        "cut short: 1,001 turns added, 2 replaced, 300 unchanged",
        "1,201 lines of 2 files read, of which 1,312 turns acknowledged; run it again to go on",
        "9 turns left out by the service:",
        "  9 tombstoned",
    ]


def test_an_import_without_anything_to_tell_is_two_lines() -> None:
    made = Tally()
    made.begin(Read(Report(lines=1, taken=1, turns=1)))
    made.settle()
    made.settle()
    made.take(Imported(added=1))
    assert list(import_lines(made)) == ["1 file: 1 turn added, 0 replaced, 0 unchanged", "1 line: 1 taken, 0 skipped"]


def test_troubles_name_what_was_not_taken_and_why() -> None:
    made = tally()
    made.leave_out(FoundFile(Path("/x/secret"), why="cannot be read: permission denied"))
    made.take(Imported(refused=(LeftOut("a", "c", 1, "too large"), LeftOut("b", "d", 2, "no"), LeftOut("a", "c", 1, "too large"))))
    assert list(import_troubles(made)) == [
        "2 turns of conversation c of agent a not taken: too large",
        "2 turns of conversation d of agent b not taken: no",
        "/x/secret: cannot be read: permission denied",
    ]


def test_a_screen_of_troubles_is_enough() -> None:
    made = Tally()
    for number in range(TROUBLES + 5):
        made.leave_out(FoundFile(Path(f"/{number}"), why="cannot be read: permission denied"))
    told = list(import_troubles(made))
    assert (len(told), told[-1]) == (TROUBLES + 1, "and 5 more")
