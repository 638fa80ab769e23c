"""Tokens and grants as the store keeps them: until when each is good, who revoked it, and that nothing is ever deleted."""

from __future__ import annotations

import pytest

from aforesaid_server.access import Call
from aforesaid_server.errors import Unauthenticated
from aforesaid_server.store import AgentKey, NewGrant, NewToken
from aforesaid_server.store.sql import SqlStore
from aforesaid_server.tokens import Owner, Tokens

FOR_EVER = 10**18


def test_the_moment_at_which_a_token_ends(store: SqlStore) -> None:
    clock = [0]
    tokens = Tokens(store, bytes(32), now=lambda: clock[0])
    _, token = tokens.make(Owner("user", name="ada"), 1_000)
    _, for_ever = tokens.make(Owner("user", name="ada"), None)
    call = Call("SearchTranscripts", "connect", "r")
    for clock[0], good in ((0, True), (999, True), (1_000, False), (1_001, False), (FOR_EVER, False)):
        assert tokens.authenticated(call, [f"Bearer {for_ever}"]).token_id == for_ever.split("_")[1]
        if good:
            assert tokens.authenticated(call, [f"Bearer {token}"]).token_id == token.split("_")[1]
        else:
            with pytest.raises(Unauthenticated):
                tokens.authenticated(call, [f"Bearer {token}"])


def test_tokens_are_listed_and_revoked_once(store: SqlStore) -> None:
    scope = {"user_id": "ada\x00", "team": "é"}
    agent = store.update_agent(AgentKey("agent", scope))
    store.add_token(NewToken("old", b"1" * 32, "agent", None, agent_pk=agent.pk), now=1)
    store.add_token(NewToken("b", b"2" * 32, "user", 50, name="ada", scope=scope), now=2)
    store.add_token(NewToken("a", b"\x00" * 32, "service", 50, name="mailer"), now=2)
    listed = store.list_tokens()
    assert [(one.token_id, one.kind, one.name, dict(one.scope), one.created_at, one.expires_at) for one in listed] == [
        ("a", "service", "mailer", {}, 2, 50),
        ("b", "user", "ada", scope, 2, 50),
        ("old", "agent", "", scope, 1, None),
    ]
    assert (listed[0].digest, listed[2].agent) == (b"\x00" * 32, agent)
    assert [store.token(one.token_id) for one in listed] == listed
    assert store.token("none") is store.revoke_token("none", now=3) is None
    assert [store.revoke_token("b", now=now) for now in (3, 4)] == [listed[1], store.token("b")]
    found = store.token("b")
    assert found is not None
    assert (found.revoked_at, found.good_at(2)) == (3, False)
    assert len(store.list_tokens()) == 3


def test_the_moment_at_which_a_grant_ends(store: SqlStore) -> None:
    reader, read = (store.update_agent(AgentKey(name)).pk for name in ("reader", "read"))
    number = store.add_grant(NewGrant(reader, read, 1_000, "why", "by"), now=0)
    assert [store.granted(reader, now) for now in (0, 999, 1_000, FOR_EVER)] == [{read}, {read}, set(), set()]
    assert store.granted(read, 0) == set()
    store.revoke_grant(number, now=5, by="x")
    assert store.granted(reader, 0) == set()


def test_grants_are_listed_and_revoked_once(store: SqlStore) -> None:
    one, two, three = (store.update_agent(AgentKey(name, {"user_id": "ada"})) for name in "abc")
    numbers = [
        store.add_grant(NewGrant(reader.pk, target.pk, 50, f"why {reader.agent_id}\x00", "by"), now=now)
        for now, (reader, target) in enumerate(((one, two), (two, three), (one, three)), 1)
    ]
    assert numbers == sorted(numbers)
    listed = store.list_grants()
    assert [(grant.number, grant.reader, grant.target, grant.why, grant.granted_at) for grant in listed] == [
        (numbers[2], one, three, "why a\x00", 3),
        (numbers[1], two, three, "why b\x00", 2),
        (numbers[0], one, two, "why a\x00", 1),
    ]
    assert store.granted(one.pk, 9) == {two.pk, three.pk}
    assert store.revoke_grant(max(numbers) + 1, now=9, by="x") is None
    assert store.revoke_grant(numbers[0], now=9, by="x") == listed[2]
    again = store.revoke_grant(numbers[0], now=10, by="y")
    assert again is not None
    assert (again.revoked_at, again.revoked_by, again.good_at(1)) == (9, "x", False)
    assert store.granted(one.pk, 9) == {three.pk}
    assert len(store.list_grants()) == 3
