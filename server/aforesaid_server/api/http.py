"""The HTTP port: Connect, gRPC-Web, /healthz and /readyz, behind the rules for Host and Origin.

In local mode whoever reaches the port may read everything, so no page in a browser may reach it: Host must be a loopback name (a
page may point its own name at 127.0.0.1), and an Origin header is served only if it is the service's own or a setting names it.
Where tokens are demanded a name that points here gives a page nothing, since browsers send no token by themselves: any Host is
served, or those that a setting names; Origin is looked at all the same.
Pure ASGI, since other middleware drops trailers.
What is refused before a method is known is answered in Connect's JSON form with an HTTP status of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from connectrpc.code import Code
from connectrpc.compression.gzip import GzipCompression
from connectrpc.errors import ConnectError
from connectrpc.server import ConnectASGIApplication
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from aforesaid.agent.v1.agent_service_connect import AgentService, AgentServiceASGIApplication
from aforesaid.agent.v1.audit_service_connect import AuditService, AuditServiceASGIApplication
from aforesaid.agent.v1.conversation_service_connect import ConversationService, ConversationServiceASGIApplication
from aforesaid_server.api.codecs import BinaryCodec, JsonCodec
from aforesaid_server.api.health import Health
from aforesaid_server.api.intake import Body, Intake
from aforesaid_server.api.interceptors import AGENT_ID, AUTHORIZATION, REQUEST_ID, Checked, Frame
from aforesaid_server.errors import Unavailable
from aforesaid_server.settings import is_loopback

HeaderList: TypeAlias = list[tuple[bytes, bytes]]

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\s:@/\[\]]+)(?::[0-9]{1,5})?")
_MILLISECONDS = re.compile(r"[0-9]{1,10}")

PROBES = ("/healthz", "/readyz")
UNARY_TYPES = ("application/json", "application/proto")
STREAM_TYPES = ("application/connect+json", "application/connect+proto")
WEB_TYPES = ("application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json")

BROWSER_MAY_SEND = (
    *("content-type", "connect-protocol-version", "connect-timeout-ms", "x-grpc-web", "grpc-timeout", "x-user-agent"),
    *(AGENT_ID, REQUEST_ID, AUTHORIZATION),
)
BROWSER_MAY_READ = ("grpc-status", "grpc-message", "grpc-status-details-bin", REQUEST_ID)


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which Host and Origin headers are served. `hosts` are names without a port, none for all; they count with tokens alone."""

    tokens: bool = False
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    def host(self, host: str) -> bool:
        """Tells whether a Host header, with or without a port, is served."""
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match["name"].lower().rstrip(".")
        return is_loopback(name) or (self.tokens and (not self.hosts or name in {one.lower() for one in self.hosts}))


def http_app(
    services: tuple[AgentService, ConversationService, AuditService],
    frame: Frame,
    checked: Checked,
    health: Health,
    intake: Intake,
    *,
    max_request_bytes: int,
    allowed: Allowed,
) -> ASGIApp:
    """Builds everything that the HTTP port serves."""
    agents, conversations, audits = services
    shared: dict[str, Any] = {
        "interceptors": (frame, checked),
        "read_max_bytes": max_request_bytes,
        "codecs": (JsonCodec(), BinaryCodec()),
        "compressions": (OneGzip(),),
    }
    paths: dict[str, Served] = {}
    for application, desc in (
        (AgentServiceASGIApplication(agents, **shared), AgentService.desc()),
        (ConversationServiceASGIApplication(conversations, **shared), ConversationService.desc()),
        (AuditServiceASGIApplication(audits, **shared), AuditService.desc()),
    ):
        for method in desc.methods:
            single = method.method_kind in {"unary", "server_streaming"}
            kinds = UNARY_TYPES if method.method_kind == "unary" else STREAM_TYPES
            paths[f"/{desc.type_name}/{method.name}"] = Served(_asgi(application), (*kinds, *WEB_TYPES), single)
    app: ASGIApp = Paths(paths, health, intake)
    if allowed.origins:
        app = CORSMiddleware(
            app,
            allow_origins=sorted(allowed.origins),
            allow_methods=("POST",),
            allow_headers=BROWSER_MAY_SEND,
            expose_headers=BROWSER_MAY_READ,
        )
    return Guard(app, allowed)


def _asgi(application: ConnectASGIApplication[Any]) -> ASGIApp:
    """Returns a connectrpc application as Starlette types it; both are ASGI."""
    app: Any = application
    return app  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Served:
    """What serves a path, the content types that it takes, and whether a request is one message."""

    app: ASGIApp
    content_types: tuple[str, ...]
    single: bool


class OneGzip(GzipCompression):
    """gzip of one member, as every client sends it: of many, each would copy all that follow, 1.6 million of them in 32 MiB."""

    def decompress(self, data: bytes | bytearray | memoryview, read_max_bytes: int | None = None) -> bytes:
        """Returns what was compressed. Raises ConnectError; ValueError and zlib.error, which the library knows, for no gzip."""
        inflating = zlib.decompressobj(wbits=31)
        found = inflating.decompress(data, 0 if read_max_bytes is None else read_max_bytes + 1)
        if read_max_bytes is not None and len(found) > read_max_bytes:
            raise ConnectError(Code.RESOURCE_EXHAUSTED, "")
        if not inflating.eof:
            raise ValueError("gzip data ends before its end")
        if inflating.unused_data:
            raise ValueError("more than one gzip member")
        return found


class Guard:
    """Refuses what a page in a browser may not send, and headers that are no text."""

    def __init__(self, app: ASGIApp, allowed: Allowed) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves or refuses one request."""
        if scope["type"] != "http":
            return
        problem = self._problem(scope)
        if problem is None:
            # Calls are cancelled at the end of the service and have told their callers: no error that uvicorn would log.
            with contextlib.suppress(asyncio.CancelledError):
                await self._app(scope, receive, send)
        else:
            status, code, message = problem
            await answer(send, status, refusal(code, message), head=scope["method"] == "HEAD")

    def _problem(self, scope: Scope) -> tuple[int, str, str] | None:
        headers: HeaderList = scope["headers"]
        for name, value in headers:
            try:
                value.decode()
            except UnicodeDecodeError:
                return 400, "invalid_argument", f"{name.decode('ascii', 'replace')}: is not UTF-8"
        hosts, origins = _values(headers, b"host"), _values(headers, b"origin")
        # A probe asks by the address that it found; it learns nothing but whether the service lives.
        probed = self._allowed.tokens and scope["path"] in PROBES
        if len(hosts) != 1 or not (probed or self._allowed.host(hosts[0])):
            return 403, "permission_denied", f"host: is not {'served here' if self._allowed.tokens else 'a loopback name'}"
        own = f"{scope['scheme']}://{hosts[0]}"
        if any(origin not in {own, *self._allowed.origins} for origin in origins):
            return 403, "permission_denied", "origin: is not allowed here"
        return None


def _values(headers: HeaderList, name: bytes) -> list[str]:
    return [value.decode() for key, value in headers if key == name]


class Paths:
    """Finds what serves a path, and refuses a method or a content type that it does not serve."""

    def __init__(self, paths: Mapping[str, Served], health: Health, intake: Intake) -> None:
        self._paths = paths
        self._health = health
        self._intake = intake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        path, method = scope["path"], scope["method"]
        if path in PROBES:
            await self._probed(path, method, send)
            return
        served = self._paths.get(path)
        if served is None:
            await answer(send, 404, refusal("unimplemented", "there is no such path"), head=method == "HEAD")
            return
        if method != "POST":
            # A query in a URL would stand in logs and histories.
            more = [(b"allow", b"POST")]
            await answer(send, 405, refusal("unimplemented", "method: only POST is served"), more, head=method == "HEAD")
            return
        problem = _content_type_problem(scope["headers"], served.content_types)
        if problem is not None:
            served_types = [(b"accept-post", ", ".join(served.content_types).encode())]
            await answer(send, 415, refusal("unimplemented", problem), served_types)
            return
        timeouts = _values(scope["headers"], b"connect-timeout-ms")
        if any(not _MILLISECONDS.fullmatch(timeout) for timeout in timeouts):
            await answer(send, 400, refusal("invalid_argument", "connect-timeout-ms: is not a number of up to ten digits"))
            return
        await self._called(served, scope, receive, send)

    async def _called(self, served: Served, scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self._intake.call())
            except Unavailable as error:
                await answer(send, 503, refusal(error.code.value, error.message))
                return
            body = Body(self._intake, receive, single=served.single)
            stack.callback(body.close)
            await served.app(scope, body, send)

    async def _probed(self, path: str, method: str, send: Send) -> None:
        if method not in {"GET", "HEAD"}:
            await answer(send, 405, refusal("unimplemented", "method: only GET is served"), [(b"allow", b"GET, HEAD")])
            return
        readiness = self._health.readiness
        status = 503 if path == "/readyz" and not readiness.ready else 200
        await answer(send, status, {"alive": True} if path == "/healthz" else readiness.as_json(), head=method == "HEAD")


def _content_type_problem(headers: HeaderList, served: Sequence[str]) -> str | None:
    given = _values(headers, b"content-type")
    content_type = given[0].partition(";")[0].strip().lower() if given else ""
    if content_type in served:
        return None
    if content_type.startswith("application/grpc") and not content_type.startswith("application/grpc-web"):
        return "content-type: gRPC is served on the other port"
    return f"content-type: is none of {', '.join(served)}; add the header Content-Type: {served[0]}"


def refusal(code: str, message: str) -> dict[str, object]:
    """Returns an error in Connect's JSON form."""
    return {"code": code, "message": message}


async def answer(
    send: Send, status: int, body: Mapping[str, object], more: HeaderList | None = None, *, head: bool = False
) -> None:
    """Sends a JSON answer; to HEAD without its body."""
    content = json.dumps(body).encode() + b"\n"
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode()), *(more or [])]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else content})
