"""Hostile requests by the thousand, on both ports: each is refused in the words of the contract or answered, never `internal`; none
takes the service down, holds it up, or makes it keep memory; and at the end it finds what it found before.

AFORESAID_LONG=1 sends a million, AFORESAID_REQUESTS any number. A failure names its seed; AFORESAID_SEED runs it again.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from scripts.running_server import RunningServer
from tests.api.callers import Caller, hits, new, new_word, ok
from tests.api.doors import AGENTS, AUDIT, CONVERSATIONS, SEARCH, ConnectDoor, Contract, GrpcDoor
from tests.conftest import StartServer
from tests.faults.grammar import Grammar
from tests.faults.process import MIB, Held, needs_proc
from tests.faults.serving import LONG, wait_until
from tests.faults.wire import END_HEADERS, HEADERS, Http2, address_of, all_of, connected, frame, grpc_headers

REQUESTS = int(os.environ.get("AFORESAID_REQUESTS") or (1_000_000 if LONG else 3_000))
# What a hostile request may be told; `unimplemented` stands for paths and encodings that there are not.
CODES = frozenset(
    {
        *("ok", "invalid_argument", "permission_denied", "not_found", "aborted", "failed_precondition", "resource_exhausted"),
        *("unauthenticated", "unavailable", "deadline_exceeded", "unimplemented"),
    }
)
# By gRPC's numbers, for gRPC-Web; canceled, which a caller of a deadline may see, aside.
NUMBERS = {b"0", b"3", b"4", b"5", b"7", b"8", b"9", b"10", b"12", b"14", b"16"}
QUERIES = ["{}", '"{} the server"', "{} zebra", "-gone {}"]


@dataclass
class Attack:
    """One way after the other of sending a hostile request to a server; `told` counts what came back, `last` is what was sent."""

    running: RunningServer
    grammar: Grammar
    chance: random.Random
    told: Counter[str] = field(default_factory=Counter)
    last: deque[tuple[object, ...]] = field(default_factory=lambda: deque(maxlen=5))

    def __post_init__(self) -> None:
        self.http = http.client.HTTPConnection(*address_of(self.running.url), timeout=60)
        self.channel = grpc.insecure_channel(self.running.grpc)
        self.ways: list[tuple[Callable[[str], None], int]] = [
            (self.in_json, 50),
            (self.in_binary, 15),
            (self.in_frames, 10),
            (self.over_grpc, 15),
            (self.bytes_for_http, 6),
            (self.bytes_for_grpc, 4),
        ]

    def run(self, count: int) -> None:
        """Sends so many."""
        ways, weights = zip(*self.ways, strict=True)
        for way in self.chance.choices(ways, weights, k=count):
            way(self.grammar.method())

    def close(self) -> None:
        """Lets go of the connections."""
        self.http.close()
        self.channel.close()

    # -- the ways

    def in_json(self, method: str) -> None:
        """Connect, one message of JSON."""
        self.unary(method, "application/json", self.grammar.body(method))

    def in_binary(self, method: str) -> None:
        """Connect, one message in binary form."""
        self.unary(method, "application/proto", self.grammar.message(method))

    def unary(self, method: str, content_type: str, data: bytes) -> None:
        """A call of one message."""
        status, content = self.post(method, content_type, data)
        if status == 200:
            self.learn(content, content_type)
            self.count("ok")
        elif not status:
            self.told["hung up"] += 1
        else:
            told = json.loads(content)
            assert told["message"], "an error says why"
            self.count(told["code"])

    def in_frames(self, method: str) -> None:
        """Connect's and gRPC-Web's streams."""
        content_type, data = self.grammar.framed(method)
        status, content = self.post(method, content_type, data)
        if not status:
            self.told["hung up"] += 1
        elif status != 200:
            self.count(json.loads(content)["code"])
        elif content_type.startswith("application/connect"):
            end = json.loads(content[content.rindex(b"{", 0, content.rindex(b'"error"')) :] if b'"error"' in content else b"{}")
            self.count(end.get("error", {}).get("code", "ok"))
        else:
            number = content.rpartition(b"grpc-status:")[2].split(b"\r\n")[0].strip()
            assert number in NUMBERS, content[-200:]
            self.count("ok" if number == b"0" else f"grpc {number.decode()}")

    def over_grpc(self, method: str) -> None:
        """gRPC, by Google's client."""
        data = self.grammar.message(method)
        self.last.append((method, data[:500]))
        call: Any = self.channel.unary_unary(f"/{method}")
        agent = self.chance.choice(((), (), (("x-agent-id", self.chance.choice(("ada", "%FF", "hostile"))),)))
        try:
            call(data, timeout=self.chance.choice((60, 60, 60, 60, 0.001)), metadata=agent)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.CANCELLED:
                self.cut_off()
            else:
                self.count(error.code().name.lower())
        else:
            self.count("ok")

    def cut_off(self) -> None:
        """Counts a call that ended with the gRPC port: a path that is no UTF-8 makes it fall, and it is opened anew. Calls are made
        one at a time, so no more of them end so than there were bytes that may have had such a path.
        """
        self.told["cut off"] += 1
        assert self.told["cut off"] <= self.told["http2"]

    def bytes_for_http(self, method: str) -> None:
        """Bytes that are no request, or several, or half a one."""
        data = self.grammar.http(method)
        for reply in replies(self.exchanged(self.running.url, data)):
            assert reply != b"500", data[:500]
            self.told[f"http {reply.decode()}"] += 1

    def bytes_for_grpc(self, method: str) -> None:
        """Bytes that are no HTTP/2, or hardly any."""
        self.exchanged(self.running.grpc, self.grammar.http2(method))
        self.told["http2"] += 1

    # -- their pieces

    def post(self, method: str, content_type: str, data: bytes) -> tuple[int, bytes]:
        """Sends a request on the connection that there is, or on a new one; returns status and content."""
        headers = {"content-type": content_type} | self.grammar.headers()
        self.last.append((method, headers, data[:500]))
        with contextlib.suppress(http.client.HTTPException, OSError):
            return self.sent(method, data, headers)
        # The service may hang up on a connection that was idle; on a new one it answers, but may close before it has read all.
        self.http.close()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            return self.sent(method, data, headers)
        self.http.close()
        return 0, b""

    def sent(self, method: str, data: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Sends a request on the connection that there is; returns status and content."""
        self.http.request("POST", f"/{method}", data, headers)
        reply = self.http.getresponse()
        return reply.status, reply.read()

    def exchanged(self, url: str, data: bytes) -> bytes:
        """Sends bytes and says that no more come; returns what came."""
        self.last.append((url, data[:500]))
        with connected(url) as connection, contextlib.suppress(OSError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return all_of(connection)
        return b""

    def learn(self, content: bytes, content_type: str) -> None:
        """Keeps cursors, to pass them on altered."""
        if content_type == "application/json" and b"nextPageToken" in content:
            self.grammar.cursors = [*self.grammar.cursors[-20:], json.loads(content)["nextPageToken"]]

    def count(self, code: str) -> None:
        """Counts what was told, which must be foreseen."""
        assert code in CODES or code.startswith("grpc "), code
        self.told[code] += 1


def replies(content: bytes) -> Iterator[bytes]:
    """The status of each reply of HTTP/1.1."""
    for piece in content.split(b"HTTP/1.1 ")[1:]:
        yield piece[:3]


@pytest.fixture(scope="module")
def methods(contract: Contract) -> list[str]:
    """All methods of the contract."""
    services = [contract.pool.FindServiceByName(name) for name in (AGENTS, CONVERSATIONS, AUDIT)]
    return [f"{service.full_name}/{method.name}" for service in services for method in service.methods]


@needs_proc
def test_hostile_requests(start_server: StartServer, contract: Contract, methods: list[str], chance: random.Random) -> None:
    running = start_server(settings={"AFORESAID_LOG_LEVEL": "error", "AFORESAID_PATIENCE_SECONDS": "5"})
    pid, door = running.process.pid, ConnectDoor(running.url)
    user, word, owner = Caller(door), new_word(), new("probe")
    user.say(owner, f"{word} the server", f"{word}ed", f"gone {word}", f"a zebra {word}", agent_id=owner)
    wait_until(lambda: user.search(word).code == "ok")
    before = [found(user, query.format(word), owner) for query in QUERIES]
    attack = Attack(running, Grammar(contract, methods, chance), chance)
    try:
        attack.run(REQUESTS // 2)
        warm = Held.by(pid)
        attack.run(REQUESTS - REQUESTS // 2)
        print(dict(attack.told), warm, Held.by(pid))
        assert min(attack.told[code] for code in ("ok", "invalid_argument", "not_found", "http 400", "http2")), (
            "the grammar misses it"
        )
        wait_until(lambda: Held.by(pid).files <= warm.files + 20 and Held.by(pid).threads <= warm.threads + 6)
        assert Held.by(pid).memory - warm.memory < 128 * MIB
        wait_until(lambda: user.search(word).code == "ok")
        assert [found(user, query.format(word), owner) for query in QUERIES] == before
    except BaseException:
        print(*attack.last, sep="\n")
        print(running.told())
        raise
    finally:
        attack.close()
        door.close()
    assert running.log is not None
    assert "unforeseen" not in running.log.read_text()


def found(user: Caller, query: str, owner: str) -> list[tuple[str, str]]:
    """What a query finds of the agent that nobody attacks: turns and snippets of all lists."""
    return [(hit["turnId"], hit["snippet"]) for hit in hits(ok(user.search(query, agentId=owner)))]


def test_a_path_that_is_no_text_does_not_close_the_port(start_server: StartServer, contract: Contract) -> None:
    """grpcio ends its server of one such path, from anybody; the service opens the port anew, and quotes nothing of it."""
    running = start_server()
    for _ in range(3):
        caller = Http2(running.grpc)
        caller.send(frame(HEADERS, END_HEADERS, 1, grpc_headers("nowhere").replace(b"/nowhere", b"/no\xb7here")))
        caller.ended(1)
        caller.close()
        door = GrpcDoor(running.grpc, contract)
        wait_until(lambda door=door: door.call(SEARCH, {"query": "x"}).code == "ok")  # type: ignore[misc]
        door.close()
    assert running.log is not None
    assert "here" not in running.log.read_text().replace("http", "")
