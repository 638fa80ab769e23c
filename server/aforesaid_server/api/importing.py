"""A stream of turns, for ImportTurns and for files read at the start: gathered into batches, each one transaction of the writer.

A batch is written when it is full and at the end. What was written stays when the stream breaks off; only the final answer says
that all of it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aforesaid import model
from aforesaid.agent.v1 import conversation_service_pb as conversations_pb
from aforesaid_server.access import Call
from aforesaid_server.api import Writer, convert
from aforesaid_server.api.workers import Workers
from aforesaid_server.errors import InvalidArgument
from aforesaid_server.ingest import ImportItem, ImportTally

# As many turns as one commit of a few hundredths of a second takes, and no more text than two requests may hold.
BATCH_TURNS = 500
BATCH_CHARACTERS = 4 * 1024 * 1024


class Batch:
    """Items until they are enough for one transaction."""

    def __init__(self) -> None:
        self._items: list[ImportItem] = []
        self._turns = 0
        self._characters = 0

    def add(self, item: ImportItem) -> bool:
        """Takes an item; tells whether the batch is full."""
        self._items.append(item)
        self._turns += len(item.conversation.turns)
        self._characters += sum(_characters(part) for turn in item.conversation.turns for part in turn.parts)
        return self._turns >= BATCH_TURNS or self._characters >= BATCH_CHARACTERS

    def take(self) -> Sequence[ImportItem]:
        """Returns the items and forgets them."""
        items, self._items, self._turns, self._characters = self._items, [], 0, 0
        return items


def _characters(part: model.Part) -> int:
    match part:
        case model.Text(text) | model.Reasoning(text):
            return len(text)
        case model.ToolCall(name, arguments):
            return len(name) + len(arguments)
        case model.ToolResult(content):
            return len(content)
        case model.File(_, name):
            return len(name)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where turns belong from here on."""

    agent: model.Agent
    conversation: model.Conversation


class Importing:
    """One stream: what the messages say is carried forward, their turns go to the writer."""

    def __init__(self, writer: Writer, workers: Workers, call: Call) -> None:
        self._writer, self._workers, self._call = writer, workers, call
        self._batch = Batch()
        self._tally = ImportTally()
        self._place: _Place | None = None
        self._scope = model.EMPTY_SCOPE

    async def take(self, message: conversations_pb.ImportTurnsRequest) -> None:
        """Takes a message. Raises InvalidArgument for one whose turns belong nowhere."""
        self._place = _moved(self._place, message)
        if message.scope:
            self._scope = convert.scope(message.scope)
        turns = self._place.conversation.turns + convert.turns(message.turns, "turns")
        self._place = replace(self._place, conversation=replace(self._place.conversation, turns=()))
        if not turns and message.agent is None and message.conversation is None:
            return
        item = ImportItem(self._place.agent, replace(self._place.conversation, turns=turns), self._scope)
        if self._batch.add(item):
            await self._write()

    async def finish(self) -> ImportTally:
        """Writes what is left; returns what was taken and what was left out."""
        await self._write()
        return self._tally

    async def _write(self) -> None:
        items = self._batch.take()
        if items:
            await self._workers.write(self._writer.import_batch, self._call, items, self._tally)


def _moved(place: _Place | None, message: conversations_pb.ImportTurnsRequest) -> _Place:
    """Returns where the turns of a message belong; the conversation holds its own."""
    agent = convert.agent(message.agent) if message.agent is not None else place.agent if place is not None else None
    if agent is None:
        raise InvalidArgument("agent", "the first message names no agent")
    if message.conversation is None:
        if place is None:
            raise InvalidArgument("conversation", "the first message names no conversation")
        if message.agent is not None and agent.agent_id != place.agent.agent_id:
            raise InvalidArgument("conversation", "a message that names another agent names the conversation too")
        return _Place(agent, place.conversation)
    conversation = convert.conversation(message.conversation)
    if not conversation.conversation_id:
        raise InvalidArgument("conversation.conversation_id", "is empty")
    if not agent.agent_id:
        agent = replace(agent, agent_id=conversation.agent_id)
    if conversation.agent_id not in {"", agent.agent_id}:
        raise InvalidArgument("conversation.agent_id", f"{conversation.agent_id} is not {agent.agent_id}, whose turns these are")
    return _Place(agent, replace(conversation, agent_id=agent.agent_id))
