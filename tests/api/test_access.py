"""Who may do what: contract.md's table of rights, walked over every method, caller and target, and the edges of who, asked of a
running service.

The rows below were read off the contract. What is recorded of these reads is test_audit.py's business, but for whether a record is
made at all, which each cell of the table says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import pytest

from aforesaid.agent.v1.agent_service_connect import AgentService
from aforesaid.agent.v1.audit_service_connect import AuditService
from aforesaid.agent.v1.conversation_service_connect import ConversationService
from aforesaid_server.access import RIGHTS as ACCESS_RIGHTS
from scripts.running_server import RunningServer
from tests.api.callers import (
    APPEND,
    COMPILE,
    DELETE,
    GET_AGENT,
    GET_CONVERSATION,
    INDEX,
    LIST_AGENTS,
    LIST_CONVERSATIONS,
    LIST_READS,
    READ,
    RESOLVE,
    SEARCH_TURNS,
    UPDATE_AGENT,
    VERIFY,
    WRITE,
    Caller,
    hits,
    new,
    new_word,
    ok,
    owners,
    turn,
    turn_ids,
)
from tests.api.doors import ConnectDoor, Contract, GrpcDoor, Json, Reply
from tests.api.guarded import Owner, guarded, pairs
from tests.faults.serving import served

TALK = "talk"

# A line for each method and caller: what it answers about each target. `+` after it: a record is made. `.`: there is no such case.
# Names with a slash between have the same line.
#   user, service     those whose scope is that of most agents here
#   reader, plain     agents whose roles may and may not read others (reviewer, observer)
#   guest             another observer, which has a grant to read the agent `granted`
#   leaf              a sub-agent, of `other`, which is the implementer that a first write makes
#   retired           a reviewer that is archived
#   bound             an implementer of a narrower scope than the rest; its sub-agent's sub-agent has a narrower one still
#   stranger          an id that no agent has; where tokens are demanded there is none
#   sub, deep         the caller's sub-agent, and that one's; `other` one in the caller's scope that is neither
#   elsewhere         an agent that the caller's scope does not show; `nobody` an id that no agent has
RIGHTS = """
method                   caller               own       sub      deep     other      granted    elsewhere  nobody

search/read              user/service         .         ok+      ok+      ok+        ok+        unknown+   unknown+
search/read              reader/leaf/retired  ok        ok       ok       ok+        ok+        unknown+   unknown+
search/read              plain                ok        ok       ok       denied+    denied+    denied+    denied+
search/read              guest                ok        ok       ok       denied+    ok+        denied+    denied+
search/read              bound                ok        ok       ok       ok+        .          unknown+   unknown+
search                   stranger             nothing   .        .        denied+    denied+    denied+    denied+
read                     stranger             unknown   .        .        denied+    denied+    denied+    denied+

get_agent                user/service         .         ok       ok       ok         ok         unknown    unknown
get_agent                reader/leaf/retired  ok        ok       ok       ok         ok         unknown    unknown
get_agent                plain                ok        ok       ok       denied     denied     denied     denied
get_agent                guest                ok        ok       ok       denied     ok         denied     denied
get_agent                bound                ok        ok       ok       ok         .          unknown    unknown
get_agent                stranger             unknown   .        .        denied     denied     denied     denied

get_conversation         user/service         .         ok       ok       ok         ok         unknown    unknown
get_conversation         reader/leaf/retired  ok        ok       ok       ok         ok         unknown    unknown
get_conversation         plain                ok        ok       ok       denied     denied     denied     denied
get_conversation         guest                ok        ok       ok       denied     ok         denied     denied
get_conversation         bound                ok        ok       ok       ok         .          unknown    unknown
get_conversation         stranger             unknown   .        .        denied     denied     denied     denied

list_conversations       user/service         .         ok       ok       ok         ok         unknown    unknown
list_conversations       reader/leaf/retired  ok        ok       ok       ok         ok         unknown    unknown
list_conversations       plain                ok        ok       ok       denied     denied     denied     denied
list_conversations       guest                ok        ok       ok       denied     ok         denied     denied
list_conversations       bound                ok        ok       ok       ok         .          unknown    unknown
list_conversations       stranger             unknown   .        .        denied     denied     denied     denied

append/write/import      user/service         .         ok       ok       ok         ok         .          .
append/write/import      reader/leaf/retired  ok        ok       ok       denied     denied     unknown    unknown
append/write/import      plain/guest          ok        ok       ok       denied     denied     unknown    unknown
append/write/import      bound                ok        ok       ok       denied     .          unknown    unknown
append/write/import      stranger             .         .        .        denied     denied     unknown    unknown

index                    user/service         .         ok       ok       ok         ok         .          .
index                    reader/leaf/retired  ok        ok       ok       denied     denied     unknown    unknown
index                    plain/guest          ok        ok       ok       denied     denied     unknown    unknown
index                    bound                ok        ok       ok       denied     .          unknown    unknown
index                    stranger             .         .        .        denied     denied     unknown    unknown

turns/context            user/service         .         ok       ok       ok         ok         nothing    nothing
turns/context            reader/leaf/retired  ok        ok       ok       nothing    nothing    nothing    nothing
turns/context            plain/guest          ok        ok       ok       nothing    nothing    nothing    nothing
turns/context            bound                ok        ok       ok       nothing    .          nothing    nothing
turns/context            stranger             nothing   .        .        nothing    nothing    nothing    nothing

source                   user/service         .         ok       ok       ok         ok         unknown    unknown
source                   reader/leaf/retired  ok        ok       ok       unknown    unknown    unknown    unknown
source                   plain/guest          ok        ok       ok       unknown    unknown    unknown    unknown
source                   bound                ok        ok       ok       unknown    .          unknown    unknown
source                   stranger             unknown   .        .        unknown    unknown    unknown    unknown

delete                   user/service         .         ok       ok       ok         ok         unknown    unknown
delete                   reader/leaf/retired  ok        ok       ok       denied     denied     unknown    unknown
delete                   plain/guest          ok        ok       ok       denied     denied     unknown    unknown
delete                   bound                ok        ok       ok       denied     .          unknown    unknown
delete                   stranger             unknown   .        .        denied     denied     unknown    unknown

update_agent             user/service         .         ok       ok       ok         ok         .          .
update_agent             reader/leaf/retired  ok        denied   denied   denied     denied     unknown    unknown
update_agent             plain/guest          ok        denied   denied   denied     denied     unknown    unknown
update_agent             bound                ok        denied   denied   denied     .          unknown    unknown
update_agent             stranger             .         .        .        denied     denied     unknown    unknown
"""
# What has no target: whom a caller is told of, or whether it may ask at all.
#   all       every agent of its scope, or every read in it; `family` itself and its sub-agents; `itself` reads of it
ASKED_OF_NOBODY = """
method         user/service   reader/leaf/retired/bound   plain    guest            stranger

list_agents    all            all                         family   family+granted   nothing
list_reads     all            itself                      itself   itself           nothing
verify         ok             denied                      denied   denied           denied
"""
BY_METHOD = {
    "SearchTranscripts": "search",
    "ReadTranscript": "read",
    "ListAgents": "list_agents",
    "GetAgent": "get_agent",
    "UpdateAgent": "update_agent",
    "ListConversations": "list_conversations",
    "GetConversation": "get_conversation",
    "AppendTurns": "append",
    "WriteConversation": "write",
    "DeleteConversation": "delete",
    "ImportTurns": "import",
    "IndexConversation": "index",
    "SearchTurns": "turns",
    "ResolveSource": "source",
    "CompileContext": "context",
    "ListReads": "list_reads",
    "VerifyAudit": "verify",
}
CODES = {"denied": "permission_denied", "unknown": "not_found"}

HEAD, *LINES = [line.split() for line in RIGHTS.splitlines() if line]
ROWS = [[method, by, *cells] for methods, many, *cells in LINES for method in methods.split("/") for by in many.split("/")]
TARGETS = HEAD[2:]
CALLERS = ["user", "service", "reader", "plain", "guest", "leaf", "retired", "bound", "stranger"]
AGENTS = CALLERS[2:-1]
_OF_NOBODY = [line.split() for line in ASKED_OF_NOBODY.splitlines() if line]
OF_NOBODY = {
    (line[0], by): cell
    for line in _OF_NOBODY[1:]
    for many, cell in zip(_OF_NOBODY[0][1:], line[1:], strict=True)
    for by in many.split("/")
}


@dataclass(frozen=True, slots=True)
class World:
    """The agents of the table; nobody writes to their conversation `talk` after it is made. `user` sees all there is."""

    user: Caller
    callers: dict[str, Caller]
    targets: dict[str, dict[str, str]]
    word: str
    scope: dict[str, str]

    def all_agents(self) -> set[str]:
        """Every agent of the world's scope."""
        return {self.targets[name][kin] for name in AGENTS for kin in ("own", "sub", "deep", "other")} | {self.granted}

    @property
    def granted(self) -> str:
        """The agent that the guest may read by a grant."""
        return self.targets["guest"]["granted"]

    def family(self, name: str) -> set[str]:
        """The ids of a caller and its sub-agents."""
        return {self.targets[name][kin] for kin in ("own", "sub", "deep")}

    def told_of(self, name: str, whom: str) -> set[str]:
        """The ids of the agents that a cell of the second table names."""
        if whom == "all":
            return self.family("bound") | {self.targets["bound"]["other"]} if name == "bound" else self.all_agents()
        if whom == "nothing":
            return set()
        return self.family(name) | ({self.granted} if whom == "family+granted" else set())


class Naming(Protocol):
    """Makes the caller of a name: the agent of an id, or a user or service, in a scope."""

    def __call__(self, name: str, agent_id: str, scope: dict[str, str]) -> Caller: ...


@pytest.fixture(scope="module")
def door(service_url: str) -> Iterator[ConnectDoor]:
    opened = ConnectDoor(service_url)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def user(door: ConnectDoor) -> Caller:
    """The user, with all agents of the server in its scope."""
    return Caller(door)


@pytest.fixture(scope="module")
def world(user: Caller, server: RunningServer) -> World:
    """In local mode: agents are who they say they are, and the user's scope is the request's."""

    def by(name: str, agent_id: str, scope: dict[str, str]) -> Caller:
        # Whom no agent's scope binds, the request's does.
        return user.agent(agent_id) if name in AGENTS else replace(user, agent_id=agent_id).within(**scope)

    return made(user, Owner(server.data), by)


@pytest.fixture(scope="module")
def world_of_tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Where tokens are demanded: each caller has one, and says nothing else of itself."""
    with guarded(tmp_path_factory.mktemp("tokens") / "data") as guard:

        def by(name: str, agent_id: str, scope: dict[str, str]) -> Caller:
            if name in AGENTS:
                return guard.by("--agent", agent_id, scope=scope)
            return guard.by("--user" if name == "user" else "--service", name, scope=scope)

        yield made(guard.by("--user", "all"), guard.owner, by)


@pytest.fixture(params=["local", "tokens"])
def each_world(request: pytest.FixtureRequest) -> World:
    found: World = request.getfixturevalue("world" if request.param == "local" else "world_of_tokens")
    return found


def made(user: Caller, owner: Owner, by: Naming) -> World:
    """Makes the agents of the table, their conversations, the grant, and the callers."""
    scope, word = {"world": new("world")}, new_word()
    narrow = scope | {"user_id": "ada"}
    ids = {name: new(name) for name in (*AGENTS, "other", "granted", "neighbour", "foreign", "stranger", "nobody")}

    def make(agent_id: str, pairs: dict[str, str], **fields: Any) -> str:
        user.make(agent_id, scope=pairs, **fields)
        user.within(**pairs).say(TALK, f"{word} of {agent_id}", agent_id=agent_id)
        return agent_id

    make(ids["other"], scope)
    make(ids["granted"], scope)
    make(ids["reader"], scope, role="reviewer")
    make(ids["plain"], scope, role="observer")
    make(ids["guest"], scope, role="observer")
    make(ids["leaf"], scope, parentAgentId=ids["other"])
    make(ids["retired"], scope, role="reviewer", archived=True)
    make(ids["bound"], narrow)
    make(ids["neighbour"], narrow)
    make(ids["foreign"], {"world": new("elsewhere")})
    targets = {name: {"sub": ids["reader"], "deep": ids["leaf"], "other": ids["bound"]} for name in ("user", "service")}
    for name in AGENTS:
        own = narrow if name == "bound" else scope
        sub = make(f"{ids[name]}-sub", own, parentAgentId=ids[name])
        deep = make(f"{ids[name]}-deep", own | {"project": "p"} if name == "bound" else own, parentAgentId=sub)
        targets[name] = {"own": ids[name], "sub": sub, "deep": deep, "other": ids["other"]}
    targets["bound"]["other"] = ids["neighbour"]
    targets["stranger"] = {"own": ids["stranger"], "other": ids["other"]}
    for of in targets.values():
        of |= {"granted": ids["granted"], "elsewhere": ids["foreign"], "nobody": ids["nobody"]}
    targets["bound"]["elsewhere"] = ids["other"]  # there for all but those of a narrower scope
    owner.grant(ids["guest"], ids["granted"], *pairs(scope))
    callers = {name: by(name, ids[name], narrow if name == "bound" else scope) for name in AGENTS}
    callers |= {name: by(name, "", scope) for name in ("user", "service")}
    if not user.token:
        callers["stranger"] = by("stranger", ids["stranger"], scope)
    return World(user, callers, targets, word, scope)


def test_the_tables_have_every_method_and_caller() -> None:
    """One that is new in the proto fails here until it stands in a table."""
    methods = {method.name for service in (AgentService, ConversationService, AuditService) for method in service.desc().methods}
    assert methods == set(BY_METHOD) == set(ACCESS_RIGHTS)
    assert {(row[0], row[1]) for row in ROWS} == {(method, by) for method in METHODS for by in CALLERS}
    assert len(ROWS) == len(METHODS) * len(CALLERS)
    assert all(len(row) == len(HEAD) for row in ROWS)
    assert set(OF_NOBODY) == {(method, by) for method in set(BY_METHOD.values()) - set(METHODS) for by in CALLERS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_rights(row: list[str], each_world: World) -> None:
    world = each_world
    method, name = row[:2]
    if name not in world.callers:
        return  # a stranger, where each caller has a token
    by = world.callers[name]
    refused: dict[str, Reply] = {}
    for kin, cell in zip(TARGETS, row[2:], strict=True):
        if cell == ".":
            continue
        target, said = world.targets[name][kin], cell.removesuffix("+")
        expected = CODES.get(said, said)
        before = newest(world.user)
        reply = METHODS[method](world, by, target)
        assert outcome(method, reply) == expected, f"{kin}: {reply.message or reply.body}"
        recorded = newest(world.user) != before
        assert recorded == cell.endswith("+"), f"{kin}: {'a' if recorded else 'no'} record is made"
        if expected == "ok" and method == "search":
            assert owners(reply) == {target}
        if expected != "ok":
            assert world.word not in str(reply.body)
            refused[kin] = anonymous(reply, target)
    if "elsewhere" in refused:
        assert refused["elsewhere"] == refused["nobody"], "tells that there is such an agent"
        if row[-1].startswith("denied"):
            assert refused["other"] == refused["nobody"], "tells that there is such an agent"


def newest(user: Caller) -> str:
    """The request id of the newest record there is."""
    records = ok(user.call(LIST_READS, {"pagination": {"limit": 1}})).body.get("records", [{}])
    return str(records[0].get("requestId", ""))


def outcome(method: str, reply: Reply) -> str:
    """What a cell of the table says; of an import, which answers for each conversation by itself, the code of what was skipped."""
    if method == "import" and reply.body.get("skipped"):
        assert reply.body.keys() == {"skipped"}, "some of it was taken"
        return str(reply.body["skipped"][0]["code"])
    if method == "search" and reply.code == "ok" and not hits(reply):
        return "nothing"
    if method in {"turns", "context"} and reply.code == "ok" and not {"hits", "candidates"} & reply.body.keys():
        return "nothing"
    return reply.code


def anonymous(reply: Reply, target: str) -> Reply:
    """A reply with the id that was asked for taken out, to compare two of them."""
    body = {"skipped": str(reply.body["skipped"]).replace(target, "X")} if "skipped" in reply.body else {}
    return Reply(reply.code, body, reply.message.replace(target, "X"), reply.violations)


# How the table's methods are called on a target. A write that is let through changes nothing that another row looks at.


def searching(world: World, by: Caller, target: str) -> Reply:
    return by.search(world.word, agentId=target)


def reading(_: World, by: Caller, target: str) -> Reply:
    return by.read(TALK, agentId=target)


def getting_agent(_: World, by: Caller, target: str) -> Reply:
    reply = by.call(GET_AGENT, {"agentId": target})
    assert reply.code != "ok" or reply.body["agent"]["agentId"] == target
    return reply


def getting_conversation(_: World, by: Caller, target: str) -> Reply:
    return by.call(GET_CONVERSATION, {"agentId": target, "conversationId": TALK})


def listing_conversations(_: World, by: Caller, target: str) -> Reply:
    reply = by.call(LIST_CONVERSATIONS, {"agentId": target})
    assert {one["agentId"] for one in reply.body.get("conversations", [])} <= {target}
    return reply


def appending(world: World, by: Caller, target: str) -> Reply:
    return kept_or_not(
        world, target, lambda talk: by.call(APPEND, {"agentId": target, "conversationId": talk, "turns": [turn("x")]})
    )


def writing(world: World, by: Caller, target: str) -> Reply:
    def write(talk: str) -> Reply:
        return by.call(WRITE, {"conversation": {"agentId": target, "conversationId": talk, "turns": [turn("x")]}})

    return kept_or_not(world, target, write)


def indexing(world: World, by: Caller, target: str) -> Reply:
    def write(talk: str) -> Reply:
        return by.call(INDEX, {"conversation": {"agentId": target, "conversationId": talk, "turns": [turn("x")]}})

    return kept_or_not(world, target, write)


def searching_turns(world: World, by: Caller, target: str) -> Reply:
    reply = by.call(SEARCH_TURNS, {"query": world.word, "agentIds": [target]})
    assert {hit["agentId"] for hit in reply.body.get("hits", [])} <= {target}
    return reply


def resolving(_: World, by: Caller, target: str) -> Reply:
    reply = by.call(RESOLVE, {"source": {"agentId": target, "conversationId": TALK, "turnId": f"{TALK}:0"}})
    assert reply.code != "ok" or reply.body["agentId"] == target
    return reply


def compiling(world: World, by: Caller, target: str) -> Reply:
    """By a source and by a search."""
    source = {"agentId": target, "conversationId": TALK, "turnId": f"{TALK}:0"}
    reply = by.call(COMPILE, {"sources": [source]})
    found = by.call(COMPILE, {"query": world.word, "agentIds": [target]})
    texts = [[one["text"] for one in some.body.get("candidates", [])] for some in (reply, found)]
    assert texts[0] == texts[1]
    assert texts[0] in ([], [f"user: {world.word} of {target}"])
    return reply


def importing(world: World, by: Caller, target: str) -> Reply:
    def bring(talk: str) -> Reply:
        reply = by.bring([{"agent": {"agentId": target}, "conversation": {"conversationId": talk}, "turns": [turn("x")]}])
        for one in reply.body.get("skipped", []):
            assert (one["agentId"], one["conversationId"], one["turns"]) == (target, talk, "1")
            assert target in one["reason"]
            one["conversationId"] = "made anew"
        return reply

    return kept_or_not(world, target, bring)


def kept_or_not(world: World, target: str, write: Callable[[str], Reply]) -> Reply:
    """Writes to a conversation made anew; it must be there afterwards if and only if the write was let through."""
    talk = new("written")
    reply = write(talk)
    there = world.user.call(GET_CONVERSATION, {"agentId": target, "conversationId": talk})
    assert (there.code == "ok") == (reply.code == "ok" and "skipped" not in reply.body), f"written to {target}?"
    return reply


def deleting(world: World, by: Caller, target: str) -> Reply:
    talk, word = new("deleted"), new_word()
    known = target in world.all_agents()
    if known:
        world.user.say(talk, word, agent_id=target)
    reply = by.call(DELETE, {"agentId": target, "conversationId": talk})
    if known:
        left = 0 if reply.code == "ok" else 1
        assert len(hits(world.user.search(word))) == left, f"deleted of {target}?"
    return reply


def updating(_: World, by: Caller, target: str) -> Reply:
    name = new("name")
    reply = by.call(UPDATE_AGENT, {"agent": {"agentId": target, "name": name}, "updateMask": "name"})
    assert reply.code != "ok" or reply.body["agent"]["name"] == name
    return reply


METHODS = {
    "search": searching,
    "read": reading,
    "get_agent": getting_agent,
    "get_conversation": getting_conversation,
    "list_conversations": listing_conversations,
    "append": appending,
    "write": writing,
    "import": importing,
    "index": indexing,
    "turns": searching_turns,
    "source": resolving,
    "context": compiling,
    "delete": deleting,
    "update_agent": updating,
}


# What the table has no column for


def test_own_and_sub_agents_without_naming_them(each_world: World) -> None:
    """Without `agent_id` an agent searches its own conversations and those of its sub-agents, a user every agent of its scope."""
    world = each_world
    before = newest(world.user)
    for name in AGENTS:
        by, own = world.callers[name], world.targets[name]["own"]
        assert owners(by.search(world.word)) == world.family(name)
        listed = by.all_of(LIST_CONVERSATIONS, "conversations")
        assert {one["agentId"] for one in listed if one["conversationId"] == TALK} == world.family(name)
        assert owners(by.search(world.word, agentId=own)) == {own}, "its own id is its own alone"
        assert ok(by.call(GET_AGENT, {})).body["agent"]["agentId"] == own
        assert ok(by.read(TALK)).body["turns"][0]["parts"] == [{"text": f"{world.word} of {own}"}]
    for name in ("user", "service"):
        found = [hit for page in world.callers[name].pages(world.word) for hit in hits(page)]
        assert {hit["agentId"] for hit in found} == world.all_agents()
    if "stranger" in world.callers:
        assert not hits(world.callers["stranger"].search(world.word))
        assert world.callers["stranger"].all_of(LIST_CONVERSATIONS, "conversations") == []
    assert newest(world.user) == before, "none of this is a read of somebody else"


def test_whom_a_caller_may_list(each_world: World) -> None:
    """An agent lists itself and its sub-agents, and whom a grant names; all, if it may read others."""
    for name, by in each_world.callers.items():
        found = [agent["agentId"] for agent in by.all_of(LIST_AGENTS, "agents")]
        assert found == sorted(each_world.told_of(name, OF_NOBODY["list_agents", name])), name


def test_agents_are_listed_by_id_in_pages(world: World) -> None:
    by, found, cursor = world.callers["user"], [], ""
    for _ in range(len(world.all_agents())):
        page = ok(by.call(LIST_AGENTS, {"pagination": {"limit": 3, "cursor": cursor}})).body
        found += [agent["agentId"] for agent in page["agents"]]
        cursor = page.get("nextPageToken", "")
        if not cursor:
            break
        assert world.callers["reader"].call(LIST_AGENTS, {"pagination": {"cursor": cursor}}).code == "invalid_argument"
    assert found == sorted(world.all_agents())


def test_every_agent(each_world: World) -> None:
    """For an agent all that it may read, on record; without the right its own and its sub-agents', with no record, no error."""
    for name, by in each_world.callers.items():
        before = newest(each_world.user)
        found = {hit["agentId"] for page in by.pages(each_world.word, everyAgent=True) for hit in hits(page)}
        assert found == each_world.told_of(name, OF_NOBODY["list_agents", name]), name
        recorded = name in {"reader", "leaf", "retired", "bound", "guest"}
        assert (newest(each_world.user) != before) == recorded, name


@pytest.mark.parametrize("name", ["user", "reader", "plain", "stranger"])
def test_every_agent_together_with_one(name: str, world: World) -> None:
    before = newest(world.user)
    for target in (world.targets[name]["other"], world.targets[name]["nobody"], world.callers[name].agent_id or "x"):
        reply = world.callers[name].search(world.word, everyAgent=True, agentId=target)
        assert (reply.code, [field for field, _ in reply.violations]) == ("invalid_argument", ["every_agent"])
    assert newest(world.user) == before


def test_who_may_verify_the_audit_log(each_world: World) -> None:
    for name, by in each_world.callers.items():
        reply = replace(by, scope={}).call(VERIFY, {})
        cell = OF_NOBODY["verify", name]
        assert reply.code == CODES.get(cell, cell), name


def test_who_may_ask_who_read_whom(each_world: World) -> None:
    """An agent sees reads of itself, a user all reads; `agent_id` is a filter on targets, never not_found."""
    world = each_world
    user, plain, reader = world.callers["user"], world.callers["plain"], world.callers["reader"]
    read, other = world.targets["reader"]["own"], world.targets["plain"]["other"]
    ok(world.callers["leaf"].search(world.word, agentId=read))
    assert plain.search(world.word, agentId=read).code == "permission_denied"
    mine = reader.reads()
    assert [(one["callerAgentId"], one.get("granted", False)) for one in mine[:2]] == [
        (world.targets["plain"]["own"], False),
        (world.targets["leaf"]["own"], True),
    ]
    for name, by in world.callers.items():
        listed, cell = by.reads(), OF_NOBODY["list_reads", name]
        if cell == "all":
            assert [one for one in listed if read in one["targetAgentIds"]] == by.reads(agentId=read) != []
            assert {one["requestId"] for one in mine} <= {one["requestId"] for one in listed}
        if cell == "itself":
            assert all(world.targets[name]["own"] in one["targetAgentIds"] for one in listed), name
        if cell == "nothing":
            assert listed == []
    assert mine == reader.reads(agentId=read)
    assert [one["requestId"] for one in mine] == [one["requestId"] for one in user.reads(agentId=read)]
    for by, target in ((plain, read), (plain, other), (plain, new("nobody"))):
        assert by.reads(agentId=target) == [], "reads of others are not told to agents"
    assert user.reads(agentId=new("nobody")) == []


def test_a_user_names_the_agent(user: Caller) -> None:
    """A user has no conversations of its own: what needs one agent must say which."""
    asks: list[tuple[str, Json, str]] = [
        (READ, {"conversationId": TALK}, "agent_id"),
        (GET_AGENT, {}, "agent_id"),
        (GET_CONVERSATION, {"conversationId": TALK}, "agent_id"),
        (APPEND, {"conversationId": TALK, "turns": [turn("x")]}, "agent_id"),
        (DELETE, {"conversationId": TALK}, "agent_id"),
        (WRITE, {"conversation": {"conversationId": TALK}}, "conversation.agent_id"),
        (UPDATE_AGENT, {"agent": {"name": "x"}, "updateMask": "name"}, "agent.agent_id"),
    ]
    for method, body, field in asks:
        reply = user.call(method, body)
        assert (reply.code, [name for name, _ in reply.violations]) == ("invalid_argument", [field]), method


def test_rights_are_checked_anew_on_every_page(world: World) -> None:
    """A token is "passed back ... by the same caller, whose rights are checked anew on every page"."""
    user, agent, other, word = world.user.within(**world.scope), new("turncoat"), new("other"), new_word()
    user.make(agent, role="reviewer")
    user.say(TALK, *[f"{word} {place}" for place in range(4)], agent_id=other)
    by = user.agent(agent)
    page = ok(by.search(word, agentId=other, pagination={"limit": 1}))
    again = {"agentId": other, "pagination": {"limit": 1, "cursor": page.body["nextPageToken"]}}
    user.make(agent, role="observer")
    reply = by.search(word, **again)
    assert reply.code == "permission_denied"
    assert word not in str(reply.body)
    assert (user.reads(agentId=other)[0].get("granted", False), user.reads(agentId=other)[0]["laterPage"]) == (False, True)
    user.make(agent, role="orchestrator")
    assert turn_ids(ok(by.search(word, **again))) == [f"{TALK}:2"]
    neighbour = world.callers["reader"]
    for thief in (neighbour, user, Caller(user.door)):
        reply = thief.search(word, **again)
        assert (reply.code, [field for field, _ in reply.violations]) == ("invalid_argument", ["pagination.cursor"])


def test_a_page_of_every_agent_after_the_right_is_gone(world: World) -> None:
    """What the list of `partial` was fixed with is judged anew too."""
    user, agent, other = world.user.within(**world.scope), new("turncoat"), new("other")
    one, two = new_word(), new_word()
    user.make(agent)
    user.say(TALK, *[f"{one} {place}" for place in range(3)], agent_id=other)
    user.say(TALK, *[f"{two} {place}" for place in range(3)], agent_id=agent)
    by = user.agent(agent)
    page = ok(by.search(f"{one} {two}", everyAgent=True, pagination={"limit": 1}))
    cursor = page.body["nextPageToken"]
    user.make(agent, role="observer")
    seen = set()
    while cursor:
        page = ok(by.search(f"{one} {two}", everyAgent=True, pagination={"limit": 1, "cursor": cursor}))
        seen |= owners(page)
        cursor = page.body.get("nextPageToken", "")
    assert seen <= {agent}


# Scopes


@pytest.mark.parametrize("name", ["reader", "plain", "bound"])
def test_a_scope_that_contradicts_the_callers_sees_nothing(name: str, world: World) -> None:
    """Such a scope "sees nothing: empty lists, not_found where an `agent_id` is given"."""
    by = world.callers[name].within(world="another")
    reply = ok(by.search(world.word))
    assert not hits(reply)
    assert "scope" in reply.body["notice"]
    assert not hits(ok(by.search(world.word, everyAgent=True)))
    assert not hits(ok(by.search(world.word, match="MATCH_ANY_WORD")))
    assert by.all_of(LIST_AGENTS, "agents") == by.all_of(LIST_CONVERSATIONS, "conversations") == by.reads() == []
    for target in (by.agent_id, world.targets[name]["sub"], world.targets[name]["other"], world.targets[name]["nobody"]):
        own = target in world.family(name)
        refused = "permission_denied" if name == "plain" and not own else "not_found"
        for method in ("search", "read", "get_agent", "get_conversation", "list_conversations"):
            assert METHODS[method](world, by, target).code == refused, (method, target)
        for method in ("append", "write", "delete", "update_agent"):
            assert METHODS[method](world, by, target).code == "not_found", (method, target)
        assert outcome("import", importing(world, by, target)) == "not_found"


def test_a_scope_narrows(world: World) -> None:
    """What is left is what lies in both scopes, the caller's own included."""
    bound = world.callers["bound"].agent_id
    seen = world.family("bound") | {world.targets["bound"]["other"]}
    for name in ("user", "reader"):
        by = world.callers[name].within(**world.scope, user_id="ada")
        assert owners(ok(by.search(world.word, everyAgent=True))) == seen
        assert {agent["agentId"] for agent in by.all_of(LIST_AGENTS, "agents")} == seen
        assert METHODS["search"](world, by, bound).code == "ok"
    deep = world.callers["bound"].within(project="p")
    assert owners(ok(deep.search(world.word))) == {world.targets["bound"]["deep"]}
    assert {one["agentId"] for one in deep.all_of(LIST_CONVERSATIONS, "conversations")} == {world.targets["bound"]["deep"]}


def test_a_scope_that_leaves_the_caller_itself_out(world: World) -> None:
    """A narrower scope than the caller's own shows it nothing of its own: the records are not in it."""
    by = world.callers["reader"].within(user_id="ada")
    own = by.agent_id
    assert not hits(ok(by.search(world.word)))
    for method in (
        "search",
        "read",
        "get_agent",
        "get_conversation",
        "list_conversations",
        "append",
        "write",
        "delete",
        "update_agent",
    ):
        assert METHODS[method](world, by, own).code == "not_found", method
    assert by.read(TALK).code == by.call(GET_AGENT, {}).code == "not_found"
    ok(world.user.search(world.word, agentId=own))
    assert world.callers["reader"].reads()
    assert by.reads() == []
    assert outcome("import", importing(world, by, own)) == "not_found"
    assert owners(ok(by.search(world.word, agentId=world.callers["bound"].agent_id))) == {world.callers["bound"].agent_id}


def test_a_write_with_a_scope_makes_the_agent_in_it(user: Caller) -> None:
    """An unknown agent is made by the first write: "name = id, role implementer, the caller's scope and the request's"."""
    scope = {"world": new("world"), "user_id": "ada"}
    by = user.within(**scope)
    ids = [new(prefix) for prefix in ("append", "write", "import")]
    by.say(TALK, "x", agent_id=ids[0])
    ok(by.call(WRITE, {"conversation": {"agentId": ids[1], "conversationId": TALK, "turns": [turn("x")]}}))
    ok(by.bring([{"agent": {"agentId": ids[2]}, "conversation": {"conversationId": TALK}, "turns": [turn("x")]}]))
    made = {agent["agentId"]: agent for agent in by.all_of(LIST_AGENTS, "agents")}
    assert made == {one: {"agentId": one, "name": one, "role": "implementer", "scope": scope} for one in ids}


def test_the_scope_of_an_imported_agent(user: Caller) -> None:
    """An import may name it with the agent as well as for the whole request; the two may not contradict each other."""
    world, agent = {"world": new("world")}, new("agent")
    named: Json = {"agentId": agent, "name": "Ada", "role": "reviewer", "scope": {"user_id": "ada"}}
    message: Json = {"agent": named, "conversation": {"conversationId": TALK}, "turns": [turn("x")]}
    ok(user.bring([message | {"scope": world}]))
    made = named | {"scope": world | {"user_id": "ada"}}
    assert user.all_of(LIST_AGENTS, "agents", scope=world) == [made]
    assert ok(user.bring([message])).body == {"turnsAdded": "1"}, "the same agent again"
    assert user.all_of(LIST_AGENTS, "agents", scope=world) == [made]
    reply = user.bring([message | {"scope": {"user_id": "bob"}}])
    assert (reply.code, reply.message) == ("invalid_argument", "agent.scope: contradicts the scope of the request")


def test_an_agent_imports_its_new_sub_agents(user: Caller) -> None:
    """ "import: its own and its sub-agents'": the parent that it names is itself or its own; nobody else's can be made so."""
    parent, other, child, grandchild = new("parent"), new("other"), new("child"), new("grandchild")
    for agent in (parent, other):
        user.say(TALK, "x", agent_id=agent)
    by = user.agent(parent)

    def bring(agent: str, under: str) -> Json:
        named = {"agentId": agent, "parentAgentId": under, "role": "orchestrator"}
        return ok(by.bring([{"agent": named, "conversation": {"conversationId": TALK}, "turns": [turn("x")]}])).body

    assert bring(child, parent) == bring(grandchild, child) == {"turnsAdded": "1"}
    made = {agent["agentId"]: (agent.get("parentAgentId"), agent["role"]) for agent in user.all_of(LIST_AGENTS, "agents")}
    assert (made[child], made[grandchild]) == ((parent, "implementer"), (child, "implementer")), "it gives no roles"
    assert [left["code"] for left in bring(new("foreign"), other)["skipped"]] == ["not_found"]
    assert [left["code"] for left in bring(other, parent)["skipped"]] == ["permission_denied"]


def test_an_import_reaches_no_other_agent_of_the_callers_id(tmp_path: Path) -> None:
    """One of the same id in a narrower scope is somebody else, whether it is the target or the parent of a new agent."""
    ada, at_work = {"user_id": "ada"}, {"user_id": "ada", "project": "shop"}
    with guarded(tmp_path / "data") as guard:
        wide, narrow = (guard.by("--agent", "twin", "--role", "observer", scope=scope) for scope in (ada, at_work))
        narrow.say(TALK, turns=[turn("as it was", "t")])

        def bring(agent_id: str) -> Json:
            named = {"agentId": agent_id, "parentAgentId": "twin", "scope": {"project": "shop"}}
            return ok(wide.bring([{"agent": named, "conversation": {"conversationId": TALK}, "turns": [turn("x", "t")]}])).body

        assert [left["code"] for left in bring("twin")["skipped"]] == ["not_found"]
        assert ok(narrow.read(TALK, turnId="t")).body["turns"][0]["parts"] == [{"text": "as it was"}]
        assert bring("child") == {"turnsAdded": "1"}
        family = [[one["agentId"] for one in by.all_of(LIST_AGENTS, "agents")] for by in (wide, narrow)]
        assert family == [["child", "twin"], ["twin"]]


@pytest.mark.parametrize("known", [True, False])
def test_an_agent_brings_sub_agents_of_sub_agents_at_once(known: bool, user: Caller) -> None:
    by = user.agent(new("parent"))
    if known:
        by.say(TALK, "x")
    ids = [by.agent_id, *(new("child") for _ in range(3))]
    messages = [
        {"agent": {"agentId": one, "parentAgentId": above}, "conversation": {"conversationId": TALK}, "turns": [turn("x")]}
        for above, one in pairwise(ids)
    ]
    assert ok(by.bring(messages)).body == {"turnsAdded": "3"}
    made = {agent["agentId"]: agent.get("parentAgentId") for agent in user.all_of(LIST_AGENTS, "agents")}
    assert [made[one] for one in ids[1:]] == ids[:-1]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2)])
@pytest.mark.parametrize("at_once", [True, False])
def test_the_order_of_an_import_makes_no_difference_to_its_agents(order: tuple[int, ...], at_once: bool, user: Caller) -> None:
    """Also where a sub-agent comes before its parent, which is then made without a name."""
    world = user.within(world=new("world"))
    agents = [
        {"agentId": "main", "name": "Shop"},
        {"agentId": "sub", "name": "Explore", "role": "reviewer", "parentAgentId": "main"},
        {"agentId": "deep", "name": "Plan", "parentAgentId": "sub"},
    ]
    messages = [{"agent": agents[place], "conversation": {"conversationId": TALK}, "turns": [turn("x")]} for place in order]
    for stream in [messages] if at_once else [[one] for one in messages]:
        assert "skipped" not in ok(world.bring(stream)).body
    said = [{"role": "implementer"} | agent | {"scope": dict(world.scope)} for agent in agents]
    assert sorted(world.all_of(LIST_AGENTS, "agents"), key=lambda one: str(one["agentId"])) == [said[2], said[0], said[1]]


def test_what_an_agent_was_given_is_not_changed_by_an_import(user: Caller) -> None:
    """Only one that nobody has described and that has no conversation gets a name, a role and a parent by an import."""
    worlds = user.within(world=new("world"))
    worlds.make("named", name="Mine")
    worlds.say(TALK, "x", agent_id="talked")
    before = worlds.all_of(LIST_AGENTS, "agents")
    for agent_id in ("named", "talked"):
        named = {"agentId": agent_id, "name": "Else", "role": "reviewer", "parentAgentId": "above"}
        ok(worlds.bring([{"agent": named, "conversation": {"conversationId": "other"}, "turns": [turn("x")]}]))
    assert worlds.all_of(LIST_AGENTS, "agents") == before


@pytest.mark.parametrize("method", ["append", "write", "import", "update_agent"])
def test_an_unknown_caller_is_made_by_its_first_write(method: str, world: World) -> None:
    """Such an id "may write, and is made thereby; it reads nobody else"."""
    by = world.user.agent(new("newcomer"))
    assert by.search(world.word, agentId=world.callers["reader"].agent_id).code == "permission_denied"
    assert by.call(GET_AGENT, {}).code == "not_found"
    assert METHODS[method](world, by, by.agent_id).code == "ok"
    made = ok(by.call(GET_AGENT, {})).body["agent"]
    assert (made["agentId"], made["role"], made.get("scope", {})) == (by.agent_id, "implementer", {})
    assert owners(ok(by.search(world.word, agentId=world.callers["reader"].agent_id))) == {world.callers["reader"].agent_id}


def test_an_unknown_caller_takes_the_scope_of_its_request(user: Caller) -> None:
    scope = {"world": new("world")}
    by = user.agent(new("newcomer"))
    ok(by.call(APPEND, {"conversationId": TALK, "turns": [turn("x")], "scope": scope}))
    assert ok(by.call(GET_AGENT, {})).body["agent"]["scope"] == scope


def test_ids_of_any_characters(user: Caller) -> None:
    """An id is anybody's word; in the header it is percent-encoded."""
    for agent in ("記憶", "a/b c", "100%", "%41", "é" * 200, "'; DROP TABLE agents; --"):
        by, word = user.agent(f"{new('any')} {agent}"), new_word()
        by.say(TALK, word)
        assert owners(ok(by.search(word))) == {by.agent_id}
        assert owners(ok(user.search(word, agentId=by.agent_id))) == {by.agent_id}


# One id, several agents


@dataclass(frozen=True, slots=True)
class Twins:
    """Two agents of one id in scopes that contradict each other, and one of another id beside each."""

    agent_id: str
    word: str
    left: dict[str, str]
    right: dict[str, str]


@pytest.fixture
def twins(user: Caller) -> Twins:
    world = {"world": new("world")}
    made = Twins(new("twin"), new_word(), world | {"user_id": "left"}, world | {"user_id": "right"})
    for scope in (made.left, made.right):
        user.within(**scope).say(TALK, f"{made.word} {scope['user_id']}", agent_id=made.agent_id)
        user.within(**scope).say(TALK, f"beside {scope['user_id']}", agent_id=f"{made.agent_id}-beside")
    return made


def asks_of(twins: Twins) -> list[tuple[str, Json, str]]:
    """A request of each method that names the twins, and the field that names them."""
    named = {"agentId": twins.agent_id}
    talk = named | {"conversationId": TALK}
    return [
        ("agent.v1.AgentService/SearchTranscripts", named | {"query": twins.word}, "agent_id"),
        (READ, talk, "agent_id"),
        (GET_AGENT, named, "agent_id"),
        (GET_CONVERSATION, talk, "agent_id"),
        (LIST_CONVERSATIONS, named, "agent_id"),
        (APPEND, talk | {"turns": [turn("x")]}, "agent_id"),
        (WRITE, {"conversation": talk | {"turns": [turn(twins.word)]}}, "conversation.agent_id"),
        (INDEX, {"conversation": talk | {"turns": [turn(twins.word)]}}, "conversation.agent_id"),
        (UPDATE_AGENT, {"agent": named | {"name": "Twin"}, "updateMask": "name"}, "agent.agent_id"),
        (DELETE, talk, "agent_id"),
    ]


def test_an_id_that_two_visible_agents_share(user: Caller, twins: Twins) -> None:
    """Whoever names it must name the scope too; with the scope each is found, and only that one."""
    for method, body, field in asks_of(twins):
        reply = user.call(method, body)
        assert (reply.code, [name for name, _ in reply.violations]) == ("invalid_argument", [field]), method
        assert "name the scope" in reply.message
        assert twins.agent_id in reply.message
    reply = user.bring([{"agent": {"agentId": twins.agent_id}, "conversation": {"conversationId": TALK}, "turns": [turn("x")]}])
    assert reply.code == "invalid_argument"
    for scope in (twins.left, twins.right):
        assert turn_ids(user.search(twins.word, agentId=twins.agent_id, scope=scope)) == [f"{TALK}:0"]
        for method, body, _ in asks_of(twins):
            assert user.call(method, body | {"scope": scope}).code == "ok", method
    assert not hits(user.search(twins.word, scope={"world": twins.left["world"]}))


def test_a_caller_whose_id_two_agents_share(user: Caller, twins: Twins) -> None:
    """Refused whatever it asks, until the request names the scope; then it is the agent of that scope."""
    by = user.agent(twins.agent_id)
    asks = [(method, body) for method, body, _ in asks_of(twins)] + [(LIST_AGENTS, {}), (LIST_CONVERSATIONS, {}), (LIST_READS, {})]
    for method, body in asks:
        reply = by.call(method, body)
        assert (reply.code, [name for name, _ in reply.violations]) == ("invalid_argument", ["x-agent-id"]), method
        assert "name the scope" in reply.message
    for mine, others in ((twins.left, twins.right), (twins.right, twins.left)):
        found = ok(by.search(twins.word, scope=mine)).body["matches"]
        assert [hit["snippet"] for hit in found] == [f"⟦{twins.word}⟧ {mine['user_id']}"]
        listed = ok(by.call(LIST_AGENTS, {"scope": mine})).body["agents"]
        assert {agent["scope"]["user_id"] for agent in listed} == {mine["user_id"]} != {others["user_id"]}
        beside = ok(by.search("beside", scope=mine, agentId=f"{twins.agent_id}-beside")).body["matches"]
        assert [hit["snippet"] for hit in beside] == [f"⟦beside⟧ {mine['user_id']}"]


def test_the_scope_that_is_named_exactly(user: Caller) -> None:
    """Where one twin's scope is part of the other's, the scope that is named is that of the one meant."""
    agent, wide = new("twin"), {"world": new("world")}
    narrow = wide | {"user_id": "ada"}
    for name, scope in (("wide", wide), ("narrow", narrow)):
        body = {"agent": {"agentId": agent, "name": name}, "updateMask": "name", "scope": scope}
        assert ok(user.call(UPDATE_AGENT, body)).body["agent"]["scope"] == scope
    for by in (user, user.agent(agent)):
        assert by.call(GET_AGENT, {"agentId": agent}).code == "invalid_argument"
        for name, scope in (("wide", wide), ("narrow", narrow)):
            assert ok(by.call(GET_AGENT, {"agentId": agent, "scope": scope})).body["agent"]["name"] == name


# Parents


def test_nobody_is_its_own_ancestor(user: Caller) -> None:
    ids = [new(name) for name in "abc"]
    user.make(ids[0], name="A")
    user.make(ids[1], parentAgentId=ids[0])
    user.make(ids[2], parentAgentId=ids[1])
    for child, parent in ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2)):
        body = {"agent": {"agentId": ids[child], "parentAgentId": ids[parent]}, "updateMask": "parentAgentId"}
        reply = user.call(UPDATE_AGENT, body)
        assert (reply.code, [field for field, _ in reply.violations]) == ("invalid_argument", ["agent.parent_agent_id"])
        assert ids[parent] in reply.message
    assert [
        agent.get("parentAgentId", "") for agent in (ok(user.call(GET_AGENT, {"agentId": one})).body["agent"] for one in ids)
    ] == [
        "",
        ids[0],
        ids[1],
    ]


def test_a_parent_that_is_not_there_or_elsewhere(user: Caller) -> None:
    """The one answers like the other; a parent of a narrower scope than its sub-agent would show it less than it may see."""
    world, agent, elsewhere, narrow = {"world": new("world")}, new("agent"), new("elsewhere"), new("narrow")
    user.make(agent, scope=world)
    user.make(elsewhere, scope={"world": new("world")})
    user.make(narrow, scope=world | {"user_id": "ada"})
    replies = []
    for parent in (elsewhere, narrow, new("nobody")):
        reply = user.call(UPDATE_AGENT, {"agent": {"agentId": agent, "parentAgentId": parent}, "updateMask": "parentAgentId"})
        replies.append(anonymous(reply, parent))
    assert replies == [Reply("not_found", {}, "agent.parent_agent_id: there is no agent X")] * 3
    assert "parentAgentId" not in ok(user.call(GET_AGENT, {"agentId": agent})).body["agent"]


def test_a_sub_agent_that_is_let_go(world: World) -> None:
    """Whose a conversation is stands with the agent now: a sub-agent moved away is somebody else's, its new parent's own."""
    user, word = world.user.within(**world.scope), new_word()
    first, second, child = (new(name) for name in ("first", "second", "child"))
    user.make(first)
    user.make(second)
    user.make(child, parentAgentId=first)
    user.say(TALK, word, agent_id=child)
    was, now = user.agent(first), user.agent(second)
    assert owners(was.search(word)) == {child}
    assert hits(was.search(word))[0]["parentAgentId"] == first
    user.make(child, parentAgentId=second)
    assert (owners(was.search(word)), owners(now.search(word))) == (set(), {child})
    assert was.call(APPEND, {"agentId": child, "conversationId": TALK, "turns": [turn("x")]}).code == "permission_denied"
    before = newest(world.user)
    assert owners(was.search(word, agentId=child)) == {child}
    assert newest(world.user) != before, "it is somebody else's read now"
    user.make(child, parentAgentId="")
    assert owners(now.search(word)) == set()


# UpdateAgent


def test_a_user_makes_an_agent_so(user: Caller) -> None:
    """By UpdateAgent, with all its fields."""
    scope, parent, agent = {"world": new("world"), "user_id": "ada"}, new("parent"), new("agent")
    user.make(parent, scope=scope)
    made = {"agentId": agent, "name": "Ada", "role": "reviewer", "archived": True, "scope": scope, "parentAgentId": parent}
    body = {"agent": made, "updateMask": "name,role,archived,scope,parentAgentId"}
    assert ok(user.call(UPDATE_AGENT, body)).body["agent"] == made
    assert ok(user.call(GET_AGENT, {"agentId": agent})).body["agent"] == made


def test_only_what_the_mask_names_changes(user: Caller) -> None:
    agent = new("agent")
    user.make(agent, name="Ada", role="reviewer")
    body = {"agent": {"agentId": agent, "name": "Bob", "role": "observer", "archived": True}, "updateMask": "archived"}
    assert ok(user.call(UPDATE_AGENT, body)).body["agent"] == {
        "agentId": agent,
        "name": "Ada",
        "role": "reviewer",
        "archived": True,
    }
    body = {"agent": {"agentId": agent}, "updateMask": "archived,name"}
    assert ok(user.call(UPDATE_AGENT, body)).body["agent"] == {"agentId": agent, "name": agent, "role": "reviewer"}


def test_a_scope_never_changes(user: Caller) -> None:
    """Whatever is asked, the agent stays in its scope and its turns with it."""
    agent, scope = new("agent"), {"world": new("world"), "user_id": "ada"}
    user.make(agent, scope=scope)
    user.within(**scope).say(TALK, "x", agent_id=agent)
    for other in ({}, {"world": scope["world"]}, {"user_id": "bob"}, scope | {"project": "p"}):
        user.call(
            UPDATE_AGENT, {"agent": {"agentId": agent, "scope": other, "name": "N"}, "updateMask": "scope,name", "scope": scope}
        )
        assert ok(user.call(GET_AGENT, {"agentId": agent, "scope": scope})).body["agent"]["scope"] == scope
        assert len(hits(user.search("x", agentId=agent, scope=scope))) == 1
    for by in (user, user.within(**scope), user.agent(agent)):
        body = {"agent": {"agentId": agent, "scope": {"user_id": "bob"}}, "updateMask": "scope", "scope": scope}
        assert by.call(UPDATE_AGENT, body).code in {"invalid_argument", "permission_denied"}


@pytest.mark.parametrize(
    "fields", [{"role": "orchestrator"}, {"archived": True}, {"parentAgentId": "x"}, {"scope": {"user_id": "x"}}]
)
def test_an_agent_changes_its_own_name_only(fields: Json, user: Caller) -> None:
    by = user.agent(new("agent"))
    by.say(TALK, "x")
    before = ok(by.call(GET_AGENT, {})).body
    for mask in (",".join(fields), f"name,{next(iter(fields))}"):
        body = {"agent": {"agentId": by.agent_id, "name": "Grey Heron"} | fields, "updateMask": mask}
        assert by.call(UPDATE_AGENT, body).code == "permission_denied"
    assert ok(by.call(GET_AGENT, {})).body == before
    assert ok(by.call(UPDATE_AGENT, {"agent": {"name": "Grey Heron"}, "updateMask": "name"})).body["agent"]["name"] == "Grey Heron"


# Doors and settings


def test_the_agent_is_named_in_grpc_metadata_too(user: Caller, world: World, grpc_target: str, contract: Contract) -> None:
    over_grpc = GrpcDoor(grpc_target, contract)
    try:
        for name, kin, code in (
            ("reader", "other", "ok"),
            ("plain", "other", "permission_denied"),
            ("reader", "nobody", "not_found"),
        ):
            by, target = world.callers[name], world.targets[name][kin]
            body = {"query": world.word, "agentId": target}
            reply = over_grpc.call("agent.v1.AgentService/SearchTranscripts", body, by.headers)
            plainly = by.search(world.word, agentId=target)
            assert (reply.code, reply.message, turn_ids(reply)) == (code, plainly.message, turn_ids(plainly))
    finally:
        over_grpc.close()


def test_the_roles_that_may_read_others_are_a_setting(tmp_path: Path) -> None:
    """By default they are implementer, reviewer and orchestrator."""
    with served(tmp_path / "data", readers=frozenset({"auditor"})) as running:
        running.wait_until_ready()
        user, roles = running.user, ("auditor", "implementer", "reviewer", "orchestrator")
        for role in roles:
            user.make(role, role=role)
        user.say(TALK, "x", agent_id="other")
        codes = {role: user.agent(role).search("x", agentId="other").code for role in roles}
    assert codes == {role: "ok" if role == "auditor" else "permission_denied" for role in roles}
