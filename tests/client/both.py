"""One suite for both clients: what AsyncClient does is waited for, so that a test calls it as it calls Client.

`Script` is a service that answers as a test says; `doors` leads to it without a network, for either client.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import wraps
from types import TracebackType
from typing import Any, Protocol, Self, cast

from connectrpc.request import RequestContext
from pyqwest import Request, Response, SyncRequest, SyncResponse
from pyqwest.testing import ASGITransport, WSGITransport

from aforesaid import AsyncClient, Client
from aforesaid._retries import Retries
from aforesaid._wire import AsyncWire, Wire
from aforesaid.agent.v1.agent_service_connect import (
    AgentService,
    AgentServiceASGIApplication,
    AgentServiceSync,
    AgentServiceWSGIApplication,
)
from aforesaid.agent.v1.audit_service_connect import (
    AuditService,
    AuditServiceASGIApplication,
    AuditServiceSync,
    AuditServiceWSGIApplication,
)
from aforesaid.agent.v1.conversation_service_connect import (
    ConversationService,
    ConversationServiceASGIApplication,
    ConversationServiceSync,
    ConversationServiceWSGIApplication,
)

LOCAL = "http://127.0.0.1:8787"
END = object()


class Waited:
    """An AsyncClient with the methods of a Client: each call runs the loop until it is answered."""

    def __init__(self, client: AsyncClient, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._client, name)
        return self._waiting(value) if callable(value) else value

    def __repr__(self) -> str:
        return repr(self._client)

    def __enter__(self) -> Self:
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._runner.run(self._client.__aexit__(kind, error, trace))

    def close(self) -> None:
        self._runner.run(self._client.aclose())

    def _waiting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            answer = method(*args, **kwargs)
            if isinstance(answer, Coroutine):
                return self._runner.run(answer)
            return self._taken(answer)

        return call

    def _taken(self, entries: AsyncIterator[Any]) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(entries, END)

        while (entry := self._runner.run(following())) is not END:
            yield entry


class Script:
    """Answers each method with what its function in `answers` returns; keeps requests and headers."""

    def __init__(self, **answers: Callable[[Any], Any]) -> None:
        self.answers = answers
        self.requests: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.timeouts: list[float | None] = []

    def heard(self, name: str, request: Any, context: RequestContext[Any, Any]) -> Any:
        self.requests.append(request)
        self.headers.append(dict(context.request_headers.allitems()))
        self.timeouts.append(context.timeout_ms)
        return self.answers[name](request)


class BlockingService(AgentServiceSync, ConversationServiceSync, AuditServiceSync):
    """A script as a service of threads."""

    def __init__(self, script: Script) -> None:
        for name in script.answers:
            setattr(self, name, self._answering(script, name))

    def _answering(self, script: Script, name: str) -> Callable[..., Any]:
        def answer(request: Any, context: RequestContext[Any, Any]) -> Any:
            return script.heard(name, list(request) if isinstance(request, Iterator) else request, context)

        return answer


class AwaitedService(AgentService, ConversationService, AuditService):
    """A script as a service of asyncio."""

    def __init__(self, script: Script) -> None:
        for name in script.answers:
            setattr(self, name, self._answering(script, name))

    def _answering(self, script: Script, name: str) -> Callable[..., Any]:
        async def answer(request: Any, context: RequestContext[Any, Any]) -> Any:
            if isinstance(request, AsyncIterator):
                request = [message async for message in request]
            return script.heard(name, request, context)

        return answer


class BlockingDoors:
    """Leads each request of a Client to the application of its service, and keeps it."""

    def __init__(self, script: Script) -> None:
        service = BlockingService(script)
        applications = (
            AgentServiceWSGIApplication(service),
            ConversationServiceWSGIApplication(service),
            AuditServiceWSGIApplication(service),
        )
        self.doors = {application.path: WSGITransport(application) for application in applications}
        self.requests: list[SyncRequest] = []

    def execute_sync(self, request: SyncRequest) -> SyncResponse:
        self.requests.append(request)
        return self.doors["/" + request.url.split("/")[-2]].execute_sync(request)


class AwaitedDoors:
    """Leads each request of an AsyncClient to the application of its service, and keeps it."""

    def __init__(self, script: Script) -> None:
        service = AwaitedService(script)
        applications = (
            AgentServiceASGIApplication(service),
            ConversationServiceASGIApplication(service),
            AuditServiceASGIApplication(service),
        )
        self.doors = {application.path: ASGITransport(application) for application in applications}
        self.requests: list[Request] = []

    async def execute(self, request: Request) -> Response:
        self.requests.append(request)
        return await self.doors["/" + request.url.split("/")[-2]].execute(request)


@dataclass(slots=True)
class Time:
    """Stands in for clock, sleep and chance: nothing waits, and what was waited for is kept."""

    now: float = 1000.0
    chance: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def random(self) -> float:
        return self.chance

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def awaited_sleep(self, seconds: float) -> None:
        self.sleep(seconds)


class Connect(Protocol):
    """Makes a client of one of the two kinds."""

    def __call__(self, url: str | None = None, agent_id: str | None = None, **settings: Any) -> Client: ...


class Calling(Protocol):
    """Makes a client that calls a script; `doors` gets what leads there."""

    def __call__(self, script: Script, time: Time | None = None, **settings: Any) -> Client: ...


def blocking(url: str | None, agent_id: str | None, **settings: Any) -> Client:
    return Client(url, agent_id, **settings)


def blocking_calling(script: Script, time: Time | None, url: str, agent_id: str, **settings: Any) -> Client:
    doors = BlockingDoors(script)
    client = Client(url, agent_id, transport=doors, **settings)
    if time is not None:
        retries = Retries(client.config.retries, time.clock, time.random)
        client.wire = Wire(client.config, doors, retries=retries, sleep=time.sleep)
    client.doors = doors  # type: ignore[attr-defined]
    return client


def awaited_calling(runner: asyncio.Runner, script: Script, time: Time | None, url: str, agent_id: str, **settings: Any) -> Client:
    doors = AwaitedDoors(script)
    client = AsyncClient(url, agent_id, transport=doors, **settings)
    if time is not None:
        retries = Retries(client.config.retries, time.clock, time.random)
        client.wire = AsyncWire(client.config, doors, retries=retries, sleep=time.awaited_sleep)
    client.doors = doors  # type: ignore[attr-defined]
    return cast("Client", Waited(client, runner))


def sent(client: Client) -> list[Any]:
    """The HTTP requests that a client of a script has sent."""
    requests: list[Any] = client.doors.requests  # type: ignore[attr-defined]
    return requests
