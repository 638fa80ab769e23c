"""`aforesaid-server backup` and `restore`: what was acknowledged is in the copy, the copy is of one moment, and what is not as it
was made is refused.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.running_server import ROOT, RunningServer, start
from tests.api.callers import VERIFY, Caller, hits, new, new_word, ok
from tests.api.doors import ConnectDoor
from tests.conftest import StartServer
from tests.faults.serving import readyz, wait_until

SECONDS = 120


def program(*arguments: str | Path, settings: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs `aforesaid-server`. `settings` are environment variables."""
    return subprocess.run(
        [sys.executable, "-m", "aforesaid_server", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **(settings or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def done(*arguments: str | Path) -> str:
    """Runs `aforesaid-server`, which must end well; returns what it said on stdout."""
    ended = program(*arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def refused(*arguments: str | Path) -> str:
    """Runs `aforesaid-server`, which must refuse; returns the last line on stderr."""
    ended = program(*arguments)
    assert (ended.returncode, ended.stdout) == (2, ""), ended
    assert "Traceback" not in ended.stderr
    return ended.stderr.splitlines()[-1]


@dataclass(frozen=True, slots=True)
class Kept:
    """A data folder that a server has left, a backup of it, and a word that one turn says; three refused reads are recorded."""

    data: Path
    backup: Path
    word: str


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Made once."""
    folder, word, reader = tmp_path_factory.mktemp("kept"), new_word(), new("reader")
    running = start(folder / "data", log=folder / "log")
    with closing(ConnectDoor(running.url)) as door:
        user = Caller(door)
        user.say("talk", f"keep {word}", agent_id=new("agent"))
        user.make(reader, role="reviewer")
        for _ in range(3):
            user.agent(reader).search(word, agentId="nobody")
    assert running.stop() == 0
    done("backup", folder / "some" / "backup", "--data", folder / "data")
    return Kept(folder / "data", folder / "some" / "backup", word)


@pytest.fixture
def kept(original: Kept, tmp_path: Path) -> Kept:
    """A copy to be harmed."""
    data, backup = (shutil.copytree(folder, tmp_path / folder.name) for folder in (original.data, original.backup))
    return Kept(data, backup, original.word)


def test_what_was_acknowledged_before_is_in_a_copy_made_while_others_write(start_server: StartServer, tmp_path: Path) -> None:
    running = start_server()
    backup, restored = tmp_path / "backup", tmp_path / "restored"
    with closing(ConnectDoor(running.url)) as door:
        user, reader, target, word = Caller(door), new("reader"), new("target"), new_word()
        user.make(reader, role="reviewer")
        user.say("talk", *(f"{word} {n}" for n in range(50)), agent_id=target)
        ok(user.agent(reader).search(word, agentId=target))
        told = _beside(running, target, word, lambda: done("backup", backup, "--data", running.data))
        assert told.startswith(f"{backup}: ")
        done("restore", backup, "--data", restored)
    with closing(ConnectDoor(start_server(data=restored).url)) as door:
        user = Caller(door)
        wait_until(lambda: readyz(door.http)[0] == 200)
        found = {hit["turnId"] for page in user.pages(word, agentId=target) for hit in hits(page)}
        assert {f"talk:{n}" for n in range(50)} <= found
        assert ok(user.call(VERIFY, {})).body["intact"] is True
        assert any(record.get("callerAgentId") == reader for record in user.reads(agent_id=target))
        user.say("talk", f"{word} after", agent_id=target)
        ok(user.agent(reader).search(word, agentId=target))
        assert ok(user.call(VERIFY, {})).body["intact"] is True


def _beside(running: RunningServer, target: str, word: str, act: Callable[[], str]) -> str:
    """Does `act` while another caller writes turns and reads the target, at least one of each before and after it began."""
    began, stop = threading.Event(), threading.Event()

    def write() -> None:
        with closing(ConnectDoor(running.url)) as door:
            writer = Caller(door)
            while not stop.is_set():
                writer.say("more", f"{word} more", agent_id=target)
                ok(writer.search(word, agentId=target))
                began.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert began.wait(SECONDS)
        return act()
    finally:
        stop.set()
        thread.join()


def test_the_copy_is_its_owners_alone_and_is_served_as_it_is(original: Kept, kept: Kept, start_server: StartServer) -> None:
    assert stat.S_IMODE(original.backup.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in original.backup.iterdir()} == dict.fromkeys(
        ("audit.head", "backup.json", "secret", "store.sqlite3"), 0o600
    )
    assert [path.name for path in original.backup.parent.iterdir()] == ["backup"]
    with closing(ConnectDoor(start_server(data=kept.backup).url)) as door:
        wait_until(lambda: readyz(door.http)[0] == 200)
        assert len(hits(ok(Caller(door).search(kept.word)))) == 1


def test_an_altered_record_stays_altered_in_the_copy(kept: Kept, start_server: StartServer, tmp_path: Path) -> None:
    with closing(sqlite3.connect(kept.data / "store.sqlite3")) as raw:
        raw.execute("update reads set body = replace(body, 'nobody', 'noone') where number = 2")
        raw.commit()
    done("backup", tmp_path / "altered", "--data", kept.data)
    done("restore", tmp_path / "altered", "--data", tmp_path / "restored")
    with closing(ConnectDoor(start_server(data=tmp_path / "restored").url)) as door:
        checked = ok(Caller(door).call(VERIFY, {})).body
        assert (checked.get("intact", False), [fault["record"] for fault in checked["faults"]]) == (False, ["2"])


@pytest.mark.parametrize(
    ("arrange", "arguments", "problem"),
    [
        ("", ["backup", "{tmp}/new", "--data", "{tmp}/nothing"], "data folder {tmp}/nothing: holds no store.sqlite3"),
        ("", ["backup", "{data}", "--data", "{data}"], "{data}: is there already and not an empty folder"),
        (
            "",
            ["restore", "{tmp}/nothing", "--data", "{tmp}/new"],
            "{tmp}/nothing: holds no backup: there is no backup.json that can be read",
        ),
        ("", ["restore", "{backup}", "--data", "{data}"], "data folder {data}: is not empty: it holds "),
        (
            "byte",
            ["restore", "{backup}", "--data", "{tmp}/new"],
            "{backup}/store.sqlite3: is not as it was made: its SHA-256 is another one",
        ),
        ("gone", ["restore", "{backup}", "--data", "{tmp}/new"], "{backup}/secret: is missing"),
        ("other", ["restore", "{backup}", "--data", "{tmp}/new"], "{backup}/backup.json: names other files than a backup has"),
        (
            "list",
            ["restore", "{backup}", "--data", "{tmp}/new"],
            "{backup}: holds no backup: there is no backup.json that can be read",
        ),
    ],
)
def test_what_cannot_be_is_refused(kept: Kept, tmp_path: Path, arrange: str, arguments: Sequence[str], problem: str) -> None:
    _arrange(kept.backup, arrange)
    before = _content(kept.data)
    places = {"tmp": tmp_path, "data": kept.data, "backup": kept.backup}
    told = refused(*(argument.format(**places) for argument in arguments))
    assert told.startswith(f"aforesaid-server: {problem.format(**places)}")
    assert not (tmp_path / "new").exists()
    assert _content(kept.data) == before


def _content(folder: Path) -> dict[Path, bytes]:
    """What a folder holds, but for who holds its lock."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}


def _arrange(backup: Path, how: str) -> None:
    match how:
        case "byte":
            content = bytearray((backup / "store.sqlite3").read_bytes())
            content[-1] ^= 1
            (backup / "store.sqlite3").write_bytes(content)
        case "gone":
            (backup / "secret").unlink()
        case "other":
            listed = json.loads((backup / "backup.json").read_text("utf-8"))
            listed["files"]["../elsewhere"] = "0"
            (backup / "backup.json").write_text(json.dumps(listed), "utf-8")
        case "list":
            (backup / "backup.json").write_text("[]", "utf-8")


def test_two_backups_into_one_folder(kept: Kept, tmp_path: Path) -> None:
    """The second is refused and leaves the first alone; what a killed one left is no hindrance."""
    part = tmp_path / ".copy.part"
    part.mkdir()
    (part / "store.sqlite3").write_text("left")
    held = os.open(part, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        told = refused("backup", tmp_path / "copy", "--data", kept.data)
        assert told == f"aforesaid-server: {tmp_path}/copy: another backup is being made there"
        assert (part / "store.sqlite3").read_text() == "left"
    finally:
        os.close(held)
    assert program("backup", tmp_path / "copy", "--data", kept.data).returncode == 0
    assert [path.name for path in tmp_path.glob("*copy*")] == ["copy"]


def test_it_needs_none_of_the_settings_that_a_server_must_have(original: Kept, tmp_path: Path) -> None:
    """As in a container, whose environment is the server's: there, this address is refused without tokens."""
    beside = {"AFORESAID_DATA": str(original.data), "AFORESAID_HOST": "0.0.0.0"}
    for arguments in (("backup", tmp_path / "copy"), ("token", "list"), ("grants",)):
        assert program(*arguments, settings=beside).returncode == 0
    assert program("serve", settings=beside).returncode == 2


def test_a_folder_that_is_served_is_not_restored_into(kept: Kept, start_server: StartServer) -> None:
    running = start_server(data=kept.data)
    told = refused("restore", kept.backup, "--data", kept.data)
    assert told == f"aforesaid-server: data folder {kept.data}: another server uses it (process {running.process.pid})"
