"""Cuts what is to be imported into messages and streams of bounded size, and sends them one after the other.

A stream that the service answers is kept whole, so one that is cut off can be sent again: nothing is taken twice. When the service
refuses a stream, it is halved until what is wrong stands alone; that is counted with the service's reason, and the rest is taken.
What the service had kept of a refused stream then counts as unchanged. No network here: `send` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from protobuf import Message

from aforesaid._convert import agent_message, conversation_message, imported_of, turn_message
from aforesaid._errors import AforesaidError, FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, ResourceExhausted
from aforesaid._replies import Imported, LeftOut
from aforesaid.agent.v1 import types_pb
from aforesaid.agent.v1.conversation_service_pb import ImportTurnsRequest, ImportTurnsResponse
from aforesaid.model import Agent, Conversation

STREAM_BYTES = 4 * 1024 * 1024
STREAM_TURNS = 2000
# Small enough that a stream holds several, large enough that the conversation's own fields, repeated in each, do not count.
MESSAGE_BYTES = 1024 * 1024
# contract.md: one request is at most 32 MiB.
MESSAGE_LIMIT = 32 * 1024 * 1024
# The tag and the length before each turn in a message.
TURN_FRAME = 6

# What the service says of something in the stream, and not of itself.
REFUSALS = (InvalidArgument, PermissionDenied, NotFound, FailedPrecondition, ResourceExhausted)


@dataclass(frozen=True, slots=True)
class Piece:
    """One message of a stream: turns of one conversation, with all that the service must know to take them alone.

    `size` is at least the encoded bytes. `flaw` says why it cannot be sent at all, if so.
    """

    agent: Agent
    conversation: Conversation
    scope: Mapping[str, str]
    turns: tuple[types_pb.Turn, ...] = ()
    size: int = 0
    flaw: str = ""

    def message(self) -> ImportTurnsRequest:
        """Returns the message on the wire."""
        return ImportTurnsRequest(
            agent=agent_message(self.agent),
            conversation=conversation_message(self.conversation, with_turns=False),
            turns=list(self.turns),
            scope=dict(self.scope),
        )

    def left_out(self, reason: str) -> LeftOut:
        """Counts its turns as left out."""
        return LeftOut(self.agent.agent_id, self.conversation.conversation_id, len(self.turns), reason)

    def halves(self) -> tuple[Piece, Piece]:
        """Cuts it in two; `size` then is more than need be."""
        middle = len(self.turns) // 2
        return replace(self, turns=self.turns[:middle]), replace(self, turns=self.turns[middle:])


def pieces(chunks: Iterable[tuple[Agent, Conversation]], scope: Mapping[str, str]) -> Iterator[Piece]:
    """Yields what is to be imported, cut into pieces of about MESSAGE_BYTES, in order. A turn larger than that is a piece alone."""
    for agent, conversation in chunks:
        bare = Piece(agent, replace(conversation, turns=()), scope)
        flaw, room = _weighed(bare.message(), 0)
        if flaw:
            yield replace(bare, turns=tuple(turn_message(turn) for turn in conversation.turns), flaw=flaw)
        else:
            yield from _filled(replace(bare, size=room), conversation)


def _filled(bare: Piece, conversation: Conversation) -> Iterator[Piece]:
    held: list[types_pb.Turn] = []
    size = bare.size
    for turn in conversation.turns:
        message = turn_message(turn)
        flaw, length = _weighed(message, bare.size)
        if held and (flaw or size + length > MESSAGE_BYTES or len(held) == STREAM_TURNS):
            yield replace(bare, turns=tuple(held), size=size)
            held, size = [], bare.size
        if flaw:
            yield replace(bare, turns=(message,), flaw=flaw)
            continue
        held.append(message)
        size += length
    if held or not conversation.turns:
        yield replace(bare, turns=tuple(held), size=size)


def _weighed(message: Message, room: int) -> tuple[str, int]:
    """Returns what keeps a message, or a turn beside `room` bytes, from being sent, if anything does, and its bytes."""
    try:
        length = len(message.to_binary()) + TURN_FRAME
    except UnicodeEncodeError:
        return "a lone surrogate in its text", 0
    if room + length > MESSAGE_LIMIT:
        return f"larger than the {MESSAGE_LIMIT // 1024**2} MiB of a message", length
    return "", length


def streams(cut: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yields pieces in streams of at most STREAM_BYTES and STREAM_TURNS, but for a piece that is larger alone."""
    stream: list[Piece] = []
    size = turns = 0
    for piece in cut:
        if stream and (size + piece.size > STREAM_BYTES or turns + len(piece.turns) > STREAM_TURNS):
            yield stream
            stream, size, turns = [], 0, 0
        stream.append(piece)
        size, turns = size + piece.size, turns + len(piece.turns)
    if stream:
        yield stream


class Importer:
    """Sends streams and counts what became of them. `send` raises AforesaidError; what is no refusal ends the import."""

    def __init__(self, send: Callable[[list[ImportTurnsRequest]], ImportTurnsResponse]) -> None:
        self._send = send
        # Conversations refused as a whole, so that a long one is not asked for again and again.
        self._closed: dict[tuple[object, ...], str] = {}

    def take(self, stream: list[Piece]) -> Imported:
        """Sends one stream, in parts where the service refuses some of it. Returns what was taken and what was not."""
        sendable: list[Piece] = []
        refused: list[LeftOut] = []
        for piece in stream:
            reason = piece.flaw or self._closed.get(_key(piece), "")
            if reason:
                refused.append(piece.left_out(reason))
            else:
                sendable.append(piece)
        taken = Imported(refused=tuple(refused))
        return taken + self._sent(sendable) if sendable else taken

    def _sent(self, stream: list[Piece]) -> Imported:
        try:
            return imported_of(self._send([piece.message() for piece in stream]))
        except REFUSALS as refusal:
            if len(stream) > 1:
                middle = len(stream) // 2
                return self.take(stream[:middle]) + self.take(stream[middle:])
            return self._narrowed(stream[0], refusal)

    def _narrowed(self, piece: Piece, refusal: AforesaidError) -> Imported:
        if not _is_of_turns(refusal):
            self._closed[_key(piece)] = refusal.message
        elif len(piece.turns) > 1:
            first, second = piece.halves()
            return self.take([first]) + self.take([second])
        return Imported(refused=(piece.left_out(refusal.message),))


def _is_of_turns(refusal: AforesaidError) -> bool:
    """Tells whether a refusal speaks of a turn, and not of its conversation, its agent or the caller."""
    match refusal:
        case ResourceExhausted():
            return True
        case InvalidArgument(violations=violations):
            return not violations or any("turns" in violation.field for violation in violations)
        case _:
            return False


def _key(piece: Piece) -> tuple[object, ...]:
    return piece.agent.agent_id, tuple(sorted(piece.agent.scope.items())), piece.conversation.conversation_id
