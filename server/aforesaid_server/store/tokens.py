"""Tokens and grants as rows. What a token looks like is `aforesaid_server.tokens`' business; here it is an id and a hash.

Nothing is ever deleted: a revoked row keeps its times, so that it can be told afterwards who could do what, and when.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, select

from aforesaid_server.store import NewGrant, NewToken, StoredAgent, StoredGrant, StoredToken
from aforesaid_server.store.agents import agents_by_pk
from aforesaid_server.store.rows import AGENT, agent_of, canonical, scope_of, with_agents
from aforesaid_server.store.tables import agents, grants, tokens

_TOKEN = (
    tokens.c.token_id,
    tokens.c.digest,
    tokens.c.kind,
    tokens.c.name,
    tokens.c.scope,
    tokens.c.created_at,
    tokens.c.expires_at,
    tokens.c.revoked_at,
)
_TOKENS = select(*_TOKEN, *AGENT).select_from(
    with_agents(tokens.outerjoin(agents, tokens.c.agent_pk == agents.c.pk), all_of_them=True)
)
_BY_ID = _TOKENS.where(tokens.c.token_id == bindparam("id"))
_GRANTS = select(
    grants.c.number,
    grants.c.reader_pk,
    grants.c.target_pk,
    grants.c.why,
    grants.c.granted_at,
    grants.c.granted_by,
    grants.c.expires_at,
    grants.c.revoked_at,
    grants.c.revoked_by,
)
_GRANTED = select(grants.c.target_pk).where(
    grants.c.reader_pk == bindparam("reader"), grants.c.expires_at > bindparam("now"), grants.c.revoked_at.is_(None)
)


# -- tokens


def add_token(connection: Connection, token: NewToken, now: int) -> None:
    """Keeps a token."""
    row = {
        "token_id": token.token_id,
        "digest": token.digest,
        "kind": token.kind,
        "agent_pk": token.agent_pk,
        "name": token.name,
        "scope": canonical(token.scope),
        "created_at": now,
        "expires_at": token.expires_at,
        "revoked_at": None,
    }
    connection.execute(tokens.insert(), row)


def token_by_id(connection: Connection, token_id: str) -> StoredToken | None:
    """Returns a token, whether it is still good or not."""
    row = connection.execute(_BY_ID, {"id": token_id}).first()
    return _token_of(row) if row else None


def list_tokens(connection: Connection) -> list[StoredToken]:
    """Returns all tokens, the newest first."""
    found = _TOKENS.order_by(tokens.c.created_at.desc(), tokens.c.token_id)
    return [_token_of(row) for row in connection.execute(found)]


def revoke_token(connection: Connection, token_id: str, now: int) -> StoredToken | None:
    """Revokes a token, unless it is revoked already; returns it as it was before, None if there is none."""
    before = token_by_id(connection, token_id)
    if before is not None and before.revoked_at is None:
        connection.execute(tokens.update().where(tokens.c.token_id == token_id).values(revoked_at=now))
    return before


def _token_of(row: Any) -> StoredToken:
    token_id, digest, kind, name, scope, created_at, expires_at, revoked_at = row[: len(_TOKEN)]
    agent = agent_of(row[len(_TOKEN) :]) if row[len(_TOKEN)] is not None else None
    bound = agent.scope if agent is not None else scope_of(scope)
    return StoredToken(token_id, digest, kind, agent, name, bound, created_at, expires_at, revoked_at)


# -- grants


def add_grant(connection: Connection, grant: NewGrant, now: int) -> int:
    """Keeps a grant and returns its number."""
    row = {
        "reader_pk": grant.reader_pk,
        "target_pk": grant.target_pk,
        "why": grant.why,
        "granted_at": now,
        "granted_by": grant.by,
        "expires_at": grant.expires_at,
        "revoked_at": None,
        "revoked_by": "",
    }
    number: int = connection.execute(grants.insert().returning(grants.c.number), row).scalar_one()
    return number


def granted(connection: Connection, reader_pk: int, now: int) -> frozenset[int]:
    """Returns the pks of the agents that an agent may read by a grant at this time."""
    return frozenset(connection.execute(_GRANTED, {"reader": reader_pk, "now": now}).scalars())


def list_grants(connection: Connection) -> list[StoredGrant]:
    """Returns all grants, the newest first."""
    rows = connection.execute(_GRANTS.order_by(grants.c.number.desc())).all()
    known = agents_by_pk(connection, {pk for row in rows for pk in row[1:3]})
    return [_grant_of(row, known) for row in rows]


def revoke_grant(connection: Connection, number: int, now: int, by: str) -> StoredGrant | None:
    """Revokes a grant, unless it is revoked already; returns it as it was before, None if there is none."""
    row = connection.execute(_GRANTS.where(grants.c.number == number)).first()
    if row is None:
        return None
    before = _grant_of(row, agents_by_pk(connection, set(row[1:3])))
    if before.revoked_at is None:
        connection.execute(grants.update().where(grants.c.number == number).values(revoked_at=now, revoked_by=by))
    return before


def _grant_of(row: Any, known: dict[int, StoredAgent]) -> StoredGrant:
    number, reader_pk, target_pk, *rest = row
    return StoredGrant(number, known[reader_pk], known[target_pk], *rest)
