"""`aforesaid-server check`: a service that does what it promises, and each step that may fail; the canary never stays."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from aforesaid_server.__main__ import commands
from aforesaid_server.api.health import Readiness
from aforesaid_server.checks.service import CANARY_AGENT, CANARY_SCOPE
from scripts.running_server import ROOT, RunningServer
from tests.api.callers import LIST_CONVERSATIONS, Caller, hits, new, ok
from tests.api.certificates import Signed, signed
from tests.api.doors import ConnectDoor, running
from tests.api.fakes import FakeCore
from tests.api.guarded import Guarded, guarded
from tests.conftest import StartServer


def checked(*arguments: str, environment: dict[str, str] | None = None) -> tuple[int, list[str]]:
    """Runs the command in this process; returns the exit code and its lines, without what a service in this process logs."""
    outcome = CliRunner(env=environment).invoke(commands, ["check", *arguments])
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit)
    lines = (outcome.stdout + outcome.stderr).splitlines()
    return outcome.exit_code, [line for line in lines if line.startswith(("ok ", "FAILED ", "aforesaid-server: "))]


NAMES = ["alive", "ready", "write", "find", "find over gRPC", "read", "delete", "no longer find", "audit log"]


def names_of(lines: list[str]) -> list[str]:
    """The steps that are said to be right, in order."""
    return [line.removeprefix("ok      ").partition(":")[0] for line in lines if line.startswith("ok      ")]


def test_a_service_that_does_what_it_promises(server: RunningServer) -> None:
    """As a program: what is told stands on standard output, a step a line."""
    command = [sys.executable, "-m", "aforesaid_server", "check", "--url", server.url, "--grpc", server.grpc, "--wait", "60"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AFORESAID_")}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert names_of(ended.stdout.splitlines()) == NAMES
    assert len(ended.stdout.splitlines()) == len(NAMES)


def test_nothing_of_a_check_is_found_afterwards(server: RunningServer) -> None:
    code, lines = checked("--url", server.url, "--wait", "60")
    assert (code, names_of(lines)) == (0, [name for name in NAMES if name != "find over gRPC"])
    with closing(ConnectDoor(server.url)) as door:
        user = Caller(door).within(**CANARY_SCOPE)
        assert user.all_of(LIST_CONVERSATIONS, "conversations", agentId=CANARY_AGENT) == []
        found = ok(user.search("aforesaid canary turn written check"))
        assert hits(found) == []
        (agent,) = ok(user.call("agent.v1.AgentService/ListAgents", {})).body["agents"]
        assert (agent["agentId"], agent["archived"]) == (CANARY_AGENT, True)


def test_a_second_check_makes_no_second_agent(server: RunningServer) -> None:
    for _ in range(2):
        assert checked("--url", server.url, "--wait", "60")[0] == 0
    with closing(ConnectDoor(server.url)) as door:
        assert len(ok(Caller(door).within(**CANARY_SCOPE).call("agent.v1.AgentService/ListAgents", {})).body["agents"]) == 1


def test_as_an_agent_it_uses_that_agents_own_conversations(server: RunningServer) -> None:
    agent = new("agent né 記憶")
    code, lines = checked("--url", server.url, "--as", agent, "--grpc", server.grpc, "--wait", "60")
    assert (code, names_of(lines)) == (0, NAMES[:-1])  # agents may not verify the audit log
    with closing(ConnectDoor(server.url)) as door:
        assert Caller(door).all_of(LIST_CONVERSATIONS, "conversations", agentId=agent) == []


def test_the_address_comes_from_the_environment(server: RunningServer) -> None:
    assert checked("--wait", "60", environment={"AFORESAID_URL": f"{server.url}/"})[0] == 0


@pytest.mark.parametrize("url", ["127.0.0.1:8787", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999", "http://[::1"])
def test_an_address_that_is_none(url: str) -> None:
    assert checked("--url", url) == (2, [f"aforesaid-server: url {url} is no address such as http://127.0.0.1:8787"])


def test_nobody_answers() -> None:
    code, lines = checked("--url", "http://127.0.0.1:1")
    assert (code, lines) == (1, ["FAILED  alive: expected an answer from http://127.0.0.1:1, came connection refused"])


# -- steps that fail, on a service over a core that lies


@contextmanager
def lying(core: FakeCore, **answers: Callable[[Any], Any]) -> Iterator[str]:
    """Serves a core some of whose methods answer something else; returns the address."""
    house = core.house()
    liar: Any = _Liar(core, answers)
    made = replace(house, core=replace(house.core, searcher=liar, reader=liar, writer=liar, audit=liar))
    with running(made) as service:
        yield service.url


class _Liar:
    def __init__(self, core: FakeCore, answers: dict[str, Callable[[Any], Any]]) -> None:
        self._core, self._answers = core, answers

    def __getattr__(self, name: str) -> Any:
        answer, true = self._answers.get(name), getattr(self._core, name)

        def method(call: Any, *asked: Any) -> Any:
            said = true(call, *asked)
            return answer(said) if answer else said

        return method


@pytest.fixture
def core() -> FakeCore:
    """A core of a test's own."""
    return FakeCore()


def test_a_service_that_finds_nothing(core: FakeCore) -> None:
    with lying(core) as url:
        code, lines = checked("--url", url)
    assert code == 1
    assert names_of(lines) == ["alive", "ready", "write", "delete after all"]
    assert "FAILED  find: expected the turn as the one match, came 0 matches" in lines
    deleted = [request for _, request in core.asked if type(request).__name__ == "DeleteRequest"]
    assert [(request.agent_id, dict(request.scope)) for request in deleted] == [(CANARY_AGENT, CANARY_SCOPE)]


def test_a_service_that_is_not_ready_says_why(core: FakeCore) -> None:
    core.readiness = Readiness(False, "the index is being rebuilt", 3, 7)
    with running(core.house()) as service:
        code, lines = checked("--url", service.url)
    assert (code, lines[1:]) == (
        1,
        ["FAILED  ready: expected /readyz to answer 200, came 503: the index is being rebuilt, 3 of 7 changes"],
    )
    assert core.asked == []


def test_it_waits_for_a_service_to_be_ready(core: FakeCore) -> None:
    core.readiness = Readiness(False, "the index is being rebuilt")
    asked = threading.Event()

    def readiness() -> Readiness:
        if asked.is_set():
            return Readiness(True)
        asked.set()
        return Readiness(False, "the index is being rebuilt")

    with running(replace(core.house(), readiness=readiness)) as service:
        _, lines = checked("--url", service.url, "--wait", "60")
    assert names_of(lines)[:3] == ["alive", "ready", "write"]


def test_an_error_of_a_method_is_told(core: FakeCore) -> None:
    def fail(_: Any) -> Any:
        raise ValueError("squeamish")

    with lying(core, append=fail) as url:
        code, lines = checked("--url", url)
    assert code == 1
    assert lines[2].startswith("FAILED  write: expected AppendTurns to succeed, came internal: unforeseen: ")
    # Perhaps it was written all the same.
    assert names_of(lines) == ["alive", "ready", "delete after all"]


def test_an_audit_log_that_was_altered_is_told(start_server: StartServer) -> None:
    server = start_server()
    assert checked("--url", server.url, "--wait", "60")[0] == 0
    with closing(sqlite3.connect(server.data / "store.sqlite3")) as connection, connection:
        connection.execute("UPDATE reads SET body = body || ' ' WHERE number = 1")
    code, lines = checked("--url", server.url)
    assert (code, names_of(lines)) == (1, [name for name in NAMES[:-1] if name != "find over gRPC"])
    assert lines[-1] == "FAILED  audit log: expected an audit log that is intact, came record 1: altered"


def test_a_token_that_is_wrong_is_told_and_not_shown(start_server: StartServer) -> None:
    server = start_server(settings={"AFORESAID_AUTH": "token"})
    code, lines = checked("--url", server.url, "--wait", "60", environment={"AFORESAID_TOKEN": "squeamish"})
    assert code == 1
    assert lines[2].startswith("FAILED  write: expected AppendTurns to succeed, came unauthenticated: ")
    assert "squeamish" not in "".join(lines)


# -- tokens and TLS


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guarded, Signed]]:
    """A service that demands tokens, behind TLS."""
    made = signed(tmp_path_factory.mktemp("certificates"))
    settings = {"tls_certificate": made.certificate, "tls_key": made.key}
    with guarded(tmp_path_factory.mktemp("guarded") / "data", verify=made.ca, **settings) as started:
        yield started, made


@pytest.mark.parametrize("owner", [("--user", "ada"), ("--service", "watch")])
def test_with_a_token_and_over_tls(owner: tuple[str, str], guard: tuple[Guarded, Signed]) -> None:
    started, made = guard
    environment = {"AFORESAID_TOKEN": started.owner.token(*owner, scope={"team": "shop"})}
    service = started.service
    code, lines = checked("--url", service.url, "--grpc", service.target, "--ca", str(made.ca), environment=environment)
    assert (code, names_of(lines)) == (0, NAMES)


def test_an_agent_with_a_token_says_which_one_it_is(guard: tuple[Guarded, Signed]) -> None:
    started, made = guard
    environment = {"AFORESAID_TOKEN": started.owner.token("--agent", "kestrel")}
    arguments = ("--url", started.service.url, "--ca", str(made.ca), "--as", "kestrel")
    code, lines = checked(*arguments, environment=environment)
    assert (code, names_of(lines)) == (0, [name for name in NAMES[:-1] if name != "find over gRPC"])


def test_a_certificate_that_is_not_trusted_is_told(guard: tuple[Guarded, Signed]) -> None:
    code, lines = checked("--url", guard[0].service.url)
    assert code == 1
    assert lines[0].startswith(f"FAILED  alive: expected an answer from {guard[0].service.url}, came ")
    assert "certificate" in lines[0]


def test_a_service_without_tls_is_told(server: RunningServer) -> None:
    code, lines = checked("--url", server.url.replace("http:", "https:"))
    assert (code, lines[0].startswith("FAILED  alive: expected an answer from https://")) == (1, True)
