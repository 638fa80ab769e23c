"""Finding files: what is read, in which order, and what is left out with which reason."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from aforesaid.formats import FoundFile, PathError, find_files, finding, read_file
from tests.formats.writing import PROJECT, SESSION, chunks_of, line, session, text_of

MESSAGE = {"role": "user", "content": "hello"}


def listed(folder: Path, *paths: Path | str) -> list[tuple[str, str]]:
    """Names below a folder with the format or the reason."""
    return [(str(found.path.relative_to(folder)), found.why or found.format) for found in find_files(paths or [folder])]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder as Claude Code leaves it."""
    folder = tmp_path / ".claude" / "projects"
    session(folder, line("user", "second", "u2", at=2), name="aaa")
    session(folder, line("user", "first", "u1", at=1), name=SESSION)
    side = folder / PROJECT / SESSION
    (side / "subagents").mkdir(parents=True)
    (side / "subagents" / "agent-a7.jsonl").write_text(text_of([line("user", "side", "s1", at=3, isSidechain=True)]))
    (side / "subagents" / "agent-a7.meta.json").write_text("{}")
    (side / "tool-results").mkdir()
    (side / "tool-results" / "x.txt").write_text("long")
    (tmp_path / ".claude" / "history.jsonl").write_text('{"display": "first", "project": "/srv/shop"}\n')
    (tmp_path / ".claude" / "plugins").mkdir()
    (tmp_path / ".claude" / "plugins" / "fixture.jsonl").write_text(text_of([line("user", "of a plug-in")]))
    return tmp_path


def test_the_folder_of_claude_code_gives_its_sessions_in_the_order_in_which_they_began(home: Path) -> None:
    project = f".claude/projects/{PROJECT}"
    sessions = [
        (f"{project}/{SESSION}.jsonl", "claude-code"),
        (f"{project}/aaa.jsonl", "claude-code"),
        (f"{project}/{SESSION}/subagents/agent-a7.jsonl", "claude-code"),
    ]
    sides = [
        (f"{project}/{SESSION}/subagents/agent-a7.meta.json", "describes a sub-agent: read with its file"),
        (f"{project}/{SESSION}/tool-results/x.txt", "tool result: read with its session"),
    ]
    config = [(".claude/history.jsonl", "holds no sessions"), (".claude/plugins", "holds no sessions")]
    assert listed(home, home / ".claude" / "projects") == listed(home, home / ".claude" / "projects" / PROJECT)
    assert sorted(listed(home, home / ".claude")) == sorted([*config, *sessions, *sides])
    assert [one for one in listed(home) if one[1] == "claude-code"] == sessions
    assert listed(home, home / ".claude" / "projects" / PROJECT)[:3] == sessions


def test_a_path_may_be_relative_have_a_tilde_or_be_a_link(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / ".claude" / "projects" / PROJECT)
    (home / "link").symlink_to(home / ".claude" / "projects" / PROJECT)
    (home / "link.jsonl").symlink_to(home / ".claude" / "projects" / PROJECT / "aaa.jsonl")
    whole = list(find_files([home / ".claude" / "projects"]))
    assert list(find_files(["~/.claude/projects"])) == list(find_files(["."])) == list(find_files([home / "link"])) == whole
    for path in ("aaa.jsonl", "../-srv-shop/aaa.jsonl", home / "link.jsonl", "~/link.jsonl"):
        assert [chunk.agent.agent_id for found in find_files([path]) for chunk in read_file(found)] == [PROJECT]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gone", "no such file or folder: 'gone'"),
        ("gone/", "no such file or folder: 'gone/'"),
        ("", "no such file or folder: ''"),
        ("file/below", "cannot read 'file/below': not a directory"),
        ("loop", "cannot read 'loop':"),
        ("a\0b", "cannot read 'a\\x00b':"),
        ("~nobody-of-that-name/x", "'~nobody-of-that-name/x'"),
    ],
)
def test_a_path_that_cannot_be_read_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(PathError) as error:
        find_files(["file", path])
    assert message in str(error.value)


def test_what_is_not_read_is_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text(text_of([MESSAGE]))
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "notes.md").write_text("# notes\n[1]\n")
    (tmp_path / "other.jsonl").write_text(
        '{"type": "session", "payload": {}}\n{"type": "message", "role": "user", "content": "x"}\n{"type": []}\n{"type": {}}\n'
    )
    (tmp_path / "broken.json").write_text('[{"role": "user", "content": "hello"}')
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20)
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "gone")
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "twice.jsonl").symlink_to(tmp_path / "chat.jsonl")
    for folder in (".git", "node_modules"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "chat.jsonl").write_text(text_of([MESSAGE]))
    os.mkfifo(tmp_path / "pipe.jsonl")
    with sqlite3.connect(tmp_path / "data.db") as database:
        database.execute("create table t (x)")
    database.close()
    assert sorted(listed(tmp_path)) == [
        (".", "listed before"),
        (".git", "hidden folder"),
        ("broken.json", "no known format"),
        ("chat.jsonl", "chat-messages"),
        ("chat.jsonl", "listed before"),
        ("dangling.jsonl", "cannot be read: no such file or directory"),
        ("data.db", "no known format"),
        ("empty.jsonl", "empty file"),
        ("image.png", "no known format"),
        ("node_modules", "installed packages"),
        ("notes.md", "no known format"),
        ("other.jsonl", "no known format"),
        ("pipe.jsonl", "not a regular file"),
    ]


def test_a_path_named_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(text_of([MESSAGE]))
    assert [found.why for found in find_files([path, tmp_path, path])] == ["", "listed before", "listed before"]


def test_a_file_of_chats_whose_ids_another_one_has_is_left_out(tmp_path: Path) -> None:
    for folder in ("a/logs", "b/logs", "b/other"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "chat.jsonl").write_text(text_of([MESSAGE]))
    first = tmp_path / "a/logs/chat.jsonl"
    assert listed(tmp_path) == [
        ("a/logs/chat.jsonl", "chat-messages"),
        ("b/logs/chat.jsonl", f"has the name of {first}, and its ids: rename one of them"),
        ("b/other/chat.jsonl", "chat-messages"),
    ]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(b"garbage\n" + json.dumps(line("user", "x")).encode() + b"\n", "claude-code", id="garbage first"),
        pytest.param(b"\0" * 100 + b"\n" + json.dumps(line("user", "x")).encode(), "claude-code", id="NUL bytes first"),
        pytest.param(
            b'{"type": "mode"}\n' * 50 + json.dumps(line("user", "x")).encode() + b"\n", "claude-code", id="after other lines"
        ),
        pytest.param(b'{"messages": [\n' + json.dumps(MESSAGE).encode() + b"\n", "chat-messages", id="a broken line first"),
        pytest.param(b"\xef\xbb\xbf" + json.dumps(MESSAGE).encode() + b"\r\n", "chat-messages", id="a byte order mark"),
        pytest.param(b'{"messages": [{"role": "user", "parts": []}]}\n', "", id="messages of another format"),
        pytest.param(
            b'{"messages": [{"role": "user", "content": "x"}, {"text": "y"}, {"text": "z"}]}\n',
            "",
            id="most messages are something else",
        ),
        pytest.param(b'{"messages": "none", "body": 7}\n', "", id="messages that are none"),
        pytest.param(b'{"role": "user", "message": {"content": "x"}}\n', "", id="lines of another format"),
        pytest.param(b'[\n {"role": "user", "text": "x"}\n]', "", id="a document of another format"),
        pytest.param(b'{"type": "session_meta", "payload": {}}\n', "codex", id="a header alone"),
        pytest.param(b'{"type": "session_meta"}\n', "", id="a header of another format"),
        pytest.param(b'{"role": "user"}\n{"type": "function_call", "name": "y"}\n', "codex", id="a bare item behind"),
        pytest.param(b'{"type": "x"}\n' * 1000 + json.dumps(MESSAGE).encode() + b"\n", "", id="not in the first lines"),
        pytest.param(b"{" * 100_000, "", id="nested without end"),
        pytest.param(b"[" * 100_000 + b'"role"', "", id="lists nested without end"),
    ],
)
def test_the_format_is_told_by_the_content(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(data)
    (found,) = find_files([path])
    assert (found.format, found.why) == (kind, "" if kind else "no known format")


def test_a_document_over_the_limit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "LINE_LIMIT", 1000)
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([MESSAGE] * 100, indent=1))
    (found,) = find_files([path])
    assert found.why == f"JSON document of {path.stat().st_size} bytes is over the limit of 1000"


def test_sessions_that_began_together_come_as_they_ended(tmp_path: Path) -> None:
    session(tmp_path, line("user", "x", "u1", at=1), line("user", "copy", "u3", at=9), name="aaa")
    session(tmp_path, line("user", "x", "u1", at=1), line("user", "original", "u2", at=2), name="bbb")
    session(tmp_path, {"type": "ai-title", "aiTitle": "no times", "sessionId": "x"}, name="000")
    assert [found.path.stem for found in find_files([tmp_path])] == ["bbb", "aaa", "000"]


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    session(folder, line("user", "hello", "u1"), project=os.fsdecode(b"proj\xe9"))
    (folder / "chat.jsonl").write_text(text_of([MESSAGE]))
    chat, claude = sorted(chunks_of(folder), key=lambda chunk: chunk.agent.agent_id)
    assert (chat.conversation.conversation_id, claude.agent.agent_id) == ("caf\ufffd/chat.jsonl", "proj\ufffd")
    assert f"{chat.conversation.source.file}{claude.conversation.source.file}".isprintable()


def test_a_file_that_was_left_out_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"not a file to read: .*no known format"):
        read_file(FoundFile(tmp_path, why="no known format"))


def test_a_file_that_is_gone_by_then_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(text_of([MESSAGE]))
    (found,) = find_files([path])
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(read_file(found))
