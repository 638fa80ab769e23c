"""A disk that takes nothing more: what cannot be kept is refused, nothing wrong is shown, and afterwards everything goes on.

The kernel is told to let the server's process write no file past its first 4 KiB, which is what the store, the audit log and the
index meet on a full disk too: writes that fail.
"""

from __future__ import annotations

import json
import resource

import pytest

from scripts.running_server import RunningServer
from tests.api.callers import APPEND, VERIFY, Caller, hits, ok, turn, turn_ids
from tests.api.doors import ConnectDoor
from tests.conftest import StartServer
from tests.faults.serving import readyz, wait_until

TALK, SECRET = "talk", "ossifrage"
FIRST_BYTES = 4_096


def let_grow(running: RunningServer, size: int) -> None:
    """How large the server's files may get from now on."""
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no prlimit here: limits of another process cannot be set")
def test_a_full_disk(start_server: StartServer) -> None:
    running = start_server()
    door = ConnectDoor(running.url)
    user = Caller(door)
    reader = user.agent("reader")
    try:
        user.make("reader", role="reviewer")
        kept = user.say(TALK, *[f"{SECRET} {place}" for place in range(20)], agent_id="read")
        ok(reader.search(SECRET, agentId="read"))
        # The list of `partial` has the engine take all that there is.
        ok(user.search(f"{SECRET} zebra"))

        let_grow(running, FIRST_BYTES)
        for place in range(5):
            text = f"{SECRET} refused{place}x {'filling ' * 2_000}"
            refused = user.call(APPEND, {"agentId": "read", "conversationId": TALK, "turns": [turn(text)]})
            assert refused.code == "unavailable"
            for asked in (reader.search(SECRET, agentId="read"), reader.read(TALK, agentId="read")):
                assert (asked.code, SECRET in json.dumps(asked.body)) == ("unavailable", False), "no record, no text"
            own = user.agent("read").search(SECRET, pagination={"limit": 100})
            assert own.code in {"ok", "unavailable"}
            assert sorted(turn_ids(own)) in (sorted(kept), [])
            assert [one["turnId"] for one in ok(user.agent("read").read(TALK)).body["turns"]] == kept
        assert door.http.get("/healthz").status_code == 200

        let_grow(running, resource.RLIM_INFINITY)
        wait_until(lambda: readyz(door.http)[0] == 200)
        kept += user.say(TALK, f"{SECRET} again", agent_id="read")
        assert sorted(turn_ids(ok(user.search(SECRET, pagination={"limit": 100})))) == sorted(kept)
        assert not any(hits(user.search(f"refused{place}x")) for place in range(5))
        assert hits(ok(reader.search(SECRET, agentId="read")))
        assert ok(user.call(VERIFY, {})).body["intact"]
    finally:
        door.close()
    assert running.stop() == 0

    again = start_server(data=running.data)
    door = ConnectDoor(again.url)
    try:
        wait_until(lambda: readyz(door.http)[0] == 200)
        assert sorted(turn_ids(ok(Caller(door).search(SECRET, pagination={"limit": 100})))) == sorted(kept)
        assert ok(Caller(door).call(VERIFY, {})).body["intact"]
    finally:
        door.close()
    assert sorted(path.name for path in again.data.glob("index*")) == ["index"]


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no prlimit here: limits of another process cannot be set")
def test_a_disk_that_is_full_while_the_index_takes_turns(start_server: StartServer) -> None:
    """The store has what was acknowledged; an index that could not be written is built again once there is room."""
    running = start_server()
    door = ConnectDoor(running.url)
    user = Caller(door)
    try:
        kept: list[str] = []
        for place in range(60):
            if place == 5:
                let_grow(running, 64 * 1024)
            turns = [turn(f"{SECRET} {place} {at} {'x' * at}") for at in range(40)]
            reply = user.call(APPEND, {"agentId": "read", "conversationId": TALK, "turns": turns})
            if reply.code != "ok":
                assert reply.code == "unavailable"
                break
            kept += [one["turnId"] for one in reply.body["turns"]]
            # Has the engine commit, and so meet the limit.
            assert user.search(f"{SECRET} zebra").code in {"ok", "unavailable"}
        else:
            pytest.fail("the limit was never met")
        let_grow(running, resource.RLIM_INFINITY)
        wait_until(lambda: readyz(door.http)[0] == 200 and user.search(SECRET).code == "ok")
        assert sorted(hit["turnId"] for page in user.pages(SECRET) for hit in hits(page)) == sorted(kept)
    finally:
        door.close()
