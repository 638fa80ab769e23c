"""A stretch of one conversation, by the places of its turns. The service reads by bytes; this finds the bytes.

Of a conversation up to ONE_READ everything is read at once. In a longer one the first turn is looked for: a window is read where it
would be if turns were equally long, then in half of what is left. Each read may stand in the audit log with the turns that it saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aforesaid._errors import NotFound
from aforesaid.agent.v1.agent_service_pb import GetConversationRequest, ReadTranscriptRequest
from aforesaid.agent.v1.types_pb import Conversation, Turn
from aforesaid.cli.interrupt import interruptible
from aforesaid.cli.place import Place

if TYPE_CHECKING:
    from aforesaid._client import Client

ONE_READ = 64 * 1024
WINDOW = 32 * 1024


@dataclass(frozen=True, slots=True)
class Stretch:
    """The conversation that a place names, and who asks for it."""

    client: Client
    place: Place
    reason: str
    scope: Mapping[str, str]

    def conversation(self) -> Conversation:
        """Returns the conversation without its turns. Raises NotFound."""
        request = GetConversationRequest(
            agent_id=self.place.agent_id, conversation_id=self.place.conversation_id, scope=dict(self.scope)
        )
        reply = self.client.wire.call(self.client.wire.agents.get_conversation, request)
        return reply.conversation or Conversation()

    def seq(self, conversation: Conversation) -> int | None:
        """Returns the place of the turn, None where the whole conversation is meant. Raises NotFound."""
        if self.place.turn_id:
            return next(self._read(turn_id=self.place.turn_id)).seq
        seq = self.place.seq
        if seq is not None and seq >= conversation.turn_count:
            raise NotFound(f"id: there is no turn {seq}: the conversation has {conversation.turn_count}, counted from 0")
        return seq

    def all(self) -> Iterator[Turn]:
        """Yields all turns."""
        return self._read()

    def between(self, conversation: Conversation, first: int, last: int) -> Iterator[Turn]:
        """Yields the turns from `first` to `last`, both included; fewer where the conversation ends."""
        offset = 0 if conversation.content_length <= ONE_READ else self._offset(conversation, first)
        length = 0 if conversation.content_length <= ONE_READ else WINDOW
        while True:
            end = 0
            for turn in self._read(offset=offset, length=length):
                if turn.seq > last:
                    return
                if turn.seq >= first:
                    yield turn
                first, end = max(first, turn.seq + 1), turn.content_offset + turn.content_length + 1
            if not end or first > last or end >= conversation.content_length:
                return
            offset, length = end, WINDOW

    def _offset(self, conversation: Conversation, seq: int) -> int:
        """Returns the byte where a turn begins."""
        low, low_seq, high, high_seq = 0, 0, conversation.content_length, conversation.turn_count
        by_share = True
        while low_seq < seq and low < high:
            share = (seq - low_seq) / max(1, high_seq - low_seq) if by_share else 0.5
            guess = min(high - 1, max(low, low + int((high - low) * share) - WINDOW // 2))
            turns = list(self._read(offset=guess, length=WINDOW))
            found = next((turn.content_offset for turn in turns if turn.seq == seq), None)
            if found is not None or not turns:
                return low if found is None else found
            if turns[0].seq > seq:
                high, high_seq = turns[0].content_offset, turns[0].seq
            else:
                low, low_seq = turns[-1].content_offset + turns[-1].content_length + 1, turns[-1].seq + 1
            by_share = not by_share
        return low

    def _read(self, *, offset: int = 0, length: int = 0, turn_id: str = "") -> Iterator[Turn]:
        end = offset + length
        while True:
            request = ReadTranscriptRequest(
                agent_id=self.place.agent_id,
                conversation_id=self.place.conversation_id,
                offset=offset,
                length=length,
                turn_id=turn_id,
                reason=self.reason,
                scope=dict(self.scope),
            )
            reply = interruptible(lambda: self.client.wire.call(self.client.wire.agents.read_transcript, request))  # noqa: B023 - called at once
            yield from reply.turns
            offset = reply.next_offset
            if not offset:
                return
            length = end - offset if length else 0
