"""Nodes that come, go and die, and those that do not belong to the others."""

from __future__ import annotations

import secrets
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from aforesaid_server.errors import StartError
from aforesaid_server.house import build_core
from aforesaid_server.settings import Settings
from scripts.postgresql import Cluster, cluster
from scripts.running_server import ServerNotReady, start
from tests.api.callers import APPEND, SEARCH_TURNS, VERIFY, Caller, hits, new, new_word, number, ok, turn, turn_ids
from tests.api.guarded import Owner
from tests.faults.serving import served
from tests.nodes.conftest import StartNode, folder_with


def test_a_node_that_is_killed(start_node: StartNode, postgres: str) -> None:
    """Whatever it acknowledged before is found on the other one, which goes on; what was under way is there or not, and no more.
    The killed one starts again with the index that it has, and finds all that came since.
    """
    killed, other = start_node(postgres, "one"), start_node(postgres, "two")
    agent, common = new("agent"), new_word()
    acknowledged: list[str] = []
    enough = threading.Event()

    def write() -> None:
        while True:
            word = new_word()
            try:
                ok(killed.user.call(APPEND, {"agentId": agent, "conversationId": new("talk"), "turns": [turn(f"{common} {word}")]}))
            except httpx.TransportError:
                return
            acknowledged.append(word)
            if len(acknowledged) >= 30:
                enough.set()

    with ThreadPoolExecutor(3) as threads:
        writers = [threads.submit(write) for _ in range(3)]
        assert enough.wait(60)
        killed.server.kill()
        for writer in writers:
            writer.result()
    for word in acknowledged:
        assert len(hits(ok(other.user.search(word)))) == 1
    found = sum(len(page.body.get("matches", [])) for page in other.user.pages(common))
    assert len(acknowledged) <= found <= len(acknowledged) + 3
    more = other.user.say("more", f"{common} and more", agent_id=agent)
    again = start_node(postgres, "one")
    for user in (again.user, other.user):
        assert [hit["turnId"] for hit in ok(user.search(f"{common} more")).body["matches"]] == more
        assert sum(len(page.body.get("matches", [])) for page in user.pages(common)) == found + 1


def test_a_node_that_was_away(postgres: str, tmp_path: Path) -> None:
    """It has an old index, or none, or one that was copied from another node, and finds what was written, and not what went."""
    secret = secrets.token_bytes(32)
    one, two = (folder_with(secret, tmp_path / name) for name in ("one", "two"))
    stays, goes, comes = new_word(), new_word(), new_word()
    with served(one, store=postgres) as node:
        node.wait_until_ready()
        node.user.say("stays", stays, agent_id="a")
        node.user.say("goes", goes, agent_id="a")
    with served(two, store=postgres) as other:
        other.wait_until_ready()
        assert turn_ids(other.user.search(goes)) == ["goes:0"]
        ok(other.user.call("agent.v1.ConversationService/DeleteConversation", {"agentId": "a", "conversationId": "goes"}))
        other.user.say("comes", comes, agent_id="a")
        shutil.copytree(one / "index", tmp_path / "copied")
        shutil.copytree(tmp_path / "copied", folder_with(secret, tmp_path / "three") / "index")
        for folder in (one, tmp_path / "three"):
            with served(folder, store=postgres) as node:
                node.wait_until_ready()
                assert turn_ids(node.user.search(stays)) == ["stays:0"]
                assert turn_ids(node.user.search(comes)) == ["comes:0"]
                assert not hits(ok(node.user.search(goes)))


def test_a_node_with_another_secret(postgres: str, tmp_path: Path) -> None:
    """Its tokens, page tokens and audit records would not be those of the others: it says so and does not start."""
    with served(folder_with(secrets.token_bytes(32), tmp_path / "one"), store=postgres):
        pass
    strange = folder_with(secrets.token_bytes(32), tmp_path / "strange")
    with pytest.raises(ServerNotReady, match="exit code 2") as refused:
        start(strange, settings={"AFORESAID_STORE": postgres}, log=tmp_path / "strange.log")
    assert f"data folder {strange}: its secret is not that of the other nodes" in str(refused.value)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(StartError, match="holds no secret: copy that of another node"):
        build_core(Settings.model_validate({"data": empty, "store": postgres}))
    assert not (empty / "secret").exists()


def test_the_first_node_makes_the_secret(postgres: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with served(first, store=postgres):
        pass
    second.mkdir()
    shutil.copy(first / "secret", second / "secret")
    with served(second, store=postgres) as node:
        node.wait_until_ready()
    # What docs/deploying.md says of a secret that is lost on all nodes.
    with psycopg.connect(postgres) as connection:
        connection.execute("DELETE FROM deployment")
    with served(tmp_path / "anew", store=postgres) as node:
        node.wait_until_ready()
    with pytest.raises(StartError, match="its secret is not that of the other nodes"):
        build_core(Settings.model_validate({"data": first, "store": postgres}))


def test_tokens_and_grants_are_those_of_all(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made beside one node, they count on the others from the next call on; so does their end."""
    secret = secrets.token_bytes(32)
    one, two = (folder_with(secret, tmp_path / name) for name in ("one", "two"))
    monkeypatch.setenv("AFORESAID_STORE", postgres)
    owner = Owner(one)
    with served(one, store=postgres, auth="token") as node, served(two, store=postgres, auth="token") as other:
        node.wait_until_ready()
        other.wait_until_ready()
        ada = Caller(other.user.door, token=owner.token("--user", "ada"))
        ada.say("talk", "ossifrage", agent_id="read")
        ada.make("plain", role="observer")
        plain = Caller(other.user.door, token=owner.token("--agent", "plain"))
        assert plain.search("ossifrage", agentId="read").code == "permission_denied"
        grant = owner.grant("plain", "read")
        for by in (plain, Caller(node.user.door, token=plain.token)):
            assert turn_ids(ok(by.search("ossifrage", agentId="read"))) == ["talk:0"]
        Owner(two).does("grants", "revoke", str(grant))
        for by in (plain, Caller(node.user.door, token=plain.token)):
            assert by.search("ossifrage", agentId="read").code == "permission_denied"
        token_id = ada.token.split("_")[1]
        Owner(two).does("token", "revoke", token_id)
        for at in (node, other):
            assert Caller(at.user.door, token=ada.token).search("ossifrage").code == "unauthenticated"


def test_the_database_goes_away_and_comes_back(tmp_path: Path, postgres_cluster: Cluster) -> None:
    """Meanwhile nothing is answered, rather than a list that may lack something; afterwards each node goes on by itself."""
    del postgres_cluster  # tells where there is no PostgreSQL; this test stops one of its own
    secret = secrets.token_bytes(32)
    one, two = (folder_with(secret, tmp_path / name) for name in ("one", "two"))
    with cluster() as database:
        store = database.url(database.new())
        with served(one, store=store) as node, served(two, store=store) as other:
            node.wait_until_ready()
            other.wait_until_ready()
            for at in (node, other):
                at.user.say("before", "ossifrage", agent_id="a")
            database.stop()
            for at in (node, other):
                assert at.user.search("ossifrage").code == "unavailable"
                assert at.user.call(APPEND, {"agentId": "a", "conversationId": "c", "turns": [turn("x")]}).code == "unavailable"
                assert at.readyz()[0] == 503
            database.start()
            for at in (node, other):
                at.wait_until_ready()
            node.user.say("after", "ossifrage", agent_id="a")
            assert len(hits(ok(other.user.search("ossifrage", agentId="a")))) == 3
            assert len(hits(ok(node.user.search("ossifrage", agentId="a")))) == 3
            for at in (node, other):
                told = ok(at.user.call(VERIFY, {})).body
                assert (told["intact"], told["records"]) == (True, "2")


def test_figures_of_a_node(postgres: str, tmp_path: Path) -> None:
    """How far its index is behind what others wrote; the size of the store is for the database to tell."""
    secret = secrets.token_bytes(32)
    one, two = (folder_with(secret, tmp_path / name) for name in ("one", "two"))
    with served(one, store=postgres) as node, served(two, store=postgres) as other:
        node.wait_until_ready()
        other.wait_until_ready()
        node.user.say("talk", "ossifrage", agent_id="a")
        found = ok(other.user.call(SEARCH_TURNS, {"query": "ossifrage"})).body
        assert len(found["hits"]) == 1
        assert not number(found.get("freshness", {}), "turnsPending")
        figures = other.house.figures()
        assert (figures.ready, figures.store_bytes) == (True, None)
        assert other.house.readiness().ready
