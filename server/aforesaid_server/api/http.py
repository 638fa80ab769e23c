"""The HTTP port: Connect, gRPC-Web, /healthz and /readyz, behind the rules for Host and Origin.

In local mode whoever reaches the port may read everything, so no page in a browser may reach it: Host must be a loopback name (a
page may point its own name at 127.0.0.1), and an Origin header is served only if it is the service's own or a setting names it.
Pure ASGI, since other middleware drops trailers.
What is refused before a method is known is answered in Connect's JSON form with an HTTP status of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from connectrpc.server import ConnectASGIApplication
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from aforesaid.agent.v1.agent_service_connect import AgentService, AgentServiceASGIApplication
from aforesaid.agent.v1.audit_service_connect import AuditService, AuditServiceASGIApplication
from aforesaid.agent.v1.conversation_service_connect import ConversationService, ConversationServiceASGIApplication
from aforesaid_server.api.codecs import BinaryCodec, JsonCodec
from aforesaid_server.api.health import Health
from aforesaid_server.api.interceptors import AGENT_ID, REQUEST_ID, Checked, Frame
from aforesaid_server.settings import is_loopback

HeaderList: TypeAlias = list[tuple[bytes, bytes]]

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\s:@/\[\]]+)(?::[0-9]{1,5})?")
_MILLISECONDS = re.compile(r"[0-9]{1,10}")

UNARY_TYPES = ("application/json", "application/proto")
STREAM_TYPES = ("application/connect+json", "application/connect+proto")
WEB_TYPES = ("application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json")

BROWSER_MAY_SEND = (
    *("content-type", "connect-protocol-version", "connect-timeout-ms", "x-grpc-web", "grpc-timeout", "x-user-agent"),
    *(AGENT_ID, REQUEST_ID),
)
BROWSER_MAY_READ = ("grpc-status", "grpc-message", "grpc-status-details-bin", REQUEST_ID)


def http_app(
    services: tuple[AgentService, ConversationService, AuditService],
    frame: Frame,
    checked: Checked,
    health: Health,
    *,
    max_request_bytes: int,
    allowed_origins: frozenset[str],
) -> ASGIApp:
    """Builds everything that the HTTP port serves."""
    agents, conversations, audits = services
    shared: dict[str, Any] = {
        "interceptors": (frame, checked),
        "read_max_bytes": max_request_bytes,
        "codecs": (JsonCodec(), BinaryCodec()),
    }
    paths: dict[str, tuple[ASGIApp, tuple[str, ...]]] = {}
    for application, desc in (
        (AgentServiceASGIApplication(agents, **shared), AgentService.desc()),
        (ConversationServiceASGIApplication(conversations, **shared), ConversationService.desc()),
        (AuditServiceASGIApplication(audits, **shared), AuditService.desc()),
    ):
        for method in desc.methods:
            kinds = UNARY_TYPES if method.method_kind == "unary" else STREAM_TYPES
            paths[f"/{desc.type_name}/{method.name}"] = (_asgi(application), (*kinds, *WEB_TYPES))
    app: ASGIApp = Paths(paths, health)
    if allowed_origins:
        app = CORSMiddleware(
            app,
            allow_origins=sorted(allowed_origins),
            allow_methods=("POST",),
            allow_headers=BROWSER_MAY_SEND,
            expose_headers=BROWSER_MAY_READ,
        )
    return Guard(app, allowed_origins)


def _asgi(application: ConnectASGIApplication[Any]) -> ASGIApp:
    """Returns a connectrpc application as Starlette types it; both are ASGI."""
    app: Any = application
    return app  # type: ignore[no-any-return]


class Guard:
    """Refuses what a page in a browser may not send, and headers that are no text."""

    def __init__(self, app: ASGIApp, allowed_origins: frozenset[str]) -> None:
        self._app = app
        self._allowed_origins = allowed_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves or refuses one request."""
        if scope["type"] != "http":
            return
        problem = self._problem(scope["headers"])
        if problem is None:
            await self._app(scope, receive, send)
        else:
            status, code, message = problem
            await answer(send, status, refusal(code, message), head=scope["method"] == "HEAD")

    def _problem(self, headers: HeaderList) -> tuple[int, str, str] | None:
        for name, value in headers:
            try:
                value.decode()
            except UnicodeDecodeError:
                return 400, "invalid_argument", f"{name.decode('ascii', 'replace')}: is not UTF-8"
        hosts, origins = _values(headers, b"host"), _values(headers, b"origin")
        if len(hosts) != 1 or not is_local_host(hosts[0]):
            return 403, "permission_denied", "host: is not a loopback name"
        if any(origin != f"http://{hosts[0]}" and origin not in self._allowed_origins for origin in origins):
            return 403, "permission_denied", "origin: is not allowed here"
        return None


def is_local_host(host: str) -> bool:
    """Tells whether a Host header, with or without a port, names this machine alone."""
    match = _HOST.fullmatch(host)
    return match is not None and is_loopback(match["name"])


def _values(headers: HeaderList, name: bytes) -> list[str]:
    return [value.decode() for key, value in headers if key == name]


class Paths:
    """Finds what serves a path, and refuses a method or a content type that it does not serve."""

    def __init__(self, paths: Mapping[str, tuple[ASGIApp, tuple[str, ...]]], health: Health) -> None:
        self._paths = paths
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        path, method = scope["path"], scope["method"]
        if path in {"/healthz", "/readyz"}:
            await self._probed(path, method, send)
            return
        served = self._paths.get(path)
        if served is None:
            await answer(send, 404, refusal("unimplemented", "there is no such path"), head=method == "HEAD")
            return
        app, content_types = served
        if method != "POST":
            # A query in a URL would stand in logs and histories.
            more = [(b"allow", b"POST")]
            await answer(send, 405, refusal("unimplemented", "method: only POST is served"), more, head=method == "HEAD")
            return
        problem = _content_type_problem(scope["headers"], content_types)
        if problem is not None:
            served_types = [(b"accept-post", ", ".join(content_types).encode())]
            await answer(send, 415, refusal("unimplemented", problem), served_types)
            return
        timeouts = _values(scope["headers"], b"connect-timeout-ms")
        if any(not _MILLISECONDS.fullmatch(timeout) for timeout in timeouts):
            await answer(send, 400, refusal("invalid_argument", "connect-timeout-ms: is not a number of up to ten digits"))
            return
        await app(scope, receive, send)

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
