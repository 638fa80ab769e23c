"""ImportTurns on Connect (HTTP/1.1, half duplex) and gRPC: what messages leave out is carried forward, batches are bounded, and
what was written stays when the stream breaks off.
"""

from __future__ import annotations

import json
import socket
import threading
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import grpc
import pytest

from aforesaid.model import Agent, Conversation, Source, Text, Turn
from aforesaid_server.api.importing import BATCH_CHARACTERS, BATCH_TURNS
from aforesaid_server.errors import FailedPrecondition, PermissionDenied
from aforesaid_server.ingest import ImportItem, ImportTally
from tests.api.doors import CONVERSATIONS, ConnectDoor, GrpcDoor, Service
from tests.api.fakes import FakeCore

Door: TypeAlias = ConnectDoor | GrpcDoor
Json: TypeAlias = dict[str, Any]

IMPORT = f"{CONVERSATIONS}/ImportTurns"
FIRST: Json = {"agent": {"agentId": "a"}, "conversation": {"conversationId": "c"}}


def _turn(text: str) -> Json:
    return {"role": "user", "parts": [{"text": text}]}


def test_what_messages_leave_out_is_carried_forward(door: Door, core: FakeCore) -> None:
    agent = {"agentId": "a", "name": "A", "role": "reviewer", "parentAgentId": "p", "scope": {"x": "y"}}
    source = {"format": "f", "file": "/f", "project": "/p"}
    reply = door.stream(
        IMPORT,
        [
            {
                "agent": agent,
                "conversation": {"conversationId": "c", "title": "T", "source": source, "turns": [_turn("0")]},
                "turns": [_turn("1")],
                "scope": {"user_id": "u"},
            },
            {"turns": [_turn("2")]},
            {},
            {"conversation": {"conversationId": "d", "agentId": "a"}, "turns": [_turn("3")]},
            {"agent": {"agentId": "b"}, "conversation": {"conversationId": "c"}, "turns": [_turn("4")], "scope": {"user_id": "v"}},
            {"agent": {"agentId": "b", "role": "orchestrator"}, "turns": [_turn("5")]},
        ],
    )
    assert (reply.code, reply.body) == ("ok", {"turnsAdded": "6"})
    first, second = Agent("a", "A", "reviewer", scope={"x": "y"}, parent_agent_id="p"), Agent("b")

    def item(by: Agent, conversation: Conversation, *texts: str) -> tuple[Agent, Conversation, tuple[Turn, ...]]:
        return by, conversation, tuple(Turn("user", (Text(text),)) for text in texts)

    titled = Conversation("c", "a", "T", source=Source("f", "/f", "/p"))
    expected = [
        (item(first, titled, "0", "1"), "u"),
        (item(first, titled, "2"), "u"),
        (item(first, Conversation("d", "a"), "3"), "u"),
        (item(second, Conversation("c", "b"), "4"), "v"),
        (item(Agent("b", role="orchestrator"), Conversation("c", "b"), "5"), "v"),
    ]
    assert core.batches == [
        [
            ImportItem(by, Conversation(of.conversation_id, of.agent_id, of.title, turns, of.source), {"user_id": user})
            for (by, of, turns), user in expected
        ]
    ]
    assert [(call.method, call.door) for call, _ in core.asked] == [("ImportTurns", door.name)]


def test_a_conversation_may_name_the_agent(door: Door, core: FakeCore) -> None:
    reply = door.stream(IMPORT, [{"agent": {}, "conversation": {"conversationId": "c", "agentId": "a"}, "turns": [_turn("0")]}])
    assert reply.code == "ok"
    assert (core.batches[0][0].agent.agent_id, core.batches[0][0].conversation.agent_id) == ("a", "a")


def test_an_empty_stream(door: Door, core: FakeCore) -> None:
    assert door.stream(IMPORT, []).code == "ok"
    assert not core.asked


def test_what_was_left_out_is_told(door: Door, core: FakeCore) -> None:
    def take(items: Sequence[ImportItem], tally: ImportTally) -> None:
        tally.added, tally.replaced, tally.unchanged = 1, 2, 3
        for item in items:
            tally.skip(item, FailedPrecondition("the conversation is tombstoned"))

    core.take = take
    reply = door.stream(IMPORT, [FIRST | {"turns": [_turn("0"), _turn("1")]}, {"turns": [_turn("2")]}])
    assert reply.body == {
        "turnsAdded": "1",
        "turnsReplaced": "2",
        "turnsUnchanged": "3",
        "skipped": [
            {
                "agentId": "a",
                "conversationId": "c",
                "turns": "3",
                "reason": "the conversation is tombstoned",
                "code": "failed_precondition",
            }
        ],
    }


@pytest.mark.parametrize(
    ("messages", "field", "problem"),
    [
        ([{"turns": [_turn("0")]}], "agent", "the first message names no agent"),
        ([{"conversation": {"conversationId": "c"}}], "agent", "the first message names no agent"),
        ([{"agent": {"agentId": "a"}, "turns": [_turn("0")]}], "conversation", "the first message names no conversation"),
        ([{"agent": {"agentId": "a"}, "conversation": {}}], "conversation.conversation_id", "is empty"),
        ([FIRST, {"agent": {"agentId": "b"}}], "conversation", "a message that names another agent names the conversation too"),
        (
            [FIRST, {"conversation": {"conversationId": "d", "agentId": "b"}}],
            "conversation.agent_id",
            "b is not a, whose turns these are",
        ),
        ([FIRST, {"turns": [{"parts": [{}]}]}], "turns[0].parts[0]", "is empty"),
        ([FIRST, {"turns": [_turn("0"), {"turnId": "t" * 1025}]}], "turns[1].turn_id", "1025 bytes, at most 1024 are allowed"),
    ],
)
def test_messages_whose_turns_belong_nowhere(messages: list[Json], field: str, problem: str, door: Door, core: FakeCore) -> None:
    reply = door.stream(IMPORT, messages)
    assert (reply.code, reply.message, reply.violations) == ("invalid_argument", f"{field}: {problem}", [(field, problem)])
    assert not core.batches


def test_batches_are_bounded_by_turns(door: Door, core: FakeCore) -> None:
    messages = [FIRST] + [{"turns": [_turn(f"{n}-{m}") for m in range(40)]} for n in range(60)]
    assert door.stream(IMPORT, messages).body == {"turnsAdded": "2400"}
    sizes = [sum(len(item.conversation.turns) for item in batch) for batch in core.batches]
    assert sizes == [520, 520, 520, 520, 320]
    assert BATCH_TURNS <= max(sizes) < BATCH_TURNS + 40
    assert [turn.parts for turn in core.turns()] == [(Text(f"{n}-{m}"),) for n in range(60) for m in range(40)]


def test_batches_are_bounded_by_text(door: Door, core: FakeCore) -> None:
    piece = BATCH_CHARACTERS // 4
    assert door.stream(IMPORT, [FIRST] + [{"turns": [_turn("x" * piece)]} for _ in range(10)]).code == "ok"
    assert [sum(len(item.conversation.turns) for item in batch) for batch in core.batches] == [4, 4, 2]


def test_memory_is_bounded(connect: ConnectDoor, core: FakeCore) -> None:
    """200 MB of text pass through; what the service holds of it is a batch and what the sockets buffer."""
    core.take = lambda *_: core.asked.clear()
    text = "x" * 1_000_000
    tracemalloc.start()
    try:
        assert connect.stream(IMPORT, (FIRST | {"turns": [_turn(text)]} for _ in range(200))).code == "ok"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000


def test_an_error_of_the_core_ends_the_stream(door: Door, core: FakeCore) -> None:
    def refuse(_: object) -> None:
        raise PermissionDenied("the caller may not write here")

    core.answer = refuse
    reply = door.stream(IMPORT, [FIRST, *({"turns": [_turn("x")] * 100} for _ in range(50))])
    assert (reply.code, reply.message) == ("permission_denied", "the caller may not write here")
    assert len(core.asked) == 1


def test_what_was_written_stays_when_a_later_message_is_wrong(door: Door, core: FakeCore) -> None:
    messages = [FIRST, *({"turns": [_turn("x")] * 100} for _ in range(12)), {"turns": [{"parts": [{}]}]}]
    assert door.stream(IMPORT, messages).code == "invalid_argument"
    assert len(core.turns()) == 1000


def test_a_caller_of_grpc_that_hangs_up(over_grpc: GrpcDoor, core: FakeCore) -> None:
    """What was committed stays, and the service goes on. What had not filled a batch may be kept or not: gRPC shows the end of the
    stream before it shows that the caller is gone.
    """
    asked, answered = over_grpc.contract.types(IMPORT)
    calls = over_grpc.channel.stream_unary(f"/{IMPORT}", asked.SerializeToString, answered.FromString)
    written, hold = threading.Event(), threading.Event()
    core.answer = lambda _: written.set()

    def messages() -> Iterator[Any]:
        yield over_grpc.contract.parsed(IMPORT, FIRST | {"turns": [_turn("x")] * 500})
        yield over_grpc.contract.parsed(IMPORT, {"turns": [_turn("y")]})
        hold.wait(20)

    future = calls.future(messages(), timeout=20)
    assert written.wait(10)
    future.cancel()
    hold.set()
    with pytest.raises(grpc.FutureCancelledError):
        future.result()
    assert over_grpc.stream(IMPORT, [FIRST | {"turns": [_turn("z")]}]).code == "ok"
    texts = [turn.parts[0] for turn in core.turns()]
    assert texts[:500] == [Text("x")] * 500
    assert Text("z") in texts[500:]


def test_a_caller_of_connect_that_hangs_up(service: Service, connect: ConnectDoor, core: FakeCore) -> None:
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    written = threading.Event()
    core.answer = lambda _: written.set()
    lines = [f"POST /{IMPORT} HTTP/1.1", f"Host: {host}", "Content-Type: application/connect+json", "Content-Length: 1000000"]
    with socket.create_connection((host, int(port)), timeout=20) as opened:
        opened.sendall("\r\n".join([*lines, "", ""]).encode())
        for message in (FIRST | {"turns": [_turn("x")] * 500}, {"turns": [_turn("y")]}):
            content = json.dumps(message).encode()
            opened.sendall(b"\0" + len(content).to_bytes(4, "big") + content)
        assert written.wait(10)
    assert connect.stream(IMPORT, [FIRST | {"turns": [_turn("z")]}]).code == "ok"
    assert {turn.parts[0] for turn in core.turns()} == {Text("x"), Text("z")}


def test_the_answer_to_a_stream_that_breaks_off_inside_a_message(connect: ConnectDoor, core: FakeCore) -> None:
    content = json.dumps(FIRST).encode()
    answer = connect.http.post(
        f"/{IMPORT}",
        content=b"\0" + (len(content) + 1).to_bytes(4, "big") + content,
        headers={"content-type": "application/connect+json"},
    )
    assert b"invalid_argument" in answer.content
    assert not core.batches


def test_a_message_over_the_limit(connect: ConnectDoor, core: FakeCore) -> None:
    answer = connect.http.post(
        f"/{IMPORT}",
        content=b"\0" + (32 * 1024 * 1024 + 1).to_bytes(4, "big") + b"x" * 10,
        headers={"content-type": "application/connect+json"},
    )
    assert b"request: more than 33554432 bytes in one message" in answer.content
    assert not core.batches
