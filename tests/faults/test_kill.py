"""kill -9 at random moments, as a power cut would come: what was acknowledged is all there afterwards, and nothing is found twice.

The short form kills six times, AFORESAID_LONG=1 a thousand times, AFORESAID_KILLS=N as often as it says, in equal parts while it
writes, imports and builds its index. A failure names its seed; AFORESAID_SEED runs it again, as nearly as timing allows.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx

from scripts.running_server import RunningServer
from tests.api.callers import LIST_CONVERSATIONS, VERIFY, Caller, hits, number, ok, turn, turn_ids
from tests.api.doors import ConnectDoor, Json
from tests.cli.conftest import bare, command_line
from tests.conftest import StartServer
from tests.faults.serving import LONG, readyz, wait_until

KILLS = int(os.environ.get("AFORESAID_KILLS") or (1_000 if LONG else 6))
ROUNDS = max(1, KILLS // 3)
WORD = "planted"


@contextmanager
def asking(running: RunningServer) -> Iterator[Caller]:
    """The user of a server, once searches are answered and nothing of an import is pending."""
    door = ConnectDoor(running.url)
    user = Caller(door)
    try:
        wait_until(lambda: readyz(door.http)[0] == 200)
        wait_until(lambda: not number(ok(user.search(WORD)).body["freshness"], "turnsPending"))
        yield user
    finally:
        door.close()


def kill_soon(running: RunningServer, chance: random.Random) -> None:
    """Kills within a few hundredths of a second: somewhere between two steps of whatever runs."""
    threading.Event().wait(chance.uniform(0, 0.06))
    running.kill()


def wait_for_more(told: set[str], count: int) -> None:
    """Waits until so many more were acknowledged."""
    enough = len(told) + count
    wait_until(lambda: len(told) >= enough)


def until_killed(work: Callable[[], None]) -> threading.Thread:
    """Does the work again and again in a thread, until the server is gone."""

    def run() -> None:
        try:
            while True:
                work()
        except httpx.TransportError:
            pass

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def found_by_conversation(user: Caller, word: str = WORD) -> dict[str, Counter[str]]:
    """How often each turn of each conversation is found."""
    found: dict[str, Counter[str]] = {}
    for page in user.pages(word):
        for hit in page.body.get("matches", []):
            found.setdefault(hit["conversationId"], Counter())[hit["turnId"]] += 1
    return found


def assert_each_once(user: Caller) -> dict[str, Counter[str]]:
    """No turn is found twice, and of each conversation as many are found as the store says that it has."""
    found = found_by_conversation(user)
    assert {count for turns in found.values() for count in turns.values()} <= {1}
    kept = {one["conversationId"]: number(one, "turnCount") for one in user.all_of(LIST_CONVERSATIONS, "conversations")}
    assert {name: len(turns) for name, turns in found.items()} == {name: count for name, count in kept.items() if count}
    return found


# Imports


@dataclass
class Imports:
    """Streams of ImportTurns, each of a conversation of its own, some longer than the batches that are committed at once."""

    chance: random.Random
    sizes: dict[str, int] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def one_more(self, user: Caller) -> None:
        with self.lock:
            name = f"c{len(self.sizes)}"
            self.sizes[name] = self.chance.choice((1, 20, 60, 600))
        reply = self.send(user, name)
        assert number(reply, "turnsAdded") == self.sizes[name]
        self.acknowledged.add(name)

    def send(self, user: Caller, name: str) -> Json:
        turns = [turn(f"{WORD} {name} turn {place}", turn_id=f"{name}-{place}") for place in range(self.sizes[name])]
        first: Json = {"agent": {"agentId": "ada"}, "conversation": {"conversationId": name}}
        rest = [{"turns": turns[at : at + 50]} for at in range(0, len(turns), 50)]
        return ok(user.bring([first, *rest])).body

    def assert_kept(self, user: Caller) -> None:
        found = assert_each_once(user)
        for name in self.acknowledged:
            assert len(found[name]) == self.sizes[name], f"{name} was acknowledged"
        for name, turns in found.items():
            # What was not acknowledged may be there as far as it came: from the beginning, without a gap.
            assert sorted(turns) == sorted(f"{name}-{place}" for place in range(len(turns)))


def test_killed_during_imports(start_server: StartServer, tmp_path: Path, chance: random.Random) -> None:
    data, imports = tmp_path / "data", Imports(chance)
    for _ in range(ROUNDS):
        running = start_server(data=data)
        with asking(running) as user:
            imports.assert_kept(user)
            threads = [until_killed(partial(imports.one_more, user)) for _ in range(2)]
            wait_for_more(imports.acknowledged, chance.randrange(1, 5))
            kill_soon(running, chance)
            for thread in threads:
                thread.join()
    running = start_server(data=data)
    with asking(running) as user:
        imports.assert_kept(user)
        for name, size in imports.sizes.items():
            told = imports.send(user, name)
            kept = number(told, "turnsUnchanged")
            assert kept + number(told, "turnsAdded") == size
            assert kept == size or name not in imports.acknowledged
    imports.acknowledged = set(imports.sizes)
    assert running.stop() == 0
    killed_while_it_builds(start_server, data, imports)


def killed_while_it_builds(start_server: StartServer, data: Path, imports: Imports) -> None:
    """What is left of the half of an index hinders nobody."""
    for _ in range(ROUNDS):
        shutil.rmtree(data / "index", ignore_errors=True)
        kill_soon(start_server(data=data), imports.chance)
    running = start_server(data=data)
    with asking(running) as user:
        imports.assert_kept(user)
    assert sorted(path.name for path in data.glob("index*")) == ["index"]


def test_the_command_goes_on_where_a_killed_service_left_off(start_server: StartServer, tmp_path: Path) -> None:
    """`aforesaid import` says that it was not all; run again it sends the rest, and every message is found once."""
    lines = [[{"role": "user", "content": f"{WORD} line {line} message {n}"} for n in range(25)] for line in range(200)]
    file = tmp_path / "chat.jsonl"
    file.write_text("".join(json.dumps({"messages": messages}) + "\n" for messages in lines), "utf-8")
    running = start_server(data=tmp_path / "data")
    with asking(running) as user:
        process = subprocess.Popen(
            [*command_line(("import", file)), "--url", running.url],
            env=bare(None),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        wait_until(lambda: bool(user.all_of(LIST_CONVERSATIONS, "conversations")) or process.poll() is not None)
        running.kill()
        told, _ = process.communicate(timeout=60)
    assert process.returncode != 0, told.decode()
    running = start_server(data=tmp_path / "data")
    with asking(running) as user:
        assert 0 < sum(len(turns) for turns in assert_each_once(user).values()) < 5_000
    again = subprocess.run(
        [*command_line(("import", file)), "--url", running.url], env=bare(None), capture_output=True, timeout=60, check=False
    )
    assert again.returncode == 0, again.stderr.decode()
    with asking(running) as user:
        assert sorted(map(len, assert_each_once(user).values())) == [25] * 200


# Appends, rewrites and reads on record, while the follower commits and merges


@dataclass
class Said:
    """What writers and a reader were told; each writer has a conversation of its own, and all of them rewrite one turn."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    appended: dict[str, list[str]] = field(default_factory=dict)
    rewrites: int = 0
    rewritten: int = 0
    recorded: set[str] = field(default_factory=set)

    def append(self, user: Caller, name: str) -> None:
        said = self.appended.setdefault(name, [])
        said += user.say(name, f"{WORD} {name} {len(said)}", agent_id="ada")

    def rewrite(self, user: Caller) -> None:
        self.rewrites += 1
        user.say("edited", turns=[turn(f"edition{self.rewrites}x {WORD}", turn_id="edited")], agent_id="ada")
        self.rewritten = self.rewrites

    def read(self, user: Caller) -> None:
        """By somebody else, in a list that has the engine commit first: many small segments, and merges of them."""
        reply = user.agent("reader").search(f"{WORD} zebra", agentId="ada")
        if reply.code == "not_found":  # nobody has written yet
            return
        self.recorded.add(ok(reply).headers["x-request-id"])

    def assert_kept(self, user: Caller) -> None:
        found = assert_each_once(user)
        for name, said in self.appended.items():
            assert set(said) <= set(found[name]), f"{name}: what was acknowledged is missing"
            assert len(found[name]) <= len(said) + ROUNDS, "at most the one in flight at each kill came through unsaid"
            self.appended[name] = sorted(found[name], key=lambda turn_id: int(turn_id.rpartition(":")[2]))
        if self.rewritten:
            editions = [n for n in range(1, self.rewrites + 1) if turn_ids(user.search(f"edition{n}x", conversationId="edited"))]
            assert len(editions) == 1, "one text of the turn is found, and no older one"
            assert self.rewritten <= editions[0] <= self.rewrites
            self.rewrites = self.rewritten = editions[0]
        assert ok(user.call(VERIFY, {})).body["intact"]
        assert self.recorded <= {record["requestId"] for record in user.reads()}, "a read was answered without a record"


def test_killed_during_appends(start_server: StartServer, tmp_path: Path, chance: random.Random) -> None:
    data, said = tmp_path / "data", Said()
    for _ in range(ROUNDS):
        running = start_server(data=data)
        with asking(running) as user:
            user.make("reader", role="reviewer")
            said.assert_kept(user)
            work = [partial(said.append, user, name) for name in ("w1", "w2")]
            threads = [until_killed(one) for one in (*work, partial(said.rewrite, user), partial(said.read, user))]
            wait_for_more(said.recorded, chance.randrange(3, 12))
            kill_soon(running, chance)
            for thread in threads:
                thread.join()
    with asking(start_server(data=data)) as user:
        said.assert_kept(user)
        assert hits(user.search(WORD))
