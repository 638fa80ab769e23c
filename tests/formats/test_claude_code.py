"""Claude Code sessions: which lines become which turns of whom."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from aforesaid.formats import Replays, find_files, read_file
from aforesaid.formats.claude_code import merged, speaks
from aforesaid.model import Agent, Conversation, File, Part, Reasoning, Source, Text, ToolCall, ToolResult, Turn
from tests.formats.writing import PROJECT, SESSION, chunks_of, line, report_of, session, text_of, turns_of

NINE = 1_772_442_000_000_000
"""2026-03-02 09:00:00 UTC, the minute of every line."""

CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls -la", "timeout": 5}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def said(turn: Turn) -> tuple[str, str, tuple[Part, ...]]:
    return turn.turn_id, turn.role, turn.parts


def test_a_session_is_a_conversation_of_its_projects_agent(tmp_path: Path) -> None:
    path = session(
        tmp_path,
        {"type": "custom-title", "customTitle": "The  slow\nimport", "sessionId": SESSION},
        line("user", "why is it slow?", "u1", at=1),
        line("assistant", [{"type": "text", "text": "I'll look."}], "a1", at=2, message_id="msg_1"),
    )
    (chunk,) = chunks_of(path)
    assert chunk.agent == Agent(PROJECT, "shop")
    assert chunk.conversation == Conversation(
        SESSION,
        PROJECT,
        "The slow import",
        (
            Turn("user", (Text("why is it slow?"),), "u1", NINE + 1_000_000),
            Turn("assistant", (Text("I'll look."),), "a1", NINE + 2_000_000),
        ),
        Source("claude-code", str(path), "/srv/shop"),
    )


@pytest.mark.parametrize(
    ("record", "role", "parts"),
    [
        pytest.param(line("user", "hello"), "user", (Text("hello"),), id="a prompt"),
        pytest.param(
            line("user", [{"type": "text", "text": "a"}, "b", {"type": "text", "text": " "}]),
            "user",
            (Text("a"), Text("b")),
            id="blocks",
        ),
        pytest.param(
            line("user", [IMAGE, {"type": "text", "text": "see"}]), "user", (File("image/png"), Text("see")), id="an image"
        ),
        pytest.param(line("user", [RESULT]), "tool", (ToolResult("a.txt", "toolu_1"),), id="a tool result"),
        pytest.param(
            line("user", [{**RESULT, "content": ""}]), "tool", (ToolResult("", "toolu_1"),), id="a tool that said nothing"
        ),
        pytest.param(
            line("user", [{**RESULT, "is_error": True}]), "tool", (ToolResult("a.txt", "toolu_1", is_error=True),), id="a failure"
        ),
        pytest.param(
            line("user", [{**RESULT, "content": [{"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}]}]),
            "tool",
            (ToolResult("a\nb", "toolu_1"), File("image/png")),
            id="a result of blocks",
        ),
        pytest.param(
            line("user", [{**RESULT, "content": {"rows": [1, 2.50]}}]),
            "tool",
            (ToolResult('{"rows":[1,2.5]}', "toolu_1", is_json=True),),
            id="a result of JSON",
        ),
        pytest.param(
            line("user", [RESULT, {"type": "text", "text": "no, the other folder"}]),
            "user",
            (ToolResult("a.txt", "toolu_1"), Text("no, the other folder")),
            id="a result and a word of the user",
        ),
        pytest.param(line("user", [RESULT], isMeta=True), "tool", (ToolResult("a.txt", "toolu_1"),), id="a result called meta"),
        pytest.param(
            line("user", "Base directory: /skills", isMeta=True), "system", (Text("Base directory: /skills"),), id="a meta line"
        ),
        pytest.param(
            line("user", "We had agreed on tabs.", isCompactSummary=True),
            "system",
            (Text("We had agreed on tabs."),),
            id="a compaction",
        ),
        pytest.param(
            line("user", "<command-name>/exit</command-name>"),
            "system",
            (Text("<command-name>/exit</command-name>"),),
            id="a wrapper",
        ),
        pytest.param(
            line("user", "Stop hook feedback:\nno", promptSource="typed"), "user", (Text("Stop hook feedback:\nno"),), id="typed"
        ),
        pytest.param(
            line("user", "Stop hook feedback:\nno", origin={"kind": "human"}),
            "user",
            (Text("Stop hook feedback:\nno"),),
            id="by a person",
        ),
        pytest.param(
            line("assistant", [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "Yes."}, CALL]),
            "assistant",
            (Reasoning("Hm."), Text("Yes."), ToolCall("Bash", '{"command":"ls -la","timeout":5}', "toolu_1")),
            id="an answer",
        ),
        pytest.param(line("assistant", "Plain."), "assistant", (Text("Plain."),), id="an answer as a string"),
        pytest.param(
            line("assistant", [{**CALL, "input": {"text": "naïve 記憶", "n": 1e-7, "none": None}}]),
            "assistant",
            (ToolCall("Bash", '{"text":"naïve 記憶","n":1e-07,"none":null}', "toolu_1"),),
            id="arguments unescaped, in order",
        ),
        pytest.param(
            line("assistant", [{"type": "text", "text": "API Error: 529"}], isApiErrorMessage=True),
            "system",
            (Text("API Error: 529"),),
            id="an error",
        ),
        pytest.param(
            line("assistant", [{"type": "text", "text": "No response requested."}], message_model="<synthetic>"),
            "system",
            (Text("No response requested."),),
            id="an answer that the program made up",
        ),
        pytest.param(
            {**line("attachment"), "attachment": {"type": "queued_command", "prompt": "and the tests?", "commandMode": "prompt"}},
            "user",
            (Text("and the tests?"),),
            id="typed while the agent worked",
        ),
        pytest.param(
            {**line("attachment"), "attachment": {"type": "queued_command", "prompt": [{"type": "text", "text": "see"}, IMAGE]}},
            "user",
            (Text("see"), File("image/png")),
            id="typed while the agent worked, with an image",
        ),
        pytest.param(
            {**line("system"), "content": "Conversation compacted", "subtype": "compact_boundary"},
            "system",
            (Text("Conversation compacted"),),
            id="notice",
        ),
        pytest.param(
            {"type": "tool_use", "name": "bash", "input": {"command": "ls"}},
            "assistant",
            (ToolCall("bash", '{"command":"ls"}'),),
            id="an old call",
        ),
        pytest.param({"type": "tool_result", "output": "a.txt"}, "tool", (ToolResult("a.txt"),), id="an old result"),
        pytest.param(
            {"message": {"role": "user", "content": "no type"}}, "user", (Text("no type"),), id="an old line without a type"
        ),
    ],
)
def test_one_line(tmp_path: Path, record: dict[str, Any], role: str, parts: tuple[Part, ...]) -> None:
    (_, turn) = turns_of(session(tmp_path, line("user", "first", "first"), record))
    assert (turn.role, turn.parts) == (role, parts)


def test_a_wrapper_in_front_of_a_prompt_is_a_turn_of_its_own_and_hides_nothing_else(tmp_path: Path) -> None:
    opened = "<ide_opened_file>The user opened src/main.py.</ide_opened_file>"
    reminder = "<system-reminder>Tabs.</system-reminder>"
    path = session(
        tmp_path,
        line("user", f"{opened}\nwhy is it slow?", "u1"),
        line("user", [{"type": "text", "text": reminder}, {"type": "text", "text": "and now?"}], "u2"),
        line("user", [RESULT, {"type": "text", "text": reminder}], "u3"),
    )
    assert [said(turn) for turn in turns_of(path)] == [
        ("u1#wrapper", "system", (Text(opened),)),
        ("u1", "user", (Text("why is it slow?"),)),
        ("u2#wrapper", "system", (Text(reminder),)),
        ("u2", "user", (Text("and now?"),)),
        ("u3#wrapper", "system", (Text(reminder),)),
        ("u3", "tool", (ToolResult("a.txt", "toolu_1"),)),
    ]


TEXT, THOUGHT = Text("I'll look."), Reasoning("Where to begin?")
LS, CAT = ToolCall("Bash", '{"command":"ls"}', "t1"), ToolCall("Bash", '{"command":"cat"}', "t2")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([THOUGHT], [TEXT], [THOUGHT, TEXT], id="one block a line"),
        pytest.param([THOUGHT], [THOUGHT, TEXT], [THOUGHT, TEXT], id="a growing list"),
        pytest.param([THOUGHT, TEXT], [THOUGHT], [THOUGHT, TEXT], id="a shorter snapshot after the longer one"),
        pytest.param([Text("I'll")], [TEXT], [TEXT], id="a growing text"),
        pytest.param([THOUGHT, Text("I'll")], [THOUGHT, TEXT, LS], [THOUGHT, TEXT, LS], id="both grow"),
        pytest.param([THOUGHT, Text("I'll")], [TEXT], [THOUGHT, TEXT], id="a growing block alone"),
        pytest.param([LS], [CAT], [LS, CAT], id="two calls"),
        pytest.param([ToolCall("Bash", "{}", "t1")], [LS], [LS], id="a call whose input grows"),
        pytest.param([TEXT, LS], [LS, CAT], [TEXT, LS, CAT], id="snapshots that overlap"),
        pytest.param([TEXT, LS], [TEXT, LS], [TEXT, LS], id="the same twice"),
        pytest.param([TEXT], [Reasoning("I'll look.")], [TEXT, Reasoning("I'll look.")], id="the same text in another kind"),
        pytest.param([File("image/png")], [File("image/png"), TEXT], [File("image/png"), TEXT], id="files"),
    ],
)
def test_lines_of_one_answer(before: list[Part], after: list[Part], expected: list[Part]) -> None:
    assert merged(before, after) == expected


def answer(block: dict[str, Any], uuid: str, message_id: str, **fields: Any) -> dict[str, Any]:
    return line("assistant", [block], uuid, message_id=message_id, **fields)


def test_the_lines_of_one_answer_are_one_turn_known_by_the_first(tmp_path: Path) -> None:
    other = {**CALL, "id": "toolu_2"}
    path = session(
        tmp_path,
        answer({"type": "thinking", "thinking": "", "signature": "x"}, "a0", "msg_1", at=1),
        answer({"type": "thinking", "thinking": "Hm."}, "a1", "msg_1", at=2),
        answer(CALL, "a2", "msg_1", at=3),
        line("user", [RESULT], "u1", at=4),
        answer(other, "a3", "msg_1", at=5),
        answer({"type": "text", "text": "Done."}, "a4", "msg_2", at=6),
    )
    arguments = '{"command":"ls -la","timeout":5}'
    assert [said(turn) for turn in turns_of(path)] == [
        ("a1", "assistant", (Reasoning("Hm."), ToolCall("Bash", arguments, "toolu_1"), ToolCall("Bash", arguments, "toolu_2"))),
        ("u1", "tool", (ToolResult("a.txt", "toolu_1"),)),
        ("a4", "assistant", (Text("Done."),)),
    ]
    assert (report_of(path).lines, report_of(path).taken, report_of(path).turns) == (6, 5, 3)


@pytest.mark.parametrize("chunk_bytes", [1, 100, 10_000])
def test_lines_of_answers_may_cross_but_not_for_ever(tmp_path: Path, chunk_bytes: int) -> None:
    def text(number: int, message_id: str) -> dict[str, Any]:
        return answer({"type": "text", "text": f"{number} of {message_id}"}, f"a{number}", message_id)

    ids = ["x", "y", "x", "y", "p", "q", "x", "r", "s", "x"]
    path = session(tmp_path, *(text(number, message_id) for number, message_id in enumerate(ids)))
    turns = [turn for chunk in chunks_of(path, chunk_bytes=chunk_bytes) for turn in chunk.conversation.turns]
    assert [(turn.turn_id, len(turn.parts)) for turn in turns] == [
        ("a0", 3),
        ("a1", 2),
        ("a4", 1),
        ("a5", 1),
        ("a7", 1),
        ("a8", 1),
        ("a9", 1),
    ]


@pytest.mark.parametrize("chunk_bytes", [1, 100, 10_000])
def test_an_answer_that_goes_on_is_held_back(tmp_path: Path, chunk_bytes: int) -> None:
    path = session(
        tmp_path,
        answer({"type": "text", "text": "x" * 200}, "a1", "msg_1"),
        answer(CALL, "a2", "msg_2"),
        line("user", [RESULT], "u1"),
        answer({**CALL, "id": "toolu_2"}, "a3", "msg_2"),
        line("user", "thanks", "u2"),
    )
    turns = [turn for chunk in chunks_of(path, chunk_bytes=chunk_bytes) for turn in chunk.conversation.turns]
    assert [(turn.turn_id, len(turn.parts)) for turn in turns] == [("a1", 1), ("a2", 2), ("u1", 1), ("u2", 1)]


def test_chunks_are_small_and_in_order(tmp_path: Path) -> None:
    path = session(tmp_path, *(line("user", f"{number:04d}" + "é" * 48, f"u{number}") for number in range(100)))
    chunks = chunks_of(path, chunk_bytes=500)
    assert [len(chunk.conversation.turns) for chunk in chunks] == [5] * 20
    assert [turn.turn_id for chunk in chunks for turn in chunk.conversation.turns] == [f"u{number}" for number in range(100)]
    assert {chunk.conversation.conversation_id for chunk in chunks} == {SESSION}


def test_a_file_is_read_while_its_chunks_are_used(tmp_path: Path) -> None:
    path = session(tmp_path, *(line("user", "x" * 1000, f"u{number}") for number in range(8000)))
    (found,) = find_files([path])
    told: list[int] = []
    size_of_chunk = 2 << 20
    ahead = 0
    handed_out = 0
    for chunk in read_file(found, on_bytes=told.append):
        handed_out += sum(len(part.text) for turn in chunk.conversation.turns for part in turn.parts if isinstance(part, Text))
        ahead = max(ahead, sum(told) - handed_out * found.size // (8000 * 1000))
    assert (handed_out, sum(told)) == (8000 * 1000, found.size)
    assert ahead < size_of_chunk


# Sub-agents


def test_a_sub_agents_file_is_an_agent_of_its_own_with_its_parent_named(tmp_path: Path) -> None:
    session(tmp_path, line("user", "look around", "u1"))
    folder = tmp_path / PROJECT / SESSION / "subagents"
    folder.mkdir(parents=True)
    record = line("user", "find the callers", "s1", isSidechain=True, agentId="a7")
    (folder / "agent-a7.jsonl").write_text(text_of([record]))
    (folder / "agent-a7.meta.json").write_text('{"agentType": "Explore", "description": "Find callers", "toolUseId": "toolu_1"}')
    main, side = chunks_of(tmp_path)
    assert main.agent == Agent(PROJECT, "shop")
    assert side.agent == Agent(f"{PROJECT}/agent-a7", "Explore", parent_agent_id=PROJECT)
    assert (side.conversation.conversation_id, side.conversation.title) == ("agent-a7", "Find callers")
    assert side.conversation.source.project == "/srv/shop"
    assert [said(turn) for turn in side.conversation.turns] == [("s1", "user", (Text("find the callers"),))]


@pytest.mark.parametrize(
    ("place", "agent_id"),
    [
        pytest.param(f"{SESSION}/subagents/agent-a7.jsonl", f"{PROJECT}/agent-a7", id="in the session's folder"),
        pytest.param("agent-a7.jsonl", f"{PROJECT}/agent-a7", id="beside the sessions"),
        pytest.param(f"{SESSION}/subagents/workflows/wf1/agent-a7.jsonl", f"{PROJECT}/wf1/agent-a7", id="in a workflow"),
    ],
)
@pytest.mark.parametrize("meta", ["", "{broken", "[]"])
def test_layouts_of_sub_agents(tmp_path: Path, place: str, agent_id: str, meta: str) -> None:
    path = tmp_path / PROJECT / place
    path.parent.mkdir(parents=True)
    path.write_text(text_of([line("user", "find", "s1", isSidechain=True, agentId="a7")]))
    if meta:
        path.with_name("agent-a7.meta.json").write_text(meta)
    (chunk,) = chunks_of(path)
    assert (chunk.agent.agent_id, chunk.agent.parent_agent_id) == (agent_id, PROJECT)
    assert chunk.conversation.conversation_id == "agent-a7"


def test_a_description_that_is_no_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / PROJECT / SESSION / "subagents" / "agent-a7.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(text_of([line("user", "find", "s1", isSidechain=True, agentId="a7")]))
    os.mkfifo(path.with_name("agent-a7.meta.json"))
    (chunk,) = chunks_of(path)
    assert (chunk.agent.agent_id, chunk.agent.name) == (f"{PROJECT}/agent-a7", "agent-a7")


def test_side_chains_in_a_sessions_own_file_are_told_apart(tmp_path: Path) -> None:
    def side(uuid: str, parent: str | None, text: str, **fields: Any) -> dict[str, Any]:
        return line("user", text, uuid, parentUuid=parent, **{"isSidechain": True, **fields})

    path = session(
        tmp_path,
        line("user", "look around", "u1"),
        side("b1", None, "find b"),
        side("c1", None, "find c"),
        side("b2", "b1", "b goes on"),
        side("d1", "u1", "d hangs on the main thread"),
        side("c2", "c1", "c goes on"),
        line("user", "well?", "u2"),
        side("e1", None, "e is named", agentId="e7"),
        side("e2", "nowhere", "e goes on", agentId="e7"),
        side("b3", "b2", "b ends"),
    )
    by_agent = {chunk.agent.agent_id: [turn.turn_id for turn in chunk.conversation.turns] for chunk in chunks_of(path)}
    assert by_agent == {
        PROJECT: ["u1", "u2"],
        f"{PROJECT}/sidechain-b1": ["b1", "b2", "b3"],
        f"{PROJECT}/sidechain-c1": ["c1", "c2"],
        f"{PROJECT}/sidechain-d1": ["d1"],
        f"{PROJECT}/agent-e7": ["e1", "e2"],
    }


def test_chains_in_a_loop_end(tmp_path: Path) -> None:
    records = [
        line("user", "x", uuid, isSidechain=True, parentUuid=parent) for uuid, parent in (("a", "b"), ("b", "a"), ("c", "c"))
    ]
    agents = [chunk.agent.agent_id for chunk in chunks_of(session(tmp_path, line("user", "x", "u1"), *records))]
    assert agents == [PROJECT, f"{PROJECT}/sidechain-a", f"{PROJECT}/sidechain-c"]


# Copies


def test_all_branches_are_kept_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = session(
        tmp_path,
        line("user", "first try", "u1", parentUuid=None),
        line("user", "second try", "u2", parentUuid=None),
        line("user", "back to the first", "u3", parentUuid="u1"),
    )
    assert [turn.turn_id for turn in turns_of(path)] == ["u1", "u2", "u3"]


def test_a_repeated_line_is_skipped_and_another_text_under_its_id_is_kept(tmp_path: Path) -> None:
    path = session(
        tmp_path,
        line("user", "once", "u1", at=1),
        line("user", "once", "u1", at=2, sessionId="other"),
        line("user", "another", "u1", at=3),
        line("user", "once", "u2", at=4),
    )
    assert [(turn.turn_id, turn.parts) for turn in turns_of(path)] == [
        ("u1", (Text("once"),)),
        ("u1#2", (Text("another"),)),
        ("u2", (Text("once"),)),
    ]
    report = report_of(path)
    assert dict(report.skipped) == {"repeated line": 1}
    assert dict(report.notes) == {"uuid used again with another text": 1}


def test_lines_of_an_earlier_session_are_skipped_where_a_later_one_replays_them(tmp_path: Path) -> None:
    shared = [line("user", f"line {at}", f"u{at}", at=at) for at in range(3)]
    # The copy's name sorts first: it is the times that tell which was there before.
    session(tmp_path, *shared, name="zzz")
    session(tmp_path, *({**record, "sessionId": "aaa"} for record in shared), line("user", "and on", "u9", at=9), name="aaa")
    replays = Replays()
    readings = [read_file(found, replays=replays) for found in find_files([tmp_path])]
    turns = [[turn.turn_id for chunk in reading for turn in chunk.conversation.turns] for reading in readings]
    assert turns == [["u0", "u1", "u2"], ["u9"]]
    assert dict(readings[1].report.skipped) == {"replayed from an earlier session": 3}
    assert (readings[0].report.taken, readings[1].report.lines) == (3, 4)
    # Read again in the same run, a file's own lines are its own.
    assert [turn.turn_id for chunk in readings[0] for turn in chunk.conversation.turns] == ["u0", "u1", "u2"]


def test_the_same_line_in_another_project_is_no_copy(tmp_path: Path) -> None:
    session(tmp_path, line("user", "hello", "u1"), project="-srv-shop")
    session(tmp_path, line("user", "hello", "u1"), project="-srv-other")
    assert [turn.turn_id for turn in turns_of(tmp_path)] == ["u1", "u1"]


# Titles, names, times, ids


@pytest.mark.parametrize(
    ("records", "title"),
    [
        pytest.param([], "", id="none"),
        pytest.param([{"type": "ai-title", "aiTitle": "A"}, {"type": "ai-title", "aiTitle": "B"}], "B", id="the last"),
        pytest.param(
            [{"type": "custom-title", "customTitle": "A"}, {"type": "ai-title", "aiTitle": "B"}],
            "A",
            id="a person's before a model's",
        ),
        pytest.param(
            [{"type": "summary", "summary": "S", "leafUuid": "gone"}, {"type": "ai-title", "aiTitle": "B"}],
            "B",
            id="a title before a summary",
        ),
        pytest.param([{"type": "summary", "summary": "S", "leafUuid": "gone"}], "S", id="a summary"),
        pytest.param([{"type": "summary", "summary": "S"}], "S", id="a summary without its leaf"),
        pytest.param(
            [
                {"type": "summary", "summary": "Ours", "leafUuid": "u1"},
                {"type": "summary", "summary": "Theirs", "leafUuid": "gone"},
            ],
            "Ours",
            id="the summary of this session before that of another one",
        ),
        pytest.param([{"sessionId": SESSION, "aiTitle": "Late type", "type": "ai-title"}], "Late type", id="its type comes last"),
        pytest.param([{"type": "ai-title", "aiTitle": " "}], "", id="a blank one is none"),
    ],
)
def test_titles(tmp_path: Path, records: list[dict[str, Any]], title: str) -> None:
    path = session(tmp_path, *records, line("user", "hello", "u1"))
    assert [chunk.conversation.title for chunk in chunks_of(path)] == [title]


def test_every_chunk_has_the_title_that_comes_last_in_the_file(tmp_path: Path) -> None:
    path = session(tmp_path, line("user", "a", "u1"), line("user", "b", "u2"), {"type": "ai-title", "aiTitle": "Late"})
    assert [chunk.conversation.title for chunk in chunks_of(path, chunk_bytes=1)] == ["Late", "Late"]
    assert report_of(path).taken == 3


@pytest.mark.parametrize(
    ("project", "directories", "name", "cwd"),
    [
        pytest.param("-srv-shop", ["/srv/shop"], "shop", "/srv/shop", id="the directory"),
        pytest.param("-srv-shop", ["/srv/shop/web", "/srv/shop"], "shop", "/srv/shop", id="the one that the folder is named after"),
        pytest.param("shop", ["/srv/a", "/srv/b"], "a", "/srv/a", id="the first otherwise"),
        pytest.param("C--work-shop", ["C:\\work\\shop"], "shop", "C:\\work\\shop", id="of Windows"),
        pytest.param(
            "-srv-café", ["/srv/caf\u00e9 \U0001f600"], "caf\u00e9 \U0001f600", "/srv/caf\u00e9 \U0001f600", id="in any script"
        ),
        pytest.param("-srv-shop", [], "-srv-shop", "", id="none"),
        pytest.param("-srv-x", ["/" + "x" * 999], "x" * 300, "/" + "x" * 999, id="longer than a name may be"),
    ],
)
def test_names_of_agents(tmp_path: Path, project: str, directories: list[str], name: str, cwd: str) -> None:
    records = [line("user", "hello", f"u{at}", cwd=directory) for at, directory in enumerate(directories)]
    nowhere = {key: value for key, value in line("user", "hello", "u9").items() if key != "cwd"}
    (chunk,) = chunks_of(session(tmp_path, nowhere, *records, project=project))
    assert (chunk.agent.agent_id, chunk.agent.name, chunk.conversation.source.project) == (project, name, cwd)


def test_times_without_one_are_those_of_the_line_before_or_of_the_file(tmp_path: Path) -> None:
    records = [line("user", "x", f"u{at}", at=at) for at in range(3)]
    records[0]["timestamp"] = "[not a time]"
    del records[2]["timestamp"]
    path = session(tmp_path, *records)
    os.utime(path, ns=(0, 1_500_000_000_123_456_789))
    assert [turn.created_at for turn in turns_of(path)] == [1_500_000_000_123_456, NINE + 1_000_000, NINE + 1_000_000]


@pytest.mark.parametrize("uuid", [None, "", " ", 7, "a\0b", "x" * 201, ["u"]])
def test_a_line_without_a_usable_id_is_known_by_its_number(tmp_path: Path, uuid: object) -> None:
    path = session(tmp_path, line("user", "a", "u1"), {**line("user", "b"), "uuid": uuid})
    assert [turn.turn_id for turn in turns_of(path)] == ["u1", "line-1"]


# Side files


def persisted(given: str) -> str:
    return (
        f"<persisted-output>\nOutput too large. Full output saved to: {given}\n\nPreview (first 2KB):\nfirst\n</persisted-output>"
    )


def test_a_long_tool_result_is_put_back_from_its_side_file(tmp_path: Path) -> None:
    elsewhere = f"/home/dev/.claude/projects/{PROJECT}/{SESSION}/tool-results/toolu_1.txt"
    path = session(
        tmp_path,
        line("user", [{**RESULT, "content": persisted(elsewhere)}], "u1"),
        line("user", [{**RESULT, "content": "Output too large."}], "u2", toolUseResult={"persistedOutputPath": elsewhere}),
        line("user", [{**RESULT, "content": f"<persisted-output> is a tag saved to: {elsewhere}"}], "u3"),
        line("user", "saved to: nothing", "u4", toolUseResult={"persistedOutputPath": elsewhere}),
    )
    kept = tmp_path / PROJECT / SESSION / "tool-results" / "toolu_1.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("first\nsecond é\n")
    assert [turn.parts for turn in turns_of(path)] == [
        (ToolResult("first\nsecond é\n", "toolu_1"),),
        (ToolResult("first\nsecond é\n", "toolu_1"),),
        (ToolResult("first\nsecond é\n", "toolu_1"),),
        (Text("saved to: nothing"),),
    ]
    found = {str(found.path): found.why for found in find_files([tmp_path])}
    assert found[str(kept)] == "tool result: read with its session"


@pytest.mark.parametrize(
    "given", ["../../../secret.txt", "/etc/passwd", "gone.txt", "", "a\0b", "C:\\x\\secret.txt", "link.txt", ".", ".."]
)
def test_nothing_outside_of_the_sessions_folder_is_read(tmp_path: Path, given: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    path = session(
        tmp_path, line("user", [{**RESULT, "content": persisted(given)}], "u1", toolUseResult={"persistedOutputPath": given})
    )
    folder = tmp_path / PROJECT / SESSION / "tool-results"
    folder.mkdir(parents=True)
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    assert [turn.parts for turn in turns_of(path)] == [(ToolResult(persisted(given), "toolu_1"),)]
    assert list(report_of(path).notes) == ["tool result kept in a file that is not in the session's folder"]


def test_a_side_file_that_is_no_text_is_left_where_it_is(tmp_path: Path) -> None:
    path = session(tmp_path, line("user", [{**RESULT, "content": persisted("x.bin")}], "u1"))
    kept = tmp_path / PROJECT / SESSION / "tool-results" / "x.bin"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"\x89PNG\0\0")
    assert turns_of(path)[0].parts == (ToolResult(persisted("x.bin"), "toolu_1"),)
    assert dict(report_of(path).notes) == {"tool result kept in a file that is no text": 1}


def test_the_side_files_of_a_sub_agent_lie_in_the_sessions_folder(tmp_path: Path) -> None:
    folder = tmp_path / PROJECT / SESSION
    (folder / "subagents").mkdir(parents=True)
    (folder / "tool-results").mkdir()
    (folder / "tool-results" / "x.txt").write_text("whole")
    path = folder / "subagents" / "agent-a7.jsonl"
    path.write_text(text_of([line("user", [{**RESULT, "content": persisted("x.txt")}], "s1", isSidechain=True)]))
    assert turns_of(path)[0].parts == (ToolResult("whole", "toolu_1"),)


# Trouble


def test_trouble_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / PROJECT / f"{SESSION}.jsonl"
    path.parent.mkdir()
    good = [json.dumps(line("user", f"text {at}", f"u{at}", at=at)).encode() for at in range(6)]
    path.write_bytes(
        b"\xef\xbb\xbf"
        + good[0]
        + b"\r\n"
        + good[1][:-20]
        + b"\n\n"
        + b"\0" * 512
        + b"\n"
        + b"\0" * 512
        + good[2]
        + b"\n42\n"
        + good[3].replace(b"text 3", b"text \\ud83c")
        + b"\n"
        + b'{"type": "mode"}\n{"type": "user"}\n{"type": "a new kind of line that nobody knows yet, with a very long name"}\n{}\n'
        + good[4]
        + b"\n"
        + good[5][:40]
    )
    assert [turn.parts for turn in turns_of(path)] == [
        (Text("text 0"),),
        (Text("text 2"),),
        (Text("text \ufffd"),),
        (Text("text 4"),),
    ]
    report = report_of(path)
    assert dict(report.skipped) == {
        "malformed JSON": 1,
        "blank line": 1,
        "NUL bytes": 1,
        "not a JSON object": 1,
        "mode: no conversation text": 1,
        "user: no conversation text": 1,
        "a new kind of line that nobody knows yet, with a very long …: no conversation text": 1,
        "untyped line: no conversation text": 1,
        "incomplete last line": 1,
    }
    assert dict(report.notes) == {"NUL bytes around a line left out": 1, "lone surrogate replaced by U+FFFD": 1}
    assert (report.lines, report.taken, report.turns) == (13, 4, 4)


def test_a_line_of_70_mb_is_told_and_the_lines_around_it_are_read(tmp_path: Path) -> None:
    path = session(tmp_path, line("user", "before", "u1"))
    begin, end = b'{"type":"user","uuid":"u2","message":{"role":"user","content":"', b'"}}'
    with path.open("ab") as file:
        file.write(begin)
        for _ in range(70):
            file.write(b"x" * (1 << 20))
        file.write(end + b"\n" + json.dumps(line("user", "after", "u3")).encode() + b"\n")
    assert [turn.turn_id for turn in turns_of(path)] == ["u1", "u3"]
    assert dict(report_of(path).skipped) == {f"line of {(70 << 20) + len(begin + end)} bytes is over the limit of {64 << 20}": 1}


def test_a_turn_of_more_than_16_mib_is_cut_and_told(tmp_path: Path) -> None:
    path = session(tmp_path, line("user", [{"type": "text", "text": "é" * (9 << 20)}, {"type": "text", "text": "behind"}], "u1"))
    (turn,) = turns_of(path)
    assert turn.parts == (Text("é" * (8 << 20)),)
    assert dict(report_of(path).notes) == {"turn cut off at 16777216 bytes": 1}


def test_a_file_that_makes_up_types_does_not_grow_the_report(tmp_path: Path) -> None:
    path = session(tmp_path, line("user", "x", "u1"), *({"type": f"kind {number}"} for number in range(500)))
    report = report_of(path)
    assert (report.lines, report.taken, sum(report.skipped.values())) == (501, 1, 500)
    assert len(report.skipped) == 201
    assert report.skipped["other reasons"] == 300


def test_a_block_of_an_unknown_type_gives_its_text_or_is_noted(tmp_path: Path) -> None:
    blocks = [
        {"type": "novel", "text": "said"},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": [{"title": "Docs", "url": "https://example.org", "encrypted_content": "x"}],
        },
        {"type": "redacted_thinking", "data": "x"},
        7,
    ]
    path = session(tmp_path, line("assistant", blocks, "a1"))
    assert turns_of(path)[0].parts == (Text("said"), ToolResult("Docs\nhttps://example.org", "s1"))
    assert dict(report_of(path).notes) == {
        "content block without text: redacted_thinking": 1,
        "content block without text: untyped line": 1,
    }


def test_arguments_that_are_nested_too_deeply_are_told(tmp_path: Path) -> None:
    call = json.dumps(line("assistant", [{**CALL, "input": "NESTED"}], "a1")).replace('"NESTED"', '{"a":' * 800 + "1" + "}" * 800)
    path = session(tmp_path, line("user", "before", "u1"), call, line("user", "after", "u2"))
    assert [turn.turn_id for turn in turns_of(path)] == ["u1", "u2"]
    assert dict(report_of(path).skipped) == {"nested too deeply": 1}


def test_reading_a_file_that_grows_changes_nothing_that_was_read(tmp_path: Path) -> None:
    records = [line("user", f"text {at}", f"u{at}", at=at) for at in range(4)]
    path = session(tmp_path, *records[:2])
    before = turns_of(path)
    with path.open("a") as file:
        file.write(json.dumps(records[2])[:50])
    assert turns_of(path) == before
    session(tmp_path, *records)
    assert turns_of(path)[:2] == before
    assert len(turns_of(path)) == 4


def test_an_answer_of_very_many_lines_goes_on_in_another_turn(tmp_path: Path) -> None:
    """Each line is compared with all blocks before it; snapshots of the whole stay one turn."""
    blocks = [{"type": "text", "text": f"block {at:03}"} for at in range(450)]

    def answers(pieces: list[list[dict[str, str]]]) -> list[int]:
        lines = [
            {"type": "assistant", "uuid": f"u{at}", "message": {"id": "m", "role": "assistant", "content": piece}}
            for at, piece in enumerate(pieces)
        ]
        return [len(turn.parts) for turn in turns_of(session(tmp_path, *lines))]

    assert answers([[block] for block in blocks]) == [200, 200, 50]
    assert answers([blocks[: at + 1] for at in range(190, 210)]) == [210]


def test_an_id_that_is_used_over_and_over_is_numbered(tmp_path: Path) -> None:
    lines = [line("user", f"text {at}", "u") for at in range(4)] + [line("user", "its own", "u#3"), line("user", "again", "u#3")]
    assert [turn.turn_id for turn in turns_of(session(tmp_path, *lines))] == ["u", "u#2", "u#3", "u#4", "u#3#2", "u#3#3"]


def test_an_answer_is_closed_when_too_much_waits_for_it(tmp_path: Path) -> None:
    long = line("user", [{**RESULT, "content": "x" * (9 << 20)}], "u1")
    path = session(
        tmp_path, answer(CALL, "a1", "msg_1"), long, {**long, "uuid": "u2"}, answer({**CALL, "id": "toolu_2"}, "a2", "msg_1")
    )
    assert [turn.turn_id for turn in turns_of(path)] == ["a1", "u1", "u2", "a2"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (line("user", "x"), True),
        ({"type": "user", "message": {}}, True),
        ({"type": "user", "message": {"role": "user", "parts": [{"text": "x"}]}}, False),
        ({"type": "user", "content": "x"}, False),
        ({"type": "summary", "summary": "x", "leafUuid": "y"}, True),
        ({"type": "summary", "summary": [{"text": "x"}]}, False),
        ({"type": "custom-title", "customTitle": "x", "sessionId": "y"}, True),
        ({"type": "session_meta", "payload": {}}, False),
        ({"type": "message", "message": {"role": "user", "content": "x"}}, False),
        ({"role": "user", "message": {"content": "x"}}, False),
        ([line("user", "x")], False),
        (None, False),
    ],
)
def test_lines_that_only_claude_code_writes(value: object, expected: bool) -> None:
    assert speaks(value) is expected
