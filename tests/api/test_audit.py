"""The audit log through the doors: which reads become a record, what a record holds, and who is shown what of it.

What becomes of the log when somebody changes it, or when it cannot be written, is tests/faults/test_audit_faults.py's business.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.api.callers import (
    APPEND,
    GET_AGENT,
    GET_CONVERSATION,
    LIST_AGENTS,
    LIST_CONVERSATIONS,
    LIST_READS,
    UPDATE_AGENT,
    VERIFY,
    WRITE,
    Caller,
    hits,
    new,
    new_word,
    ok,
    turn,
    turn_ids,
)
from tests.api.doors import SEARCH, ConnectDoor, Contract, GrpcDoor, Json, Reply
from tests.conftest import StartServer
from tests.faults.serving import served

TALK = "talk"


@pytest.fixture(scope="module")
def door(service_url: str) -> Iterator[ConnectDoor]:
    opened = ConnectDoor(service_url)
    yield opened
    opened.close()


@dataclass(frozen=True, slots=True)
class Pair:
    """Two agents of one scope, `reader` and `read`, who share no conversation; a user of that scope; words that `read` said."""

    user: Caller
    reader: Caller
    read: Caller
    words: list[str]

    def records(self) -> list[Json]:
        """The records of the pair's scope, newest first."""
        return self.user.reads()


@pytest.fixture
def pair(door: ConnectDoor) -> Pair:
    """A scope of its own with `read`, which said each of three words in five turns, and `reader`, which said the first once."""
    user = Caller(door).within(world=new("world"))
    words = [new_word() for _ in range(3)]
    made = Pair(user, user.agent(new("reader")), user.agent(new("read")), words)
    user.make(made.reader.agent_id, role="reviewer")
    user.make(made.read.agent_id, role="observer")
    user.say(TALK, *[f"{' '.join(words)} {place}" for place in range(5)], agent_id=made.read.agent_id)
    user.say("own", words[0], agent_id=made.reader.agent_id)
    return made


# Which calls are recorded


def test_reads_of_ones_own_are_not_recorded(pair: Pair) -> None:
    """Its own, its sub-agents' and theirs, whether they are named or not; nor what a user asks without naming an agent."""
    child, deep = new("child"), new("deep")
    pair.user.make(child, parentAgentId=pair.read.agent_id)
    pair.user.make(deep, parentAgentId=child)
    for agent in (child, deep):
        pair.user.say(TALK, pair.words[0], agent_id=agent)
    for target in ("", pair.read.agent_id, child, deep):
        assert hits(ok(pair.read.search(pair.words[0], agentId=target)))
        assert hits(ok(pair.read.search(pair.words[0], agentId=target, match="MATCH_ANY_WORD")))
        assert ok(pair.read.read(TALK, agentId=target)).body["turns"]
    assert hits(ok(pair.user.search(pair.words[0])))
    assert hits(ok(pair.user.search(pair.words[0], everyAgent=True)))
    assert pair.records() == []


def test_what_shows_no_text_is_not_recorded(pair: Pair) -> None:
    named: Json = {"agentId": pair.read.agent_id}
    for by in (pair.reader, pair.user):
        for method, body in (
            (GET_AGENT, named),
            (GET_CONVERSATION, named | {"conversationId": TALK}),
            (LIST_CONVERSATIONS, named),
            (LIST_AGENTS, {}),
            (LIST_READS, named),
        ):
            ok(by.call(method, body))
    assert pair.records() == []


def test_what_is_refused_before_anybody_is_read_is_not_recorded(pair: Pair) -> None:
    """A query or a page that cannot be asked for at all reads nobody."""
    named = {"agentId": pair.read.agent_id}
    assert pair.reader.search("???", **named).code == "invalid_argument"
    assert pair.reader.search("x", pagination={"limit": -1}, **named).code == "invalid_argument"
    assert pair.reader.search("x", around=11, **named).code == "invalid_argument"
    assert pair.reader.read(TALK, offset=-1, **named).code == "invalid_argument"
    assert pair.reader.read(TALK, offset=1, turnId="x", **named).code == "invalid_argument"
    assert pair.records() == []


# What is asked of whom by whom, and what the one record of it says: granted, and the ids of turns in `read`'s conversation.
ALL_FIVE = [f"{TALK}:{place}" for place in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize("by", ["reader", "user"])
def test_each_read_of_somebody_else_is_one_record(by: str, pair: Pair) -> None:
    """By an agent or by the user who names the agent, whatever came of it, a target that does not exist included."""
    caller = pair.user if by == "user" else pair.reader
    target, nobody, sought = pair.read.agent_id, new("nobody"), pair.words[0]
    asks: list[tuple[Reply, str, bool, list[str]]] = [
        (caller.search(sought, agentId=target), target, True, ALL_FIVE),
        (caller.search(sought[1:-1], agentId=target), target, True, ALL_FIVE),
        (caller.search(f"{sought} {new_word()}", agentId=target), target, True, ALL_FIVE),
        (caller.search(sought, agentId=target, match="MATCH_ANY_WORD"), target, True, ALL_FIVE),
        (caller.search(new_word(), agentId=target), target, True, []),
        (caller.search(sought, agentId=target, pagination={"limit": 2}), target, True, ALL_FIVE[:2]),
        (caller.search("2", agentId=target), target, True, [ALL_FIVE[2]]),
        (caller.search(sought, agentId=target, conversationId=new("none")), target, True, []),
        (caller.read(TALK, agentId=target), target, True, ALL_FIVE[::-1]),
        (caller.read(TALK, agentId=target, turnId=ALL_FIVE[1]), target, True, [ALL_FIVE[1]]),
        (caller.read(TALK, agentId=target, offset=10**9), target, True, []),
        (caller.read(TALK, agentId=target, turnId="none"), target, True, []),
        (caller.read(new("none"), agentId=target), target, True, []),
        (caller.search(sought, agentId=nobody), nobody, False, []),
        (caller.read(TALK, agentId=nobody), nobody, False, []),
    ]
    records = pair.records()[::-1]
    assert len(records) == len(asks)
    for place, (record, (reply, named, granted, returned)) in enumerate(zip(records, asks, strict=True)):
        shown = turn_ids(reply) if "matches" in reply.body or "near" in reply.body or "partial" in reply.body else None
        assert shown is None or sorted(shown) == sorted(record.get("turnIds", [])), place
        assert record["requestId"] == reply.headers["x-request-id"], place
        assert (record["targetAgentIds"], record.get("granted", False)) == ([named], granted), place
        assert sorted(record.get("turnIds", [])) == sorted(returned), place


def test_a_refused_role_is_recorded(pair: Pair) -> None:
    """The target finds the refused attempt in its own list; one that does not exist is in the user's."""
    nobody = new("nobody")
    replies = [
        pair.read.search(pair.words[0], agentId=pair.reader.agent_id, reason="curious"),
        pair.read.read(TALK, agentId=pair.reader.agent_id, reason="curious"),
        pair.read.search(pair.words[0], agentId=nobody, reason="curious"),
        pair.read.read(TALK, agentId=nobody, reason="curious"),
    ]
    assert {reply.code for reply in replies} == {"permission_denied"}
    records = pair.records()[::-1]
    assert [record["requestId"] for record in records] == [reply.headers["x-request-id"] for reply in replies]
    assert [record["targetAgentIds"] for record in records] == [[pair.reader.agent_id]] * 2 + [[nobody]] * 2
    for record in records:
        assert "granted" not in record
        assert "turnIds" not in record
        assert (record["callerAgentId"], record["role"], record["reason"]) == (pair.read.agent_id, "observer", "curious")
    assert [record["requestId"] for record in pair.reader.reads()] == [one["requestId"] for one in records[1::-1]]


def test_every_page_is_a_record(pair: Pair) -> None:
    found = list(pair.reader.pages(pair.words[0], limit=2, agentId=pair.read.agent_id))
    records = pair.records()[::-1]
    assert len(records) == len(found) > 2
    assert [record.get("turnIds", []) for record in records] == [turn_ids(page) for page in found]
    assert [record.get("laterPage", False) for record in records] == [False] + [True] * (len(found) - 1)
    assert len({record["queryHash"] for record in records}) == 1


def test_every_agent_is_one_record_of_those_who_came_back(pair: Pair) -> None:
    """It names each agent whose turns came back, once, and those turns; not the caller, nor who was looked at for nothing."""
    others = [new("other") for _ in range(3)]
    for agent in others:
        pair.user.say(f"{agent}-talk", f"{pair.words[0]} there", f"{pair.words[0]} again", agent_id=agent)
    silent = new("silent")
    pair.user.say(TALK, "nothing of the kind", agent_id=silent)
    reply = ok(pair.reader.search(pair.words[0], everyAgent=True, pagination={"limit": 100}))
    (record,) = pair.records()
    others_hits = [hit for hit in hits(reply) if hit["agentId"] != pair.reader.agent_id]
    assert len(others_hits) == len(hits(reply)) - 1 == 11
    assert sorted(record["targetAgentIds"]) == sorted([pair.read.agent_id, *others])
    assert record["turnIds"] == [hit["turnId"] for hit in others_hits]
    assert pair.user.reads(agentId=silent) == pair.user.agent(silent).reads() == []
    for agent in others:
        (theirs,) = pair.user.agent(agent).reads()
        assert sorted(theirs["turnIds"]) == [f"{agent}-talk:0", f"{agent}-talk:1"], "turns of others are not told to it"
        assert theirs["requestId"] == record["requestId"]
    nothing = ok(pair.reader.search(new_word(), everyAgent=True))
    assert not hits(nothing)
    assert [one.get("targetAgentIds", []) for one in pair.records()] == [[], record["targetAgentIds"]]


def test_turns_around_hits_are_recorded(pair: Pair) -> None:
    """Their text goes out too; of several hits each turn is named where it was shown."""
    unlike = new_word()
    pair.user.say("story", "before that", "before", unlike, "after", "after that", agent_id=pair.read.agent_id)
    reply = ok(pair.reader.search(unlike, agentId=pair.read.agent_id, around=1))
    assert [one["turnId"] for side in ("before", "after") for one in hits(reply)[0][side]] == ["story:1", "story:3"]
    (record,) = pair.records()
    assert record["turnIds"] == ["story:1", "story:2", "story:3"]
    (theirs,) = pair.read.reads()
    assert theirs["turnIds"] == record["turnIds"]


# What a record holds


def test_the_contents_of_a_record(pair: Pair) -> None:
    before = datetime.now(UTC)
    fields: Json = {
        "agentId": pair.read.agent_id,
        "conversationId": TALK,
        "roles": ["user", "assistant"],
        "since": "2020-01-01T00:00:00Z",
        "until": "2100-01-01T00:00:00Z",
        "project": "",
        "words": "WORDS_AS_TYPED",
        "around": 2,
        "scope": dict(pair.user.scope),
        "reason": "to see whether “it” wörks\n⟦so⟧",
        "pagination": {"limit": 3},
    }
    reply = ok(pair.reader.door.call(SEARCH, {"query": pair.words[0]} | fields, pair.reader.headers | {"x-request-id": "trace-7"}))
    (record,) = pair.records()
    when = datetime.fromisoformat(record.pop("time"))
    assert before - timedelta(seconds=1) <= when <= datetime.now(UTC) + timedelta(seconds=1)
    filters = json.loads(record.pop("filters"))
    assert len(record.pop("queryHash")) == 64
    around = [one["turnId"] for hit in hits(reply) for one in (*hit.get("before", []), hit, *hit.get("after", []))]
    assert record == {
        "callerAgentId": pair.reader.agent_id,
        "role": "reviewer",
        "targetAgentIds": [pair.read.agent_id],
        "method": "SearchTranscripts",
        "door": "connect",
        "granted": True,
        "turnIds": around,
        "reason": fields["reason"],
        "requestId": "trace-7",
    }
    assert filters == {
        "agent_id": pair.read.agent_id,
        "conversation_id": TALK,
        "roles": ["assistant", "user"],
        "since": 1_577_836_800_000_000,
        "until": 4_102_444_800_000_000,
        "words": "WORDS_AS_TYPED",
        "around": 2,
        "scope": pair.user.scope,
    }


def test_a_record_of_reading(pair: Pair) -> None:
    ok(pair.user.read(TALK, agentId=pair.read.agent_id, offset=3, length=2, reason="to quote it"))
    (record,) = pair.records()
    assert json.loads(record.pop("filters")) == {
        "agent_id": pair.read.agent_id,
        "conversation_id": TALK,
        "offset": 3,
        "length": 2,
        "scope": pair.user.scope,
    }
    record.pop("time"), record.pop("requestId")
    assert record == {
        "targetAgentIds": [pair.read.agent_id],
        "method": "ReadTranscript",
        "door": "connect",
        "granted": True,
        "turnIds": [f"{TALK}:0"],
        "reason": "to quote it",
    }


def test_the_hash_tells_queries_apart_and_nothing_else(pair: Pair) -> None:
    """The same query has the same hash whoever asks; it is keyed, so that nobody outside can try queries out on it."""
    asked = [pair.words[0], pair.words[0], f"{pair.words[0]} ", pair.words[1]]
    for query, by in zip(asked, (pair.reader, pair.user, pair.reader, pair.reader), strict=True):
        ok(by.search(query, agentId=pair.read.agent_id))
    one, again, blank, other = (record["queryHash"] for record in pair.records()[::-1])
    assert one == again
    assert len({one, blank, other}) == 3
    assert not any(word in json.dumps(pair.records()) for word in pair.words)


def test_doors(pair: Pair, grpc_target: str, contract: Contract) -> None:
    """Each record says through which door it was read."""
    body: Json = {"query": pair.words[0], "agentId": pair.read.agent_id}
    over_grpc = GrpcDoor(grpc_target, contract)
    try:
        replies = [over_grpc.call(SEARCH, body, pair.reader.headers | {"x-request-id": "over-grpc"})]
    finally:
        over_grpc.close()
    replies.append(pair.reader.search(**body))
    data = contract.parsed(SEARCH, body).SerializeToString()
    headers = pair.reader.headers | {"content-type": "application/grpc-web+proto", "x-grpc-web": "1", "x-request-id": "over-web"}
    framed = bytes([0]) + len(data).to_bytes(4, "big") + data
    assert pair.reader.door.http.post(f"/{SEARCH}", content=framed, headers=headers).status_code == 200
    records = pair.records()[::-1]
    assert [record["door"] for record in records] == ["grpc", "connect", "grpc-web"]
    assert [record["turnIds"] for record in records] == [ALL_FIVE] * 3
    assert (records[0]["requestId"], records[2]["requestId"]) == ("over-grpc", "over-web")
    assert turn_ids(replies[0]) == turn_ids(replies[1])


# Who is shown what


def test_the_filter_and_the_pages_of_list_reads(pair: Pair) -> None:
    other = new("other")
    pair.user.say(TALK, pair.words[0], agent_id=other)
    targets = [(pair.read.agent_id, other)[place % 3 == 2] for place in range(13)]
    for target in targets:
        ok(pair.reader.search(pair.words[0], agentId=target))
    everything = pair.records()
    assert [record["targetAgentIds"] for record in everything] == [[target] for target in reversed(targets)]
    times = [record["time"] for record in everything]
    assert times == sorted(times, reverse=True)
    for by, agent in (
        (pair.user, ""),
        (pair.user, other),
        (pair.user, pair.read.agent_id),
        (pair.read, ""),
        (pair.user.agent(other), other),
    ):
        theirs = agent or (by.agent_id or "")
        expected = [record["requestId"] for record in everything if theirs in ("", *record["targetAgentIds"])]
        assert [record["requestId"] for record in by.reads(agentId=agent)] == expected
        for limit in (1, 4, 13):
            assert list(walked(by, agent, limit)) == expected
    assert len(ok(pair.user.call(LIST_READS, {})).body["records"]) == 13


def walked(by: Caller, agent: str, limit: int) -> Iterator[str]:
    """Yields request ids page by page, each as long as it may be; a token is of no use to anybody else."""
    cursor = ""
    while True:
        page = ok(by.call(LIST_READS, {"agentId": agent, "pagination": {"limit": limit, "cursor": cursor}})).body
        yield from (record["requestId"] for record in page.get("records", []))
        cursor = page.get("nextPageToken", "")
        if not cursor:
            return
        assert len(page["records"]) == limit
        assert by.agent("x").call(LIST_READS, {"agentId": agent, "pagination": {"cursor": cursor}}).code == "invalid_argument"
        wrong = {"agentId": f"{agent}x", "pagination": {"cursor": cursor}}
        assert by.call(LIST_READS, wrong).code == "invalid_argument"


def test_new_records_between_pages(pair: Pair) -> None:
    for _ in range(4):
        ok(pair.reader.search(pair.words[0], agentId=pair.read.agent_id))
    expected = [record["requestId"] for record in pair.records()]
    first = ok(pair.user.call(LIST_READS, {"pagination": {"limit": 2}})).body
    ok(pair.reader.search(pair.words[0], agentId=pair.read.agent_id))
    rest = ok(pair.user.call(LIST_READS, {"pagination": {"limit": 9, "cursor": first["nextPageToken"]}})).body
    assert [record["requestId"] for record in (*first["records"], *rest["records"])] == expected


def test_ids_that_the_lister_may_not_see_are_left_out(pair: Pair) -> None:
    """Of a read of agents in several scopes, each is told of itself and of what its own scope shows; so is a user of that scope."""
    scope = dict(pair.user.scope)
    ada, bob = new("ada"), new("bob")
    for agent in (ada, bob):
        pair.user.within(**scope, user_id=agent).say(f"{agent}-talk", pair.words[0], agent_id=agent)
    ok(pair.reader.search(pair.words[0], everyAgent=True))
    (full,) = pair.records()
    assert {ada, bob, pair.read.agent_id} == set(full["targetAgentIds"])
    (told,) = pair.user.agent(ada).reads()
    assert (told["targetAgentIds"], told["turnIds"]) == ([ada], [f"{ada}-talk:0"])
    assert "callerAgentId" not in told, "the reader is of a wider scope than ada's, where ada sees nobody"
    assert not any(hidden in json.dumps(told) for hidden in (bob, pair.read.agent_id, pair.reader.agent_id))
    narrow = pair.user.within(**scope, user_id=ada)
    ok(narrow.search(pair.words[0], agentId=ada))
    (seen,) = narrow.reads()
    assert (seen["targetAgentIds"], seen["turnIds"]) == ([ada], [f"{ada}-talk:0"])


def test_the_record_of_a_target_in_another_scope_is_the_callers(pair: Pair) -> None:
    """The target's side learns nothing of it, not even that somebody tried."""
    far, there = Caller(pair.user.door).within(world=new("elsewhere")), new("there")
    far.say(TALK, pair.words[0], agent_id=there)
    assert pair.reader.search(pair.words[0], agentId=there).code == "not_found"
    assert pair.reader.read(TALK, agentId=there, scope={"world": far.scope["world"]}).code == "not_found"
    assert far.reads() == far.agent(there).reads() == far.reads(agentId=there) == []
    assert [record["targetAgentIds"] for record in pair.records()] == [[there], [there]]
    assert pair.user.reads(agentId=there) == pair.records()


def test_records_outlive_what_they_name(pair: Pair) -> None:
    """A conversation that was deleted since leaves the record of who read it."""
    ok(pair.reader.search(pair.words[0], agentId=pair.read.agent_id))
    before = pair.records()
    ok(pair.user.call("agent.v1.ConversationService/DeleteConversation", {"agentId": pair.read.agent_id, "conversationId": TALK}))
    assert pair.records() == before
    assert pair.read.reads()[0]["turnIds"] == ALL_FIVE


# The whole log


def test_verify(pair: Pair) -> None:
    """Intact after all that, and longer by each record; the head is that of the last one. Not for agents."""
    user = Caller(pair.user.door)
    was = ok(user.call(VERIFY, {})).body
    ok(pair.reader.search(pair.words[0], agentId=pair.read.agent_id))
    now = ok(user.call(VERIFY, {})).body
    assert now.keys() == {"intact", "records", "head"}
    assert (was.get("intact"), now["intact"], int(now["records"])) == (True, True, int(was.get("records", 0)) + 1)
    assert len(now["head"]) == 64
    assert now["head"] != was.get("head", "")
    for agent in (pair.reader, pair.read, user.agent(new("nobody"))):
        reply = agent.call(VERIFY, {})
        assert (reply.code, now["head"] in str(reply.body)) == ("permission_denied", False)


SECRETS = ("squeamish", "ossifrage", "marmalade", "verdigris", "quillon")


def ask_in_every_way(user: Caller) -> None:
    """Calls of all kinds, good and bad, with the planted words wherever a caller may put a word."""
    said, asked, secret, name, reason = SECRETS
    user.make("read", role="observer")
    user.make("reader", role="reviewer")
    user.say(TALK, f"{said} {asked}", f"{said}", agent_id="read", turns=[turn(said, turn_id=f"id-{secret}")])
    reader, read = user.agent("reader"), user.agent("read")
    targets: list[Json] = [{"agentId": "read"}, {"everyAgent": True}, {}, {"agentId": "nobody"}]
    for query in (asked, f'"{said} {asked}" {secret}', f"-{secret} {asked}", f"{asked} " * 60, "???", "-" + secret):
        for fields in (*targets, {"agentId": "read", "conversationId": secret}):
            reader.search(query, reason=reason, **fields)
            reader.search(query, pagination={"cursor": secret}, **fields)
        read.search(query, agentId="reader", reason=reason)
    reader.read(TALK, agentId="read", turnId=secret, reason=reason)
    reader.read(secret, agentId="read", reason=reason)
    read.read(TALK, agentId="reader")
    user.call(UPDATE_AGENT, {"agent": {"agentId": "reader", "name": name}, "updateMask": "name"})
    user.call(APPEND, {"agentId": "read", "conversationId": "", "turns": [turn(said)]})
    user.call(WRITE, {"conversation": {"conversationId": "c", "agentId": "", "title": said}})
    user.bring([{"agent": {"agentId": "read"}, "conversation": {"conversationId": "c"}, "turns": [turn(said)]}])
    http = user.door.http
    http.post(f"/{SEARCH}", content=f'{{"query": "{asked}", '.encode(), headers={"content-type": "application/json"})
    http.get(f"/{SEARCH}?query={asked}")
    assert ok(user.call(VERIFY, {})).body["intact"]


def test_the_services_log_holds_no_word_of_anybody(start_server: StartServer) -> None:
    """Queries, turns, names, reasons and ids that callers made up: none is in the service's log at any level; its head is."""
    running = start_server(settings={"AFORESAID_LOG_LEVEL": "debug"})
    door = ConnectDoor(running.url)
    user = Caller(door)
    try:
        ask_in_every_way(user)
        head, records = ok(user.call(VERIFY, {})).body["head"], user.reads()
    finally:
        door.close()
    assert running.log is not None
    told = running.log.read_text("utf-8")
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert [line["head"] for line in lines if line["event"] == "audit head"][-1] == head
    assert len([line for line in lines if line["event"] == "call"]) > 50
    assert [word for word in SECRETS if word in told.lower()] == []
    assert (running.data / "audit.head").read_bytes().hex().endswith(head)
    shown = json.dumps([record | {"reason": "", "filters": ""} for record in records])
    assert not any(word in shown for word in SECRETS[:2])
    assert not any("query" in record for record in records)
    assert {record["reason"] for record in records if "reason" in record} == {SECRETS[4]}


def test_the_text_of_queries_is_kept_where_the_deployment_says_so(tmp_path: Path) -> None:
    """Beside its hash, and shown to whoever is shown the record."""
    with served(tmp_path / "data", audit_query_text=True) as running:
        running.wait_until_ready()
        user = running.user
        ask_in_every_way(user)
        records, theirs = user.reads(), user.agent("read").reads()
    asked = [record.get("query", "") for record in records if record["method"] == "SearchTranscripts"]
    assert {f'"{SECRETS[0]} {SECRETS[1]}" {SECRETS[2]}', SECRETS[1]} <= set(asked)
    assert all(asked)
    known = {record["requestId"]: record.get("query", "") for record in records}
    assert [known[record["requestId"]] for record in theirs] == [record.get("query", "") for record in theirs]
    assert SECRETS[1] in known.values()
