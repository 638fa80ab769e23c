"""Whether the service is alive and can answer, for probes and balancers: /healthz and /readyz over HTTP, grpc.health.v1 over gRPC.

Alive means that the process answers. Ready means that searches can be answered: not while an index is being built, and not once
the service has been told to stop. Every service is as ready as the whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext

from aforesaid.agent.v1.agent_service_connect import AgentService
from aforesaid.agent.v1.audit_service_connect import AuditService
from aforesaid.agent.v1.conversation_service_connect import ConversationService
from aforesaid_server.api.wire.grpc.health.v1.health_connect import Health as HealthService
from aforesaid_server.api.wire.grpc.health.v1.health_pb import (
    HealthCheckRequest,
    HealthCheckResponse,
    HealthListRequest,
    HealthListResponse,
)

Context: TypeAlias = RequestContext[Any, Any]
Status = HealthCheckResponse.ServingStatus

SERVICES = ("", *(service.desc().type_name for service in (AgentService, ConversationService, AuditService)))
# A watcher learns of a change after this many seconds at the latest.
WATCH_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether searches can be answered; if not, why, and how much of what is to be done is done."""

    ready: bool
    reason: str = ""
    done: int = 0
    total: int = 0

    def as_json(self) -> dict[str, object]:
        """Returns what /readyz says."""
        told: dict[str, object] = {"ready": self.ready}
        if self.reason:
            told["reason"] = self.reason
        if self.total:
            told |= {"done": self.done, "total": self.total}
        return told


class Health(HealthService):
    """Tells of readiness. `look` must be cheap: it is asked in the event loop."""

    def __init__(self, look: Callable[[], Readiness]) -> None:
        self._look = look
        self._stopped = asyncio.Event()

    @property
    def readiness(self) -> Readiness:
        """Whether searches can be answered now."""
        return Readiness(False, "the service stops") if self._stopped.is_set() else self._look()

    def stop(self) -> None:
        """Says from here on that nothing can be answered; watchers are told and let go."""
        self._stopped.set()

    async def check(self, request: HealthCheckRequest, _: Context) -> HealthCheckResponse:
        """Answers for one service."""
        if request.service not in SERVICES:
            raise ConnectError(Code.NOT_FOUND, "service: no such service")
        return HealthCheckResponse(status=self._status())

    async def watch(self, request: HealthCheckRequest, _: Context) -> AsyncIterator[HealthCheckResponse]:
        """Answers at once and at every change."""
        known, told = request.service in SERVICES, None
        while True:
            stopped = self._stopped.is_set()
            status = self._status() if known else Status.SERVICE_UNKNOWN
            if status is not told:
                yield HealthCheckResponse(status=status)
                told = status
            if stopped:
                return
            try:
                await asyncio.wait_for(self._stopped.wait(), WATCH_SECONDS)
            except TimeoutError:
                continue

    async def list(self, _: HealthListRequest, __: Context) -> HealthListResponse:
        """Answers for all services."""
        status = self._status()
        return HealthListResponse(statuses={service: HealthCheckResponse(status=status) for service in SERVICES})

    def _status(self) -> HealthCheckResponse.ServingStatus:
        return Status.SERVING if self.readiness.ready else Status.NOT_SERVING
