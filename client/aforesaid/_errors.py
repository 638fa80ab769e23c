"""What can go wrong with a call, as one tree that mirrors the wire's codes.

    AforesaidError                 `code`, `message` (in lower case what is wrong and with which value), `request_id`, `retryable`
    ├── InvalidArgument            a field breaks a rule; `violations` name the fields
    ├── Unauthenticated            no or bad token where tokens are required
    ├── PermissionDenied           the caller may not; says nothing about the target
    ├── NotFound                   no such agent, conversation or turn in the caller's scope
    ├── Aborted                    `expected_revision` does not match
    ├── FailedPrecondition         the conversation is tombstoned
    ├── ResourceExhausted          a size limit
    ├── Unavailable                store, index or audit log cannot answer; retryable
    │   └── Unreachable            no answer came: the service is not there, or the connection broke; retryable as a rule
    ├── DeadlineExceeded           no answer in time
    ├── Canceled                   the call was given up
    ├── Internal                   something unforeseen in the service; the message names the request
    └── Unexpected                 a code that the service never sends: something else answers there

`translated` is the one place where an error of the wire becomes one of these. What was raised before it is its `__cause__`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    # At run time only whoever calls has loaded it: `aforesaid --help` does without.
    from connectrpc.errors import ConnectError


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """A field that breaks a rule, by its full path (such as `pagination.limit`), and the rule."""

    field: str
    description: str


class AforesaidError(Exception):
    """Anything that a call may raise.

    `code` is the wire's name of it. `message` says in lower case what is wrong and with which value. `request_id` is what the
    service's log and its audit log call the request, empty where no answer came. `retryable` tells whether the same call may
    succeed a little later; reads were then tried again already.
    """

    code: ClassVar[str] = "unknown"
    retryable: bool = False
    request_id: str = ""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidArgument(AforesaidError):
    """A field breaks a rule."""

    code = "invalid_argument"

    def __init__(self, message: str, violations: tuple[FieldViolation, ...] = ()) -> None:
        super().__init__(message)
        self.violations = violations

    @classmethod
    def of(cls, field: str, problem: str) -> InvalidArgument:
        """Builds the error for one field, with the message that the service would give it."""
        return cls(f"{field}: {problem}", (FieldViolation(field, problem),))


class Unauthenticated(AforesaidError):
    """No or bad token where tokens are required."""

    code = "unauthenticated"


class PermissionDenied(AforesaidError):
    """The caller may not; says nothing about the target."""

    code = "permission_denied"


class NotFound(AforesaidError):
    """No such agent, conversation or turn in the caller's scope."""

    code = "not_found"


class Aborted(AforesaidError):
    """`expected_revision` does not match."""

    code = "aborted"


class FailedPrecondition(AforesaidError):
    """The conversation is tombstoned."""

    code = "failed_precondition"


class ResourceExhausted(AforesaidError):
    """A size limit."""

    code = "resource_exhausted"


class Unavailable(AforesaidError):
    """Store, index or audit log cannot answer; trying again is right."""

    code = "unavailable"
    retryable = True


class Unreachable(Unavailable):
    """No answer came: the service is not there, or the connection broke. Whether a write took place is not known.

    Not retryable where its certificate is not taken or the client was closed.
    """


class DeadlineExceeded(AforesaidError):
    """No answer in time. Whether a write took place is not known."""

    code = "deadline_exceeded"


class Canceled(AforesaidError):
    """The call was given up."""

    code = "canceled"


class Internal(AforesaidError):
    """Something unforeseen in the service; the message names the request as its log does."""

    code = "internal"


class Unexpected(AforesaidError):
    """A code that the service never sends: something else answers there."""


_BY_CODE: dict[str, type[AforesaidError]] = {
    error.code: error
    for error in (
        Unauthenticated,
        PermissionDenied,
        NotFound,
        Aborted,
        FailedPrecondition,
        ResourceExhausted,
        Unavailable,
        Canceled,
        Internal,
    )
}

_BAD_REQUEST = "google.rpc.BadRequest"
# Why a connection failed, by a sign in the transport's words; and whether trying again could help.
_REASONS = (
    ("Connection refused", "connection refused", True),
    ("dns error", "no such host", True),
    ("timed out", "timed out", True),
    # What `openssl req -x509` makes unless it is told otherwise. Python and curl take it.
    ("CaUsedAsEndEntity", "its certificate is that of a CA, which a service may not show: it must say CA:FALSE", False),
    ("certificate not valid for name", "its certificate is for other names", False),
    ("ertificate", "its certificate is not trusted", False),
    ("close_notify", "the connection was cut off", True),
    ("already closed transport", "the client was closed", False),
)
# What the transport says where only HTTP/2 is spoken, as at the gRPC port: its greeting came after the request, or before.
_ONLY_HTTP_2 = ("invalid HTTP version", "received unexpected message from connection")


def translated(error: ConnectError, url: str, timeout: float, request_id: str = "") -> AforesaidError:
    """Returns the error of the tree for one of the wire. `url` and `timeout` (seconds) are the call's, for the message."""
    known = _known(error, url, timeout)
    known.request_id = request_id
    return known


def _known(error: ConnectError, url: str, timeout: float) -> AforesaidError:
    code, cause = error.code.value, error.__cause__
    if code == InvalidArgument.code and cause is None:
        return InvalidArgument(error.message, tuple(_violations(error)))
    if code == DeadlineExceeded.code:
        return DeadlineExceeded(f"no answer from {url} within {timeout:g} s")
    if code == Unavailable.code and cause is not None and any(sign in str(cause) for sign in _ONLY_HTTP_2):
        return Unexpected(f"{url} does not answer as aforesaid does: it may be the gRPC port, and the url wants the other one")
    if code == Unavailable.code and cause is not None:
        reason, may_pass = _reason(cause)
        unreachable = Unreachable(f"cannot reach {url}: {reason}")
        unreachable.retryable = may_pass
        return unreachable
    if code in _BY_CODE:
        return _BY_CODE[code](_lowered(error.message) or code.replace("_", " "))
    return Unexpected(f"{url} does not answer as aforesaid does: {_lowered(error.message) or code}")


def _lowered(message: str) -> str:
    # Only a word written like any other: acronyms and names keep their capitals.
    first = message.split(" ", 1)[0]
    return first.lower() + message[len(first) :] if first.istitle() else message


def _reason(cause: BaseException) -> tuple[str, bool]:
    """Says in a few words why a connection failed, for the transport's own text nests five causes and repeats the address.

    Tells with it whether trying again may help.
    """
    text = str(cause)
    for sign, reason, may_pass in _REASONS:
        if sign in text:
            return reason, may_pass
    return text.rpartition(": ")[2].strip() or type(cause).__name__, True


def _violations(error: ConnectError) -> Iterator[FieldViolation]:
    for detail in error.details:
        if detail.type_name != _BAD_REQUEST:
            continue
        for number, violation in _length_delimited(detail.message_bytes):
            if number == 1:
                texts = {n: value.decode("utf-8", "replace") for n, value in _length_delimited(violation)}
                yield FieldViolation(texts.get(1, ""), texts.get(2, ""))


def _length_delimited(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields number and bytes of each length-delimited field; ends at anything else.

    BadRequest and its parts hold only such fields. Google's classes for them ask for Google's protobuf runtime, which the client
    does without.
    """
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        length, place = _varint(message, place)
        if tag & 7 != 2 or place + length > len(message):
            return
        yield tag >> 3, message[place : place + length]
        place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(message):
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            break
    return value, place
