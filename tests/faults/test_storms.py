"""Many callers at once, callers that hang up by the thousand, and small requests that expand to large ones.

Each call is answered or refused clearly, and afterwards the service holds as many threads and files as before and hardly more
memory. AFORESAID_LONG=1 sends ten times as much.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import grpc
import grpc.aio
import httpx

from scripts.running_server import RunningServer
from tests.api.callers import APPEND, IMPORT, Caller, hits, new, ok, turn
from tests.api.doors import SEARCH, ConnectDoor, Contract, GrpcDoor
from tests.conftest import StartServer
from tests.faults.process import MIB, Held, needs_proc, peak_memory
from tests.faults.serving import LONG, wait_until
from tests.faults.wire import DATA, END_STREAM, RST_STREAM, Http2, connected, frame, head, message

CALLERS = 5_000 if LONG else 1_000
CANCELLED = 20_000 if LONG else 400
BOMB = 1024 * MIB if LONG else 256 * MIB
WORD = "ossifrage"
QUERY = json.dumps({"query": WORD}).encode()
SEARCH_BYTES = head(f"/{SEARCH}", f"Content-Length: {len(QUERY)}", "Connection: close") + b"\r\n" + QUERY
# The message of QUERY in protobuf's binary form.
SEARCH_MESSAGE = message(b"\x0a" + bytes([len(WORD)]) + WORD.encode())


@contextmanager
def serving(start_server: StartServer) -> Iterator[tuple[RunningServer, Caller]]:
    """A server that holds ten turns with WORD, warm: its threads are there, its libraries loaded."""
    running = start_server(settings={"AFORESAID_LOG_LEVEL": "error"})
    door = ConnectDoor(running.url)
    user = Caller(door)
    try:
        user.say("talk", *[f"{WORD} {place}" for place in range(10)], agent_id="ada")
        wait_until(lambda: user.search(WORD).code == "ok")
        with httpx.Client(base_url=running.url) as http:
            for _ in range(100):
                http.post(f"/{SEARCH}", content=QUERY, headers={"content-type": "application/json"})
        yield running, user
        assert len(hits(ok(user.search(WORD, agentId="ada")))) == 10
    finally:
        door.close()


def assert_nothing_is_kept(running: RunningServer, before: Held, *, memory: int = 64 * MIB) -> None:
    """Threads and files are soon as few as before; memory, of which libraries keep some, has hardly grown."""
    pid = running.process.pid
    wait_until(lambda: few_more(Held.by(pid), before), lambda: f"{Held.by(pid)} after {before}")
    assert Held.by(pid).memory - before.memory < memory


def few_more(now: Held, before: Held) -> bool:
    """Tells whether a process has about as many files and threads as before."""
    return now.files <= before.files + 2 and now.threads <= before.threads + 4


# Many at once


async def ask(url: str, go: asyncio.Event, request: bytes, connected_all: Callable[[], None]) -> bytes:
    """Connects, waits until all are connected, asks, and returns the whole reply."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    connected_all()
    await go.wait()
    writer.write(request)
    reply = await reader.read()
    writer.close()
    return reply


async def ask_over_http(url: str, requests: list[bytes]) -> list[bytes]:
    """Has as many callers ask at the same moment."""
    go, waiting = asyncio.Event(), len(requests)

    def one_more() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            go.set()

    return await asyncio.gather(*(ask(url, go, request, one_more) for request in requests))


async def ask_over_grpc(target: str, count: int) -> list[str]:
    """As many calls at the same moment, over ten connections; returns their codes."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(target, options=options) for _ in range(10)]

    async def one(channel: grpc.aio.Channel) -> str:
        call: Any = channel.unary_unary(f"/{SEARCH}")
        try:
            await call(SEARCH_MESSAGE[5:], timeout=120)
        except grpc.aio.AioRpcError as error:
            return error.code().name
        return "OK"

    try:
        return await asyncio.gather(*(one(channel) for channel in channels for _ in range(count // 10)))
    finally:
        for channel in channels:
            await channel.close()


def outcome(reply: bytes) -> str:
    """What a reply of the HTTP port says: "ok" or a code; fails for one that is cut off."""
    status = reply.split(b" ", 2)[1:2]
    body = json.loads(reply[reply.index(b"{") : reply.rindex(b"}") + 1])
    return "ok" if status == [b"200"] else str(body["code"])


@needs_proc
def test_all_ask_at_once(start_server: StartServer) -> None:
    """All are answered or told to ask again; what was acknowledged is found."""
    with serving(start_server) as (running, user):
        pid = running.process.pid
        before = Held.by(pid)
        for callers in (CALLERS // 3, CALLERS):
            before = Held.by(pid)
            told = everybody_asks(running, user, callers)
            print(Counter(told), before, Held.by(pid), f"{peak_memory(pid) // MIB} MiB at most")
            assert set(told) <= {"ok", "unavailable"}
            if not LONG:  # within the limit of calls: nobody is refused
                assert set(told) == {"ok"}
        assert_nothing_is_kept(running, before)
        assert peak_memory(pid) < 1024 * MIB


def everybody_asks(running: RunningServer, user: Caller, callers: int) -> list[str]:
    """Half of the callers search over HTTP, half over gRPC, and some more write; returns the codes."""
    name = new("gathered")
    bodies = [
        json.dumps({"agentId": name, "conversationId": f"c{at % 7}", "turns": [turn(f"gathered {at}", turn_id=f"t{at}")]})
        for at in range(callers // 10)
    ]
    writes = [head(f"/{APPEND}", f"Content-Length: {len(body)}", "Connection: close") + b"\r\n" + body.encode() for body in bodies]
    searches = list(repeat(SEARCH_BYTES, callers // 2))

    async def everybody() -> tuple[list[bytes], list[str]]:
        return await asyncio.gather(ask_over_http(running.url, [*writes, *searches]), ask_over_grpc(running.grpc, callers // 2))

    over_http, over_grpc = asyncio.run(everybody())
    told = [outcome(reply) for reply in over_http]
    found = {hit["turnId"] for page in user.pages("gathered", agentId=name) for hit in hits(page)}
    assert {f"t{at}" for at in range(len(writes)) if told[at] == "ok"} <= found
    return [*told, *(code.lower() for code in over_grpc)]


# Callers that hang up


def hang_up_over_http(running: RunningServer, request: bytes) -> None:
    """Sends a request and hangs up: every other time by a reset."""
    for at in range(CANCELLED):
        with connected(running.url) as connection:
            connection.sendall(request)
            if at % 2:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def cancel_over_grpc(running: RunningServer, method: str, sent: bytes, *, ends: bool) -> None:
    """Begins calls and cancels each at once, on as few connections as the other side allows."""
    caller, stream = Http2(running.grpc), 1
    for _ in range(CANCELLED):
        try:
            caller.begin(stream, method)
            caller.send(frame(DATA, END_STREAM if ends else 0, stream, sent))
            caller.send(frame(RST_STREAM, 0, stream, (8).to_bytes(4, "big")))
        except OSError:
            caller.close()
            caller, stream = Http2(running.grpc), -1
        stream += 2
    caller.close()


FIRST = {"agent": {"agentId": "storm"}, "conversation": {"conversationId": "c"}, "turns": [turn("half an import")]}
FIRST_FRAME = message(json.dumps(FIRST).encode())
HALF_IMPORT = (
    head(f"/{IMPORT}", "Transfer-Encoding: chunked", content_type="application/connect+json")
    + b"\r\n%x\r\n" % len(FIRST_FRAME)
    + FIRST_FRAME
    + b"\r\n"
)
STORMS: dict[str, Callable[[RunningServer], None]] = {
    "searches": lambda running: hang_up_over_http(running, SEARCH_BYTES),
    "half searches": lambda running: hang_up_over_http(running, SEARCH_BYTES[:-3]),
    "imports": lambda running: hang_up_over_http(running, HALF_IMPORT),
    "searches over gRPC": lambda running: cancel_over_grpc(running, SEARCH, SEARCH_MESSAGE, ends=True),
    "half searches over gRPC": lambda running: cancel_over_grpc(running, SEARCH, SEARCH_MESSAGE[:-3], ends=False),
    "imports over gRPC": lambda running: cancel_over_grpc(running, IMPORT, message(b"\x0a\x07\x0a\x05storm"), ends=False),
}


@needs_proc
def test_callers_that_hang_up(start_server: StartServer) -> None:
    """Each storm twice: what libraries keep after the first is no leak, what they keep after the second is."""
    with serving(start_server) as (running, user):
        for name, storm in STORMS.items():
            storm(running)
            wait_until(lambda: ok(user.search(WORD)).code == "ok")
            before = Held.by(running.process.pid)
            storm(running)
            print(name, before, Held.by(running.process.pid))
            assert_nothing_is_kept(running, before)


# Small requests that expand to large ones


def bomb() -> bytes:
    """Blanks, gzipped to a thousandth."""
    deflating, piece = zlib.compressobj(9, wbits=31), b" " * MIB
    return b"".join([*(deflating.compress(piece) for _ in range(BOMB // MIB)), deflating.flush()])


def zstd_bomb() -> bytes:
    """A gibibyte of blanks as zstd's blocks of one repeated byte (RFC 8878): 32 KiB."""
    block = 128 * 1024
    header = (block << 3) | (1 << 1)
    blocks = b"".join((header | (at == 8191)).to_bytes(3, "little") + b" " for at in range(8192))
    return b"\x28\xb5\x2f\xfd" + bytes([0b00000000, 0x38 + 0x38]) + blocks


def over_http2(running: RunningServer, method: str, data: bytes, encoding: str) -> bytes:
    """Sends a compressed message over gRPC; returns the trailers."""
    caller = Http2(running.grpc)
    try:
        caller.begin(1, method, ("grpc-encoding", encoding))
        assert caller.send_message(1, message(data, compressed=True))
        return caller.ended(1) or b""
    finally:
        caller.close()


@needs_proc
def test_bombs(start_server: StartServer, contract: Contract) -> None:
    with serving(start_server) as (running, user):
        pid, http = running.process.pid, user.door.http
        user.door.send(SEARCH, gzip.compress(QUERY), {"content-encoding": "gzip"})
        before, blanks = peak_memory(pid), bomb()
        told = {
            encoding: user.door.send(SEARCH, data, {"content-encoding": encoding}).code
            for encoding, data in (
                ("gzip", blanks),
                ("zstd", zstd_bomb()),
                ("br", b"\x1b" * 1000),
                ("deflate", zlib.compress(QUERY)),
            )
        }
        assert told == {"gzip": "resource_exhausted", "zstd": "unimplemented", "br": "unimplemented", "deflate": "unimplemented"}
        # Members that are empty: to expand each would copy all that follow.
        assert user.door.send(SEARCH, gzip.compress(b"") * 100_000, {"content-encoding": "gzip"}).code == "invalid_argument"
        assert user.door.send(SEARCH, gzip.compress(QUERY)[:-9], {"content-encoding": "gzip"}).code == "invalid_argument"
        assert ok(user.door.send(SEARCH, gzip.compress(QUERY), {"content-encoding": "gzip"})).body["matches"]

        streamed = {"content-type": "application/connect+json", "connect-content-encoding": "gzip"}
        reply = http.post(f"/{IMPORT}", content=message(blanks, compressed=True), headers=streamed)
        assert b'"resource_exhausted"' in reply.content
        web = {"content-type": "application/grpc-web+proto", "grpc-encoding": "gzip"}
        assert b"grpc-status: 8" in http.post(f"/{SEARCH}", content=message(blanks, compressed=True), headers=web).content
        # Said to be compressed, by a caller that named no way.
        del streamed["connect-content-encoding"], web["grpc-encoding"]
        reply = http.post(f"/{IMPORT}", content=message(blanks, compressed=True), headers=streamed)
        assert b'"invalid_argument"' in reply.content
        assert b"grpc-status: 3" in http.post(f"/{SEARCH}", content=message(blanks, compressed=True), headers=web).content

        assert b"grpc-status\x018" in over_http2(running, SEARCH, blanks, "gzip")
        over_grpc = GrpcDoor(running.grpc, contract)
        wait_until(lambda: over_grpc.call(SEARCH, {"query": WORD}).code == "ok")
        over_grpc.close()
        assert peak_memory(pid) - before < 160 * MIB
