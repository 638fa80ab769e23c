"""`make demo` when it is stopped: no traceback, and no server is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from scripts import demo
from scripts.running_server import ROOT, RunningServer

SECONDS = 60


def test_ctrl_c_stops_the_service(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[RunningServer] = []

    def interrupted(server: RunningServer) -> list[str]:
        shown.append(server)
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "show_all", interrupted)
    assert demo.main() == 130
    assert [server.process.poll() for server in shown] == [0]
    assert capsys.readouterr().err == "demo: interrupted, the service is stopped\n"


@pytest.mark.parametrize("at", ["starting the service ", "# "])
def test_ctrl_c_ends_it_with_a_line(at: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "scripts.demo"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert any(line.startswith(at) for line in process.stdout)
        # As a terminal does, to all that belong to the command.
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, err) == (130, "demo: interrupted, the service is stopped\n")
    finally:
        process.kill()
