"""`aforesaid reads`: who read whom, the latest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aforesaid.cli.listing import Listing, listing_options, print_listing
from aforesaid.cli.options import TEXT, scope_of
from aforesaid.cli.table import Column
from aforesaid.cli.terminal import local_time, utc_time

if TYPE_CHECKING:
    from aforesaid.agent.v1.audit_service_pb import ReadRecord

COLUMNS = (
    Column("TIME"),
    Column("READER"),
    Column("ROLE", in_pipes_only=True),
    Column("READ", may_be_cut=True),
    Column("METHOD"),
    Column("GRANTED"),
    Column("TURNS", to_the_right=True),
    Column("REASON", may_be_cut=True),
    Column("REQUEST", in_pipes_only=True),
)
NOBODY = "(user)"
NONE = "No reads are recorded here."


@click.command(
    short_help="List who read another agent's conversations.", epilog="Exit code: 0, 1 when there are none, 2 on an error."
)
@click.option("--agent", "target", metavar="ID", type=TEXT, default="", help="Only reads of this agent.")
@listing_options
def reads(target: str, limit: int, scope: tuple[tuple[str, str], ...], as_json: bool, colour: str, **settings: Any) -> int:
    """List who read another agent's conversations, the latest first.

    An agent lists reads of itself, refused ones too; a user all of its scope. In a pipe the fields of a read are separated by tabs:
    time (UTC), reader (empty for a user), its role, agents that were read, method, yes or no for granted, number of turns
    returned, reason, id of the request. --json has the ids of the turns.
    """
    from aforesaid._client import Client
    from aforesaid.agent.v1.audit_service_pb import ListReadsRequest
    from aforesaid.agent.v1.types_pb import Pagination

    narrowed = scope_of(scope)
    with Client(**settings) as client:

        def ask(page: Pagination) -> tuple[list[ReadRecord], str]:
            request = ListReadsRequest(agent_id=target, pagination=page, scope=narrowed)
            reply = client.wire.call(client.wire.audit.list_reads, request)
            return reply.records, reply.next_page_token

        return print_listing(Listing(ask, COLUMNS, _row, NONE), limit, as_json, colour)


def _row(message: ReadRecord, read_by_people: bool) -> list[str]:
    from aforesaid._convert import record_of

    record = record_of(message)
    return [
        local_time(record.time) if read_by_people else utc_time(record.time),
        record.caller_agent_id or (NOBODY if read_by_people else ""),
        record.role,
        " ".join(record.target_agent_ids),
        record.method,
        "yes" if record.granted else "no",
        f"{len(record.turn_ids):,}" if read_by_people else str(len(record.turn_ids)),
        record.reason,
        record.request_id,
    ]
