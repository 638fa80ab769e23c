"""`aforesaid import` against the service itself: what it takes, tells, survives and leaves alone."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from aforesaid import Client, NotFound, Text
from aforesaid._streams import STREAM_TURNS
from scripts.running_server import EXAMPLES
from tests.cli.conftest import SECONDS, Command, Ended, bare, command_line
from tests.conftest import StartServer


@pytest.fixture
def run(service_url: str, piped: Command) -> Callable[..., Ended]:
    """Imports from paths into the session's service."""
    return lambda *arguments: piped("import", *arguments, environment={"AFORESAID_URL": service_url})


@pytest.fixture
def client(service_url: str) -> Iterable[Client]:
    with Client(service_url, "") as caller:
        yield caller


@pytest.fixture
def name() -> str:
    """A file's name, and so an agent, that no other test has."""
    return f"chat-{uuid4().hex[:12]}"


def write_chat(path: Path, texts: Iterable[str], role: str = "user") -> Path:
    """Writes a chat of one message a line: one conversation, named by the path, of the agent that the file's name names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"role": role, "content": text}) + "\n" for text in texts), "utf-8")
    return path


def said(client: Client, agent_id: str) -> list[str]:
    """What an agent's one conversation holds, in order."""
    (conversation,) = client.conversations(agent_id)
    turns = client.read(conversation.conversation_id, agent_id=agent_id)
    return [part.text for turn in turns for part in turn.parts if isinstance(part, Text)]


# What it takes and tells


def test_the_sums_say_what_became_of_files_lines_and_turns(
    run: Callable[..., Ended], client: Client, name: str, tmp_path: Path
) -> None:
    chat = write_chat(tmp_path / f"{name}.jsonl", ["first", "second"])
    with chat.open("ab") as file:
        file.write(b'{"role": "user", "content": "cut o\n{"role": "user", "content": "third"}\n')
    (tmp_path / "notes.txt").write_text("nothing\n")
    (tmp_path / "empty.jsonl").touch()
    first = run(tmp_path)
    told = first.out.splitlines()
    assert told[:2] == ["1 file: 3 turns added, 0 replaced, 0 unchanged", "4 lines: 3 taken, 1 skipped"]
    assert re.fullmatch(r"  1 .*JSON.*", told[2])
    assert told[-3] == "2 files left out:"
    assert sorted(told[-2:]) == [f"  1 empty file: {tmp_path}/empty.jsonl", f"  1 no known format: {tmp_path}/notes.txt"]
    assert (first.code, first.err) == (0, "")
    assert said(client, name) == ["first", "second", "third"]


def test_the_same_again_changes_nothing(run: Callable[..., Ended], client: Client, name: str, tmp_path: Path) -> None:
    chat = write_chat(tmp_path / f"{name}.jsonl", ["first", "second"])
    assert run(chat).out.startswith("1 file: 2 turns added, 0 replaced, 0 unchanged\n")
    revision = [(kept.revision, kept.updated_at) for kept in client.conversations(name)]
    for _ in range(2):
        assert run(chat).out.startswith("1 file: 0 turns added, 0 replaced, 2 unchanged\n")
    assert [(kept.revision, kept.updated_at) for kept in client.conversations(name)] == revision


def test_what_changed_is_taken(run: Callable[..., Ended], client: Client, name: str, tmp_path: Path) -> None:
    chat = write_chat(tmp_path / f"{name}.jsonl", ["first", "second"])
    run(chat)
    write_chat(chat, ["first", "another", "third"])
    assert run(chat).out.startswith("1 file: 1 turn added, 1 replaced, 1 unchanged\n")
    assert said(client, name) == ["first", "another", "third"]


def test_what_is_imported_is_found(run: Callable[..., Ended], client: Client, name: str, tmp_path: Path) -> None:
    word = f"imp{uuid4().hex}"
    run(write_chat(tmp_path / f"{name}.jsonl", [f"one {word}", "two"]))
    # An import may run ahead of the index; the page says by how much.
    page = next(page for page in iter(lambda: next(client.search(word)), None) if page.turns_pending == 0)
    assert [(hit.agent_id, hit.seq, hit.snippet) for hit in page.matches] == [(name, 0, f"one ⟦{word}⟧")]


def test_sessions_of_claude_code_bring_their_sub_agents(piped: Command, start_server: StartServer) -> None:
    server = start_server()
    ended = piped("import", EXAMPLES, "--url", server.url)
    assert (ended.code, ended.err) == (0, "")
    lines, taken, skipped = re.findall(r"\d+", ended.out.splitlines()[1].replace(",", ""))
    assert int(lines) == int(taken) + int(skipped)
    with Client(server.url, "") as client:
        agents = list(client.agents())
        kept = sum(conversation.turn_count for conversation in client.conversations())
    assert f"{kept} turns added" in ended.out
    assert [agent.agent_id for agent in agents if agent.parent_agent_id] != []
    assert {agent.parent_agent_id for agent in agents} - {""} <= {agent.agent_id for agent in agents}


def test_a_turn_of_many_megabytes_is_taken(run: Callable[..., Ended], client: Client, name: str, tmp_path: Path) -> None:
    texts = ["small", "x " * (5 * 1024 * 1024), "small again"]
    ended = run(write_chat(tmp_path / f"{name}.jsonl", texts))
    assert (ended.code, ended.err) == (0, "")
    assert [len(text) for text in said(client, name)] == [len(text) for text in texts]


# What goes wrong


def test_a_path_that_is_not_there(run: Callable[..., Ended], client: Client, name: str, tmp_path: Path) -> None:
    chat = write_chat(tmp_path / f"{name}.jsonl", ["first"])
    ended = run(chat, tmp_path / "gone")
    assert (ended.code, ended.err) == (1, f"aforesaid: no such file or folder: '{tmp_path}/gone'\n")
    with pytest.raises(NotFound):
        list(client.conversations(name))


def test_a_file_that_cannot_be_opened_is_told_and_the_others_are_taken(
    run: Callable[..., Ended], client: Client, name: str, tmp_path: Path
) -> None:
    write_chat(tmp_path / f"{name}.jsonl", ["first"])
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    ended = run(tmp_path)
    assert (ended.code, ended.err) == (1, f"aforesaid: {tmp_path}/dangling.jsonl: cannot be read: no such file or directory\n")
    assert said(client, name) == ["first"]


def test_nothing_to_import(run: Callable[..., Ended], tmp_path: Path) -> None:
    ended = run(tmp_path)
    assert (ended.code, ended.err) == (1, "aforesaid: nothing to import: no file holds transcripts of a known format\n")


def test_a_deleted_conversation_stays_deleted_and_that_is_told(
    run: Callable[..., Ended], client: Client, name: str, tmp_path: Path
) -> None:
    chat = write_chat(tmp_path / f"{name}.jsonl", ["first", "second"])
    run(chat)
    (conversation,) = client.conversations(name)
    client.delete(conversation.conversation_id, agent_id=name)
    ended = run(chat)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0] == "1 file: 0 turns added, 0 replaced, 0 unchanged"
    assert "2 turns left out by the service:\n  2 the conversation is tombstoned\n" in ended.out
    assert list(client.conversations(name)) == []


def test_what_is_not_the_callers_to_write_is_told(run: Callable[..., Ended], client: Client, name: str, tmp_path: Path) -> None:
    mine, others = write_chat(tmp_path / f"{name}.jsonl", ["first"]), write_chat(tmp_path / f"{name}-other.jsonl", ["a", "b"])
    client.append("c", [], agent_id=f"{name}-other")
    ended = run(mine, others, "--as", name)
    assert ended.code == 1
    assert ended.out.splitlines()[0] == "2 files: 1 turn added, 0 replaced, 0 unchanged"
    assert re.fullmatch(rf"aforesaid: 2 turns of conversation \S+ of agent {name}-other not taken: .*\n", ended.err)
    assert said(client, name) == ["first"]


# A bar on a terminal


def test_a_terminal_gets_a_bar_that_is_taken_away_and_the_sums(
    service_url: str, terminal: Command, name: str, tmp_path: Path
) -> None:
    chat = write_chat(tmp_path / f"{name}.jsonl", ["word " * 1000] * 1500)
    ended = terminal("import", chat, "--url", service_url)
    assert ended.code == 0
    assert ended.out.startswith("1 file: 1,500 turns added, 0 replaced, 0 unchanged\n")
    assert "\x1b" not in ended.out
    size = chat.stat().st_size / 1_000_000
    assert f"{name}.jsonl" in ended.err
    assert f"/{size:.1f} MB" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", ended.err)
    # The cursor comes back, and the line is erased.
    assert ended.err.rindex("\x1b[?25h") > ended.err.rindex("\x1b[?25l")
    assert ended.err.rstrip().endswith("\x1b[2K")


def test_a_pipe_gets_no_bar(run: Callable[..., Ended], name: str, tmp_path: Path) -> None:
    assert run(write_chat(tmp_path / f"{name}.jsonl", ["first"])).err == ""


# Stopped


def more_than_a_stream(client: Client, agent_id: str) -> None:
    """Returns once so much of an agent is there that the first stream must have been acknowledged."""
    while True:
        try:
            if any(kept.turn_count > STREAM_TURNS for kept in client.conversations(agent_id)):
                return
        except NotFound:
            continue


def acknowledged(out: str) -> int:
    """How many turns the sums of an import that was cut short claim; they must claim the same twice, and no line as taken."""
    first, second = out.splitlines()
    (added,) = re.fullmatch(r"cut short: ([\d,]+) turns added, 0 replaced, 0 unchanged", first).groups()  # type: ignore[union-attr]
    assert re.fullmatch(rf"[\d,]+ lines of 1 file read, of which {added} turns acknowledged; run it again to go on", second)
    return int(added.replace(",", ""))


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGINT])
def test_an_import_that_was_stopped_goes_on_without_taking_anything_twice(
    with_signal: signal.Signals, service_url: str, run: Callable[..., Ended], client: Client, name: str, tmp_path: Path
) -> None:
    texts = [f"turn {number} {'word ' * 100}" for number in range(9_000)]
    chat = write_chat(tmp_path / f"{name}.jsonl", texts)
    process = subprocess.Popen(
        command_line(("import", chat, "--url", service_url)),
        env=bare(None),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    more_than_a_stream(client, name)
    process.send_signal(with_signal)
    out, err = process.communicate(timeout=SECONDS)
    kept = len(said(client, name))
    assert 0 < kept < len(texts)
    if with_signal is signal.SIGINT:
        assert (process.returncode, err) == (130, "aforesaid: interrupted\n")
        assert 0 < acknowledged(out) <= kept
    else:
        assert (process.returncode, out) == (-signal.SIGKILL, "")
    again = run(chat)
    assert again.code == 0
    added, unchanged = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) (?:turns? added|unchanged)", again.out))
    assert added + unchanged == len(texts)
    assert said(client, name) == texts


def test_a_service_that_goes_away_is_told_with_what_was_kept(
    start_server: StartServer, piped: Command, name: str, tmp_path: Path
) -> None:
    server = start_server()
    chat = write_chat(tmp_path / f"{name}.jsonl", [f"turn {number} {'word ' * 100}" for number in range(9_000)])
    process = subprocess.Popen(
        command_line(("import", chat, "--url", server.url)),
        env=bare(None),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with Client(server.url, "") as client:
        more_than_a_stream(client, name)
    server.kill()
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert 0 < acknowledged(out) < 9_000
    assert re.fullmatch(rf"aforesaid: cannot reach {server.url}: [^;\n]+\n", err)


def test_an_import_that_is_stopped_before_anything_was_sent_tells_no_sums(name: str, tmp_path: Path) -> None:
    chat = write_chat(tmp_path / f"{name}.jsonl", ["first"])
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        process = subprocess.Popen(
            command_line(("import", chat, "--url", url)), env=bare(None), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(10).startswith(b"POST")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=SECONDS / 2)
    assert (process.returncode, out, err) == (130, "", "aforesaid: interrupted\n")
