"""`aforesaid-server grant` and `grants`: leave for one agent to read another for a time, whatever its role.

A grant is for the target alone, not for its sub-agents, and never crosses a scope. What is read by it is recorded like any other
read of somebody else; the grants themselves are kept, with who gave and who took them back, also when they have ended.
"""

from __future__ import annotations

import getpass
from typing import Any

import click

from aforesaid_server.access import joined
from aforesaid_server.commands import folder_flags, folder_options, refuse
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
    the_one,
)
from aforesaid_server.settings import Folder
from aforesaid_server.store import NewGrant, Scope, Store, StoredAgent, StoredGrant

LONGEST_TEXT = 1000


def _account() -> str:
    """Returns the name of the account that runs the command; of a process without one, as in some containers, its number."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown account"


@click.command()
@click.argument("reader")
@click.option("--read", "target", required=True, help="The agent that may be read.")
@click.option("--until", required=True, metavar="SPAN|DATE", help="When it ends: 12h, 30d, 8w, or a date or time.")
@click.option("--why", required=True, help="The reason, for whoever looks at the grants later.")
@click.option("--by", help="Who grants it.  [the account that runs this]")
@scope_option
@folder_options
def grant(reader: str, target: str, until: str, why: str, by: str | None, pairs: tuple[str, ...], folder: Folder) -> None:
    """Let the agent READER read another agent of its scope for a time."""
    expires_at = moment("--until", until)
    for flag, text in (("--why", why), ("--by", by or "x")):
        if not (text.strip() and len(text) <= LONGEST_TEXT):
            refuse(f"{flag}: 1 to {LONGEST_TEXT} characters are wanted")
    with opened(folder) as (store, _):
        who, whom = _both(store, reader, target, scope_of(pairs))
        number = store.add_grant(NewGrant(who.pk, whom.pk, expires_at, why, by or _account()), now=now())
    tell(
        f"grant {number}: agent {who.agent_id} may read agent {whom.agent_id} (scope {shown_scope(whom.scope)}) "
        f"until {shown_time(expires_at)}"
    )


def _both(store: Store, reader: str, target: str, scope: Scope) -> tuple[StoredAgent, StoredAgent]:
    """Returns reader and target: the scope may be the narrower one of the target, or tell several readers of one id apart."""
    readers = [agent for agent in store.agents_with_id(reader, {}) if joined(agent.scope, scope) is not None]
    who = the_one(readers, reader, scope)
    if who is None:
        refuse(f"there is no agent {reader} in scope {shown_scope(scope)}")
    whom = agent_named(store, target, joined(who.scope, scope) or who.scope)
    if whom is None:
        refuse(f"there is no agent {target} that {reader} (scope {shown_scope(who.scope)}) could see: no grant crosses a scope")
    if whom.pk in store.family(who.pk):
        refuse(f"{target} is {reader} itself or one of its sub-agents, which it may read anyway")
    return who, whom


@click.group(invoke_without_command=True)
@folder_flags
@click.pass_context
def grants(context: click.Context, data: str | None, store: str | None) -> None:
    """List and revoke grants; without a command, list them."""
    if context.invoked_subcommand is None:
        context.invoke(list_, as_json=False, data=data, store=store)
        return
    for flag, value in (("--data", data), ("--store", store)):
        if value is not None:
            refuse(f"{flag}: stands after {context.invoked_subcommand}")


@grants.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@folder_options
def list_(as_json: bool, folder: Folder) -> None:
    """List all grants, the newest first, those that have ended too."""
    with opened(folder) as (store, _):
        found = store.list_grants()
    if as_json:
        for one in found:
            tell_json(_as_row(one) | {"scope": dict(one.target.scope)})
        return
    table([_as_row(one) for one in found])


@grants.command()
@click.argument("number", type=int)
@click.option("--by", help="Who takes it back.  [the account that runs this]")
@folder_options
def revoke(number: int, by: str | None, folder: Folder) -> None:
    """Take the grant with this number back: the next read by it is refused."""
    with opened(folder) as (store, _):
        before = store.revoke_grant(number, now=now(), by=by or _account())
    if before is None:
        refuse(f"there is no grant {number}: `grants list` shows them")
    already = f": it was revoked already, at {shown_time(before.revoked_at)}" if before.revoked_at is not None else ""
    tell(f"grant {number} of agent {before.reader.agent_id} to read agent {before.target.agent_id} is revoked{already}")


def _as_row(one: StoredGrant) -> dict[str, Any]:
    state = "good" if one.good_at(now()) else "expired"
    return {
        "number": one.number,
        "reader": one.reader.agent_id,
        "read": one.target.agent_id,
        "scope": shown_scope(one.target.scope),
        "until": shown_time(one.expires_at),
        "why": one.why,
        "by": one.granted_by,
        "at": shown_time(one.granted_at),
        "state": f"revoked by {one.revoked_by}" if one.revoked_at is not None else state,
    }
