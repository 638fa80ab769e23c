"""A service as a process whose searches take half a second: for test_drain.py. Arguments: the data folder, the ready file."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from aforesaid_server.app import serve
from aforesaid_server.house import House
from aforesaid_server.search import SearchReply
from aforesaid_server.settings import Settings
from tests.api.fakes import NOTHING_FOUND, FakeCore


def say(line: str) -> None:
    """Writes a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def answer(_: object) -> SearchReply:
    """Takes long enough for a signal to come between."""
    say("begun")
    threading.Event().wait(0.5)
    say("answering")
    return NOTHING_FOUND


def build(_: Settings) -> House:
    """Builds the slow core, which tells when it is closed."""
    house = FakeCore(answer=answer).house()
    return House(house.core, house.readiness, lambda: say("closed"))


if __name__ == "__main__":
    serve(Settings(data=Path(sys.argv[1]), port=0, grpc_port=0), ready_file=Path(sys.argv[2]), build=build)
