"""Traces: a span for each call as its caller sees it, within the caller's own trace, with what the core asked of its parts; sent by
OTLP; and nobody's text in them.
"""

from __future__ import annotations

import gzip
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from aforesaid_server.access import Call
from aforesaid_server.api import tracing
from aforesaid_server.errors import StartError
from aforesaid_server.house import build_core
from aforesaid_server.settings import Settings
from tests.api.callers import APPEND, READ, Caller, new, ok
from tests.api.doors import AGENTS, SEARCH, ConnectDoor, Contract, GrpcDoor, running
from tests.conftest import StartServer
from tests.faults.serving import wait_until

CANARY = "canaryzq"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """Where the spans of `traced` go."""
    return InMemorySpanExporter()


@pytest.fixture(scope="module")
def traced(
    spans: InMemorySpanExporter, tmp_path_factory: pytest.TempPathFactory, contract: Contract
) -> Iterator[tuple[ConnectDoor, GrpcDoor]]:
    """Both doors of a service over the real core, traced."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tracing, "open_tracing", lambda: tracing.Tracing(provider))
        house = build_core(Settings(data=_folder(tmp_path_factory), tracing=True))
    try:
        with running(house) as service:
            doors = ConnectDoor(service.url), GrpcDoor(service.target, contract)
            ready = threading.Event()
            while doors[0].http.get("/readyz").status_code != 200:
                ready.wait(0.02)
            yield doors
            for door in doors:
                door.close()
    finally:
        house.close()


def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traced")


@pytest.fixture(params=["connect", "grpc"])
def asked(
    request: pytest.FixtureRequest, traced: tuple[ConnectDoor, GrpcDoor], spans: InMemorySpanExporter
) -> ConnectDoor | GrpcDoor:
    """Each door in turn, with no spans yet."""
    spans.clear()
    return traced[0] if request.param == "connect" else traced[1]


def of_calls(spans: Sequence[ReadableSpan]) -> list[ReadableSpan]:
    """The spans of calls."""
    return [span for span in spans if span.kind is SpanKind.SERVER]


def test_a_call_is_a_span_in_the_trace_of_its_caller(asked: ConnectDoor | GrpcDoor, spans: InMemorySpanExporter) -> None:
    ok(asked.call(SEARCH, {"query": "kestrel"}, TRACEPARENT | {"X-Request-Id": "r-1"}))
    (span,) = of_calls(spans.get_finished_spans())
    assert span.name == SEARCH
    assert span.context is not None
    assert span.parent is not None
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    told = dict(span.attributes or {})
    assert (told["rpc.method"], told["aforesaid.door"], told["aforesaid.request_id"]) == (SEARCH, asked.name, "r-1")
    assert span.status.status_code is StatusCode.UNSET
    assert span.end_time is not None


def test_without_a_trace_a_call_begins_one(asked: ConnectDoor | GrpcDoor, spans: InMemorySpanExporter) -> None:
    for _ in range(2):
        ok(asked.call(SEARCH, {"query": "kestrel"}))
    first, second = of_calls(spans.get_finished_spans())
    assert first.parent is second.parent is None
    assert first.context is not None
    assert second.context is not None
    assert first.context.trace_id != second.context.trace_id


@pytest.mark.parametrize("given", ["", "00-zz-zz-01", f"00-{'0' * 32}-{PARENT}-01", "squeamish"])
def test_a_trace_that_cannot_be_read_is_none(given: str, asked: ConnectDoor | GrpcDoor, spans: InMemorySpanExporter) -> None:
    ok(asked.call(SEARCH, {"query": "kestrel"}, {"traceparent": given}))
    (span,) = of_calls(spans.get_finished_spans())
    assert span.parent is None


@pytest.mark.parametrize(
    ("method", "body", "headers", "code"),
    [
        (SEARCH, {"query": "x", "pagination": {"limit": -7}}, {}, "invalid_argument"),
        (SEARCH, {"query": "x"}, {"X-Agent-Id": "%FF"}, "invalid_argument"),
        (READ, {"conversationId": CANARY, "agentId": CANARY}, {}, "not_found"),
    ],
)
def test_a_refused_call_is_told_as_its_caller_sees_it(
    method: str,
    body: dict[str, Any],
    headers: dict[str, str],
    code: str,
    asked: ConnectDoor | GrpcDoor,
    spans: InMemorySpanExporter,
) -> None:
    assert asked.call(method, body, TRACEPARENT | headers).code == code
    (span,) = of_calls(spans.get_finished_spans())
    assert (span.attributes or {})["rpc.response.status_code"] == code
    assert span.status.status_code is StatusCode.ERROR
    assert CANARY not in span.to_json()


def test_something_unforeseen_is_internal(
    asked: ConnectDoor | GrpcDoor, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise ValueError(CANARY)

    monkeypatch.setattr("aforesaid_server.search.searcher.Searcher._page", fail)
    assert asked.call(SEARCH, {"query": CANARY}).code == "internal"
    (span,) = of_calls(spans.get_finished_spans())
    assert (span.attributes or {})["rpc.response.status_code"] == "internal"
    assert all(CANARY not in one.to_json() for one in spans.get_finished_spans())


def test_a_call_that_is_not_waited_for_ends_its_span(
    asked: ConnectDoor | GrpcDoor, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the task that began it, or the library complains: the next call of the connection would be within this one."""
    nothing, stopped = threading.Event(), threading.Event()

    def wait(_: object, call: Call, *__: object) -> Any:
        try:
            while not nothing.wait(0.005):
                call.patience.check()
        finally:
            stopped.set()

    with monkeypatch.context() as patched:
        patched.setattr("aforesaid_server.search.searcher.Searcher._page", wait)
        assert asked.call(SEARCH, {"query": "kestrel"}, timeout=0.2).code == "deadline_exceeded"
        assert stopped.wait(60)
    ok(asked.call(SEARCH, {"query": "kestrel"}))
    wait_until(lambda: len(of_calls(spans.get_finished_spans())) == 2)
    first, second = of_calls(spans.get_finished_spans())
    assert (first.attributes or {})["rpc.response.status_code"] in {"deadline_exceeded", "canceled"}
    assert second.parent is None
    assert [record.name for record in caplog.records if record.name.startswith("opentelemetry")] == []


def test_the_core_tells_what_it_asked_of_its_parts(traced: tuple[ConnectDoor, GrpcDoor], spans: InMemorySpanExporter) -> None:
    user, agent, other = Caller(traced[0]), new("agent"), new("other")
    user.agent(agent).say("talk", "a kite")
    user.agent(other).say("talk", "a kestrel")
    spans.clear()
    ok(user.agent(agent).search("kestrel", agentId=other))
    finished = spans.get_finished_spans()
    (call,) = of_calls(finished)
    assert call.context is not None
    assert {span.context.trace_id for span in finished if span.context} == {call.context.trace_id}
    names = [span.name for span in finished]
    assert {"searcher.search", "access.readable", "index.matches", "store.turns", "audit.record", "store.add_read"} <= set(names)
    by_id = {span.context.span_id: span for span in finished if span.context}
    assert _path(next(span for span in finished if span.name == "store.add_read"), by_id) == [
        SEARCH,
        "searcher.search",
        "audit.record",
        "store.add_read",
    ]
    assert all(not span.attributes for span in finished if span is not call)


def _path(span: ReadableSpan, by_id: dict[int, ReadableSpan]) -> list[str]:
    above = by_id.get(span.parent.span_id) if span.parent else None
    return [*(_path(above, by_id) if above else []), span.name]


def test_no_span_is_made_where_no_call_is_traced(traced: tuple[ConnectDoor, GrpcDoor], spans: InMemorySpanExporter) -> None:
    """The follower and the probes ask the same parts all day."""
    spans.clear()
    assert traced[0].http.get("/readyz").status_code == 200
    not_sampled = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
    ok(traced[0].call(SEARCH, {"query": "kestrel"}, not_sampled))
    assert spans.get_finished_spans() == ()


# -- by setting


def test_traces_are_off_unless_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("aforesaid_server.api.tracing")
    monkeypatch.delitem(sys.modules, "aforesaid_server.api.tracing")
    monkeypatch.setitem(sys.modules, "connectrpc_otel", None)  # the extra may be missing
    house = build_core(Settings(data=tmp_path))
    assert house.tracing is None
    house.close()


def test_without_the_extra_the_service_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("aforesaid_server.api.tracing")
    monkeypatch.delitem(sys.modules, "aforesaid_server.api.tracing")
    monkeypatch.setitem(sys.modules, "connectrpc_otel", None)
    with pytest.raises(StartError, match=r"^tracing needs what the extra \[otel\] installs: pip install 'aforesaid\[otel\]'"):
        build_core(Settings(data=tmp_path, tracing=True))


@pytest.mark.parametrize(
    ("variable", "given", "told"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL grpc is not served: traces are sent as http/protobuf"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1", "a variable of OpenTelemetry (OTEL_*) cannot be read: "),
    ],
)
def test_an_environment_that_cannot_be(
    variable: str, given: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, given)
    with pytest.raises(StartError) as raised:
        build_core(Settings(data=tmp_path, tracing=True))
    assert str(raised.value).startswith(told)


class Collector(ThreadingHTTPServer):
    """Takes what is sent by OTLP; or, where it `hangs`, answers nobody."""

    daemon_threads = True

    def __init__(self, *, hangs: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.hangs, self.let_go = hangs, threading.Event()
        self.taken: list[bytes] = []

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class _Taking(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        collector = self.server
        assert isinstance(collector, Collector)
        sent = self.rfile.read(int(self.headers["content-length"]))
        collector.taken.append(gzip.decompress(sent) if self.headers.get("content-encoding") == "gzip" else sent)
        if collector.hangs:
            collector.let_go.wait()
            return
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def collecting(*, hangs: bool = False) -> Iterator[Collector]:
    """Runs a collector."""
    collector = Collector(hangs=hangs)
    thread = threading.Thread(target=collector.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield collector
    finally:
        collector.let_go.set()
        collector.shutdown()
        thread.join()
        collector.server_close()


def test_spans_are_sent_and_hold_nobodys_text(start_server: StartServer, contract: Contract) -> None:
    with collecting() as collector:
        server = start_server(settings={"AFORESAID_TRACING": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
        doors = ConnectDoor(server.url), GrpcDoor(server.grpc, contract)
        turn = {"turnId": f"{CANARY}turn", "parts": [{"text": f"{CANARY} text"}]}
        for door in doors:
            own = {"x-agent-id": f"{CANARY}{door.name}"}
            ok(door.call(APPEND, {"conversationId": CANARY, "scope": {CANARY: CANARY}, "turns": [turn]}, own))
            found = door.call(SEARCH, {"query": CANARY, "agentId": f"{CANARY}connect", "reason": CANARY}, own | TRACEPARENT)
            assert found.code in {"ok", "unavailable"}  # the index may just be opened
            assert door.call(READ, {"conversationId": CANARY, "agentId": f"{CANARY}nobody"}, own).code == "not_found"
            assert door.call(f"{AGENTS}/ListAgents", {"pagination": {"cursor": CANARY}}, own).code == "invalid_argument"
            door.close()
        assert server.stop() == 0
    sent = [ExportTraceServiceRequest.FromString(data) for data in collector.taken]
    resources = [resource for one in sent for resource in one.resource_spans]
    named = {item.key: item.value.string_value for resource in resources for item in resource.resource.attributes}
    assert named["service.name"] == "aforesaid"
    names = [span.name for resource in resources for scope in resource.scope_spans for span in scope.spans]
    assert names.count(APPEND) == names.count(SEARCH) == names.count(READ) == 2
    assert "writer.append" in names
    assert [data for data in collector.taken if CANARY.encode() in data] == []
    assert CANARY not in server.told()


def test_a_collector_that_does_not_answer_keeps_nobody_from_stopping(start_server: StartServer) -> None:
    with collecting(hangs=True) as collector:
        server = start_server(settings={"AFORESAID_TRACING": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
        door = ConnectDoor(server.url)
        ok(door.call(f"{AGENTS}/ListAgents", {}))
        door.close()
        assert server.stop() == 0
    assert '"event": "the last spans could not be sent in time"' in server.told()
