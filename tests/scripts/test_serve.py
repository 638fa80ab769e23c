"""`make serve`: what it makes of its variables, and what a newcomer sees from the first line to Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from aforesaid import Client
from scripts.running_server import EXAMPLES, ROOT
from scripts.serve import WrongSetting, serve_arguments

SECONDS = 60
# A line of the log, for people.
LOGGED = re.compile(r"\d{4}-\d\d-\d\dT\S+Z \[info +\] \w+")


def begin(environment: Mapping[str, str]) -> subprocess.Popen[str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("AFORESAID_")}
    return subprocess.Popen(
        [sys.executable, "-m", "scripts.serve"],
        cwd=ROOT,
        env=bare | {"IMPORT": "", "DATA": "", "PORT": "0", "GRPC_PORT": "0"} | dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_until(beginning: str, process: subprocess.Popen[str]) -> list[str]:
    """Returns what is printed up to the line that begins so."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(beginning):
            return lines
    raise AssertionError(f"ended without {beginning!r}: {lines} {process.communicate(timeout=SECONDS)}")


def stop(process: subprocess.Popen[str]) -> str:
    """Presses Ctrl-C; it must end in good order. Returns what it printed from then on, but for the log."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, [line for line in err.splitlines() if not LOGGED.match(line)]) == (0, [])
    return out


def test_the_examples_and_ones_own_have_folders_of_their_own(tmp_path: Path) -> None:
    assert serve_arguments({}) == ["--data", str(ROOT / ".aforesaid/examples"), "--import", str(EXAMPLES)]
    own = serve_arguments({"IMPORT": str(tmp_path), "PORT": "1", "GRPC_PORT": "65535"})
    assert own[:4] == ["--data", str(ROOT / ".aforesaid/own"), "--import", str(tmp_path)]
    assert own[4:] == ["--port", "1", "--grpc-port", "65535"]
    assert serve_arguments({"DATA": str(tmp_path / "a b")})[1] == str(tmp_path / "a b")


@pytest.mark.parametrize("port", ["abc", "-1", "65536", "8787.5", "٣"])
@pytest.mark.parametrize("variable", ["PORT", "GRPC_PORT"])
def test_a_port_that_is_none(variable: str, port: str) -> None:
    with pytest.raises(WrongSetting, match=rf"^{variable}={re.escape(port)} is no port: a number from 0 to 65535"):
        serve_arguments({variable: port})


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"PORT": "abc"}, "serve: PORT=abc is no port: a number from 0 to 65535, 0 for a free one\n"),
        ({"IMPORT": "no/such"}, "serve: IMPORT=no/such does not exist\n"),
        ({"PORT": "8788", "GRPC_PORT": "8788"}, "aforesaid-server: both ports are the same: 8788\n"),
    ],
)
def test_what_cannot_be_is_one_line(environment: Mapping[str, str], told: str, tmp_path: Path) -> None:
    process = begin({"DATA": str(tmp_path / "data")} | dict(environment))
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (2, told)
    assert not (tmp_path / "data").exists()


def test_the_one_search_to_try_finds_something(tmp_path: Path) -> None:
    process = begin({"DATA": str(tmp_path)})
    try:
        lines = read_until("  curl ", process)
        assert not any("no known format" in line for line in lines)
        url, body = re.fullmatch(r"  curl -s (http://[^/]+)/\S+ -H '[^']+' -d '([^']+)'\n", lines[-1]).groups()  # type: ignore[union-attr]
        with Client(url, "") as client:
            assert next(client.search(json.loads(body)["query"])).matches
        assert [line for line in lines if "Try" in line] == ["Try:\n"]
        assert stop(process) == ""
    finally:
        process.kill()


def test_a_folder_without_transcripts_gets_no_search_to_try(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    process = begin({"DATA": str(tmp_path / "data"), "IMPORT": str(tmp_path / "own")})
    try:
        lines = read_until("Nothing was imported: ", process)
        assert not any("Try" in line or "curl" in line for line in lines)
        assert stop(process) == ""
    finally:
        process.kill()
