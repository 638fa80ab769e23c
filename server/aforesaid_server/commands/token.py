"""`aforesaid-server token`: bearer tokens made, listed and revoked in the data folder, also while a server serves it.

What is made or revoked counts from the next call on: the server keeps no tokens in mind.
"""

from __future__ import annotations

from typing import Any

import click

from aforesaid_server.commands import folder_options, refuse
from aforesaid_server.commands.owner import (
    agent_named,
    moment,
    now,
    opened,
    scope_of,
    scope_option,
    shown_scope,
    shown_time,
    table,
    tell,
    tell_json,
)
from aforesaid_server.settings import Folder
from aforesaid_server.store import AgentKey, Scope, Store, StoredToken
from aforesaid_server.tokens import Owner, Tokens

USUAL_SPAN = "90d"
LONGEST_NAME, LONGEST_ROLE = 256, 128


@click.group()
def token() -> None:
    """Make, list and revoke bearer tokens."""


@token.command()
@click.option("--agent", "agent_id", help="The token is this agent's, which is made if there is none of that id in the scope.")
@click.option("--user", help="The token is a user's, of this name, who may read and write every agent in the scope.")
@click.option("--service", help="The same for a program.")
@click.option("--role", help="Gives the agent this role.")
@scope_option
@click.option("--expires", metavar="SPAN|DATE", help=f"When it ends: 12h, 90d, 8w, or a date or time.  [{USUAL_SPAN}]")
@click.option("--never", is_flag=True, help="It never ends.")
@folder_options
def new(
    agent_id: str | None,
    user: str | None,
    service: str | None,
    role: str | None,
    pairs: tuple[str, ...],
    expires: str | None,
    never: bool,
    folder: Folder,
) -> None:
    """Make a token for an agent, a user or a service, and print it, this once.

    Standard output holds the token alone, standard error what it is good for.
    """
    # As in `opened`: not for --help.
    from aforesaid_server.store.opening import keys_of_deployment

    owner = [(kind, name) for kind, name in (("agent", agent_id), ("user", user), ("service", service)) if name is not None]
    if len(owner) != 1:
        refuse("name one of --agent, --user and --service")
    ((kind, name),) = owner
    _check(kind, name, role, expires if never else None)
    expires_at = None if never else moment("--expires", expires or USUAL_SPAN)
    scope = scope_of(pairs)
    with opened(folder, create=True) as (store, path):
        key = keys_of_deployment(path, store).tokens
        made = _agents(store, name, scope, role) if kind == "agent" else Owner(kind, None, name, scope)
        token_id, secret = Tokens(store, key).make(made, expires_at)
        kept = store.token(token_id)
    assert kept is not None
    tell(f"token {token_id} of {_whose(kept)}, scope {shown_scope(kept.scope)}, expires {shown_time(kept.expires_at)}", err=True)
    click.echo(secret)


def _check(kind: str, name: str, role: str | None, ended: str | None) -> None:
    if ended is not None:
        refuse("--expires and --never contradict each other")
    if role is not None and kind != "agent":
        refuse(f"--role: a {kind} has none")
    if role is not None and not 0 < len(role) <= LONGEST_ROLE:
        refuse(f"--role: a role has 1 to {LONGEST_ROLE} characters")
    if kind != "agent" and not (name.strip() and len(name) <= LONGEST_NAME):
        refuse(f"--{kind}: a name has 1 to {LONGEST_NAME} characters")


def _agents(store: Store, agent_id: str, scope: Scope, role: str | None) -> Owner:
    agent = agent_named(store, agent_id, scope)
    if agent is None or (role is not None and agent.role != role):
        key = AgentKey(agent_id, scope) if agent is None else AgentKey(agent_id, agent.scope, agent.pk)
        agent = store.update_agent(key, role=role)
    return Owner("agent", agent)


@token.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@folder_options
def list_(as_json: bool, folder: Folder) -> None:
    """List all tokens, the newest first: whose they are and until when, never the tokens themselves."""
    with opened(folder) as (store, _):
        found = store.list_tokens()
    if as_json:
        for one in found:
            tell_json(_as_json(one))
        return
    table(
        [
            {
                "id": one.token_id,
                "whose": _whose(one),
                "scope": shown_scope(one.scope),
                "made": shown_time(one.created_at),
                "expires": shown_time(one.expires_at),
                "state": _state(one),
            }
            for one in found
        ]
    )


@token.command()
@click.argument("token_id", metavar="ID")
@folder_options
def revoke(token_id: str, folder: Folder) -> None:
    """Revoke the token with this id (see `token list`): the next call with it is refused."""
    with opened(folder) as (store, _):
        before = store.revoke_token(token_id, now=now())
    if before is None:
        # Not what was given: it may be a whole token, and this goes to a terminal's history.
        refuse("there is no token with this id: `token list` shows them")
    already = f": it was revoked already, at {shown_time(before.revoked_at)}" if before.revoked_at is not None else ""
    tell(f"token {before.token_id} of {_whose(before)} is revoked{already}")


def _whose(one: StoredToken) -> str:
    if one.agent is not None:
        return f"agent {one.agent.agent_id} (role {one.agent.role})"
    return f"{one.kind} {one.name}"


def _state(one: StoredToken) -> str:
    return "revoked" if one.revoked_at is not None else "good" if one.good_at(now()) else "expired"


def _as_json(one: StoredToken) -> dict[str, Any]:
    return {
        "id": one.token_id,
        "kind": one.kind,
        "name": one.agent.agent_id if one.agent is not None else one.name,
        "role": one.agent.role if one.agent is not None else "",
        "scope": dict(one.scope),
        "made": shown_time(one.created_at),
        "expires": shown_time(one.expires_at),
        "state": _state(one),
    }
