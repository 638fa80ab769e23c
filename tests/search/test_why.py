"""Why nothing was found, asked of a running service: what `notice` says to try does find something, and nothing that the caller may
not read changes a letter of it. What it says in each case stands in tests/api/rows/notice.toml.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.search.notice import LONGEST_NOTICE
from scripts.running_server import ROOT
from tests.api.callers import Caller, hits, new, ok, turn
from tests.api.doors import Json
from tests.faults.serving import Served, served
from tests.text.effort import examples

TRY = re.compile(
    r"Try (?:it|`(?P<query>[^`]+)`)(?P<without> without [a-z_, ]+?)?(?P<stem> with words WORDS_STEMMED)?"
    r"(?P<all> with match MATCH_ALL_WORDS)?(?P<own> with .*)?\.$"
)
FIELDS = {"conversation_id": "conversationId", "part_kinds": "partKinds"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("why") / "data") as started:
        started.wait_until_ready()
        yield started


# -- worlds

SAID = [
    "deploy",
    "deploys",
    "Deployed",
    "fox",
    "red fox",
    "the",
    "what",
    "t-shirt",
    "shirt t",
    "東京",
    "京",
    "getUserId",
    "user",
    "café",
]
ASKED = [
    *SAID,
    "deplyo",
    "foxx",
    "fxo",
    "rde",
    '"fox red"',
    '"red foxx"',
    "src/main.py",
    "users",
    "quagga",
    "記憶",
    "京東",
    "->",
    "`x`",
]
EXCLUDED = ["-fox", "-deploys", '-"red fox"', "-the"]
ROLES = ["user", "assistant"]
KINDS = ["PART_KIND_TEXT", "PART_KIND_TOOL_CALL", "PART_KIND_REASONING", "PART_KIND_FILE"]
DAYS = ["2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"]


def says(words: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(words), min_size=1, max_size=4).map(" ".join)


@dataclass(frozen=True)
class World:
    """What the caller may read, a few turns in each of two conversations, and what it asks."""

    turns: list[tuple[str, Json]]
    query: str
    fields: Json = field(default_factory=dict)


def turns_of(text: str, role: str, at: str, own: bool) -> Json:
    if own:
        call = {"name": "search_transcripts", "arguments": json.dumps({"query": text}, ensure_ascii=False)}
        return {"role": role, "parts": [{"toolCall": call}], "createdAt": at}
    return turn(text, role=role, createdAt=at)


TURNS = st.builds(turns_of, says(SAID), st.sampled_from(ROLES), st.sampled_from(DAYS), st.sampled_from([False, False, False, True]))
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "roles": st.sampled_from([["user"], ["assistant"], ["tool"]]),
        "since": st.sampled_from(DAYS[1:]),
        "until": st.sampled_from(DAYS[1:]),
        "conversationId": st.sampled_from(["one", "two", "three"]),
        "words": st.just("WORDS_AS_TYPED"),
        "match": st.sampled_from(["MATCH_ANY_WORD", "MATCH_SUBSTRING"]),
        "partKinds": st.lists(st.sampled_from(KINDS), min_size=1, max_size=2),
    },
)
WANTED = says(ASKED).filter(lambda text: set(text.split()) != {"->"})
QUERIES = st.builds(" ".join, st.tuples(WANTED, st.sampled_from(["", "", *EXCLUDED])))
WORLDS = st.builds(World, st.lists(st.tuples(st.sampled_from(["one", "two"]), TURNS), min_size=1, max_size=4), QUERIES, REQUESTS)
OUTSIDE = [*SAID, *ASKED, "deplo", "deplox", "foxy", "red foxx", "fox red", "main py", "src main py", "okapi"]


def write(user: Caller, agent_id: str, world: World) -> None:
    for conversation in ("one", "two"):
        if some := [one for name, one in world.turns if name == conversation]:
            user.say(conversation, turns=some, agent_id=agent_id)


# -- laws


@examples(60)
@given(WORLDS)
def test_what_it_says_to_try_finds_something(service: Served, world: World) -> None:
    user = service.user.within(team=new("team"))
    write(user, "ada", world)
    reply = ok(user.search(world.query, **world.fields))
    notice = reply.body.get("notice", "")
    assert len(notice) <= LONGEST_NOTICE
    assert notice == " ".join(notice.split())
    assert notice or hits(reply), "nothing was found and no notice says why"
    if "Try " in notice:
        query, fields = changed(world, notice)
        found = ok(user.search(query, **fields))
        assert found.body.get("matches"), f"{world.query!r} {world.fields}: {notice}"


def changed(world: World, notice: str) -> tuple[str, Json]:
    """Makes the request that a notice says to try."""
    found = TRY.search(notice)
    assert found, notice
    fields: dict[str, Any] = dict(world.fields)
    for name in (found["without"] or "").removeprefix(" without ").replace(" and ", ", ").split(", "):
        if name:
            del fields[FIELDS.get(name, name)]
    if found["stem"]:
        del fields["words"]
    if found["all"]:
        fields["match"] = "MATCH_ALL_WORDS"
    if found["own"]:
        assert found["own"] == " with include_own_searches"
        fields["includeOwnSearches"] = True
    return found["query"] or world.query, fields


@examples(25)
@given(WORLDS, st.lists(st.tuples(st.sampled_from(["scope", "agent"]), says(OUTSIDE)), min_size=1, max_size=6))
def test_it_tells_nothing_of_what_the_caller_may_not_read(service: Served, world: World, outside: list[tuple[str, str]]) -> None:
    notices = []
    for around in ([], outside):
        user, agent_id = service.user.within(team=new("team")), new("agent")
        write(user, agent_id, world)
        for where, text in around:
            user.within(team=new("team") if where == "scope" else user.scope["team"]).say("one", text, agent_id=new("other"))
        reply = ok(service.user.agent(agent_id).search(world.query, **world.fields))
        notices.append((reply.body.get("notice", ""), len(hits(reply))))
    assert notices[0] == notices[1]


# -- cases that rows cannot show

PAGE = (ROOT / "docs" / "query-syntax.md").read_text("utf-8")
EXAMPLE = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| ([A-Z].+\.) \|$", re.MULTILINE)


@pytest.mark.parametrize(("query", "text", "notice"), EXAMPLE.findall(PAGE))
def test_an_example_of_the_page(service: Served, query: str, text: str, notice: str) -> None:
    user = service.user.within(team=new("team"))
    user.say("one", text, agent_id="ada")
    assert ok(user.search(query)).body["notice"] == notice


def test_no_example_of_the_page_is_left_out() -> None:
    table = PAGE.partition("| query | turn | notice |\n|---|---|---|\n")[2].partition("\n\n")[0]
    assert len(table.splitlines()) == len(EXAMPLE.findall(PAGE)) > 5


def long_query(*words: str) -> str:
    """A query of 500 code points, the words at its end."""
    end = " ".join(words)
    some = " ".join(f"quagga{number}x-okapi{number}y" for number in range(40))
    return f"{some[: 499 - len(end)]} {end}"


@pytest.mark.parametrize(
    "query", [long_query(), long_query('"red fox"', "-deploy"), "-> " * 150 + "quagga", "`" * 200 + " \u202ex\x1b[31m" * 20]
)
def test_it_is_short_whatever_is_asked(service: Served, query: str) -> None:
    user = service.user.within(team=new("team"))
    user.say("one", "deploy a red fox", agent_id="ada")
    reply = ok(user.search(query, roles=["assistant"], since=DAYS[0], project="/srv"))
    assert 0 < len(reply.body["notice"]) <= LONGEST_NOTICE
    assert reply.body["notice"].isprintable()


def test_what_was_deleted_is_not_told_of(service: Served) -> None:
    user = service.user.within(team=new("team"))
    user.say("one", "zebra crossing", agent_id="ada")
    user.say("two", "a fox", agent_id="ada")
    assert "Try `zebra`" in ok(user.search("zebar")).body["notice"]
    ok(user.call("agent.v1.ConversationService/DeleteConversation", {"agentId": "ada", "conversationId": "one"}))
    for query, role in (("zebar", "user"), ("zebra", "assistant"), ('"crossing zebra"', "user")):
        assert "Try" not in ok(user.search(query, roles=[role])).body["notice"]


def test_only_the_first_page_tells_why(service: Served) -> None:
    user = service.user.within(team=new("team"))
    user.say("one", *(f"fox {number}" for number in range(5)), agent_id="ada")
    first, *later = user.pages("fox quagga", limit=2)
    assert first.body["notice"] == "No turn says all of this: `quagga` is said nowhere."
    assert later
    assert [page.body.get("notice", "") for page in later] == [""] * len(later)


def test_a_scope_that_contradicts_itself_is_said(service: Served) -> None:
    team, agent_id = new("team"), new("agent")
    service.user.within(team=team).say("one", "fox", agent_id=agent_id)
    notice = ok(service.user.agent(agent_id).search("fox", scope={"team": new("other")})).body["notice"]
    assert notice == "Nothing was found: the scope of the request contradicts the caller's."


def test_another_agent_without_a_conversation(service: Served) -> None:
    team, agent_id = new("team"), new("agent")
    service.user.within(team=team).say("one", "fox", agent_id="ada")
    service.user.within(team=team).make(agent_id)
    notice = ok(service.user.within(team=team).search("fox", agentId=agent_id)).body["notice"]
    assert notice == f"Nothing was found: {agent_id} has no conversation here."
