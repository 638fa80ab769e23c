"""Alive and ready: /healthz and /readyz, grpc.health.v1, and reflection, which tools use beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, message

from aforesaid_server.api.health import Readiness
from aforesaid_server.api.wire.google.rpc import error_details_pb
from tests.api.doors import AGENTS, AUDIT, CONVERSATIONS, ConnectDoor, Contract, GrpcDoor, running
from tests.api.fakes import FakeCore

HEALTH = "grpc.health.v1.Health"
BUILDING = Readiness(False, "the index is being built", 40, 100)


def test_ready(connect: ConnectDoor) -> None:
    assert [connect.http.get(path).json() for path in ("/healthz", "/readyz")] == [{"alive": True}, {"ready": True}]
    assert [connect.http.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]


def test_not_ready(connect: ConnectDoor, core: FakeCore) -> None:
    core.readiness = BUILDING
    answer = connect.http.get("/readyz")
    assert (answer.status_code, answer.json()) == (
        503,
        {"ready": False, "reason": "the index is being built", "done": 40, "total": 100},
    )
    assert connect.http.get("/healthz").status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_are_asked_by_get_and_head(path: str, connect: ConnectDoor) -> None:
    head = connect.http.head(path)
    assert (head.status_code, head.content, int(head.headers["content-length"]) > 5) == (200, b"", True)
    refused = connect.http.post(path, content=b"{}")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("name", ["", AGENTS, CONVERSATIONS, AUDIT])
def test_check(name: str, over_grpc: GrpcDoor, core: FakeCore) -> None:
    assert over_grpc.call(f"{HEALTH}/Check", {"service": name}).body == {"status": "SERVING"}
    core.readiness = BUILDING
    assert over_grpc.call(f"{HEALTH}/Check", {"service": name}).body == {"status": "NOT_SERVING"}


def test_check_of_an_unknown_service(over_grpc: GrpcDoor) -> None:
    reply = over_grpc.call(f"{HEALTH}/Check", {"service": "squeamish"})
    assert (reply.code, reply.message) == ("not_found", "service: no such service")


def test_list(over_grpc: GrpcDoor) -> None:
    reply = over_grpc.call(f"{HEALTH}/List", {})
    assert reply.body == {"statuses": {service: {"status": "SERVING"} for service in ("", AGENTS, CONVERSATIONS, AUDIT)}}


def _watch(door: GrpcDoor, service: str) -> Any:
    asked, answered = door.contract.types(f"{HEALTH}/Watch")
    calls = door.channel.unary_stream(f"/{HEALTH}/Watch", asked.SerializeToString, answered.FromString)
    return calls(door.contract.parsed(f"{HEALTH}/Watch", {"service": service}), timeout=20)


def test_watch_tells_every_change(over_grpc: GrpcDoor, core: FakeCore) -> None:
    watched = _watch(over_grpc, AGENTS)
    told = [over_grpc.contract.told(next(watched))]
    for readiness in (BUILDING, Readiness(True)):
        core.readiness = readiness
        told.append(over_grpc.contract.told(next(watched)))
    watched.cancel()
    assert told == [{"status": "SERVING"}, {"status": "NOT_SERVING"}, {"status": "SERVING"}]


def test_watch_of_an_unknown_service_stays_open(over_grpc: GrpcDoor) -> None:
    watched = _watch(over_grpc, "squeamish")
    assert over_grpc.contract.told(next(watched)) == {"status": "SERVICE_UNKNOWN"}
    assert watched.is_active()
    watched.cancel()


def test_the_end_is_told_to_watchers_and_does_not_wait_for_them(contract: Contract) -> None:
    with running(FakeCore().house()) as service:
        door = GrpcDoor(service.target, contract)
        watched = _watch(door, "")
        assert door.contract.told(next(watched)) == {"status": "SERVING"}
        service.tell_to_stop()
        assert [door.contract.told(told) for told in watched] == [{"status": "NOT_SERVING"}]
        service.wait()
        door.close()


# -- reflection


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection(version: str, over_grpc: GrpcDoor) -> None:
    services = _reflect(over_grpc, version, [_field(7, b"*")])[0]
    for name in (AGENTS, CONVERSATIONS, AUDIT, HEALTH, "grpc.reflection.v1.ServerReflection"):
        assert name.encode() in services
    method, details = _reflect(
        over_grpc, version, [_field(4, b"agent.v1.AgentService.SearchTranscripts"), _field(4, b"google.rpc.BadRequest")]
    )
    assert b"agent/v1/agent_service.proto" in method
    assert b"buf/validate/validate.proto" in method, "a file comes with what it imports"
    expected = descriptor_pb2.FileDescriptorProto.FromString(error_details_pb.desc().proto.to_binary())
    assert b"google/rpc/error_details.proto" in details
    assert [one.name for one in expected.message_type] == ["BadRequest"]
    assert expected.SerializeToString() in details


def test_reflection_of_an_unknown_name(over_grpc: GrpcDoor) -> None:
    assert b"symbol not found" in _reflect(over_grpc, "v1", [_field(4, b"agent.v1.Nothing")])[0]


def test_reflection_refuses_what_is_no_request(over_grpc: GrpcDoor) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        _reflect(over_grpc, "v1", [b"\xff"])
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def _reflect(door: GrpcDoor, version: str, requests: list[bytes]) -> list[bytes]:
    """Asks in one stream, one request after each answer, as tools do."""
    calls: Any = door.channel.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo")
    left = iter(requests)

    def one_by_one() -> Iterator[bytes]:
        yield from left

    answers: list[bytes] = list(calls(one_by_one(), timeout=20))
    return answers


def _field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def test_messages_are_googles(contract: Contract) -> None:
    """The clients of these tests share no code with the service."""
    assert issubclass(contract.types(f"{HEALTH}/Check")[0], message.Message)
