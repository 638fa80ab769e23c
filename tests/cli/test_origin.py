"""The way back: the line of a turn in its file, and the command that goes on with its session; nothing that is not known."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid import Source
from aforesaid.cli.origin import LARGEST, origin_line, resume_command
from aforesaid.formats import find_files, read_file
from scripts.running_server import EXAMPLES
from tests.cli.conftest import ANY_TEXT, obeyed

SESSION, OTHER = "5b0c7a52-3f0e-4c1b-9a6d-2f8e41d7c903", "91e3a6d0-7c25-4f88-8b0e-d4c1f25a7b36"
HOME = "/home/me/.claude/projects/-srv-shop"


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (Source("claude-code", f"{HOME}/{SESSION}.jsonl", "/srv/shop"), f"cd /srv/shop && claude --resume {SESSION}"),
        (Source("claude-code", f"{HOME}/{SESSION}.jsonl", "/srv/my $hop"), f"cd '/srv/my $hop' && claude --resume {SESSION}"),
        (Source("claude-code", f"{HOME}/{SESSION}.jsonl", "C:\\shop"), f"cd 'C:\\shop' && claude --resume {SESSION}"),
        (Source("claude-code", f"{HOME}/{SESSION}.jsonl"), f"claude --resume {SESSION}"),
        *(
            (Source("claude-code", f"{HOME}/{SESSION}.jsonl", odd), f"claude --resume {SESSION}")
            for odd in ("-", "+1", "=x", "..", "x")
        ),
        # A sub-agent's file lies in its parent's session, the lines of an old one in its parent's file.
        (Source("claude-code", f"{HOME}/{SESSION}/subagents/agent-1.jsonl", "/s"), f"cd /s && claude --resume {SESSION}"),
        (Source("claude-code", f"{HOME}/{SESSION}/subagents/workflows/{OTHER}/agent-1.jsonl"), f"claude --resume {SESSION}"),
        (Source("claude-code", f"{HOME}/agent-1.jsonl", "/s"), ""),
        (Source("claude-code", f"{HOME}/notes.jsonl", "/s"), ""),
        (Source("claude-code", "", "/s"), ""),
        (Source("claude-code", f"{HOME}/{SESSION}.jsonl", "/s\nrm x"), ""),
        (Source("codex", f"/x/sessions/2026/03/04/rollout-2026-03-04T10-22-00-{SESSION}.jsonl", "/s"), f"codex resume {SESSION}"),
        (Source("codex", f"/x/rollout-2026-03-04T10-22-00-{SESSION}.jsonl.zst"), f"codex resume {SESSION}"),
        (Source("codex", "/x/history.jsonl"), ""),
        (Source("chat-messages", f"/x/{SESSION}.jsonl", "/s"), ""),
        (Source("unheard-of", f"/x/{SESSION}.jsonl", "/s"), ""),
        (Source(), ""),
    ],
)
def test_the_command_that_goes_on_with_a_session(source: Source, command: str) -> None:
    assert resume_command(source, "-srv-shop") == command


def test_the_parent_of_a_sub_agent_of_codex_is_not_known() -> None:
    source = Source("codex", f"/x/rollout-2026-03-04T10-22-00-{SESSION}.jsonl", "/s")
    assert resume_command(source, f"srv-shop/{OTHER}") == f"codex resume {SESSION}"
    assert resume_command(source, f"srv-shop/{SESSION}") == ""


@given(ANY_TEXT, ANY_TEXT)
def test_a_folder_is_one_word_to_a_shell_and_nothing_that_it_obeys(name: str, folder: str) -> None:
    command = resume_command(Source("claude-code", f"{HOME}/{SESSION}.jsonl", folder), "a")
    assert obeyed(command) == []
    if command.startswith("cd "):
        assert shlex.split(command) == ["cd", folder, "&&", "claude", "--resume", SESSION]
    assert resume_command(Source("claude-code", f"{HOME}/{name}.jsonl", folder), "a") in {"", command}


def imported() -> list[tuple[Source, str, str]]:
    """Every turn of the examples as the formats read it: its source, its id, and a line of its file by its own uuid or number."""
    found = [one for one in find_files([EXAMPLES]) if not one.why]
    return [
        (chunk.conversation.source, turn.turn_id, Path(chunk.conversation.source.file).read_text("utf-8"))
        for one in found
        for chunk in read_file(one)
        for turn in chunk.conversation.turns
    ]


def test_the_line_of_every_turn_of_the_examples_is_one_that_names_it() -> None:
    turns = imported()
    assert len(turns) > 50
    for source, turn_id, text in turns:
        file, _, line = origin_line(source, turn_id).rpartition(":")
        assert file == source.file
        said = text.splitlines()[int(line) - 1]
        if source.format == "claude-code":
            assert f'"uuid":"{turn_id.partition("#")[0]}"' in said.replace('": "', '":"')
        else:
            assert turn_id.startswith(f"{Path(file).name}:{int(line) - 1}")
            assert '"messages"' in said


@pytest.mark.parametrize(
    ("written", "turn_id", "line"),
    [
        ('{"uuid":"a"}\n{"uuid":"b","parentUuid":"a"}\n', "a", 1),
        ('{"parentUuid":"b"}\n{"text":"\\"uuid\\":\\"b\\""}\n{"uuid" : "b"}\n', "b", 3),
        ('{"uuid":"b"}', "b#wrapper", 1),
        ('{"uuid":"b"}', "c", None),
        ('{"id":"b"}', "line-4", 5),
        ('{"id":"b"}', "#2", None),
        ("", "b", None),
    ],
)
def test_the_line_of_a_turn_of_claude_code(written: str, turn_id: str, line: int | None, tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(written)
    told = origin_line(Source("claude-code", str(file)), turn_id)
    assert told == (f"{file}:{line}" if line else str(file))


@pytest.mark.parametrize(
    ("written", "turn_id", "line"),
    [
        ('{"role":"user","content":"x"}\n{"role":"user","content":"y"}\n', "c.jsonl:1", 2),
        ('{"messages":[{"role":"user","content":"x"}]}\n' * 3, "c.jsonl:2:0", 3),
        # Places in a document are no lines.
        ('[\n{"role":"user","content":"x"},\n{"role":"user","content":"y"}\n]\n', "c.jsonl:1", None),
        ('{"role":"user","content":"x"}\n', "named", None),
    ],
)
def test_the_line_of_a_chat_message(written: str, turn_id: str, line: int | None, tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text(written)
    told = origin_line(Source("chat-messages", str(file)), turn_id)
    assert told == (f"{file}:{line}" if line else str(file))


def test_a_file_that_is_not_here_is_named_without_a_line(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.jsonl")
    assert origin_line(Source("claude-code", gone), "b") == gone
    assert origin_line(Source("chat-messages", gone), "gone.jsonl:3") == gone
    assert origin_line(Source("claude-code", str(tmp_path)), "b") == str(tmp_path)
    assert origin_line(Source("unheard-of", gone), "line-3") == gone
    assert origin_line(Source("codex", f"{gone}.zst"), "line-7") == f"{gone}.zst:8"
    assert origin_line(Source("codex", f"{gone}.zst"), "line-7#wrapper") == f"{gone}.zst:8"
    assert origin_line(Source("claude-code", "a\0b\x1b"), "b") == "a␀b␛"
    assert origin_line(Source(), "b") == ""


def test_a_file_that_is_too_large_is_not_looked_through(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    with file.open("wb") as sparse:
        sparse.write(b'{"uuid":"a"}\n')
        sparse.truncate(LARGEST + 1)
    assert origin_line(Source("claude-code", str(file)), "a") == str(file)


@given(st.text(max_size=20), ANY_TEXT)
def test_no_source_is_too_strange(name: str, turn_id: str) -> None:
    for kind in ("claude-code", "codex", "chat-messages"):
        assert obeyed(origin_line(Source(kind, name), turn_id)) == []
