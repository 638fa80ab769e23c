"""Codex sessions that begin with a copy of another one: what is their own."""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from aforesaid.formats import find_files, read_file
from tests.formats.codex_lines import (
    ID,
    assistant,
    assistant_event,
    event,
    header,
    item,
    line,
    made_at,
    read_found,
    read_one,
    rollout,
    texts,
    turn_begins,
    user,
    user_event,
)
from tests.formats.writing import chunks_of, report_of

FORK = made_at(30, "bb")
OWN = [user("own", 40), user_event("own", 40), assistant("mine", 42)]
SPAWNED = {"subagent": {"thread_spawn": {"parent_thread_id": ID, "depth": 1, "agent_nickname": "Ada"}}}


def parents_lines(*, ids: str) -> list[dict[str, Any]]:
    """What a parent says in two turns, with the ids of its turns of some kind: those that tell their time, others, or none."""
    turn_ids = {"timed": [made_at(1), made_at(11)], "other": ["turn-1", "turn-2"], "none": ["", ""]}[ids]
    lines: list[dict[str, Any]] = []
    for number, turn_id in enumerate(turn_ids, start=1):
        at = 10 * number
        lines += [turn_begins(turn_id, at), line("turn_context", at, cwd="/srv/shop", turn_id=turn_id)] if turn_id else []
        lines += [user(f"ask {number}", at), user_event(f"ask {number}", at), assistant(f"answer {number}", at + 3)]
    return lines


def copied(lines: list[dict[str, Any]], at: float = 30) -> list[dict[str, Any]]:
    """Lines as a fork writes them: anew, in one go."""
    return [{**one, "timestamp": f"2026-06-16T09:00:{at + number / 1000:06.3f}Z"} for number, one in enumerate(lines)]


def own_turn(ids: str) -> list[dict[str, Any]]:
    return {"timed": [turn_begins(made_at(40), 40)], "other": [turn_begins("turn-9", 40)], "none": []}[ids] + OWN


@pytest.mark.parametrize("fields", [{"forked_from_id": ID}, {"source": SPAWNED}, {}], ids=["fork", "sub-agent", "unnamed"])
@pytest.mark.parametrize("with_header", [True, False], ids=["with the parent's header", "without it"])
@pytest.mark.parametrize("parent_there", [True, False], ids=["parent there", "parent gone"])
@pytest.mark.parametrize("ids", ["timed", "other", "none"])
def test_only_its_own_turns_are_a_forks(
    tmp_path: Path, ids: str, parent_there: bool, with_header: bool, fields: dict[str, Any]
) -> None:
    lines = parents_lines(ids=ids)
    copy = copied(([header(ID)] if with_header else []) + lines)
    path = rollout(tmp_path, header(FORK, 30, **fields), *copy, *own_turn(ids), session_id=FORK)
    if parent_there:
        rollout(tmp_path, header(ID), *lines, day="2026/06/15")
    known = with_header or (fields and (ids == "timed" or parent_there))
    (found,) = find_files([path])
    whole = ["u:ask 1", "a:answer 1", "u:ask 2", "a:answer 2", "u:own", "a:mine"]
    assert texts(read_one(path)) == (whole[-2:] if known else whole)
    assert {chunk.conversation.conversation_id for chunk in read_file(found)} == {FORK}
    assert report_of(path).skipped.get("copied from the session that it was forked from", 0) == (6 if known else 0)


@pytest.mark.parametrize("ids", ["timed", "other", "none"])
def test_a_copy_that_kept_its_times_is_one(tmp_path: Path, ids: str) -> None:
    path = rollout(tmp_path, header(FORK, 30, forked_from_id=ID), *parents_lines(ids=ids), *own_turn(ids), session_id=FORK)
    assert texts(read_one(path)) == ["u:own", "a:mine"]


def test_a_clock_that_was_set_back_makes_no_copy(tmp_path: Path) -> None:
    path = rollout(tmp_path, header(FORK, 30, forked_from_id=ID), *OWN, user("earlier", 5), session_id=FORK)
    assert texts(read_one(path)) == ["u:own", "a:mine", "u:earlier"]


def test_the_order_of_the_files_does_not_matter(tmp_path: Path) -> None:
    lines = parents_lines(ids="none")
    parent = rollout(tmp_path, header(ID), *lines)
    fork = rollout(tmp_path, header(FORK, 30, forked_from_id=ID), *copied(lines), *OWN, session_id=FORK)
    other = made_at(50, "cc")
    again = rollout(tmp_path, header(other, 50, forked_from_id=ID), *copied(lines, 50), user("else", 55), session_id=other)
    found = {path: next(find_files([path])) for path in (parent, fork, again)}
    expected = {ID: texts(read_one(parent)), FORK: ["u:own", "a:mine"], other: ["u:else"]}
    for order in permutations(found.values()):
        assert {name: texts(turns) for name, turns in read_found(list(order)).items()} == expected


def test_a_fork_of_a_fork_has_neither_of_them(tmp_path: Path) -> None:
    lines = parents_lines(ids="timed")
    middle = [header(FORK, 30, forked_from_id=ID), *copied([header(ID), *lines]), turn_begins(made_at(40), 40), *OWN]
    last = made_at(50, "cc")
    path = rollout(
        tmp_path,
        header(last, 50, forked_from_id=FORK),
        *copied(middle, 50),
        turn_begins(made_at(55), 55),
        user("last", 55),
        session_id=last,
    )
    assert texts(read_one(path)) == ["u:last"]


def test_a_fork_that_did_not_go_on_has_nothing_of_its_own(tmp_path: Path) -> None:
    for ids in ("timed", "other", "none"):
        path = rollout(
            tmp_path / ids, header(FORK, 30, forked_from_id=ID), *copied([header(ID), *parents_lines(ids=ids)]), session_id=FORK
        )
        assert read_one(path) == []
        assert chunks_of(path) == []


# Behind a parent's header that is gone, other ids tell nothing: see the next test.
@pytest.mark.parametrize(
    ("with_header", "turn_id", "parent_there"),
    [
        *((with_header, made_at(30.1), there) for with_header in (True, False) for there in (True, False)),
        *((with_header, turn_id, True) for with_header in (True, False) for turn_id in ("turn-7", "")),
        *((False, turn_id, False) for turn_id in ("turn-7", "")),
    ],
)
def test_a_sub_agent_that_copied_nothing_keeps_all(tmp_path: Path, with_header: bool, turn_id: str, parent_there: bool) -> None:
    if parent_there:
        rollout(tmp_path, header(ID), *parents_lines(ids="timed"))
    told = item("agent_message", 30.2, author="/root", content=[{"type": "input_text", "text": "look"}])
    before = [header(ID, 30)] if with_header else []
    begin = [turn_begins(turn_id, 30.1)] if turn_id else []
    path = rollout(tmp_path, header(FORK, 30, source=SPAWNED), *before, *begin, told, assistant("found", 35), session_id=FORK)
    assert texts(read_one(path)) == ["a:look", "a:found"]


def test_behind_a_parents_header_time_tells_where_nothing_else_does(tmp_path: Path) -> None:
    told = item("agent_message", 30.2, author="/root", content=[{"type": "input_text", "text": "look"}])
    path = rollout(tmp_path, header(FORK, 30, source=SPAWNED), header(ID, 30), told, assistant("found", 35), session_id=FORK)
    assert texts(read_one(path)) == ["a:found"]
    assert report_of(path).skipped["copied from the session that it was forked from"] == 1
    untimed = [{key: value for key, value in one.items() if key != "timestamp"} for one in (header(ID), told, *OWN)]
    path = rollout(tmp_path, header(FORK, 30, source=SPAWNED), *untimed, session_id=FORK)
    assert texts(read_one(path)) == ["a:look", "u:own", "a:mine"]


def test_the_ordinal_that_the_header_names_is_the_first_of_its_own(tmp_path: Path) -> None:
    lines = [header(FORK, 30, source=SPAWNED, subagent_history_start_ordinal=4), *copied(parents_lines(ids="none")[:3]), *OWN]
    path = rollout(tmp_path, *({**one, "ordinal": number} for number, one in enumerate(lines)), session_id=FORK)
    assert texts(read_one(path)) == ["u:own", "a:mine"]


def test_a_copy_that_begins_in_the_middle_of_the_parent(tmp_path: Path) -> None:
    lines = parents_lines(ids="none")
    rollout(tmp_path, header(ID), *lines)
    path = rollout(tmp_path, header(FORK, 30, source=SPAWNED), *copied(lines[3:]), *OWN, session_id=FORK)
    assert texts(read_one(path)) == ["u:own", "a:mine"]


def test_what_the_person_says_again_in_a_fork_stays(tmp_path: Path) -> None:
    lines = [user("continue", 10), assistant("on", 13)]
    rollout(tmp_path, header(ID), *lines)
    path = rollout(
        tmp_path,
        header(FORK, 30, forked_from_id=ID),
        *copied(lines),
        user("continue", 40),
        assistant("further", 42),
        session_id=FORK,
    )
    assert texts(read_one(path)) == ["u:continue", "a:further"]


def test_a_prompt_in_front_of_the_first_mark_of_its_own_turn_is_its_own(tmp_path: Path) -> None:
    copy = copied([header(ID), *parents_lines(ids="timed")])
    own = [user("own", 40), user_event("own", 40), line("turn_context", 40, turn_id=made_at(40)), assistant("mine", 42)]
    path = rollout(tmp_path, header(FORK, 30, forked_from_id=ID), *copy, *own, session_id=FORK)
    assert texts(read_one(path)) == ["u:own", "a:mine"]


def test_turns_that_a_fork_takes_back_are_its_own_or_its_parents(tmp_path: Path) -> None:
    copy = copied([header(ID), *parents_lines(ids="timed")])
    path = rollout(
        tmp_path,
        header(FORK, 30, forked_from_id=ID),
        *copy,
        turn_begins(made_at(40), 40),
        *OWN,
        event("thread_rolled_back", 45, num_turns=2),
        user("again", 50),
        session_id=FORK,
    )
    assert texts(read_one(path)) == ["s:(rolled back)", "s:(rolled back)", "u:again"]


def test_a_session_that_was_resumed_keeps_all(tmp_path: Path) -> None:
    path = rollout(tmp_path, header(), user("a", 1), header(at=20), user("b", 21), assistant_event("c", 22))
    assert texts(read_one(path)) == ["u:a", "u:b", "a:c"]


def test_a_parent_that_cannot_be_read_is_no_parent(tmp_path: Path) -> None:
    lines = parents_lines(ids="none")
    rollout(tmp_path, "nothing", '{"cut')
    path = rollout(tmp_path, header(FORK, 30, forked_from_id=ID), *copied(lines), *OWN, session_id=FORK)
    assert len(read_one(path)) == 6
    itself = rollout(tmp_path / "itself", header(FORK, 30, forked_from_id=FORK), *OWN, session_id=FORK)
    assert len(read_one(itself)) == 2


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_parent_that_is_no_file_is_no_parent(tmp_path: Path, kind: str) -> None:
    """A pipe would wait for its writer, and a device never ends."""
    lines = parents_lines(ids="none")
    other = rollout(tmp_path, "{}")
    other.unlink()
    {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": Path.mkdir}[kind](other)
    path = rollout(tmp_path, header(FORK, 30, forked_from_id=ID), *copied(lines), *OWN, session_id=FORK)
    assert len(read_one(path)) == 6


def test_only_sessions_around_it_are_looked_at_for_a_parent(tmp_path: Path) -> None:
    lines = parents_lines(ids="none")
    outside = rollout(tmp_path / "outside", header(ID), *lines)
    for named in (f"../../outside/{outside.name}", str(outside), "..", "\0", "x" * 500):
        path = rollout(tmp_path / "home", header(FORK, 30, forked_from_id=named), *copied(lines), *OWN, session_id=FORK)
        assert len(read_one(path)) == 6
