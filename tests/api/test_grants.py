"""Grants: leave for one agent to read another for a time. What they open, what they do not, how soon they end; and the commands.

That a granted read is one in the table of rights, test_access.py walks; here is what the table has no column for.
"""

from __future__ import annotations

import getpass
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.running_server import RunningServer
from tests.api.callers import (
    APPEND,
    DELETE,
    GET_AGENT,
    GET_CONVERSATION,
    LIST_AGENTS,
    LIST_CONVERSATIONS,
    UPDATE_AGENT,
    Caller,
    hits,
    new,
    new_word,
    ok,
    owners,
    turn,
    turn_ids,
)
from tests.api.doors import ConnectDoor
from tests.api.guarded import Owner, pairs

TALK = "talk"


@pytest.fixture(scope="module")
def door(service_url: str) -> Iterator[ConnectDoor]:
    opened = ConnectDoor(service_url)
    yield opened
    opened.close()


@dataclass(frozen=True, slots=True)
class Three:
    """An observer, which may read nobody by its role, and two agents of its scope that said the same four times."""

    owner: Owner
    user: Caller
    reader: Caller
    read: str
    other: str
    word: str

    def grant(self, *arguments: str, until: str = "1d") -> int:
        """Lets the observer read the one."""
        return self.owner.grant(self.reader.agent_id, self.read, *pairs(self.user.scope), *arguments, until=until)

    def revoke(self, number: int) -> None:
        self.owner.does("grants", "revoke", str(number))


@pytest.fixture
def three(door: ConnectDoor, server: RunningServer) -> Three:
    user = Caller(door).within(world=new("world"))
    reader, read, other, word = new("reader"), new("read"), new("other"), new_word()
    user.make(reader, role="observer")
    for agent in (read, other):
        user.say(TALK, *[f"{word} {place}" for place in range(4)], agent_id=agent)
    user.say("own", word, agent_id=reader)
    return Three(Owner(server.data), user, user.agent(reader), read, other, word)


# What a grant opens, and what it does not


def test_it_opens_one_agent_for_reading(three: Three) -> None:
    by, named = three.reader, {"agentId": three.read}
    talk = named | {"conversationId": TALK}
    asks = [(GET_AGENT, named), (GET_CONVERSATION, talk), (LIST_CONVERSATIONS, named)]
    for code in ("permission_denied", "ok"):
        assert by.search(three.word, **named).code == by.read(TALK, **named).code == code
        assert [by.call(method, body).code for method, body in asks] == [code] * 3
        if code != "ok":
            three.grant()
    assert owners(by.search(three.word, **named)) == {three.read}
    assert by.search(three.word, agentId=three.other).code == "permission_denied"
    assert by.search(three.word, agentId=new("nobody")).code == "permission_denied"
    assert [agent["agentId"] for agent in by.all_of(LIST_AGENTS, "agents")] == sorted([by.agent_id, three.read])


def test_it_opens_nothing_for_writing(three: Three) -> None:
    three.grant()
    named = {"agentId": three.read, "conversationId": TALK}
    for method, body in (
        (APPEND, named | {"turns": [turn("x")]}),
        (DELETE, named),
        (UPDATE_AGENT, {"agent": {"agentId": three.read, "name": "x"}, "updateMask": "name"}),
    ):
        assert three.reader.call(method, body).code == "permission_denied"


def test_every_agent_holds_the_granted_ones(three: Three) -> None:
    """ "its own, its sub-agents' and granted ones, no error"; what is not asked for by name stays the caller's own."""
    assert owners(three.reader.search(three.word, everyAgent=True)) == {three.reader.agent_id}
    assert three.user.reads() == []
    three.grant()
    assert owners(three.reader.search(three.word, everyAgent=True)) == {three.reader.agent_id, three.read}
    (record,) = three.user.reads()
    assert (record["targetAgentIds"], record["granted"], len(record["turnIds"])) == ([three.read], True, 4)
    assert owners(three.reader.search(three.word)) == {three.reader.agent_id}
    assert {one["agentId"] for one in three.reader.all_of(LIST_CONVERSATIONS, "conversations")} == {three.reader.agent_id}
    assert len(three.user.reads()) == 1


def test_it_is_for_the_target_alone(three: Three) -> None:
    """Not for its sub-agents, and not for those of the reader."""
    below, beneath = new("below"), new("beneath")
    three.user.make(below, parentAgentId=three.read, role="observer")
    three.user.make(beneath, parentAgentId=three.reader.agent_id, role="observer")
    three.user.say(TALK, three.word, agent_id=below)
    three.grant()
    assert three.reader.search(three.word, agentId=below).code == "permission_denied"
    assert three.user.agent(beneath).search(three.word, agentId=three.read).code == "permission_denied"
    assert three.user.agent(three.read).search(three.word, agentId=three.reader.agent_id).code == "ok", "by its role"
    three.user.make(three.read, role="observer")
    assert three.user.agent(three.read).search(three.word, agentId=three.reader.agent_id).code == "permission_denied"


def test_reads_by_a_grant_are_recorded(three: Three) -> None:
    three.grant()
    assert turn_ids(three.reader.search(three.word, agentId=three.read, reason="pairing"))
    ok(three.reader.read(TALK, agentId=three.read, turnId=f"{TALK}:1"))
    read, searched = three.user.agent(three.read).reads()
    for record in (read, searched):
        assert (record["callerAgentId"], record["granted"], record["role"]) == (three.reader.agent_id, True, "observer")
    assert (read["turnIds"], searched["reason"], len(searched["turnIds"])) == ([f"{TALK}:1"], "pairing", 4)


def test_it_never_crosses_a_scope(three: Three) -> None:
    """Nor does it help where the request's own scope leaves the target out."""
    three.grant()
    reply = three.reader.search(three.word, agentId=three.read, scope={"world": "another"})
    assert reply.code == "permission_denied"
    assert not hits(ok(three.reader.search(three.word, everyAgent=True, scope={"user_id": "ada"})))


def test_one_of_two_agents_of_an_id(three: Three) -> None:
    """The one that is granted is meant; that there is another is not told."""
    twin = new("twin")
    for user_id in ("ada", "bob"):
        three.user.within(**three.user.scope, user_id=user_id).say(TALK, f"{three.word} {user_id}", agent_id=twin)
    scope = dict(three.user.scope) | {"user_id": "ada"}
    three.owner.grant(three.reader.agent_id, twin, *pairs(scope))
    found = ok(three.reader.search(three.word, agentId=twin)).body["matches"]
    assert [hit["snippet"] for hit in found] == [f"⟦{three.word}⟧ ada"]
    assert ok(three.reader.call(GET_AGENT, {"agentId": twin})).body["agent"]["scope"] == scope
    bob = dict(three.user.scope) | {"user_id": "bob"}
    assert three.reader.search(three.word, agentId=twin, scope=bob).code == "permission_denied"


# How it ends


def test_it_is_looked_at_on_every_page(three: Three) -> None:
    number = three.grant()
    for fields in ({"agentId": three.read}, {"everyAgent": True}):
        page = ok(three.reader.search(three.word, pagination={"limit": 1}, **fields))
        again = {"pagination": {"limit": 1, "cursor": page.body["nextPageToken"]}} | fields
        three.revoke(number)
        reply = three.reader.search(three.word, **again)
        if "agentId" in fields:
            assert reply.code == "permission_denied"
        assert three.read not in owners(reply)
        number = three.grant()
        assert hits(ok(three.reader.search(three.word, **again)))


def test_a_list_of_partial_matches_loses_what_is_taken_back(three: Three) -> None:
    number, query = three.grant(), f"{three.word} {new_word()}"
    page = ok(three.reader.search(query, everyAgent=True, pagination={"limit": 1}))
    cursor = page.body["nextPageToken"]
    three.revoke(number)
    seen = set()
    while cursor:
        page = ok(three.reader.search(query, everyAgent=True, pagination={"limit": 1, "cursor": cursor}))
        seen |= owners(page)
        cursor = page.body.get("nextPageToken", "")
    assert three.read not in seen


def test_it_ends_at_its_time(three: Three) -> None:
    number = three.grant()
    assert three.reader.read(TALK, agentId=three.read).code == "ok"
    with closing(sqlite3.connect(three.owner.data / "store.sqlite3", isolation_level=None, timeout=30)) as connection:
        connection.execute("update grants set expires_at = 1 where number = ?", (number,))
    assert three.reader.read(TALK, agentId=three.read).code == "permission_denied"
    assert [one["state"] for one in three.owner.listed("grants") if one["number"] == number] == ["expired"]
    three.grant()
    assert three.reader.read(TALK, agentId=three.read).code == "ok"


# The commands


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    """A data folder with some agents, and no server."""
    made = Owner(tmp_path / "data")
    for agent, scope in (("ada", "ada"), ("bob", "ada"), ("far", "far"), ("twin", "ada"), ("twin", "far")):
        made.token("--agent", agent, scope={"user_id": scope})
    return made


def test_grant_and_list_and_revoke(owner: Owner) -> None:
    told = owner.run("grant", "ada", "--read", "bob", "--until", "2100-01-31", "--why", "pairing", "--by", "carol")
    said = "grant 1: agent ada may read agent bob (scope user_id=ada) until 2100-01-31T00:00:00Z\n"
    assert (told.code, told.out, told.err) == (0, said, "")
    owner.grant("bob", "ada", until="8w")
    second, first = owner.listed("grants")
    assert {name: first[name] for name in ("number", "reader", "read", "until", "why", "by", "scope", "state")} == {
        "number": 1,
        "reader": "ada",
        "read": "bob",
        "until": "2100-01-31T00:00:00Z",
        "why": "pairing",
        "by": "carol",
        "scope": {"user_id": "ada"},
        "state": "good",
    }
    assert second["by"] == getpass.getuser()
    assert owner.does("grants", "revoke", "1", "--by", "dan") == "grant 1 of agent ada to read agent bob is revoked"
    assert "it was revoked already, at 2" in owner.does("grants", "revoke", "1")
    head, *lines = owner.does("grants", "list").splitlines()
    assert owner.does("grants").splitlines() == [head, *lines]
    assert head.split() == ["number", "reader", "read", "scope", "until", "why", "by", "at", "state"]
    assert [line.split()[0] for line in lines] == ["2", "1"]
    assert lines[1].endswith("revoked by dan")
    assert owner.run("grants", "revoke", "7").err == "aforesaid-server: there is no grant 7: `grants list` shows them\n"


def test_ids_that_a_terminal_would_obey_are_shown(owner: Owner) -> None:
    """An agent may choose its id; what is printed of it commands no terminal and stays on its line."""
    odd = "\x1b]0;x\x07\x9b31m\u202e\nodd"
    told = [owner.run("token", "new", "--agent", odd), owner.run("token", "new", "--agent", "reader")]
    told.append(owner.run("grant", "reader", "--read", odd, "--until", "1d", "--why", odd, "--by", odd))
    told += [owner.run(*arguments) for arguments in (("grants", "revoke", "1"), ("grants", "list"), ("grants", "list", "--json"))]
    told += [owner.run("grant", odd, "--read", "nobody", "--until", "1d", "--why", "x"), owner.run("token", "list", "--json")]
    made = next(one["id"] for one in owner.listed("token") if one["name"] == odd)
    told += [owner.run("token", "list"), owner.run("token", "revoke", made)]
    for one in told:
        assert all(char == "\n" or char.isprintable() for char in one.out + one.err), one


def test_the_scope_tells_agents_of_one_id_apart(owner: Owner) -> None:
    owner.grant("ada", "twin")  # the one that ada can see
    assert owner.listed("grants")[0]["scope"] == {"user_id": "ada"}
    told = owner.run("grant", "twin", "--read", "ada", "--until", "1d", "--why", "x")
    assert told.err.splitlines()[0] == "aforesaid-server: 2 agents have the id twin: name the scope"
    owner.grant("twin", "ada", "--scope", "user_id=ada")
    assert owner.listed("grants")[0]["reader"] == "twin"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ada", "--read", "far"], "there is no agent far that ada (scope user_id=ada) could see: no grant crosses a scope"),
        (["ada", "--read", "nobody"], "there is no agent nobody that ada (scope user_id=ada) could see: no grant crosses a scope"),
        (["nobody", "--read", "ada"], "there is no agent nobody in scope none"),
        (["ada", "--read", "bob", "--scope", "user_id=far"], "there is no agent ada in scope user_id=far"),
        (["ada", "--read", "ada"], "ada is ada itself or one of its sub-agents, which it may read anyway"),
        (["ada", "--read", "bob", "--until", "2001-02-03"], "--until 2001-02-03: has passed"),
        (
            ["ada", "--read", "bob", "--until", "x"],
            "--until x: is neither a span such as 90d, 12h or 2w nor a date such as 2030-01-31",
        ),
        (["ada", "--read", "bob", "--why", " "], "--why: 1 to 1000 characters are wanted"),
        (["ada", "--read", "bob", "--why", "x" * 1001], "--why: 1 to 1000 characters are wanted"),
    ],
)
def test_what_grant_refuses(arguments: list[str], told: str, owner: Owner) -> None:
    outcome = owner.run("grant", *(["--until", "1d", "--why", "x"]), *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"aforesaid-server: {told}\n")
    assert owner.listed("grants") == []


@pytest.mark.parametrize("missing", ["--read", "--until", "--why"])
def test_nothing_is_left_out(missing: str, owner: Owner) -> None:
    given = {"--read": "bob", "--until": "1d", "--why": "x"}
    flags = [part for flag, value in given.items() if flag != missing for part in (flag, value)]
    told = owner.run("grant", "ada", *flags)
    assert (told.code, f"Missing option '{missing}'" in told.err) == (2, True)


@pytest.mark.parametrize(
    "command", [["grant", "a", "--read", "b", "--until", "1d", "--why", "x"], ["grants", "list"], ["grants", "revoke", "1"]]
)
def test_without_a_store(command: list[str], tmp_path: Path) -> None:
    told = Owner(tmp_path / "data").run(*command)
    assert (told.code, told.err) == (2, f"aforesaid-server: there is no store at {tmp_path / 'data/store.sqlite3'}\n")
    assert not (tmp_path / "data").exists()
