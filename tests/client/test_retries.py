"""What is tried again, when, and how long: the decision alone, and over the wire with a clock that does not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo
from connectrpc.request import RequestContext
from hypothesis import given
from hypothesis import strategies as st

import aforesaid
from aforesaid import AforesaidError, Agent, Client, Conversation, SourceRef, Text, Turn
from aforesaid._methods import AgentMethods, AuditMethods, ConversationMethods, may_repeat
from aforesaid._retries import FIRST_SECONDS, LONGEST_SECONDS, Retries
from aforesaid.agent.v1 import agent_service_pb, types_pb
from aforesaid.agent.v1.agent_service_connect import AgentServiceClientSync
from aforesaid.agent.v1.audit_service_connect import AuditServiceClientSync
from aforesaid.agent.v1.conversation_service_connect import ConversationServiceClientSync
from aforesaid.agent.v1.conversation_service_pb import AppendTurnsResponse
from tests.client.both import LOCAL, Calling, Connect, Script, Time, sent
from tests.client.ports import answering, refused_port

READS: dict[str, Callable[[Client], object]] = {
    "search_transcripts": lambda client: list(client.search("q")),
    "read_transcript": lambda client: list(client.read("c")),
    "list_agents": lambda client: list(client.agents()),
    "get_agent": lambda client: client.agent(),
    "list_conversations": lambda client: list(client.conversations()),
    "get_conversation": lambda client: client.conversation("c"),
    "search_turns": lambda client: client.search_turns("q"),
    "resolve_source": lambda client: client.resolve_source(SourceRef("c", "t")),
    "compile_context": lambda client: client.compile_context("q"),
    "list_reads": lambda client: list(client.reads()),
    "verify_audit": lambda client: client.verify_audit(),
}
WRITES: dict[str, Callable[[Client], object]] = {
    "update_agent": lambda client: client.update_agent(Agent("a"), ["name"]),
    "append_turns": lambda client: client.append("c", [Turn("user", (Text("x"),), "with an id")]),
    "write_conversation": lambda client: client.write(Conversation("c", "a"), expected_revision=0),
    "index_conversation": lambda client: client.index_conversation(Conversation("c", "a"), expected_revision=0),
    "delete_conversation": lambda client: client.delete("c"),
    "import_turns": lambda client: client.import_turns([(Agent("a"), Conversation("c", "a"))]),
}


def failing(*errors: Exception, then: Any) -> Callable[[Any], Any]:
    """Fails with each error in turn, then answers."""
    left = list(errors)

    def answer(_: Any) -> Any:
        if left:
            raise left.pop(0)
        return then

    return answer


def unavailable() -> ConnectError:
    return ConnectError(Code.UNAVAILABLE, "the index does not answer")


# Which


class Noting:
    """Notes which methods the generated code would call, and calls none."""

    def __init__(self) -> None:
        self.methods: list[MethodInfo[Any, Any]] = []

    def intercept_unary_sync(self, _call_next: Any, _request: Any, ctx: RequestContext[Any, Any]) -> Any:
        self.methods.append(ctx.method)

    def intercept_client_stream_sync(self, _call_next: Any, _request: Any, ctx: RequestContext[Any, Any]) -> Any:
        self.methods.append(ctx.method)


@pytest.mark.parametrize(
    ("group", "generated"),
    [
        (AgentMethods, AgentServiceClientSync),
        (ConversationMethods, ConversationServiceClientSync),
        (AuditMethods, AuditServiceClientSync),
    ],
)
def test_methods_are_those_of_the_generated_code(group: type, generated: Callable[..., Any]) -> None:
    noting = Noting()
    stub = generated(LOCAL, interceptors=[noting])
    ours = {name: method for name, method in vars(group).items() if not name.startswith("_")}
    for name, method in ours.items():
        getattr(stub, name)(method.input())
    assert noting.methods == list(ours.values())
    assert {name for name in vars(type(stub)) if not name.startswith("_")} - {"desc"} == set(ours)


def test_reads_are_what_the_proto_calls_idempotent() -> None:
    groups = (AgentMethods, ConversationMethods, AuditMethods)
    methods = {name: method for group in groups for name, method in vars(group).items() if not name.startswith("_")}
    assert {name for name, method in methods.items() if may_repeat(method)} == set(READS)
    assert set(methods) - set(READS) == set(WRITES)
    assert {methods[name].idempotency_level for name in READS} == {IdempotencyLevel.IDEMPOTENT}


@pytest.mark.parametrize("name", READS)
def test_every_read_is_tried_again_until_the_number_is_used_up(calling: Calling, name: str) -> None:
    time = Time()
    client = calling(Script(**{name: failing(*[unavailable()] * 9, then=None)}), time, retries=3)
    with pytest.raises(aforesaid.Unavailable, match=r"^the index does not answer$") as caught:
        READS[name](client)
    assert caught.value.retryable
    assert len(sent(client)) == 4
    assert len(time.pauses) == 3


@pytest.mark.parametrize("name", WRITES)
def test_no_write_is_tried_again(calling: Calling, name: str) -> None:
    time = Time()
    client = calling(Script(**{name: failing(unavailable(), then=None)}), time)
    with pytest.raises(aforesaid.Unavailable):
        WRITES[name](client)
    assert (len(sent(client)), time.pauses) == (1, [])


@pytest.mark.parametrize("name", WRITES)
def test_no_write_is_sent_again_where_the_connection_broke(connect: Connect, name: str) -> None:
    with answering(b"") as (url, heard), pytest.raises(aforesaid.Unreachable):
        WRITES[name](connect(url, ""))
    assert len(heard) == 1


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.UNAVAILABLE])
def test_no_other_error_is_tried_again(calling: Calling, code: Code) -> None:
    time = Time()
    client = calling(Script(get_agent=failing(ConnectError(code, "why"), then=agent_service_pb.GetAgentResponse())), time)
    with pytest.raises(AforesaidError) as caught:
        client.agent()
    assert not caught.value.retryable
    assert (len(sent(client)), time.pauses) == (1, [])


def test_a_read_that_succeeds_later_is_like_one_that_succeeded_at_once(calling: Calling) -> None:
    reply = agent_service_pb.ListAgentsResponse(agents=[types_pb.Agent(agent_id="a")])
    client = calling(Script(list_agents=failing(unavailable(), unavailable(), then=reply)), Time())
    assert [agent.agent_id for agent in client.agents()] == ["a"]


def test_each_page_has_its_own_retries(calling: Calling) -> None:
    def page(number: int) -> Any:
        return agent_service_pb.SearchTranscriptsResponse(notice=str(number), next_page_token=str(number + 1) if number < 2 else "")

    answers = [answer for number in range(3) for answer in (unavailable(), unavailable(), page(number))]

    def answer(_: Any) -> Any:
        following = answers.pop(0)
        if isinstance(following, ConnectError):
            raise following
        return following

    client = calling(Script(search_transcripts=answer), Time(), retries=2)
    assert [page.notice for page in client.search("q")] == ["0", "1", "2"]


def test_none_are_made_where_their_number_is_0(calling: Calling) -> None:
    client = calling(Script(get_agent=failing(unavailable(), then=None)), Time(), retries=0)
    with pytest.raises(aforesaid.Unavailable):
        client.agent()
    assert len(sent(client)) == 1


def test_a_connection_that_broke_before_the_reply_is_tried_again(connect: Connect) -> None:
    with answering(b"", b"", b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n") as (url, heard):
        assert connect(url, "").agent() == Agent("", scope={})
    assert len(heard) == 3


def test_nobody_there_is_told_after_the_last_attempt(connect: Connect) -> None:
    client = connect(refused_port(), "", retries=1)
    with pytest.raises(aforesaid.Unreachable, match="connection refused"):
        client.agent()


def test_a_closed_client_says_so_at_once(connect: Connect) -> None:
    client = connect(refused_port(), "", retries=100)
    client.close()
    client.close()
    with pytest.raises(aforesaid.Unreachable, match=r"the client was closed$") as caught:
        client.agent()
    assert not caught.value.retryable


# When


@given(st.integers(0, 20), st.floats(0, 1, exclude_max=True))
def test_pauses_double_up_to_the_longest_with_jitter_of_a_half(count: int, chance: float) -> None:
    time = Time(chance=chance)
    attempts = Retries(count, time.clock, time.random).begin(AgentMethods.get_agent, 10_000)
    pauses = [attempts.pause_after(aforesaid.Unavailable("x")) for _ in range(count + 1)]
    assert pauses.pop() is None
    for number, pause in enumerate(pauses):
        whole = min(FIRST_SECONDS * 2**number, LONGEST_SECONDS)
        assert pause == whole * (0.5 + chance / 2)


@given(st.floats(0.001, 100), st.lists(st.floats(0, 1, exclude_max=True), min_size=1), st.floats(0, 1))
def test_no_pause_outlasts_the_call(seconds: float, chances: list[float], takes: float) -> None:
    time = Time()
    end = time.now + seconds
    attempts = Retries(100, time.clock, time.random).begin(AgentMethods.get_agent, seconds)
    for chance in chances:
        time.chance = chance
        time.now += takes
        pause = attempts.pause_after(aforesaid.Unavailable("x"))
        if pause is None:
            return
        time.sleep(pause)
        assert time.now < end


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        ("7", 7.0),
        ("0", 0.05),
        ("", 0.05),
        ("-3", 0.05),
        ("1.5", 0.05),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.05),
        ("٣", 0.05),
        ("31", None),
    ],
)
def test_retry_after_in_seconds_is_kept_to_where_there_is_time(header: str, pause: float | None) -> None:
    time = Time()
    attempts = Retries(3, time.clock, time.random).begin(AgentMethods.get_agent, 30)
    assert attempts.pause_after(aforesaid.Unavailable("x"), header) == pause


def test_retry_after_of_the_answer_is_heard(connect: Connect) -> None:
    later = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n"
    with answering(later) as (url, heard), pytest.raises(aforesaid.Unavailable):
        connect(url, "", timeout=30, retries=5).agent()
    assert len(heard) == 1


def test_each_attempt_gets_what_is_left_of_the_call(calling: Calling) -> None:
    time = Time(chance=1.0)
    script = Script(get_agent=failing(*[unavailable()] * 3, then=agent_service_pb.GetAgentResponse()))
    client = calling(script, time, timeout=100)
    client.agent()
    assert time.pauses == [0.1, 0.2, 0.4]
    told = [int(headers["connect-timeout-ms"]) for headers in script.headers]
    assert told == pytest.approx([100_000, 99_900, 99_700, 99_300], abs=2)


def test_a_write_after_failed_reads_is_sent_once(calling: Calling) -> None:
    script = Script(
        get_agent=failing(unavailable(), then=agent_service_pb.GetAgentResponse()), append_turns=lambda _: AppendTurnsResponse()
    )
    client = calling(script, Time())
    client.agent()
    client.append("c", [])
    assert len(sent(client)) == 3
