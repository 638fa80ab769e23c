"""Codex sessions: which lines become which turns of whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aforesaid.formats import find_files, read_file
from aforesaid.formats.codex import REMOVED
from aforesaid.formats.codex_folders import project_agent
from aforesaid.model import Agent, Conversation, File, Part, Reasoning, Source, Text, ToolCall, ToolResult, Turn
from tests.formats.codex_lines import (
    CWD,
    ID,
    assistant,
    assistant_event,
    event,
    header,
    item,
    line,
    read_one,
    rollout,
    texts,
    user,
    user_event,
)
from tests.formats.writing import chunks_of, report_of, text_of

NINE = 1_781_600_400_000_000
"""2026-06-16 09:00:00 UTC, the minute of every line."""
PICTURE = "data:image/png;base64,iVBORw0KGgo="


def test_a_session_is_a_conversation_of_its_folders_agent(tmp_path: Path) -> None:
    path = rollout(tmp_path, header(), user("why is it slow?", 1), assistant("I'll look.", 2))
    (tmp_path / "session_index.jsonl").write_text(
        text_of(
            [
                {"id": ID, "thread_name": "First name", "updated_at": "2026-06-16T09:00:00Z"},
                {"id": "another", "thread_name": "Other", "updated_at": "2026-06-16T09:00:01Z"},
                "{cut",
                {"id": ID, "thread_name": "The  slow\nimport", "updated_at": "2026-06-16T09:00:02Z"},
                {"id": ID, "thread_name": " ", "updated_at": "2026-06-16T09:00:03Z"},
            ]
        )
    )
    (chunk,) = chunks_of(path)
    assert chunk.agent == Agent("codex-srv-shop", "shop")
    assert chunk.conversation == Conversation(
        ID,
        "codex-srv-shop",
        "The slow import",
        (
            Turn("user", (Text("why is it slow?"),), "line-1", NINE + 1_000_000),
            Turn("assistant", (Text("I'll look."),), "line-2", NINE + 2_000_000),
        ),
        Source("codex", str(path), CWD),
    )


CALL: dict[str, Any] = {"name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "call_1"}


@pytest.mark.parametrize(
    ("record", "role", "parts"),
    [
        pytest.param(user("hello"), "user", (Text("hello"),), id="a prompt"),
        pytest.param(assistant("Yes."), "assistant", (Text("Yes."),), id="an answer"),
        pytest.param(
            item(
                "message",
                role="user",
                content=[
                    {"type": "input_text", "text": '<image name="[Image #1]">'},
                    {"type": "input_image", "image_url": PICTURE},
                    {"type": "input_text", "text": "</image>"},
                    {"type": "input_text", "text": "what is this?"},
                ],
            ),
            "user",
            (File("image/png"), Text("what is this?")),
            id="an image",
        ),
        pytest.param(
            item(
                "reasoning",
                summary=[{"type": "summary_text", "text": "**Hm.**"}, {"type": "summary_text", "text": "So."}],
                content=[{"type": "reasoning_text", "text": "Raw."}],
                encrypted_content="gAAAAABsecret",
            ),
            "assistant",
            (Reasoning("**Hm.**"), Reasoning("So."), Reasoning("Raw.")),
            id="thoughts",
        ),
        pytest.param(
            item("function_call", **CALL),
            "assistant",
            (ToolCall("shell", '{"command": ["ls"]}', "call_1"),),
            id="a call as written",
        ),
        pytest.param(
            item("custom_tool_call", name="apply_patch", input="*** Begin Patch\n", call_id="call_2"),
            "assistant",
            (ToolCall("apply_patch", "*** Begin Patch\n", "call_2"),),
            id="a call with text",
        ),
        pytest.param(
            item("local_shell_call", call_id="call_3", status="completed", action={"type": "exec", "command": ["ls"]}),
            "assistant",
            (ToolCall("local_shell", '{"type":"exec","command":["ls"]}', "call_3"),),
            id="a call of the local shell",
        ),
        pytest.param(
            item("web_search_call", id="ws_1", action={"type": "search", "query": "retry jitter", "url": None}),
            "assistant",
            (ToolCall("web_search", '{"type":"search","query":"retry jitter"}', "ws_1"),),
            id="a search on the web",
        ),
        pytest.param(
            item("image_generation_call", id="ig_1", status="completed", revised_prompt="a cat", result="iVBORw0KGgo="),
            "assistant",
            (ToolCall("image_generation", '{"prompt":"a cat"}', "ig_1"), File("image/png")),
            id="an image that was made",
        ),
        pytest.param(
            item("function_call_output", call_id="call_1", output="a.txt\n"),
            "tool",
            (ToolResult("a.txt\n", "call_1"),),
            id="a result",
        ),
        pytest.param(
            item("function_call_output", call_id="call_1", output='{"output":"a.txt\\n","metadata":{"exit_code":0}}'),
            "tool",
            (ToolResult("a.txt\n", "call_1"),),
            id="a result in JSON",
        ),
        pytest.param(
            item("function_call_output", call_id="call_1", output='{"output":"no such file","metadata":{"exit_code":2}}'),
            "tool",
            (ToolResult("no such file", "call_1", is_error=True),),
            id="a failure in JSON",
        ),
        pytest.param(
            item("function_call_output", call_id="call_1", output='{"metadata": "x"'),
            "tool",
            (ToolResult('{"metadata": "x"', "call_1"),),
            id="a result that looks like JSON",
        ),
        pytest.param(
            item(
                "function_call_output",
                call_id="call_1",
                output=[{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": PICTURE}],
            ),
            "tool",
            (ToolResult("a", "call_1"), File("image/png")),
            id="a result of blocks",
        ),
        pytest.param(
            item("function_call_output", call_id="call_1", output={"content": "denied", "success": False}),
            "tool",
            (ToolResult("denied", "call_1", is_error=True),),
            id="a result with its success",
        ),
        pytest.param(
            item("custom_tool_call_output", call_id="call_2", output={"type": "input_text", "text": "Done!"}),
            "tool",
            (ToolResult("Done!", "call_2"),),
            id="a result of one block",
        ),
        pytest.param(
            item(
                "agent_message",
                author="/root/child",
                recipient="/root",
                content=[{"type": "input_text", "text": "found it"}, {"type": "encrypted_content", "encrypted_content": "gAAA"}],
            ),
            "agent",
            (Text("found it"),),
            id="from another agent",
        ),
        pytest.param(
            line("inter_agent_communication", author="/root", recipient="/root/child", content="look there", trigger_turn=True),
            "agent",
            (Text("look there"),),
            id="from another agent, as a line of its own",
        ),
        pytest.param(
            line("compacted", message="We had agreed on tabs.", replacement_history=[user("secret")["payload"]], window_id=7),
            "system",
            (Text("We had agreed on tabs."),),
            id="a compaction",
        ),
        pytest.param(
            user("<turn_aborted>\nThe user interrupted.\n</turn_aborted>"),
            "system",
            (Text("<turn_aborted>\nThe user interrupted.\n</turn_aborted>"),),
            id="what happened",
        ),
        pytest.param(
            item("message", role="developer", content=[{"type": "input_text", "text": "Answer in French."}]),
            "system",
            (Text("Answer in French."),),
            id="instructions of somebody's own",
        ),
        pytest.param(event("error", message="stream disconnected"), "system", (Text("stream disconnected"),), id="an error"),
        pytest.param(user_event("hello"), "user", (Text("hello"),), id="a prompt of the other log"),
        pytest.param(
            event("user_message", message="see", images=[PICTURE], local_images=["C:\\pics\\chart.png"]),
            "user",
            (Text("see"), File("image/png"), File("image/png", "chart.png")),
            id="images of the other log",
        ),
        pytest.param(event("agent_reasoning", text="Hm."), "assistant", (Reasoning("Hm."),), id="a thought of the other log"),
        pytest.param(
            event("item_completed", item={"type": "Plan", "id": "p", "text": "1. look"}),
            "assistant",
            (Text("1. look"),),
            id="a plan",
        ),
        pytest.param(
            event("item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": "hi"}, {"type": "image"}]}),
            "user",
            (Text("hi"), File("image/*")),
            id="a prompt of a session in pages",
        ),
        pytest.param(
            event("item_completed", item={"type": "AgentMessage", "content": [{"type": "Text", "text": "Hi."}]}),
            "assistant",
            (Text("Hi."),),
            id="an answer of a session in pages",
        ),
        pytest.param(
            event("thread_goal_updated", threadId=ID, goal={"objective": "make it fast"}),
            "user",
            (Text("make it fast"),),
            id="a goal",
        ),
        pytest.param(
            event("web_search_end", call_id="ws_1", query="jitter", results=[{"title": "Backoff", "snippet": "adds jitter"}]),
            "tool",
            (ToolResult('{"results":[{"title":"Backoff","snippet":"adds jitter"}]}', "ws_1", is_json=True),),
            id="what the web had",
        ),
        pytest.param(
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}, "user", (Text("x"),), id="bare"
        ),
        pytest.param(
            {"type": "function_call", **CALL}, "assistant", (ToolCall("shell", CALL["arguments"], "call_1"),), id="bare call"
        ),
    ],
)
def test_a_line_becomes_a_turn(tmp_path: Path, record: dict[str, Any], role: str, parts: tuple[Part, ...]) -> None:
    path = rollout(tmp_path, header(), record)
    assert [(turn.turn_id, turn.role, turn.parts) for turn in read_one(path)] == [("line-1", role, parts)]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (event("token_count", info={"total_token_usage": {}}), "event token_count: no conversation text"),
        (event("task_complete", turn_id="t", last_agent_message="Done."), "event task_complete: no conversation text"),
        (line("turn_context", cwd=CWD, model="gpt"), "turn_context: no conversation text"),
        (line("world_state", full=True, state={"agents_md": {"text": "Be kind."}}), "world_state: no conversation text"),
        (line("compacted", message="", replacement_history=[user("x")["payload"]]), "compacted: no conversation text"),
        (item("reasoning", summary=[], encrypted_content="gAAA"), "response_item reasoning: no conversation text"),
        (item("compaction", encrypted_content="gAAA"), "response_item compaction: no conversation text"),
        (item("novel", text="x"), "response_item novel: no conversation text"),
        (line("response_item"), "response_item untyped line: no conversation text"),
        (line("rollout_reference", rollout_path="/x"), "rollout_reference: no conversation text"),
        ({"record_type": "state"}, "state: no conversation text"),
        ({"type": ["novel"], "payload": 7}, "untyped line: no conversation text"),
        (user("<environment_context>\n<cwd>/srv</cwd>\n</environment_context>"), "environment_context: no conversation text"),
        (
            item(
                "message",
                role="developer",
                content=[{"type": "input_text", "text": "<permissions instructions>x</permissions instructions>"}],
            ),
            "permissions instructions: no conversation text",
        ),
        (event("exec_command_end", call_id="c", aggregated_output="x"), "said in the other log as well"),
        ("[]", "not a JSON object"),
        ("{cut", "malformed JSON"),
        ("", "blank line"),
    ],
)
def test_a_line_that_says_nothing_is_counted(tmp_path: Path, record: dict[str, Any] | str, reason: str) -> None:
    report = report_of(rollout(tmp_path, header(), user("hello"), record))
    assert dict(report.skipped) == {"session_meta: no conversation text": 1, reason: 1}
    assert (report.lines, report.taken, report.turns) == (3, 1, 1)


# One word each: who says it in which log. `U` and `A` are items, `u` and `a` events, `r` ends a turn.
BOTH = [user("go", 1), user_event("go", 1), assistant_event("on", 2), assistant("on", 3)]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        pytest.param([user("go"), assistant("on")], ["u:go", "a:on"], id="only the items"),
        pytest.param([user_event("go"), assistant_event("on")], ["u:go", "a:on"], id="only the events"),
        pytest.param(BOTH, ["u:go", "a:on"], id="both"),
        pytest.param(
            [user_event("go"), user("go"), assistant("on"), assistant_event("on")], ["u:go", "a:on"], id="both, the other first"
        ),
        pytest.param([*BOTH, *BOTH], ["u:go", "a:on"] * 2, id="both, twice on purpose"),
        pytest.param([*BOTH[:2], *BOTH[:2], *BOTH[2:]], ["u:go", "u:go", "a:on"], id="both, asked twice before an answer"),
        pytest.param([user("go"), user("go"), assistant("on")], ["u:go", "u:go", "a:on"], id="items, asked twice"),
        pytest.param([user_event("go"), user_event("go")], ["u:go", "u:go"], id="events, asked twice"),
        pytest.param([*BOTH, user("go"), assistant("on")], ["u:go", "a:on"] * 2, id="the events end in the middle"),
        pytest.param([*BOTH, user_event("go"), assistant_event("on")], ["u:go", "a:on"] * 2, id="the items end in the middle"),
        pytest.param(
            [user_event("go"), assistant_event("on"), user("go"), assistant("on")],
            ["u:go", "a:on"] * 2,
            id="first events, then items",
        ),
        pytest.param(
            [user("go"), assistant_event("on"), assistant_event("and on"), assistant("on"), assistant("and on")],
            ["u:go", "a:on", "a:and on"],
            id="the items of an answer after all its events",
        ),
        pytest.param(
            [user("go"), assistant_event("on"), assistant("on"), assistant_event("on"), assistant("on")],
            ["u:go", "a:on", "a:on"],
            id="an answer said twice in one turn",
        ),
        pytest.param(
            [
                item("message", role="user", content=[{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]),
                user_event("a\nb"),
            ],
            ["u:a|b"],
            id="pieces that are joined in the other log",
        ),
        pytest.param(
            [
                user("# Context from my IDE setup:\n\n## My request for Codex:\ngo"),
                user_event("# Context from my IDE setup:\n\n## My request for Codex:\ngo"),
            ],
            ["u:go"],
            id="with context around it",
        ),
        pytest.param(
            [
                event("agent_reasoning", text="Hm."),
                event("agent_reasoning", text="So."),
                item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}, {"type": "summary_text", "text": "So."}]),
            ],
            ["a:Hm.", "a:So."],
            id="thoughts in pieces",
        ),
        pytest.param(
            [
                event("agent_reasoning", text="Hm."),
                item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}, {"type": "summary_text", "text": "So."}]),
            ],
            ["a:Hm.", "a:So."],
            id="thoughts of which one is new",
        ),
        pytest.param(
            [
                user("go"),
                event("item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": "go"}]}),
                user_event("go"),
            ],
            ["u:go"],
            id="three logs",
        ),
        pytest.param(
            [
                assistant_event("Here it is."),
                event("item_completed", item={"type": "Plan", "text": "1. look"}),
                assistant("Here it is.\n<proposed_plan>\n1. look\n</proposed_plan>"),
            ],
            ["a:Here it is.", "a:1. look"],
            id="a plan apart from its answer",
        ),
        pytest.param(
            [assistant("Yes.<oai-mem-citation>m1</oai-mem-citation>"), assistant_event("Yes.")],
            ["a:Yes.<oai-mem-citation>m1</oai-mem-citation>"],
            id="a citation that is not shown",
        ),
        pytest.param(
            [
                line("inter_agent_communication", author="/root", content="look there"),
                item("agent_message", author="/root", content=[{"type": "input_text", "text": "look there"}]),
            ],
            ["a:look there"],
            id="a letter and its item",
        ),
        pytest.param(
            [event("thread_goal_updated", goal={"objective": "fast", "status": status}) for status in ("active", "done")]
            + [assistant("on"), event("thread_goal_updated", goal={"objective": "fast", "status": "done"})],
            ["u:fast", "a:on"],
            id="a goal whose state changes",
        ),
        pytest.param(
            [user("go"), event("turn_aborted", reason="interrupted"), user_event("go")],
            ["u:go", "u:go"],
            id="a turn was broken off in between",
        ),
    ],
)
def test_what_both_logs_say_comes_once(tmp_path: Path, records: list[dict[str, Any]], said: list[str]) -> None:
    path = rollout(tmp_path, header(), *records)
    assert texts(read_one(path)) == said
    report = report_of(path)
    assert report.lines == report.taken + sum(report.skipped.values())


def test_tools_are_told_by_events_where_there_are_no_items(tmp_path: Path) -> None:
    path = rollout(
        tmp_path,
        header(),
        user_event("look"),
        event("exec_command_end", call_id="c1", command=["ls"], aggregated_output="a.txt\n", exit_code=0),
        event(
            "mcp_tool_call_end",
            call_id="c2",
            invocation={"server": "s", "tool": "find", "arguments": {"q": 1}},
            result={"Err": "no"},
        ),
        event("patch_apply_end", call_id="c3", changes={"a.txt": {"type": "add"}}, stdout="Success", success=True),
        event("web_search_end", call_id="c4", query="jitter"),
        event("exited_review_mode", review_output={"findings": [{"title": "T", "body": "B"}], "overall_explanation": "E"}),
    )
    assert [turn.parts for turn in read_one(path)] == [
        (Text("look"),),
        (ToolCall("exec_command", '{"command":["ls"]}', "c1"), ToolResult("a.txt\n", "c1")),
        (ToolCall("find", '{"q":1}', "c2"), ToolResult("no", "c2")),
        (ToolCall("apply_patch", '{"a.txt":{"type":"add"}}', "c3"), ToolResult("Success", "c3")),
        (ToolCall("web_search", '{"query":"jitter"}', "c4"),),
        (Text("E"), Text("T"), Text("B")),
    ]


def test_a_very_old_session(tmp_path: Path) -> None:
    path = rollout(
        tmp_path,
        {"id": ID, "timestamp": "2025-06-16T09:00:00.000Z", "instructions": "# AGENTS.md\nBe kind.", "git": {"branch": "main"}},
        {"record_type": "state"},
        {
            "type": "message",
            "id": None,
            "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context>\n<cwd>/srv/old</cwd>\n</environment_context>"}],
        },
        {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA"},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "on"}]},
    )
    (chunk,) = chunks_of(path)
    assert (chunk.agent.agent_id, chunk.conversation.conversation_id, chunk.conversation.source.project) == (
        "codex-srv-old",
        ID,
        "/srv/old",
    )
    assert texts(list(chunk.conversation.turns)) == ["u:go", "a:Hm.", "a:shell", "t:ok", "a:on"]
    assert {turn.created_at for turn in chunk.conversation.turns} == {1_750_064_400_000_000}


def test_times_come_from_the_line_else_from_before_else_from_the_file(tmp_path: Path) -> None:
    untimed = [{"type": "response_item", "payload": user("go")["payload"]}, {**assistant("on", 5), "timestamp": "soon"}]
    path = rollout(tmp_path, *untimed, assistant("late", 7), untimed[0])
    modified = path.stat().st_mtime_ns // 1000
    assert [turn.created_at for turn in read_one(path)] == [modified, modified, NINE + 7_000_000, NINE + 7_000_000]


def test_a_session_is_known_by_its_header_else_by_its_name(tmp_path: Path) -> None:
    named = rollout(tmp_path, user("go"))
    (named.parent / "x.jsonl").write_text(text_of([user("go")]))
    (named.parent / "y.jsonl").write_text(text_of([header("mine"), user("go")]))
    ids = {
        chunk.conversation.source.file.rpartition("/")[2]: chunk.conversation.conversation_id for chunk in chunks_of(named.parent)
    }
    assert ids == {named.name: ID, "x.jsonl": "16/x.jsonl", "y.jsonl": "mine"}


@pytest.mark.parametrize(
    ("cwd", "agent_id"),
    [
        ("", "codex"),
        ("/", "codex"),
        ("/srv/shop", "codex-srv-shop"),
        ("/srv/my_shop-2.0/", "codex-srv-my_shop-2.0"),
        ("C:\\work\\shop", "codex-C-work-shop-18def30e"),
        ("/srv/記憶", "codex-srv-c747ba1d"),
        ("/srv/回路", "codex-srv-0c86171b"),
    ],
)
def test_an_agent_is_known_by_its_folder(cwd: str, agent_id: str) -> None:
    assert project_agent(cwd) == agent_id
    assert len(project_agent(cwd * 1000)) < 200


@pytest.mark.parametrize(
    ("fields", "agent"),
    [
        ({"source": "exec"}, Agent("codex-srv-shop", "shop")),
        ({"forked_from_id": "p"}, Agent("codex-srv-shop", "shop")),
        ({"source": {"subagent": "review"}}, Agent(f"codex-srv-shop/{ID}", "review", parent_agent_id="codex-srv-shop")),
        (
            {"source": {"subagent": {"other": "guardian"}}},
            Agent(f"codex-srv-shop/{ID}", "guardian", parent_agent_id="codex-srv-shop"),
        ),
        ({"parent_thread_id": "p"}, Agent(f"codex-srv-shop/{ID}", ID, parent_agent_id="codex-srv-shop")),
        (
            {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1, "agent_role": "explorer"}}}},
            Agent(f"codex-srv-shop/{ID}", "explorer", parent_agent_id="codex-srv-shop"),
        ),
        (
            {"agent_nickname": "Ada", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 2}}}},
            Agent(f"codex-srv-shop/{ID}", "Ada", parent_agent_id="codex-srv-shop/p"),
        ),
        (
            {"parent_thread_id": "p", "agent_path": "/root/finder/reader", "source": {"subagent": "other"}},
            Agent(f"codex-srv-shop/{ID}", "other", parent_agent_id="codex-srv-shop/p"),
        ),
        (
            {"source": {"subagent": {"thread_spawn": {"parent_thread_id": ID, "depth": 2}}}},
            Agent(f"codex-srv-shop/{ID}", ID, parent_agent_id="codex-srv-shop"),
        ),
        ({"source": {"subagent": {"thread_spawn": 7}}}, Agent(f"codex-srv-shop/{ID}", ID, parent_agent_id="codex-srv-shop")),
    ],
)
def test_a_session_that_another_one_began_is_a_sub_agent(tmp_path: Path, fields: dict[str, Any], agent: Agent) -> None:
    (chunk,) = chunks_of(rollout(tmp_path, header(**fields), user("go")))
    assert chunk.agent == agent


def test_the_name_in_the_session_is_its_title_where_no_index_has_one(tmp_path: Path) -> None:
    path = rollout(
        tmp_path,
        header(),
        event("thread_name_updated", thread_id=ID, thread_name="First"),
        user("go"),
        event("thread_name_updated", thread_id=ID, thread_name="Second"),
        event("thread_name_updated", thread_id="another", thread_name="Of another"),
    )
    (chunk,) = chunks_of(path)
    assert chunk.conversation.title == "Second"
    (tmp_path / "session_index.jsonl").write_text(json.dumps({"id": ID, "thread_name": "Third", "updated_at": "x"}))
    assert chunks_of(path)[0].conversation.title == "Third"


def test_a_sub_agents_task_is_its_title_where_it_has_no_name(tmp_path: Path) -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1, "agent_path": "/root/find callers"}}}
    (chunk,) = chunks_of(rollout(tmp_path, header(source=spawned), user("go")))
    assert chunk.conversation.title == "find callers"


def test_trouble_in_a_file_hides_itself_only(tmp_path: Path) -> None:
    path = rollout(tmp_path, header(), user("before"))
    with path.open("ab") as file:
        file.write(b'{"timestamp": "x", "type": "response_item", "payl\n')
        file.write(b"\0" * 50 + b"\n")
        file.write(b'{"type": ' + b"[" * 50_000 + b"\n")
        file.write(json.dumps(user("lone \ud83c and NUL \0 stay")).encode() + b"\n")
        file.write(json.dumps(user("bytes ?? replaced"), ensure_ascii=False).encode().replace(b"??", b"\xff\xfe") + b"\n")
        file.write(json.dumps(assistant("cut")).encode()[:-9])
    assert texts(read_one(path)) == ["u:before", "u:lone \ufffd and NUL \0 stay", "u:bytes \ufffd\ufffd replaced"]
    report = report_of(path)
    assert report.skipped["incomplete last line"] == 1
    assert sum(report.skipped.values()) == 5


def test_a_line_over_the_limit_is_skipped(tmp_path: Path) -> None:
    path = rollout(tmp_path, header(), user("before"))
    with path.open("ab") as file:
        file.write(b'{"timestamp": "2026-06-16T09:00:00Z", "type": "response_item", "payload": {"type": "message", "text": "')
        for _ in range(70):
            file.write(b"x" * 1_000_000)
        file.write(b'"}}\n' + json.dumps(user("after")).encode() + b"\n")
    assert texts(read_one(path)) == ["u:before", "u:after"]
    assert [reason for reason in report_of(path).skipped if "over the limit" in reason]


# Turns that were taken back


@pytest.mark.parametrize(
    ("records", "said"),
    [
        pytest.param([user("a"), assistant("1"), user("b"), assistant("2")], ["u:a", "a:1", "-", "-"], id="the last"),
        pytest.param([user("a"), user_event("a"), assistant("1")], ["-", "-"], id="in both logs"),
        pytest.param([user_event("a"), assistant_event("1")], ["-", "-"], id="in the events"),
        pytest.param([user("<skill>s</skill>"), user("a")], ["s:<skill>s</skill>", "-"], id="what stood before stays"),
        pytest.param([assistant("1")], ["a:1"], id="no prompt"),
    ],
)
def test_turns_that_were_rolled_back_are_gone(tmp_path: Path, records: list[dict[str, Any]], said: list[str]) -> None:
    path = rollout(tmp_path, header(), *records, event("thread_rolled_back", num_turns=1), user("c"))
    gone = f"s:{REMOVED}"
    assert [text.replace(gone, "-") for text in texts(read_one(path))] == [*said, "u:c"]
    before = read_one(rollout(tmp_path / "before", header(), *records))
    assert [turn.turn_id for turn in read_one(path)][:-1] == [turn.turn_id for turn in before]
    assert report_of(path).skipped.get("rolled back", 0) == said.count("-")


@pytest.mark.parametrize(
    ("counts", "left"), [([2], 1), ([1, 1], 1), ([3], 0), ([99], 0), ([0], 3), ([-1], 3), (["x"], 3), ([1, 5], 0)]
)
def test_so_many_turns_are_taken_back_as_it_says(tmp_path: Path, counts: list[Any], left: int) -> None:
    prompts = [user("a"), assistant("1"), user("b"), user("c")]
    path = rollout(tmp_path, header(), *prompts, *(event("thread_rolled_back", num_turns=count) for count in counts))
    assert sum(turn.role == "user" for turn in read_one(path)) == left


def test_a_turn_said_again_after_it_was_taken_back_stays(tmp_path: Path) -> None:
    path = rollout(tmp_path, header(), *BOTH, event("thread_rolled_back", num_turns=1), *BOTH)
    assert texts(read_one(path)) == [f"s:{REMOVED}", f"s:{REMOVED}", "u:go", "a:on"]


def test_a_file_read_in_small_chunks_gives_the_same(tmp_path: Path) -> None:
    path = rollout(tmp_path, header(), *BOTH, *BOTH, event("thread_rolled_back", num_turns=1), *BOTH)
    (found,) = find_files([path])
    whole = [turn for chunk in read_file(found) for turn in chunk.conversation.turns]
    pieces = list(read_file(found, chunk_bytes=1, block_bytes=7))
    assert [turn for chunk in pieces for turn in chunk.conversation.turns] == whole
    assert len(pieces) == len(whole)
