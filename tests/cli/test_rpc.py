"""`aforesaid rpc` against the service itself: every method by its name, fields as flags, JSON out."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aforesaid import Client
from aforesaid._wire import Wire
from aforesaid.cli import fields, run
from aforesaid.cli.rpc import STUBS, kebab, methods
from scripts.running_server import ROOT
from tests.cli.conftest import Command, Ended

PROTO = ROOT / "proto" / "agent" / "v1"


def rpcs() -> Iterator[tuple[str, str]]:
    """Each service and method of the proto files, as they stand there."""
    for file in sorted(PROTO.glob("*_service.proto")):
        service = ""
        for line in file.read_text("utf-8").splitlines():
            if found := re.match(r"service (\w+) \{|  rpc (\w+)\(", line):
                service = found[1] or service
                if found[2]:
                    yield service, found[2]


# The descriptors


def test_every_method_of_the_proto_files_is_a_command() -> None:
    assert sorted(methods()) == sorted(kebab(method) for _, method in rpcs())
    assert {service for service, _ in rpcs()} == set(STUBS)


@pytest.mark.parametrize("name", sorted(methods()))
def test_the_wire_has_every_method(name: str) -> None:
    method = methods()[name]
    assert method.method_kind in {"unary", "client_streaming"}
    if method.method_kind == "unary":
        assert hasattr(getattr(Wire, STUBS[method.parent.name]), name.replace("-", "_"))
    else:
        assert hasattr(Wire, name.replace("-", "_"))


@pytest.mark.parametrize("name", [name for name, method in methods().items() if method.method_kind == "unary"])
def test_every_field_has_a_flag_with_its_comment(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    method = methods()[name]
    assert run(["rpc", name, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for field in method.input.fields:
        assert f"--{field.name.replace('_', '-')} " in told
    for flag in fields.flags(method.input):
        assert flag.option.help
    comment = " ".join((inspect.getdoc(method.input.type) or "").partition("```")[0].split())
    assert comment


def test_rpc_lists_the_methods(piped: Command) -> None:
    ended = piped("rpc")
    assert (ended.code, ended.err) == (0, "")
    listed = ended.out.partition("Commands:\n")[2]
    assert set(re.findall(r"^  ([a-z-]+)  ", listed, re.MULTILINE)) == set(methods())
    assert "search-transcripts   Searches what was said." in listed


# Against the service


@pytest.fixture
def agent() -> str:
    return f"rpc-{uuid4().hex[:12]}"


@pytest.fixture
def rpc(service_url: str, here: Command) -> Any:
    """Calls a method and returns its reply."""

    def call(*arguments: str) -> Any:
        ended = here("rpc", *arguments, "--url", service_url)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.count("\n") == 1
        return json.loads(ended.out)

    return call


def test_a_conversation_is_written_searched_read_and_deleted(rpc: Any, agent: str) -> None:
    word = f"w{uuid4().hex}"
    turn = {"turnId": "t", "role": "user", "parts": [{"text": f"one {word}"}], "createdAt": "2026-03-04T10:22:00Z"}
    written = rpc(
        "write-conversation",
        "--conversation.agent-id",
        agent,
        "--conversation.conversation-id",
        "c",
        "--conversation.source.project",
        "/srv",
        "--conversation.turns",
        json.dumps(turn),
        "--conversation.turns",
        json.dumps([turn | {"turnId": "u"}, turn | {"turnId": "v", "role": "tool"}]),
        "--expected-revision",
        "0",
    )
    assert (written["conversation"]["turnCount"], written["conversation"]["source"]) == (3, {"project": "/srv"})
    search = ["search-transcripts", "--query", word, "--pagination.limit", "2", "--scope", "a=b"]
    assert "matches" not in rpc(*search)
    found = rpc(
        *search[:-2],
        *[
            "--roles",
            "user",
            "--roles",
            "system",
            "--since",
            "2026-03-04T10:22Z",
            "--until",
            "2026-03-04T10:23Z",
            "--no-every-agent",
        ],
        *["--match", "any-word", "--order", "ORDER_NEWEST", "--words", "as_typed", "--agent_id", agent],
    )
    assert sorted(hit["turnId"] for hit in found["matches"]) == ["t", "u"]
    assert rpc("read-transcript", "--agent-id", agent, "--conversation-id", "c", "--turn-id", "v")["turns"][0]["role"] == "tool"
    assert rpc("delete-conversation", "--agent-id", agent, "--conversation-id", "c") == {}
    assert rpc("list-conversations", "--agent-id", agent) == {}


def test_chats_are_indexed_searched_and_cited(rpc: Any, agent: str) -> None:
    scope = ["--scope", f"who={agent}", "--scope", "kind=a=b"]
    turns = [{"turnId": turn_id, "role": "user", "parts": [{"text": f"{agent} {turn_id}"}]} for turn_id in ("one", "two")]
    chat = ["--conversation.conversation-id", "run-7:3", "--conversation.agent-id", "chat", "--exact-scope", *scope]
    index = ["index-conversation", *chat, "--conversation.turns", json.dumps(turns)]
    assert rpc(*index, "--expected-revision", "0")["outcome"] == "INDEX_OUTCOME_WRITTEN"
    assert rpc(*index)["outcome"] == "INDEX_OUTCOME_UNCHANGED"
    found = rpc("search-turns", "--query", f"{agent} two", "--limit", "1", "--around", "1", "--agent-ids", "chat", *scope)
    (hit,) = found["hits"]
    assert (hit["turn"]["turnId"], hit["score"], hit["scope"]) == ("two", 1, {"who": agent, "kind": "a=b"})
    assert [turn["turnId"] for turn in hit["before"]] == ["one"]
    cited = ["--source.conversation-id", "run-7:3", "--source.turn-id", "two", "--source.digest", hit["digest"]]
    resolved = rpc("resolve-source", *cited, *scope)
    assert (resolved["turn"]["turnId"], resolved["unchanged"]) == ("two", True)
    sources = [json.dumps({"conversationId": "run-7:3", "turnId": turn_id}) for turn_id in ("two", "one")]
    context = rpc("compile-context", "--sources", sources[0], "--sources", f"[{sources[1]}]", "--budget", "800", *scope)
    assert [candidate["turnId"] for candidate in context["candidates"]] == ["two", "one"]
    assert rpc("delete-conversation", "--conversation-id", "run-7:3", "--agent-id", "chat", "--exact-scope", *scope) == {}
    assert rpc(*index) == {"outcome": "INDEX_OUTCOME_TOMBSTONED"}


def test_a_field_mask_and_flags_that_say_no(rpc: Any, agent: str) -> None:
    flags = ["--agent.agent-id", agent, "--agent.name", "Ann", "--agent.archived", "--agent.scope", f"who={agent}"]
    made = rpc("update-agent", *flags, "--update-mask", "name", "--update-mask", "archived", "--update-mask", "scope")
    assert made["agent"] == {
        "agentId": agent,
        "name": "Ann",
        "role": "implementer",
        "archived": True,
        "scope": {"who": agent},
    }
    back = rpc("update-agent", "--agent.agent-id", agent, "--no-agent.archived", "--update-mask", "archived")
    assert "archived" not in back["agent"]


def test_a_body_is_taken_whole_and_flags_go_over_it(rpc: Any, agent: str, tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    turns = [{"role": "user", "parts": [{"text": "x"}]}]
    body.write_text(json.dumps({"agent_id": "somebody", "conversationId": "c", "turns": turns}))
    assert rpc("append-turns", "--json", str(body), "--agent-id", agent)["turns"][0]["turnId"] == "c:0"
    assert rpc("get-conversation", "--conversation-id", "c", "--as", agent)["conversation"]["turnCount"] == 1


def test_a_name_may_be_written_as_in_the_proto_file(rpc: Any, agent: str) -> None:
    rpc("AppendTurns", "--agent_id", agent, "--conversation_id", "c")
    assert rpc("getAgent", "--agent-id", agent) == rpc("get_agent", "--agent-id", agent)


def test_the_program_answers_the_form_that_is_documented(service_url: str, piped: Command) -> None:
    ended = piped("rpc", "search-transcripts", "--query", f"w{uuid4().hex}", environment={"AFORESAID_URL": service_url})
    assert (ended.code, ended.err) == (0, "")
    assert set(json.loads(ended.out)) == {"notice", "freshness"}


def test_an_import_reads_its_messages_from_lines(service_url: str, piped: Command, agent: str, tmp_path: Path) -> None:
    lines = [
        {"agent": {"agentId": agent}, "conversation": {"conversationId": "c"}},
        {"turns": [{"turnId": str(number), "role": "user", "parts": [{"text": f"turn {number}"}]} for number in range(50)]},
        {"turns": [{"turnId": "last", "role": "user", "parts": [{"text": "last"}]}]},
    ]
    file = tmp_path / "stream.jsonl"
    file.write_text("\n\n".join(map(json.dumps, lines)))
    ended = piped("rpc", "import-turns", "--json", str(file), "--url", service_url)
    assert (ended.code, ended.err, json.loads(ended.out)) == (0, "", {"turnsAdded": "51"})
    with Client(service_url, "") as client:
        assert client.conversation("c", agent_id=agent).turn_count == 51
    file.write_text('{"turns": []}\n{"turns": [}\n')
    broken = piped("rpc", "import-turns", "--json", str(file), "--url", service_url)
    assert (broken.code, broken.out) == (2, "")
    assert broken.err.startswith("aforesaid: json: line 2: ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["search-transcripts", "--query", "?"], r"query: [^A-Z]+"),
        (["search-transcripts", "--query", "x", "--around", "11"], r"around: 11 is more than 10"),
        (["get-agent", "--agent-id", "nobody-is-this"], r"agent_id: [^A-Z]+"),
        (["search-transcripts", "--match", "some"], r"match: must be one of all_words, any_word[a-z_, ]*: some"),
        (["search-transcripts", "--pagination", "{"], r"pagination: must be JSON: .+"),
        (["search-transcripts", "--pagination", '{"limit": "x"}'], r"the request cannot be read: .+"),
        (["search-transcripts", "--pagination.limit", "99999999999"], r"the request cannot be read: .*99999999999.*"),
        (["search-transcripts", "--since", "then"], r"since: must be a duration .*: then"),
        (["search-transcripts", "--scope", "x"], r"scope: must be KEY=VALUE: x"),
        (["search-transcripts", "--json", "{tmp}/gone"], r"invalid value for '--json': .*(?i:no such file or directory).*"),
        (["search-transcripts", "--json", "{tmp}/list"], r"json: must be an object"),
        (["search-transcripts", "--json", "{tmp}/deep"], r"json: cannot be read: .*"),
        (["search-transcripts", "--json", "{tmp}/odd"], r"the request cannot be read: .*qery.*"),
        (["search-transcripts", "--qery", "x"], r"no such option '--qery'.*; try 'aforesaid rpc search-transcripts --help'"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    arguments: list[str], told: str, service_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "list").write_text("[]")
    (tmp_path / "deep").write_text("[" * 100_000)
    (tmp_path / "odd").write_text('{"qery": "x"}')
    assert run(["rpc", *(argument.replace("{tmp}", str(tmp_path)) for argument in arguments), "--url", service_url]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"aforesaid: {told}\n", err)


def test_a_service_that_is_not_there_is_an_error(piped: Command) -> None:
    ended = piped("rpc", "list-agents", "--url", "http://127.0.0.1:9")
    told = "aforesaid: cannot reach http://127.0.0.1:9: connection refused; `aforesaid-server serve` starts a service\n"
    assert ended == Ended(2, "", told)
