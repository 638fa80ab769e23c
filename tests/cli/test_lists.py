"""`aforesaid agents`, `conversations` and `reads` against the service itself: tables, fields in a pipe, JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import uuid4

import pytest

from aforesaid import Agent, Client, Conversation, Source, Text, Turn
from tests.cli.conftest import Command, Ended, Sitting, obeyed, uncoloured

# 2026-03-04 10:22 UTC.
TIME = 1_772_619_720_000_000
MANY = 130


@dataclass(frozen=True, slots=True)
class World:
    """A scope of this file's own: two agents, a sub-agent, conversations, reads."""

    url: str
    scope: str
    ada: str
    bob: str


@pytest.fixture(scope="module")
def world(service_url: str) -> World:
    token = uuid4().hex[:10]
    made = World(service_url, f"team={token}", f"ada-{token}", f"bob-{token}")
    scope = {"team": token}
    with Client(service_url, "") as client:
        ada = Agent(made.ada, "Ada \x1b[5m", "reviewer", scope=scope)
        client.update_agent(ada, ["name", "role", "scope"])
        client.update_agent(Agent(made.bob, archived=True, scope=scope), ["archived", "scope"])
        sub = Agent(f"{made.ada}/sub", "記憶", parent_agent_id=made.ada, scope=scope)
        client.update_agent(sub, ["name", "parent_agent_id", "scope"])
        source = Source("claude-code", "/x/s.jsonl", "/srv/shop")
        turns = (Turn("user", (Text("one"),), "t0", TIME), Turn("user", (Text("two"),), "t1", TIME))
        client.write(Conversation("talk", made.ada, "Talk about\tpages", turns, source), scope=scope)
        for number in range(MANY):
            client.append(f"c{number:03}", [Turn("user", (Text(f"many {number}"),))], agent_id=made.bob, scope=scope)
    with Client(service_url, made.bob) as reader:
        next(reader.search("one", agent_id=made.ada, reason="to see\x07", scope=scope))
    return made


@pytest.fixture
def command(world: World, here: Command) -> Command:
    def run(*arguments: str, environment: dict[str, str] | None = None) -> Ended:
        return here(*arguments, "--scope", world.scope, "--url", world.url, environment=environment)

    return run  # type: ignore[return-value]


def fields(ended: Ended) -> list[list[str]]:
    assert (ended.code, ended.err) == (0, "")
    assert obeyed(re.sub(r"[\t\n]", "", ended.out)) == []
    return [line.split("\t") for line in ended.out.splitlines()]


def entries(ended: Ended) -> list[dict[str, object]]:
    assert (ended.code, ended.err) == (0, "")
    return [json.loads(line) for line in ended.out.splitlines()]


def test_agents_in_a_pipe_are_fields_with_tabs_between(world: World, command: Command) -> None:
    assert fields(command("agents")) == [
        [world.ada, "Ada ␛[5m", "reviewer", "active", "", world.scope],
        [f"{world.ada}/sub", "記憶", "implementer", "active", world.ada, world.scope],
        [world.bob, world.bob, "implementer", "archived", "", world.scope],
    ]


def test_conversations_in_a_pipe_have_the_id_that_show_takes(world: World, command: Command) -> None:
    ((place, *told),) = fields(command("conversations", "--agent", world.ada))
    time = told.pop(4)
    assert told == [world.ada, "talk", "Talk about pages", "2", "claude-code", "/srv/shop", "/x/s.jsonl"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", time)
    assert command("show", place).out.count("  [") == 2


def test_every_page_is_listed_and_a_limit_ends_it(command: Command, world: World) -> None:
    all_of_them = [row[2] for row in fields(command("conversations", "--agent", world.bob))]
    assert sorted(all_of_them) == [f"c{number:03}" for number in range(MANY)]
    for limit in (1, 100, 101):
        assert [row[2] for row in fields(command("conversations", "--agent", world.bob, "--limit", str(limit)))] == all_of_them[
            :limit
        ]


def test_who_read_me(world: World, command: Command) -> None:
    for whose in (["--as", world.ada], ["--agent", world.ada]):
        ((time, *told),) = (row for row in fields(command("reads", *whose)) if row[1] == world.bob)
        assert told[:-1] == [world.bob, "implementer", world.ada, "SearchTranscripts", "yes", "1", "to see␇"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", time)
        assert told[-1]


def test_json_is_an_entry_a_line_as_the_wire_has_it(world: World, command: Command) -> None:
    assert [agent["agentId"] for agent in entries(command("agents", "--json"))] == [world.ada, f"{world.ada}/sub", world.bob]
    (talk,) = entries(command("conversations", "--agent", world.ada, "--json"))
    assert (talk["conversationId"], talk["turnCount"]) == ("talk", 2)
    (read,) = (one for one in entries(command("reads", "--agent", world.ada, "--json")) if "callerAgentId" in one)
    assert (read["turnIds"], read["granted"], read["reason"]) == (["t0"], True, "to see\x07")
    assert len(entries(command("conversations", "--agent", world.bob, "--json"))) == MANY


@pytest.mark.parametrize("name", ["agents", "conversations", "reads"])
def test_nothing_is_1(name: str, piped: Command, world: World) -> None:
    ended = piped(name, "--scope", f"team={uuid4().hex}", "--url", world.url)
    assert ended == Ended(1, "", "")
    assert piped(name, "--scope", f"team={uuid4().hex}", "--url", world.url, "--json") == Ended(1, "", "")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("agents", "No agents here; `aforesaid import PATH` brings transcripts.\n"),
        ("conversations", "No conversations here.\n"),
        ("reads", "No reads are recorded here.\n"),
    ],
)
def test_nothing_is_told_to_who_looks_on(name: str, told: str, terminal: Command, world: World) -> None:
    assert terminal(name, "--scope", f"team={uuid4().hex}", "--url", world.url) == Ended(1, "", told)


def test_an_error_is_2_and_the_services_own_words(command: Command) -> None:
    ended = command("conversations", "--agent", "nobody-is-this")
    assert (ended.code, ended.out) == (2, "")
    assert re.fullmatch(r"aforesaid: agent_id: [^\n]+\n", ended.err)
    assert command("reads", "--limit", "-1").err.startswith("aforesaid: pagination.limit: ")


@pytest.fixture
def narrow(world: World, sitting: Sitting) -> Sitting:
    def run(*arguments: str, keys: Iterable[str] = (), size: tuple[int, int] = (60, 100)) -> Ended:
        return sitting(*arguments, "--scope", world.scope, keys=list(keys), size=size, environment={"AFORESAID_URL": world.url})

    return run  # type: ignore[return-value]


def test_a_terminal_gets_aligned_columns_with_a_heading(world: World, narrow: Sitting) -> None:
    heading, *rows = narrow("agents", keys=[], size=(60, 120)).out.splitlines()
    assert heading.startswith("\x1b[1mAGENT ")
    columns = [re.split(r" {2,}", row) for row in rows]
    assert columns == [
        [world.ada, "Ada ␛[5m", "reviewer", "active", world.scope],
        [f"{world.ada}/sub", "記憶", "implementer", "active", world.ada, world.scope],
        [world.bob, world.bob, "implementer", "archived", world.scope],
    ]


def test_a_narrow_terminal_gets_records(world: World, narrow: Sitting) -> None:
    told = uncoloured(narrow("agents", keys=[], size=(60, 40)).out).split("\n\n")
    assert told[0].splitlines() == [f"agent {world.ada}", "name Ada ␛[5m", "role reviewer", "state active", f"scope {world.scope}"]
    assert len(told) == 3


def test_a_terminal_gets_a_screen_at_a_time_and_asks_for_no_more_than_is_wanted(world: World, narrow: Sitting) -> None:
    ended = narrow("conversations", "--agent", world.bob, keys=[" ", "q"], size=(20, 100))
    assert (ended.code, ended.err) == (0, "")
    told = uncoloured(ended.out).replace("\r", "").splitlines()
    assert len([line for line in told if world.bob in line]) == 2 * 19 - 1
