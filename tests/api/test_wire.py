"""The Python beside server/aforesaid_server/api/wire/*.proto is what those files say. AFORESAID_WRITE=1 writes it anew."""

from __future__ import annotations

import filecmp
import os
import shutil
from pathlib import Path

import grpc_tools
import pytest
from google.protobuf import descriptor_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_tools import protoc

from aforesaid_server.api.wire.google.rpc import error_details_pb, status_pb
from aforesaid_server.api.wire.grpc.health.v1 import health_pb
from tests.api.doors import WIRE

FILES = [path.relative_to(WIRE).as_posix() for path in sorted(WIRE.rglob("*.proto"))]


def test_generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripts_path: str) -> None:
    monkeypatch.setenv("PATH", scripts_path)
    google = Path(grpc_tools.__file__).parent / "_proto"
    outputs = [f"--py_out={tmp_path}", "--py_opt=init_files=false", f"--connectrpc_out={tmp_path}"]
    assert protoc.main(["protoc", f"-I{WIRE}", f"-I{google}", *outputs, *FILES]) == 0
    made = [path.relative_to(tmp_path) for path in sorted(tmp_path.rglob("*.py"))]
    assert len(made) == 4
    if os.environ.get("AFORESAID_WRITE"):
        for path in made:
            shutil.copy(tmp_path / path, WIRE / path)
    committed = {path.relative_to(WIRE) for path in WIRE.rglob("*_*.py")} - {
        path.relative_to(WIRE) for path in WIRE.rglob("__*.py")
    }
    assert committed == set(made)
    assert [path for path in made if not filecmp.cmp(tmp_path / path, WIRE / path, shallow=False)] == []


def test_details_are_those_that_everybody_knows() -> None:
    """Our own descriptions of google.rpc against Google's: every field of ours is one of theirs, with the same number and type."""
    for ours, theirs in ((error_details_pb.desc(), error_details_pb2.DESCRIPTOR), (status_pb.desc(), status_pb2.DESCRIPTOR)):
        mine = descriptor_pb2.FileDescriptorProto.FromString(ours.proto.to_binary())
        known = descriptor_pb2.FileDescriptorProto()
        theirs.CopyToProto(known)
        assert (mine.name, mine.package) == (known.name, known.package)
        assert _fields(mine.message_type) <= _fields(known.message_type)


def _fields(messages: object, path: str = "") -> set[tuple[str, str, int, int, int, str]]:
    found = set()
    for one in messages:  # type: ignore[attr-defined]
        found |= {(f"{path}.{one.name}", field.name, field.number, field.type, field.label, field.type_name) for field in one.field}
        found |= _fields(one.nested_type, f"{path}.{one.name}")
    return found


def test_health_is_the_standard() -> None:
    """Names, numbers and methods as probes and balancers send them."""
    mine = descriptor_pb2.FileDescriptorProto.FromString(health_pb.desc().proto.to_binary())
    assert mine.package == "grpc.health.v1"
    assert [(method.name, method.server_streaming) for method in mine.service[0].method] == [
        ("Check", False),
        ("Watch", True),
        ("List", False),
    ]
    response = mine.message_type[1]
    assert [(value.name, value.number) for value in response.enum_type[0].value] == [
        ("UNKNOWN", 0),
        ("SERVING", 1),
        ("NOT_SERVING", 2),
        ("SERVICE_UNKNOWN", 3),
    ]
    assert [(message.name, [(field.name, field.number) for field in message.field]) for message in mine.message_type] == [
        ("HealthCheckRequest", [("service", 1)]),
        ("HealthCheckResponse", [("status", 1)]),
        ("HealthListRequest", []),
        ("HealthListResponse", [("statuses", 1)]),
    ]
