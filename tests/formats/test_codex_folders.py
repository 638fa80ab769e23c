"""Where Codex keeps sessions: what is found in a home folder, compressed or archived, and what lies beside."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from aforesaid.formats import find_files, read_file
from aforesaid.formats.codex_folders import Homes
from tests.formats.codex_lines import ID, assistant, header, line, made_at, read_one, rollout, texts, user
from tests.formats.writing import chunks_of, report_of, text_of

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress

SECOND = made_at(10, "bb")
ARCHIVED = made_at(20, "cc")


def listed(folder: Path, *paths: Path) -> list[tuple[str, str]]:
    """Names below a folder with the format or the reason."""
    return [(found.path.relative_to(folder).as_posix(), found.why or found.format) for found in find_files(paths or [folder])]


def packed(path: Path) -> Path:
    """The compressed form of a file, beside it; the file itself goes."""
    beside = path.with_name(f"{path.name}.zst")
    beside.write_bytes(compress(path.read_bytes()))
    path.unlink()
    return beside


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder as Codex leaves it."""
    folder = tmp_path / ".codex"
    rollout(folder, header(ID), user("first"))
    packed(rollout(folder, header(SECOND), user("second"), session_id=SECOND, day="2026/06/17"))
    archived = rollout(folder, header(ARCHIVED), user("third"), session_id=ARCHIVED)
    (folder / "archived_sessions").mkdir()
    archived.rename(folder / "archived_sessions" / archived.name)
    for name in ("auth.json", "config.toml", "models.sqlite"):
        (folder / name).write_text("{}")
    (folder / "history.jsonl").write_text(text_of([{"session_id": ID, "ts": 1, "text": "first"}]))
    (folder / "session_index.jsonl").write_text(text_of([{"id": SECOND, "thread_name": "Two", "updated_at": "x"}]))
    (folder / "log").mkdir()
    (folder / "log" / "codex.jsonl").write_text(text_of([header(), user("a log")]))
    return folder


def name_of(session_id: str) -> str:
    return f"rollout-2026-06-16T11-00-00-{session_id}.jsonl"


def test_a_home_gives_its_sessions_and_says_what_else_there_is(home: Path) -> None:
    sessions = [
        (f"archived_sessions/{name_of(ARCHIVED)}", "codex"),
        (f"sessions/2026/06/16/{name_of(ID)}", "codex"),
        (f"sessions/2026/06/17/{name_of(SECOND)}.zst", "codex"),
    ]
    beside = [
        *((name, "holds no sessions") for name in ("auth.json", "config.toml", "log", "models.sqlite")),
        ("history.jsonl", "prompts alone: they stand in the sessions"),
        ("session_index.jsonl", "titles of sessions: read with them"),
    ]
    assert sorted(listed(home)) == sorted([*sessions, *beside])
    assert [one for one in listed(home.parent) if one[1] == "codex"] == [(f".codex/{name}", kind) for name, kind in sessions]
    moved = home.rename(home.with_name("elsewhere"))
    assert sorted(listed(moved)) == sorted([*sessions, *beside])
    assert listed(moved, moved / "sessions") == sessions[1:]
    chunks = chunks_of(moved)
    assert {chunk.conversation.conversation_id: chunk.conversation.title for chunk in chunks} == {
        ID: "",
        SECOND: "Two",
        ARCHIVED: "",
    }
    assert {chunk.agent.agent_id for chunk in chunks} == {"codex-srv-shop"}


def test_files_beside_the_sessions_say_why_they_are_not_read(home: Path) -> None:
    assert [why for _, why in listed(home, home / "history.jsonl")] == ["prompts alone: they stand in the sessions"]
    assert [why for _, why in listed(home, home / "session_index.jsonl")] == ["titles of sessions: read with them"]


def test_titles_that_are_no_file_are_none(home: Path) -> None:
    (home / "session_index.jsonl").unlink()
    os.mkfifo(home / "session_index.jsonl")
    assert [chunk.conversation.title for chunk in chunks_of(home)] == ["", "", ""]


def test_the_plain_file_wins_over_its_compressed_copy(tmp_path: Path) -> None:
    path = rollout(tmp_path, header(), user("plain"))
    beside = path.with_name(f"{path.name}.zst")
    beside.write_bytes(compress(text_of([header(), user("packed")]).encode()))
    folder = path.parent
    assert listed(folder) == [(path.name, "codex"), (beside.name, "compressed copy of the file beside it")]
    assert listed(folder, beside) == [(beside.name, "compressed copy of the file beside it")]
    assert [texts(list(chunk.conversation.turns)) for chunk in chunks_of(tmp_path)] == [["u:plain"]]


def test_a_session_stays_the_same_when_it_is_compressed_or_archived(tmp_path: Path) -> None:
    path = rollout(tmp_path, header(), user("first"), assistant("on"))
    (before,) = chunks_of(path)
    (tmp_path / "archived_sessions").mkdir()
    moved = path.rename(tmp_path / "archived_sessions" / path.name)
    (archived,) = chunks_of(moved)
    (smaller,) = chunks_of(packed(moved))
    for after in (archived, smaller):
        assert after.agent == before.agent
        assert after.conversation.conversation_id == before.conversation.conversation_id
        assert after.conversation.turns == before.conversation.turns


def test_a_compressed_session_is_known_by_its_content(tmp_path: Path) -> None:
    path = packed(rollout(tmp_path, header(), user("go")))
    other = path.rename(tmp_path / "session.bin")
    assert listed(tmp_path, other) == [("session.bin", "codex")]
    assert texts(read_one(other)) == ["u:go"]
    plain = tmp_path / "plain.jsonl.zst"
    plain.write_text(text_of([header(), user("never packed")]))
    assert texts(read_one(plain)) == ["u:never packed"]
    (tmp_path / "chat.jsonl.zst").write_bytes(compress(b'{"role": "user", "content": "hello"}\n'))
    assert listed(tmp_path, tmp_path / "chat.jsonl.zst") == [("chat.jsonl.zst", "no known format")]


def test_what_was_read_of_a_compressed_file_adds_up_to_its_size(tmp_path: Path) -> None:
    path = packed(rollout(tmp_path, header(), *(user(f"prompt {number}") for number in range(2000))))
    (found,) = find_files([path])
    told: list[int] = []
    assert sum(len(chunk.conversation.turns) for chunk in read_file(found, on_bytes=told.append, block_bytes=100)) == 2000
    assert sum(told) == found.size == path.stat().st_size


def test_damaged_compressed_data_ends_the_file_and_is_told(tmp_path: Path) -> None:
    path = rollout(tmp_path, header(), user("before"))
    beside = path.with_name(f"{path.name}.zst")
    beside.write_bytes(compress(path.read_bytes()) + b"garbage that is no frame")
    path.unlink()
    assert texts(read_one(beside)) == ["u:before"]
    assert report_of(beside).skipped["damaged compressed data: the rest of the file is not read"] == 1
    beside.write_bytes(compress(b"")[:4] + b"\xff" * 100)
    assert [found.why for found in find_files([beside])] == ["damaged compressed data: the rest of the file is not read"]


def test_a_bomb_ends_the_file_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl.zst"
    zeros = compress(bytes(64 << 20))
    path.write_bytes(compress(text_of([header(), user("before")]).encode()) + zeros * 40)
    assert path.stat().st_size < 100_000
    assert texts(read_one(path)) == ["u:before"]
    (reason,) = [reason for reason in report_of(path).skipped if "far more than its size" in reason]
    assert reason == "compressed data that unpacks to far more than its size: the rest of the file is not read"
    path.write_bytes(zeros * 40)
    assert [found.why for found in find_files([path])] == [reason]


def test_a_parent_is_found_in_its_home_or_beside_the_file(home: Path, tmp_path: Path) -> None:
    path = home / "sessions/2026/06/16" / name_of(ID)
    known = Homes().of(path)
    assert {session_id: found.name for session_id, found in known.sessions.items()} == {
        ID: name_of(ID),
        SECOND: f"{name_of(SECOND)}.zst",
        ARCHIVED: name_of(ARCHIVED),
    }
    assert Homes().of(home / "archived_sessions" / name_of(ARCHIVED)) == known
    loose = tmp_path / "loose"
    loose.mkdir()
    for number, first in enumerate([text_of([header("a")]), text_of([line("turn_context")]), "{cut\n", text_of([header("b")])]):
        (loose / f"{number}.jsonl").write_text(first)
    (loose / "4.jsonl").touch()
    (loose / "notes.txt").write_text(text_of([header("c")]))
    assert {session_id: found.name for session_id, found in Homes().of(loose / "x.jsonl").sessions.items()} == {
        "a": "0.jsonl",
        "b": "3.jsonl",
    }
    assert Homes().of(tmp_path / "gone" / "x.jsonl").sessions == {}
