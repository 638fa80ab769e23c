"""Callers that hang: half a head, half a body, half a stream, a reply that nobody reads. Each wait has an end of its own
(AFORESAID_PATIENCE_SECONDS), nobody else waits meanwhile, and the end of the service is not held up.

The service is in this process over a fake core: what hangs never reaches the core.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import httpx
import pytest

from aforesaid_server.api.connection import MAX_HEAD_BYTES
from aforesaid_server.api.importing import BATCH_TURNS
from aforesaid_server.search import SearchReply
from tests.api.doors import CONVERSATIONS, SEARCH, ConnectDoor, Contract, GrpcDoor, Json, Service, running
from tests.api.fakes import NOTHING_FOUND, FakeCore, Slow
from tests.faults.process import established, needs_proc
from tests.faults.serving import wait_until
from tests.faults.wire import (
    DATA,
    END_STREAM,
    Http2,
    address_of,
    all_of,
    connected,
    frame,
    head,
    message,
)

LONG_ENOUGH, SHORT, NEVER = 600.0, 0.4, 3_600.0
IMPORT = f"{CONVERSATIONS}/ImportTurns"
QUERY = b'{"query":"x"}'
# More than the kernel and the library keep for a caller that does not read.
BIG = 16 * 1024 * 1024
FIRST = json.dumps({"agent": {"agentId": "a"}, "conversation": {"conversationId": "c"}}).encode()

# What a caller sends before it hangs, and the status that it is refused with; 0 where it is hung up on.
HALVES: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 0),
    "blank lines": (b"\r\n\r\n", 0),
    "half a request line": (b"POST /agent.v1", 408),
    "half a head": (head(f"/{SEARCH}"), 408),
    "no body": (head(f"/{SEARCH}", f"Content-Length: {len(QUERY)}") + b"\r\n", 504),
    "half a body": (head(f"/{SEARCH}", f"Content-Length: {len(QUERY)}") + b"\r\n" + QUERY[:5], 504),
    "half a body in chunks": (head(f"/{SEARCH}", "Transfer-Encoding: chunked") + b"\r\n5\r\n" + QUERY[:5] + b"\r\n", 504),
    "half a chunk": (head(f"/{SEARCH}", "Transfer-Encoding: chunked") + b"\r\n5\r\n" + QUERY[:3], 504),
    "half a body of gRPC-Web": (
        head(f"/{SEARCH}", "Content-Length: 50", content_type="application/grpc-web+proto") + b"\r\n\0\0",
        200,
    ),
    "no message of a stream": (
        head(f"/{IMPORT}", "Transfer-Encoding: chunked", content_type="application/connect+json") + b"\r\n",
        200,
    ),
    "one message of a stream": (
        head(f"/{IMPORT}", "Transfer-Encoding: chunked", content_type="application/connect+json")
        + b"\r\n%x\r\n%s\r\n" % (len(FIRST) + 5, message(FIRST)),
        200,
    ),
    "half a body that nobody reads": (head("/nowhere", "Content-Length: 100") + b"\r\nhalf", 404),
}


@contextmanager
def hanging(patience: float, core: FakeCore | None = None, **settings: float) -> Iterator[Service]:
    """A service of that patience, which must end by itself."""
    with running((core or FakeCore()).house(), patience_seconds=patience, **settings) as service:
        yield service


def status_of(reply: bytes) -> int:
    """The status of a reply of HTTP/1.1, 0 of none."""
    return int(reply.split(b" ", 2)[1]) if reply else 0


@pytest.fixture(scope="module")
def impatient() -> Iterator[Service]:
    """A service that waits for SHORT."""
    with hanging(SHORT) as service:
        yield service


@pytest.mark.parametrize("half", HALVES)
def test_a_caller_that_hangs_is_hung_up_on(half: str, impatient: Service) -> None:
    sent, status = HALVES[half]
    with connected(impatient.url) as connection:
        connection.sendall(sent)
        got = all_of(connection)
    assert status_of(got) == status
    if status in {408, 504}:
        told = json.loads(got[got.index(b"{") : got.rindex(b"}") + 1])
        assert (told["code"], f"did not come within {SHORT:g} seconds" in told["message"]) == ("deadline_exceeded", True)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (head(f"/{SEARCH}"), 408),
        (head(f"/{SEARCH}", "Content-Length: 1000000") + b"\r\n", 504),
        (head("/nowhere", "Content-Length: 1000000") + b"\r\n", 404),
    ],
    ids=["a head", "a body", "a body that nobody reads"],
)
def test_a_trickle_does_not_begin_the_wait_anew(sent: bytes, status: int, impatient: Service) -> None:
    enough = threading.Event()

    def trickle() -> None:
        with contextlib.suppress(OSError):
            while not enough.wait(0.02):
                connection.sendall(b"X")

    with connected(impatient.url) as connection:
        connection.sendall(sent)
        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            assert status_of(all_of(connection)) in {status, 0}, "a reset may overtake the reply"
        finally:
            enough.set()
            thread.join()


@pytest.mark.parametrize("sent", [b"", message(b"\x0a\x01x")[:6]], ids=["no message", "half a message"])
def test_a_caller_of_grpc_that_hangs_is_hung_up_on(sent: bytes, impatient: Service) -> None:
    caller = Http2(impatient.target)
    caller.begin(1, SEARCH)
    if sent:
        caller.send(frame(DATA, 0, 1, sent))
    ended = caller.ended(1)
    assert ended is not None
    assert b"did not come within" in ended
    caller.close()


def test_a_stream_of_grpc_that_hangs_is_hung_up_on(impatient: Service, contract: Contract) -> None:
    go_on = threading.Event()

    def messages() -> Iterator[dict[str, object]]:
        yield json.loads(FIRST)
        go_on.wait(60)

    door = GrpcDoor(impatient.target, contract)
    reply = door.stream(IMPORT, messages())
    assert (reply.code, reply.message) == ("deadline_exceeded", f"request: did not come within {SHORT:g} seconds")
    go_on.set()
    door.close()


def test_a_call_of_grpc_without_a_message_is_refused(impatient: Service) -> None:
    caller = Http2(impatient.target)
    caller.begin(1, SEARCH)
    caller.send(frame(DATA, END_STREAM, 1))
    assert b"request: the call holds no message" in (caller.ended(1) or b"")
    caller.close()


def test_a_head_without_an_end_is_refused(impatient: Service) -> None:
    with connected(impatient.url) as connection:
        connection.sendall(head(f"/{SEARCH}"))
        try:
            for _ in range(100):
                connection.sendall(b"X-Filling: " + b"x" * (MAX_HEAD_BYTES // 8) + b"\r\n")
        except (ConnectionResetError, BrokenPipeError):
            pass
        got = all_of(connection)
    assert status_of(got) in {0, 431}, "a reset may overtake the reply"


def test_what_is_no_http_is_refused_in_json(impatient: Service) -> None:
    with connected(impatient.url) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        head_of, _, body = all_of(connection).partition(b"\r\n\r\n")
    assert status_of(head_of) == 400
    assert json.loads(body) == {"code": "invalid_argument", "message": "request: is not HTTP"}


# Replies that nobody reads


def big(_: object) -> SearchReply:
    return replace(NOTHING_FOUND, notice="x" * BIG)


@needs_proc
def test_a_reply_that_nobody_reads_is_given_up() -> None:
    with hanging(SHORT, FakeCore(answer=big)) as service, connected(service.url, buffer=4_096) as connection:
        connection.sendall(head(f"/{SEARCH}", f"Content-Length: {len(QUERY)}") + b"\r\n" + QUERY)
        wait_until(lambda: not established(address_of(service.url)[1]))
        assert len(all_of(connection)) < BIG


@needs_proc
def test_a_caller_of_grpc_that_stands_still_is_given_up() -> None:
    """One that does not even answer the pings of HTTP/2, as a process that was stopped."""
    core = FakeCore(answer=big)
    with hanging(2.0, core) as service:
        caller = Http2(service.target, window=2**31 - 1)
        caller.begin(1, SEARCH)
        caller.send(frame(DATA, END_STREAM, 1, message(b"\x0a\x01x")))
        wait_until(lambda: bool(core.asked) and not established(address_of(service.target)[1]))
        caller.close()


@needs_proc
def test_replies_that_a_caller_of_grpc_has_no_room_for_are_bounded(contract: Contract) -> None:
    """It answers pings and opens no window: nothing ends that, so what is kept for such callers is counted, and comes to an end."""
    core = FakeCore(answer=big)
    with hanging(LONG_ENOUGH, core, max_request_bytes=2 * BIG) as service:
        caller = Http2(service.target, window=0)
        refused = 0
        for stream in range(1, 41, 2):
            caller.begin(stream, SEARCH)
            caller.send(frame(DATA, END_STREAM, stream, message(b"\x0a\x01x")))
        while not refused:
            found = caller.next()
            assert found is not None
            refused += b"are being sent at once: ask again" in found[3]
        caller.close()
        # What it held is free again once it is gone.
        core.answer = None
        door = GrpcDoor(service.target, contract)
        wait_until(lambda: door.call(SEARCH, {"query": "x"}).code == "ok")
        door.close()


def test_others_are_not_delayed(contract: Contract) -> None:
    """However many hang: no thread and no call of the core is held by them."""
    core = FakeCore()
    with hanging(LONG_ENOUGH, core) as service, contextlib.ExitStack() as stack:
        for half, _ in HALVES.values():
            for _ in range(10):
                connection = stack.enter_context(connected(service.url))
                connection.sendall(half)
        for _ in range(10):
            caller = Http2(service.target)
            stack.callback(caller.close)
            for stream in range(1, 21, 2):
                caller.begin(stream, SEARCH)
        for door in (ConnectDoor(service.url), GrpcDoor(service.target, contract)):
            assert [door.call(SEARCH, {"query": "x"}).code for _ in range(20)] == ["ok"] * 20
            door.close()
        assert len(core.asked) == 40


# How many, and how much


@pytest.mark.parametrize("kind", ["connect", "grpc"])
def test_calls_above_the_limit_are_told_to_ask_again(kind: str, contract: Contract) -> None:
    core = FakeCore()
    slow = core.answer = Slow(core)
    with hanging(LONG_ENOUGH, core, max_calls=2) as service, ThreadPoolExecutor(2) as pool:
        door = ConnectDoor(service.url) if kind == "connect" else GrpcDoor(service.target, contract)
        calls = [pool.submit(door.call, SEARCH, {"query": "x"}) for _ in range(2)]
        wait_until(lambda: len(core.asked) == 2)
        reply = door.call(SEARCH, {"query": "x"})
        assert (reply.code, reply.message) == ("unavailable", "2 calls are in flight: ask again")
        slow.go_on.set()
        assert [call.result().code for call in calls] == ["ok", "ok"]
        assert door.call(SEARCH, {"query": "x"}).code == "ok"
        door.close()


def test_bodies_that_are_too_much_together_are_told_to_ask_again() -> None:
    """Each is within its limit; eight of the largest may be on their way at once."""
    largest = 1_000_000
    with hanging(LONG_ENOUGH, max_request_bytes=largest) as service, contextlib.ExitStack() as stack:
        for _ in range(8):
            connection = stack.enter_context(connected(service.url))
            connection.sendall(head(f"/{SEARCH}", f"Content-Length: {largest}") + b"\r\n" + b" " * (largest - 1))
        door = ConnectDoor(service.url)
        wait_until(lambda: door.call(SEARCH, {"query": "x"}).code == "unavailable")
        reply = door.call(SEARCH, {"query": "x"})
        assert reply.message == f"more than {8 * largest} bytes are being sent at once: ask again"
        stack.close()
        wait_until(lambda: door.call(SEARCH, {"query": "x"}).code == "ok")
        door.close()


# The end of the service


@pytest.mark.parametrize("half", ["half a head", "half a body", "half a body of gRPC-Web", "one message of a stream"])
def test_the_end_does_not_wait_for_a_caller_that_hangs(half: str, caplog: pytest.LogCaptureFixture) -> None:
    """`running` waits for the end; here it could wait for an hour. Nothing is logged as an error."""
    with (
        caplog.at_level(logging.WARNING),
        hanging(NEVER, drain_seconds=NEVER) as service,
        connected(service.url) as connection,
    ):
        connection.sendall(HALVES[half][0])
        httpx.get(f"{service.url}/healthz")
        service.tell_to_stop()
        service.wait()
        got = all_of(connection)
    assert status_of(got) in {0, 503, 200, 404}
    assert not [record.getMessage() for record in caplog.records if record.name.startswith(("uvicorn", "asyncio", "grpc"))]


def test_the_end_does_not_wait_for_a_reply_that_nobody_reads(caplog: pytest.LogCaptureFixture) -> None:
    core = FakeCore(answer=big)
    with (
        caplog.at_level(logging.WARNING),
        hanging(NEVER, core, drain_seconds=NEVER) as service,
        connected(service.url, buffer=4_096) as connection,
    ):
        connection.sendall(head(f"/{SEARCH}", f"Content-Length: {len(QUERY)}") + b"\r\n" + QUERY)
        wait_until(lambda: bool(core.asked))
        service.tell_to_stop()
        service.wait()
    assert not [record.getMessage() for record in caplog.records if record.name.startswith(("uvicorn", "asyncio", "grpc"))]


@pytest.mark.parametrize("sent", [b"", b"\0\0\1"], ids=["no message", "half a message"])
def test_the_end_does_not_wait_for_a_caller_of_grpc_that_hangs(sent: bytes) -> None:
    with hanging(NEVER, drain_seconds=NEVER) as service:
        caller = Http2(service.target)
        caller.begin(1, SEARCH)
        caller.send(frame(DATA, 0, 1, sent))
        door = ConnectDoor(service.url)
        door.call(SEARCH, {"query": "x"})
        door.close()
        service.tell_to_stop()
        service.wait()
        caller.close()


def test_a_large_upload_over_grpc_is_kept_at_the_end(contract: Contract) -> None:
    """It goes on while its bytes come, and is answered."""
    core = FakeCore()
    stopping = threading.Event()

    def messages() -> Iterator[Json]:
        yield json.loads(FIRST) | {"turns": [{"role": "user"}] * BATCH_TURNS}
        assert stopping.wait(60)
        for _ in range(10):
            yield {"turns": [{"role": "user", "parts": [{"text": "x" * 2_000_000}]}]}

    with hanging(LONG_ENOUGH, core) as service, ThreadPoolExecutor(1) as pool:
        door = GrpcDoor(service.target, contract)
        call = pool.submit(door.stream, IMPORT, messages())
        wait_until(lambda: bool(core.batches))
        service.tell_to_stop()
        stopping.set()
        assert call.result().body == {"turnsAdded": str(BATCH_TURNS + 10)}
        service.wait()
        door.close()
