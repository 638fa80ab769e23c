"""Errors: the codes of contract.md's table, messages that name the field, google.rpc.BadRequest; the same on every door, and
nobody's text in them or in the log.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
from collections.abc import Iterator
from typing import Any, TypeAlias

import grpc
import pytest

from aforesaid_server import errors
from aforesaid_server.api import log
from aforesaid_server.api.interceptors import Frame
from tests.api.doors import AGENTS, AUDIT, CONVERSATIONS, SEARCH, ConnectDoor, Contract, GrpcDoor
from tests.api.fakes import AGENT, FakeCore

Door: TypeAlias = ConnectDoor | GrpcDoor
Json: TypeAlias = dict[str, Any]

SECRET = "squeamish ossifrage"
APPEND, WRITE = f"{CONVERSATIONS}/AppendTurns", f"{CONVERSATIONS}/WriteConversation"
INDEX, SEARCH_TURNS, RESOLVE, COMPILE = (
    f"{CONVERSATIONS}/{name}" for name in ("IndexConversation", "SearchTurns", "ResolveSource", "CompileContext")
)
KINDS = ", ".join(
    f"PART_KIND_{kind}" for kind in ("TEXT", "REASONING", "TOOL_CALL", "TOOL_RESULT_TEXT", "TOOL_RESULT_JSON", "FILE")
)
MATCHES = "MATCH_UNSPECIFIED, MATCH_ALL_WORDS, MATCH_ANY_WORD, MATCH_SUBSTRING"


# -- the rules of the proto, on every door

RULES: list[tuple[str, Json, str, str]] = [
    (SEARCH, {"query": "x" * 501}, "query", "501 characters, at most 500 are allowed"),
    (SEARCH, {"query": "😀" * 501}, "query", "501 characters, at most 500 are allowed"),
    (SEARCH, {"query": "x", "pagination": {"limit": -7}}, "pagination.limit", "-7 is less than 0"),
    (SEARCH, {"query": "x", "pagination": {"limit": -(2**31)}}, "pagination.limit", "-2147483648 is less than 0"),
    (
        SEARCH,
        {"query": "x", "pagination": {"cursor": "c" * 2049}},
        "pagination.cursor",
        "2049 characters, at most 2048 are allowed",
    ),
    (SEARCH, {"query": "x", "around": 11}, "around", "11 is more than 10"),
    (SEARCH, {"query": "x", "around": -1}, "around", "-1 is less than 0"),
    (SEARCH, {"query": "x", "agentId": "é" * 257}, "agent_id", "514 bytes, at most 512 are allowed"),
    (SEARCH, {"query": "x", "conversationId": "x" * 513}, "conversation_id", "513 bytes, at most 512 are allowed"),
    (SEARCH, {"query": "x", "roles": ["user", ""]}, "roles[1]", "is empty"),
    (SEARCH, {"query": "x", "roles": ["r"] * 33}, "roles", "33 entries, at most 32 are allowed"),
    (SEARCH, {"query": "x", "reason": "é" * 1001}, "reason", "1001 characters, at most 1000 are allowed"),
    (SEARCH, {"query": "x", "scope": {str(n): "" for n in range(17)}}, "scope", "17 entries, at most 16 are allowed"),
    (SEARCH, {"query": "x", "scope": {"": "v"}}, "scope", "a key: is empty"),
    (SEARCH, {"query": "x", "scope": {SECRET: "v" * 1025}}, "scope", "a value: 1025 bytes, at most 1024 are allowed"),
    (SEARCH, {"query": "x", "match": 7}, "match", f"7 is none of {MATCHES}"),
    (SEARCH, {"query": "x", "partKinds": ["PART_KIND_TEXT", 0]}, "part_kinds[1]", f"0 is none of {KINDS}"),
    (SEARCH, {"query": "x", "partKinds": [7]}, "part_kinds[0]", f"7 is none of PART_KIND_UNSPECIFIED, {KINDS}"),
    (SEARCH, {"query": "x", "partKinds": ["PART_KIND_TEXT"] * 17}, "part_kinds", "17 entries, at most 16 are allowed"),
    (SEARCH, {"query": "x", "words": -1}, "words", "-1 is none of WORDS_UNSPECIFIED, WORDS_STEMMED, WORDS_AS_TYPED"),
    (f"{AGENTS}/ReadTranscript", {}, "conversation_id", "is empty"),
    (f"{AGENTS}/ReadTranscript", {"conversationId": "c", "offset": "-1"}, "offset", "-1 is less than 0"),
    (f"{AGENTS}/ReadTranscript", {"conversationId": "c", "length": "-5"}, "length", "-5 is less than 0"),
    (f"{AGENTS}/UpdateAgent", {}, "agent", "is empty"),
    (f"{AGENTS}/UpdateAgent", {"agent": {"role": "r" * 129}}, "agent.role", "129 characters, at most 128 are allowed"),
    (f"{AUDIT}/ListReads", {"pagination": {"limit": -1}}, "pagination.limit", "-1 is less than 0"),
    (WRITE, {}, "conversation", "is empty"),
    (WRITE, {"conversation": {"conversationId": "c"}, "expectedRevision": "-1"}, "expected_revision", "-1 is less than 0"),
    (APPEND, {"conversationId": "c", "turns": [{}, {"parts": [{"text": "x"}, {}]}]}, "turns[1].parts[1]", "is empty"),
    (
        APPEND,
        {"conversationId": "c", "turns": [{"turnId": "t" * 1025}]},
        "turns[0].turn_id",
        "1025 bytes, at most 1024 are allowed",
    ),
    (INDEX, {}, "conversation", "is empty"),
    (INDEX, {"conversation": {"conversationId": "c" * 513}}, "conversation.conversation_id", "513 bytes, at most 512 are allowed"),
    (SEARCH_TURNS, {"query": "é" * 32_769}, "query", "65538 bytes, at most 65536 are allowed"),
    (SEARCH_TURNS, {"limit": -1}, "limit", "-1 is less than 0"),
    (SEARCH_TURNS, {"around": 11}, "around", "11 is more than 10"),
    (SEARCH_TURNS, {"conversationIds": ["c"] * 101}, "conversation_ids", "101 entries, at most 100 are allowed"),
    (SEARCH_TURNS, {"agentIds": ["a", ""]}, "agent_ids[1]", "is empty"),
    (RESOLVE, {}, "source", "is empty"),
    (RESOLVE, {"source": {"turnId": "t"}}, "source.conversation_id", "is empty"),
    (RESOLVE, {"source": {"conversationId": "c", "turnId": "t" * 1025}}, "source.turn_id", "1025 bytes, at most 1024 are allowed"),
    (
        RESOLVE,
        {"source": {"conversationId": "c", "turnId": "t", "digest": SECRET}},
        "source.digest",
        "does not match regex pattern `^(sha256:[0-9a-f]{64})?$`",
    ),
    (COMPILE, {"budget": -1}, "budget", "-1 is less than 0"),
    (COMPILE, {"sources": [{"conversationId": "c", "turnId": "t"}, {"conversationId": "c"}]}, "sources[1].turn_id", "is empty"),
    (WRITE, {"conversation": {"turns": [{"role": "r" * 129}]}}, "conversation.turns[0].role", "129 bytes, at most 128 are allowed"),
]


@pytest.mark.parametrize(("method", "body", "field", "problem"), RULES, ids=[f"{row[2]}-{n}" for n, row in enumerate(RULES)])
def test_rules(method: str, body: Json, field: str, problem: str, door: Door, core: FakeCore) -> None:
    reply = door.call(method, body)
    assert (reply.code, reply.message, reply.violations) == ("invalid_argument", f"{field}: {problem}", [(field, problem)])
    assert not core.asked


@pytest.mark.parametrize(
    ("mask", "problem"),
    [("agentId", "path 0 is none of"), ("name,squeamish", "path 1 is none of"), ("name.first", "path 0 is none of")],
)
def test_masks(mask: str, problem: str, door: Door, core: FakeCore) -> None:
    reply = door.call(f"{AGENTS}/UpdateAgent", {"agent": {"agentId": "a"}, "updateMask": mask})
    assert (reply.code, reply.violations[0][0]) == ("invalid_argument", "update_mask")
    assert reply.message == f"update_mask: {problem} name, role, archived, parent_agent_id, scope"
    assert not core.asked


def test_times_out_of_range(connect: ConnectDoor, over_grpc: GrpcDoor, contract: Contract, core: FakeCore) -> None:
    """The binary form can say what JSON cannot."""
    asked, _ = contract.types(SEARCH)
    for seconds, nanos, problem in (
        (253_402_300_800, 0, "253402300800 seconds lie outside of the years 1 to 9999"),
        (-62_135_596_801, 0, "-62135596801 seconds lie outside of the years 1 to 9999"),
        (0, -1, "-1 nanoseconds are not within a second"),
        (0, 1_000_000_000, "1000000000 nanoseconds are not within a second"),
    ):
        request: Any = asked(query="x")
        request.until.seconds, request.until.nanos = seconds, nanos
        reply = over_grpc.send(SEARCH, request.SerializeToString())
        assert (reply.code, reply.message) == ("invalid_argument", f"until: {problem}")
        answer = connect.http.post(f"/{SEARCH}", content=request.SerializeToString(), headers={"content-type": "application/proto"})
        assert answer.json()["message"] == f"until: {problem}"
    turn = contract.types(APPEND)[0](conversation_id="c")
    turn.turns.add().created_at.seconds = 10**15  # type: ignore[attr-defined]
    reply = over_grpc.send(APPEND, turn.SerializeToString())
    assert reply.message == "turns[0].created_at: 1000000000000000 seconds lie outside of the years 1 to 9999"
    assert not core.asked


# -- JSON that is not the message

JSON: list[tuple[str, str, str, str]] = [
    (SEARCH, '{"query": 7}', "query", "7 is not text"),
    (SEARCH, '{"query": 1e400}', "query", "inf is not text"),
    (SEARCH, '{"query": true}', "query", "true is not text"),
    (SEARCH, '{"query": ["a"]}', "query", "a list is not text"),
    (SEARCH, '{"query": {"squeamish": 1}}', "query", "an object is not text"),
    (SEARCH, '{"query": "\\ud800"}', "query", "holds half of a surrogate pair, which is no character"),
    (SEARCH, '{"query": "squeamish \\udfff\\ud83d"}', "query", "holds half of a surrogate pair, which is no character"),
    (SEARCH, '{"query": "x", "agentId": "\\ud83d"}', "agent_id", "holds half of a surrogate pair, which is no character"),
    (SEARCH, '{"query": "x", "agent_id": 5}', "agent_id", "5 is not text"),
    (SEARCH, '{"query": "x", "pagination": []}', "pagination", "a list is not an object"),
    (SEARCH, '{"query": "x", "pagination": {"limit": "squeamish"}}', "pagination.limit", "text is not a whole number"),
    (SEARCH, '{"query": "x", "pagination": {"limit": 1.5}}', "pagination.limit", "1.5 is not a whole number"),
    (SEARCH, '{"query": "x", "pagination": {"limit": true}}', "pagination.limit", "true is not a whole number"),
    (SEARCH, '{"query": "x", "pagination": {"limit": 2147483648}}', "pagination.limit", "2147483648 is more than 2147483647"),
    (SEARCH, '{"query": "x", "pagination": {"limit": "-2147483649"}}', "pagination.limit", "-2147483649 is less than -2147483648"),
    (
        SEARCH,
        '{"query": "x", "pagination": {"limit": 1' + "0" * 60 + "}}",
        "pagination.limit",
        "a number of that size is more than 2147483647",
    ),
    (SEARCH, '{"query": "x", "pagination": {"cursor": 5}}', "pagination.cursor", "5 is not text"),
    (SEARCH, '{"query": "x", "roles": "user"}', "roles", "text is not a list"),
    (SEARCH, '{"query": "x", "roles": ["a", null]}', "roles[1]", "null is not text"),
    (SEARCH, '{"query": "x", "roles": ["a", "\\ud800"]}', "roles[1]", "holds half of a surrogate pair, which is no character"),
    (SEARCH, '{"query": "x", "scope": []}', "scope", "a list is not an object"),
    (SEARCH, '{"query": "x", "scope": {"squeamish": 1}}', "scope", "1 is not text"),
    (SEARCH, '{"query": "x", "scope": {"\\ud800": "v"}}', "scope", "holds half of a surrogate pair, which is no character"),
    (SEARCH, '{"query": "x", "match": "MATCH_SUBSTRINGS"}', "match", f"MATCH_SUBSTRINGS is none of {MATCHES}"),
    (SEARCH, '{"query": "x", "match": "squeamish ossifrage"}', "match", f"text is none of {MATCHES}"),
    (SEARCH, '{"query": "x", "match": true}', "match", f"true is none of {MATCHES}"),
    (SEARCH, '{"query": "x", "match": 2147483648}', "match", f"2147483648 is none of {MATCHES}"),
    (SEARCH, '{"query": "x", "everyAgent": "true"}', "every_agent", "text is not true or false"),
    (SEARCH, '{"query": "x", "since": "squeamish"}', "since", "text is not a time such as 2026-01-31T12:00:00Z"),
    (SEARCH, '{"query": "x", "since": 5}', "since", "5 is not a time such as 2026-01-31T12:00:00Z"),
    (SEARCH, '{"query": "x", "until": "10000-01-01T00:00:00Z"}', "until", "text is not a time such as 2026-01-31T12:00:00Z"),
    (SEARCH, '{"query": "x", "cursor": "c"}', "cursor", "no such field"),
    (SEARCH, '{"query": "x", "pagination": {"size": 5}}', "pagination.size", "no such field"),
    (SEARCH, '{"query": "x", "squeamish ossifrage": 5}', "request", "holds a field that is not known"),
    (SEARCH, '{"query": "x", "pagination": {"squeamish ossifrage": 5}}', "pagination", "holds a field that is not known"),
    (SEARCH, "[]", "request", "a list is not an object"),
    (SEARCH, '"squeamish"', "request", "text is not an object"),
    (SEARCH, "null", "request", "null is not an object"),
    (SEARCH, "", "request", "is not JSON: line 1 column 1"),
    (SEARCH, '{"query": "x"', "request", "is not JSON: line 1 column 14"),
    (SEARCH, '{"query": "squeamish\nossifrage"}', "request", "is not JSON: line 1 column 21"),
    (SEARCH, "{'query': 'squeamish'}", "request", "is not JSON: line 1 column 2"),
    (SEARCH, '{"query": "x", "around": NaN}', "around", "nan is not a whole number"),
    (
        f"{AGENTS}/UpdateAgent",
        '{"agent": {"agentId": "a"}, "updateMask": "parent_agent_id"}',
        "update_mask",
        "text is not text that names fields in lowerCamelCase, separated by commas",
    ),
    (f"{AGENTS}/ReadTranscript", '{"conversationId": "c", "offset": "1.5"}', "offset", "text is not a whole number"),
    (
        f"{AGENTS}/ReadTranscript",
        '{"conversationId": "c", "offset": 9223372036854775808}',
        "offset",
        "9223372036854775808 is more than 9223372036854775807",
    ),
    (
        APPEND,
        '{"conversationId": "c", "turns": [{"parts": [{"text": "a"}, {"text": 7}]}]}',
        "turns[0].parts[1].text",
        "7 is not text",
    ),
    (
        APPEND,
        '{"conversationId": "c", "turns": [{"parts": [{"text": "a", "reasoning": "b"}]}]}',
        "turns[0].parts[0]",
        "text and reasoning exclude each other",
    ),
    (
        APPEND,
        '{"conversationId": "c", "turns": [{"parts": [{"toolCall": {}, "file": {}}]}]}',
        "turns[0].parts[0]",
        "tool_call and file exclude each other",
    ),
    (
        APPEND,
        '{"conversationId": "c", "turns": [{"parts": [{"toolResult": {"text": "a", "json": "1"}}]}]}',
        "turns[0].parts[0].tool_result",
        "text and json exclude each other",
    ),
    (
        WRITE,
        '{"conversation": {"turns": [{"createdAt": "x"}]}}',
        "conversation.turns[0].created_at",
        "text is not a time such as 2026-01-31T12:00:00Z",
    ),
]


@pytest.mark.parametrize(("method", "content", "field", "problem"), JSON, ids=[f"{row[2]}-{n}" for n, row in enumerate(JSON)])
def test_json(method: str, content: str, field: str, problem: str, connect: ConnectDoor, core: FakeCore) -> None:
    reply = connect.send(method, content.encode())
    assert (reply.code, reply.message, reply.violations) == ("invalid_argument", f"{field}: {problem}", [(field, problem)])
    assert not core.asked


@pytest.mark.parametrize(
    "content",
    [
        b'{"query": "\xff\xfe"}',
        b"\xff\xfe{\x00}\x00",
        b'{"query": "\xed\xa0\x80"}',
        b"\x00",
        b"\x1f\x8b",
        b'{"query": "x"} {"query": "y"}',
        b'\xef\xbb\xbf{"query": "x"}',
    ],
)
def test_bytes_that_are_no_json(content: bytes, connect: ConnectDoor, core: FakeCore) -> None:
    reply = connect.send(SEARCH, content)
    assert (reply.code, reply.violations[0][0]) == ("invalid_argument", "request")
    assert reply.message.startswith("request: is not JSON")
    assert not core.asked


@pytest.mark.parametrize("count", [1_000, 100_000, 2_000_000])
@pytest.mark.parametrize(
    ("head", "opening", "closing", "tail"),
    [
        ("", "[", "", ""),
        ('{"query": ', "[", "]", "}"),
        ('{"query": ', '{"a":', "}", "}"),
        ('{"since": ', "[", "]", "}"),
        ('{"nothing": ', '[{"a":', "}]", "}"),
        ('{"scope": ', '{"a":', "}", "}"),
    ],
)
def test_nested_json_does_not_end_the_process(
    count: int, head: str, opening: str, closing: str, tail: str, connect: ConnectDoor
) -> None:
    """The JSON reader recurses without a limit on values of the wrong type, on the stack of the event loop's thread."""
    content = f"{head}{opening * count}{'1' if closing else ''}{closing * count}{tail}"
    reply = connect.send(SEARCH, content.encode())
    assert reply.code == "invalid_argument"
    assert connect.call(SEARCH, {"query": "x"}).code == "ok"


def test_text_with_many_brackets_is_read(connect: ConnectDoor, core: FakeCore) -> None:
    texts = ['[{"\\' * 5_000, "}" * 5_000, '\\"[' * 5_000]
    turns = [{"parts": [{"text": text}]} for text in texts] * 100
    assert connect.call(APPEND, {"conversationId": "c", "turns": turns}).code == "ok"
    assert [turn.parts[0].text for turn in core.asked[0][1].turns] == texts * 100


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05a", b"\x0a\x02\xff\xfe", b"\x9b\x06" * 1_000_000, b"\x0b"])
def test_bytes_that_are_no_message(data: bytes, connect: ConnectDoor, over_grpc: GrpcDoor, core: FakeCore) -> None:
    over_http = connect.http.post(f"/{SEARCH}", content=data, headers={"content-type": "application/proto"})
    reply = over_grpc.send(SEARCH, data)
    assert (over_http.status_code, over_http.json()["code"]) == (400, "invalid_argument")
    assert (reply.code, reply.message) == ("invalid_argument", over_http.json()["message"])
    assert reply.violations[0][0] == "request"
    assert not core.asked


# -- who asks


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ("a" * 513, "513 bytes, at most 512 are allowed"),
        ("%E2%82%AC" * 171, "513 bytes, at most 512 are allowed"),
        ("%FF", "is not UTF-8 after percent-decoding"),
        ("", "is empty: leave it out to ask as the user"),
    ],
)
def test_callers_that_cannot_be(sent: str, problem: str, door: Door, core: FakeCore) -> None:
    reply = door.call(SEARCH, {"query": "x"}, {"X-Agent-Id": sent, "X-Request-Id": "r-7"})
    assert (reply.code, reply.message) == ("invalid_argument", f"x-agent-id: {problem}")
    assert reply.violations == [("x-agent-id", problem)]
    assert reply.headers["x-request-id"] == "r-7"
    assert not core.asked


def test_two_callers(connect: ConnectDoor, over_grpc: GrpcDoor, core: FakeCore) -> None:
    answer = connect.http.post(
        f"/{SEARCH}",
        content=b'{"query":"x"}',
        headers=[("content-type", "application/json"), ("x-agent-id", "a"), ("x-agent-id", "b")],
    )
    assert answer.json()["message"] == "x-agent-id: is given 2 times"
    assert not core.asked


def test_headers_that_are_no_text(connect: ConnectDoor, core: FakeCore) -> None:
    answer = connect.http.post(
        f"/{SEARCH}", content=b'{"query":"x"}', headers={b"content-type": b"application/json", b"x-agent-id": b"\xff"}
    )
    assert (answer.status_code, answer.json()) == (400, {"code": "invalid_argument", "message": "x-agent-id: is not UTF-8"})
    assert not core.asked


@pytest.mark.parametrize("timeout", ["x", "-1", "1.5", "1" * 11, "1_0"])
def test_timeouts_that_are_no_numbers(timeout: str, connect: ConnectDoor, core: FakeCore) -> None:
    reply = connect.call(SEARCH, {"query": "x"}, {"connect-timeout-ms": timeout})
    assert (reply.code, reply.message) == ("invalid_argument", "connect-timeout-ms: is not a number of up to ten digits")
    assert not core.asked


# -- sizes


def test_messages_at_the_limit_and_over_it(connect: ConnectDoor, over_grpc: GrpcDoor, contract: Contract, core: FakeCore) -> None:
    limit = 32 * 1024 * 1024
    message = "request: more than 33554432 bytes in one message"
    bare = {"conversationId": "c", "turns": [{"parts": [{"text": ""}]}]}
    room = limit - len(json.dumps(bare).encode())
    for over in (0, 1):
        text = "x" * (room + over)
        reply = connect.send(APPEND, json.dumps({"conversationId": "c", "turns": [{"parts": [{"text": text}]}]}).encode())
        assert (reply.code, reply.message) == (("resource_exhausted", message) if over else ("ok", ""))
    data = contract.parsed(
        APPEND, {"conversationId": "c", "turns": [{"parts": [{"text": "x" * (limit - 64)}]}]}
    ).SerializeToString()
    assert over_grpc.send(APPEND, data).code == "ok"
    reply = over_grpc.send(APPEND, data + b"\xaa\x06\x40" + b"u" * 64)  # an unknown field of 64 bytes
    assert (reply.code, reply.message) == ("resource_exhausted", message)
    assert len(core.asked) == 2


def test_a_message_far_over_the_limit(over_grpc: GrpcDoor, core: FakeCore) -> None:
    assert over_grpc.send(APPEND, b"x" * (65 * 1024 * 1024)).code == "resource_exhausted"
    assert not core.asked


def test_the_size_counts_after_decompression(connect: ConnectDoor, core: FakeCore) -> None:
    answer = connect.http.post(
        f"/{SEARCH}",
        content=gzip.compress(b" " * (33 * 1024 * 1024)),
        headers={"content-type": "application/json", "content-encoding": "gzip"},
    )
    assert (answer.status_code, answer.json()["message"]) == (429, "request: more than 33554432 bytes in one message")
    assert not core.asked


def test_the_size_counts_after_decompression_over_grpc(over_grpc: GrpcDoor, core: FakeCore) -> None:
    calls: Any = over_grpc.channel.unary_unary(f"/{SEARCH}")
    with pytest.raises(grpc.RpcError) as raised:
        calls(b"\xaa\x06" + b"\x00" * (33 * 1024 * 1024), timeout=20, compression=grpc.Compression.Gzip)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not core.asked


# -- what the core raises


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (errors.Unauthenticated("no token"), "unauthenticated"),
        (errors.PermissionDenied("the role may not read others"), "permission_denied"),
        (errors.NotFound("no such agent"), "not_found"),
        (errors.Aborted("expected_revision: 3 is not 4"), "aborted"),
        (errors.FailedPrecondition("the conversation is tombstoned"), "failed_precondition"),
        (errors.ResourceExhausted("too much: 5"), "resource_exhausted"),
        (errors.Unavailable("the audit log cannot answer"), "unavailable"),
        (errors.Stopped("the caller no longer waits"), "canceled"),
    ],
)
def test_errors_of_the_tree_keep_code_and_message(raised: errors.AforesaidError, code: str, door: Door, core: FakeCore) -> None:
    core.answer = _raising(raised)
    reply = door.call(SEARCH, {"query": "x"}, {"X-Request-Id": "r-9"})
    assert (reply.code, reply.message, reply.violations) == (code, raised.message, [])
    assert reply.headers["x-request-id"] == "r-9"


def test_errors_of_fields_carry_details(door: Door, core: FakeCore) -> None:
    core.answer = _raising(errors.InvalidArgument("query", 'say "more" than é,\n please: 100%'))
    reply = door.call(SEARCH, {"query": "x"})
    assert (reply.code, reply.message) == ("invalid_argument", 'query: say "more" than é,\n please: 100%')
    assert reply.violations == [("query", 'say "more" than é,\n please: 100%')]


@pytest.mark.parametrize(
    "raised",
    [
        ValueError(SECRET),
        KeyError(SECRET),
        TimeoutError(SECRET),
        OSError(5, SECRET),
        RecursionError(SECRET),
        MemoryError(SECRET),
        UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET),
        AssertionError(SECRET),
        StopIteration(SECRET),
    ],
)
def test_anything_unforeseen_has_no_text_of_its_own(raised: Exception, door: Door, core: FakeCore, logged: io.StringIO) -> None:
    core.answer = _raising(raised)
    reply = door.call(SEARCH, {"query": f"{SECRET} x"}, {"X-Request-Id": "r-10"})
    assert (reply.code, reply.message) == ("internal", "unforeseen: the service's log tells more of request r-10")
    assert SECRET not in json.dumps(reply.body)
    line = next(line for line in _lines(logged) if line["event"] == "unforeseen")
    assert (line["request_id"], line["method"]) == ("r-10", "SearchTranscripts")
    assert line["error"][0] in {type(raised).__name__, "RuntimeError"}
    assert any("_raising" in frame or "raise_it" in frame for frame in line["frames"])
    assert SECRET not in logged.getvalue()


def test_answers_that_cannot_be_written_have_no_text_either(door: Door, core: FakeCore, logged: io.StringIO) -> None:
    """A store that gave half of a surrogate pair: the message cannot be encoded after the method has ended."""
    core.answer = lambda _: type(AGENT)(1, f"{SECRET}\ud800", "", "", False, {}, None, "")
    reply = door.call(f"{AGENTS}/GetAgent", {"agentId": "a"})
    assert reply.code == "internal"
    assert SECRET not in reply.message + logged.getvalue()


def _raising(error: Exception) -> Any:
    def raise_it(_: object) -> Any:
        raise error

    return raise_it


# -- the log


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the service logs while a test runs, at the finest level."""
    root, written = logging.getLogger(), io.StringIO()
    before, level = root.handlers[:], root.level
    log.configure("debug")
    handler = root.handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(written)
    try:
        yield written
    finally:
        root.handlers[:], root.level = before, level


def _lines(logged: io.StringIO) -> list[Json]:
    return [json.loads(line) for line in logged.getvalue().splitlines()]


def test_each_call_is_a_line(door: Door, logged: io.StringIO) -> None:
    door.call(SEARCH, {"query": SECRET}, {"X-Request-Id": "r-1", "X-Agent-Id": "squeamish"})
    door.call(SEARCH, {"query": SECRET, "pagination": {"limit": -7}}, {"X-Request-Id": "r-2"})
    door.call(SEARCH, {"query": SECRET}, {"X-Request-Id": "r-3", "X-Agent-Id": "%FF"})
    lines = [line for line in _lines(logged) if line["event"] == "call"]
    assert [(line["request_id"], line["method"], line["door"], line["code"]) for line in lines] == [
        ("r-1", "SearchTranscripts", door.name, "ok"),
        ("r-2", "SearchTranscripts", door.name, "invalid_argument"),
        ("r-3", "SearchTranscripts", door.name, "invalid_argument"),
    ]
    assert all(0 <= line["milliseconds"] < 10_000 for line in lines)
    assert "squeamish" not in logged.getvalue()


def test_errors_of_libraries_are_logged_without_their_messages(logged: io.StringIO) -> None:
    try:
        int(SECRET)
    except ValueError:
        logging.getLogger("some.library").exception("it failed")
    line = _lines(logged)[-1]
    assert (line["event"], line["error"]) == ("it failed", ["ValueError"])
    assert SECRET not in logged.getvalue()


def test_calls_that_have_not_begun_do_not_count() -> None:
    frame = Frame(1)
    assert (frame.in_flight, frame.idle.is_set()) == (0, True)
