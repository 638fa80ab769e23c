"""The service's log: one line of JSON an event, on standard error. What people or agents wrote never gets into it.

Errors are logged by type and place in the code, without their messages: a message may quote the text that it could not digest.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any

import structlog

LEVELS = ("debug", "info", "warning", "error")
# The last so many frames tell where; a recursion error has a thousand.
MAX_FRAMES = 40


class UnknownLevel(ValueError):
    """A level that nothing is logged at."""


def configure(level: str) -> None:
    """Sends structlog and the libraries' logs to standard error, from this level on. Raises UnknownLevel."""
    if level not in LEVELS:
        raise UnknownLevel(f"log level {level} is none of {', '.join(LEVELS)}")
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
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(least)
    for library in ("uvicorn", "alembic"):
        # They tell at info of every start and stop, and so do we.
        logging.getLogger(library).setLevel(max(least, logging.WARNING))
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


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
