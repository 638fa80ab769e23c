"""Spans for OpenTelemetry: one a call, as its caller sees it, and one for each thing that the core asks of its parts meanwhile.

Needs the extra `[otel]`; loaded only where tracing is on (without an SDK a span would still be 17 % of a bare request). A call that
brings `traceparent` goes on with that trace. What is sent where is said by OpenTelemetry's own variables (`OTEL_*`). No span holds
text, ids of agents, or the message of an error.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TypeAlias, TypeVar, cast

import structlog
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext
from connectrpc_otel import OpenTelemetryInterceptor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer, get_current_span

from aforesaid_server.access import Call
from aforesaid_server.index.live import MergedLists

T = TypeVar("T")
Context: TypeAlias = RequestContext[Any, Any]

# A collector that does not answer keeps the service from stopping no longer than this.
LAST_SPANS_SECONDS = 2.0
_PROTOCOLS = ("", "http/protobuf")

log = structlog.get_logger("aforesaid.tracing")


class TracingError(Exception):
    """What the environment says of traces cannot be done."""


class Tracing:
    """Makes the spans."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        # Metrics go to Prometheus.
        self._calls = OpenTelemetryInterceptor(tracer_provider=provider, meter_provider=NoOpMeterProvider())
        self._steps = provider.get_tracer("aforesaid", version("aforesaid"))

    def begin(self, call: Call, ctx: Context) -> Any:
        """Begins the span of a call, in this task; what it returns goes to `end`."""
        span = self._calls.on_start_sync(ctx)
        get_current_span().set_attributes({"aforesaid.request_id": call.request_id, "aforesaid.door": call.door})
        return span

    def end(self, span: Any, ctx: Context, code: str) -> None:
        """Ends the span of a call, in the same task, with the code that the caller sees."""
        # Another error than the one that is seen: its message may name an id, and the library writes messages down.
        self._calls.on_end_sync(span, ctx, None if code == "ok" else ConnectError(Code(code), code))

    def steps(self, name: str, part: T) -> T:
        """Returns a part of the core that makes a span of each of its methods, while a call is traced."""
        return cast("T", _Steps(name, part, self._steps))

    def close(self) -> None:
        """Sends what is left, if that is soon done."""
        # The library waits for a collector as long as it likes: half a minute.
        sending = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        sending.start()
        sending.join(LAST_SPANS_SECONDS)
        if sending.is_alive():
            log.warning("the last spans could not be sent in time", seconds=LAST_SPANS_SECONDS)


class _Steps:
    """Stands before a part of the core. Only what is called through it is seen, not what the part calls of itself."""

    def __init__(self, name: str, part: Any, tracer: Tracer) -> None:
        self._name, self._part, self._tracer = name, part, tracer

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._part, attribute)
        if not callable(found):
            return found
        step = self._step(f"{self._name}.{attribute}", found)
        self.__dict__[attribute] = step
        return step

    def _step(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            if not get_current_span().is_recording():
                return function(*arguments, **named)
            with self._tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False):
                found = function(*arguments, **named)
            return _Steps(self._name, found, self._tracer) if isinstance(found, MergedLists) else found

        return step


def open_tracing() -> Tracing:
    """Returns what sends spans by OTLP over HTTP, as the environment says. Raises TracingError."""
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
    if protocol not in _PROTOCOLS:
        raise TracingError(f"OTEL_EXPORTER_OTLP_PROTOCOL {protocol} is not served: traces are sent as http/protobuf")
    resource = Resource.create({"service.version": version("aforesaid")})
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "aforesaid"}))
    try:
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ValueError as error:
        raise TracingError(f"a variable of OpenTelemetry (OTEL_*) cannot be read: {error}") from error
    return Tracing(provider)
