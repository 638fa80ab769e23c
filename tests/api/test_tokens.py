"""Bearer tokens through the doors: which are good, what a call with one may say of itself, how soon a revoked one is worth nothing;
and the commands that make, list and revoke them.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import grpc
import pytest
from connectrpc.errors import ConnectError
from connectrpc.request import Headers

from aforesaid_server.access import Call
from aforesaid_server.api.interceptors import Frame
from aforesaid_server.errors import Unauthenticated, Unavailable
from aforesaid_server.keys import keys_in
from scripts.running_server import ROOT
from tests.api.callers import (
    APPEND,
    GET_AGENT,
    IMPORT,
    LIST_AGENTS,
    LIST_READS,
    READ,
    UPDATE_AGENT,
    VERIFY,
    Caller,
    new,
    new_word,
    ok,
    owners,
    turn,
)
from tests.api.doors import SEARCH, ConnectDoor, Contract, GrpcDoor, Json, Reply
from tests.api.guarded import Guarded, Owner, guarded
from tests.conftest import StartServer
from tests.faults.serving import wait_until
from tests.test_docs import commands, disagreement

REFUSAL = "authorization: a bearer token that is good is required"
FORM = re.compile(r"aforesaid_[0-9a-f]{16}_[a-z2-7]{52}")
ASKED: Json = {"query": "x"}
TALK = "talk"


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(tmp_path_factory.mktemp("guarded") / "data") as started:
        yield started


@pytest.fixture(scope="module")
def grpc_door(guard: Guarded, contract: Contract) -> Iterator[GrpcDoor]:
    door = GrpcDoor(guard.service.target, contract)
    yield door
    door.close()


def id_of(token: str) -> str:
    return token.split("_")[1]


# Good and bad tokens, on every door


def bad_tokens(guard: Guarded) -> dict[str, str | None]:
    """Values of the header, none of them good; None for no header."""
    good = guard.owner.token("--user", "ada", "--never")
    other = guard.owner.token("--user", "bob", "--never")
    revoked = guard.owner.token("--user", "carol")
    guard.owner.does("token", "revoke", id_of(revoked))
    expired = guard.owner.token("--user", "dan", "--expires", "1d")
    end(guard.owner, expired, at=1)
    secret = good.split("_")[2]
    return {
        "none": None,
        "empty": "",
        "another scheme": f"Basic {good}",
        "no scheme": good,
        "no token": "Bearer",
        "two tokens": f"Bearer {good} {other}",
        "capitals": f"Bearer {good.upper()}",
        "shorter": f"Bearer {good[:-1]}",
        "longer": f"Bearer {good}a",
        "not of its form": "Bearer letmein",
        "unknown id": f"Bearer aforesaid_{'0' * 16}_{secret}",
        "id of another": f"Bearer aforesaid_{id_of(other)}_{secret}",
        "wrong secret": f"Bearer {good[:-52]}{'a' * 52}",
        "last bits of the secret": f"Bearer {good[:-1]}{chr(ord(good[-1]) ^ 1) if good[-1] not in 'az7' else 'b'}",
        "revoked": f"Bearer {revoked}",
        "expired": f"Bearer {expired}",
    }


def end(owner: Owner, token: str, *, at: int) -> None:
    """Moves the end of a token."""
    with closing(sqlite3.connect(owner.data / "store.sqlite3", isolation_level=None, timeout=30)) as connection:
        assert connection.execute("update tokens set expires_at = ? where token_id = ?", (at, id_of(token))).rowcount == 1


def over_grpc_web(door: ConnectDoor, contract: Contract, method: str, headers: dict[str, str]) -> Reply:
    """A call over gRPC-Web; only its code and message are told."""
    data = contract.parsed(method, ASKED if method == SEARCH else {}).SerializeToString()
    sent = {"content-type": "application/grpc-web+proto", "x-grpc-web": "1"} | headers
    answer = door.http.post(f"/{method}", content=bytes([0]) + len(data).to_bytes(4, "big") + data, headers=sent)
    assert answer.status_code == 200
    left = answer.content
    while left and not left[0] & 0x80:
        left = left[5 + int.from_bytes(left[1:5], "big") :]
    lines = left[5:].decode().split("\r\n") if left else [f"{name}: {value}" for name, value in answer.headers.items()]
    told = dict(line.split(": ", 1) for line in lines if line)
    code = next(code for code in grpc.StatusCode if code.value[0] == int(told["grpc-status"])).name.lower()
    return Reply(code, {}, unquote(told.get("grpc-message", "")))


def test_what_is_no_good_token_is_refused_alike_on_every_door(guard: Guarded, grpc_door: GrpcDoor, contract: Contract) -> None:
    for name, value in bad_tokens(guard).items():
        headers = {} if value is None else {"authorization": value}
        replies = {
            "connect": guard.door.call(SEARCH, ASKED, headers),
            "grpc": grpc_door.call(SEARCH, ASKED, headers),
            "grpc-web": over_grpc_web(guard.door, contract, SEARCH, headers),
            "stream": Caller(guard.door, token=value.removeprefix("Bearer ") if value else "").bring([])
            if value is None or value.startswith("Bearer aforesaid")
            else Reply("unauthenticated", {}, REFUSAL),
        }
        for door, reply in replies.items():
            assert (reply.code, reply.message, reply.violations) == ("unauthenticated", REFUSAL, []), f"{name} over {door}"
        assert replies["connect"].headers["www-authenticate"] == "Bearer", name
        assert "www-authenticate" not in replies["grpc"].headers


def test_every_method_wants_a_token(guard: Guarded, grpc_door: GrpcDoor, contract: Contract) -> None:
    methods = [
        f"{service}/{method.name}"
        for service in ("agent.v1.AgentService", "agent.v1.ConversationService", "agent.v1.AuditService")
        for method in contract.pool.FindServiceByName(service).methods
    ]
    assert len(methods) >= 13
    for method in methods:
        if method != IMPORT:
            assert guard.door.call(method, {}).code == "unauthenticated", method
        assert over_grpc_web(guard.door, contract, method, {}).message == REFUSAL, method
        assert grpc_door.call(method, {}).code == "unauthenticated", method


def test_it_is_looked_at_before_anything_else(guard: Guarded) -> None:
    """Not even that a request or an agent's id is malformed is told to who has no token."""
    for body in (b"{", b'{"query": 5}', b'{"pagination": {"limit": -1}}'):
        assert guard.door.send(SEARCH, body).code == "unauthenticated"
    assert guard.door.call(SEARCH, ASKED, {"x-agent-id": ""}).code == "unauthenticated"
    assert guard.by("--user", "ada").call(SEARCH, {"pagination": {"limit": -1}}).code == "invalid_argument"


def test_a_good_token_on_every_door(guard: Guarded, grpc_door: GrpcDoor, contract: Contract) -> None:
    for scheme in ("Bearer", "bearer", "BEARER "):
        headers = {"authorization": f"{scheme} {guard.owner.token('--user', 'ada')}"}
        assert guard.door.call(SEARCH, ASKED, headers).code == "ok"
        assert grpc_door.call(SEARCH, ASKED, headers).code == "ok"
        assert over_grpc_web(guard.door, contract, SEARCH, headers).code == "ok"


def test_blanks_around_a_header_are_no_part_of_it(guard: Guarded) -> None:
    """ "A field value does not include leading or trailing whitespace" (RFC 9110); an id that has some is percent-encoded."""
    token = guard.owner.token("--agent", "blank")
    address = guard.service.url.removeprefix("http://")
    for named, status in (("blank", 200), ("  blank \t", 200), ("blank%20", 403), (" \t", 400)):
        with closing(http.client.HTTPConnection(address, timeout=30)) as connection:
            sent = {"content-type": "application/json", "authorization": f"  Bearer {token} \t ", "x-agent-id": named}
            connection.request("POST", f"/{SEARCH}", json.dumps(ASKED), sent)
            assert connection.getresponse().status == status, named


def test_two_headers_are_not_one_token(guard: Guarded) -> None:
    good = f"Bearer {guard.owner.token('--user', 'ada')}"
    sent = [("content-type", "application/json"), ("authorization", good), ("authorization", good)]
    assert guard.door.http.post(f"/{SEARCH}", json=ASKED, headers=sent).status_code == 401


def test_health_wants_none(guard: Guarded, contract: Contract) -> None:
    for path in ("/healthz", "/readyz"):
        assert guard.door.http.get(path).status_code == 200
    with grpc.insecure_channel(guard.service.target) as channel:
        asked = contract.empty("grpc.health.v1.HealthCheckRequest")
        answered: Any = type(contract.empty("grpc.health.v1.HealthCheckResponse"))
        check = channel.unary_unary("/grpc.health.v1.Health/Check", type(asked).SerializeToString, answered.FromString)
        assert check(asked, timeout=30).status == 1


def test_without_the_setting_a_token_changes_nothing(connect: ConnectDoor) -> None:
    for value in ("Bearer letmein", f"Bearer aforesaid_{'0' * 16}_{'a' * 52}"):
        assert connect.call(SEARCH, ASKED, {"authorization": value}).code == "ok"


# Who a call with a token is by


def test_an_agents_token_is_that_agent(guard: Guarded) -> None:
    world = {"world": new("world")}
    ada, bob, word = new("ada"), new("bob"), new_word()
    by_ada = guard.by("--agent", ada, "--role", "observer", scope=world)
    by_bob = guard.by("--agent", bob, scope=world)
    by_ada.say(TALK, f"{word} one")
    by_bob.say(TALK, f"{word} two")
    assert owners(by_ada.search(word)) == {ada}
    made = ok(by_ada.call(GET_AGENT, {})).body["agent"]
    assert made == {"agentId": ada, "name": ada, "role": "observer", "scope": world}
    assert by_ada.search(word, agentId=bob).code == "permission_denied"
    assert owners(ok(by_bob.search(word, agentId=ada))) == {ada}, "bob is an implementer"
    assert by_ada.call(APPEND, {"agentId": bob, "conversationId": TALK, "turns": [turn("x")]}).code == "permission_denied"
    assert by_ada.call(VERIFY, {}).code == "permission_denied"


def test_a_token_speaks_for_its_agent_alone(guard: Guarded) -> None:
    ada = new("ada")
    by = guard.by("--agent", ada)
    other = new("other")
    guard.by("--agent", other)
    assert Caller(guard.door, ada, token=by.token).call(GET_AGENT, {}).code == "ok"
    for named in (other, new("nobody")):
        reply = Caller(guard.door, named, token=by.token).search("x")
        assert (reply.code, reply.message) == ("permission_denied", f"x-agent-id: the token is not bound to agent {named}")
    for kind in ("--user", "--service"):
        token = guard.owner.token(kind, "ops")
        for named in (ada, new("nobody")):
            for method, body in ((SEARCH, ASKED), (APPEND, {"conversationId": TALK, "turns": [turn("x")]})):
                assert Caller(guard.door, named, token=token).call(method, body).code == "permission_denied"


def test_a_token_is_for_one_of_several_agents_of_an_id(guard: Guarded) -> None:
    """Also where one's scope is a part of the other's."""
    agent, wide = new("twin"), {"world": new("world")}
    narrow = wide | {"user_id": "ada"}
    by = {name: guard.by("--agent", agent, scope=scope) for name, scope in (("wide", wide), ("narrow", narrow))}
    for name, scope in (("narrow", narrow), ("wide", wide)):
        assert ok(by[name].call(GET_AGENT, {})).body["agent"]["scope"] == scope
        by[name].say(TALK, name)
        assert ok(by[name].read(TALK)).body["turns"][0]["parts"] == [{"text": name}]


@pytest.mark.parametrize("kind", ["--user", "--service"])
def test_a_users_token_is_bound_to_its_scope(kind: str, guard: Guarded) -> None:
    world, word = {"world": new("world")}, new_word()
    by, stranger = guard.by(kind, "ada", scope=world), guard.by(kind, "bob", scope={"world": new("other")})
    agent = new("agent")
    by.say(TALK, word, agent_id=agent)
    assert ok(by.call(GET_AGENT, {"agentId": agent})).body["agent"]["scope"] == world, "what it makes is made in its scope"
    assert owners(by.search(word)) == {agent}
    assert owners(stranger.search(word)) == set()
    assert stranger.call(GET_AGENT, {"agentId": agent}).code == "not_found"
    wider: Json = {"scope": {}}
    assert [one["agentId"] for one in ok(by.call(LIST_AGENTS, wider)).body["agents"]] == [agent]
    assert ok(stranger.call(LIST_AGENTS, {"scope": world})).body == {}
    assert stranger.call(READ, {"agentId": agent, "conversationId": TALK}).code == "not_found"
    assert stranger.call(UPDATE_AGENT, {"agent": {"agentId": agent, "name": "x", "scope": world}}).code == "not_found"
    assert owners(ok(guard.by(kind, "ops").search(word))) == {agent}, "no scope is all of them"


def test_page_tokens_are_of_one_scope(guard: Guarded) -> None:
    world, word = {"world": new("world")}, new_word()
    by = guard.by("--user", "ada", scope=world)
    by.say(TALK, f"{word} 1", f"{word} 2", agent_id=new("agent"))
    cursor = ok(by.search(word, pagination={"limit": 1})).body["nextPageToken"]
    again = {"pagination": {"limit": 1, "cursor": cursor}}
    assert guard.by("--user", "bob").search(word, **again).code == "invalid_argument"
    assert guard.by("--user", "bob", scope={"world": "other"}).search(word, **again).code == "invalid_argument"
    assert ok(guard.by("--user", "ada again", scope=world).search(word, **again)).body["matches"], "a renewed token goes on"


def test_the_audit_log_names_the_token(guard: Guarded) -> None:
    world = {"world": new("world")}
    by, ada, other = guard.by("--user", "ada", scope=world), new("ada"), new("other")
    agent = guard.by("--agent", ada, scope=world)
    by.say(TALK, "x", agent_id=other)
    for caller in (by, agent):
        ok(caller.search("x", agentId=other))
        told = ok(by.call(LIST_READS, {"pagination": {"limit": 1}})).body["records"][0]
        assert told["targetAgentIds"] == [other]
        with closing(sqlite3.connect(guard.owner.data / "store.sqlite3")) as connection:
            (body,) = connection.execute("select body from reads order by number desc limit 1").fetchone()
        assert json.loads(body)["token"] == id_of(caller.token)
    assert guard.by("--user", "auditor").call(VERIFY, {}).body["intact"]


def test_who_is_bound_to_a_scope_learns_of_the_audit_log_no_more_than_its_own(tmp_path: Path) -> None:
    """The chain is one of all scopes: its length, its head and where it is broken tell of the others."""
    with guarded(tmp_path / "data") as guard:
        whole, bound = guard.by("--user", "all"), guard.by("--service", "ops", scope={"world": "w"})
        for by, many in ((whole, 2), (bound, 1)):
            by.say(TALK, "x", agent_id="other")
            for _ in range(many):
                ok(by.search("x", agentId="other", scope={} if by is whole else {"world": "w"}))
        told = ok(whole.call(VERIFY, {})).body
        assert (told["intact"], told["records"], len(told["head"])) == (True, "3", 64)
        assert ok(bound.call(VERIFY, {})).body == {"intact": True, "records": "1"}
        with closing(sqlite3.connect(guard.owner.data / "store.sqlite3", isolation_level=None, timeout=30)) as connection:
            connection.execute("delete from read_targets where number = 1")
        assert ok(whole.call(VERIFY, {})).body["faults"][0]["record"] == "1"
        fault = {"problem": "not as it was written: a caller that no scope binds is told where"}
        assert ok(bound.call(VERIFY, {})).body == {"records": "1", "faults": [fault]}


# Revoked, expired, and made while the service runs


def test_a_token_that_is_revoked_is_worth_nothing_from_then_on(guard: Guarded, grpc_door: GrpcDoor) -> None:
    by = guard.by("--user", "ada")
    assert by.search("x").code == grpc_door.call(SEARCH, ASKED, by.headers).code == "ok"
    guard.owner.does("token", "revoke", id_of(by.token))
    assert by.search("x").code == grpc_door.call(SEARCH, ASKED, by.headers).code == "unauthenticated"


def test_a_token_that_ends_is_worth_nothing_from_then_on(guard: Guarded) -> None:
    by = guard.by("--user", "ada", "--expires", "1d")
    assert by.search("x").code == "ok"
    end(guard.owner, by.token, at=1)
    assert by.search("x").code == "unauthenticated"


def test_an_import_ends_with_its_token(guard: Guarded) -> None:
    """A stream may go on for hours after its token was looked at: what came before it ended is kept, what comes later not."""
    by, agent = guard.by("--user", "ada"), new("agent")
    user = guard.by("--user", "bob")

    def messages() -> Iterator[Json]:
        for talk in ("before", "after"):
            batch = [turn(str(place)) for place in range(600)]
            yield {"agent": {"agentId": agent}, "conversation": {"conversationId": talk}, "turns": batch}
            if talk == "before":
                # It is taken when it is there; only then the token ends.
                wait_until(lambda: user.call(READ, {"agentId": agent, "conversationId": "before", "length": 1}).code == "ok")
                guard.owner.does("token", "revoke", id_of(by.token))

    reply = by.bring(messages())
    assert (reply.code, reply.message) == ("unauthenticated", REFUSAL)
    assert user.read("before", agentId=agent).code == "ok"
    assert user.read("after", agentId=agent).code == "not_found"


@pytest.mark.parametrize("wrong", [Unauthenticated("x"), Unavailable("x"), RuntimeError("x"), asyncio.CancelledError()])
def test_calls_whose_caller_is_not_known_do_not_hold_up_the_end(wrong: BaseException) -> None:
    """While a token is looked up its call is in flight; afterwards it is not, whatever came of it."""
    frame, seen = Frame(1), []

    async def authenticate(call: Call, given: Sequence[str]) -> Call:
        seen.append((frame.in_flight, frame.idle.is_set(), call.agent_id, list(given)))
        raise wrong

    frame.authenticate = authenticate
    ctx: Any = SimpleNamespace(
        request_headers=Headers([("authorization", "Bearer x")]),
        response_headers=Headers(),
        timeout_ms=None,
        method=SimpleNamespace(name="SearchTranscripts"),
    )
    with pytest.raises(asyncio.CancelledError if isinstance(wrong, asyncio.CancelledError) else ConnectError):
        asyncio.run(frame.on_start(ctx))
    assert seen == [(1, False, "", ["Bearer x"])]
    assert (frame.in_flight, frame.idle.is_set()) == (0, True)


# What is kept, and what is told


def test_a_token_is_kept_as_a_keyed_hash_alone(guard: Guarded, tmp_path: Path) -> None:
    token = guard.owner.token("--user", "ada", "--never")
    assert FORM.fullmatch(token)
    secret = token.split("_")[2].encode()
    for file in guard.owner.data.rglob("*"):
        assert not file.is_file() or secret not in file.read_bytes(), file.name
    listed = guard.owner.run("token", "list")
    assert id_of(token) in listed.out
    assert secret.decode() not in listed.out + listed.err
    # A store beside another secret knows no token.
    shutil.copytree(guard.owner.data, tmp_path / "data", ignore=shutil.ignore_patterns("lock", "index", "secret"))
    with guarded(tmp_path / "data") as other:
        assert Caller(other.door, token=token).search("x").code == "unauthenticated"
        assert id_of(token) in {one["id"] for one in other.owner.listed("token")}


def test_tokens_are_not_logged(start_server: StartServer, tmp_path: Path, contract: Contract) -> None:
    data = tmp_path / "data"
    owner = Owner(data)
    good, revoked = owner.token("--user", "ada"), owner.token("--agent", "bob")
    owner.does("token", "revoke", id_of(revoked))
    running = start_server(data=data, settings={"AFORESAID_AUTH": "token", "AFORESAID_LOG_LEVEL": "debug"})
    door, over_grpc = ConnectDoor(running.url), GrpcDoor(running.grpc, contract)
    try:
        for token in (good, revoked, f"{good}x", "letmein-or-else"):
            for one in (door, over_grpc):
                for headers in ({}, {"x-agent-id": "bob"}):
                    reply = one.call(SEARCH, ASKED, headers | {"authorization": f"Bearer {token}"})
                    assert token not in str(reply)
    finally:
        door.close()
        over_grpc.close()
    running.stop()
    log = running.told()
    assert log.count('"event": "call"') == 16
    for told in (good, revoked, "letmein", good.split("_")[2]):
        assert told not in log


def test_one_secret_is_made_however_many_ask_for_it_at_once(tmp_path: Path) -> None:
    """A command may make the first token at the moment when the server starts."""
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: keys_in(tmp_path / "secret"), range(64)))
    assert found == {keys_in(tmp_path / "secret")}
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]
    keys = next(iter(found))
    assert len({keys.cursors, keys.audit, keys.tokens}) == 3


# The commands


def test_new_prints_the_token_alone(tmp_path: Path) -> None:
    """On standard output, for a pipe; what it is good for on the other."""
    owner = Owner(tmp_path / "data")
    told = owner.run("token", "new", "--agent", "ada", "--role", "reviewer", "--scope", "world=w", "--expires", "2100-01-31")
    assert told.code == 0
    assert FORM.fullmatch(told.out.removesuffix("\n"))
    made, about = told.err.splitlines()
    assert made == f"made a new data folder: {tmp_path / 'data'}"
    assert about == f"token {id_of(told.out)} of agent ada (role reviewer), scope world=w, expires 2100-01-31T00:00:00Z"
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "data").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file.name
    assert owner.run("token", "new", "--user", "ops", "--never").err.endswith("of user ops, scope none, expires never\n")


def test_an_agent_gets_the_role_of_its_newest_token(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "data")
    roles = []
    for role in ([], ["--role", "observer"], [], ["--role", "reviewer"]):
        owner.token("--agent", "ada", *role)
        roles.append({one["role"] for one in owner.listed("token")})
    assert roles == [{"implementer"}, {"observer"}, {"observer"}, {"reviewer"}]


def test_list(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "data")
    assert owner.run("token", "list").err == f"aforesaid-server: there is no store at {tmp_path / 'data/store.sqlite3'}\n"
    ada = owner.token("--agent", "ada", "--expires", "2100-01-31T12:00:00+02:00", scope={"world": "w", "user_id": "u"})
    ops, gone = owner.token("--service", "ops", "--never"), owner.token("--user", "a\x1b[2Jb")
    end(owner, gone, at=1_000_000)
    owner.does("token", "revoke", id_of(ops))
    assert [(one["id"], one["kind"], one["name"], one["expires"], one["state"]) for one in owner.listed("token")] == [
        (id_of(gone), "user", "a\x1b[2Jb", "1970-01-01T00:00:01Z", "expired"),
        (id_of(ops), "service", "ops", "never", "revoked"),
        (id_of(ada), "agent", "ada", "2100-01-31T10:00:00Z", "good"),
    ]
    head, *lines = owner.does("token", "list").splitlines()
    assert head.split() == ["id", "whose", "scope", "made", "expires", "state"]
    assert [line.split()[0] for line in lines] == [id_of(one) for one in (gone, ops, ada)]
    assert "\x1b" not in "".join(lines)
    assert "user_id=u world=w" in lines[2]


def test_revoke(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "data")
    token = owner.token("--user", "ada")
    assert owner.does("token", "revoke", id_of(token)) == f"token {id_of(token)} of user ada is revoked"
    again = owner.does("token", "revoke", id_of(token))
    assert re.fullmatch(rf"token {id_of(token)} of user ada is revoked: it was revoked already, at 2\S+Z", again)
    for unknown in ("nothing", token):
        told = owner.run("token", "revoke", unknown)
        assert (told.code, told.out) == (2, "")
        assert token not in told.err
        assert "no token with this id" in told.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name one of --agent, --user and --service"),
        (["--agent", "a", "--user", "b"], "name one of --agent, --user and --service"),
        (["--user", ""], "--user: a name has 1 to 256 characters"),
        (["--service", "x" * 257], "--service: a name has 1 to 256 characters"),
        (["--agent", ""], "agent : an id has 1 to 512 bytes"),
        (["--agent", "é" * 257], f"agent {'é' * 40}: an id has 1 to 512 bytes"),
        (["--user", "a", "--role", "reviewer"], "--role: a user has none"),
        (["--agent", "a", "--role", "x" * 129], "--role: a role has 1 to 128 characters"),
        (["--user", "a", "--never", "--expires", "1d"], "--expires and --never contradict each other"),
        (
            ["--user", "a", "--expires", "soon"],
            "--expires soon: is neither a span such as 90d, 12h or 2w nor a date such as 2030-01-31",
        ),
        (
            ["--user", "a", "--expires", "999999w"],
            "--expires 999999w: is neither a span such as 90d, 12h or 2w nor a date such as 2030-01-31",
        ),
        (["--user", "a", "--expires", "0d"], "--expires 0d: has passed"),
        (["--user", "a", "--expires", "2001-02-03"], "--expires 2001-02-03: has passed"),
        (["--user", "a", "--scope", "ada"], "--scope ada: is not KEY=VALUE"),
        (["--user", "a", "--scope", "=ada"], "--scope =ada: is not KEY=VALUE"),
        (["--user", "a", "--scope", "u=ada", "--scope", "u=bob"], "--scope u=bob: u is given twice"),
        (
            ["--user", "a", *[part for place in range(17) for part in ("--scope", f"k{place}=v")]],
            "--scope: 17 pairs, at most 16 are allowed",
        ),
        (["--user", "a", "--scope", f"k={'v' * 1025}"], "--scope k: at most 256 bytes of a key and 1024 of a value are allowed"),
    ],
)
def test_what_new_refuses(arguments: list[str], told: str, tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    outcome = owner.run("token", "new", *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"aforesaid-server: {told}\n")
    assert owner.run("token", "list").out == ""


def test_an_agent_of_an_id_that_several_have(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "data")
    for user in ("ada", "bob"):
        owner.token("--agent", "twin", scope={"user_id": user})
    told = owner.run("token", "new", "--agent", "twin")
    assert told.err.splitlines() == [
        "aforesaid-server: 2 agents have the id twin: name the scope",
        "aforesaid-server:   user_id=ada",
        "aforesaid-server:   user_id=bob",
    ]


def test_the_examples_of_the_page(tmp_path: Path, scripts_path: str) -> None:
    """docs/access.md shows the commands with what they print on both outputs."""
    Owner(tmp_path / "data").token("--agent", "shop-observer", scope={"project": "shop"})
    text = (ROOT / "docs" / "access.md").read_text("utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    shown = [example for block in blocks for example in commands("docs/access.md", 0, block.splitlines())]
    assert len(shown) == 6
    for example in shown:
        environment = {"PATH": scripts_path, "AFORESAID_DATA": str(tmp_path / "data")}
        done = subprocess.run(["/bin/sh", "-c", example.command], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert disagreement(example.output, done.stdout + done.stderr) == "", str(example)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Services in this process log nothing here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
