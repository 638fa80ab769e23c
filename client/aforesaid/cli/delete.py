"""`aforesaid delete`: a conversation leaves every list for good, after somebody said so."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from aforesaid._errors import InvalidArgument
from aforesaid.cli.interrupt import interruptible
from aforesaid.cli.options import TEXT, scope_of, scope_option, service_options
from aforesaid.cli.place import naming_agent, read_place
from aforesaid.cli.terminal import local_time, visible
from aforesaid.cli.words import IdCommand

if TYPE_CHECKING:
    from aforesaid._client import Client
    from aforesaid._replies import StoredConversation
    from aforesaid.cli.place import Place

KEPT = 1


@click.command(cls=IdCommand, epilog="Exit code: 0 when it is deleted, 1 when you said no, 2 on an error.")
@click.argument("place", metavar="ID", type=TEXT)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@scope_option
@service_options
def delete(place: str, yes: bool, scope: tuple[tuple[str, str], ...], **settings: Any) -> int:
    """Delete a conversation for good.

    ID is what conversations prints: AGENT/CONVERSATION, or CONVERSATION of the caller's own. It leaves every list at once, and no
    import brings it back.
    """
    # The wire takes a quarter of a second to load: not for --help.
    from aforesaid._client import Client

    wanted, narrowed = _conversation(place), scope_of(scope)
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidArgument.of("yes", "must be given where nobody can be asked: a conversation is deleted for good")
    with Client(**settings) as client, naming_agent(wanted, place):
        if not yes and not _said_yes(client, wanted, narrowed):
            return KEPT
        interruptible(lambda: client.delete(wanted.conversation_id, agent_id=wanted.agent_id, scope=narrowed))
    sys.stdout.write(f"deleted {wanted}\n")
    return 0


def _conversation(typed: str) -> Place:
    place = read_place(typed)
    if place.seq is not None or place.turn_id:
        raise InvalidArgument.of("id", f"names a turn, and only a whole conversation can be deleted: {typed}")
    return place


def _said_yes(client: Client, place: Place, scope: dict[str, str]) -> bool:
    conversation = interruptible(lambda: client.conversation(place.conversation_id, agent_id=place.agent_id, scope=scope))
    click.echo(_heading(conversation), err=True)
    # A signal that comes just before a read begins is looked at only after it: Ctrl-C at once would wait for a key.
    return interruptible(lambda: click.confirm("Delete it for good?", err=True))


def _heading(conversation: StoredConversation) -> str:
    count = f"{conversation.turn_count:,} turn{'' if conversation.turn_count == 1 else 's'}"
    facts = (visible(conversation.agent_id), visible(conversation.title), count, local_time(conversation.updated_at))
    return " · ".join(fact for fact in facts if fact)
