"""Starts this checkout's `aforesaid-server serve` as a process of its own on free ports, waits until it serves, and stops it.

Used by `make demo`, `make accept` and the tests. Asks the server nothing: it is ready when its ready file is there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "transcripts"
POLL_SECONDS = 0.02
LOG_TAIL_BYTES = 8_000


class ServerNotReady(Exception):
    """The server ended, or did not say in time that it serves; holds the end of its log."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that serves. `url` is its Connect door, `grpc` its gRPC target, `log` the file of its output, if not the console;
    `metrics` where its metrics are, if a setting wants them.
    """

    url: str
    grpc: str
    data: Path
    log: Path | None
    process: subprocess.Popen[bytes]
    metrics: str = ""

    def stop(self, seconds: float = 60.0) -> int:
        """Asks it to drain and waits; returns its exit code. One that is still there after `seconds` is killed (-9)."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """Ends it as a power cut would; returns the exit code."""
        self.process.kill()
        return self.process.wait()

    def told(self) -> str:
        """Returns the end of its log."""
        return tail(self.log)


def start(
    data: Path,
    *,
    imports: Sequence[Path] = (),
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    seconds: float = 120.0,
) -> RunningServer:
    """Starts a server and returns once it serves and has imported.

    `settings` are environment variables; those of this process (`AFORESAID_*`) are not passed on. Waits at most `seconds`. Raises
    ServerNotReady.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AFORESAID_")}
    with tempfile.TemporaryDirectory(prefix="aforesaid-ready-") as folder:
        ready = Path(folder) / "ready.json"
        command = [sys.executable, "-m", "aforesaid_server", "serve", "--data", str(data), "--ready-file", str(ready)]
        command += ["--port", "0", "--grpc-port", "0"]
        for path in imports:
            command += ["--import", str(path)]
        with open(log, "ab") if log else nullcontext() as output:
            # cwd: a .env or a data folder in the caller's working directory shall not matter.
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=inherited | dict(settings or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT if log else None,
            )
        server = RunningServer("", "", data, log, process)
        try:
            doors = wait_for(ready, process, log, seconds)
        except BaseException:
            server.stop(10)
            raise
    return replace(server, url=doors["url"], grpc=doors["grpc"], metrics=doors.get("metrics", ""))


def wait_for(ready: Path, process: subprocess.Popen[bytes], log: Path | None, seconds: float) -> dict[str, str]:
    """Returns what the ready file says. Raises ServerNotReady when the process ends first or the time is up."""
    deadline = time.monotonic() + seconds
    while not ready.exists():
        try:
            code = process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                raise ServerNotReady(f"not ready after {seconds:g} s\n{tail(log)}") from None
        else:
            raise ServerNotReady(f"ended with exit code {code} before it was ready\n{tail(log)}")
    doors: dict[str, str] = json.loads(ready.read_text("utf-8"))
    return doors


def tail(log: Path | None) -> str:
    """Returns the end of a log, nothing where there is none."""
    return log.read_bytes()[-LOG_TAIL_BYTES:].decode("utf-8", "replace") if log is not None and log.exists() else ""
