"""The error tree: each code of the wire becomes its own class, with the fields that google.rpc.BadRequest names."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError, ErrorDetail
from google.rpc import error_details_pb2
from hypothesis import given
from hypothesis import strategies as st
from protobuf.wkt import Any

import aforesaid
from aforesaid import _errors
from aforesaid._errors import translated
from scripts.running_server import ROOT

URL = "http://127.0.0.1:8787"


def detail(
    message: error_details_pb2.BadRequest | error_details_pb2.RetryInfo | bytes, name: str = "google.rpc.BadRequest"
) -> ErrorDetail:
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return ErrorDetail(Any(type_url=f"type.googleapis.com/{name}", value=data))


def bad_request(*fields: tuple[str, str]) -> error_details_pb2.BadRequest:
    request = error_details_pb2.BadRequest()
    for field, description in fields:
        request.field_violations.add(field=field, description=description, reason="REASON")
    return request


def fields_of(error: aforesaid.AforesaidError) -> list[tuple[str, str]]:
    assert isinstance(error, aforesaid.InvalidArgument)
    return [(violation.field, violation.description) for violation in error.violations]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Code.INVALID_ARGUMENT, aforesaid.InvalidArgument),
        (Code.UNAUTHENTICATED, aforesaid.Unauthenticated),
        (Code.PERMISSION_DENIED, aforesaid.PermissionDenied),
        (Code.NOT_FOUND, aforesaid.NotFound),
        (Code.ABORTED, aforesaid.Aborted),
        (Code.FAILED_PRECONDITION, aforesaid.FailedPrecondition),
        (Code.RESOURCE_EXHAUSTED, aforesaid.ResourceExhausted),
        (Code.UNAVAILABLE, aforesaid.Unavailable),
        (Code.DEADLINE_EXCEEDED, aforesaid.DeadlineExceeded),
        (Code.CANCELED, aforesaid.Canceled),
        (Code.INTERNAL, aforesaid.Internal),
    ],
)
def test_each_code_has_its_class_and_the_class_tells_the_code(code: Code, kind: type[aforesaid.AforesaidError]) -> None:
    error = translated(ConnectError(code, "field 7: is wrong"), URL, 60)
    assert type(error) is kind
    assert error.code == code.value
    if kind is not aforesaid.DeadlineExceeded:
        assert error.message == str(error) == "field 7: is wrong"


@pytest.mark.parametrize("code", [Code.UNIMPLEMENTED, Code.UNKNOWN, Code.DATA_LOSS, Code.ALREADY_EXISTS, Code.OUT_OF_RANGE])
def test_a_code_that_the_service_never_sends_is_unexpected(code: Code) -> None:
    error = translated(ConnectError(code, "Not Found"), URL, 60)
    assert type(error) is aforesaid.Unexpected
    assert error.message == "http://127.0.0.1:8787 does not answer as aforesaid does: not Found"


def test_an_error_without_text_tells_its_code() -> None:
    assert translated(ConnectError(Code.PERMISSION_DENIED, ""), URL, 60).message == "permission denied"


def test_a_deadline_tells_how_long_was_waited() -> None:
    assert (
        translated(ConnectError(Code.DEADLINE_EXCEEDED, "Request timed out"), URL, 0.5).message
        == f"no answer from {URL} within 0.5 s"
    )


def test_a_reply_that_cannot_be_read_is_not_the_callers_fault() -> None:
    wire = ConnectError(Code.INVALID_ARGUMENT, "unmarshal message: x")
    wire.__cause__ = ValueError("x")
    assert type(translated(wire, URL, 60)) is aforesaid.Unexpected


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        ("Request failed: error sending request: tcp connect error: Connection refused (os error 111)", "connection refused"),
        ("Request failed: dns error: no records found for Query { name: Name(x) }", "no such host"),
        ("Request failed: client error (Connect): invalid peer certificate: UnknownIssuer", "its certificate is not trusted"),
        (
            "Request failed: client error (Connect): invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
            "its certificate is that of a CA, which a service may not show: it must say CA:FALSE",
        ),
        (
            'Request failed: invalid peer certificate: certificate not valid for name "a.example"; certificate is only valid for x',
            "its certificate is for other names",
        ),
        ("Request failed: peer closed connection without sending TLS close_notify: https://x/y", "the connection was cut off"),
        ("Executing request on already closed transport", "the client was closed"),
        ("Request failed: connection closed before message completed", "connection closed before message completed"),
        ("", "ConnectionError"),
    ],
)
def test_why_no_answer_came(cause: str, told: str) -> None:
    wire = ConnectError(Code.UNAVAILABLE, cause)
    wire.__cause__ = ConnectionError(cause)
    error = translated(wire, URL, 60)
    assert type(error) is aforesaid.Unreachable
    assert error.message == f"cannot reach {URL}: {told}"
    assert isinstance(error, aforesaid.Unavailable)
    assert error.retryable is not (told.startswith("its certificate") or told == "the client was closed")


@pytest.mark.parametrize("sign", ["invalid HTTP version parsed", "received unexpected message from connection"])
def test_where_only_http_2_is_spoken_the_grpc_port_is_thought_of(sign: str) -> None:
    wire = ConnectError(Code.UNAVAILABLE, "")
    wire.__cause__ = ConnectionError(f"Request failed: error sending request: client error: {sign}")
    error = translated(wire, URL, 60)
    assert type(error) is aforesaid.Unexpected
    assert error.message == f"{URL} does not answer as aforesaid does: it may be the gRPC port, and the url wants the other one"


def test_bad_request_names_the_fields() -> None:
    wire = ConnectError(
        Code.INVALID_ARGUMENT,
        "pagination.limit: must not be negative: -1",
        [detail(bad_request(("pagination.limit", "x"), ("é", "")))],
    )
    assert fields_of(translated(wire, URL, 60)) == [("pagination.limit", "x"), ("é", "")]


def test_other_details_are_passed_over() -> None:
    retry = detail(error_details_pb2.RetryInfo(), "google.rpc.RetryInfo")
    assert fields_of(translated(ConnectError(Code.INVALID_ARGUMENT, "x", [retry]), URL, 60)) == []


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))))
def test_bad_request_is_read_as_googles_runtime_writes_it(fields: list[tuple[str, str]]) -> None:
    wire = ConnectError(Code.INVALID_ARGUMENT, "x", [detail(bad_request(*fields))])
    assert fields_of(translated(wire, URL, 60)) == fields


@given(st.binary(max_size=60))
def test_any_bytes_in_place_of_a_bad_request_do_no_harm(data: bytes) -> None:
    assert type(translated(ConnectError(Code.INVALID_ARGUMENT, "x", [detail(data)]), URL, 60)) is aforesaid.InvalidArgument


def test_a_cut_off_bad_request_gives_the_fields_before_the_cut() -> None:
    data = bad_request(("a", "b"), ("c", "d")).SerializeToString()
    assert fields_of(translated(ConnectError(Code.INVALID_ARGUMENT, "x", [detail(data[:-1])]), URL, 60)) == [("a", "b")]


KINDS = [kind for kind in vars(_errors).values() if isinstance(kind, type) and issubclass(kind, aforesaid.AforesaidError)]


@pytest.mark.parametrize("kind", KINDS)
def test_only_where_the_service_could_not_answer_may_a_call_be_tried_again(kind: type[aforesaid.AforesaidError]) -> None:
    error = kind("x")
    assert error.retryable is issubclass(kind, aforesaid.Unavailable)
    assert error.request_id == ""


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = re.findall(r"^    (?P<branch>[ │├└─]*)(?P<name>[A-Z]\w+) ", str(_errors.__doc__), re.MULTILINE)
    depths = {name: len(branch) // 4 for branch, name in drawn}
    assert depths == {kind.__name__: len(kind.__mro__) - len(aforesaid.AforesaidError.__mro__) for kind in KINDS}
    names = list(depths)
    for kind in KINDS[1:]:
        above = [name for name in names[: names.index(kind.__name__)] if depths[name] < depths[kind.__name__]]
        assert above[-1] == kind.__base__.__name__  # type: ignore[union-attr]


def test_an_error_names_its_request() -> None:
    error = translated(ConnectError(Code.NOT_FOUND, "x"), URL, 60, "request-7")
    assert (error.request_id, error.message) == ("request-7", "x")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_go_through_queues_and_processes(copied: Callable[[aforesaid.AforesaidError], aforesaid.AforesaidError]) -> None:
    wire = ConnectError(Code.INVALID_ARGUMENT, "a: b", [detail(bad_request(("a", "b")))])
    again = copied(translated(wire, URL, 60, "request-7"))
    assert (type(again), str(again), again.message, again.request_id) == (aforesaid.InvalidArgument, "a: b", "a: b", "request-7")
    assert fields_of(again) == [("a", "b")]


def test_the_page_about_python_draws_the_same_tree() -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    drawn = [
        line.removeprefix("    ") for line in str(_errors.__doc__).splitlines() if re.match(r"    (AforesaidError|[├└│])", line)
    ]
    assert "\n".join(drawn) in page
