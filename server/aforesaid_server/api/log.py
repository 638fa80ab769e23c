"""The service's log: one line of JSON an event, on standard error. What people or agents wrote never gets into it, nor their ids.

Errors are logged by type and place in the code, without their messages: a message may quote the text that it could not digest.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any

import structlog

# The last so many frames tell where; a recursion error has a thousand.
MAX_FRAMES = 40


def configure(level: str, log_format: str = "json") -> None:
    """Sends structlog and the libraries' logs to standard error, from this level on, as one of settings.LOG_FORMATS."""
    least = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        without_messages,
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(log_format)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(least)
    for library in ("uvicorn", "alembic"):
        # They tell at info of every start and stop, and so do we.
        logging.getLogger(library).setLevel(max(least, logging.WARNING))
    logging.getLogger("grpc._cython.cygrpc").addFilter(about_us)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _renderer(log_format: str) -> structlog.typing.Processor:
    if log_format == "json":
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"), pad_event_to=20)


def about_us(record: logging.LogRecord) -> bool:
    """Tells whether a record of grpcio is about this service; not about a caller that went away before its reply was sent, nor
    about metadata that is no UTF-8, which it would quote.
    """
    return not str(record.msg).startswith(("ExecuteBatchError", "Invalid encoding"))


def tell_plainly(_: object, context: Mapping[str, Any]) -> None:
    """Tells of an error that nobody waited for, as an event loop does, which would quote it."""
    error = context.get("exception")
    structlog.get_logger("aforesaid").error("a task failed", **(about(error) if isinstance(error, BaseException) else {}))


def without_messages(logger: object, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Puts the types and places of an error into an event, in the stead of its traceback and message."""
    del logger, method
    given = event.pop("exc_info", None)
    error = sys.exc_info()[1] if given is True else given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        event.update(about(error))
    return event


def about(error: BaseException) -> dict[str, object]:
    """Returns the types of an error and of those that caused it, and where in the code they were raised, causes first."""
    chain = _chain(error)
    frames = [frame for one in reversed(chain) for frame in _frames(one.__traceback__)]
    return {"error": [_name(type(one)) for one in chain], "frames": frames}


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain and len(chain) < 8:
        chain.append(one)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return chain


def _name(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _frames(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)[-MAX_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
