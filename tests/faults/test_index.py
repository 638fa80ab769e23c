"""An index that is missing, damaged, of another analyser or of another store: the service starts, says so, builds a new one by
itself and then finds what it found before. Wrong lists are never an answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest

from aforesaid_server.index import Batch
from aforesaid_server.index.tantivy import Damaged, TantivyIndex
from aforesaid_server.ingest.follower import Follower
from aforesaid_server.text.words import Analyser, TurnWords
from scripts.running_server import start
from tests.api.callers import APPEND, DELETE, LIST_CONVERSATIONS, LISTS, WRITE, Caller, hits, ok, turn
from tests.api.doors import ConnectDoor, Reply
from tests.conftest import StartServer
from tests.faults.serving import LONG, readyz, served, wait_until

AGENT, TALK = "ada", "talk"
IN_USE = "in-use"
# Each finds something of its own kind: stems, letters inside words, some of the words, what was rewritten, deleted or moved.
QUERIES = [
    "deploy",
    "eploy",
    "deploy zebra",
    '"deploy the server"',
    "-gone server",
    "gone",
    "before",
    "after",
    "kept",
    "HttpServer",
    "記憶",
]
Found: TypeAlias = dict[str, list[list[str]]]


def write_the_world(user: Caller) -> None:
    """Appends, rewrites, deletes and shortens, so that the log holds every kind of change."""
    user.say(TALK, *[f"deployed the server{'s' * (place % 2)} {place}" for place in range(30)], agent_id=AGENT)
    user.say(TALK, "redeployment of getHttpServer2", "関係のない記憶の話", "a zebra", agent_id=AGENT)
    user.say(TALK, turns=[turn("before it was rewritten", turn_id="edited")], agent_id=AGENT)
    user.say(TALK, turns=[turn("after it was rewritten", turn_id="edited")], agent_id=AGENT)
    user.say("deleted", "gone server", "gone", agent_id=AGENT)
    ok(user.call(DELETE, {"agentId": AGENT, "conversationId": "deleted"}))
    for kept in (6, 3):
        turns = [turn(f"kept {place}", turn_id=f"k{place}") for place in range(kept)]
        ok(user.call(WRITE, {"conversation": {"agentId": AGENT, "conversationId": "shorter", "turns": turns}}))


def everything(user: Caller) -> Found:
    """What each query finds: for each list of all pages the turns in order, with their snippets; those of `partial` by id."""
    found: Found = {}
    for query in QUERIES:
        pages = list(user.pages(query, limit=13))
        for name in LISTS:
            those = [[hit["turnId"], hit["snippet"], str(hit["score"])] for page in pages for hit in page.body.get(name, [])]
            found[f"{query} {name}"] = those if name != "partial" else sorted([one[:2] for one in those])
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Found]:
    """A data folder that was left in good order, and what is found in it."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    with served(folder) as service:
        service.wait_until_ready()
        write_the_world(service.user)
        found = everything(service.user)
    assert all(found[f"{query} {name}"] for query, name in (("deploy", "matches"), ("eploy", "near"), ("deploy zebra", "partial")))
    assert not found["gone matches"]
    return folder, found


@pytest.fixture
def copy(whole: tuple[Path, Found], tmp_path: Path) -> Path:
    """A copy of it that a test may harm."""
    return shutil.copytree(whole[0], tmp_path / "data")


# What is done to the folder `index` while nobody serves it


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def fill(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)


def largest(folder: Path, kind: str) -> Path:
    """The largest file of that kind: none of a segment without words."""
    return max(folder.glob(f"*.{kind}"), key=lambda path: path.stat().st_size)


def drop_file(kind: str) -> Callable[[Path], None]:
    return lambda index: largest(index / "turns", kind).unlink()


def change_a_byte(kind: str) -> Callable[[Path], None]:
    """Of an index that was not closed: a disk, or the end of the process, may have left it so."""

    def change(index: Path) -> None:
        path = largest(index / "turns", kind)
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
        (index / IN_USE).touch()

    return change


def replaced_by_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("no folder")


def a_file_instead(index: Path) -> None:
    shutil.rmtree(index)
    index.write_text("no folder")
    index.with_name("index.building").write_text("no folder either")


DAMAGE: dict[str, Callable[[Path], None]] = {
    "gone": shutil.rmtree,
    "emptied": empty,
    "the turns gone": lambda index: shutil.rmtree(index / "turns"),
    "the vocabulary gone": lambda index: shutil.rmtree(index / "vocabulary"),
    "meta.json of the turns cut": lambda index: cut(index / "turns/meta.json"),
    "meta.json of the vocabulary cut": lambda index: cut(index / "vocabulary/meta.json"),
    "meta.json of the turns empty": lambda index: fill(index / "turns/meta.json", ""),
    "meta.json of the turns gone": lambda index: (index / "turns/meta.json").unlink(),
    "meta.json of the vocabulary gone": lambda index: (index / "vocabulary/meta.json").unlink(),
    "fingerprint gone": lambda index: (index / "fingerprint.json").unlink(),
    "fingerprint cut": lambda index: cut(index / "fingerprint.json"),
    "fingerprint no object": lambda index: fill(index / "fingerprint.json", "7"),
    "fingerprint of another": lambda index: fill(index / "fingerprint.json", '{"fingerprint": "x"}'),
    "words of the vocabulary gone": lambda index: largest(index / "vocabulary", "term").unlink(),
    "a segment cut": lambda index: cut(largest(index / "turns", "idx")),
}
DAMAGE["a file"] = a_file_instead
DAMAGE |= {f"{part} a file": lambda index, part=part: replaced_by_a_file(index / part) for part in ("turns", "vocabulary")}  # type: ignore[misc]
DAMAGE |= {f"a byte of a segment's {kind} changed": change_a_byte(kind) for kind in ("idx", "term", "pos", "fast", "store")}
DAMAGE |= {f"a segment's {kind} gone": drop_file(kind) for kind in ("store", "pos", "term", "fast")}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_index_is_built_anew(damage: str, whole: tuple[Path, Found], copy: Path) -> None:
    index = copy / "index"
    (index / "left-behind").write_text("of the index that was")
    DAMAGE[damage](index)
    with served(copy) as service:
        service.wait_until_ready()
        assert everything(service.user) == whole[1]
        assert not (index / "left-behind").exists(), "the damaged index was mended"
        service.user.say(TALK, "deploy something new", agent_id=AGENT)
        assert ok(service.user.search("deploy")).body["matches"][0]["snippet"] == "⟦deploy⟧ something new"
    assert sorted(path.name for path in copy.glob("index*")) == ["index"]


def test_a_sound_index_is_kept(whole: tuple[Path, Found], copy: Path) -> None:
    """And what an earlier try to build one left behind is removed."""
    (copy / "index/left-behind").write_text("of the index that was")
    shutil.copytree(copy / "index", copy / "index.building")
    with served(copy) as service:
        service.wait_until_ready()
        assert everything(service.user) == whole[1]
        assert (copy / "index/left-behind").exists()
        assert not (copy / "index.building").exists()


@pytest.mark.parametrize("part", ["turns", "vocabulary"])
def test_a_file_where_a_folder_should_be_is_damage(part: str, tmp_path: Path) -> None:
    (tmp_path / part).write_text("no folder")
    with pytest.raises(Damaged):
        TantivyIndex(tmp_path)


def test_an_index_that_was_in_use_is_kept_if_it_is_sound(whole: tuple[Path, Found], copy: Path) -> None:
    """What a commit that did not come to its end left beside is nobody's. A service that ends well leaves no mark."""
    (copy / "index" / IN_USE).touch()
    turns = copy / "index/turns"
    (turns / f"{'0' * 32}.idx").write_bytes(b"half a segm")
    (turns / f"{largest(turns, 'idx').stem}.99999.del").write_bytes(b"half")
    (copy / "index/left-behind").write_text("of the index that was")
    with served(copy) as service:
        service.wait_until_ready()
        assert (copy / "index/left-behind").exists()
        assert (copy / "index" / IN_USE).exists()
        assert everything(service.user) == whole[1]
    assert not (copy / "index" / IN_USE).exists()


def test_what_is_left_of_an_earlier_try_is_no_part_of_the_next(whole: tuple[Path, Found], copy: Path) -> None:
    """It may be of another analyser, or half written."""
    shutil.move(copy / "index", copy / "index.building")
    (copy / "index.building/turns/left-behind").write_text("of the index that was")
    cut(copy / "index.building/turns/meta.json")
    with served(copy) as service:
        service.wait_until_ready()
        assert everything(service.user) == whole[1]
        assert not (copy / "index/turns/left-behind").exists()


def test_an_index_of_another_analyser(whole: tuple[Path, Found], copy: Path) -> None:
    """German words are found by their German stems, and English ones again when the setting goes back."""
    with served(copy, language="german") as service:
        service.wait_until_ready()
        service.user.say("deutsch", "viele Häuser", agent_id="hans")
        assert [hit["turnId"] for hit in hits(service.user.search("Häusern", agentId="hans"))] == ["deutsch:0"]
        assert not service.user.search("deploy", agentId=AGENT).body.get("matches"), "`deployed` has another stem in German"
        assert everything(service.user) != whole[1]
    with served(copy) as service:
        service.wait_until_ready()
        assert not service.user.search("Häusern", agentId="hans").body.get("matches")
        ok(service.user.call(DELETE, {"agentId": "hans", "conversationId": "deutsch"}))
        assert everything(service.user) == whole[1]


def test_an_index_of_other_parts(whole: tuple[Path, Found], copy: Path) -> None:
    """What is searched is part of the fingerprint too."""
    thought = {"role": "assistant", "parts": [{"reasoning": "a thought about wombats"}]}
    with served(copy) as service:
        service.wait_until_ready()
        service.user.say("thoughts", turns=[thought], agent_id="thinker")
        assert not hits(service.user.search("wombats"))
    with served(copy, index_reasoning=True) as service:
        service.wait_until_ready()
        assert [hit["turnId"] for hit in hits(service.user.search("wombats"))] == ["thoughts:0"]
        ok(service.user.call(DELETE, {"agentId": "thinker", "conversationId": "thoughts"}))
        assert everything(service.user) == whole[1]


def test_a_store_that_is_older_than_the_index(whole: tuple[Path, Found], copy: Path) -> None:
    """A store copied back from before has no turn that was written since, and gives their numbers to others."""
    older = copy / "older"
    shutil.copy(copy / "store.sqlite3", older)
    with served(copy) as service:
        service.wait_until_ready()
        service.user.say(TALK, *[f"yesterday {place}" for place in range(20)], agent_id=AGENT)
        assert len(service.user.search("yesterday").body["matches"]) == 20
    shutil.move(older, copy / "store.sqlite3")
    with served(copy) as service:
        service.wait_until_ready()
        assert not hits(service.user.search("yesterday"))
        assert everything(service.user) == whole[1]
        service.user.say(TALK, *[f"tomorrow {place}" for place in range(20)], agent_id=AGENT)
        assert not hits(service.user.search("yesterday"))
        assert len(service.user.search("tomorrow").body["matches"]) == 20


# While it is being built


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Lets the follower read the log once it is open."""
    opened, read = threading.Event(), Follower._next

    def waiting(follower: Follower, after: int) -> Batch | None:
        while not opened.wait(0.01):
            if follower._stopping.is_set():
                return None
        return read(follower, after)

    monkeypatch.setattr(Follower, "_next", waiting)
    yield opened
    opened.set()


def test_while_an_index_is_being_built(whole: tuple[Path, Found], copy: Path, gate: threading.Event) -> None:
    """Searches are `unavailable` and /readyz says why and how far it is; reading and writing go on, and all is found later."""
    shutil.rmtree(copy / "index")
    with served(copy) as service:
        user = service.user
        wait_until(lambda: "rebuilt" in service.readyz()[1].get("reason", ""))
        status, told = service.readyz()
        assert (status, told["ready"], told.get("done", 0)) == (503, False, 0)
        assert told["total"] > 30
        assert user.door.http.get("/healthz").status_code == 200
        reply = user.search("deploy", agentId=AGENT)
        assert (reply.code, "/readyz" in reply.message, hits(reply)) == ("unavailable", True, [])
        # More than may wait for an engine at any other time.
        for batch in range(3):
            user.say(TALK, *[f"meanwhile {batch} {place}" for place in range(500)], agent_id="writer")
        user.say(TALK, turns=[turn("meanwhile again", turn_id=f"{TALK}:0")], agent_id="writer")
        user.say("gone", "meanwhile gone", agent_id="writer")
        ok(user.call(DELETE, {"agentId": "writer", "conversationId": "gone"}))
        assert number_of(user.read(TALK, agentId="writer")) == 1_500
        assert service.readyz()[0] == 503
        gate.set()
        service.wait_until_ready()
        found = [hit["turnId"] for page in user.pages("meanwhile") for hit in hits(page)]
        assert sorted(found) == sorted(f"{TALK}:{place}" for place in range(1_500))
        assert hits(user.search("meanwhile again"))[0]["turnId"] == f"{TALK}:0"
        ok(user.call(DELETE, {"agentId": "writer", "conversationId": TALK}))
        assert everything(user) == whole[1]


def number_of(reply: Reply) -> int:
    return len(ok(reply).body["turns"])


def test_a_service_that_is_stopped_while_it_builds(whole: tuple[Path, Found], copy: Path, gate: threading.Event) -> None:
    shutil.rmtree(copy / "index")
    with served(copy) as service:
        wait_until(lambda: "rebuilt" in service.readyz()[1].get("reason", ""))
    gate.set()
    with served(copy) as service:
        service.wait_until_ready()
        assert everything(service.user) == whole[1]


# Turns whose words cannot be found


def test_a_write_whose_words_cannot_be_found_writes_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract: "Words are found before the store's transaction begins: if they cannot be, nothing is written"."""
    found = Analyser.turn

    def turn_of(analyser: Analyser, text: str) -> TurnWords:
        if "poison" in text:
            raise RecursionError
        return found(analyser, text)

    monkeypatch.setattr(Analyser, "turn", turn_of)
    with served(data) as service:
        service.wait_until_ready()
        user = service.user
        user.say(TALK, "before it", agent_id=AGENT)
        body = {"agentId": AGENT, "conversationId": TALK, "turns": [turn("sound"), turn("poison"), turn("sound")]}
        whole = {"conversation": body | {"conversationId": "whole"}}
        for reply in (user.call(APPEND, body), user.call(APPEND, body | {"conversationId": "new"}), user.call(WRITE, whole)):
            assert reply.code == "internal"
        assert [one["conversationId"] for one in user.all_of(LIST_CONVERSATIONS, "conversations")] == [TALK]
        assert number_of(user.read(TALK, agentId=AGENT)) == 1
        user.say(TALK, "sound", agent_id=AGENT)
        assert [hit["turnId"] for hit in hits(user.search("sound"))] == [f"{TALK}:1"]


# While it serves


@pytest.mark.parametrize("damage", ["gone", "the vocabulary gone", "meta.json of the turns cut", "a segment's store gone"])
def test_an_index_that_is_damaged_while_it_serves(damage: str, whole: tuple[Path, Found], copy: Path) -> None:
    """Each search is right or `unavailable`, each write is kept; in the end everything is found again."""
    with served(copy) as service:
        service.wait_until_ready()
        user = service.user
        DAMAGE[damage](copy / "index")
        written = []
        for place in range(10 if not LONG else 100):
            written += user.say(TALK, f"wombat {place}", agent_id="writer")
            # `partial` has the engine take what is written, and so come upon the damage.
            user.search("wombat zebra", agentId="writer")
            reply = user.search("wombat", agentId="writer", pagination={"limit": 100})
            assert reply.code in {"ok", "unavailable"}, reply.message
            if reply.code == "ok":
                assert sorted(hit["turnId"] for hit in reply.body["matches"]) == sorted(written)
        wait_until(lambda: service.readyz()[0] == 200 and user.search("wombat").code == "ok")
        assert sorted(hit["turnId"] for page in user.pages("wombat") for hit in hits(page)) == sorted(written)
        ok(user.call(DELETE, {"agentId": "writer", "conversationId": TALK}))
        assert everything(user) == whole[1]
    with served(copy) as service:
        service.wait_until_ready()
        assert everything(service.user) == whole[1]


def test_a_process_that_starts_over_a_damaged_index(whole: tuple[Path, Found], copy: Path, start_server: StartServer) -> None:
    """As people meet it: the command starts, serves both ports, and is ready when the index is."""
    cut(copy / "index/turns/meta.json")
    running = start_server(data=copy)
    door = ConnectDoor(running.url)
    try:
        wait_until(lambda: readyz(door.http)[0] == 200)
        assert everything(Caller(door)) == whole[1]
    finally:
        door.close()
    assert running.log is not None
    events = [json.loads(line) for line in running.log.read_text().splitlines() if line.startswith("{")]
    assert "index cannot be opened: rebuilding" in {event["event"] for event in events}
    assert "index rebuilt" in {event["event"] for event in events}


@pytest.mark.skipif(sys.platform == "win32", reason="files that are mapped cannot be cut there")
def test_files_that_are_cut_under_a_serving_process(whole: tuple[Path, Found], copy: Path, tmp_path: Path) -> None:
    """The kernel ends a process that reads a mapped page which is no longer there (SIGBUS): nobody gets a wrong list. Whatever
    supervises the service starts it anew, and it builds the index again.
    """
    running = start(copy, log=tmp_path / "server.log")
    door = ConnectDoor(running.url)
    written: list[str] = []
    try:
        wait_until(lambda: readyz(door.http)[0] == 200)
        user = Caller(door)
        assert everything(user) == whole[1]
        for path in [*(copy / "index/turns").glob("*.*"), *(copy / "index/vocabulary").glob("*.*")]:
            if path.suffix in {".term", ".idx", ".pos", ".fast"}:
                os.truncate(path, 0)
        with contextlib.suppress(httpx.TransportError):
            for place in range(50):
                written += user.say("meanwhile", f"wombat {place}", agent_id="writer")
                for query in QUERIES:
                    reply = user.search(query)
                    assert reply.code == "unavailable" or found_of(reply) == whole[1][f"{query} matches"][:20]
    finally:
        door.close()
        ended = running.process.poll() if running.process.poll() is not None else running.stop()
    assert ended in {0, -signal.SIGBUS, -signal.SIGSEGV}
    with served(copy) as service:
        service.wait_until_ready()
        assert set(written) <= {hit["turnId"] for page in service.user.pages("wombat") for hit in hits(page)}
        if written:
            ok(service.user.call(DELETE, {"agentId": "writer", "conversationId": "meanwhile"}))
        assert everything(service.user) == whole[1]


def found_of(reply: Reply) -> list[list[str]]:
    return [[hit["turnId"], hit["snippet"], str(hit["score"])] for hit in reply.body.get("matches", [])]


# The store's file, while it serves


def moved_away(store: Path) -> Callable[[], Path]:
    away = store.with_name("away")
    store.rename(away)
    return partial(away.rename, store)


def replaced(store: Path) -> Callable[[], Path]:
    away = store.with_name("away")
    shutil.copy(store, store.with_name("another"))
    store.rename(away)
    store.with_name("another").rename(store)
    return partial(away.replace, store)


@pytest.mark.parametrize("harm", [moved_away, replaced])
def test_a_store_that_goes_away_under_it(harm: Callable[[Path], Callable[[], Path]], copy: Path) -> None:
    """Nothing is acknowledged that would be gone after the next start, and nobody makes an empty store where there was one."""
    with served(copy) as service:
        service.wait_until_ready()
        user = service.user
        kept = user.say("kept", "wombat before", agent_id="writer")
        mend = harm(copy / "store.sqlite3")
        for reply in (
            user.call(APPEND, {"agentId": "writer", "conversationId": "kept", "turns": [turn("wombat lost")]}),
            user.search("wombat"),
            user.read("kept", agentId="writer"),
            user.agent("writer").search("wombat"),
        ):
            assert (reply.code, "store.sqlite3" in reply.message) == ("unavailable", True)
        status, told = service.readyz()
        assert (status, "store.sqlite3" in told["reason"]) == (503, True)
        mend()
        wait_until(lambda: service.readyz()[0] == 200)
        kept += user.say("kept", "wombat after", agent_id="writer")
        wait_until(lambda: user.search("wombat").code == "ok")
    with served(copy) as service:
        service.wait_until_ready()
        assert sorted(hit["turnId"] for hit in hits(service.user.search("wombat"))) == sorted(kept)


def test_a_log_of_the_store_that_is_removed_under_it(copy: Path) -> None:
    """SQLite would write on into the removed file; what was acknowledged before is brought into the store at the end."""
    with served(copy) as service:
        service.wait_until_ready()
        kept = service.user.say("kept", "wombat before", agent_id="writer")
        (copy / "store.sqlite3-wal").unlink()
        body = {"agentId": "writer", "conversationId": "kept", "turns": [turn("wombat lost")]}
        reply = service.user.call(APPEND, body)
        assert (reply.code, "store.sqlite3-wal" in reply.message) == ("unavailable", True)
    with served(copy) as service:
        service.wait_until_ready()
        assert [hit["turnId"] for hit in hits(service.user.search("wombat"))] == kept
