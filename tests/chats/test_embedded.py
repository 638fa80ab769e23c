"""Chats in the application's own process, and beside other callers: opened, shared, refused, closed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import structlog

from aforesaid import AforesaidError, FailedPrecondition, InvalidArgument, Turn, Unavailable, Unreachable
from aforesaid.transcript_index import ChatRecord, TranscriptIndex
from scripts.running_server import ROOT, ServerNotReady
from tests.chats.conftest import EMBEDDED, KINDS, Place, Scope
from tests.conftest import StartServer

ADA = {"user_id": "ada"}
PROGRAM = """
import os, sys
from aforesaid.transcript_index import ChatRecord, TranscriptIndex
with TranscriptIndex.{opened} as index:
    index.write_chat(ChatRecord("c", {{"user_id": "ada"}}, [{{"role": "user", "content": "zebra"}}]))
    print(len(index.search({{"user_id": "ada"}}, "zebra")), len(list(index.list_chats({{}}))))
    {then}
"""


def record(text: str, chat_id: str = "c", scope: Scope | None = None) -> ChatRecord:
    return ChatRecord(chat_id, scope or ADA, [{"role": "user", "content": text}])


def texts(index: TranscriptIndex, query: str, scope: Scope | None = None) -> list[str]:
    return [hit.message.text for hit in index.search(scope or ADA, query)]


def ran(folder: Path, opened: str, then: str = "pass", **environment: str) -> subprocess.CompletedProcess[str]:
    """A program of its own that opens chats, writes one and finds it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AFORESAID_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.format(opened=opened, then=then)],
        cwd=folder,
        env=inherited
        | {"PYTHONPATH": f"{ROOT / 'client'}{os.pathsep}{ROOT / 'server'}", "TMPDIR": str(folder), "HOME": str(folder)}
        | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


# A folder


def test_chats_stay_in_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    with TranscriptIndex.open(folder) as index:
        done = index.write_chat(record("one zebra"))
        index.write_chat(record("two zebra", "deleted"))
        index.delete_chat(ADA, "deleted")
    with TranscriptIndex.open(str(folder)) as index:
        assert texts(index, "zebra") == ["one zebra"]
        assert index.write_chat(record("three zebra"), expected_revision=done.revision).revision == 2
        assert index.index_chat(record("two zebra", "deleted")).outcome == "tombstoned"
    assert folder.stat().st_mode & 0o077 == 0


def test_the_folder_is_a_services_data_folder(tmp_path: Path, start_server: StartServer) -> None:
    with TranscriptIndex.open(tmp_path / "data") as index:
        index.write_chat(record("zebra"))
        with pytest.raises(ServerNotReady, match=f"another server uses it \\(process {os.getpid()}\\)"):
            start_server(data=tmp_path / "data")
    server = start_server(data=tmp_path / "data")
    with TranscriptIndex.connect(server.url) as index:
        assert texts(index, "zebra") == ["zebra"]
    with pytest.raises(Unavailable, match=f"another server uses it \\(process {server.process.pid}\\)"):
        TranscriptIndex.open(tmp_path / "data")
    assert server.stop() == 0
    with TranscriptIndex.open(tmp_path / "data") as index:
        assert texts(index, "zebra") == ["zebra"]


def test_a_folder_is_opened_once_at_a_time(tmp_path: Path) -> None:
    with TranscriptIndex.open(tmp_path) as index:
        for _ in range(2):
            with pytest.raises(Unavailable, match="another server uses it"):
                TranscriptIndex.open(tmp_path)
        index.write_chat(record("zebra"))
        assert texts(index, "zebra") == ["zebra"]
    TranscriptIndex.open(tmp_path).close()


def test_what_a_process_that_died_had_written_is_there(tmp_path: Path) -> None:
    died = ran(tmp_path, 'open("chats")', "sys.stdout.flush(); os._exit(7)")
    assert (died.returncode, died.stdout, died.stderr) == (7, "1 1\n", "")
    with TranscriptIndex.open(tmp_path / "chats") as index:
        assert texts(index, "zebra") == ["zebra"]


FORK = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # newer ones of Python warn of forks beside threads
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            index.search({}, "zebra")
        except AforesaidError as error:
            print(type(error).__name__, "forked" in str(error), flush=True)
        index.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(len(index.search({}, "zebra")))
"""


@pytest.mark.parametrize("opened", ['open("chats")', "in_memory()"])
def test_a_forked_process_is_told_to_open_its_own(opened: str, tmp_path: Path) -> None:
    done = ran(tmp_path, opened, f"from aforesaid import AforesaidError{FORK}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 1\nFailedPrecondition True\n1\n", "")


def test_nothing_is_printed_and_nothing_is_left_open(tmp_path: Path) -> None:
    done = ran(tmp_path, 'open("chats")')
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 1\n", "")


@pytest.mark.parametrize(
    ("given", "more", "told"),
    [
        ("", {}, "path_or_url: is empty"),
        (b"chats", {}, "path_or_url: must be a path, and is of type bytes"),
        (None, {}, "path_or_url: must be a path, and is of type NoneType"),
        ("a\0b", {}, "path_or_url: holds a zero byte"),
        ("postgresql://host/db", {"data": ""}, "data: is empty"),
        ("postgresql://host/db", {"data": 7}, "data: must be a path, and is of type int"),
        ("mysql://user:secret@host/db", {}, "path_or_url: is neither a folder nor postgresql://: mysql://…"),
        ("http://127.0.0.1:8787", {}, "path_or_url: is neither a folder nor postgresql://: http://…"),
        ("chats", {"data": "data"}, "data: goes with a postgresql:// URL only: a folder holds index and keys itself"),
        ("chats", {"language": "klingon"}, "language: language klingon has no Snowball stemmer"),
    ],
)
def test_what_cannot_be_opened(
    given: Any, more: dict[str, Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument) as raised:
        TranscriptIndex.open(given, **more)
    assert raised.value.message.startswith(told)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Unavailable, match=r"data folder .*file: "):
        TranscriptIndex.open(tmp_path / "file")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "store.sqlite3").write_text("no database" * 1_000)
    with pytest.raises(Unavailable, match="cannot be opened"):
        TranscriptIndex.open(tmp_path / "damaged")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "secret").write_text("short")
    with pytest.raises(Unavailable, match="secret holds 5 bytes where a secret has 32"):
        TranscriptIndex.open(tmp_path / "secret")


def test_what_to_install_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "aforesaid_server.embedded", None)
        openings: list[Callable[[], TranscriptIndex]] = [TranscriptIndex.in_memory, lambda: TranscriptIndex.open(tmp_path)]
        for opened in openings:
            with pytest.raises(FailedPrecondition, match=re.escape("pip install 'aforesaid[server]'")):
                opened()
    with monkeypatch.context() as patch:
        for name in [name for name in sys.modules if name.partition(".")[0] == "psycopg"]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(AforesaidError, match=re.escape("pip install 'aforesaid[")):
            TranscriptIndex.open("postgresql://nobody@127.0.0.1:1/none")


# In memory


def test_in_memory_nothing_is_on_a_disk(tmp_path: Path) -> None:
    then = (
        "print([path for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}')"
        " and os.path.isfile(path := os.readlink(f'/proc/self/fd/{fd}'))])"
    )
    done = ran(tmp_path, "in_memory()", then)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 1\n[]\n", "")
    assert list(tmp_path.rglob("*")) == []


def test_each_memory_is_its_own() -> None:
    with TranscriptIndex.in_memory() as one, TranscriptIndex.in_memory() as other:
        one.write_chat(record("zebra"))
        assert (texts(one, "zebra"), texts(other, "zebra")) == (["zebra"], [])
    with TranscriptIndex.in_memory() as again:
        assert texts(again, "zebra") == []


def test_the_language_is_the_one_that_is_given() -> None:
    with TranscriptIndex.in_memory(language="german") as index:
        index.write_chat(record("die Häuser"))
        assert [len(index.search(ADA, "Haus", stem=stem)) for stem in (True, False)] == [1, 0]


# Logs


@pytest.fixture
def logs_of_nobody() -> Iterator[None]:
    """No settings of structlog, as in an application that has none."""
    was, settings = structlog.is_configured(), structlog.get_config()
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    if was:
        structlog.configure(**settings)


def test_what_is_logged_holds_no_text(logs_of_nobody: None, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"), TranscriptIndex.in_memory() as index:
        index.write_chat(record("zebra", "run-7"))
        index.search(ADA, "zebra")
        with pytest.raises(InvalidArgument):
            index.search(ADA, "zebra", around=11)
    told = [one.getMessage() for one in caplog.records if one.name == "aforesaid.calls"]
    assert [re.findall(r"(?:method|code)='(\w+)'", line) for line in told] == [
        ["WriteConversation", "ok"],
        ["SearchTurns", "ok"],
        ["SearchTurns", "invalid_argument"],
    ]
    assert not any(word in caplog.text for word in ("zebra", "run-7", "ada"))


# A database


def test_a_database_without_a_folder(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with TranscriptIndex.open(postgres) as index:
        assert len(list(tmp_path.iterdir())) == 1
        index.write_chat(record("zebra"))
        # Another one beside it, which has its own index and sees every write.
        with TranscriptIndex.open(postgres) as other:
            assert texts(other, "zebra") == ["zebra"]
            other.write_chat(record("zebra too", "d"))
            assert sorted(texts(index, "zebra")) == ["zebra", "zebra too"]
        assert index.resolve_source(ADA, {"chat_id": "d", "message_id": "d:0"}) is not None
        assert [one.chat_id for one in index.list_chats(ADA)] == ["d", "c"]
        # What goes to the audit log wants the secret of the deployment.
        for refused in (
            lambda: index.read_chat(ADA, "c"),
            lambda: list(index.client.search("zebra", agent_id="chat", scope=ADA)),
            index.client.verify_audit,
        ):
            with pytest.raises(FailedPrecondition, match="without the deployment's secret: name data, a folder that holds it"):
                refused()
        assert list(index.client.reads()) == []
    assert list(tmp_path.iterdir()) == []
    with TranscriptIndex.open(postgres) as index:
        assert index.delete_chat(ADA, "d")
        assert texts(index, "zebra") == ["zebra"]


def test_a_database_with_a_folder(postgres: str, tmp_path: Path) -> None:
    with TranscriptIndex.open(postgres, data=tmp_path / "one") as index:
        index.write_chat(record("zebra"))
        assert index.read_chat(ADA, "c") is not None
        assert index.client.verify_audit().records == 1
    assert sorted(path.name for path in (tmp_path / "one").iterdir() if path.name != "lock") == ["audit.head", "index", "secret"]
    with pytest.raises(Unavailable, match="holds no secret: copy that of another node"):
        TranscriptIndex.open(postgres, data=tmp_path / "two")
    (tmp_path / "two" / "secret").write_bytes(bytes(32))
    with pytest.raises(Unavailable, match="its secret is not that of the other nodes"):
        TranscriptIndex.open(postgres, data=tmp_path / "two")
    # Without a folder it is opened all the same, for all that needs no secret.
    with TranscriptIndex.open(postgres) as index:
        assert texts(index, "zebra") == ["zebra"]
    with TranscriptIndex.open(postgres, data=str(tmp_path / "one")) as index:
        assert index.read_chat(ADA, "c") is not None
        assert index.client.verify_audit().intact


def test_a_database_that_is_not_there() -> None:
    with pytest.raises(Unavailable) as raised:
        TranscriptIndex.open("postgresql://ada:lovelace@127.0.0.1:1/none")
    assert "lovelace" not in str(raised.value)


# Several callers


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"folder", "memory"}])
def test_what_one_does_the_other_sees_at_once(places: Callable[[str], Place], kind: str) -> None:
    place = places(kind)
    scope, one = place.scope(), place.index
    assert place.again is not None
    with place.again() as other:
        for at in range(4):
            one.write_chat(record(f"zebra {at}", "c", scope))
            assert texts(other, "zebra", scope) == [f"zebra {at}"]
            other.write_chat(record(f"giraffe {at}", "d", scope))
            assert texts(one, "giraffe", scope) == [f"giraffe {at}"]
        other.delete_chat(scope, "c")
        assert texts(one, "zebra", scope) == []
        assert one.read_chat(scope, "c") is None
        assert one.resolve_source(scope, {"chat_id": "c", "message_id": "c:0"}) is None
        one.delete_chat(scope, "d")
        assert texts(other, "giraffe", scope) == []
        assert list(other.list_chats(scope)) == []
        assert other.index_chat(record("zebra", "c", scope)).outcome == "tombstoned"


def test_many_threads(index: TranscriptIndex, scope: Scope) -> None:
    def work(at: int) -> None:
        for turn in range(5):
            index.write_chat(record(f"zebra number{at}x{turn}", f"c{at}", scope))
            assert texts(index, f"number{at}x{turn}", scope) == [f"zebra number{at}x{turn}"]
        if at % 2:
            index.delete_chat(scope, f"c{at}")
            assert texts(index, f"number{at}x4", scope) == []

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert sorted(hit.chat_id for hit in index.search(scope, "zebra")) == ["c0", "c2", "c4", "c6"]


# The end


@pytest.mark.parametrize("kind", [*EMBEDDED, "local"])
def test_nothing_is_answered_after_the_end(
    kind: str, places: Callable[[str], Place], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "memory":
        index = TranscriptIndex.in_memory()
    elif kind == "folder":
        index = TranscriptIndex.open(tmp_path)
    elif kind == "postgresql":
        index = TranscriptIndex.open(request.getfixturevalue("postgres"))
    else:
        again = places(kind).again
        assert again is not None
        index = again()
    threads = set(threading.enumerate())
    with index:
        assert index.search(ADA, "zebra") == []
    index.close()
    with pytest.raises(Unreachable, match="the client was closed") as raised:
        index.search(ADA, "zebra")
    assert not raised.value.retryable
    if kind in EMBEDDED:
        assert {thread.name for thread in threads - set(threading.enumerate())} >= {"aforesaid", "follower"}


def test_an_embedded_caller_is_the_user_of_the_empty_scope() -> None:
    with TranscriptIndex.in_memory() as index:
        index.write_chat(ChatRecord("c", {}, [{"role": "user", "content": "zebra"}]))
        assert index.client.agent("chat").scope == {}
        (hit,) = index.search({}, "zebra")
        assert hit.scope == {}
        index.client.append("talk", [Turn("user", hit.message.parts)], agent_id="other")
        assert [one.agent_id for one in index.client.agents()] == ["chat", "other"]


def test_what_is_shown_of_an_index() -> None:
    with TranscriptIndex.in_memory() as index:
        assert repr(index) == "TranscriptIndex('embedded')"
    with TranscriptIndex.connect("http://127.0.0.1:9", "aforesaid_token") as index:
        assert repr(index) == "TranscriptIndex('http://127.0.0.1:9')"
        with pytest.raises(Unreachable):
            index.write_chat(record("zebra"))
