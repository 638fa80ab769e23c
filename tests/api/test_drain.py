"""Deadlines, callers that hang up, and the end of the service: calls in flight are kept, nothing new is taken, nothing hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import grpc
import httpx
import pytest

from scripts.running_server import ROOT, wait_for
from tests.api.doors import CONVERSATIONS, SEARCH, ConnectDoor, Contract, GrpcDoor, Reply, Service, running, wait_until_said
from tests.api.fakes import FakeCore, Slow
from tests.faults.serving import wait_until

Door: TypeAlias = ConnectDoor | GrpcDoor


@pytest.fixture
def slow(core: FakeCore) -> Iterator[Slow]:
    """Makes the core wait; lets it go at the end of the test."""
    waiting = Slow(core)
    core.answer = waiting
    yield waiting
    waiting.go_on.set()


# -- callers that do not wait


def test_deadlines(door: Door, slow: Slow) -> None:
    """The caller gets deadline_exceeded in time, and the core is told to stop."""
    reply = door.call(SEARCH, {"query": "x"}, timeout=0.1)
    assert reply.code == "deadline_exceeded"
    assert slow.stopped.wait(10)


def test_the_words_of_a_deadline(connect: ConnectDoor, slow: Slow) -> None:
    reply = connect.call(SEARCH, {"query": "x"}, {"X-Request-Id": "r-1"}, timeout=0.05)
    assert (reply.code, reply.message, reply.headers["x-request-id"]) == ("deadline_exceeded", "the deadline has passed", "r-1")


def test_a_deadline_that_has_passed_already(connect: ConnectDoor, core: FakeCore) -> None:
    assert connect.call(SEARCH, {"query": "x"}, timeout=0).code == "deadline_exceeded"


def test_a_deadline_that_the_core_sees_first(door: Door, core: FakeCore) -> None:
    """The core may look at the clock before the door's timer fires: the code is the same."""

    def stop_late(_: object) -> None:
        call = core.asked[-1][0]
        while True:
            call.patience.check()

    core.answer = stop_late
    assert door.call(SEARCH, {"query": "x"}, timeout=0.05).code == "deadline_exceeded"


def test_a_long_deadline_is_no_hindrance(door: Door) -> None:
    assert door.call(SEARCH, {"query": "x"}, timeout=3600 * 24).code == "ok"


def test_a_caller_of_connect_that_hangs_up(service: Service, slow: Slow) -> None:
    with httpx.Client(base_url=service.url, timeout=0.2) as http, pytest.raises(httpx.ReadTimeout):
        http.post(f"/{SEARCH}", content=b'{"query":"x"}', headers={"content-type": "application/json"})
    assert slow.stopped.wait(10)


def test_a_caller_of_grpc_that_hangs_up(over_grpc: GrpcDoor, slow: Slow) -> None:
    asked, answered = over_grpc.contract.types(SEARCH)
    calls = over_grpc.channel.unary_unary(f"/{SEARCH}", asked.SerializeToString, answered.FromString)
    future = calls.future(over_grpc.contract.parsed(SEARCH, {"query": "x"}))
    assert slow.begun.wait(10)
    future.cancel()
    assert slow.stopped.wait(10)


def test_calls_that_wait_for_a_thread_are_dropped_when_their_caller_hangs_up(
    connect: ConnectDoor, core: FakeCore, slow: Slow
) -> None:
    with ThreadPoolExecutor(40) as pool:
        replies = list(pool.map(lambda _: connect.call(SEARCH, {"query": "x"}, timeout=0.3).code, range(40)))
    assert replies == ["deadline_exceeded"] * 40
    core.forget()
    assert connect.call(SEARCH, {"query": "x"}).code == "ok"
    assert len(core.asked) == 1, "no call of the past begins"


def test_searches_do_not_wait_for_writes(door: Door, core: FakeCore) -> None:
    """However many writers wait for the store."""
    waiting, begun = threading.Event(), threading.Event()

    def wait(items: object, tally: object) -> None:
        begun.set()
        waiting.wait(20)

    core.take = wait
    first = {"agent": {"agentId": "a"}, "conversation": {"conversationId": "c"}}
    with ThreadPoolExecutor(30) as pool:
        imports = [pool.submit(door.stream, f"{CONVERSATIONS}/ImportTurns", [first]) for _ in range(30)]
        assert begun.wait(10)
        assert door.call(SEARCH, {"query": "x"}, timeout=5).code == "ok"
        waiting.set()
        assert {done.result().code for done in imports} == {"ok"}


# -- the end


@contextmanager
def _calling(service: Service, contract: Contract, core: FakeCore) -> Iterator[tuple[Slow, Callable[[], list[Reply]]]]:
    """Has a slow search in flight on each port; gives a function that waits for both replies."""
    doors: list[Any] = [ConnectDoor(service.url), GrpcDoor(service.target, contract)]
    slow = Slow(core)
    core.answer = slow
    with ThreadPoolExecutor(2) as pool:
        calls = []
        for count, door in enumerate(doors, 1):
            calls.append(pool.submit(door.call, SEARCH, {"query": "x"}))
            while len(core.asked) < count:
                assert slow.begun.wait(10)
        try:
            yield slow, lambda: [call.result(20) for call in calls]
        finally:
            slow.go_on.set()
            for door in doors:
                door.close()


def test_calls_in_flight_are_kept(contract: Contract) -> None:
    core = FakeCore()
    with running(core.house()) as service, _calling(service, contract, core) as (slow, replies):
        service.tell_to_stop()
        _wait_until_refused(service)
        other = GrpcDoor(service.target, contract)
        assert other.call(SEARCH, {"query": "x"}, timeout=5).code == "unavailable"
        other.close()
        assert service.is_alive()
        slow.go_on.set()
        assert [(reply.code, reply.body["notice"]) for reply in replies()] == [("ok", "nothing was found")] * 2
        service.wait()
    assert len(core.asked) == 2


def test_a_stream_in_flight_is_kept(contract: Contract) -> None:
    core = FakeCore()
    go_on, begun = threading.Event(), threading.Event()

    def messages() -> Iterator[dict[str, Any]]:
        yield {"agent": {"agentId": "a"}, "conversation": {"conversationId": "c"}, "turns": [{"role": "user"}]}
        begun.set()
        assert go_on.wait(20)
        yield {"turns": [{"role": "user"}]}

    with running(core.house()) as service, ThreadPoolExecutor(1) as pool:
        door = GrpcDoor(service.target, contract)
        call = pool.submit(door.stream, f"{CONVERSATIONS}/ImportTurns", messages())
        assert begun.wait(10)
        wait_until(lambda: service.calls == 1)  # the client's word that it has sent something is not the service's that it came
        service.tell_to_stop()
        _wait_until_refused(service)
        go_on.set()
        assert call.result(20).body == {"turnsAdded": "2"}
        service.wait()
        door.close()


def test_calls_that_go_on_too_long_are_cut_off(contract: Contract) -> None:
    """After `drain_seconds`, with a code that says to ask again; the core is told to stop before it is closed."""
    core = FakeCore()
    with running(core.house(), drain_seconds=0.3) as service, _calling(service, contract, core) as (slow, replies):
        service.tell_to_stop()
        over_http, over_grpc = replies()
        service.wait()
        assert slow.stopped.is_set()
    assert (over_http.code, over_http.message) == ("unavailable", "the service stops: ask again")
    assert over_grpc.code in {"unavailable", "canceled"}


def test_a_second_signal_does_not_wait(contract: Contract) -> None:
    core = FakeCore()
    with running(core.house(), drain_seconds=3600) as service, _calling(service, contract, core) as (slow, replies):
        service.tell_to_stop()
        _wait_until_refused(service)
        assert service.is_alive()
        service.tell_to_stop()
        assert "ok" not in {reply.code for reply in replies()}
        service.wait()
        assert slow.stopped.is_set()


def test_an_idle_connection_holds_nothing_up(contract: Contract) -> None:
    core = FakeCore()
    with running(core.house(), drain_seconds=3600) as service, httpx.Client(base_url=service.url) as http:
        http.get("/healthz")
        door = GrpcDoor(service.target, contract)
        assert door.call(SEARCH, {"query": "x"}).code == "ok"
        reflecting: Any = door.channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        hold = threading.Event()

        def hold_open() -> Iterator[bytes]:
            yield b"\x3a\x01*"
            hold.wait(20)

        answers = reflecting(hold_open())
        next(answers)
        service.tell_to_stop()
        service.wait()
        hold.set()
        with pytest.raises(grpc.RpcError):
            next(answers)
        door.close()


def _wait_until_refused(service: Service) -> None:
    """Waits until the HTTP port takes no more connections."""
    for _ in range(1000):
        try:
            httpx.get(f"{service.url}/readyz", timeout=5)
        except httpx.TransportError:
            return
    raise AssertionError("the port still takes connections")


# -- the same as a process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_with_0_after_calls_in_flight(number: int, tmp_path: Path) -> None:
    """uvicorn raises SIGTERM again when it is done, so that what follows it would never run."""
    ready, log = tmp_path / "ready.json", tmp_path / "log"
    program = [sys.executable, "-m", "tests.api.slow_service", str(tmp_path / "data"), str(ready)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    with log.open("wb") as output, subprocess.Popen(program, cwd=ROOT, env=environment, stdout=output, stderr=output) as process:
        doors = wait_for(ready, process, log, 30)
        with ThreadPoolExecutor(1) as pool:
            door = ConnectDoor(doors["url"])
            call = pool.submit(door.call, SEARCH, {"query": "x"})
            wait_until_said("begun", log, process)
            process.send_signal(number)
            assert call.result(20).code == "ok"
            assert process.wait(20) == 0, log.read_text()
            door.close()
    told = log.read_text()
    assert told.index("draining") < told.index("answering") < told.index("closed") < told.index('"stopped"')
    assert "Traceback" not in told
