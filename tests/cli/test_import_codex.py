"""`aforesaid import` of Codex sessions against the service itself: what is found afterwards, and what a second import does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from aforesaid import Client, Text, ToolCall
from scripts.running_server import ROOT
from tests.cli.conftest import Command, Ended
from tests.formats.codex_lines import (
    assistant,
    assistant_event,
    event,
    header,
    item,
    made_at,
    rollout,
    turn_begins,
    user,
    user_event,
)
from tests.formats.writing import text_of


@pytest.fixture
def command(service_url: str, piped: Command) -> Callable[..., Ended]:
    """Runs the command line against the session's service."""
    return lambda *arguments: piped(*arguments, environment={"AFORESAID_URL": service_url})


@pytest.fixture
def client(service_url: str) -> Iterator[Client]:
    with Client(service_url, "") as caller:
        yield caller


@pytest.fixture
def folder() -> str:
    """A working directory, and so an agent, that no other test has."""
    return f"/srv/{uuid4().hex[:12]}"


def conversation(folder: str) -> list[dict[str, object]]:
    return [
        header(cwd=folder),
        user("why does the retry loop flood the gateway?", 1),
        user_event("why does the retry loop flood the gateway?", 1),
        item("reasoning", 2, summary=[{"type": "summary_text", "text": "Look at the backoff."}]),
        item("function_call", 2, name="shell", arguments='{"command":["rg","backoff"]}', call_id="c1"),
        item("function_call_output", 3, call_id="c1", output="src/retry.py: backoff without jitter"),
        assistant_event("The backoff has no zigzag jitter.", 4),
        assistant("The backoff has no zigzag jitter.", 4),
    ]


def all_found(client: Client) -> None:
    """Waits until the index has what was imported: an import may run ahead of it, and each page says by how much."""
    next(page for page in iter(lambda: next(client.search("zigzag")), None) if page.turns_pending == 0)


def hits(ended: Ended) -> list[tuple[str, str, str]]:
    """The matches of a search as JSON: agent, conversation and turn."""
    page = json.loads(ended.out)
    return [(hit["agentId"], hit["conversationId"], hit["turnId"]) for hit in page.get("matches", [])]


def test_a_home_is_imported_and_found(command: Callable[..., Ended], client: Client, folder: str, tmp_path: Path) -> None:
    home, main, side = tmp_path / ".codex", made_at(0, uuid4().hex[:12]), made_at(30, uuid4().hex[:12])
    lines = conversation(folder)
    lines[0] = header(main, cwd=folder)
    rollout(home, *lines, session_id=main)
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": main, "depth": 1, "agent_nickname": "Ada"}}}
    told = item("agent_message", 31, author="/root", content=[{"type": "input_text", "text": "find the callers of zigzag"}])
    rollout(home, header(side, 30, cwd=folder, source=spawned), *lines, turn_begins(made_at(31), 31), told, session_id=side)
    (home / "session_index.jsonl").write_text(text_of([{"id": main, "thread_name": "Flooded gateway", "updated_at": "x"}]))
    agent = f"codex-{folder.strip('/').replace('/', '-')}"

    first = command("import", home)
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines()[0] == "2 files: 6 turns added, 0 replaced, 0 unchanged"
    assert "  7 copied from the session that it was forked from" in first.out.splitlines()
    assert "  2 said in the other log as well" in first.out.splitlines()

    all_found(client)
    found = hits(command("search", "zigzag", f"--agent={agent}", "--json"))
    assert found == [(agent, main, "line-6")]
    assert hits(command("search", "zigzag callers", f"--agent={agent}/{side}", "--json")) == [(f"{agent}/{side}", side, "line-10")]
    (kept,) = client.conversations(agent)
    assert (kept.title, kept.source.format, kept.source.project) == ("Flooded gateway", "codex", folder)
    (call,) = [part for turn in client.read(main, agent_id=agent) for part in turn.parts if isinstance(part, ToolCall)]
    assert (call.name, call.arguments, call.call_id) == ("shell", '{"command":["rg","backoff"]}', "c1")
    (sub_agent,) = [one for one in client.agents() if one.agent_id == f"{agent}/{side}"]
    assert (sub_agent.name, sub_agent.parent_agent_id) == ("Ada", agent)

    again = command("import", home)
    assert again.out.splitlines()[0] == "2 files: 0 turns added, 0 replaced, 6 unchanged"
    assert hits(command("search", "zigzag", f"--agent={agent}", "--json")) == found


def test_a_session_that_went_on_adds_what_is_new_and_takes_back_what_was(
    command: Callable[..., Ended], client: Client, folder: str, tmp_path: Path
) -> None:
    session_id = made_at(0, uuid4().hex[:12])
    lines = [header(session_id, cwd=folder), *conversation(folder)[1:]]
    path = rollout(tmp_path, *lines, session_id=session_id)
    agent = f"codex-{folder.strip('/').replace('/', '-')}"
    assert command("import", path).out.splitlines()[0] == "1 file: 5 turns added, 0 replaced, 0 unchanged"
    rollout(tmp_path, *lines, user("now write a quokka test", 10), assistant("Written.", 11), session_id=session_id)
    assert command("import", path).out.splitlines()[0] == "1 file: 2 turns added, 0 replaced, 5 unchanged"
    all_found(client)
    assert len(hits(command("search", "quokka", f"--agent={agent}", "--json"))) == 1

    rolled_back = [
        *lines,
        user("now write a quokka test", 10),
        assistant("Written.", 11),
        event("thread_rolled_back", 12, num_turns=1),
    ]
    rollout(tmp_path, *rolled_back, user("stop", 13), session_id=session_id)
    assert command("import", path).out.splitlines()[0] == "1 file: 1 turn added, 2 replaced, 5 unchanged"
    all_found(client)
    assert hits(command("search", "quokka", f"--agent={agent}", "--json")) == []
    said = [part.text for turn in client.read(session_id, agent_id=agent) for part in turn.parts if isinstance(part, Text)]
    assert said[-3:] == ["(rolled back)", "(rolled back)", "stop"]
    assert command("import", path).out.splitlines()[0] == "1 file: 0 turns added, 0 replaced, 8 unchanged"


def test_the_page_shows_what_an_import_tells(command: Callable[..., Ended]) -> None:
    page = (ROOT / "docs" / "importing.md").read_text("utf-8")
    _, _, shown = page.partition("$ aforesaid import examples/codex --verbose\n")
    told = command("import", ROOT / "examples" / "codex", "--verbose")
    *lines, last = shown.partition("```")[0].splitlines()
    assert told.out.splitlines()[:-1] == lines
    assert told.out.splitlines()[-1].startswith(last.removesuffix("..."))
    assert command("import", ROOT / "examples" / "codex").out.startswith("2 files: 0 turns added, 0 replaced, 16 unchanged\n")
