"""Own searches through the door: what a write of a call, or its going, makes of results that were written before; the setting.

Which parts are left out of what is in rows/own_searches.toml.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aforesaid_server.access import Call
from tests.api.callers import APPEND, READ, WRITE, Caller, hits, new, new_word, ok, turn
from tests.api.doors import ConnectDoor, Json
from tests.faults.serving import Served, served


@pytest.fixture(scope="module")
def user(service_url: str) -> Iterator[Caller]:
    door = ConnectDoor(service_url)
    yield Caller(door)
    door.close()


@pytest.fixture
def agent(user: Caller) -> Caller:
    """An agent of the test's own."""
    return user.agent(new("agent"))


def call(arguments: str = "", *, name: str = "search_transcripts", turn_id: str = "call", call_id: str = "1") -> Json:
    part = {"toolCall": {"name": name, "arguments": arguments, "callId": call_id}}
    return {"role": "assistant", "parts": [part], "turnId": turn_id}


def result(text: str, *, turn_id: str = "result", call_id: str = "1") -> Json:
    return {"role": "tool", "parts": [{"toolResult": {"text": text, "callId": call_id}}], "turnId": turn_id}


def found(by: Caller, word: str, **fields: object) -> list[str]:
    """The ids of the turns that are found in every list: by the word, by its letters and beside a word that nobody says."""
    lists = {
        "matches": ok(by.search(word, **fields)),
        "near": ok(by.search(word[1:-1], **fields)),
        "partial": ok(by.search(f"{word} {new_word()}", **fields)),
    }
    ids = [sorted(hit["turnId"] for hit in reply.body.get(name, [])) for name, reply in lists.items()]
    assert ids[0] == ids[1] == ids[2]
    by_time = ok(by.search(word, order="ORDER_NEWEST", **fields))
    assert sorted(hit["turnId"] for hit in hits(by_time)) == ids[0]
    return ids[0]


def append(by: Caller, *turns: Json) -> None:
    ok(by.call(APPEND, {"conversationId": "talk", "turns": list(turns)}))


def write(by: Caller, *turns: Json) -> None:
    ok(by.call(WRITE, {"conversation": {"conversationId": "talk", "agentId": by.agent_id, "turns": list(turns)}}))


def test_a_result_follows_its_call(agent: Caller) -> None:
    """The call is written after its result, gets another name, goes, and comes back; each time every list knows at once."""
    word = new_word()
    append(agent, result(f"{word} found"))
    assert found(agent, word) == ["result"]
    append(agent, call())
    assert found(agent, word) == []
    assert found(agent, word, includeOwnSearches=True) == ["result"]
    append(agent, call(name="Bash", arguments="another text"))
    assert found(agent, word) == ["result"]
    append(agent, call(name="x.read_transcript"))
    assert found(agent, word) == []
    write(agent, result(f"{word} found"))
    assert found(agent, word) == ["result"]
    write(agent, result(f"{word} found"), call())
    assert found(agent, word) == []


def test_turns_that_change_places(agent: Caller) -> None:
    """A result means the call of its id that is the last before it, so that the order of turns may change whose it is."""
    word = new_word()
    bash, search, answer = call(name="Bash", turn_id="bash"), call(turn_id="search"), result(f"{word} found")
    write(agent, search, bash, answer)
    assert found(agent, word) == ["result"]
    write(agent, bash, search, answer)
    assert found(agent, word) == []
    write(agent, search, answer, bash)
    assert found(agent, word) == []
    write(agent, answer, bash, search)
    assert found(agent, word) == ["result"]


def test_a_turn_keeps_its_number_and_place(agent: Caller) -> None:
    """That its result turned out to be a search's changes nothing of a turn but where it is found."""
    word = new_word()
    append(agent, result(f"{word} found"), turn(f"{word} said", "said"))
    before = ok(agent.read("talk")).body["turns"][:2]
    digest = {hit["turnId"]: hit["digest"] for hit in hits(ok(agent.search(word)))}
    append(agent, call())
    assert ok(agent.call(READ, {"conversationId": "talk"})).body["turns"][:2] == before
    after = hits(ok(agent.search(word, includeOwnSearches=True)))
    assert {hit["turnId"]: hit["digest"] for hit in after} == digest
    assert [hit["turnId"] for hit in after] == ["said", "result"]


def test_what_is_shown_around_a_hit_is_whole(agent: Caller) -> None:
    """Lists leave own searches out; the turns around a hit are what was said before and after it."""
    word = new_word()
    append(agent, call("sought"), result("found"), turn(word, "said"))
    (hit,) = hits(ok(agent.search(word, around=2)))
    assert [(one["turnId"], one["text"]) for one in hit["before"]] == [("call", "search_transcripts\nsought"), ("result", "found")]


def everywhere(service: Served, word: str) -> list[str]:
    service.wait_until_ready()
    service.house.settle(Call("SearchTranscripts", "test", "test"))  # so that it is the engine that answers
    return found(service.user.agent("a"), word)


def test_the_setting_adds_names(tmp_path: Path) -> None:
    """Another setting makes another index, of the turns that are there."""
    data = tmp_path / "data"
    with served(data) as service:
        service.wait_until_ready()
        append(service.user.agent("a"), call("zebra", name="x_find_memories"), result("a zebra"), turn("the zebra", "said"))
        assert everywhere(service, "zebra") == ["call", "result", "said"]
    with served(data, search_tools=frozenset({"find_memories"})) as service:
        assert everywhere(service, "zebra") == ["said"]
        append(service.user.agent("a"), result("quagga", turn_id="late"), call(name="Bash", turn_id="later", call_id="2"))
        assert found(service.user.agent("a"), "quagga") == everywhere(service, "quagga") == []
    with served(data) as service:
        assert everywhere(service, "zebra") == ["call", "result", "said"]
        assert everywhere(service, "quagga") == ["late"]


def test_an_import_knows_them_too(tmp_path: Path) -> None:
    """Turns that only the follower brings in."""
    with served(tmp_path / "data") as service:
        service.wait_until_ready()
        opening = {"agent": {"agentId": "a"}, "conversation": {"conversationId": "talk", "agentId": "a"}}
        first = [result("early zebra", turn_id="early"), call("a zebra"), result("zebra"), turn("the zebra", "said")]
        then = [result("second", turn_id="second", call_id="2")]
        for turns in (first, then, [call(turn_id="other", call_id="2")]):
            message = opening | {"conversation": opening["conversation"] | {"turns": turns}}
            ok(service.user.bring([message]))
        assert everywhere(service, "zebra") == ["said"]
        assert everywhere(service, "second") == []
