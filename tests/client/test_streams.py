"""Cutting an import into streams, and what becomes of one that the service refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid import (
    AforesaidError,
    FailedPrecondition,
    Imported,
    Internal,
    InvalidArgument,
    LeftOut,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)
from aforesaid._streams import MESSAGE_BYTES, MESSAGE_LIMIT, STREAM_BYTES, STREAM_TURNS, Gathering, Importer, Piece, Sending, pieces
from aforesaid.agent.v1.conversation_service_pb import ImportTurnsRequest, ImportTurnsResponse
from aforesaid.model import Agent, Conversation, Source, Text, Turn

Chunk = tuple[Agent, Conversation]
SCOPE = {"user_id": "ada"}


def chunk(agent_id: str, conversation_id: str, texts: Iterable[str], first: int = 0) -> Chunk:
    turns = tuple(Turn("user", (Text(text),), f"{first + number}") for number, text in enumerate(texts))
    agent = Agent(agent_id, name=f"name of {agent_id}", role="reviewer", parent_agent_id="parent")
    return agent, Conversation(conversation_id, agent_id, "title", turns, Source("jsonl", "/file", "/project"))


def cut(chunks: Iterable[Chunk]) -> list[list[Piece]]:
    gathering = Gathering()
    full = [gathering.add(piece) for agent, conversation in chunks for piece in pieces(agent, conversation, SCOPE)]
    return [stream for stream in (*full, gathering.take()) if stream]


Said = tuple[str, str, str, str]


def said(messages: Iterable[ImportTurnsRequest]) -> list[Said]:
    """Agent, conversation, turn id and text of each turn, in order."""
    found = []
    for message in messages:
        assert message.agent is not None
        assert message.conversation is not None
        for turn in message.turns:
            assert turn.parts[0].kind is not None
            found.append(
                (message.agent.agent_id, message.conversation.conversation_id, turn.turn_id, str(turn.parts[0].kind.value))
            )
    return found


def wanted(chunks: Iterable[Chunk]) -> list[Said]:
    return [
        (agent.agent_id, conversation.conversation_id, turn.turn_id, part.text)
        for agent, conversation in chunks
        for turn in conversation.turns
        for part in turn.parts
        if isinstance(part, Text)
    ]


# Cutting

SIZES = st.integers(0, 40) | st.integers(0, MESSAGE_BYTES // 2) | st.integers(MESSAGE_BYTES - 200, MESSAGE_BYTES + 200)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("cd"), st.lists(SIZES, max_size=5)), max_size=6))
def test_every_turn_is_sent_once_in_order_and_no_stream_is_too_large(shape: list[tuple[str, str, list[int]]]) -> None:
    chunks = [chunk(agent, conversation, ["x" * size for size in sizes]) for agent, conversation, sizes in shape]
    sent = [[piece.message() for piece in stream] for stream in cut(chunks)]
    assert said(message for stream in sent for message in stream) == wanted(chunks)
    for stream in sent:
        assert sum(len(message.to_binary()) for message in stream) <= STREAM_BYTES or len(stream) == 1
        for message in stream:
            assert len(message.to_binary()) <= MESSAGE_BYTES or len(message.turns) == 1


def test_sizes_are_never_less_than_the_encoded_bytes() -> None:
    chunks = [chunk("ä" * 100, "c", ["x" * size for size in (0, 1, 127, 128, 16_383, 16_384, 300_000)])]
    for piece in cut(chunks)[0]:
        assert len(piece.message().to_binary()) <= piece.size <= len(piece.message().to_binary()) + 8 * (1 + len(piece.turns))


def test_many_small_turns_are_cut_by_their_number() -> None:
    chunks = [chunk("a", str(number), ["x"] * 700) for number in range(6)] + [chunk("a", "long", ["y"] * 4500)]
    sent = cut(chunks)
    counts = [sum(len(piece.turns) for piece in stream) for stream in sent]
    assert max(counts) <= STREAM_TURNS
    assert counts[0] == 1400
    assert sum(counts) == 6 * 700 + 4500


def test_each_message_names_agent_conversation_and_scope() -> None:
    (message,) = (piece.message() for piece in cut([chunk("a", "c", ["x"])])[0])
    assert message.agent is not None
    assert message.conversation is not None
    assert message.conversation.source is not None
    assert (message.agent.name, message.agent.role, message.agent.parent_agent_id) == ("name of a", "reviewer", "parent")
    assert (message.conversation.title, message.conversation.source.file, message.conversation.turns) == ("title", "/file", [])
    assert message.scope == SCOPE


def test_a_conversation_without_turns_is_sent_too() -> None:
    assert [[len(piece.turns) for piece in stream] for stream in cut([chunk("a", "c", [])])] == [[0]]


def test_a_turn_up_to_the_limit_goes_alone_and_one_over_it_is_told() -> None:
    room = MESSAGE_LIMIT - 1000
    service = Service()
    taken = service.take(chunk("a", "c", ["small", "x" * room, "y" * (MESSAGE_LIMIT + 1), "after"]))
    assert [(turn[2], len(turn[3])) for turn in service.kept()] == [("0", 5), ("1", room), ("3", 5)]
    assert taken == Imported(added=3, refused=(LeftOut("a", "c", 1, "larger than the 32 MiB of a message"),))
    assert all(len(message.to_binary()) <= MESSAGE_LIMIT for stream in service.streams for message in stream)


@pytest.mark.parametrize("title", ["", "\ud800"])
def test_what_utf8_cannot_carry_is_told_and_the_rest_is_taken(title: str) -> None:
    agent, conversation = chunk("a", "c", ["before", "\udc80" if not title else "text", "after"])
    service = Service()
    taken = service.take((agent, Conversation("c", "a", title, conversation.turns)), chunk("a", "d", ["x"]))
    assert [turn[3] for turn in service.kept()] == (["before", "after", "x"] if not title else ["x"])
    assert sum(left.turns for left in taken.refused) == (1 if not title else 3)
    assert {left.reason for left in taken.refused} == {"a lone surrogate in its text"}


# Sending


class Service:
    """Keeps what it is sent, refusing a whole stream for what `refuses` says of one of its messages."""

    def __init__(self, refuses: Callable[[ImportTurnsRequest], AforesaidError | None] = lambda _: None) -> None:
        self.refuses = refuses
        self.streams: list[list[ImportTurnsRequest]] = []
        self.asked = 0

    def answer(self, stream: list[ImportTurnsRequest]) -> ImportTurnsResponse:
        self.asked += 1
        for message in stream:
            if error := self.refuses(message):
                raise error
        self.streams.append(stream)
        return ImportTurnsResponse(turns_added=sum(len(message.turns) for message in stream))

    def take(self, *chunks: Chunk) -> Imported:
        importer = Importer(SCOPE)
        for agent, conversation in chunks:
            self.drive(importer.add(agent, conversation))
        assert self.drive(importer.finish()) == importer.total
        return importer.total

    def drive(self, sending: Sending) -> Imported:
        try:
            stream = next(sending)
            while True:
                try:
                    reply = self.answer(stream)
                except AforesaidError as error:
                    stream = sending.throw(error)
                else:
                    stream = sending.send(reply)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def kept(self) -> list[Said]:
        return said(message for stream in self.streams for message in stream)


def refuse_texts(*bad: str, error: AforesaidError) -> Callable[[ImportTurnsRequest], AforesaidError | None]:
    return lambda message: error if any(text in bad for *_, text in said([message])) else None


TURN_RULE = InvalidArgument("turns[3].role: too long", InvalidArgument.of("turns[3].role", "too long").violations)


@given(
    st.lists(st.lists(st.booleans(), max_size=12), max_size=6),
    st.sampled_from([TURN_RULE, InvalidArgument("no field"), ResourceExhausted("big")]),
)
def test_a_turn_that_breaks_a_rule_is_counted_and_all_others_are_taken_in_order(
    shape: list[list[bool]], error: AforesaidError
) -> None:
    chunks = [chunk("a", str(number), ["bad" if bad else "good" for bad in turns]) for number, turns in enumerate(shape)]
    service = Service(refuse_texts("bad", error=error))
    taken = service.take(*chunks)
    assert service.kept() == [turn for turn in wanted(chunks) if turn[3] == "good"]
    assert taken.added == sum(turns.count(False) for turns in shape)
    assert sum(left.turns for left in taken.refused) == sum(turns.count(True) for turns in shape)
    assert all(left.turns == 1 and left.reason == error.message for left in taken.refused)


def test_one_bad_turn_among_many_is_found_by_halving() -> None:
    service = Service(refuse_texts("bad", error=TURN_RULE))
    taken = service.take(chunk("a", "c", ["good"] * 1500 + ["bad"] + ["good"] * 499))
    assert (taken.added, len(taken.refused)) == (1999, 1)
    assert service.asked <= 25


@pytest.mark.parametrize(
    "error",
    [
        PermissionDenied("no"),
        NotFound("none"),
        FailedPrecondition("tombstoned"),
        InvalidArgument.of("conversation.title", "too long"),
    ],
)
def test_a_conversation_that_is_refused_is_not_asked_for_again(error: AforesaidError) -> None:
    service = Service(lambda message: error if message.agent and message.agent.agent_id == "b" else None)
    long = [chunk("b", "c", ["x" * 1000] * 2000, first) for first in range(0, 20_000, 2000)]
    taken = service.take(chunk("a", "c", ["x"]), *long, chunk("a", "d", ["y"]), chunk("b", "d", ["z"]))
    assert [turn[:2] for turn in service.kept()] == [("a", "c"), ("a", "d")]
    assert {left.reason for left in taken.refused} == {error.message}
    assert sum(left.turns for left in taken.refused) == 20_001
    assert service.asked < 12


@pytest.mark.parametrize("error", [Unavailable("later"), Internal("request 7")])
def test_any_other_error_ends_the_import(error: AforesaidError) -> None:
    service = Service(refuse_texts("bad", error=error))
    with pytest.raises(type(error)):
        service.take(chunk("a", "c", ["good"] * STREAM_TURNS), chunk("a", "d", ["bad"]))
    assert len(service.kept()) == STREAM_TURNS


def test_what_the_service_left_out_is_passed_on() -> None:
    importer = Importer(SCOPE)
    assert list(importer.add(*chunk("a", "c", ["x"]))) == []
    sending = importer.finish()
    assert said(next(sending)) == [("a", "c", "0", "x")]
    with pytest.raises(StopIteration):
        sending.send(ImportTurnsResponse(turns_replaced=1))
    assert importer.total == Imported(replaced=1)
