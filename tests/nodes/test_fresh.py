"""What one node has acknowledged is found on the others by every search that begins later; what it deleted, nowhere."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.callers import DELETE, WRITE, Caller, hits, new, new_word, number, ok, turn, turn_ids
from tests.api.doors import Json
from tests.faults.serving import wait_until
from tests.nodes.conftest import Node

TALK = "talk"
Both: TypeAlias = tuple[Caller, Caller]


@pytest.fixture
def agents(both: Both) -> Both:
    """One agent, at the one node and at the other."""
    name = new("agent")
    return both[0].agent(name), both[1].agent(name)


def lists_of(word: str) -> list[tuple[str, str]]:
    """Each way in which a turn that says `word` is found: the query, and the list."""
    return [(word, "matches"), (word[1:-1], "near"), (f"{word} {new_word()}", "partial")]


def assert_in_every_list(by: Caller, word: str, turn_id: str) -> None:
    for query, name in lists_of(word):
        assert [hit["turnId"] for hit in ok(by.search(query)).body.get(name, [])] == [turn_id], name
    assert turn_ids(ok(by.search(word[1:-1], match="MATCH_SUBSTRING"))) == [turn_id]
    assert turn_ids(ok(by.search(f"{word} {new_word()}", match="MATCH_ANY_WORD"))) == [turn_id]


def assert_in_no_list(by: Caller, word: str) -> None:
    for query, _ in lists_of(word):
        assert not hits(ok(by.search(query)))
    assert not hits(ok(by.search(word[1:-1], match="MATCH_SUBSTRING")))


def delete(by: Caller, talk: str) -> None:
    ok(by.call(DELETE, {"conversationId": talk}))


def whole(by: Caller, talk: str, *turns: Json, **source: str) -> None:
    ok(by.call(WRITE, {"conversation": {"conversationId": talk, "turns": turns, "source": source}}))


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Does some work again and again in another thread while the block runs."""
    done = threading.Event()

    def again() -> None:
        while not done.is_set():
            work()

    with ThreadPoolExecutor(1) as threads:
        going = threads.submit(again)
        try:
            yield
        finally:
            done.set()
        going.result()


def test_writers_on_both_nodes(agents: Both) -> None:
    """Each write is looked for on the other node as soon as it has returned, while others write to both; the same of each delete
    and of each rewrite.
    """

    def write(place: int) -> list[str]:
        by, other = agents[place % 2], agents[(place + 1) % 2]
        kept = []
        for step in range(3):
            talk, word = new(TALK), new_word()
            (turn_id,) = by.say(talk, f"{word} said")
            assert_in_every_list(other, word, turn_id)
            if step % 3 == 0:
                kept.append(word)
                continue
            if step % 3 == 1:
                whole(by, talk, turn("another", turn_id="x"))
            else:
                delete(by, talk)
            assert_in_no_list(other, word)
        return kept

    with ThreadPoolExecutor(4) as threads:
        words = [word for kept in threads.map(write, range(4)) for word in kept]
    for by in agents:
        assert [len(hits(ok(by.search(word)))) for word in words] == [1] * len(words)


def test_one_turn_rewritten_by_both(agents: Both) -> None:
    """The node that did not write it finds the new text, and the old one nowhere."""
    before = new_word()
    agents[0].say(TALK, turns=[turn("first"), turn(before, turn_id="edited"), turn("last")])
    for place in range(8):
        word = new_word()
        by, other = agents[place % 2], agents[(place + 1) % 2]
        by.say(TALK, turns=[turn(f"{word}{' and more' * (place % 3)}", turn_id="edited")])
        assert_in_every_list(other, word, "edited")
        assert_in_no_list(other, before)
        (hit,) = hits(other.search(word))
        assert (number(hit, "seq"), number(hit, "contentOffset")) == (1, 6)
        before = word


def test_another_role_of_the_same_text(agents: Both) -> None:
    """What a filter looks at is as fresh as the text."""
    word = new_word()
    for place, role in enumerate(["user", "assistant", "tool", "user", "assistant"]):
        whole(agents[place % 2], TALK, turn(word, turn_id="t", role=role))
        for by in agents:
            for asked in ("user", "assistant", "tool"):
                assert turn_ids(by.search(word, roles=[asked])) == (["t"] if asked == role else [])


def test_a_search_tool_that_another_node_told_of(agents: Both) -> None:
    """A result is an own search as soon as its call is known, wherever that one was written: its turn is put again."""
    for place in range(4):
        by, other = agents[place % 2], agents[(place + 1) % 2]
        talk, word = new(TALK), new_word()
        by.say(talk, turns=[{"role": "tool", "parts": [{"toolResult": {"text": word, "callId": "1"}}], "turnId": "result"}])
        assert turn_ids(other.search(word)) == ["result"]
        other.say(talk, turns=[{"role": "assistant", "parts": [{"toolCall": {"name": "search_transcripts", "callId": "1"}}]}])
        for asking in agents:
            assert not hits(ok(asking.search(word)))
            assert turn_ids(asking.search(word, includeOwnSearches=True)) == ["result"]


def test_a_page_token_of_the_other_node(agents: Both) -> None:
    """Each page from another node, while both write: what stays comes once and in order."""
    word = new_word()
    ids = agents[0].say("stays", *[f"{word}{' y' * (place // 3)}" for place in range(30)])
    places = itertools.count()

    def write() -> None:
        agents[next(places) % 2].say("others", f"{word} y y", f"{word}")

    for name, query in (("matches", word), ("partial", f"{word} {new_word()}"), ("matches", word)):
        with meanwhile(write):
            found: list[str] = []
            cursor = ""
            for place in itertools.count():
                page = ok(agents[place % 2].search(query, pagination={"limit": 4, "cursor": cursor})).body
                found += [hit["turnId"] for hit in page.get(name, []) if hit["conversationId"] == "stays"]
                cursor = page.get("nextPageToken", "")
                if not cursor:
                    break
        assert sorted(found) == sorted(set(found)) == sorted(ids)


def test_a_large_write(agents: Both) -> None:
    """More turns at once than ever wait for the engine; all are found on the other node when the write returns."""
    word = new_word()
    ids = agents[0].say(TALK, *[f"{word} {place}" for place in range(2_500)])
    pages = agents[1].pages(word)
    assert sorted(hit["turnId"] for page in pages for hit in page.body.get("matches", [])) == sorted(ids)
    delete(agents[1], TALK)
    assert_in_no_list(agents[0], word)


# Imports


def imported(by: Caller, talk: str, texts: Sequence[str], *, at_once: int = 100) -> None:
    """Brings a conversation into one node, in many messages."""
    first: Json = {"agent": {"agentId": by.agent_id}, "conversation": {"conversationId": talk}}
    pieces = [{"turns": [turn(text) for text in texts[at : at + at_once]]} for at in range(0, len(texts), at_once)]
    assert ok(by.bring([first, *pieces])).body == {"turnsAdded": str(len(texts))}


def test_an_import_is_pending_on_both(agents: Both) -> None:
    """`turns_pending` tells by how much the other node's index is behind; what it does not tell is found. In the end it is 0."""
    word = new_word()
    agents[0].say(TALK, f"{word} before")
    imported(agents[0], "imported", [f"{word} {place}" for place in range(2_000)])
    for by in agents:
        body = ok(by.search(word)).body
        pending = number(body["freshness"], "turnsPending")
        assert pending <= 2_000
        assert ("indexed" in body.get("notice", "")) == bool(pending)
        assert pending or sum(len(page.body.get("matches", [])) for page in by.pages(word)) == 2_001, "what is not pending is found"
    nobody = agents[1].agent(new("nobody"))
    nobody.say(TALK, "something else")
    assert not number(ok(nobody.search(word)).body["freshness"], "turnsPending"), "an import of others is told"
    for by in agents:
        wait_until(lambda by=by: not number(ok(by.search(word)).body["freshness"], "turnsPending"))  # type: ignore[misc]
        assert sum(len(page.body.get("matches", [])) for page in by.pages(word)) == 2_001


def test_what_is_written_during_an_import_is_found_at_once(agents: Both) -> None:
    """On the other node, in every list, though the index is far behind there: also a turn that the import then puts again."""
    filler = [f"filling{place} " * 20 for place in range(2_000)]
    with meanwhile(lambda: imported(agents[0], new("imported"), filler)):
        for place in range(6):
            talk, word = new(TALK), new_word()
            (turn_id,) = agents[0].say(talk, word)
            first: Json = {"agent": {"agentId": agents[0].agent_id}, "conversation": {"conversationId": talk}}
            again = first | {"turns": [turn("more")]}
            again["conversation"] |= {"source": {"project": f"/p{place}"}}
            if place % 2:
                ok(agents[0].bring([again]))
            assert_in_every_list(agents[1], word, turn_id)
    wait_until(lambda: not number(ok(agents[1].search("filling1")).body["freshness"], "turnsPending"))


# Anything in any order

OPERATIONS = st.tuples(st.sampled_from(["say", "say", "edit", "whole", "delete", "import"]), st.integers(0, 1), st.integers(0, 2))


@dataclass
class World:
    """What one agent's conversations should say: the word of each turn, by conversation and turn id."""

    said: dict[str, dict[str, str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(OPERATIONS, min_size=4, max_size=10))
def test_any_writes_on_any_node(both: Both, operations: list[tuple[str, int, int]]) -> None:
    """After each write the other node finds what should be there, no more and no less, and so do both in the end."""
    agent, common = new("agent"), new_word()
    agents = both[0].agent(agent), both[1].agent(agent)
    world = World()
    for place, (what, node, which) in enumerate(operations):
        talk = f"talk{which}"
        if talk in world.gone:
            continue
        by, word = agents[node], f"{common} {new_word()}"
        turns = world.said.setdefault(talk, {})
        match what:
            case "say" | "import" if what == "say" or not turns:
                turns[by.say(talk, word)[0]] = word
            case "edit" if turns:
                turn_id = list(turns)[place % len(turns)]
                by.say(talk, turns=[turn(word, turn_id=turn_id)])
                turns[turn_id] = word
            case "whole":
                kept = dict(itertools.islice(turns.items(), 1, None)) | {f"new{place}": word}
                whole(by, talk, *[turn(text, turn_id=turn_id) for turn_id, text in kept.items()], project=f"/p{place % 2}")
                world.said[talk] = kept
            case "delete" if turns:
                delete(by, talk)
                world.said[talk] = {}
                world.gone.add(talk)
            case "import":  # of turns that are there: they are put again, in another project
                body = {"agent": {"agentId": agent}, "conversation": {"conversationId": talk, "source": {"project": f"/i{place}"}}}
                ok(by.bring([body | {"turns": [turn(text, turn_id=turn_id) for turn_id, text in turns.items()]}]))
        assert_says(agents[1 - node], common, world)
    for by in agents:
        assert_says(by, common, world)


def assert_says(by: Caller, common: str, world: World) -> None:
    expected = sorted((talk, turn_id) for talk, turns in world.said.items() for turn_id in turns)
    found = ok(by.search(common, pagination={"limit": 100})).body.get("matches", [])
    assert sorted((hit["conversationId"], hit["turnId"]) for hit in found) == expected
    for talk, turns in world.said.items():
        for turn_id, text in turns.items():
            (hit,) = ok(by.search(text, conversationId=talk)).body.get("matches", [])
            assert hit["turnId"] == turn_id


def test_three_nodes(pair: tuple[Node, Node], add_node: Callable[[str], Node]) -> None:
    """One that comes later finds what was there; then every search on any of them, of many writers on all."""
    agent = new("agent")
    before = {
        word: pair[place % 2].user.say(new(TALK), word, agent_id=agent) for place, word in enumerate([new_word(), new_word()])
    }
    nodes = [*pair, add_node("three")]
    for word, ids in before.items():
        assert turn_ids(ok(nodes[2].user.search(word))) == ids

    def write(place: int) -> None:
        for step in range(3):
            word = new_word()
            ids = nodes[place % 3].user.say(new(TALK), word, agent_id=agent)
            for node in nodes[(place + step) % 3 :] + nodes[: (place + step) % 3]:
                assert turn_ids(ok(node.user.search(word))) == ids

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(write, range(6)))
