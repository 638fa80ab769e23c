"""Two servers on one folder, and a disk that is really full: a small file system of the test's own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.running_server import ROOT
from tests.api.callers import APPEND, VERIFY, Caller, hits, ok, turn, turn_ids
from tests.api.doors import ConnectDoor
from tests.conftest import StartServer
from tests.faults.serving import readyz, wait_until

TALK, SECRET = "talk", "ossifrage"
DISK_MIB = 64


def second(data: Path) -> subprocess.CompletedProcess[str]:
    """Starts another server on a folder and waits for its end."""
    command = [sys.executable, "-m", "aforesaid_server", "serve", "--data", str(data), "--port", "0", "--grpc-port", "0"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("lock", ["there", "removed"])
def test_the_second_of_two_servers_on_one_folder_refuses(lock: str, start_server: StartServer) -> None:
    running = start_server()
    door = ConnectDoor(running.url)
    try:
        wait_until(lambda: readyz(door.http)[0] == 200)
        user = Caller(door)
        kept = user.say(TALK, f"{SECRET} before", agent_id="ada")
        if lock == "removed":
            (running.data / "lock").unlink()
        refused = second(running.data)
        assert refused.returncode == 2
        assert f"data folder {running.data}: another server uses it" in refused.stderr
        kept += user.say(TALK, f"{SECRET} after", agent_id="ada")
        assert sorted(turn_ids(ok(user.search(SECRET)))) == sorted(kept)
        assert readyz(door.http)[0] == 200
    finally:
        door.close()


def test_a_folder_whose_server_was_killed_is_free(start_server: StartServer) -> None:
    """What it left in the lock is no reason to refuse."""
    running = start_server()
    running.kill()
    assert (running.data / "lock").read_text().strip() == str(running.process.pid)
    assert start_server(data=running.data).process.poll() is None


# A disk that is full


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of DISK_MIB in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    made = subprocess.run(
        [mount or "false", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=700", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("a file system can be mounted by root only, and not everywhere: test_disk.py limits the size of files instead")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Takes all the room there is with a file; returns it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size) == size:
                    pass
    assert not os.statvfs(disk).f_bavail
    return ballast


def test_a_disk_without_room(disk: Path, start_server: StartServer) -> None:
    """The write says `unavailable` and nothing is half there; what was said stays readable; nobody reads another without a record;
    and once there is room, all goes on without another start.
    """
    running = start_server(data=disk / "data")
    door = ConnectDoor(running.url)
    user, reader = Caller(door), Caller(door).agent("reader")
    try:
        user.make("reader", role="reviewer")
        kept = user.say(TALK, *[f"{SECRET} {place}" for place in range(20)], agent_id="ada")
        ok(user.search(f"{SECRET} zebra"))  # the engine takes all that there is
        for round_ in range(3):
            ballast = fill(disk)
            refused = 0
            for place in range(40):
                text = f"{SECRET} r{round_}p{place}x {'filling ' * 4_000}"
                reply = user.call(APPEND, {"agentId": "ada", "conversationId": TALK, "turns": [turn(text)]})
                assert reply.code in {"ok", "unavailable"}
                refused += reply.code != "ok"
                kept += [one["turnId"] for one in reply.body.get("turns", [])]
            assert refused, "there was room"
            assert [one["turnId"] for one in ok(user.agent("ada").read(TALK)).body["turns"]] == kept
            own = user.agent("ada").search(SECRET, pagination={"limit": 100})
            assert own.code in {"ok", "unavailable"}
            assert sorted(turn_ids(own)) in (sorted(kept), [])
            asked = [reader.search(SECRET, agentId="ada") for _ in range(30)]
            assert all(reply.code in {"ok", "unavailable"} for reply in asked)
            assert not any(SECRET in json.dumps(reply.body) for reply in asked if reply.code != "ok")
            recorded = {record["requestId"] for record in user.reads()}
            assert {reply.headers["x-request-id"] for reply in asked if reply.code == "ok"} <= recorded
            assert door.http.get("/healthz").status_code == 200

            ballast.unlink()
            wait_until(lambda: readyz(door.http)[0] == 200 and user.search(SECRET).code == "ok")
            kept += user.say(TALK, f"{SECRET} again", agent_id="ada")
            found = [hit["turnId"] for page in user.pages(SECRET) for hit in hits(page)]
            assert sorted(found) == sorted(kept)
            assert hits(ok(reader.search(SECRET, agentId="ada")))
            assert ok(user.call(VERIFY, {})).body["intact"]
    finally:
        door.close()
    assert running.stop() == 0
    again = start_server(data=disk / "data")
    door = ConnectDoor(again.url)
    try:
        wait_until(lambda: readyz(door.http)[0] == 200)
        assert sorted(hit["turnId"] for page in Caller(door).pages(SECRET) for hit in hits(page)) == sorted(kept)
    finally:
        door.close()
    assert again.stop() == 0
