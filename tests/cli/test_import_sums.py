"""The sums of an import, and what could not be read or sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aforesaid import Imported, LeftOut
from aforesaid.cli.import_sums import TROUBLES, import_lines, import_troubles
from aforesaid.cli.tally import Tally
from aforesaid.formats import FoundFile, Report


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
