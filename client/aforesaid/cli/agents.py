"""`aforesaid agents`: the agents that the caller may read, by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aforesaid.cli.listing import Listing, listing_options, print_listing
from aforesaid.cli.options import scope_of
from aforesaid.cli.table import Column

if TYPE_CHECKING:
    from aforesaid.agent.v1.types_pb import Agent

COLUMNS = (
    Column("AGENT"),
    Column("NAME", may_be_cut=True),
    Column("ROLE", may_be_cut=True),
    Column("STATE"),
    Column("PARENT"),
    Column("SCOPE"),
)
NONE = "No agents here; `aforesaid import PATH` brings transcripts."


@click.command(epilog="Exit code: 0, 1 when there are none, 2 on an error.")
@listing_options
def agents(limit: int, scope: tuple[tuple[str, str], ...], as_json: bool, colour: str, **settings: Any) -> int:
    """List agents: whose conversations can be searched.

    An agent lists itself and its sub-agents, and all of its scope if it may read others. In a pipe the fields of an agent are
    separated by tabs: id, name, role, active or archived, parent, scope.
    """
    # The wire takes a quarter of a second to load: not for --help.
    from aforesaid._client import Client
    from aforesaid.agent.v1.agent_service_pb import ListAgentsRequest
    from aforesaid.agent.v1.types_pb import Pagination

    narrowed = scope_of(scope)
    with Client(**settings) as client:

        def ask(page: Pagination) -> tuple[list[Agent], str]:
            reply = client.wire.call(client.wire.agents.list_agents, ListAgentsRequest(pagination=page, scope=narrowed))
            return reply.agents, reply.next_page_token

        return print_listing(Listing(ask, COLUMNS, _row, NONE), limit, as_json, colour)


def _row(agent: Agent, _read_by_people: bool) -> list[str]:
    return [
        agent.agent_id,
        agent.name,
        agent.role,
        "archived" if agent.archived else "active",
        agent.parent_agent_id,
        " ".join(f"{key}={value}" for key, value in sorted(agent.scope.items())),
    ]
