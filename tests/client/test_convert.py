"""Values and messages: what is written comes back as it was, and every field of a reply reaches its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protobuf import Message
from protobuf.wkt import Timestamp

from aforesaid import InvalidArgument, _calls, _convert, _replies
from aforesaid.agent.v1 import agent_service_pb, audit_service_pb, types_pb
from aforesaid.agent.v1 import conversation_service_pb as conversations
from aforesaid.agent.v1.conversation_service_pb import ImportSkip, ImportTurnsResponse
from aforesaid.model import Agent, Conversation, File, Part, Reasoning, Source, SourceRef, Text, ToolCall, ToolResult, Turn

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, TEXTS),
    st.builds(Reasoning, TEXTS),
    st.builds(ToolCall, TEXTS, TEXTS, TEXTS),
    st.builds(ToolResult, TEXTS, TEXTS, st.booleans(), st.booleans()),
    st.builds(File, TEXTS, TEXTS),
)
# The wire's range: the years 1 to 9999.
TIMES = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
TURNS = st.builds(Turn, TEXTS, st.lists(PARTS, max_size=4).map(tuple), TEXTS, st.none() | TIMES)


@given(TURNS)
def test_a_turn_comes_back_over_the_wire_as_it_was(turn: Turn) -> None:
    message = types_pb.Turn.from_binary(_convert.turn_message(turn).to_binary())
    back = _convert.turn_of(message)
    assert Turn(back.role, back.parts, back.turn_id, back.created_at) == turn
    assert _convert.turn_of(types_pb.Turn.from_json(message.to_json())) == back


@given(st.builds(Agent, TEXTS, TEXTS, TEXTS, st.booleans(), st.dictionaries(TEXTS, TEXTS), TEXTS))
def test_an_agent_comes_back_as_it_was(agent: Agent) -> None:
    assert _convert.agent_of(types_pb.Agent.from_binary(_convert.agent_message(agent).to_binary())) == agent


@given(TEXTS, TEXTS, TEXTS, st.builds(Source, TEXTS, TEXTS, TEXTS), st.lists(TURNS, max_size=3).map(tuple))
def test_a_conversation_is_sent_whole(
    conversation_id: str, agent_id: str, title: str, source: Source, turns: tuple[Turn, ...]
) -> None:
    conversation = Conversation(conversation_id, agent_id, title, turns, source)
    message = _convert.conversation_message(conversation)
    back = _convert.conversation_of(types_pb.Conversation.from_binary(message.to_binary()))
    assert (back.conversation_id, back.agent_id, back.title, back.source) == (conversation_id, agent_id, title, source)
    assert message.turns == [_convert.turn_message(turn) for turn in turns]
    assert _convert.conversation_message(conversation, with_turns=False).turns == []


def test_a_part_of_a_kind_that_is_not_known_is_an_empty_text() -> None:
    # Field 99, length-delimited, "x": what a later version may send.
    assert _convert.part_of(types_pb.Part.from_binary(b"\x9a\x06\x01x")) == Text("")


def test_a_result_without_content_is_empty_text() -> None:
    assert _convert.part_of(_convert.part_message(ToolResult(""))) == ToolResult("")


def distinct(message: type[Message], place: int = 1) -> Message:
    """A message with another value in each of its plain fields."""
    made = message()
    for number, field in enumerate(type(made).desc().fields, place):
        value = getattr(made, field.local_name)
        match value:
            case bool():
                setattr(made, field.local_name, True)
            case str():
                setattr(made, field.local_name, f"text {number}")
            case int() | float():
                setattr(made, field.local_name, type(value)(number))
            case list() if field.local_name in {"target_agent_ids", "turn_ids"}:
                setattr(made, field.local_name, [f"id {number}", "id 0"])
            case list() if field.local_name == "part_kinds":
                setattr(made, field.local_name, [types_pb.PartKind.TOOL_CALL, types_pb.PartKind.FILE])
            case None:
                if field.local_name in {"created_at", "updated_at", "time", "as_of"}:
                    setattr(made, field.local_name, Timestamp(seconds=number, nanos=5000))
            case _:
                pass
    return made


@pytest.mark.parametrize(
    ("message", "convert"),
    [
        (types_pb.SearchHit, _convert.hit_of),
        (types_pb.Turn, _convert.turn_of),
        (types_pb.Conversation, _convert.conversation_of),
        (audit_service_pb.ReadRecord, _convert.record_of),
        (types_pb.Agent, _convert.agent_of),
        (conversations.ContextCandidate, _convert.candidate_of),
    ],
)
def test_every_field_reaches_the_value_of_its_name(message: type[Message], convert: object) -> None:
    assert callable(convert)
    made = distinct(message)
    value = convert(made)
    names = [field.local_name for field in message.desc().fields if field.local_name != "turns"]
    assert sorted(names) == sorted(field.name for field in fields(value))
    for number, field in enumerate(message.desc().fields, 1):
        sent, got = getattr(made, field.local_name), getattr(value, field.local_name, None)
        match sent:
            case Timestamp():
                assert got == number * 1_000_000 + 5
            case bool() | str() | int() | float():
                assert got == sent
            case list() if sent and isinstance(sent[0], str):
                assert got == tuple(sent)
            case list() if sent:
                assert got == ("tool_call", "file")
            case _:
                assert got in ((), {}, Source(), None)


def test_a_page_holds_its_lists_and_what_goes_with_them() -> None:
    context = types_pb.ContextTurn(turn_id="t0", seq=4, role="user", text="before", cut=True, created_at=Timestamp(seconds=9))
    reply = agent_service_pb.SearchTranscriptsResponse(
        matches=[types_pb.SearchHit(seq=1, before=[context])],
        near=[types_pb.SearchHit(seq=2, after=[context])],
        partial=[types_pb.SearchHit(seq=3)],
        next_page_token="more",
        notice="notice",
        freshness=types_pb.Freshness(turns_pending=7, as_of=Timestamp(seconds=2)),
    )
    page = _convert.page_of(reply)
    assert [(name, [hit.seq for hit in hits]) for name, hits in page.lists()] == [("matches", [1]), ("near", [2]), ("partial", [3])]
    assert page.matches[0].before == page.near[0].after == (_replies.ContextTurn("t0", 4, "user", "before", True, 9_000_000),)
    assert (page.next_page_token, page.notice, page.turns_pending, page.as_of) == ("more", "notice", 7, 2_000_000)
    empty = _convert.page_of(agent_service_pb.SearchTranscriptsResponse())
    assert (list(empty.lists()), empty.turns_pending, empty.as_of) == ([], 0, None)


def test_every_kind_of_part_has_its_name_and_one_of_a_later_version_is_left_out() -> None:
    names = ("text", "reasoning", "tool_call", "tool_result_text", "tool_result_json", "file")
    hit = types_pb.SearchHit.from_binary(types_pb.SearchHit(part_kinds=list(types_pb.PartKind)[1:]).to_binary())
    assert _convert.hit_of(hit).part_kinds == names
    # Field 14, packed: text, a kind without a name, file.
    assert _convert.hit_of(types_pb.SearchHit.from_binary(b"\x72\x03\x01\x63\x06")).part_kinds == ("text", "file")
    assert _convert.search_request("q", part_kinds=iter(names)).part_kinds == list(types_pb.PartKind)[1:]


TURN = types_pb.Turn(turn_id="t", seq=3, role="user", parts=[_convert.part_message(Text("said"))])
STORED = _replies.StoredTurn("t", 3, "user", (Text("said"),), None, 0, 0)


def test_turns_that_were_found_come_with_the_turns_around_them() -> None:
    hit = conversations.TurnHit(
        agent_id="a",
        scope={"user_id": "ada"},
        conversation_id="c",
        turn=TURN,
        score=0.5,
        before=[types_pb.Turn(seq=2)],
        after=[types_pb.Turn(seq=4), types_pb.Turn(seq=5)],
        digest="sha256:1",
        parts_left_out=True,
    )
    freshness = types_pb.Freshness(turns_pending=7, as_of=Timestamp(seconds=2))
    found = _convert.found_turns_of(conversations.SearchTurnsResponse(hits=[hit], notice="notice", freshness=freshness))
    assert (found.notice, found.turns_pending, found.as_of) == ("notice", 7, 2_000_000)
    (value,) = found.hits
    assert {field.name for field in fields(value)} == {field.local_name for field in conversations.TurnHit.desc().fields}
    assert (value.agent_id, value.scope, value.conversation_id, value.turn) == ("a", {"user_id": "ada"}, "c", STORED)
    assert (value.score, value.digest, value.parts_left_out) == (0.5, "sha256:1", True)
    assert ([turn.seq for turn in value.before], [turn.seq for turn in value.after]) == ([2], [4, 5])


@pytest.mark.parametrize("unchanged", [True, False, None])
def test_a_source_tells_whether_its_text_is_unchanged_or_that_nobody_asked(unchanged: bool | None) -> None:
    reply = conversations.ResolveSourceResponse(
        agent_id="a", scope={"user_id": "ada"}, conversation_id="c", turn=TURN, digest="sha256:1", unchanged=unchanged
    )
    value = _convert.resolved_of(conversations.ResolveSourceResponse.from_binary(reply.to_binary()))
    assert value == _replies.ResolvedSource("a", {"user_id": "ada"}, "c", STORED, "sha256:1", unchanged)


def test_what_a_prompt_may_quote_keeps_its_order() -> None:
    candidates = [conversations.ContextCandidate(text="user: x"), conversations.ContextCandidate(text="tool: y")]
    value = _convert.compiled_of(conversations.CompileContextResponse(candidates=candidates, left_out=4))
    assert ([candidate.text for candidate in value.candidates], value.left_out) == (["user: x", "tool: y"], 4)


@pytest.mark.parametrize(
    ("outcome", "told", "is_here"),
    [
        (conversations.IndexOutcome.WRITTEN, "written", True),
        (conversations.IndexOutcome.UNCHANGED, "unchanged", True),
        (conversations.IndexOutcome.TOMBSTONED, "tombstoned", False),
    ],
)
def test_a_conversation_that_was_deleted_is_not_in_the_answer(
    outcome: conversations.IndexOutcome, told: str, is_here: bool
) -> None:
    kept = types_pb.Conversation(conversation_id="c", revision=2) if is_here else None
    value = _convert.indexed_of(conversations.IndexConversationResponse(conversation=kept, outcome=outcome))
    assert value == _replies.Indexed(told, _convert.conversation_of(kept) if is_here else None)  # type: ignore[arg-type]


@given(st.builds(SourceRef, TEXTS, TEXTS, TEXTS, TEXTS))
def test_a_source_is_sent_whole(source: SourceRef) -> None:
    message = conversations.SourceRef.from_binary(_convert.source_message(source).to_binary())
    assert SourceRef(message.conversation_id, message.turn_id, message.digest, message.agent_id) == source


def test_what_imports_took_adds_up() -> None:
    deleted = ImportSkip(
        agent_id="a", conversation_id="c", turns=4, reason="the conversation is tombstoned", code="failed_precondition"
    )
    foreign = ImportSkip(agent_id="e", conversation_id="f", turns=5, reason="no", code="permission_denied")
    one = _convert.imported_of(ImportTurnsResponse(turns_added=1, turns_replaced=2, turns_unchanged=3, skipped=[deleted, foreign]))
    two = _replies.Imported(10, 20, 30, refused=(_replies.LeftOut("b", "d", 1, "too large"),))
    assert one + two == _replies.Imported(
        added=11,
        replaced=22,
        unchanged=33,
        skipped=(_replies.LeftOut("a", "c", 4, "the conversation is tombstoned"),),
        refused=(_replies.LeftOut("e", "f", 5, "no"), _replies.LeftOut("b", "d", 1, "too large")),
    )


def test_a_search_puts_every_argument_in_its_field() -> None:
    request = _convert.search_request(
        "q",
        agent_id="a",
        conversation_id="c",
        roles=("user", "tool"),
        part_kinds=("tool_call", "text"),
        since=1_000_001,
        until=datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        project="/p",
        match="any_word",
        order="newest",
        words="as_typed",
        around=3,
        every_agent=True,
        include_own_searches=True,
        reason="why",
        scope={"user_id": "ada"},
        limit=7,
        cursor="next",
    )
    assert request == agent_service_pb.SearchTranscriptsRequest(
        query="q",
        pagination=types_pb.Pagination(limit=7, cursor="next"),
        agent_id="a",
        conversation_id="c",
        roles=["user", "tool"],
        part_kinds=[types_pb.PartKind.TOOL_CALL, types_pb.PartKind.TEXT],
        since=Timestamp(seconds=1, nanos=1000),
        until=Timestamp(),
        project="/p",
        match=types_pb.Match.ANY_WORD,
        order=types_pb.Order.NEWEST,
        words=types_pb.Words.AS_TYPED,
        around=3,
        every_agent=True,
        include_own_searches=True,
        reason="why",
        scope={"user_id": "ada"},
    )


@given(st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29), timezones=st.just(UTC)))  # noqa: DTZ001 - hypothesis adds the zone
def test_a_time_may_be_given_as_datetime(when: datetime) -> None:
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=_convert.micros("since", when)) == when


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"since": datetime(2026, 1, 1)}, "since"),  # noqa: DTZ001 - the missing zone is the case
        ({"until": datetime(2026, 1, 1)}, "until"),  # noqa: DTZ001
        ({"match": "some"}, "match"),
        ({"order": "oldest"}, "order"),
        ({"words": "any"}, "words"),
        ({"part_kinds": ["text", "image"]}, "part_kinds"),
    ],
)
def test_what_no_message_can_hold_is_refused_by_name(arguments: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidArgument, match=field) as caught:
        _convert.search_request("q", **arguments)  # type: ignore[arg-type]
    assert caught.value.violations[0].field == field


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"roles": "assistant"}, "roles: must be a list of texts, and is of type str"),
        ({"part_kinds": "text"}, "part_kinds: must be a list of texts, and is of type str"),
        ({"roles": None}, "roles: must be a list of texts, and is of type NoneType"),
        ({"since": "2026-03-04"}, "since: must be a datetime or microseconds since 1970, and is of type str"),
        ({"until": date(2026, 3, 4)}, "until: must be a datetime or microseconds since 1970, and is of type date"),
        ({"scope": "project"}, "scope: must be a map, and is of type str"),
        ({"scope": [("project", "shop")]}, "scope: must be a map, and is of type list"),
    ],
)
def test_an_argument_of_the_wrong_type_names_its_field(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        _convert.search_request("x", **arguments)
    assert caught.value.message == told
    assert [violation.field for violation in caught.value.violations] == list(arguments)


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        ("hello", "turns: must be a list of Turn, and is of type str"),
        (
            Turn("user", "hello"),  # type: ignore[arg-type]
            "parts: must be a list of Text, Reasoning, ToolCall, ToolResult and File, and is of type str",
        ),
    ],
)
def test_a_turn_that_is_none_is_told(turn: Any, told: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        _convert.turn_message(turn)
    assert caught.value.message == told


@pytest.mark.parametrize(
    ("call", "arguments", "told"),
    [
        (_calls.resolve_source, {"source": "c"}, "source: must be a SourceRef, and is of type str"),
        (
            _calls.compile_context,
            {"sources": SourceRef("c", "t")},
            "sources: must be a list of SourceRef, and is of type SourceRef",
        ),
        (_calls.compile_context, {"sources": "c"}, "sources: must be a list of SourceRef, and is of type str"),
        (_calls.search_turns, {"query": "q", "agent_ids": "a"}, "agent_ids: must be a list of texts, and is of type str"),
        (_calls.search, {"query": "q", "roles": "user"}, "roles: must be a list of texts, and is of type str"),
        (_calls.search, {"query": "q", "part_kinds": "text"}, "part_kinds: must be a list of texts, and is of type str"),
    ],
)
def test_a_call_with_an_argument_of_the_wrong_type_names_it(
    call: Callable[..., object], arguments: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(**arguments)
    assert caught.value.message == told


def test_the_looking_up_calls_put_every_argument_in_its_field() -> None:
    where: dict[str, Any] = {"conversation_ids": ["c"], "agent_ids": ["a"], "stem": True, "around": 2, "scope": {"k": "v"}}
    found = _calls.search_turns("q", limit=3, **where).request
    assert found == conversations.SearchTurnsRequest(query="q", limit=3, **where)
    source = SourceRef("c", "t", "sha256:1", "a")
    message = conversations.SourceRef(conversation_id="c", turn_id="t", digest="sha256:1", agent_id="a")
    compiled = _calls.compile_context("q", sources=[source], budget=9, limit=3, **where).request
    assert compiled == conversations.CompileContextRequest(query="q", sources=[message], budget=9, limit=3, **where)
    resolved = _calls.resolve_source(source, scope={"k": "v"}).request
    assert resolved == conversations.ResolveSourceRequest(source=message, scope={"k": "v"})


def test_writes_and_deletes_tell_whose_conversation_exactly() -> None:
    conversation = Conversation("c", "a")
    told: dict[str, Any] = {"exact_scope": True, "scope": {"k": "v"}}
    message = _convert.conversation_message(conversation)
    for call, request in (
        (_calls.write, conversations.WriteConversationRequest),
        (_calls.index_conversation, conversations.IndexConversationRequest),
    ):
        sent = call(conversation, expected_revision=0, **told).request
        assert sent == request(conversation=message, expected_revision=0, **told)
        assert call(conversation).request == request(conversation=message)
    deleted = _calls.delete("c", agent_id="a", **told).request
    assert deleted == conversations.DeleteConversationRequest(conversation_id="c", agent_id="a", **told)


def test_one_field_is_no_list_of_fields() -> None:
    with pytest.raises(InvalidArgument, match=r"^fields: must be a list of texts, and is of type str$"):
        _convert.field_mask("name")
