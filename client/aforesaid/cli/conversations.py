"""`aforesaid conversations`: what there is to search and to show, the conversation written last first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aforesaid.cli.listing import Listing, listing_options, print_listing
from aforesaid.cli.options import TEXT, scope_of
from aforesaid.cli.table import Column
from aforesaid.cli.terminal import local_time, utc_time

if TYPE_CHECKING:
    from aforesaid.agent.v1.types_pb import Conversation

COLUMNS = (
    Column("ID"),
    Column("AGENT", in_pipes_only=True),
    Column("CONVERSATION", in_pipes_only=True),
    Column("TITLE", may_be_cut=True),
    Column("TURNS", to_the_right=True),
    Column("UPDATED"),
    Column("FORMAT", in_pipes_only=True),
    Column("PROJECT", in_pipes_only=True),
    Column("FILE", in_pipes_only=True),
)
NONE = "No conversations here."


@click.command(epilog="Exit code: 0, 1 when there are none, 2 on an error.")
@click.option("--agent", "target", metavar="ID", type=TEXT, default="", help="Only this agent's.")
@listing_options
def conversations(target: str, limit: int, scope: tuple[tuple[str, str], ...], as_json: bool, colour: str, **settings: Any) -> int:
    """List conversations, the one written last first.

    Those of --agent; without it the caller's own and its sub-agents', or all of a user. `aforesaid show ID` shows one. In a pipe
    the fields of a conversation are separated by tabs: the id that show takes, agent, conversation, title, turns, time of the last
    change (UTC), and format, project and file that it came from.
    """
    from aforesaid._client import Client
    from aforesaid.agent.v1.agent_service_pb import ListConversationsRequest
    from aforesaid.agent.v1.types_pb import Pagination

    narrowed = scope_of(scope)
    with Client(**settings) as client:

        def ask(page: Pagination) -> tuple[list[Conversation], str]:
            request = ListConversationsRequest(agent_id=target, pagination=page, scope=narrowed)
            reply = client.wire.call(client.wire.agents.list_conversations, request)
            return reply.conversations, reply.next_page_token

        return print_listing(Listing(ask, COLUMNS, _row, NONE), limit, as_json, colour)


def _row(message: Conversation, read_by_people: bool) -> list[str]:
    from aforesaid._convert import conversation_of
    from aforesaid.cli.place import Place

    conversation = conversation_of(message)
    source, time = conversation.source, conversation.updated_at
    return [
        str(Place(conversation.agent_id, conversation.conversation_id)),
        conversation.agent_id,
        conversation.conversation_id,
        conversation.title,
        f"{conversation.turn_count:,}" if read_by_people else str(conversation.turn_count),
        local_time(time) if read_by_people else utc_time(time),
        source.format,
        source.project,
        source.file,
    ]
