"""The composition root: Settings -> data folder, core -> both ports, and the end of all that in good order.

`serve` runs until SIGTERM or SIGINT: then the ports are drained, and what was opened is closed in the other direction.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import resource
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
import uvloop

from aforesaid.formats import PathError, find_files
from aforesaid_server.access import Call, Patience
from aforesaid_server.api.files import FileImport, FileTally
from aforesaid_server.api.log import about, configure, tell_plainly
from aforesaid_server.doors import Doors, Signals, close_all, listen, say, tls_of
from aforesaid_server.errors import AforesaidError, StartError, Stopped
from aforesaid_server.folder import data_folder
from aforesaid_server.house import House, build_core
from aforesaid_server.settings import Settings

MOST_OPEN_FILES = 65_536
_M_ARENA_MAX = -8  # of malloc.h

log = structlog.get_logger("aforesaid")


def serve(
    settings: Settings,
    imports: Sequence[Path] = (),
    ready_file: Path | None = None,
    *,
    build: Callable[[Settings], House] | None = None,
) -> None:
    """Serves until told to stop. Raises StartError if it cannot begin."""
    # What agents said is its owner's: every file that is made here is.
    os.umask(0o077)
    allow_many_connections()
    keep_memory_together()
    try:
        configure(settings.log_level, settings.log_format)
        find_files(imports)
        tls_of(settings)
    except PathError as error:
        raise StartError(f"--import {error}") from None
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)
    with data_folder(settings.data), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_serve(settings, build or build_core, imports, ready_file))
        except StartError:
            raise
        except Exception as error:  # noqa: BLE001
            # Python would print its message, which may quote what it could not digest.
            log.critical("unforeseen", **about(error))
            raise StartError("something unforeseen ended the service: its log tells more") from None


def allow_many_connections() -> None:
    """Has the kernel give this process all the open files that it may have: often 1,024 unless asked, few for 1,000 callers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def keep_memory_together() -> None:
    """Has glibc share two heaps among all threads, instead of eight for each core: 1,000 callers, many of them writing, made the
    process 420 MiB large with those, 220 with two. Elsewhere nothing happens.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


async def _serve(settings: Settings, build: Callable[[Settings], House], imports: Sequence[Path], ready_file: Path | None) -> None:
    asyncio.get_running_loop().set_exception_handler(tell_plainly)
    signals = Signals()
    signals.listen()
    anywhere = settings.auth == "token"
    sockets = listen(settings.host, settings.port, anywhere=anywhere)
    try:
        # gRPC takes its port when all is built; that another program has it is better told before.
        close_all(listen(settings.host, settings.grpc_port, anywhere=anywhere))
        house = await asyncio.to_thread(build, settings)
    except AforesaidError as error:
        close_all(sockets)
        raise StartError(error.message) from error
    except BaseException:
        close_all(sockets)
        raise
    try:
        async with Doors(settings, house, sockets, signals) as doors:
            call = Call("ImportTurns", "serve", f"import-{os.getpid()}", patience=Patience())
            importing = asyncio.create_task(asyncio.to_thread(_import, house, call, imports))
            told = asyncio.create_task(signals.first.wait())
            await asyncio.wait({importing, told}, return_when=asyncio.FIRST_COMPLETED)
            if not importing.done():
                call.patience.hang_up()
            with contextlib.suppress(Stopped):
                tally = await importing
                doors.announce(ready_file)
                if await doors.searchable():
                    doors.invite(tally)
            await told
    finally:
        await asyncio.to_thread(house.close)
    log.info("stopped")


def _import(house: House, call: Call, paths: Sequence[Path]) -> FileTally | None:
    if not paths:
        return None
    try:
        tally = FileImport(house.core.writer, call, structlog.get_logger("aforesaid.import").debug).run(paths)
        say("\n".join(tally.summary()))
        house.settle(call)
    except Stopped:
        raise
    except AforesaidError as error:
        raise StartError(f"--import: {error.message}") from error
    return tally
