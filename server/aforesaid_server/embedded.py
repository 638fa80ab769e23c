"""The service in the caller's own process: the HTTP door without a port, for the client's TranscriptIndex.

`Service` stands in for the network: it takes requests as the client's transport sends them, and the same application answers that a
port would lead to. So rules, rights, errors and their words are the service's own. The application runs on an event loop in a
thread of its own, the core in its workers. Whoever calls is the user of this machine, as in local mode.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path
from urllib.parse import unquote, urlsplit

import structlog
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource
from pyqwest import Headers, SyncRequest, SyncResponse
from starlette.types import ASGIApp, Message, Scope

from aforesaid.agent.v1.agent_service_connect import AgentService
from aforesaid.agent.v1.audit_service_connect import AuditService
from aforesaid.agent.v1.conversation_service_connect import ConversationService
from aforesaid_server.api.connect import Agents, Audits, Conversations
from aforesaid_server.api.health import Health
from aforesaid_server.api.http import Allowed, http_app
from aforesaid_server.api.intake import Intake
from aforesaid_server.api.interceptors import Checked, Frame
from aforesaid_server.api.log import tell_plainly, without_messages
from aforesaid_server.api.rules import Rules
from aforesaid_server.api.translate import connect_error
from aforesaid_server.api.workers import Workers
from aforesaid_server.errors import AforesaidError, StartError
from aforesaid_server.folder import data_folder
from aforesaid_server.house import House, build_core
from aforesaid_server.settings import Settings

_POLL_SECONDS = 0.01
# An index that is built says how far it is; one that says nothing new for so long has failed.
_STUCK_SECONDS = 60.0
_LAST_WORDS_SECONDS = 20.0


def open_service(*, data: str | None = None, store: str = "", in_memory: bool = False, language: str = "english") -> Service:
    """Opens a data folder, or a database with a folder beside it, or neither; returns once searches are answered.

    A database without a folder has an index for this while, and not the secret of the deployment whose it is. Raises ConnectError,
    with the code and the words that a caller is to see.
    """
    _log_quietly()
    stack = contextlib.ExitStack()
    try:
        has_secret = in_memory or data is not None
        if data is None and not in_memory:
            data = stack.enter_context(tempfile.TemporaryDirectory(prefix="aforesaid-"))
        settings = _settings(data, store, language)
        if not in_memory:
            stack.enter_context(data_folder(settings.data))
        house = build_core(settings, in_memory=in_memory, has_secret=has_secret)
        stack.callback(house.close)
        _wait_until_ready(house)
        service = Service(settings, house, stack)
    except AforesaidError as error:
        raise connect_error(error) from None
    except StartError as error:
        raise ConnectError(Code.UNAVAILABLE, str(error)) from None
    finally:
        stack.close()
    return service


def _settings(data: str | None, store: str, language: str) -> Settings:
    """Returns the settings of the service: those given, defaults for all others, nothing of the environment."""
    given: dict[str, object] = {"language": language, "store": store} | ({} if data is None else {"data": Path(data).expanduser()})
    try:
        return _Given.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise ConnectError(Code.INVALID_ARGUMENT, f"{name}: {first['msg'].removeprefix('Value error, ')}") from None


class _Given(Settings):
    """Settings that are taken from nowhere but from what is given."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Leaves environment and files out."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


def _log_quietly() -> None:
    """Sends what the service tells to Python's own logging, unless the application says where structlog is to write."""
    if not structlog.is_configured():
        structlog.configure(
            processors=[
                structlog.stdlib.filter_by_level,
                without_messages,
                structlog.processors.KeyValueRenderer(key_order=["event"]),
            ],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
        )


def _wait_until_ready(house: House) -> None:
    """Waits while an index is opened or built. Raises StartError for one that does not come on."""
    seen, since = house.readiness(), time.monotonic()
    while not seen.ready:
        time.sleep(_POLL_SECONDS)
        now = house.readiness()
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > _STUCK_SECONDS:
            raise StartError(f"searches cannot be answered: {now.reason}")


class Service:
    """Answers requests of a client in this process. Blocks; for several threads. What was `opened` for it is closed with it."""

    def __init__(self, settings: Settings, house: House, opened: contextlib.ExitStack) -> None:
        self._workers = Workers()
        self._frame = Frame(settings.max_request_bytes)
        self._health = Health(house.readiness)
        self._app = self._application(settings, house)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(tell_plainly)
        self._thread = threading.Thread(target=self._loop.run_forever, name="aforesaid", daemon=True)
        self._closing = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        self._thread.start()
        self._opened = opened.pop_all()

    def _application(self, settings: Settings, house: House) -> ASGIApp:
        intake = Intake(settings.patience_seconds, settings.max_calls, settings.max_request_bytes)
        services = (
            Agents(house.core, self._workers),
            Conversations(house.core, self._workers, intake),
            Audits(house.core, self._workers),
        )
        descs = [service.desc() for service in (AgentService, ConversationService, AuditService)]
        checked = Checked(Rules([method.input.type for desc in descs for method in desc.methods]))
        return http_app(
            services,
            self._frame,
            checked,
            self._health,
            intake,
            max_request_bytes=settings.max_request_bytes,
            allowed=Allowed(),
        )

    def execute_sync(self, request: SyncRequest) -> SyncResponse:
        """Answers one request."""
        if os.getpid() != self._process:  # threads stay behind when a process forks: nobody would answer
            problem = f"was opened by process {self._process}, and cannot be used by one forked off it: open one there"
            raise ConnectError(Code.FAILED_PRECONDITION, f"index: {problem}")
        content = request.content
        exchange = Exchange(self._app, request, content if isinstance(content, bytes) else b"".join(content))
        with self._closing:
            if self._closed:
                raise RuntimeError("already closed transport")
            answering = asyncio.run_coroutine_threadsafe(exchange.run(), self._loop)
        try:
            return answering.result()
        except CancelledError:
            raise RuntimeError("already closed transport") from None
        except BaseException:
            # Somebody interrupts the thread that waits: the call is hung up on.
            answering.cancel()
            raise

    def close(self) -> None:
        """Takes no more calls, waits for those in flight, and closes what was opened. Does nothing in a forked process."""
        if os.getpid() != self._process:
            return
        with self._closing:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._workers.close()
        self._opened.close()

    async def _end(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._frame.idle.wait()
        self._frame.stopping = True
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class Exchange:
    """One request on its way through the application, and what comes back."""

    def __init__(self, app: ASGIApp, request: SyncRequest, body: bytes) -> None:
        self._app = app
        self._scope = _scope_of(request)
        self._body: bytes | None = body
        self._status = 500
        self._headers: list[tuple[str, str]] = []
        self._reply: list[bytes] = []

    async def run(self) -> SyncResponse:
        """Has the application answer."""
        await self._app(self._scope, self._receive, self._send)
        return SyncResponse(status=self._status, headers=Headers(self._headers), content=b"".join(self._reply))

    async def _receive(self) -> Message:
        if self._body is None:
            # All is sent, and who waits for the answer does not hang up before it comes: to hang up is to cancel this.
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [(name.decode(), value.decode()) for name, value in message.get("headers", ())]
        elif message["type"] == "http.response.body":
            self._reply.append(message.get("body", b""))


def _scope_of(request: SyncRequest) -> Scope:
    url = urlsplit(request.url)
    headers = {name.lower(): value for name, value in request.headers.items()}
    headers.setdefault("host", url.netloc)
    headers.pop("accept-encoding", None)  # between two ends in one process
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": unquote(url.path),
        "raw_path": url.path.encode(),
        "query_string": url.query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "server": ("localhost", 0),
        "client": ("localhost", 0),
        "extensions": {},
        "state": {},
    }
