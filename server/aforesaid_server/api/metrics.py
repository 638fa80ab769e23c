"""What the service tells Prometheus of itself, on a port of its own: calls, the index, what lies on the disk, the audit log.

Calls are counted when they end. All else is looked at when it is asked for, in memory and by the sizes of files: a scrape asks the
store nothing and waits for nobody. Labels are names of methods, doors and codes, never what a caller sent.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import version
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    make_wsgi_app,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from aforesaid_server.api.figures import Figures
from aforesaid_server.api.log import about

# A search of one word takes a few milliseconds, a question over a large index a good part of a second.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# A scraper that sends nothing is let go.
SCRAPER_SECONDS = 10.0
# How soon the port closes once it is told to.
_POLL_SECONDS = 0.1

log = structlog.get_logger("aforesaid.metrics")


class Calls:
    """Counts the calls that have ended, and how long they took."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "aforesaid_calls_total",
            "Calls that have ended, by their code: ok, or that of the error.",
            ("method", "door", "code"),
            registry=registry,
        )
        self._seconds = Histogram(
            "aforesaid_call_duration_seconds",
            "How long calls took, from their headers to their answer, which is not yet written.",
            ("method", "door"),
            registry=registry,
            buckets=BUCKETS,
        )
        # `labels` takes a lock and makes strings: 2 of the 4 microseconds of a call.
        self._known: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}

    def ended(self, method: str, door: str, code: str, seconds: float) -> None:
        """Counts one call."""
        known = self._known.get((method, door, code))
        if known is None:
            known = self._ended.labels(method, door, code), self._seconds.labels(method, door)
            self._known[method, door, code] = known
        known[0].inc()
        known[1].observe(seconds)


class Standing(Collector):
    """Looks at the core when it is asked. Leaves out what is not known, and everything where the look itself fails."""

    def __init__(self, look: Callable[[], Figures]) -> None:
        self._look = look

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yields the figures of now."""
        try:
            now = self._look()
        except Exception as error:  # noqa: BLE001 # the rest of the scrape goes out
            log.error("figures not to be had", **about(error))  # noqa: TRY400 # the error may hold text
            return
        for name, told, value in _gauges(now):
            if value is not None:
                yield GaugeMetricFamily(name, told, value)
        yield CounterMetricFamily(
            "aforesaid_audit_failures_total", "Records of the audit log that could not be written.", now.audit_failures
        )


def _gauges(now: Figures) -> Iterator[tuple[str, str, float | None]]:
    yield "aforesaid_index_ready", "Whether searches are answered: 1, or 0 while the index is opened or built.", now.ready
    yield (
        "aforesaid_index_build_ratio",
        "The share of the store's changes that an index that is opened or built holds; 1 once searches are answered.",
        now.built,
    )
    yield (
        "aforesaid_index_behind_changes",
        "Changes of the store that the index does not hold yet; searches find those of writes all the same.",
        now.changes_behind,
    )
    yield (
        "aforesaid_index_behind_seconds",
        "How long the oldest of these changes has waited since this process made it or learnt of it, up to a second too long.",
        now.seconds_behind,
    )
    yield "aforesaid_index_documents", "Turns in the index, each counted once however many documents it is.", now.documents
    yield "aforesaid_index_words", "Entries of the vocabulary of distinct words.", now.words
    yield "aforesaid_index_size_bytes", "Size of the index's files, one that is being built included.", now.index_bytes
    yield "aforesaid_store_size_bytes", "Size of the store's files, where it lies in the data folder.", now.store_bytes
    yield "aforesaid_audit_records", "Records of the audit log, as far as this process knows.", now.audit_records


def new_registry(in_flight: Callable[[], int], look: Callable[[], Figures]) -> tuple[CollectorRegistry, Calls]:
    """Returns everything that is told, and what counts the calls in it."""
    disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which Prometheus does not want in this format
    registry = CollectorRegistry()
    Info("aforesaid_build", "The version that runs.", registry=registry).info({"version": version("aforesaid")})
    calls = Calls(registry)
    Gauge("aforesaid_calls_in_flight", "Calls that have begun and not ended.", registry=registry).set_function(in_flight)
    registry.register(Standing(look))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry, calls


class _Scrape(WSGIRequestHandler):
    """One request for the metrics."""

    timeout = SCRAPER_SECONDS

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""


class _Scraped(ThreadingMixIn, WSGIServer):
    """One thread a scrape, so that one that hangs holds up no other."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, family: socket.AddressFamily, address: tuple[str, int], registry: CollectorRegistry) -> None:
        self.address_family = family
        super().__init__(address, _Scrape)
        self.set_app(make_wsgi_app(registry))

    def server_bind(self) -> None:
        """Takes the port, without asking for the name of its host as WSGIServer does, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def handle_error(self, *_: Any) -> None:
        """Logs why an answer could not be given."""
        error = sys.exc_info()[1]
        log.warning("scrape broken off", **(about(error) if error else {}))


class MetricsPort:
    """The port of metrics, open until `close`. Raises OSError where it cannot be opened."""

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        self._server = _Scraped(family, (str(address[0]), port), registry)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Closes the port; answers on their way may be cut off."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
