"""Cuts what is to be imported into messages and streams of bounded size, and says what is to be sent next.

A stream that the service answers is kept whole, so one that is cut off can be sent again: nothing is taken twice. When the service
refuses a stream, it is halved until what is wrong stands alone; that is counted with the service's reason, and the rest is taken.
What the service had kept of a refused stream then counts as unchanged. No network here: `Importer` yields what is to be sent and is
told what came of it, by whoever blocks or awaits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

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


def pieces(agent: Agent, conversation: Conversation, scope: Mapping[str, str]) -> Iterator[Piece]:
    """Yields a conversation's turns, cut into pieces of about MESSAGE_BYTES, in order. A turn larger than that is a piece alone."""
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


class Gathering:
    """Gathers pieces into streams of at most STREAM_BYTES and STREAM_TURNS, but for a piece that is larger alone."""

    def __init__(self) -> None:
        self._stream: list[Piece] = []
        self._size = self._turns = 0

    def add(self, piece: Piece) -> list[Piece]:
        """Takes a piece. Returns the stream before it where it does not fit in there any more, else nothing."""
        full = self._size + piece.size > STREAM_BYTES or self._turns + len(piece.turns) > STREAM_TURNS
        gathered = self.take() if full else []
        self._stream.append(piece)
        self._size, self._turns = self._size + piece.size, self._turns + len(piece.turns)
        return gathered

    def take(self) -> list[Piece]:
        """Returns what is gathered and begins anew."""
        stream, self._stream = self._stream, []
        self._size = self._turns = 0
        return stream


# Yields messages of a stream that is to be sent, gets its reply or an AforesaidError, and returns something in the end.
Sending: TypeAlias = Generator[list[ImportTurnsRequest], ImportTurnsResponse, Imported]


class Importer:
    """One import: conversations are added, streams come out, and what became of them adds up in `total`.

    `on_stream` is told of each stream that was taken. An error that is no refusal ends the import.
    """

    def __init__(self, scope: Mapping[str, str] | None, on_stream: Callable[[Imported], None] | None = None) -> None:
        self.total = Imported()
        self._scope = scope or {}
        self._on_stream = on_stream
        self._gathering = Gathering()
        # Conversations refused as a whole, so that a long one is not asked for again and again.
        self._closed: dict[tuple[object, ...], str] = {}

    def add(self, agent: Agent, conversation: Conversation) -> Sending:
        """Takes turns of one conversation; sends streams that are full."""
        for piece in pieces(agent, conversation, self._scope):
            if stream := self._gathering.add(piece):
                yield from self._counted(stream)
        return self.total

    def finish(self) -> Sending:
        """Sends what is left. Returns the sum of all."""
        if stream := self._gathering.take():
            yield from self._counted(stream)
        return self.total

    def _counted(self, stream: list[Piece]) -> Sending:
        taken = yield from self._taken(stream)
        self.total += taken
        if self._on_stream is not None:
            self._on_stream(taken)
        return taken

    def _taken(self, stream: list[Piece]) -> Sending:
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
        return taken + (yield from self._sent(sendable)) if sendable else taken

    def _sent(self, stream: list[Piece]) -> Sending:
        try:
            reply = yield [piece.message() for piece in stream]
        except REFUSALS as refusal:
            if len(stream) == 1:
                return (yield from self._narrowed(stream[0], refusal))
        else:
            return imported_of(reply)
        middle = len(stream) // 2
        return (yield from self._taken(stream[:middle])) + (yield from self._taken(stream[middle:]))

    def _narrowed(self, piece: Piece, refusal: AforesaidError) -> Sending:
        if not _is_of_turns(refusal):
            self._closed[_key(piece)] = refusal.message
        elif len(piece.turns) > 1:
            first, second = piece.halves()
            return (yield from self._taken([first])) + (yield from self._taken([second]))
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
