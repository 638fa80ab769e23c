"""The clock jumps: back by years, to 1970, ahead and back. Nothing that the service promises may hang on it.

Our own clock is turned, not the machine's: every time that the service keeps comes from `time.time_ns`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.callers import LIST_CONVERSATIONS, VERIFY, Caller, hits, ok, turn_ids
from tests.faults.serving import served

YEAR = 365 * 24 * 3_600 * 10**9
# In nanoseconds; each is set before the next thing happens.
CLOCKS = [1_800_000_000 * 10**9, 1_800_000_000 * 10**9 - YEAR, 0, 4_000_000_000 * 10**9, 1_000_000_000 * 10**9]
WORD = "ossifrage"


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets what the service takes for the time; from there it goes on as usual."""
    true = time.time_ns

    def set_to(moment: int) -> None:
        offset = moment - true()
        monkeypatch.setattr(time, "time_ns", lambda: true() + offset)

    return set_to


def test_the_clock_jumps_between_writes_and_pages(tmp_path: Path, set_clock: Callable[[int], None]) -> None:
    with served(tmp_path / "data") as service:
        service.wait_until_ready()
        user, kept = service.user, []
        for place, moment in enumerate(CLOCKS):
            set_clock(moment)
            kept += user.say(f"c{place}", f"{WORD} one", f"{WORD} two", agent_id="ada")
        kept += user.say("c0", f"{WORD} one", f"{WORD} two", agent_id="ada")
        assert_whole(user, kept, set_clock)
    # What was kept under one clock is read under another.
    for moment in CLOCKS:
        set_clock(moment)
        with served(tmp_path / "data") as service:
            service.wait_until_ready()
            assert_whole(service.user, kept, set_clock)


def assert_whole(user: Caller, kept: list[str], set_clock: Callable[[int], None]) -> None:
    """Every turn once, whatever the clock does between two pages; stored later means listed first, by number and not by time."""
    for order in ("ORDER_BEST", "ORDER_NEWEST"):
        found, cursor = [], ""
        for moment in [*CLOCKS, *CLOCKS]:
            set_clock(moment)
            page = ok(user.search(WORD, order=order, pagination={"limit": 3, "cursor": cursor})).body
            found += [hit["turnId"] for hit in page.get("matches", [])]
            cursor = page.get("nextPageToken", "")
            if not cursor:
                break
        assert sorted(found) == sorted(kept), order
        if order == "ORDER_BEST":
            assert found == sorted(kept, key=kept.index, reverse=True)
    assert [turn["turnId"] for turn in ok(user.read("c0", agentId="ada")).body["turns"]] == ["c0:0", "c0:1", "c0:2", "c0:3"]
    listed, cursor = [], ""
    for moment in CLOCKS * 3:
        set_clock(moment)
        page = ok(user.call(LIST_CONVERSATIONS, {"pagination": {"limit": 1, "cursor": cursor}})).body
        listed += [one["conversationId"] for one in page.get("conversations", [])]
        cursor = page.get("nextPageToken", "")
        if not cursor:
            break
    assert sorted(listed) == [f"c{place}" for place in range(len(CLOCKS))]


def test_the_clock_jumps_between_reads_on_record(tmp_path: Path, set_clock: Callable[[int], None]) -> None:
    """The order of the records, and that none is missing, hangs on their numbers."""
    with served(tmp_path / "data") as service:
        service.wait_until_ready()
        user, asked = service.user, []
        user.say("talk", f"{WORD} of ada", agent_id="ada")
        user.make("reader", role="reviewer")
        for moment in CLOCKS:
            set_clock(moment)
            reply = ok(user.agent("reader").search(WORD, agentId="ada"))
            assert hits(reply)
            asked.append(reply.headers["x-request-id"])
        assert [record["requestId"] for record in user.reads()] == asked[::-1]
        assert ok(user.call(VERIFY, {})).body["intact"]
    set_clock(CLOCKS[1])
    with served(tmp_path / "data") as service:
        service.wait_until_ready()
        assert ok(service.user.call(VERIFY, {})).body["intact"]
        assert turn_ids(ok(service.user.search(WORD))) == ["talk:0"]
