"""Both ports, and that of metrics: opened, kept open, drained.

Draining takes no new call, says so in health, and lets those in flight go on for `drain_seconds`; a second signal cuts them off.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import structlog
import uvicorn
from grpc.aio import Server as GrpcServer

from aforesaid.agent.v1.agent_service_connect import AgentService
from aforesaid.agent.v1.audit_service_connect import AuditService
from aforesaid.agent.v1.conversation_service_connect import ConversationService
from aforesaid_server.api.connect import Agents, Audits, Conversations
from aforesaid_server.api.connection import connection
from aforesaid_server.api.files import FileTally
from aforesaid_server.api.grpc import grpc_server
from aforesaid_server.api.health import Health
from aforesaid_server.api.http import Allowed, http_app
from aforesaid_server.api.intake import Intake
from aforesaid_server.api.interceptors import Checked, Frame
from aforesaid_server.api.metrics import MetricsPort, new_registry
from aforesaid_server.api.rules import Rules
from aforesaid_server.api.tls import Tls, TlsError, open_tls
from aforesaid_server.api.workers import Workers
from aforesaid_server.errors import StartError
from aforesaid_server.house import House
from aforesaid_server.settings import Settings, is_loopback

# Answers that are on their way when the last call has ended.
LAST_BYTES_SECONDS = 0.25
# More than the end of a service takes.
NEVER_SECONDS = 3600
# For calls that were cut off, to say so.
LAST_WORDS_SECONDS = 1.0
# Longer than clients keep idle connections, so that none is closed while its next request is on the way.
KEEP_ALIVE_SECONDS = 120
# How soon after an index is there it is told that searches are answered.
READY_POLL_SECONDS = 0.1

log = structlog.get_logger("aforesaid")


def tls_of(settings: Settings) -> Tls | None:
    """Returns what the ports speak TLS with, None where they do not. Raises StartError."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    try:
        return open_tls(settings.tls_certificate, settings.tls_key)
    except TlsError as error:
        raise StartError(str(error)) from None


def listen(host: str, port: int, *, anywhere: bool = False) -> list[socket.socket]:
    """Opens a socket for each address of a host, all on one port; 0 takes a free one. Raises StartError, for an address that is not
    loopback too, unless it may be `anywhere`.
    """
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise StartError(f"host {host}: {error.strerror.lower() if error.strerror else 'unknown'}") from None
    sockets: list[socket.socket] = []
    for family, kind, protocol, _, address in dict.fromkeys(found):
        name = str(address[0])
        if not anywhere and not is_loopback(name):
            close_all(sockets)
            raise StartError(f"host {host} is {name}, which is not a loopback address: the service is for this machine only")
        # asyncio sends without delay only where the protocol is named: otherwise every answer waits 40 ms for an acknowledgement.
        opened = socket.socket(family, kind, protocol)
        try:
            if family is socket.AF_INET6:
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((name, port))
            opened.listen(1024)
        except OSError as error:
            opened.close()
            if family is socket.AF_INET6 and error.errno in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT} and len(found) > 1:
                continue
            close_all(sockets)
            raise StartError(f"port {port} of {host}: {os.strerror(error.errno or 0).lower()}") from None
        port = opened.getsockname()[1]
        sockets.append(opened)
    if not sockets:
        raise StartError(f"host {host}: no address of it can be used")
    return sockets


def close_all(sockets: Sequence[socket.socket]) -> None:
    """Closes sockets."""
    for one in sockets:
        one.close()


def listen_grpc(server: GrpcServer, host: str, port: int, tls: Tls | None) -> int:
    """Opens the gRPC port and returns its number. Raises StartError."""
    address = f"{in_url(host)}:{port}"
    try:
        return server.add_secure_port(address, tls.credentials) if tls is not None else server.add_insecure_port(address)
    except RuntimeError:
        raise StartError(f"gRPC port {port} of {host}: cannot be opened, it may be in use") from None


def in_url(host: str) -> str:
    """Returns a host as it stands before a port."""
    bare = host.strip("[]")
    return f"[{bare}]" if ":" in bare else bare


class HttpServer(uvicorn.Server):
    """uvicorn without its signal handlers, which would end the process before the rest is closed. `listening` is set once it is."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to take connections."""
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the whole."""
        yield


class Signals:
    """What asks for an end: the first in good order, the second at once."""

    def __init__(self) -> None:
        self.first, self.second = asyncio.Event(), asyncio.Event()

    def listen(self) -> None:
        """Takes SIGTERM and SIGINT from here on; for the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.come)

    def come(self) -> None:
        """Is one signal."""
        (self.second if self.first.is_set() else self.first).set()


class Doors:
    """Both ports, open from `__aenter__` to `__aexit__`, which drains them."""

    def __init__(self, settings: Settings, house: House, sockets: list[socket.socket], signals: Signals) -> None:
        self._settings, self._house, self._sockets, self._signals = settings, house, sockets, signals
        self._tls = tls = tls_of(settings)
        self._workers = Workers()
        self._health = Health(house.readiness)
        self._frame = Frame(settings.max_request_bytes)
        self._intake = Intake(settings.patience_seconds, settings.max_calls, settings.max_request_bytes)
        self._frame.tracing = house.tracing
        if settings.auth == "token":
            authenticate = house.authenticate
            assert authenticate is not None
            self._frame.authenticate = lambda call, given: self._workers.read(authenticate, call, given)
        services = (
            Agents(house.core, self._workers),
            Conversations(house.core, self._workers, self._intake),
            Audits(house.core, self._workers),
        )
        descs = [service.desc() for service in (AgentService, ConversationService, AuditService)]
        checked = Checked(Rules([method.input.type for desc in descs for method in desc.methods]))
        shared = (services, self._frame, checked, self._health, self._intake)
        self._new_grpc = partial(grpc_server, *shared, max_request_bytes=settings.max_request_bytes)
        self._grpc = self._new_grpc()
        allowed = Allowed(settings.auth == "token", settings.allowed_hosts, settings.allowed_origins)
        app = http_app(*shared, max_request_bytes=settings.max_request_bytes, allowed=allowed)
        self._http = HttpServer(
            uvicorn.Config(
                app,
                http=connection(settings.patience_seconds),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                ssl_context_factory=(lambda _, __: tls.context) if tls is not None else None,
            )
        )
        port = sockets[0].getsockname()[1]
        self.url = f"{'http' if tls is None else 'https'}://{in_url(settings.host)}:{port}"
        self.target = self.metrics_url = ""
        self._metrics: MetricsPort | None = None

    async def __aenter__(self) -> Self:
        """Opens both ports."""
        settings = self._settings
        try:
            self._open_metrics()
            grpc_port = listen_grpc(self._grpc, settings.host, settings.grpc_port, self._tls)
        except StartError:
            self._close_metrics()
            close_all(self._sockets)
            raise
        self.target = f"{in_url(settings.host)}:{grpc_port}"
        await self._grpc.start()
        self._keeping = asyncio.create_task(self._keep_grpc(grpc_port))
        self._serving = asyncio.create_task(self._http.serve(self._sockets))
        await self._http.listening.wait()
        log.info("serving", url=self.url, grpc=self.target, metrics=self.metrics_url or None, pid=os.getpid())
        return self

    async def _keep_grpc(self, port: int) -> None:
        """Opens the gRPC port anew when it falls: in grpcio 1.85 one path that is no UTF-8, from anybody, ends its server."""
        while True:
            with contextlib.suppress(UnicodeDecodeError):
                # With a limit, since to cancel this wait without one would end the server as well.
                if await self._grpc.wait_for_termination(NEVER_SECONDS):
                    continue
            if self._frame.stopping:
                return
            self._grpc = self._new_grpc()
            try:
                listen_grpc(self._grpc, self._settings.host, port, self._tls)
                await self._grpc.start()
                log.warning("gRPC port opened anew", port=port)
            except StartError:
                await asyncio.sleep(READY_POLL_SECONDS)

    def _open_metrics(self) -> None:
        host, port = self._settings.metrics_host, self._settings.metrics_port
        if port is None:
            return
        registry, self._frame.calls = new_registry(lambda: self._frame.in_flight, self._house.figures)
        try:
            self._metrics = MetricsPort(registry, host, port)
        except OSError as error:
            raise StartError(f"metrics port {port} of {host}: {(error.strerror or 'cannot be opened').lower()}") from None
        self.metrics_url = f"http://{in_url(host)}:{self._metrics.port}/metrics"

    def _close_metrics(self) -> None:
        if self._metrics is not None:
            self._metrics.close()

    async def __aexit__(self, *_: object) -> None:
        """Takes no new calls, lets those in flight end, and closes both ports."""
        log.info("draining", calls=self.calls, seconds=self._settings.drain_seconds)
        self._health.stop()
        self._frame.stopping = True
        self._intake.stop()
        self._http.should_exit = True
        self._keeping.cancel()
        hurry = asyncio.create_task(self._hurry())
        # `_hurry` alone cuts calls off: of two stops whose time is up at once, one ends the process with SIGSEGV in grpcio 1.85.
        patiently = self._settings.drain_seconds + NEVER_SECONDS
        ended = await asyncio.gather(self._grpc.stop(patiently), self._serving, return_exceptions=True)
        hurry.cancel()
        await asyncio.to_thread(self._workers.close)
        await asyncio.to_thread(self._close_metrics)
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome

    async def _hurry(self) -> None:
        """Cuts the waiting short: streams that are nobody's calls are not waited for, nor anything after `drain_seconds` or a
        second signal.
        """
        deadline = asyncio.get_running_loop().time() + self._settings.drain_seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                waits = [asyncio.ensure_future(event.wait()) for event in (self._frame.idle, self._signals.second)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if self._frame.idle.is_set():
            await self._grpc.stop(LAST_BYTES_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self._signals.second.wait()
        await self._grpc.stop(None)
        await self._cut_off()

    async def _cut_off(self) -> None:
        """Cancels what runs on the HTTP port, gives it a moment to say so, and closes the connections."""
        tasks = set(self._http.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_WORDS_SECONDS)
            await asyncio.sleep(LAST_BYTES_SECONDS)
        for one in list(self._http.server_state.connections):
            one.transport.abort()

    @property
    def calls(self) -> int:
        """How many calls are in flight."""
        return self._frame.in_flight

    def announce(self, ready_file: Path | None) -> None:
        """Tells where it serves: on standard output, and in the ready file."""
        metrics = f", metrics on {self.metrics_url}" if self.metrics_url else ""
        say(f"Connect and gRPC-Web on {self.url}, gRPC on {self.target}{metrics}. SIGTERM or Ctrl-C stops it.")
        if ready_file is not None:
            fresh = ready_file.with_name(f".{ready_file.name}.{os.getpid()}")
            doors = {"url": self.url, "grpc": self.target} | ({"metrics": self.metrics_url} if self.metrics_url else {})
            fresh.write_text(json.dumps(doors | {"pid": os.getpid()}), "utf-8")
            fresh.replace(ready_file)

    async def searchable(self) -> bool:
        """Waits until searches are answered; returns False if the service is told to stop before."""
        stop = self._signals.first
        while not self._health.readiness.ready:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), READY_POLL_SECONDS)
            if stop.is_set():
                return False
        return True

    def invite(self, tally: FileTally | None) -> None:
        """Says what to try, or that an import has taken nothing."""
        if tally is not None and tally.empty:
            say("Nothing was imported: --import named no transcripts that could be taken.")
            return
        body = json.dumps({"query": "test"})
        search = f"{self.url}/agent.v1.AgentService/SearchTranscripts"
        token = ' -H "Authorization: Bearer $AFORESAID_TOKEN"' if self._settings.auth == "token" else ""
        say(f"Try:\n  curl -s {search} -H 'Content-Type: application/json'{token} -d '{body}'")


def say(text: str) -> None:
    """Prints a line for whoever started the service."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
