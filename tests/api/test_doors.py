"""Every method on every door: what is asked reaches the core whole, the answer reaches the caller whole, no other door is open."""

from __future__ import annotations

import gzip
import re
import socket
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import quote

import grpc
import httpx
import pytest

from aforesaid.model import Agent, Conversation, File, Reasoning, Source, SourceRef, Text, ToolCall, ToolResult, Turn
from aforesaid_server.audit import Fault, ReadRecord, Verification
from aforesaid_server.ingest import AppendRequest, DeleteRequest, Indexed, IndexOutcome, UpdateRequest, WriteRequest
from aforesaid_server.search import ContextTurn, Hit, Page, ReadReply, ReadRequest, SearchReply, SearchRequest
from aforesaid_server.search.chats import Resolved, TurnHit, TurnsReply, TurnsRequest
from aforesaid_server.search.context import ContextRequest
from aforesaid_server.store import StoredTurn, Written, WrittenTurn
from aforesaid_server.text.transcript import Kind
from tests.api.doors import AGENTS, AUDIT, CONVERSATIONS, SEARCH, ConnectDoor, Contract, GrpcDoor, Service, running
from tests.api.fakes import AGENT, CONVERSATION, PLACE, TURN, FakeCore

Door: TypeAlias = ConnectDoor | GrpcDoor
Json: TypeAlias = dict[str, Any]

SCOPE = {"user_id": "ada"}
AGENT_JSON = {"agentId": "ada", "name": "Ada", "role": "implementer", "scope": {"user_id": "u"}}
CONVERSATION_JSON = {
    "conversationId": "talk",
    "agentId": "ada",
    "title": "A talk",
    "revision": "3",
    "updatedAt": "1970-01-01T00:00:02.000002Z",
    "createdAt": "1970-01-01T00:00:01.000001Z",
    "turnCount": 1,
    "contentLength": "6",
}
TURN_JSON = {"turnId": "t-0", "role": "user", "createdAt": "1970-01-01T00:00:01.500Z", "contentLength": "5"}

PARTS_JSON: list[Json] = [
    {"text": "said\x00 é 記憶 😀"},
    {"reasoning": "thought"},
    {"toolCall": {"name": "run", "arguments": '{"a": 12345678901234567890}', "callId": "1"}},
    {"toolResult": {"callId": "1", "text": "out", "isError": True}},
    {"toolResult": {"callId": "2", "json": '{"b": 1.0}'}},
    {"file": {"mediaType": "image/png", "name": "a.png"}},
]
PARTS = (
    Text("said\x00 é 記憶 😀"),
    Reasoning("thought"),
    ToolCall("run", '{"a": 12345678901234567890}', "1"),
    ToolResult("out", "1", is_error=True),
    ToolResult('{"b": 1.0}', "2", is_json=True),
    File("image/png", "a.png"),
)

DIGEST = f"sha256:{bytes(range(32)).hex()}"
TURN_HIT_JSON: Json = {
    "agentId": "ada",
    "scope": {"user_id": "u"},
    "conversationId": "talk",
    "turn": TURN_JSON | {"parts": [{"text": "hello"}]},
    "score": 1.0,
    "digest": DIGEST,
}

# method, what is sent, what the core is asked, what comes back
METHODS: list[tuple[str, Json, object, Json]] = [
    (
        SEARCH,
        {
            "query": '"héllo" -wörld',
            "pagination": {"limit": 7, "cursor": "c"},
            "agentId": "other",
            "conversationId": "talk",
            "roles": ["user", "tool"],
            "since": "2024-01-01T00:00:00.000001Z",
            "until": "2024-01-02T00:00:00Z",
            "project": "/src/a",
            "match": "MATCH_ANY_WORD",
            "words": "WORDS_AS_TYPED",
            "around": 3,
            "everyAgent": True,
            "reason": "because",
            "scope": SCOPE,
        },
        SearchRequest(
            query='"héllo" -wörld',
            page=Page(7, "c"),
            agent_id="other",
            conversation_id="talk",
            roles=frozenset({"user", "tool"}),
            since=1_704_067_200_000_001,
            until=1_704_153_600_000_000,
            project="/src/a",
            any_word=True,
            as_typed=True,
            around=3,
            every_agent=True,
            reason="because",
            scope=SCOPE,
        ),
        {"notice": "nothing was found", "freshness": {"asOf": "2023-11-14T22:13:20Z"}},
    ),
    (
        SEARCH,
        {
            "query": ' -"fox ',
            "partKinds": ["PART_KIND_FILE", "PART_KIND_TEXT", "PART_KIND_FILE", "PART_KIND_TOOL_RESULT_JSON"],
            "match": "MATCH_SUBSTRING",
        },
        SearchRequest(' -"fox ', kinds=Kind.TEXT | Kind.TOOL_RESULT_JSON | Kind.FILE, substring=True),
        {"notice": "nothing was found", "freshness": {"asOf": "2023-11-14T22:13:20Z"}},
    ),
    *(
        (
            SEARCH,
            {"query": "x", "partKinds": [f"PART_KIND_{kind.name}"]},
            SearchRequest("x", kinds=kind),
            {"notice": "nothing was found", "freshness": {"asOf": "2023-11-14T22:13:20Z"}},
        )
        for kind in Kind
    ),
    (SEARCH, {"query": "x"}, SearchRequest("x"), {"notice": "nothing was found", "freshness": {"asOf": "2023-11-14T22:13:20Z"}}),
    (
        f"{AGENTS}/ReadTranscript",
        {
            "agentId": "a",
            "conversationId": "c",
            "offset": "5",
            "length": "9007199254740993",
            "turnId": "t",
            "reason": "r",
            "scope": SCOPE,
        },
        ReadRequest("a", "c", 5, 9007199254740993, "t", "r", SCOPE),
        {"turns": [TURN_JSON | {"parts": [{"text": "hello"}]}]},
    ),
    (
        f"{AGENTS}/ListAgents",
        {"pagination": {"limit": 5, "cursor": "c"}, "scope": SCOPE},
        (Page(5, "c"), SCOPE),
        {"agents": [AGENT_JSON], "nextPageToken": "next"},
    ),
    (f"{AGENTS}/GetAgent", {"agentId": "a", "scope": SCOPE}, ("a", SCOPE), {"agent": AGENT_JSON}),
    (
        f"{AGENTS}/UpdateAgent",
        {
            "agent": {"agentId": "a", "name": "A", "role": "reviewer", "archived": True, "scope": SCOPE, "parentAgentId": "p"},
            "updateMask": "name,role,archived,scope,parentAgentId",
            "scope": SCOPE,
        },
        UpdateRequest(
            Agent("a", "A", "reviewer", True, SCOPE, "p"),
            frozenset({"name", "role", "archived", "scope", "parent_agent_id"}),
            SCOPE,
        ),
        {"agent": AGENT_JSON},
    ),
    (f"{AGENTS}/UpdateAgent", {"agent": {"agentId": "a"}}, UpdateRequest(Agent("a"), frozenset()), {"agent": AGENT_JSON}),
    (
        f"{AGENTS}/ListConversations",
        {"agentId": "a", "pagination": {"limit": 5}, "scope": SCOPE},
        ("a", Page(5), SCOPE),
        {"conversations": [CONVERSATION_JSON], "nextPageToken": "next"},
    ),
    (
        f"{AGENTS}/GetConversation",
        {"agentId": "a", "conversationId": "c", "scope": SCOPE},
        ("a", "c", SCOPE),
        {"conversation": CONVERSATION_JSON},
    ),
    (
        f"{CONVERSATIONS}/AppendTurns",
        {
            "agentId": "a",
            "conversationId": "c",
            "turns": [
                {"turnId": "t", "role": "user", "parts": PARTS_JSON, "createdAt": "1969-12-31T23:59:59.999999999Z"},
                {"role": "assistant"},
            ],
            "scope": SCOPE,
        },
        AppendRequest("a", "c", (Turn("user", PARTS, "t", -1), Turn("assistant", ())), SCOPE),
        {"revision": "3", "turns": [TURN_JSON]},
    ),
    (
        f"{CONVERSATIONS}/WriteConversation",
        {
            "conversation": {
                "conversationId": "c",
                "agentId": "a",
                "title": "T",
                "turns": [{"role": "user", "parts": [{"text": "x"}]}],
                "source": {"format": "f", "file": "/f", "project": "/p"},
            },
            "expectedRevision": "0",
            "scope": SCOPE,
        },
        WriteRequest(Conversation("c", "a", "T", (Turn("user", (Text("x"),)),), Source("f", "/f", "/p")), 0, SCOPE),
        {"conversation": CONVERSATION_JSON},
    ),
    (
        f"{CONVERSATIONS}/WriteConversation",
        {"conversation": {"conversationId": "c"}},
        WriteRequest(Conversation("c", ""), None),
        {"conversation": CONVERSATION_JSON},
    ),
    (
        f"{CONVERSATIONS}/DeleteConversation",
        {"agentId": "a", "conversationId": "c", "scope": SCOPE},
        DeleteRequest("a", "c", SCOPE),
        {},
    ),
    (
        f"{CONVERSATIONS}/WriteConversation",
        {"conversation": {"conversationId": "c"}, "exactScope": True},
        WriteRequest(Conversation("c", ""), None, exact_scope=True),
        {"conversation": CONVERSATION_JSON},
    ),
    (
        f"{CONVERSATIONS}/DeleteConversation",
        {"conversationId": "c", "exactScope": True},
        DeleteRequest("", "c", exact_scope=True),
        {},
    ),
    (
        f"{CONVERSATIONS}/IndexConversation",
        {
            "conversation": {"conversationId": "c", "agentId": "a", "turns": [{"role": "user", "parts": [{"text": "x"}]}]},
            "expectedRevision": "0",
            "exactScope": True,
            "scope": SCOPE,
        },
        WriteRequest(Conversation("c", "a", "", (Turn("user", (Text("x"),)),)), 0, SCOPE, exact_scope=True),
        {"conversation": CONVERSATION_JSON, "outcome": "INDEX_OUTCOME_WRITTEN"},
    ),
    (
        f"{CONVERSATIONS}/SearchTurns",
        {
            "query": '"héllo" -wörld',
            "limit": 7,
            "conversationIds": ["c:1", "d"],
            "agentIds": ["chat", "b"],
            "stem": True,
            "around": 3,
            "scope": SCOPE,
        },
        TurnsRequest('"héllo" -wörld', 7, ("c:1", "d"), ("chat", "b"), True, 3, SCOPE),
        {"hits": [TURN_HIT_JSON], "freshness": {"asOf": "2023-11-14T22:13:20Z"}},
    ),
    (
        f"{CONVERSATIONS}/SearchTurns",
        {},
        TurnsRequest(""),
        {"hits": [TURN_HIT_JSON], "freshness": {"asOf": "2023-11-14T22:13:20Z"}},
    ),
    (
        f"{CONVERSATIONS}/ResolveSource",
        {"source": {"agentId": "a", "conversationId": "c:1", "turnId": "c:1:0", "digest": DIGEST}, "scope": SCOPE},
        (SourceRef("c:1", "c:1:0", DIGEST, "a"), SCOPE),
        {name: value for name, value in TURN_HIT_JSON.items() if name != "score"},
    ),
    (
        f"{CONVERSATIONS}/CompileContext",
        {
            "query": "x",
            "sources": [{"conversationId": "c", "turnId": "t"}],
            "budget": 9,
            "limit": 7,
            "conversationIds": ["c"],
            "agentIds": ["a"],
            "stem": True,
            "around": 3,
            "scope": SCOPE,
        },
        ContextRequest("x", (SourceRef("c", "t"),), 9, 7, ("c",), ("a",), True, 3, SCOPE),
        {
            "candidates": [
                {
                    "text": "user: hello",
                    "match": "search",
                    "agentId": "ada",
                    "conversationId": "talk",
                    "turnId": "t-0",
                    "score": 1.0,
                }
            ]
        },
    ),
    (f"{AUDIT}/ListReads", {"agentId": "a", "pagination": {"limit": 5}, "scope": SCOPE}, ("a", Page(5), SCOPE), {}),
    (f"{AUDIT}/VerifyAudit", {}, None, {"intact": True}),
]


@pytest.mark.parametrize(
    ("method", "body", "asked", "told"), METHODS, ids=[f"{row[0].rpartition('/')[2]}-{n}" for n, row in enumerate(METHODS)]
)
def test_methods(method: str, body: Json, asked: object, told: Json, door: Door, core: FakeCore) -> None:
    reply = door.call(method, body)
    assert reply.code == "ok", reply
    assert [request for _, request in core.asked] == [asked]
    assert reply.body == told
    call = core.asked[0][0]
    assert (call.method, call.door, call.agent_id, call.scope) == (method.rpartition("/")[2], door.name, "", {})


def test_what_chats_answer_in_full(door: Door, core: FakeCore) -> None:
    """Turns around, parts that were left out, an unchanged text that is told as false, and outcomes without a conversation."""
    bare = replace(TURN, parts=())
    hit = TurnHit(replace(PLACE, turn=bare), 0.5, (TURN,), (bare, TURN), parts_left_out=True)
    core.answer = lambda _: TurnsReply((hit, hit), "a notice", 3, 0)
    whole = TURN_JSON | {"parts": [{"text": "hello"}]}
    told = TURN_HIT_JSON | {
        "turn": TURN_JSON,
        "score": 0.5,
        "before": [whole],
        "after": [TURN_JSON, whole],
        "partsLeftOut": True,
    }
    reply = door.call(f"{CONVERSATIONS}/SearchTurns", {"query": "x"})
    assert reply.body == {
        "hits": [told, told],
        "notice": "a notice",
        "freshness": {"turnsPending": "3", "asOf": "1970-01-01T00:00:00Z"},
    }
    for unchanged in (True, False):
        core.answer = lambda _, unchanged=unchanged: Resolved(PLACE, unchanged)
        reply = door.call(f"{CONVERSATIONS}/ResolveSource", {"source": {"conversationId": "c", "turnId": "t"}})
        assert reply.body["unchanged"] is unchanged
    body = {"conversation": {"conversationId": "c"}}
    core.answer = lambda _: Indexed(IndexOutcome.TOMBSTONED, None)
    assert door.call(f"{CONVERSATIONS}/IndexConversation", body).body == {"outcome": "INDEX_OUTCOME_TOMBSTONED"}
    core.answer = lambda _: Indexed(IndexOutcome.UNCHANGED, Written(AGENT, CONVERSATION, (), (), revised=False))
    told = {"conversation": CONVERSATION_JSON, "outcome": "INDEX_OUTCOME_UNCHANGED"}
    assert door.call(f"{CONVERSATIONS}/IndexConversation", body).body == told


HIT = Hit(
    AGENT.__class__(7, "sub", "Sub", "reviewer", True, {}, 1, "ada"),
    replace(CONVERSATION, title="Title"),
    StoredTurn(4, 2, "t/3", 3, "tool", PARTS, 1_704_067_200_123_456, 2**40, 2**33, bytes(range(32))),
    "a ⟦word⟧ …",
    3.75,
    (ContextTurn("t/2", 2, "user", "before", True, 5_000_000),),
    (ContextTurn("t/4", 4, "", "", False, 0),),
)
HIT_JSON = {
    "agentId": "sub",
    "snippet": "a ⟦word⟧ …",
    "name": "Sub",
    "archived": True,
    "score": 3.75,
    "seq": 3,
    "role": "tool",
    "contentOffset": "1099511627776",
    "contentLength": "8589934592",
    "conversationId": "talk",
    "turnId": "t/3",
    "title": "Title",
    "createdAt": "2024-01-01T00:00:00.123456Z",
    "partKinds": [
        "PART_KIND_TEXT",
        "PART_KIND_REASONING",
        "PART_KIND_TOOL_CALL",
        "PART_KIND_TOOL_RESULT_TEXT",
        "PART_KIND_TOOL_RESULT_JSON",
        "PART_KIND_FILE",
    ],
    "digest": "sha256:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    "parentAgentId": "ada",
    "before": [{"turnId": "t/2", "seq": 2, "role": "user", "text": "before", "cut": True, "createdAt": "1970-01-01T00:00:05Z"}],
    "after": [{"turnId": "t/4", "seq": 4, "createdAt": "1970-01-01T00:00:00Z"}],
}


def test_hits_come_whole_and_in_their_lists(door: Door, core: FakeCore) -> None:
    near, partial = (replace(HIT, snippet=name) for name in ("near", "partial"))
    core.answer = lambda _: SearchReply((HIT, near), (near,), (partial,), "token", "note", 12, 1)
    reply = door.call(SEARCH, {"query": "x"})
    assert reply.body == {
        "matches": [HIT_JSON, HIT_JSON | {"snippet": "near"}],
        "near": [HIT_JSON | {"snippet": "near"}],
        "partial": [HIT_JSON | {"snippet": "partial"}],
        "nextPageToken": "token",
        "notice": "note",
        "freshness": {"turnsPending": "12", "asOf": "1970-01-01T00:00:00.000001Z"},
    }


def test_turns_come_with_all_their_parts(door: Door, core: FakeCore) -> None:
    core.answer = lambda _: ReadReply(
        (replace(TURN, parts=PARTS), replace(TURN, parts=(Text(""), ToolResult("", is_json=True)))), 77
    )
    reply = door.call(f"{AGENTS}/ReadTranscript", {"conversationId": "c"})
    assert [turn["parts"] for turn in reply.body["turns"]] == [PARTS_JSON, [{"text": ""}, {"toolResult": {"json": ""}}]]
    assert reply.body["nextOffset"] == "77"


def test_written_turns_come_in_the_order_of_the_request(door: Door, core: FakeCore) -> None:
    stored = [replace(TURN, turn_id=f"t-{n}", seq=n, content_offset=6 * n) for n in range(3)]
    turns = [WrittenTurn(stored[2], "added", 0), WrittenTurn(stored[0], "replaced", 1), WrittenTurn(stored[1], "unchanged", 2)]
    core.answer = lambda _: Written(AGENT, CONVERSATION, (turns[1], turns[2], turns[0]), ())
    reply = door.call(f"{CONVERSATIONS}/AppendTurns", {"conversationId": "c"})
    assert [(turn["turnId"], turn.get("contentOffset", "0")) for turn in reply.body["turns"]] == [
        ("t-2", "12"),
        ("t-0", "0"),
        ("t-1", "6"),
    ]
    assert all("parts" not in turn for turn in reply.body["turns"])


def test_a_conversation_tells_where_it_came_from(door: Door, core: FakeCore) -> None:
    core.answer = lambda _: (replace(CONVERSATION, source=Source("claude-code", "/f", "/p")), AGENT)
    reply = door.call(f"{AGENTS}/GetConversation", {"conversationId": "c"})
    assert reply.body["conversation"] == CONVERSATION_JSON | {"source": {"format": "claude-code", "file": "/f", "project": "/p"}}


def test_records_of_reads_come_whole(door: Door, core: FakeCore) -> None:
    record = ReadRecord(
        9,
        1_000_000,
        "ada",
        "reviewer",
        ("b", "c"),
        "SearchTranscripts",
        "grpc",
        False,
        "ff",
        ("t1", "t2"),
        "why",
        "r-1",
        '{"a":1}',
        True,
        "q",
    )
    core.answer = lambda _: ([record], "more")
    assert door.call(f"{AUDIT}/ListReads", {}).body == {
        "records": [
            {
                "time": "1970-01-01T00:00:01Z",
                "callerAgentId": "ada",
                "role": "reviewer",
                "targetAgentIds": ["b", "c"],
                "method": "SearchTranscripts",
                "door": "grpc",
                "queryHash": "ff",
                "turnIds": ["t1", "t2"],
                "reason": "why",
                "requestId": "r-1",
                "filters": '{"a":1}',
                "laterPage": True,
                "query": "q",
            }
        ],
        "nextPageToken": "more",
    }


def test_faults_of_the_audit_log_come_whole(door: Door, core: FakeCore) -> None:
    core.answer = lambda _: Verification(False, 5, "ab", (Fault(3, "altered"), Fault(5, "cut off")))
    assert door.call(f"{AUDIT}/VerifyAudit", {}).body == {
        "records": "5",
        "head": "ab",
        "faults": [{"record": "3", "problem": "altered"}, {"record": "5", "problem": "cut off"}],
    }


@pytest.mark.parametrize(
    ("since", "micros"),
    [
        ("2024-01-01T00:00:00.000000001Z", 1_704_067_200_000_001),
        ("2024-01-01T00:00:00.000001Z", 1_704_067_200_000_001),
        ("1969-12-31T23:59:59.9999995Z", 0),
    ],
)
def test_bounds_of_time_are_rounded_up(since: str, micros: int, door: Door, core: FakeCore) -> None:
    """A stored time has microseconds: one at or after a finer bound is one at or after the next microsecond."""
    assert door.call(SEARCH, {"query": "x", "since": since, "until": since}).code == "ok"
    assert (core.asked[0][1].since, core.asked[0][1].until) == (micros, micros)


# -- who asks


@pytest.mark.parametrize(
    ("sent", "agent"),
    [
        ("ada", "ada"),
        ("-home-me-src", "-home-me-src"),
        ("caf%C3%A9%20%2F%00", "café /\x00"),
        ("50%", "50%"),
        ("50%25", "50%"),
        ("%zz", "%zz"),
        (quote("記憶 😀", safe=""), "記憶 😀"),
        ("a" * 512, "a" * 512),
        ("%41" * 512, "A" * 512),
    ],
)
def test_the_caller_is_named_in_a_header(sent: str, agent: str, door: Door, core: FakeCore) -> None:
    assert door.call(SEARCH, {"query": "x"}, {"X-Agent-Id": sent}).code == "ok"
    assert core.asked[0][0].agent_id == agent


def test_a_header_may_hold_plain_utf_8_over_http(service: Service, core: FakeCore) -> None:
    lines = [f"POST /{SEARCH} HTTP/1.1", "Host: localhost", "Content-Type: application/json", "Content-Length: 13"]
    raw = "\r\n".join([*lines, "Connection: close", "X-Agent-Id: café", "", '{"query":"x"}']).encode()
    assert b" 200 " in _raw(service, raw)
    assert core.asked[0][0].agent_id == "café"


@pytest.mark.parametrize("given", ["r-1", "0af7651916cd43dd8448eb211c80319c", "a.b_c:d/e+f=1"])
def test_a_request_id_is_kept_and_told(given: str, door: Door, core: FakeCore) -> None:
    reply = door.call(SEARCH, {"query": "x"}, {"X-Request-Id": given})
    assert reply.headers["x-request-id"] == given == core.asked[0][0].request_id


@pytest.mark.parametrize("given", [None, "", "a b", "-x", '"', "<script>", "x" * 129])
def test_a_request_id_that_is_missing_or_odd_is_made(given: str | None, door: Door, core: FakeCore) -> None:
    replies = [door.call(SEARCH, {"query": "x"}, {} if given is None else {"X-Request-Id": given}) for _ in range(2)]
    ids = [reply.headers["x-request-id"] for reply in replies]
    assert ids == [call.request_id for call, _ in core.asked]
    assert all(re.fullmatch("[0-9a-f]{16}", made) for made in ids)
    assert ids[0] != ids[1]


# -- the other protocols of the HTTP port


def test_connect_binary(connect: ConnectDoor, contract: Contract, core: FakeCore) -> None:
    request = contract.parsed(SEARCH, {"query": "héllo"}).SerializeToString()
    answer = connect.http.post(f"/{SEARCH}", content=request, headers={"content-type": "application/proto"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/proto")
    assert contract.told(contract.types(SEARCH)[1].FromString(answer.content))["notice"] == "nothing was found"
    assert core.asked[0][1].query == "héllo"


@pytest.mark.parametrize("kind", ["application/grpc-web", "application/grpc-web+proto"])
def test_grpc_web(kind: str, connect: ConnectDoor, contract: Contract, core: FakeCore) -> None:
    reply, trailers = _grpc_web(connect, contract, {"query": "héllo"}, kind)
    assert contract.told(contract.types(SEARCH)[1].FromString(reply))["notice"] == "nothing was found"
    assert trailers["grpc-status"] == "0"
    assert (core.asked[0][1].query, core.asked[0][0].door) == ("héllo", "grpc-web")


def test_grpc_web_tells_errors_in_its_trailers(connect: ConnectDoor, contract: Contract) -> None:
    _, trailers = _grpc_web(connect, contract, {"query": "x", "pagination": {"limit": -7}}, "application/grpc-web+proto")
    assert trailers["grpc-status"] == "3"
    assert trailers["grpc-message"] == quote("pagination.limit: -7 is less than 0", safe="")
    assert trailers["grpc-status-details-bin"]


def _grpc_web(connect: ConnectDoor, contract: Contract, body: Json, kind: str) -> tuple[bytes, dict[str, str]]:
    data = contract.parsed(SEARCH, body).SerializeToString()
    answer = connect.http.post(
        f"/{SEARCH}", content=bytes([0]) + len(data).to_bytes(4, "big") + data, headers={"content-type": kind, "x-grpc-web": "1"}
    )
    assert answer.status_code == 200
    message, left = b"", answer.content
    while left and not left[0] & 0x80:
        size = int.from_bytes(left[1:5], "big")
        message, left = left[5 : 5 + size], left[5 + size :]
    lines = left[5:].decode().split("\r\n") if left else [f"{name}: {value}" for name, value in answer.headers.items()]
    return message, dict(line.split(": ", 1) for line in lines if line)


def test_compressed_requests_are_read(connect: ConnectDoor, core: FakeCore) -> None:
    answer = connect.http.post(
        f"/{SEARCH}",
        content=gzip.compress(b'{"query": "packed"}'),
        headers={"content-type": "application/json", "content-encoding": "gzip"},
    )
    assert answer.status_code == 200
    assert core.asked[0][1].query == "packed"


def test_grpc_reads_compressed_requests_and_binary_metadata(over_grpc: GrpcDoor, contract: Contract, core: FakeCore) -> None:
    asked, answered = contract.types(SEARCH)
    calls: Any = over_grpc.channel.unary_unary(f"/{SEARCH}", asked.SerializeToString, answered.FromString)
    request = contract.parsed(SEARCH, {"query": "packed " * 60})
    calls(request, timeout=10, compression=grpc.Compression.Gzip, metadata=[("trace-bin", b"\x00\xff"), ("x-agent-id", "ada")])
    assert (core.asked[0][1].query, core.asked[0][0].agent_id) == ("packed " * 60, "ada")


# -- what is not served


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("name", ["SearchTranscripts", "GetAgent"])
def test_only_post_is_served(method: str, name: str, connect: ConnectDoor, core: FakeCore) -> None:
    """ "no Connect GET, so that no query stands in a URL"."""
    answer = connect.http.request(
        method,
        f"/{AGENTS}/{name}?connect=v1&encoding=json&message=%7B%22query%22%3A%22x%22%7D",
        headers={"content-type": "application/json"},
    )
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert not core.asked


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "json",
        "application/xml",
        "application/connect+json",
    ],
)
def test_only_our_content_types_are_served(kind: str | None, connect: ConnectDoor, core: FakeCore) -> None:
    """What a page can send without asking first (text/plain, forms) is never read."""
    answer = connect.http.post(f"/{SEARCH}", content=b'{"query":"x"}', headers={"content-type": kind} if kind else {})
    assert answer.status_code == 415
    assert "application/json" in answer.json()["message"]
    assert "application/json" in answer.headers["accept-post"]
    assert not core.asked


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
def test_content_types_may_have_parameters(kind: str, connect: ConnectDoor) -> None:
    assert connect.call(SEARCH, {"query": "x"}, {"content-type": kind}).code == "ok"


def test_grpc_on_the_http_port_is_told_where_it_is(connect: ConnectDoor) -> None:
    answer = connect.http.post(f"/{SEARCH}", content=b"\0\0\0\0\0", headers={"content-type": "application/grpc"})
    assert (answer.status_code, answer.json()["message"]) == (415, "content-type: gRPC is served on the other port")


@pytest.mark.parametrize(
    "path", ["/", "/agent.v1.AgentService/Nothing", "/agent.v1.AgentService", "/agent.v1.Nothing/Search", "/x" * 500]
)
def test_unknown_paths(path: str, connect: ConnectDoor) -> None:
    answer = connect.http.post(path, content=b"{}", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()) == (404, {"code": "unimplemented", "message": "there is no such path"})


def test_unknown_methods_of_grpc(over_grpc: GrpcDoor) -> None:
    calls: Any = over_grpc.channel.unary_unary("/agent.v1.AgentService/Nothing")
    with pytest.raises(grpc.RpcError) as raised:
        calls(b"", timeout=10)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


# -- Host and Origin


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "127.9.9.9", "LOCALHOST:1", "my.localhost:80", "localhost."])
def test_loopback_hosts_are_served(host: str, connect: ConnectDoor) -> None:
    assert connect.call(SEARCH, {"query": "x"}, {"Host": host}).code == "ok"


@pytest.mark.parametrize(
    "host",
    [
        "pages.example",
        "pages.example:8787",
        "localhost.pages.example",
        "127.0.0.1.pages.example",
        "127.0.0.1:8787@pages.example",
        "10.0.0.1",
        "0.0.0.0",
        "[::]",
        "::1",
        "",
        "localhost:x",
        "localhost localhost",
        "169.254.1.1",
    ],
)
@pytest.mark.parametrize("path", [f"/{SEARCH}", "/healthz", "/readyz", "/nothing"])
def test_other_hosts_are_refused(host: str, path: str, connect: ConnectDoor, core: FakeCore) -> None:
    """A page may point its own name at 127.0.0.1."""
    answer = connect.http.post(path, content=b'{"query":"x"}', headers={"content-type": "application/json", "host": host})
    assert answer.status_code == 403
    assert answer.json() == {"code": "permission_denied", "message": "host: is not a loopback name"}
    assert not core.asked


def test_a_request_without_a_host_is_refused(service: Service) -> None:
    assert b" 403 " in _raw(service, b"GET /healthz HTTP/1.0\r\n\r\n")


def test_two_hosts_are_refused(service: Service) -> None:
    told = _raw(service, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: pages.example\r\nConnection: close\r\n\r\n")
    assert b" 403 " in told or b" 400 " in told


@pytest.mark.parametrize(
    "origin",
    [
        "https://pages.example",
        "http://localhost",
        "http://localhost:3000",
        "https://{host}",
        "null",
        "",
        "http://{host}.pages.example",
        "file://",
    ],
)
def test_other_origins_are_refused(origin: str, service: Service, connect: ConnectDoor, core: FakeCore) -> None:
    host = service.url.removeprefix("http://")
    answer = connect.http.post(
        f"/{SEARCH}", content=b'{"query":"x"}', headers={"content-type": "application/json", "origin": origin.format(host=host)}
    )
    assert answer.status_code == 403
    assert answer.json() == {"code": "permission_denied", "message": "origin: is not allowed here"}
    assert "access-control-allow-origin" not in answer.headers
    assert not core.asked


def test_the_own_origin_is_served(service: Service, connect: ConnectDoor) -> None:
    assert connect.call(SEARCH, {"query": "x"}, {"Origin": service.url}).code == "ok"


def test_a_set_origin_is_served_and_may_read() -> None:
    origin, core = "https://pages.example", FakeCore()
    with running(core.house(), allowed_origins=frozenset({origin})) as service, httpx.Client(base_url=service.url) as http:
        asked = http.options(
            f"/{SEARCH}",
            headers={
                "origin": origin,
                "access-control-request-method": "POST",
                "access-control-request-headers": "content-type, x-agent-id, connect-timeout-ms",
            },
        )
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, origin)
        answer = http.post(f"/{SEARCH}", content=b'{"query":"x"}', headers={"content-type": "application/json", "origin": origin})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)
        assert {"grpc-status", "grpc-message", "grpc-status-details-bin"} <= set(
            answer.headers["access-control-expose-headers"].split(", ")
        )
        other = http.options(f"/{SEARCH}", headers={"origin": "https://other.example", "access-control-request-method": "POST"})
        assert (other.status_code, "access-control-allow-origin" in other.headers) == (403, False)
        assert len(core.asked) == 1


def test_a_star_allows_nobody() -> None:
    with running(FakeCore().house(), allowed_origins=frozenset({"*"})) as service, httpx.Client(base_url=service.url) as http:
        assert http.get("/healthz", headers={"origin": "https://pages.example"}).status_code == 403


def _raw(service: Service, request: bytes) -> bytes:
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as opened:
        opened.sendall(request)
        told = b""
        while chunk := opened.recv(65536):
            told += chunk
    return told
