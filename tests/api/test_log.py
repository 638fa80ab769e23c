"""The log: a line for each call, in JSON or for a terminal; and that nothing that anybody sent stands in it or in the metrics,
whatever was sent, over which door, and however it ended.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf import descriptor, message

from scripts.running_server import RunningServer, start
from tests.api.callers import APPEND, IMPORT, READ, UPDATE_AGENT, Caller, ok
from tests.api.doors import AGENTS, AUDIT, CONVERSATIONS, SEARCH, ConnectDoor, Contract, GrpcDoor, Service
from tests.api.fakes import FakeCore
from tests.api.guarded import guarded
from tests.api.logs import calls_of, logged
from tests.conftest import StartServer, end

CANARY = "canaryzq"
HEADERS = {
    "x-agent-id": f"{CANARY}agent",
    "authorization": f"Bearer {CANARY}token",
    "x-request-id": f"{CANARY} is no request id",
    "cookie": f"{CANARY}cookie",
    "user-agent": f"{CANARY}browser",
    "x-forwarded-for": f"{CANARY}.example",
}
PLAIN = {name: HEADERS[name] for name in ("authorization", "x-request-id")}


# -- lines


def test_a_line_says_how_a_call_went_and_how_large_it_was(door: ConnectDoor | GrpcDoor, contract: Contract) -> None:
    body = {"query": "kestrel"}
    with logged() as written:
        ok(door.call(SEARCH, body, {"X-Request-Id": "r-1"}))
        ok(door.call(SEARCH, body, {"X-Request-Id": "r-2", "X-Agent-Id": "ada"}))
        door.call(SEARCH, body, {"X-Request-Id": "r-3", "X-Agent-Id": "%FF"})
    size = len(json.dumps(body)) if door.name == "connect" else len(contract.parsed(SEARCH, body).SerializeToString())
    told = [(line["request_id"], line["code"], line["who"], line["request_bytes"]) for line in calls_of(written)]
    assert told == [("r-1", "ok", "user", size), ("r-2", "ok", "agent", size), ("r-3", "invalid_argument", "unknown", 0)]


def test_a_stream_is_as_large_as_all_its_messages(door: ConnectDoor | GrpcDoor, contract: Contract) -> None:
    messages: list[dict[str, Any]] = [
        {"agent": {"agentId": "a"}, "conversation": {"conversationId": "c", "turns": [{"parts": [{"text": text}]}]}}
        for text in ("one", "three")
    ]
    with logged() as written:
        ok(door.stream(IMPORT, messages))
    sizes = [len(contract.parsed(IMPORT, one).SerializeToString()) for one in messages]
    if door.name == "connect":
        sizes = [5 + len(json.dumps(one)) for one in messages]  # with the heads of Connect's frames
    assert [line["request_bytes"] for line in calls_of(written)] == [sum(sizes)]


def test_lines_for_a_terminal_say_the_same(connect: ConnectDoor) -> None:
    with logged("text") as written:
        ok(connect.call(SEARCH, {"query": CANARY}, {"X-Request-Id": "r-1"}))
        try:
            int(CANARY)
        except ValueError:
            logging.getLogger("some.library").exception("it failed")
    told = written.getvalue()
    assert re.search(r"^\S+ \[info +\] call .*code=ok .*method=SearchTranscripts .*request_id=r-1 who=user$", told, re.MULTILINE)
    assert re.search(r"^\S+ \[error +\] it failed .*error=\['ValueError'\]", told, re.MULTILINE)
    assert "\x1b" not in told
    assert CANARY not in told


def test_a_service_logs_for_a_terminal_where_a_setting_says_so(start_server: StartServer) -> None:
    server = start_server(settings={"AFORESAID_LOG_FORMAT": "text"})
    assert re.search(r"^\S+ \[info +\] serving .* pid=\d+ ", server.told(), re.MULTILINE)


# -- canaries


def filled(described: descriptor.Descriptor, types: Contract, depth: int = 0) -> message.Message:
    """A message whose every text holds a canary, and every number and flag something; of a `oneof` the last member."""
    made = types.empty(described.full_name)
    for field in described.fields:
        if field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry:
            getattr(made, field.name)[f"{CANARY}key"] = f"{CANARY}value"
        elif field.message_type is not None:
            _fill_message(made, field, types, depth)
        elif field.is_repeated:
            getattr(made, field.name).append(_scalar(field))
        else:
            setattr(made, field.name, _scalar(field))
    return made


def _fill_message(made: message.Message, field: descriptor.FieldDescriptor, types: Contract, depth: int) -> None:
    assert field.message_type is not None
    if depth > 6:
        return
    if field.message_type.full_name == "google.protobuf.FieldMask":
        getattr(made, field.name).paths.append("name")
        return
    inner = filled(field.message_type, types, depth + 1)
    if field.message_type.full_name == "google.protobuf.Timestamp":
        inner.Clear()
        inner.seconds = 1_700_000_000  # type: ignore[attr-defined]
    if field.is_repeated:
        getattr(made, field.name).append(inner)
    else:
        getattr(made, field.name).CopyFrom(inner)


def _scalar(field: descriptor.FieldDescriptor) -> Any:
    match field.cpp_type:
        case descriptor.FieldDescriptor.CPPTYPE_STRING:
            return (
                f"{CANARY}{field.name}".encode() if field.type == descriptor.FieldDescriptor.TYPE_BYTES else f"{CANARY}{field.name}"
            )
        case descriptor.FieldDescriptor.CPPTYPE_BOOL:
            return True
        case _:
            return 1


def every_method(contract: Contract) -> Iterator[tuple[str, descriptor.Descriptor, bool]]:
    """Yields each method with what it is asked, and whether that is a stream."""
    for service in (AGENTS, CONVERSATIONS, AUDIT):
        for method in contract.pool.FindServiceByName(service).methods:
            yield f"{service}/{method.name}", method.input_type, method.client_streaming


@pytest.fixture(scope="module")
def told_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that logs all that it can log, and has metrics."""
    folder = tmp_path_factory.mktemp("told-all")
    settings = {"AFORESAID_LOG_LEVEL": "debug", "AFORESAID_METRICS_PORT": "0", "AFORESAID_AUDIT_QUERY_TEXT": "true"}
    running = start(folder / "data", settings=settings, log=folder / "server.log")
    yield running
    end(running)


def said(server: RunningServer) -> str:
    """All that a server wrote to its standard output and error, and what its metrics say."""
    assert server.log is not None
    return server.log.read_text("utf-8") + httpx.get(server.metrics, timeout=30).text


def nothing_leaked(server: RunningServer, calls: int) -> None:
    """Fails if a canary got out, or if the log does not tell of so many calls."""
    told = said(server)
    leaks = [line for line in told.splitlines() if CANARY in line.lower() or base64.b64encode(CANARY.encode())[:9].decode() in line]
    assert leaks == []
    assert told.count('"event": "call"') >= calls


@pytest.mark.parametrize("headers", [{}, PLAIN, HEADERS], ids=["user", "token", "agent"])
def test_nothing_that_is_sent_is_logged(headers: dict[str, str], told_all: RunningServer, contract: Contract) -> None:
    """Every method over Connect, gRPC-Web and gRPC with a canary in every field, and in what cannot be read."""
    http, target = httpx.Client(base_url=told_all.url, timeout=30), grpc.insecure_channel(told_all.grpc)
    calls = 0
    for method, described, streams in every_method(contract):
        request = filled(described, contract)
        assert CANARY.encode() in request.SerializeToString() or not described.fields
        data, text = request.SerializeToString(), json.dumps(contract.told(request)).encode()
        for content, kind in (
            (text, "json"),
            (data, "proto"),
            (text.replace(b'"', b"'"), "json"),  # no JSON
            (b'{"' + CANARY.encode() + b'": 1}', "json"),  # no such field
            (data + b"\xff" + CANARY.encode(), "proto"),  # no message
        ):
            framed = bytes([0]) + len(content).to_bytes(4, "big") + content
            connect_type = f"application/connect+{kind}" if streams else f"application/{kind}"
            http.post(f"/{method}", content=framed if streams else content, headers=headers | {"content-type": connect_type})
            http.post(f"/{method}", content=framed, headers=headers | {"content-type": f"application/grpc-web+{kind}"})
            calls += 2
            if kind == "proto":
                _over_grpc(target, method, content, streams, headers)
                calls += 1
    http.close()
    target.close()
    nothing_leaked(told_all, calls)


def _over_grpc(channel: grpc.Channel, method: str, data: bytes, streams: bool, headers: dict[str, str]) -> None:
    metadata = tuple(item for item in headers.items() if item[0] != "user-agent")
    calls: Any = channel.stream_unary(f"/{method}") if streams else channel.unary_unary(f"/{method}")
    calling = calls.future(iter([data]) if streams else data, timeout=30, metadata=metadata)
    assert calling.code() not in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN}


def test_nothing_that_is_kept_is_logged(told_all: RunningServer) -> None:
    """What was written is searched, read by somebody else, refused, listed and deleted: ids, titles and texts are canaries."""
    door = ConnectDoor(told_all.url)
    own, other = {"x-agent-id": f"{CANARY}own"}, {"x-agent-id": f"{CANARY}other"}
    turn = {
        "role": f"{CANARY}role",
        "parts": [{"text": f"{CANARY} sings"}, {"file": {"name": f"{CANARY}.png", "mediaType": "image/png"}}],
    }
    place = {"conversationId": f"{CANARY}talk"}
    ok(door.call(APPEND, place | {"turns": [turn]}, own))
    ok(
        door.call(
            f"{CONVERSATIONS}/WriteConversation", {"conversation": place | {"title": f"{CANARY} title", "turns": [turn]}}, own
        )
    )
    ok(door.call(APPEND, place | {"turns": [turn]}, other))
    for query in (CANARY, f'"{CANARY} sings"', f"-{CANARY} sings", "sings"):
        found = ok(door.call(SEARCH, {"query": query, "agentId": f"{CANARY}own", "reason": f"{CANARY} reason"}, other))
        assert found.body.get("matches") or query.startswith("-")
    ok(door.call(READ, place | {"agentId": f"{CANARY}own"}, other))
    assert door.call(READ, place | {"agentId": f"{CANARY}nobody"}, other).code == "not_found"
    assert door.call(APPEND, place | {"agentId": f"{CANARY}own", "turns": [turn]}, other).code == "permission_denied"
    renamed = {"agent": {"agentId": f"{CANARY}own", "name": f"{CANARY} name"}, "updateMask": "name"}
    ok(door.call(UPDATE_AGENT, renamed))
    chat = {"conversation": place | {"conversationId": f"{CANARY}chat", "turns": [turn | {"turnId": f"{CANARY}message"}]}}
    assert ok(door.call(f"{CONVERSATIONS}/IndexConversation", chat, own)).body["outcome"] == "INDEX_OUTCOME_WRITTEN"
    for query in (CANARY, f"{CANARY} {CANARY}s sings"):
        turns = ok(door.call(f"{CONVERSATIONS}/SearchTurns", {"query": query, "around": 1}, own)).body["hits"]
        assert len(turns) == 2
    source = {"conversationId": f"{CANARY}chat", "turnId": f"{CANARY}message"}
    assert ok(door.call(f"{CONVERSATIONS}/ResolveSource", {"source": source}, own)).body["turn"]
    assert door.call(f"{CONVERSATIONS}/ResolveSource", {"source": source}, other).code == "not_found"
    context = ok(door.call(f"{CONVERSATIONS}/CompileContext", {"query": CANARY, "sources": [source], "around": 1}, own)).body
    assert len(context["candidates"]) == 2
    ok(door.call(f"{CONVERSATIONS}/DeleteConversation", {"conversationId": f"{CANARY}chat"}, own))
    assert ok(door.call(f"{CONVERSATIONS}/IndexConversation", chat, own)).body == {"outcome": "INDEX_OUTCOME_TOMBSTONED"}
    assert ok(door.call(f"{AUDIT}/ListReads", {})).body["records"]
    assert ok(door.call(f"{AUDIT}/VerifyAudit", {})).body["intact"]
    ok(door.call(f"{CONVERSATIONS}/DeleteConversation", place, own))
    assert door.call(APPEND, place | {"turns": [turn]}, own).code == "failed_precondition"
    door.close()
    nothing_leaked(told_all, 10)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /canaryzq HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CANARYZQ / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /agent.v1.AgentService/SearchTranscripts?canaryzq=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nHost: canaryzq.example\r\nContent-Length: 2\r\n\r\n{}",
        b"canaryzq\r\n\r\n",
        b"GET / HTTP/1.1\r\ncanaryzq\x00: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: canaryzq\r\n\r\n",
        b"\x16\x03\x01canaryzq",
    ],
)
def test_nothing_of_what_is_no_call_is_logged(sent: bytes, told_all: RunningServer) -> None:
    for address in (
        told_all.url.removeprefix("http://"),
        told_all.grpc,
        told_all.metrics.removeprefix("http://").removesuffix("/metrics"),
    ):
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
    nothing_leaked(told_all, 0)


def test_an_error_nobody_expected_is_logged_without_what_it_says(
    door: ConnectDoor | GrpcDoor, core: FakeCore, service: Service, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> Any:
        raise KeyError(f"{CANARY} was not found") from ValueError(CANARY)

    core.answer = fail
    with logged() as written:
        assert door.call(SEARCH, {"query": CANARY}, {"X-Agent-Id": CANARY}).code == "internal"
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [line["error"] for line in lines if line["event"] == "unforeseen"] == [["KeyError", "ValueError"]]
    printed = capfd.readouterr()
    assert CANARY not in written.getvalue() + printed.out + printed.err


def test_a_canary_would_be_found(told_all: RunningServer) -> None:
    """A request id of sane form is logged as it came."""
    door = ConnectDoor(told_all.url)
    ok(door.call(SEARCH, {"query": "x"}, {"X-Request-Id": "r-canaryz"}))
    door.close()
    assert "r-canaryz" in said(told_all)


def test_of_a_token_its_id_is_logged_and_nothing_else(tmp_path: Path) -> None:
    with guarded(tmp_path / "data") as guard:
        token = guard.owner.token("--user", CANARY, scope={CANARY: CANARY})
        with logged() as written:
            caller = Caller(guard.door, token=token)
            ok(caller.search("kestrel"))
            assert Caller(guard.door, token=f"{token}x").search("kestrel").code == "unauthenticated"
    good, bad = calls_of(written)
    _, token_id, secret = token.split("_", 2)
    assert (good["code"], good["who"], good["token"]) == ("ok", "user", token_id)
    assert (bad["code"], bad["who"], bad.get("token")) == ("unauthenticated", "unknown", None)
    assert secret not in written.getvalue()
    assert CANARY not in written.getvalue()
