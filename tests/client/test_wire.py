"""The client against a service that answers as a test says, in this process: pages, headers, errors, deadlines, connections."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError, ErrorDetail
from google.rpc import error_details_pb2
from protobuf.wkt import Any as AnyMessage
from pyqwest import Headers

import aforesaid
from aforesaid import Agent, Client, Conversation, Imported, LeftOut, Text, Turn
from aforesaid.agent.v1 import agent_service_pb, audit_service_pb, conversation_service_pb, types_pb
from tests.client.both import Calling, Connect, Script, Time, sent
from tests.client.ports import listening, refused_port


def of_pages(pages: list[Any]) -> Callable[[Any], Any]:
    """Answers a cursor with the page of that number."""
    return lambda request: pages[int(request.pagination.cursor or 0)]


# Pages


def test_search_yields_pages_until_there_is_no_token_and_asks_for_each_only_when_it_is_taken(calling: Calling) -> None:
    hit = types_pb.SearchHit
    reply = agent_service_pb.SearchTranscriptsResponse
    pages = [reply(matches=[hit(seq=0)], next_page_token="1"), reply(next_page_token="2"), reply(near=[hit(seq=2)])]
    script = Script(search_transcripts=of_pages(pages))
    found = calling(script).search("q", agent_id="a", limit=5)
    assert script.requests == []
    assert [hit.seq for hit in next(found).matches] == [0]
    assert len(script.requests) == 1
    assert [[hit.seq for _, hits in page.lists() for hit in hits] for page in found] == [[], [2]]
    assert [request.pagination.cursor for request in script.requests] == ["", "1", "2"]
    assert {(request.query, request.agent_id, request.pagination.limit) for request in script.requests} == {("q", "a", 5)}


def test_a_search_goes_on_after_the_page_whose_token_it_is_given(calling: Calling) -> None:
    pages = [agent_service_pb.SearchTranscriptsResponse(notice=str(number)) for number in range(3)]
    assert [page.notice for page in calling(Script(search_transcripts=of_pages(pages))).search("q", cursor="2")] == ["2"]


@pytest.mark.parametrize(
    ("method", "call", "pages", "ids"),
    [
        (
            "list_agents",
            lambda client: [agent.agent_id for agent in client.agents(scope={"a": "b"})],
            [
                agent_service_pb.ListAgentsResponse(agents=[types_pb.Agent(agent_id=one)], next_page_token=more)
                for one, more in [("x", "1"), ("y", "")]
            ],
            ["x", "y"],
        ),
        (
            "list_conversations",
            lambda client: [conversation.conversation_id for conversation in client.conversations("x", scope={"a": "b"})],
            [
                agent_service_pb.ListConversationsResponse(
                    conversations=[types_pb.Conversation(conversation_id=one)], next_page_token=more
                )
                for one, more in [("x", "1"), ("y", "")]
            ],
            ["x", "y"],
        ),
        (
            "list_reads",
            lambda client: [record.request_id for record in client.reads("x", scope={"a": "b"})],
            [
                audit_service_pb.ListReadsResponse(records=[audit_service_pb.ReadRecord(request_id=one)], next_page_token=more)
                for one, more in [("x", "1"), ("y", "")]
            ],
            ["x", "y"],
        ),
    ],
)
def test_lists_run_over_all_pages(
    calling: Calling, method: str, call: Callable[[Client], list[str]], pages: list[Any], ids: list[str]
) -> None:
    script = Script(**{method: of_pages(pages)})
    assert call(calling(script)) == ids
    assert [(request.pagination.cursor, request.pagination.limit, request.scope) for request in script.requests] == [
        ("", 100, {"a": "b"}),
        ("1", 100, {"a": "b"}),
    ]


@pytest.mark.parametrize(("offset", "length", "asked"), [(0, 0, [(0, 0), (7, 0), (9, 0)]), (2, 10, [(2, 10), (7, 5), (9, 3)])])
def test_a_transcript_is_read_on_to_its_end(calling: Calling, offset: int, length: int, asked: list[tuple[int, int]]) -> None:
    replies = {
        at: agent_service_pb.ReadTranscriptResponse(turns=[types_pb.Turn(seq=at)], next_offset=then)
        for at, then in [(offset, 7), (7, 9), (9, 0)]
    }
    script = Script(read_transcript=lambda request: replies[request.offset])
    turns = calling(script).read("c", agent_id="a", offset=offset, length=length, reason="why", scope={"a": "b"})
    assert [turn.seq for turn in turns] == [offset, 7, 9]
    assert script.requests[-1].reason == "why"
    assert [(request.offset, request.length) for request in script.requests] == asked


# Other methods


def test_writes_send_what_they_are_given_and_return_what_was_kept(calling: Calling) -> None:
    turn = types_pb.Turn(turn_id="c:0", seq=0, content_length=5)
    script = Script(
        append_turns=lambda _: conversation_service_pb.AppendTurnsResponse(revision=3, turns=[turn]),
        write_conversation=lambda _: conversation_service_pb.WriteConversationResponse(
            conversation=types_pb.Conversation(conversation_id="c", revision=4)
        ),
        delete_conversation=lambda _: conversation_service_pb.DeleteConversationResponse(),
    )
    client = calling(script)
    appended = client.append("c", [Turn("user", (Text("hello"),))], agent_id="a", scope={"a": "b"})
    assert (appended.revision, [kept.turn_id for kept in appended.turns]) == (3, ["c:0"])
    assert client.write(Conversation("c", "a"), expected_revision=0).revision == 4
    assert client.write(Conversation("c", "a")).revision == 4
    client.delete("c", agent_id="a", scope={"a": "b"})
    append, first, second, delete = script.requests
    assert (append.agent_id, append.conversation_id, len(append.turns), append.scope) == ("a", "c", 1, {"a": "b"})
    assert first.has_field("expected_revision")
    assert first.expected_revision == 0
    assert not second.has_field("expected_revision")
    assert (delete.agent_id, delete.conversation_id, delete.scope) == ("a", "c", {"a": "b"})


def test_one_agent_one_conversation_and_the_check_of_the_audit_log(calling: Calling) -> None:
    script = Script(
        get_agent=lambda request: agent_service_pb.GetAgentResponse(agent=types_pb.Agent(agent_id=request.agent_id or "self")),
        update_agent=lambda request: agent_service_pb.UpdateAgentResponse(agent=request.agent),
        get_conversation=lambda request: agent_service_pb.GetConversationResponse(
            conversation=types_pb.Conversation(conversation_id=request.conversation_id, agent_id=request.agent_id)
        ),
        verify_audit=lambda _: audit_service_pb.VerifyAuditResponse(
            records=9, head="ff", faults=[audit_service_pb.AuditFault(record=4, problem="altered")]
        ),
    )
    client = calling(script)
    assert (client.agent().agent_id, client.agent("x").agent_id) == ("self", "x")
    assert client.update_agent(Agent("x", name="X", role="reviewer"), ["name", "role"]).name == "X"
    assert script.requests[-1].update_mask.paths == ["name", "role"]
    conversation = client.conversation("c", agent_id="a")
    assert (conversation.conversation_id, conversation.agent_id) == ("c", "a")
    check = client.verify_audit()
    assert (check.intact, check.records, check.head) == (False, 9, "ff")
    assert [(fault.record, fault.problem) for fault in check.faults] == [(4, "altered")]


def test_an_import_tells_of_each_stream_and_adds_them_up(calling: Calling) -> None:
    def answer(stream: list[Any]) -> conversation_service_pb.ImportTurnsResponse:
        return conversation_service_pb.ImportTurnsResponse(turns_added=sum(len(message.turns) for message in stream))

    script = Script(import_turns=answer)
    turns = tuple(Turn("user", (Text("x"),), str(number)) for number in range(2500))
    told: list[Imported] = []
    taken = calling(script).import_turns(
        [(Agent("a"), Conversation("c", "a", turns=turns))], scope={"a": "b"}, on_stream=told.append
    )
    assert taken == Imported(added=2500)
    assert [stream.added for stream in told] == [2000, 500]
    assert {tuple(message.scope.items()) for stream in script.requests for message in stream} == {(("a", "b"),)}


def test_an_import_counts_what_is_refused_over_the_wire_and_takes_the_rest(calling: Calling) -> None:
    def answer(stream: list[Any]) -> conversation_service_pb.ImportTurnsResponse:
        if any(turn.role == "bad" for message in stream for turn in message.turns):
            raise ConnectError(Code.INVALID_ARGUMENT, "turns[0].role: is bad", [bad_request("turns[0].role", "is bad")])
        return conversation_service_pb.ImportTurnsResponse(turns_added=sum(len(message.turns) for message in stream))

    turns = tuple(Turn("bad" if number == 7 else "user", (Text("x"),), str(number)) for number in range(20))
    taken = calling(Script(import_turns=answer)).import_turns([(Agent("a"), Conversation("c", "a", turns=turns))])
    assert taken == Imported(added=19, refused=(LeftOut("a", "c", 1, "turns[0].role: is bad"),))


# Who calls


def test_the_caller_travels_in_a_header_and_the_deadline_with_the_call(calling: Calling) -> None:
    script = Script(
        get_agent=lambda _: agent_service_pb.GetAgentResponse(),
        import_turns=lambda _: conversation_service_pb.ImportTurnsResponse(),
    )
    calling(script, agent_id="rev-1", timeout=2.5).agent()
    calling(script).agent()
    calling(script, agent_id="rev-1").import_turns([(Agent("a"), Conversation("c", "a"))])
    assert [headers.get("x-agent-id") for headers in script.headers] == ["rev-1", None, "rev-1"]
    first, second, stream = script.timeouts
    assert first is not None
    assert second is not None
    assert stream is not None
    assert 2000 < first <= 2500
    assert 50_000 < second <= 60_000
    assert 500_000 < stream <= 600_000


@pytest.mark.parametrize("agent_id", ["a b", " a ", "50%", "%41", "Zoë 記憶", "a\nb\x00", "~!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}"])
def test_any_id_gets_through_a_header_as_the_service_reads_it(calling: Calling, agent_id: str) -> None:
    script = Script(get_agent=lambda _: agent_service_pb.GetAgentResponse())
    calling(script, agent_id=agent_id).agent()
    sent = script.headers[0]["x-agent-id"]
    assert re.fullmatch("[!-~]+", sent)
    assert unquote(sent) == agent_id


def test_the_environment_says_what_is_not_given(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFORESAID_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("AFORESAID_AGENT_ID", "bob")
    with connect() as client:
        assert (client.config.url, client.config.agent_id) == ("http://127.0.0.1:9", "bob")


@pytest.mark.parametrize(("url", "encoding"), [("http://127.0.0.1:8787", "identity"), ("http://aforesaid.example", "gzip")])
def test_messages_are_compressed_only_for_another_machine(calling: Calling, url: str, encoding: str) -> None:
    client = calling(Script(get_agent=lambda _: agent_service_pb.GetAgentResponse()), url=url)
    client.agent("a" * 10_000)
    assert sent(client)[0].headers.get("content-encoding") == encoding


# Errors


def bad_request(field: str, description: str) -> ErrorDetail:
    request = error_details_pb2.BadRequest()
    request.field_violations.add(field=field, description=description)
    return ErrorDetail(AnyMessage(type_url="type.googleapis.com/google.rpc.BadRequest", value=request.SerializeToString()))


def raising(error: Exception) -> Callable[[Any], Any]:
    def answer(_: Any) -> Any:
        raise error

    return answer


def test_a_field_that_breaks_a_rule_is_named_over_the_wire(calling: Calling) -> None:
    wire = ConnectError(
        Code.INVALID_ARGUMENT, "pagination.limit: must be 0 or more: -1", [bad_request("pagination.limit", "must be 0 or more")]
    )
    with pytest.raises(aforesaid.InvalidArgument, match=r"^pagination\.limit: must be 0 or more: -1$") as caught:
        next(calling(Script(search_transcripts=raising(wire))).search("q", limit=-1))
    assert caught.value.violations == (aforesaid.FieldViolation("pagination.limit", "must be 0 or more"),)


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.INVALID_ARGUMENT])
def test_errors_of_calls_and_of_streams_are_of_the_tree(calling: Calling, code: Code) -> None:
    script = Script(get_agent=raising(ConnectError(code, "why")), import_turns=raising(ConnectError(code, "why")))
    client = calling(script, Time())
    with pytest.raises(aforesaid.AforesaidError) as caught:
        client.agent()
    kind = type(caught.value)
    assert kind.code == code.value or kind is aforesaid.Unexpected
    if kind in {aforesaid.PermissionDenied, aforesaid.NotFound, aforesaid.FailedPrecondition, aforesaid.ResourceExhausted}:
        assert [left.turns for left in client.import_turns([(Agent("a"), Conversation("c", "a"))]).refused] == [0]
    else:
        with pytest.raises(kind):
            client.import_turns([(Agent("a"), Conversation("c", "a"))])


@pytest.mark.parametrize(
    "call",
    [
        lambda client: next(client.search("\udc80")),
        lambda client: next(client.search("q", limit=2**40)),
        lambda client: client.append("c", [Turn("user", (Text("\ud800"),))]),
        lambda client: client.write(Conversation("c", "a", title="\ud800")),
        lambda client: next(client.search(7)),
    ],
)
def test_a_request_that_cannot_be_encoded_is_the_callers_fault(calling: Calling, call: Callable[[Client], object]) -> None:
    with pytest.raises(aforesaid.InvalidArgument):
        call(calling(Script()))


def test_an_error_names_the_request_as_the_services_log_does(connect: Connect, service_url: str) -> None:
    client = connect(service_url, "")
    ids = []
    for _ in range(2):
        with pytest.raises(aforesaid.NotFound) as caught:
            client.agent("nobody has this id")
        ids.append(caught.value.request_id)
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in ids)
    assert ids[0] != ids[1]


# Connections


def test_nobody_there(connect: Connect) -> None:
    url = refused_port()
    with connect(url, "") as client, pytest.raises(aforesaid.Unreachable) as caught:
        client.agent()
    assert caught.value.message == f"cannot reach {url}: connection refused"
    with connect(url, "") as client, pytest.raises(aforesaid.Unreachable):
        client.import_turns([(Agent("a"), Conversation("c", "a"))])


def test_somebody_who_never_answers(connect: Connect) -> None:
    with listening(None) as url, connect(url, "", timeout=0.2) as client, pytest.raises(aforesaid.DeadlineExceeded) as caught:
        client.agent()
    assert caught.value.message == f"no answer from {url} within 0.2 s"


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 99\r\n\r\nabc"])
def test_a_connection_that_breaks(connect: Connect, answer: bytes) -> None:
    with listening(answer) as url, connect(url, "") as client, pytest.raises(aforesaid.Unreachable):
        client.agent()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 3\r\n\r\n\xff\xff\xff",
    ],
)
def test_something_else_there(connect: Connect, answer: bytes) -> None:
    with (
        listening(answer) as url,
        connect(url, "") as client,
        pytest.raises(aforesaid.Unexpected, match="does not answer as aforesaid does"),
    ):
        client.agent()


def test_no_proxy_stands_between_a_client_and_its_own_machine(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, refused_port())
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
    with listening(answer) as url:
        for host in ("127.0.0.1", "localhost"):
            with connect(url.replace("127.0.0.1", host), "") as client, pytest.raises(aforesaid.PermissionDenied):
                client.agent()


def test_headers_hold_nothing_but_the_caller(calling: Calling) -> None:
    client = calling(Script(get_agent=lambda _: agent_service_pb.GetAgentResponse()), agent_id="ada")
    client.agent()
    headers = sent(client)[0].headers
    assert isinstance(headers, Headers)
    assert set(headers) <= {
        "accept-encoding",
        "connect-protocol-version",
        "connect-timeout-ms",
        "content-encoding",
        "content-type",
        "user-agent",
        "x-agent-id",
    }
