"""`make serve`: serves in the foreground, into a data folder, the examples or what IMPORT names, and prints a curl to try.

Reads IMPORT, DATA, PORT and GRPC_PORT from the environment; every other setting is the server's own (`AFORESAID_*`).
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

from scripts import curl
from scripts.running_server import EXAMPLES, ROOT, RunningServer, ServerNotReady, start


def main() -> int:
    """Serves until it is told to stop; returns the server's exit code."""
    given = os.environ.get("IMPORT", "")
    path = Path(given).expanduser().absolute() if given else EXAMPLES
    if not path.exists():
        print(f"serve: IMPORT={given} does not exist", file=sys.stderr)
        return 2
    # One's own transcripts and the examples do not mix.
    data = Path(os.environ.get("DATA") or ROOT / ".aforesaid" / ("own" if given else "examples")).expanduser().absolute()
    data.mkdir(parents=True, exist_ok=True)
    ports = (int(os.environ.get("PORT") or 8787), int(os.environ.get("GRPC_PORT") or 8788))
    print(f"serving {path} from {data}; the first import of many transcripts takes a while", flush=True)
    try:
        server = start(data, imports=[path], ports=ports, inherit_settings=True, seconds=None)
    except ServerNotReady as error:
        print(f"serve: the server {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    drain_on_signals(server)
    invite(server, "test" if given else "charged twice")
    return server.process.wait()


def drain_on_signals(server: RunningServer) -> None:
    """Passes SIGTERM on to the server, and lets Ctrl-C, which the terminal sends to both, be its alone."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        server.process.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def invite(server: RunningServer, query: str) -> None:
    """Prints where it serves and what to try."""
    arguments = curl.command(server.url, "AgentService/SearchTranscripts", {"query": query})
    print(
        f"\nConnect and gRPC-Web: {server.url}    gRPC: {server.grpc}    Ctrl-C stops it. Try:\n\n{curl.shown(arguments)}\n",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
