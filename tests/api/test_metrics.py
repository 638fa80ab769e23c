"""Metrics: calls on every door, the index, the store and the audit log, on a port of their own; bounded labels; scrapes that
nothing breaks.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from aforesaid_server.__main__ import commands
from aforesaid_server.api.figures import Figures
from aforesaid_server.api.metrics import Calls, new_registry
from aforesaid_server.doors import listen
from aforesaid_server.errors import StartError
from aforesaid_server.index import Batch, Index, Lists
from aforesaid_server.index.live import LiveIndex
from aforesaid_server.index.tantivy import TantivyIndex
from aforesaid_server.settings import Settings
from aforesaid_server.store import Imported
from tests.api.callers import LIST_AGENTS, new, ok
from tests.api.doors import SEARCH, ConnectDoor, Contract, GrpcDoor, Service, running
from tests.api.fakes import FakeCore, Slow
from tests.api.logs import logged
from tests.conftest import StartServer
from tests.faults.serving import served, wait_until

CALLS, SECONDS = "aforesaid_calls_total", "aforesaid_call_duration_seconds_count"


def scraped(url: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample of a scrape, by name and labels."""
    answer = httpx.get(url, timeout=30)
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.text)
    return {(sample.name, frozenset(sample.labels.items())): sample.value for family in families for sample in family.samples}


def value(url: str, name: str, **labels: str) -> float | None:
    """One sample of a scrape, None if it is not there."""
    return scraped(url).get((name, frozenset(labels.items())))


@pytest.fixture(scope="module")
def measured(shared_core: FakeCore) -> Iterator[Service]:
    """A service over the fake core, with metrics."""
    with running(shared_core.house(), metrics_port=0) as service:
        yield service


@pytest.fixture(params=["connect", "grpc"])
def asked(request: pytest.FixtureRequest, measured: Service, contract: Contract) -> Iterator[ConnectDoor | GrpcDoor]:
    """Each door of that service."""
    door = ConnectDoor(measured.url) if request.param == "connect" else GrpcDoor(measured.target, contract)
    yield door
    door.close()


# -- calls


def test_calls_are_counted_by_method_door_and_code(asked: ConnectDoor | GrpcDoor, measured: Service) -> None:
    before = scraped(measured.metrics_url)
    ok(asked.call(SEARCH, {"query": "x"}))
    ok(asked.call(SEARCH, {"query": "x"}))
    assert asked.call(SEARCH, {"query": "x", "pagination": {"limit": -7}}).code == "invalid_argument"
    assert asked.call(LIST_AGENTS, {}, {"X-Agent-Id": "%FF"}).code == "invalid_argument"
    after = scraped(measured.metrics_url)
    grown = {key: after[key] - before.get(key, 0) for key in after if key[0] in {CALLS, SECONDS} and after[key] != before.get(key)}
    search, agents, door = ("method", "SearchTranscripts"), ("method", "ListAgents"), ("door", asked.name)
    assert grown == {
        (CALLS, frozenset({search, door, ("code", "ok")})): 2,
        (CALLS, frozenset({search, door, ("code", "invalid_argument")})): 1,
        (CALLS, frozenset({agents, door, ("code", "invalid_argument")})): 1,
        (SECONDS, frozenset({search, door})): 3,
        (SECONDS, frozenset({agents, door})): 1,
    }


def test_what_a_caller_sends_makes_no_label(measured: Service, contract: Contract) -> None:
    door, over_grpc = ConnectDoor(measured.url), GrpcDoor(measured.target, contract)
    ok(door.call(SEARCH, {"query": "x"}))
    before = set(scraped(measured.metrics_url))
    for path in ("agent.v1.AgentService/Squeamish", "squeamish.v1.Ossifrage/SearchTranscripts", "squeamish"):
        assert door.http.post(f"/{path}", json={}).status_code == 404
    for headers in ({"content-type": "application/squeamish"}, {"host": "squeamish.example"}, {"origin": "http://squeamish"}):
        assert door.http.post(f"/{SEARCH}", json={}, headers=headers).status_code >= 400
    assert door.http.request("SQUEAMISH", f"/{SEARCH}").status_code >= 400
    calls: Any = over_grpc.channel.unary_unary("/agent.v1.AgentService/Squeamish")
    with pytest.raises(Exception, match="UNIMPLEMENTED"):
        calls(b"", timeout=30)
    door.close()
    over_grpc.close()
    # `before` lacks nothing that a first scrape would bring: the number of series is that of methods, doors and codes.
    assert set(scraped(measured.metrics_url)) == before
    assert "squeamish" not in httpx.get(measured.metrics_url).text.lower()


def test_calls_in_flight_are_those_that_have_not_ended(measured: Service, core: FakeCore) -> None:
    slow = Slow(core)
    core.answer = slow
    door = ConnectDoor(measured.url)
    calling = threading.Thread(target=door.call, args=(SEARCH, {"query": "x"}))
    calling.start()
    assert slow.begun.wait(60)
    assert value(measured.metrics_url, "aforesaid_calls_in_flight") == 1
    slow.go_on.set()
    calling.join()
    wait_until(lambda: value(measured.metrics_url, "aforesaid_calls_in_flight") == 0)
    door.close()


def test_durations_fall_into_their_buckets() -> None:
    registry, calls = new_registry(lambda: 0, Figures)
    for seconds in (0.0005, 0.003, 0.003, 7.0, 90.0):
        calls.ended("SearchTranscripts", "connect", "ok", seconds)
    labels = {"method": "SearchTranscripts", "door": "connect"}
    counts = {
        edge: registry.get_sample_value("aforesaid_call_duration_seconds_bucket", labels | {"le": edge})
        for edge in ("0.001", "0.0025", "0.005", "5.0", "10.0", "30.0", "+Inf")
    }
    assert list(counts.values()) == [1, 1, 3, 3, 4, 4, 5]
    assert registry.get_sample_value("aforesaid_call_duration_seconds_sum", labels) == pytest.approx(97.0065)


# -- the port


def test_there_are_no_metrics_unless_a_setting_wants_them(service: Service) -> None:
    assert Settings().metrics_port is None
    assert service.metrics_url == ""
    assert httpx.get(f"{service.url}/metrics").status_code == 404


def test_metrics_are_never_on_the_port_of_the_service(measured: Service) -> None:
    assert httpx.get(f"{measured.url}/metrics").status_code == 404
    assert measured.metrics_url.startswith("http://127.0.0.1:")


def test_the_port_of_metrics_takes_no_calls(measured: Service) -> None:
    answer = httpx.post(measured.metrics_url.replace("/metrics", f"/{SEARCH}"), json={"query": "x"})
    assert answer.status_code == 405


def test_the_port_is_closed_at_the_end(core: FakeCore) -> None:
    with running(core.house(), metrics_port=0) as service:
        url = service.metrics_url
        assert value(url, "aforesaid_calls_in_flight") == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
    assert not [thread for thread in threading.enumerate() if thread.name == "metrics" and not thread.daemon]


def test_a_port_in_use_is_told(core: FakeCore) -> None:
    (taken,) = listen("127.0.0.1", 0)
    port = taken.getsockname()[1]
    with (
        pytest.raises(StartError, match=rf"^metrics port {port} of 127\.0\.0\.1: address already in use$"),
        running(core.house(), metrics_port=port),
    ):
        pass
    taken.close()


def test_a_host_of_metrics_that_is_unknown(core: FakeCore) -> None:
    with (
        pytest.raises(StartError, match=r"^metrics port 0 of nothing\.invalid: "),
        running(core.house(), metrics_port=0, metrics_host="nothing.invalid"),
    ):
        pass


def test_the_ready_file_and_the_first_line_name_the_metrics(start_server: StartServer) -> None:
    server = start_server(settings={"AFORESAID_METRICS_PORT": "0"})
    assert f", metrics on {server.metrics}. " in server.told()
    samples = scraped(server.metrics)
    names = {name for name, _ in samples}
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "python_info"} <= names
    assert samples["aforesaid_index_ready", frozenset()] in {0, 1}


# -- the core


def test_the_index_the_store_and_the_audit_log(tmp_path: Path) -> None:
    with served(tmp_path / "data", metrics_port=0) as now:
        url = now.metrics_url
        now.wait_until_ready()
        agent, other = new("agent"), new("other")
        now.user.agent(agent).say("talk", "kestrels hover over the meadow", "and so do kites")
        now.user.agent(other).say("talk", "kestrel")
        wait_until(lambda: value(url, "aforesaid_index_documents") == 3)
        wait_until(lambda: value(url, "aforesaid_index_behind_changes") == 0)
        samples = {name: sample for (name, labels), sample in scraped(url).items() if not labels}
        assert samples["aforesaid_index_ready"] == samples["aforesaid_index_build_ratio"] == 1
        assert samples["aforesaid_index_behind_seconds"] == 0
        # kestrels, hover, over, the, meadow, and, kites, kestrel: those of three letters and more, each once.
        assert samples["aforesaid_index_words"] == 8
        assert samples["aforesaid_index_size_bytes"] > 1_000
        assert samples["aforesaid_store_size_bytes"] >= (tmp_path / "data" / "store.sqlite3").stat().st_size
        assert samples["aforesaid_audit_records"] == samples["aforesaid_audit_failures_total"] == 0
        ok(now.user.agent(agent).search("kestrel", agentId=other))
        assert value(url, "aforesaid_audit_records") == 1


def test_a_record_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    with served(tmp_path / "data", metrics_port=0) as now:
        now.wait_until_ready()
        agent, other = new("agent"), new("other")
        now.user.agent(other).say("talk", "kestrel")
        now.user.agent(agent).say("talk", "kite")
        (tmp_path / "data" / "audit.head").mkdir()  # a folder where the file is to be written
        assert now.user.agent(agent).search("kestrel", agentId=other).code == "unavailable"
        assert value(now.metrics_url, "aforesaid_audit_failures_total") == 1


def test_an_index_that_cannot_go_on_falls_behind_and_catches_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path / "data", metrics_port=0) as now:
        now.wait_until_ready()
        with stuck(monkeypatch):
            ok(now.user.call("agent.v1.ConversationService/AppendTurns", _three_turns()))
            wait_until(lambda: (value(now.metrics_url, "aforesaid_index_behind_seconds") or 0) > 0)
            assert value(now.metrics_url, "aforesaid_index_behind_changes") == 3
            assert value(now.metrics_url, "aforesaid_index_documents") == 0
        wait_until(lambda: value(now.metrics_url, "aforesaid_index_behind_changes") == 0)
        assert value(now.metrics_url, "aforesaid_index_behind_seconds") == 0
        assert value(now.metrics_url, "aforesaid_index_documents") == 3


def _three_turns() -> dict[str, Any]:
    return {"agentId": new("agent"), "conversationId": "talk", "turns": [{"parts": [{"text": f"kestrel {n}"}]} for n in range(3)]}


@contextmanager
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An engine that takes nothing, as on a full disk."""

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(TantivyIndex, "apply", full)
        yield


def test_how_long_changes_wait_is_that_of_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("aforesaid_server.index.live.time.monotonic", lambda: clock[0])
    live, engine = LiveIndex(), _Engine()
    live.use(engine)
    assert live.behind() == (0, 0)
    for clock[0], latest in ((100.0, 10), (100.4, 12), (103.0, 20), (103.5, 21), (108.0, 40)):
        live.imported([Imported(1, latest)])
    clock[0] = 110.0
    assert live.behind() == (40, 10)
    for head, left, seconds in ((11, 29, 10), (12, 28, 7), (20, 20, 7), (21, 19, 2), (39, 1, 2), (40, 0, 0)):
        live.apply(engine, Batch(head, (), (), ()))
        assert live.behind() == (left, seconds)


class _Engine(Index):
    """Takes any batch."""

    def __init__(self) -> None:
        self._head = 0

    @property
    def head(self) -> int:
        return self._head

    def lists(self) -> tuple[int, Lists]:
        raise NotImplementedError

    def answers(self) -> bool:
        return True

    def apply(self, batch: Batch) -> None:
        self._head = batch.head

    def close(self) -> None:
        pass


# -- a scrape that nothing breaks


def test_a_core_that_cannot_be_looked_at_leaves_the_rest_of_a_scrape(core: FakeCore, capfd: pytest.CaptureFixture[str]) -> None:
    def look() -> Figures:
        raise ValueError("squeamish")

    with logged() as written, running(replace(core.house(), figures=look), metrics_port=0) as service:
        names = {name for name, _ in scraped(service.metrics_url)}
    assert "aforesaid_calls_in_flight" in names
    assert "aforesaid_index_ready" not in names
    told = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [line["error"] for line in told if line["event"] == "figures not to be had"] == [["ValueError"]]
    assert "squeamish" not in written.getvalue()
    assert capfd.readouterr().err == ""


def test_a_scrape_asks_the_store_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer may hold the store for seconds: a scrape must not wait for it."""
    with served(tmp_path / "data", metrics_port=0) as now:
        now.wait_until_ready()
        asked: list[str] = []
        for name in ("_read", "_write"):
            monkeypatch.setattr(f"aforesaid_server.store.sql.SqlStore.{name}", lambda *_, name=name: asked.append(name))
        assert value(now.metrics_url, "aforesaid_index_ready") == 1
        assert asked == []


def test_what_a_scraper_breaks_off_is_logged_as_everything_else(measured: Service, capfd: pytest.CaptureFixture[str]) -> None:
    """If at all: the library would print a traceback."""
    host, port = measured.metrics_url.removeprefix("http://").removesuffix("/metrics").split(":")
    with logged() as written:
        for sent in (b"squeamish\r\n\r\n", b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n", b""):
            with socket.create_connection((host, int(port)), timeout=30) as connection:
                connection.sendall(sent)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # breaks off without a word
        assert value(measured.metrics_url, "aforesaid_calls_in_flight") == 0
    events = [json.loads(line)["event"] for line in written.getvalue().splitlines()]
    assert {event for event in events if event.startswith("scrape")} <= {"scrape broken off"}
    assert "squeamish" not in written.getvalue()
    assert "Traceback" not in capfd.readouterr().err


# -- names


def test_names_are_as_prometheus_has_them() -> None:
    registry, _ = new_registry(lambda: 0, lambda: Figures(documents=0, words=0, index_bytes=0, store_bytes=0))
    ours = [family for family in registry.collect() if family.name.startswith("aforesaid_")]
    assert len(ours) == len({family.name for family in ours})
    for family in ours:
        assert re.fullmatch(r"aforesaid(_[a-z]+)+", family.name), family.name
        assert not family.name.endswith(("_total", "_count", "_sum", "_bucket")), family.name
        assert family.documentation.endswith("."), family.name
        assert not re.search(r"_(ms|milliseconds|kb|mb|percent)\b", family.name), family.name


def test_a_label_is_known_once() -> None:
    """The series of a method, door and code is made once and then found again."""
    registry, _ = new_registry(lambda: 0, Figures)
    calls = Calls(type(registry)())
    for _ in range(3):
        calls.ended("SearchTranscripts", "connect", "ok", 0.1)
    assert len(calls._known) == 1


# -- settings


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--metrics-port", "8787"], "the port of metrics is one of the service's: 8787"),
        (["--metrics-port", "8788"], "the port of metrics is one of the service's: 8788"),
        (["--metrics-port", "99999"], "metrics-port: input should be less than or equal to 65535: 99999"),
        (["--log-format", "xml"], "log format xml is none of json, text"),
        (["--log-level", "LOUD"], "log level LOUD is none of debug, info, warning, error"),
    ],
)
def test_settings_that_cannot_be(arguments: list[str], told: str, tmp_path: Path) -> None:
    """They are told before anything is touched."""
    outcome = CliRunner().invoke(commands, ["serve", "--data", str(tmp_path / "data"), *arguments])
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (2, "", f"aforesaid-server: {told}\n")
    assert not (tmp_path / "data").exists()
