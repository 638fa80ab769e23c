"""The gRPC port: the same functions, frame and rules as behind Connect, on grpc.aio; with health and reflection.

A small adapter instead of generated stubs: the functions take connectrpc's context and raise its errors, so stubs would need all of
this and their own types besides. The adapter's work is what such adapters get wrong: metadata both ways, also on errors; details in
`grpc-status-details-bin`; deadlines, cancellation, sizes.

Not here: a rule for :authority. grpc.aio does not show it, and no page in a browser can speak HTTP/2 without TLS.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeAlias

import grpc
import grpc.aio
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.request import Headers, RequestContext
from connectrpc_grpcreflect import ServerReflectionAlphaService, ServerReflectionService
from protobuf import DescMethod, DescService, Message
from protobuf.wkt import Any as AnyMessage

from aforesaid.agent.v1.agent_service_connect import AgentService
from aforesaid.agent.v1.audit_service_connect import AuditService
from aforesaid.agent.v1.conversation_service_connect import ConversationService
from aforesaid_server.api.codecs import read_binary
from aforesaid_server.api.health import Health
from aforesaid_server.api.intake import Intake, count
from aforesaid_server.api.interceptors import Begun, Checked, Frame, log
from aforesaid_server.api.log import about
from aforesaid_server.api.translate import too_large, translated
from aforesaid_server.api.wire.google.rpc import error_details_pb
from aforesaid_server.api.wire.google.rpc.status_pb import Status
from aforesaid_server.errors import InvalidArgument

Context: TypeAlias = RequestContext[Any, Any]
Servicer: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_STREAM_TYPES: dict[str, StreamType] = {
    "unary": StreamType.UNARY,
    "client_streaming": StreamType.CLIENT_STREAM,
    "server_streaming": StreamType.SERVER_STREAM,
    "bidi_streaming": StreamType.BIDI_STREAM,
}
# Longer than clients keep idle connections.
IDLE_MILLISECONDS = 300_000
# More wait in the client for one of these to end; each may hold a reply that is not read.
MOST_CALLS_OF_A_CONNECTION = 100
_TYPES = "type.googleapis.com/"
_STATUS = {code.value: grpc.StatusCode[code.name if code is not Code.CANCELED else "CANCELLED"] for code in Code}


@dataclass(frozen=True, slots=True)
class Bound:
    """A method and the function behind it. `frame` is None for health and reflection, which are nobody's calls."""

    info: MethodInfo[Any, Any]
    function: Callable[..., Any]
    frame: Frame | None
    checked: Checked | None


def grpc_server(
    services: tuple[AgentService, ConversationService, AuditService],
    frame: Frame,
    checked: Checked,
    health: Health,
    intake: Intake,
    *,
    max_request_bytes: int,
) -> grpc.aio.Server:
    """Builds the server; ports are added by the caller."""
    described = [AgentService.desc(), ConversationService.desc(), AuditService.desc()]
    reflected = (*described, Health.desc(), error_details_pb.desc())
    plain = (Health.desc(), health), *_reflection(*reflected)
    bound = {
        **_bound(zip(described, services, strict=True), frame, checked),
        **_bound(plain, None, None),
    }
    options = (
        ("grpc.so_reuseport", 0),
        # Twice the limit, so that a message that is somewhat too large is refused in our own words; far larger ones in gRPC's.
        ("grpc.max_receive_message_length", 2 * max_request_bytes),
        ("grpc.max_send_message_length", -1),
        *_patience(intake.seconds),
    )
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((Adapter(bound, intake, max_request_bytes),))
    return server


def _patience(seconds: float) -> Iterable[tuple[str, int]]:
    """Returns the options that end a connection whose other end says nothing, be it stopped or gone. Clients open another."""
    half = max(1, round(seconds * 500))
    return (
        ("grpc.server_handshake_timeout_ms", 2 * half),
        ("grpc.max_connection_idle_ms", max(2 * half, IDLE_MILLISECONDS)),
        ("grpc.keepalive_time_ms", half),
        ("grpc.keepalive_timeout_ms", half),
        ("grpc.http2.ping_timeout_ms", half),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_concurrent_streams", MOST_CALLS_OF_A_CONNECTION),
    )


def _reflection(*described: Any) -> Iterable[tuple[DescService, object]]:
    """Returns both versions of reflection, as newer and older tools ask; it knows error_details, so that tools print details."""
    for service in (ServerReflectionService(*described), ServerReflectionAlphaService(*described)):
        yield service.desc(), service


def _bound(services: Iterable[tuple[DescService, object]], frame: Frame | None, checked: Checked | None) -> dict[str, Bound]:
    return {
        f"/{desc.type_name}/{method.name}": Bound(_info(desc, method), getattr(service, _python_name(method)), frame, checked)
        for desc, service in services
        for method in desc.methods
    }


def _info(desc: DescService, method: DescMethod) -> MethodInfo[Any, Any]:
    return MethodInfo(
        name=method.name,
        service_name=desc.type_name,
        input=method.input.type,
        output=method.output.type,
        idempotency_level=IdempotencyLevel.UNKNOWN,
        stream_type=_STREAM_TYPES[method.method_kind],
    )


def _python_name(method: DescMethod) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", method.name).lower()


class Adapter(grpc.GenericRpcHandler):
    """Hands calls to the bound functions: bytes in, bytes out, so that what cannot be read is refused in our own words.

    Every method is served as one that takes a stream: else grpc.aio waits without end, and before any of this, for the one message
    of a caller that hangs.
    """

    def __init__(self, bound: Mapping[str, Bound], intake: Intake, max_request_bytes: int) -> None:
        self._bound = bound
        self._intake = intake
        self._max_request_bytes = max_request_bytes

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Returns the handler of a method, None for one that does not exist."""
        bound = self._bound.get(handler_call_details.method)
        if bound is None:
            return None
        match bound.info.stream_type:
            case StreamType.UNARY:
                return grpc.stream_unary_rpc_method_handler(partial(self._unary, bound))
            case StreamType.CLIENT_STREAM:
                return grpc.stream_unary_rpc_method_handler(partial(self._client_stream, bound))
            case StreamType.SERVER_STREAM:
                return grpc.stream_stream_rpc_method_handler(partial(self._server_stream, bound))
            case StreamType.BIDI_STREAM:
                return grpc.stream_stream_rpc_method_handler(partial(self._bidi_stream, bound))

    async def _unary(self, bound: Bound, data: AsyncIterator[bytes], servicer: Servicer) -> bytes:
        async def work(ctx: Context) -> Message:
            async with aclosing(self._read_all(bound, data)) as requests:
                request = await _the_first(requests)
                reply: Message = await (
                    bound.checked.intercept_unary(bound.function, request, ctx) if bound.checked else bound.function(request, ctx)
                )
            return reply

        return await self._answered(bound, servicer, work)

    async def _client_stream(self, bound: Bound, data: AsyncIterator[bytes], servicer: Servicer) -> bytes:
        async def work(ctx: Context) -> Message:
            requests = self._read_all(bound, data)
            reply: Message = await (
                bound.checked.intercept_client_stream(bound.function, requests, ctx)
                if bound.checked
                else bound.function(requests, ctx)
            )
            return reply

        return await self._answered(bound, servicer, work)

    async def _server_stream(self, bound: Bound, data: AsyncIterator[bytes], servicer: Servicer) -> AsyncIterator[bytes]:
        ctx = context_of(bound.info, servicer)
        try:
            async with aclosing(self._read_all(bound, data)) as requests:
                request = await _the_first(requests)
            async for message in bound.function(request, ctx):
                yield message.to_binary()
        except Exception as error:  # noqa: BLE001 # whatever it is becomes a code
            await self._abort(servicer, ctx, self._plainly(bound, error))

    async def _bidi_stream(self, bound: Bound, data: AsyncIterator[bytes], servicer: Servicer) -> AsyncIterator[bytes]:
        ctx = context_of(bound.info, servicer)
        try:
            async for message in bound.function(self._read_all(bound, data), ctx):
                yield message.to_binary()
        except Exception as error:  # noqa: BLE001 # whatever it is becomes a code
            await self._abort(servicer, ctx, self._plainly(bound, error))

    def _read(self, bound: Bound, data: bytes) -> Message:
        if len(data) > self._max_request_bytes:
            raise too_large(self._max_request_bytes)
        return read_binary(bound.info.input, data)

    async def _read_all(self, bound: Bound, data: AsyncIterator[bytes]) -> AsyncGenerator[Message]:
        """Yields the messages of a call, each in time; while one is worked on, its bytes count."""
        intake = self._intake
        while True:
            try:
                one = await intake.wait(anext(data), intake.until())
            except StopAsyncIteration:
                return
            count(len(one))
            held = intake.take(len(one), 0)
            try:
                yield self._read(bound, one)
            finally:
                intake.give_back(held)

    async def _answered(self, bound: Bound, servicer: Servicer, work: Callable[[Context], Awaitable[Message]]) -> bytes:
        """Does the work of a call with one answer, within its deadline, and sends what goes with the answer."""
        ctx = context_of(bound.info, servicer)
        begun: Begun | None = None
        reply, error = b"", None
        limit = asyncio.timeout(_seconds_left(servicer))
        try:
            async with limit:
                with self._intake.call():
                    begun = await bound.frame.on_start(ctx) if bound.frame is not None else None
                    reply = (await work(ctx)).to_binary()
                self._hold_until_read(reply, servicer)
        except asyncio.CancelledError:
            await self._ended(bound, begun, ctx, ConnectError(Code.CANCELED, ""))
            raise
        except Exception as raised:  # noqa: BLE001 # whatever it is becomes a code
            error = ConnectError(Code.DEADLINE_EXCEEDED, "") if limit.expired() else raised
        seen = await self._ended(bound, begun, ctx, error)
        if seen is not None:
            await self._abort(servicer, ctx, seen)
        await servicer.send_initial_metadata(_metadata(ctx.response_headers))
        servicer.set_trailing_metadata(_metadata(ctx.response_trailers))
        return reply

    def _hold_until_read(self, reply: bytes, servicer: Servicer) -> None:
        """Counts a reply for as long as gRPC keeps it for its caller, which no time limit of ours can end."""
        held = self._intake.take(len(reply), 0)
        let_go: Any = lambda _: self._intake.give_back(held)  # noqa: E731 # the stubs want a class with a name for its argument
        servicer.add_done_callback(let_go)

    async def _ended(self, bound: Bound, begun: Begun | None, ctx: Context, error: Exception | None) -> ConnectError | None:
        """Ends the frame of a call, if it has begun; returns the error that the caller is to see."""
        if bound.frame is None or begun is None:
            return self._plainly(bound, error) if error is not None else None
        try:
            await bound.frame.on_end(begun, ctx, error)
        except ConnectError as seen:
            return seen
        return None

    def _plainly(self, bound: Bound, error: Exception) -> ConnectError:
        """Returns the error to see of a call without a frame."""
        seen = translated(error, "", self._max_request_bytes)
        if seen.code is Code.INTERNAL:
            log.error("unforeseen", method=bound.info.name, **about(error))
        return seen

    async def _abort(self, servicer: Servicer, ctx: Context, error: ConnectError) -> NoReturn:
        """Ends a call with an error. The request id stands in both metadata: after an error clients look at the trailing one."""
        headers = _metadata(ctx.response_headers)
        trailers = (*headers, *_metadata(ctx.response_trailers))
        status = _STATUS[error.code.value]
        if error.details:
            details = [AnyMessage(type_url=_TYPES + one.type_name, value=one.message_bytes) for one in error.details]
            packed = Status(code=status.value[0], message=error.message, details=details).to_binary()
            trailers = (*trailers, ("grpc-status-details-bin", packed))
        await servicer.send_initial_metadata(headers)
        await servicer.abort(status, error.message, trailers)
        raise AssertionError("abort raises")


async def _the_first(messages: AsyncIterator[Message]) -> Message:
    """Returns the message of a call that has but one. Raises InvalidArgument if there is none."""
    async for message in messages:
        return message
    raise InvalidArgument("request", "the call holds no message")


def context_of(info: MethodInfo[Any, Any], servicer: Servicer) -> Context:
    """Returns the context of a call as connectrpc would make it."""
    headers = Headers([("content-type", "application/grpc+proto")])
    for key, value in servicer.invocation_metadata() or ():
        headers.add(key, value if isinstance(value, str) else b64encode(value).decode().rstrip("="))
    left = _seconds_left(servicer)
    return RequestContext(
        method=info,
        http_method="POST",
        request_headers=headers,
        timeout_ms=round(left * 1000) if left is not None else None,
        client_address=servicer.peer(),
    )


def _seconds_left(servicer: Servicer) -> float | None:
    """Returns how long the caller waits; None, which the stubs leave out, if it has not said so."""
    return servicer.time_remaining()


def _metadata(headers: Headers) -> tuple[tuple[str, str | bytes], ...]:
    """Returns headers as gRPC's metadata, where binary values are bytes."""
    return tuple(
        (key, b64decode(value + "=" * (-len(value) % 4)) if key.endswith("-bin") else value) for key, value in headers.allitems()
    )
