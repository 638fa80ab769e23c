"""Both ports of a service in this process, and clients for them that share no code with it: httpx and Google's gRPC."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import grpc
import grpc_tools
import httpx
import uvloop
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message, message_factory
from google.rpc import error_details_pb2, status_pb2
from grpc_tools import protoc

from aforesaid_server.doors import Doors, Signals, listen
from aforesaid_server.house import House
from aforesaid_server.settings import Settings
from scripts.running_server import POLL_SECONDS

Json: TypeAlias = dict[str, Any]

AGENTS, CONVERSATIONS, AUDIT = "agent.v1.AgentService", "agent.v1.ConversationService", "agent.v1.AuditService"
SEARCH = f"{AGENTS}/SearchTranscripts"
WIRE = Path(__file__).parents[2] / "server/aforesaid_server/api/wire"


class Service:
    """A service that runs in a thread of its own, with its own event loop."""

    def __init__(self, house: House, settings: Settings) -> None:
        self.url = self.target = self.metrics_url = ""
        self._house, self._settings = house, settings
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 # raised again by whoever waits
            self._failed = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._signals = asyncio.get_running_loop(), Signals()
        sockets = listen(self._settings.host, self._settings.port)
        async with Doors(self._settings, self._house, sockets, self._signals) as doors:
            self.url, self.target, self.metrics_url, self._doors = doors.url, doors.target, doors.metrics_url, doors
            self._ready.set()
            await self._signals.first.wait()

    def start(self) -> None:
        """Returns once both ports are open."""
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed

    @property
    def calls(self) -> int:
        """How many calls it has begun and not ended."""
        return self._doors.calls

    def tell_to_stop(self) -> None:
        """Does what SIGTERM does; the second time it cuts calls off."""
        self._loop.call_soon_threadsafe(self._signals.come)

    def wait(self) -> None:
        """Waits for the end; raises what went wrong."""
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()


@contextlib.contextmanager
def running(house: House, **settings: Any) -> Iterator[Service]:
    """Runs a service on free ports until the block ends."""
    service = Service(house, Settings(port=0, grpc_port=0, **settings))
    service.start()
    try:
        yield service
    finally:
        if service.is_alive():
            service.tell_to_stop()
        service.wait()


def wait_until_said(text: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    """Returns once a process has written a text to its log; fails if it ends without."""
    while text not in log.read_text():
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"ended with {process.wait(POLL_SECONDS)}\n{log.read_text()}")


@dataclass
class Reply:
    """An answer on any door: `code` is "ok" or the error's, `violations` what BadRequest says, `headers` what came with it."""

    code: str
    body: Json = field(default_factory=dict)
    message: str = ""
    violations: list[tuple[str, str]] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)


class ConnectDoor:
    """Connect over HTTP/1.1, JSON both ways; `verify` is the CA to trust over TLS."""

    name = "connect"

    def __init__(self, url: str, verify: Path | None = None) -> None:
        trusted = ssl.create_default_context(cafile=str(verify)) if verify is not None else True
        self.http = httpx.Client(base_url=url, timeout=30, verify=trusted)

    def call(self, method: str, body: Json, headers: Mapping[str, str] | None = None, timeout: float | None = None) -> Reply:
        """Calls a method."""
        return self.send(method, json.dumps(body).encode(), headers, timeout)

    def send(self, method: str, content: bytes, headers: Mapping[str, str] | None = None, timeout: float | None = None) -> Reply:
        """Calls a method with any bytes for JSON."""
        sent = {"content-type": "application/json"} | dict(headers or {})
        if timeout is not None:
            sent["connect-timeout-ms"] = str(round(timeout * 1000))
        answer = self.http.post(f"/{method}", content=content, headers=sent)
        body = answer.json()
        if answer.status_code == 200:
            return Reply("ok", body, headers=answer.headers)
        return Reply(body["code"], body, body["message"], _violations(body.get("details", [])), answer.headers)

    def stream(self, method: str, messages: Iterable[Json]) -> Reply:
        """Calls a method that takes a stream."""
        frames = (_frame(0, json.dumps(one).encode()) for one in messages)
        answer = self.http.post(f"/{method}", content=frames, headers={"content-type": "application/connect+json"})
        *replies, (_, end) = _frames(answer.content)
        told = json.loads(end).get("error")
        if told is None:
            return Reply("ok", json.loads(replies[0][1]), headers=answer.headers)
        return Reply(told["code"], told, told.get("message", ""), _violations(told.get("details", [])), answer.headers)

    def close(self) -> None:
        """Lets go of the connections."""
        self.http.close()


def _violations(details: Sequence[Json]) -> list[tuple[str, str]]:
    found = []
    for detail in details:
        assert detail["type"] == "google.rpc.BadRequest"
        value = base64.b64decode(detail["value"] + "=" * (-len(detail["value"]) % 4))
        told = error_details_pb2.BadRequest.FromString(value)
        found += [(one.field, one.description) for one in told.field_violations]
    return found


def _frame(flags: int, data: bytes) -> bytes:
    return bytes([flags]) + len(data).to_bytes(4, "big") + data


def _frames(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    while data:
        size = int.from_bytes(data[1:5], "big")
        found.append((data[0], data[5 : 5 + size]))
        data = data[5 + size :]
    return found


class Contract:
    """The contract as Google's protobuf reads it from our .proto files."""

    def __init__(self, roots: Sequence[Path]) -> None:
        google = Path(grpc_tools.__file__).parent / "_proto"
        files = [path.relative_to(root).as_posix() for root in (roots[0], WIRE) for path in sorted(root.rglob("*.proto"))]
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "set"
            flags = [f"-I{root}" for root in (*roots, WIRE, google)]
            assert protoc.main(["protoc", *flags, "--include_imports", f"--descriptor_set_out={out}", *files]) == 0
            described = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
        self.pool = descriptor_pool.DescriptorPool()
        for file in described.file:
            self.pool.Add(file)

    def types(self, method: str) -> tuple[type[message.Message], type[message.Message]]:
        """The classes of what a method is asked and answers."""
        service, _, name = method.rpartition("/")
        found = self.pool.FindServiceByName(service).FindMethodByName(name)
        return message_factory.GetMessageClass(found.input_type), message_factory.GetMessageClass(found.output_type)

    def empty(self, name: str) -> message.Message:
        """An empty message of a type."""
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))()

    def parsed(self, method: str, body: Json) -> message.Message:
        """A request from its JSON form."""
        asked, _ = self.types(method)
        return json_format.ParseDict(body, asked(), descriptor_pool=self.pool)

    def told(self, reply: message.Message) -> Json:
        """The JSON form of a reply."""
        found: Json = json_format.MessageToDict(reply, descriptor_pool=self.pool)
        return found


class GrpcDoor:
    """gRPC over HTTP/2 by grpcio; requests and replies in their JSON form."""

    name = "grpc"

    def __init__(self, target: str, contract: Contract) -> None:
        self.contract = contract
        self.channel = grpc.insecure_channel(target, options=[("grpc.max_send_message_length", -1)])

    def call(self, method: str, body: Json, headers: Mapping[str, str] | None = None, timeout: float | None = 30) -> Reply:
        """Calls a method."""
        request = self.contract.parsed(method, body).SerializeToString()
        return self.send(method, request, headers, timeout)

    def send(self, method: str, data: bytes, headers: Mapping[str, str] | None = None, timeout: float | None = 30) -> Reply:
        """Calls a method with any bytes for a message."""
        metadata = tuple((name.lower(), value) for name, value in (headers or {}).items())
        calls: Any = self.channel.unary_unary(f"/{method}", None, self.contract.types(method)[1].FromString)
        try:
            reply, call = calls.with_call(data, timeout=timeout, metadata=metadata)
        except grpc.RpcError as error:
            return refused(error)
        return Reply("ok", self.contract.told(reply), headers=_texts(call.initial_metadata()))

    def stream(self, method: str, messages: Iterable[Json]) -> Reply:
        """Calls a method that takes a stream."""
        asked, answered = self.contract.types(method)
        calls = self.channel.stream_unary(f"/{method}", asked.SerializeToString, answered.FromString)
        try:
            reply, call = calls.with_call((self.contract.parsed(method, one) for one in messages), timeout=30)
        except grpc.RpcError as error:
            return refused(error)
        return Reply("ok", self.contract.told(reply), headers=_texts(call.initial_metadata()))

    def close(self) -> None:
        """Lets go of the channel."""
        self.channel.close()


def refused(error: Any) -> Reply:
    """An error of gRPC as a reply; checks that its details agree with it."""
    code = error.code().name.lower().replace("cancelled", "canceled")
    violations = []
    trailers = dict(error.trailing_metadata() or ())
    packed = trailers.get("grpc-status-details-bin")
    if packed is not None:
        status = status_pb2.Status.FromString(packed)
        assert (status.code, status.message) == (error.code().value[0], error.details())
        for detail in status.details:
            told = error_details_pb2.BadRequest()
            assert detail.Unpack(told)
            violations += [(one.field, one.description) for one in told.field_violations]
    return Reply(code, {}, error.details() or "", violations, _texts(error.trailing_metadata()))


def _texts(metadata: Any) -> dict[str, str]:
    return {key: value for key, value in metadata or () if isinstance(value, str)}
