"""What every call goes through on every door, in this order: who asks and until when, the rules of the proto, the method; then
back, where errors get their code and the call its line in the log.

`Frame` begins before the request is read and ends after everything else, so that what the library itself refuses (a message that
is too large, a deadline) is told in the same words. It is a metadata interceptor of connectrpc; the gRPC door calls it likewise.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote_to_bytes

import structlog
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import Headers, RequestContext
from protobuf import Message

from aforesaid_server.access import Call, Patience
from aforesaid_server.api.intake import begin_to_count, received
from aforesaid_server.api.log import about
from aforesaid_server.api.rules import Rules
from aforesaid_server.api.translate import translated, unforeseen
from aforesaid_server.errors import InvalidArgument, Stopped, Unavailable

if TYPE_CHECKING:  # the extra [otel] may be missing
    from aforesaid_server.api.metrics import Calls
    from aforesaid_server.api.tracing import Tracing

Req = TypeVar("Req", bound=Message)
Res = TypeVar("Res")
Context = RequestContext[Any, Any]

REQUEST_ID = "x-request-id"
AGENT_ID = "x-agent-id"
AUTHORIZATION = "authorization"
MAX_AGENT_ID_BYTES = 512

# What may stand in a log and in an audit record as it came.
_SANE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=-]{0,127}")

# The call that runs in this task: connectrpc hands a method nothing but its own context.
_current: ContextVar[Call] = ContextVar("call")

log = structlog.get_logger("aforesaid.calls")


def current_call() -> Call:
    """Returns the call that runs in this task."""
    return _current.get()


@dataclass(frozen=True, slots=True)
class Begun:
    """A call that has begun, at a monotonic second, and its span, where it has one."""

    call: Call
    at: float
    span: Any = None


class Frame:
    """Begins and ends every call. `idle` is set while none that has begun has not ended."""

    def __init__(self, max_request_bytes: int, *, new_id: Callable[[], str] = lambda: secrets.token_hex(8)) -> None:
        self.idle = asyncio.Event()
        self.idle.set()
        self.in_flight = 0
        self.stopping = False
        self._max_request_bytes = max_request_bytes
        self._new_id = new_id
        # Tells whose a call is, by the values of the header: set where tokens are demanded.
        self.authenticate: Callable[[Call, Sequence[str]], Awaitable[Call]] | None = None
        # What else is told of each call: set by whoever counts or traces.
        self.calls: Calls | None = None
        self.tracing: Tracing | None = None

    async def on_start(self, ctx: Context) -> Begun:
        """Makes the Call of a request. Raises ConnectError for headers that name no caller, or one that has no good token."""
        headers = ctx.request_headers
        given = headers.get(REQUEST_ID, "")
        request_id = given if _SANE_ID.fullmatch(given) else self._new_id()
        ctx.response_headers[REQUEST_ID] = request_id
        left = ctx.timeout_ms
        deadline = time.monotonic() + left / 1000 if left is not None else None
        call = Call(ctx.method.name, door_of(headers), request_id, patience=Patience(deadline))
        begun = Begun(call, time.monotonic(), self.tracing.begin(call, ctx) if self.tracing else None)
        begin_to_count()
        self.in_flight += 1
        self.idle.clear()
        try:
            call = await self._by_whom(call, headers)
        except asyncio.CancelledError:
            self._not_begun(begun, ctx, ConnectError(Code.CANCELED, ""))
            raise
        except Exception as error:  # noqa: BLE001 # whatever it is becomes a code
            raise self._not_begun(begun, ctx, error) from None
        _current.set(call)
        return replace(begun, call=call)

    async def _by_whom(self, call: Call, headers: Headers) -> Call:
        """Returns a call with its caller; where tokens are demanded nothing else of it is looked at before its token."""
        if self.authenticate is not None:
            call = await self.authenticate(call, headers.getall(AUTHORIZATION))
        return call.naming(agent_id_of(headers))

    def _not_begun(self, begun: Begun, ctx: Context, error: Exception) -> ConnectError:
        """Ends a call whose caller is not known; returns what it is to see."""
        self._one_less()
        seen = self._seen(begun, ctx, error)
        if seen.code is Code.UNAUTHENTICATED and begun.call.door == "connect":
            ctx.response_headers["www-authenticate"] = "Bearer"
        self._tell(begun, ctx, seen.code.value, who="unknown")
        self._explain(begun, seen, error)
        return seen

    def _explain(self, begun: Begun, seen: ConnectError, error: Exception) -> None:
        if seen.code is Code.INTERNAL:
            log.error("unforeseen", request_id=begun.call.request_id, method=begun.call.method, **about(error))

    def _one_less(self) -> None:
        self.in_flight -= 1
        if not self.in_flight:
            self.idle.set()

    async def on_end(self, begun: Begun, ctx: Context, error: Exception | None) -> None:
        """Writes the line of the log. Raises the ConnectError that the caller is to see, if any."""
        self._one_less()
        if error is None:
            self._tell(begun, ctx, "ok")
            return
        seen = self._seen(begun, ctx, error)
        self._tell(begun, ctx, seen.code.value)
        self._explain(begun, seen, error)
        raise seen from None

    def _seen(self, begun: Begun, ctx: Context, error: Exception) -> ConnectError:
        left = ctx.timeout_ms
        if isinstance(error, Stopped) and left is not None and left <= 0:
            error = ConnectError(Code.DEADLINE_EXCEEDED, "")
        gone = isinstance(error, ConnectError) and error.code is Code.CANCELED
        if self.stopping and gone:
            error = Unavailable("the service stops: ask again")
        return translated(error, begun.call.request_id, self._max_request_bytes)

    def _tell(self, begun: Begun, ctx: Context, code: str, who: str = "") -> None:
        call, seconds = begun.call, time.monotonic() - begun.at
        log.info(
            "call",
            method=call.method,
            door=call.door,
            code=code,
            milliseconds=round(seconds * 1000, 2),
            request_id=call.request_id,
            # Never which agent: an id may be somebody's name, or the path of a folder.
            who=who or ("agent" if call.agent_id else "user"),
            **({"token": call.token_id} if call.token_id else {}),
            request_bytes=received(),
        )
        if self.calls is not None:
            self.calls.ended(call.method, call.door, code, seconds)
        if self.tracing is not None:
            self.tracing.end(begun.span, ctx, code)


def unwritable(error: Exception) -> ConnectError:
    """Returns the error for an answer that cannot be written, after its call has ended well; logs why."""
    call = current_call()
    log.error("unforeseen", request_id=call.request_id, method=call.method, **about(error))
    return unforeseen(call.request_id)


def door_of(headers: Headers) -> str:
    """Returns the name of the door that a request came through."""
    content_type = headers.get("content-type", "")
    if content_type.startswith("application/grpc-web"):
        return "grpc-web"
    return "grpc" if content_type.startswith("application/grpc") else "connect"


def agent_id_of(headers: Headers) -> str:
    """Returns the id of the agent that asks, empty for a user.

    Header values are ASCII in gRPC and in browsers, so the id is percent-decoded as UTF-8; a `%` that no two hex digits follow
    stands for itself. Raises InvalidArgument for two ids, for an empty one, for one that is no UTF-8 and for one over
    MAX_AGENT_ID_BYTES.
    """
    given = headers.getall(AGENT_ID)
    if not given:
        return ""
    if len(given) > 1:
        raise InvalidArgument(AGENT_ID, f"is given {len(given)} times")
    named = given[0].strip(" \t")  # blanks around a value are no part of it (RFC 9110, 5.5): those of an id come percent-encoded
    if not named:  # somebody's variable was not set: that must not make an agent the user, who may read everything
        raise InvalidArgument(AGENT_ID, "is empty: leave it out to ask as the user")
    raw = unquote_to_bytes(named)
    if len(raw) > MAX_AGENT_ID_BYTES:
        raise InvalidArgument(AGENT_ID, f"{len(raw)} bytes, at most {MAX_AGENT_ID_BYTES} are allowed")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidArgument(AGENT_ID, "is not UTF-8 after percent-decoding") from None


class Checked:
    """Checks the messages of every call by the rules of the proto."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    async def intercept_unary(self, call_next: Callable[[Req, Context], Awaitable[Res]], request: Req, ctx: Context) -> Res:
        """Checks the request."""
        self._rules.check(request)
        return await call_next(request, ctx)

    async def intercept_client_stream(
        self, call_next: Callable[[AsyncIterator[Req], Context], Awaitable[Res]], request: AsyncIterator[Req], ctx: Context
    ) -> Res:
        """Checks each request when it comes."""

        async def checked() -> AsyncIterator[Req]:
            async for message in request:
                self._rules.check(message)
                yield message
                # Lets others run between two messages of a stream that is all there.
                await asyncio.sleep(0)

        return await call_next(checked(), ctx)
