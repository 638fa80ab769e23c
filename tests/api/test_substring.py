"""MATCH_SUBSTRING and `part_kinds` through the door: pages that hold together under writes and restarts, what the token is bound
to, who may look where and what is recorded of it, the bound of what is read for a page. What is found is in rows/substring.toml and
rows/part_kinds.toml.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from aforesaid_server.access import Call
from aforesaid_server.search.substring import MOST_BYTES, MOST_TURNS
from scripts.running_server import ROOT
from tests.api.callers import APPEND, DELETE, WRITE, Caller, hits, new, new_word, ok, turn, turn_ids
from tests.api.doors import ConnectDoor, Json
from tests.faults.serving import served

SUBSTRING = {"match": "MATCH_SUBSTRING"}


@pytest.fixture(scope="module")
def user(service_url: str) -> Iterator[Caller]:
    door = ConnectDoor(service_url)
    yield Caller(door)
    door.close()


@pytest.fixture
def agent(user: Caller) -> Caller:
    """An agent of the test's own."""
    return user.agent(new("agent"))


def found(by: Caller, query: str, limit: int = 100, **fields: object) -> list[str]:
    """The ids of the matches of all pages; nothing stands in the other lists."""
    ids: list[str] = []
    for page in by.pages(query, limit=limit, **SUBSTRING, **fields):
        assert not page.body.get("near")
        assert not page.body.get("partial")
        assert len(page.body.get("matches", [])) <= limit
        ids += [hit["turnId"] for hit in page.body.get("matches", [])]
    return ids


def named(prefix: str, count: int, word: str) -> list[Json]:
    return [turn(f"{place}-{word}-{place}", f"{prefix}{place}") for place in range(count)]


# -- pages


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_while_others_write(limit: int, agent: Caller) -> None:
    """Turns that stay as they were come once each and in their order, whatever is written, rewritten and deleted meanwhile."""
    word = new_word()
    for talk in ("a", "b", "c"):
        agent.say(talk, turns=named(talk, 8, word))
    agent.say("doomed", turns=named("doomed", 3, word))
    kept = [f"{talk}{place}" for talk in ("c", "b", "a") for place in range(8) if (talk, place) != ("b", 3)]
    seen: list[str] = []
    for number, page in enumerate(agent.pages(word, limit=limit, **SUBSTRING)):
        seen += turn_ids(page)
        agent.say(f"new{number}", f"{word} meanwhile")
        if number < 4:  # what is put behind the page would be shown later, page by page for ever
            agent.say("b", f"{word} meanwhile")
        if number == 0:
            ok(agent.call(DELETE, {"agentId": agent.agent_id, "conversationId": "doomed"}))
            agent.say("b", turns=[turn("something else", "b3")])
    assert [one for one in seen if one in kept] == kept
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_pages_while_turns_move(limit: int, agent: Caller) -> None:
    """Turns put before the one that was shown last, and taken away, move the others: none is skipped or comes again."""
    word = new_word()
    turns = named("t", 12, word)
    body = {"conversationId": "talk", "agentId": agent.agent_id}
    ok(agent.call(WRITE, {"conversation": body | {"turns": turns}}))
    seen: list[str] = []
    for number, page in enumerate(agent.pages(word, limit=limit, **SUBSTRING)):
        seen += turn_ids(page)
        before = [turn(f"{word} before {number} {place}", f"before{place}") for place in range(2 if number % 2 else 5)]
        ok(agent.call(WRITE, {"conversation": body | {"turns": before + turns}}))
    assert [one for one in seen if one.startswith("t")] == [f"t{place}" for place in range(12)]


# What was there, of which the first page showed the first three turns, and what is written then: `c*` is `c` with another text.
CHANGES = [
    ("abcdefgh", "x y z a b c d e f g h"),
    ("abcdefgh", "x y z a b c* d e f g h"),
    ("abcdefgh", "c* d e f g h"),
    ("abcdefgh", "d e f g h"),
    ("abcdefgh", "a c d e f g h"),
    ("abcdefgh", "x y a b d e f g h"),
    ("abcdefgh", "b d e f g h"),
    ("abcdefgh", "x a* b* c* e f g h"),
    ("abcdefghijklmnopqrstuvwxyz", "x0 v w x y z"),
    ("abcdefghijklmnopqrstuvwxyz", "e f g h i j k l m n o p q r s t u v w x y z"),
    ("abcdefgh", "a b c* x"),
]


@pytest.mark.parametrize(("first", "then"), CHANGES)
@pytest.mark.parametrize("seen", [1, 3])
def test_the_place_is_found_again(seen: int, first: str, then: str, agent: Caller) -> None:
    """Whatever became of the turn that was shown last: those that stayed are neither skipped nor repeated."""
    word = new_word()

    def write(ids: Iterable[str]) -> None:
        turns = [turn(f"{word} {one}", one.removesuffix("*")) for one in ids]
        ok(agent.call(WRITE, {"conversation": {"conversationId": "talk", "agentId": agent.agent_id, "turns": turns}}))

    write(first)
    pages = agent.pages(word, limit=seen, **SUBSTRING)
    shown = turn_ids(next(pages))
    write(then.split())
    shown += [one for page in pages for one in turn_ids(page)]
    stayed = [one for one in first if one in then.split()]
    assert [one for one in shown if one in stayed] == stayed


def test_a_page_may_have_another_length(agent: Caller) -> None:
    word = new_word()
    agent.say("a", turns=named("a", 3, word))
    agent.say("b", turns=named("b", 3, word))
    first = ok(agent.search(word, pagination={"limit": 2}, **SUBSTRING))
    rest = ok(agent.search(word, pagination={"limit": 50, "cursor": first.body["nextPageToken"]}, **SUBSTRING))
    assert turn_ids(first) + turn_ids(rest) == ["b0", "b1", "b2", "a0", "a1", "a2"]
    assert "nextPageToken" not in rest.body
    assert "notice" not in rest.body


def test_many_turns_of_one_conversation(agent: Caller) -> None:
    """More than are sorted at once; those that hold it lie far apart."""
    word = new_word()
    texts = [f"{word}!" if place % 300 == 0 else f"zq {place}" for place in range(1_200)]
    agent.say("long", turns=[turn(text, f"t{place}") for place, text in enumerate(texts)])
    agent.say("short", f"{word}! too")
    expected = [f"t{place}" for place in range(0, 1_200, 300)]
    assert found(agent, f"{word}!", limit=2)[1:] == expected
    assert len(found(agent, "zq")) == 1_200 - len(expected)
    assert found(agent, "!", limit=1)[1:] == expected


def test_pages_go_on_after_a_restart(tmp_path: Path) -> None:
    """And after a rebuild: the folder of the index is removed meanwhile."""
    with served(tmp_path / "data") as service:
        service.wait_until_ready()
        agent = service.user.agent("a")
        agent.say("one", turns=named("a", 5, "zebra"))
        agent.say("two", turns=named("b", 5, "zebra"))
        first = ok(agent.search("-zebra-", pagination={"limit": 4}, **SUBSTRING))
    for path in sorted((tmp_path / "data" / "index").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with served(tmp_path / "data") as service:
        service.wait_until_ready()
        page = {"limit": 4, "cursor": first.body["nextPageToken"]}
        second = ok(service.user.agent("a").search("-zebra-", pagination=page, **SUBSTRING))
    assert turn_ids(first) + turn_ids(second) == ["b0", "b1", "b2", "b3", "b4", "a0", "a1", "a2"]


def test_the_engine_finds_what_was_fresh(tmp_path: Path) -> None:
    """Found at once, and again by the engine, which knows the letters of the whole turn: also far behind the 256 KiB of words that
    are searched otherwise, and in what an import brought.
    """
    turns = [turn("hen " * 100_000 + "İ Needle-\u0301 end", "long"), turn('the "needle"', "quoted")]
    brought = {"conversationId": "two", "agentId": "a", "turns": [turn("a NEEDLE-\u0301 there", "brought")]}
    asked = {
        "needle-\u0301": ["brought", "long"],
        "\u0307 needle": ["long"],
        '"needle"': ["quoted"],
        "needle": ["brought", "long", "quoted"],
        "E-": ["brought", "long"],
        "needlee": [],
    }
    with served(tmp_path / "data") as service:
        service.wait_until_ready()
        agent = service.user.agent("a")
        agent.say("one", turns=turns)
        fresh = {query: found(agent, query) for query in asked}
        assert fresh == {query: [one for one in ids if one != "brought"] for query, ids in asked.items()}
        ok(service.user.bring([{"agent": {"agentId": "a"}, "conversation": brought}]))
        service.house.settle(Call("SearchTranscripts", "test", "test"))
        assert {query: found(agent, query) for query in asked} == asked


# -- the token


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (SUBSTRING, {}),
        ({}, SUBSTRING),
        (SUBSTRING, {"match": "MATCH_ANY_WORD"}),
        (SUBSTRING, SUBSTRING | {"partKinds": ["PART_KIND_TEXT"]}),
        (SUBSTRING | {"partKinds": ["PART_KIND_TEXT"]}, SUBSTRING),
        ({"partKinds": ["PART_KIND_TEXT"]}, {}),
        ({}, {"partKinds": ["PART_KIND_TEXT"]}),
        ({"partKinds": ["PART_KIND_TEXT"]}, {"partKinds": ["PART_KIND_TEXT", "PART_KIND_FILE"]}),
        (SUBSTRING, SUBSTRING | {"includeOwnSearches": True}),
    ],
)
def test_a_token_is_for_one_request(first: Json, then: Json, agent: Caller) -> None:
    word = new_word()
    agent.say("talk", *[f"{word} {place}" for place in range(3)])
    cursor = ok(agent.search(word, pagination={"limit": 1}, **first)).body["nextPageToken"]
    refused = agent.search(word, pagination={"limit": 1, "cursor": cursor}, **then)
    assert [field for field, _ in refused.violations] == ["pagination.cursor"]
    assert len(turn_ids(ok(agent.search(word, pagination={"limit": 1, "cursor": cursor}, **first)))) == 1


def test_kinds_in_another_order_are_the_same(agent: Caller) -> None:
    word = new_word()
    agent.say("talk", *[f"{word} {place}" for place in range(3)])
    kinds = ["PART_KIND_TEXT", "PART_KIND_TOOL_CALL"]
    cursor = ok(agent.search(word, pagination={"limit": 1}, partKinds=kinds)).body["nextPageToken"]
    ok(agent.search(word, pagination={"limit": 1, "cursor": cursor}, partKinds=[*kinds[::-1], kinds[0]]))


def test_the_query_counts_byte_by_byte(agent: Caller) -> None:
    word = new_word()
    agent.say("talk", *[f"{word} {place}" for place in range(3)])
    cursor = ok(agent.search(word, pagination={"limit": 1}, **SUBSTRING)).body["nextPageToken"]
    for query in (word.upper(), f"{word} ", word[:-1]):
        refused = agent.search(query, pagination={"limit": 1, "cursor": cursor}, **SUBSTRING)
        assert [field for field, _ in refused.violations] == ["pagination.cursor"]


# -- who may look where


def test_of_another_agent_and_the_record(user: Caller) -> None:
    """A user names an agent; an agent without the right is refused, and both are recorded with what they asked."""
    word, target, stranger = new_word(), new("agent"), new("agent")
    user.make(stranger, role="helper")
    user.say("talk", f"a {word}!", "hen", agent_id=target)
    asked: Json = SUBSTRING | {"partKinds": ["PART_KIND_FILE", "PART_KIND_TEXT"], "agentId": target, "reason": "to know"}
    (hit,) = hits(ok(user.search(f"{word}!", **asked)))
    assert user.agent(stranger).search(f"{word}!", **asked).code == "permission_denied"
    refused, granted = user.reads(agentId=target)[:2]
    assert granted["turnIds"] == [hit["turnId"]]
    assert (granted["granted"], refused.get("granted", False), "turnIds" in refused) == (True, False, False)
    for record in (granted, refused):
        filters = json.loads(record["filters"])
        assert (filters["match"], filters["part_kinds"]) == ("MATCH_SUBSTRING", ["PART_KIND_TEXT", "PART_KIND_FILE"])
        assert word not in json.dumps(record)


def test_every_agent(user: Caller) -> None:
    """An agent that may read others finds theirs too, each conversation by its first write, and the record names them."""
    word, reader, first, second = new_word(), new("agent"), new("agent"), new("agent")
    team = user.within(team=new("team"))
    for agent_id in (first, reader, second):
        team.say("talk", f"{word} of {agent_id}", agent_id=agent_id)
    reading = user.agent(reader)
    assert [hit["agentId"] for hit in hits(ok(reading.search(word, **SUBSTRING)))] == [reader]
    every = ok(reading.search(word, everyAgent=True, **SUBSTRING))
    assert [hit["agentId"] for hit in hits(every)] == [second, reader, first]
    assert sorted(team.reads()[0]["targetAgentIds"]) == sorted([first, second])


def test_rights_are_checked_on_every_page(user: Caller) -> None:
    word, reader, target = new_word(), new("agent"), new("agent")
    team = user.within(team=new("team"))
    team.make(reader, role="reviewer")
    team.say("talk", *[f"{word} {place}" for place in range(3)], agent_id=target)
    asked: Json = SUBSTRING | {"agentId": target}
    cursor = ok(user.agent(reader).search(word, pagination={"limit": 1}, **asked)).body["nextPageToken"]
    team.make(reader, role="helper")
    assert user.agent(reader).search(word, pagination={"limit": 1, "cursor": cursor}, **asked).code == "permission_denied"


def test_other_scopes_are_not_looked_at(user: Caller) -> None:
    word = new_word()
    here, there = user.within(team=new("team")), user.within(team=new("team"))
    there.say("talk", f"{word}!", agent_id="ada")
    here.say("talk", "hen", agent_id="ada")
    reply = ok(here.search(f"{word}!", **SUBSTRING))
    assert not hits(reply)
    assert reply.body["notice"] == f"Nothing was found: no turn that was searched holds `{word}!` letter by letter."


def test_a_deleted_conversation(agent: Caller) -> None:
    word = new_word()
    agent.say("a", word)
    agent.say("b", word)
    ok(agent.call(DELETE, {"agentId": agent.agent_id, "conversationId": "b"}))
    assert [hit["conversationId"] for hit in hits(ok(agent.search(word, **SUBSTRING)))] == ["a"]


# -- what the deployment indexes


def test_reasoning_and_system_turns_where_they_are_indexed(tmp_path: Path) -> None:
    reasoned = {"role": "assistant", "turnId": "r", "parts": [{"text": "red"}, {"reasoning": "a zebra?"}, {"text": "hen"}]}
    told = turn("you are a zebra", "s", role="system")
    with served(tmp_path / "data", index_reasoning=True, index_system=True) as service:
        service.wait_until_ready()
        agent = service.user.agent("a")
        ok(agent.call(APPEND, {"conversationId": "talk", "turns": [told, reasoned]}))
        for settled in (False, True):
            if settled:
                service.house.settle(Call("SearchTranscripts", "test", "test"))
            assert found(agent, "a zebra") == ["s", "r"]
            assert found(agent, "red\na zebra?\nhen") == ["r"]
            assert found(agent, "zebra", partKinds=["PART_KIND_REASONING"]) == ["r"]
            only = ok(agent.search("zebra", partKinds=["PART_KIND_REASONING"]))
            assert [(hit["turnId"], hit["snippet"]) for hit in only.body["matches"]] == [("r", "a ⟦zebra⟧?")]
            assert "notice" not in only.body


# -- how much is read


def test_a_page_ends_where_enough_was_read(agent: Caller) -> None:
    """Two letters that the index cannot look up, far behind: pages without hits come with a token and say so, until it is found."""
    agent.say("far", "the qz stands here")
    agent.say("near", turns=[turn(f"nothing {place}") for place in range(MOST_TURNS + 20)])
    pages = list(agent.pages("QZ", match="MATCH_SUBSTRING"))
    assert [len(page.body.get("matches", [])) for page in pages] == [0, 1]
    assert pages[0].body["notice"] == "Not all turns were looked at yet: next_page_token goes on."
    assert "notice" not in pages[1].body
    empty = list(agent.pages("qq", match="MATCH_SUBSTRING"))
    assert [page.body.get("notice", "") for page in empty] == [pages[0].body["notice"], ""]


# -- the tables of docs/query-syntax.md

PAGE = (ROOT / "docs" / "query-syntax.md").read_text("utf-8")
LETTERS = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", PAGE, re.MULTILINE)
OF_KINDS = re.findall(r"^\| `([^`]+)` \| `([A-Z_, ]+)` \| `([^`]+)` \| ([a-z, 0-9]+) \|$", PAGE, re.MULTILINE)
PARTS: dict[str, Callable[[str], Json]] = {
    "text": lambda text: {"text": text},
    "call": lambda text: {"toolCall": {"name": "Bash", "arguments": text}},
    "result": lambda text: {"toolResult": {"text": text}},
}


def rows_of_table(head: str) -> int:
    table = PAGE.partition(f"{head}\n")[2].partition("\n\n")[0]
    return len(table.splitlines()) - 1


def test_no_example_of_the_page_is_left_out() -> None:
    assert rows_of_table("| query | found in | not in |") == len(LETTERS) > 5
    assert rows_of_table("| query | kinds | parts of the turn | list |") == len(OF_KINDS) > 5


@pytest.mark.parametrize(("query", "there", "elsewhere"), LETTERS)
def test_an_example_of_letters(agent: Caller, query: str, there: str, elsewhere: str) -> None:
    agent.say("talk", turns=[turn(there, "there"), turn(elsewhere, "elsewhere")])
    assert found(agent, query) == ["there"]


@pytest.mark.parametrize(("query", "kinds", "parts", "expected"), OF_KINDS)
def test_an_example_of_kinds(agent: Caller, query: str, kinds: str, parts: str, expected: str) -> None:
    said = [PARTS[kind](text) for kind, text in (part.split(": ", 1) for part in parts.split("; "))]
    ok(agent.call(APPEND, {"conversationId": "talk", "turns": [{"role": "assistant", "parts": said}]}))
    reply = ok(agent.search(query, partKinds=[f"PART_KIND_{kind}" for kind in kinds.split(", ")])).body
    name, _, rank = expected.partition(", ")
    assert [one for one in ("matches", "near", "partial") if reply.get(one)] == ([] if name == "none" else [name])
    if rank:
        (hit,) = reply[name]
        level = hit["score"] if name == "matches" else hit["score"] * 4 + 1
        assert rank == f"{'tier' if name == 'matches' else 'step'} {int(level)}"


def test_the_page_tells_how_much_is_read() -> None:
    assert f"{MOST_TURNS:,} turns or {MOST_BYTES // 1_048_576} MiB of text are read at most" in PAGE
