"""Errors of the core to errors of the wire: the one place where that happens.

`AforesaidError` keeps its message; one that names a field goes out with google.rpc.BadRequest. Anything unforeseen becomes
`internal` with a request id and no text of its own.
"""

from __future__ import annotations

from connectrpc.code import Code as WireCode
from connectrpc.errors import ConnectError

from aforesaid_server.api.wire.google.rpc.error_details_pb import BadRequest
from aforesaid_server.errors import AforesaidError, InvalidArgument

_BY_LIBRARY = {
    WireCode.CANCELED: "the caller no longer waits",
    WireCode.DEADLINE_EXCEEDED: "the deadline has passed",
}


def connect_error(error: AforesaidError) -> ConnectError:
    """Returns the wire's form of an error of the tree."""
    details = []
    if isinstance(error, InvalidArgument):
        details.append(BadRequest(field_violations=[BadRequest.FieldViolation(field=error.field, description=error.problem)]))
    return ConnectError(WireCode(error.code.value), error.message, details)


def translated(error: Exception, request_id: str, max_request_bytes: int) -> ConnectError:
    """Returns the wire's form of any error that ends a call."""
    match error:
        case AforesaidError():
            return connect_error(error)
        case ConnectError():
            return _in_our_words(error, max_request_bytes)
        case _:
            return unforeseen(request_id)


def unforeseen(request_id: str) -> ConnectError:
    """Returns the error for what nobody expected."""
    return ConnectError(WireCode.INTERNAL, f"unforeseen: the service's log tells more of request {request_id}")


def _in_our_words(error: ConnectError, max_request_bytes: int) -> ConnectError:
    """Returns an error of the library, which also speaks of deadlines and sizes, in the same words on every door."""
    if error.code is WireCode.RESOURCE_EXHAUSTED:
        return too_large(max_request_bytes)
    if error.code is WireCode.INTERNAL and error.message.startswith("protocol error: "):
        return ConnectError(WireCode.INVALID_ARGUMENT, f"request: {error.message.removeprefix('protocol error: ')}")
    if error.code in _BY_LIBRARY:
        return ConnectError(error.code, _BY_LIBRARY[error.code])
    return error


def too_large(max_request_bytes: int) -> ConnectError:
    """Returns the error for a message over the limit."""
    return ConnectError(WireCode.RESOURCE_EXHAUSTED, f"request: more than {max_request_bytes} bytes in one message")
