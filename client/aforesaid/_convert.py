"""Between the plain values and the messages of the wire, both ways; no network, no rules.

What the service would refuse (a limit below 0, a name that is too long) is sent as it is: its answer names the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal, Never, TypeAlias, TypeVar

from protobuf import Oneof
from protobuf.wkt import FieldMask, Timestamp

from aforesaid._errors import InvalidArgument
from aforesaid._replies import (
    Appended,
    AuditCheck,
    AuditFault,
    CompiledContext,
    ContextCandidate,
    ContextTurn,
    FoundTurns,
    Imported,
    Indexed,
    LeftOut,
    PartKind,
    ReadRecord,
    ResolvedSource,
    SearchHit,
    SearchPage,
    StoredConversation,
    StoredTurn,
    TurnHit,
)
from aforesaid.agent.v1 import agent_service_pb, audit_service_pb, conversation_service_pb, types_pb
from aforesaid.model import Agent, Conversation, File, Part, Reasoning, Source, SourceRef, Text, ToolCall, ToolResult, Turn

When: TypeAlias = int | datetime
Match: TypeAlias = Literal["all_words", "any_word", "substring"]
Order: TypeAlias = Literal["best", "newest"]
Words: TypeAlias = Literal["stemmed", "as_typed"]

Number = TypeVar("Number")

# Why turns of a tombstoned conversation are skipped.
_TOMBSTONED = "failed_precondition"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MATCHES: Mapping[str, types_pb.Match] = {
    "all_words": types_pb.Match.ALL_WORDS,
    "any_word": types_pb.Match.ANY_WORD,
    "substring": types_pb.Match.SUBSTRING,
}
_ORDERS: Mapping[str, types_pb.Order] = {"best": types_pb.Order.BEST, "newest": types_pb.Order.NEWEST}
_WORDS: Mapping[str, types_pb.Words] = {"stemmed": types_pb.Words.STEMMED, "as_typed": types_pb.Words.AS_TYPED}
_KIND_NAMES: Mapping[types_pb.PartKind, PartKind] = {
    types_pb.PartKind.TEXT: "text",
    types_pb.PartKind.REASONING: "reasoning",
    types_pb.PartKind.TOOL_CALL: "tool_call",
    types_pb.PartKind.TOOL_RESULT_TEXT: "tool_result_text",
    types_pb.PartKind.TOOL_RESULT_JSON: "tool_result_json",
    types_pb.PartKind.FILE: "file",
}
_PART_KINDS: Mapping[str, types_pb.PartKind] = {name: kind for kind, name in _KIND_NAMES.items()}


def micros(field: str, when: When) -> int:
    """Returns microseconds since 1970 for a time. Raises InvalidArgument for a datetime without a zone, and for what is no time."""
    if isinstance(when, int):
        return when
    if not isinstance(when, datetime):
        raise _not_a(field, "a datetime or microseconds since 1970", when)
    if when.tzinfo is None:
        raise InvalidArgument.of(field, f"must have a time zone: {when.isoformat()}")
    return (when - _EPOCH) // timedelta(microseconds=1)


def texts(field: str, given: Iterable[str]) -> list[str]:
    """Returns a list of texts. Raises InvalidArgument for one text, which would be taken for a list of its letters."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise _not_a(field, "a list of texts", given)
    return list(given)


def pairs(scope: Mapping[str, str] | None) -> dict[str, str]:
    """Returns the scope of a request. Raises InvalidArgument for what is no map."""
    if not isinstance(scope, Mapping | None):
        raise _not_a("scope", "a map", scope)
    return dict(scope or {})


def _not_a(field: str, wanted: str, given: object) -> InvalidArgument:
    # Its type and not its value, which may be what somebody said.
    return InvalidArgument.of(field, f"must be {wanted}, and is of type {type(given).__name__}")


def timestamp(value: int | None) -> Timestamp | None:
    """Returns the message for microseconds since 1970."""
    if value is None:
        return None
    seconds, rest = divmod(value, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1000)


def search_request(
    query: str,
    *,
    agent_id: str = "",
    conversation_id: str = "",
    roles: Iterable[str] = (),
    part_kinds: Iterable[str] = (),
    since: When | None = None,
    until: When | None = None,
    project: str = "",
    match: Match = "all_words",
    order: Order = "best",
    words: Words = "stemmed",
    around: int = 0,
    every_agent: bool = False,
    include_own_searches: bool = False,
    reason: str = "",
    scope: Mapping[str, str] | None = None,
    limit: int = 0,
    cursor: str = "",
) -> agent_service_pb.SearchTranscriptsRequest:
    """Builds a search. Raises InvalidArgument for a `match`, an `order`, `words` or a kind of parts that does not exist."""
    return agent_service_pb.SearchTranscriptsRequest(
        query=query,
        pagination=types_pb.Pagination(limit=limit, cursor=cursor),
        agent_id=agent_id,
        conversation_id=conversation_id,
        roles=texts("roles", roles),
        part_kinds=[_named("part_kinds", kind, _PART_KINDS) for kind in texts("part_kinds", part_kinds)],
        since=None if since is None else timestamp(micros("since", since)),
        until=None if until is None else timestamp(micros("until", until)),
        project=project,
        match=_named("match", match, _MATCHES),
        order=_named("order", order, _ORDERS),
        words=_named("words", words, _WORDS),
        around=around,
        every_agent=every_agent,
        include_own_searches=include_own_searches,
        reason=reason,
        scope=pairs(scope),
    )


def _named(field: str, name: str, known: Mapping[str, Number]) -> Number:
    if name not in known:
        raise InvalidArgument.of(field, f"must be one of {', '.join(known)}: {name}")
    return known[name]


def source_messages(sources: Iterable[SourceRef]) -> list[conversation_service_pb.SourceRef]:
    """Returns the messages for a list of sources. Raises InvalidArgument for what is none."""
    if not isinstance(sources, Iterable):
        raise _not_a("sources", "a list of SourceRef", sources)
    return [source_message(source, "sources", "a list of SourceRef") for source in sources]


def source_message(source: SourceRef, field: str = "source", wanted: str = "a SourceRef") -> conversation_service_pb.SourceRef:
    """Returns the message for a source. Raises InvalidArgument for what is none."""
    if not isinstance(source, SourceRef):
        raise _not_a(field, wanted, source)
    return conversation_service_pb.SourceRef(
        agent_id=source.agent_id, conversation_id=source.conversation_id, turn_id=source.turn_id, digest=source.digest
    )


def field_mask(fields: Iterable[str]) -> FieldMask:
    """Returns the message that names fields."""
    return FieldMask(paths=texts("fields", fields))


def agent_message(agent: Agent) -> types_pb.Agent:
    """Returns the message for an agent."""
    return types_pb.Agent(
        agent_id=agent.agent_id,
        name=agent.name,
        role=agent.role,
        archived=agent.archived,
        scope=pairs(agent.scope),
        parent_agent_id=agent.parent_agent_id,
    )


def conversation_message(conversation: Conversation, *, with_turns: bool = True) -> types_pb.Conversation:
    """Returns the message for a conversation that is to be written."""
    source = conversation.source
    return types_pb.Conversation(
        conversation_id=conversation.conversation_id,
        agent_id=conversation.agent_id,
        title=conversation.title,
        turns=[turn_message(turn) for turn in conversation.turns] if with_turns else [],
        source=None if source == Source() else types_pb.Source(format=source.format, file=source.file, project=source.project),
    )


def turn_message(turn: Turn) -> types_pb.Turn:
    """Returns the message for a turn that is to be written. Raises InvalidArgument for what is none."""
    if not isinstance(turn, Turn):
        raise _not_a("turns", "a list of Turn", turn)
    return types_pb.Turn(
        turn_id=turn.turn_id,
        role=turn.role,
        parts=[part_message(part) for part in turn.parts],
        created_at=timestamp(turn.created_at),
    )


def part_message(part: Part) -> types_pb.Part:
    """Returns the message for a part."""
    match part:
        case Text(text):
            said: Oneof[Literal["text"], str] = Oneof("text", text)
            return types_pb.Part(kind=said)
        case Reasoning(text):
            thought: Oneof[Literal["reasoning"], str] = Oneof("reasoning", text)
            return types_pb.Part(kind=thought)
        case ToolCall(name, arguments, call_id):
            message = types_pb.ToolCall(name=name, arguments=arguments, call_id=call_id)
            call: Oneof[Literal["tool_call"], types_pb.ToolCall] = Oneof("tool_call", message)
            return types_pb.Part(kind=call)
        case ToolResult():
            result: Oneof[Literal["tool_result"], types_pb.ToolResult] = Oneof("tool_result", _result_message(part))
            return types_pb.Part(kind=result)
        case File(media_type, name):
            file: Oneof[Literal["file"], types_pb.File] = Oneof("file", types_pb.File(media_type=media_type, name=name))
            return types_pb.Part(kind=file)
        case _:
            raise _no_part(part)


def _no_part(part: Never) -> InvalidArgument:
    return _not_a("parts", "a list of Text, Reasoning, ToolCall, ToolResult and File", part)


def _result_message(result: ToolResult) -> types_pb.ToolResult:
    if result.is_json:
        json: Oneof[Literal["json"], str] = Oneof("json", result.content)
        return types_pb.ToolResult(call_id=result.call_id, content=json, is_error=result.is_error)
    text: Oneof[Literal["text"], str] = Oneof("text", result.content)
    return types_pb.ToolResult(call_id=result.call_id, content=text, is_error=result.is_error)


def _time(message: Timestamp | None) -> int | None:
    return None if message is None else message.seconds * 1_000_000 + message.nanos // 1000


def part_of(message: types_pb.Part) -> Part:
    """Returns the part for a message; one of a kind that this version does not know is an empty text."""
    match message.kind:
        case Oneof("text", str(text)):
            return Text(text)
        case Oneof("reasoning", str(text)):
            return Reasoning(text)
        case Oneof("tool_call", types_pb.ToolCall() as call):
            return ToolCall(call.name, call.arguments, call.call_id)
        case Oneof("tool_result", types_pb.ToolResult() as result):
            content = result.content
            is_json = content is not None and content.field == "json"
            return ToolResult(content.value if content is not None else "", result.call_id, is_json, result.is_error)
        case Oneof("file", types_pb.File() as file):
            return File(file.media_type, file.name)
        case _:
            return Text("")


def agent_of(message: types_pb.Agent | None) -> Agent:
    """Returns the agent for a message."""
    message = message or types_pb.Agent()
    return Agent(
        message.agent_id, message.name, message.role, message.archived, dict(message.scope), parent_agent_id=message.parent_agent_id
    )


def turn_of(message: types_pb.Turn) -> StoredTurn:
    """Returns the turn for a message."""
    return StoredTurn(
        turn_id=message.turn_id,
        seq=message.seq,
        role=message.role,
        parts=tuple(part_of(part) for part in message.parts),
        created_at=_time(message.created_at),
        content_offset=message.content_offset,
        content_length=message.content_length,
    )


def conversation_of(message: types_pb.Conversation | None) -> StoredConversation:
    """Returns the conversation for a message."""
    message = message or types_pb.Conversation()
    return StoredConversation(
        conversation_id=message.conversation_id,
        agent_id=message.agent_id,
        title=message.title,
        source=_source_of(message.source),
        revision=message.revision,
        created_at=_time(message.created_at),
        updated_at=_time(message.updated_at),
        turn_count=message.turn_count,
        content_length=message.content_length,
    )


def page_of(message: agent_service_pb.SearchTranscriptsResponse) -> SearchPage:
    """Returns the page for the answer to a search."""
    freshness = message.freshness or types_pb.Freshness()
    return SearchPage(
        matches=tuple(hit_of(hit) for hit in message.matches),
        near=tuple(hit_of(hit) for hit in message.near),
        partial=tuple(hit_of(hit) for hit in message.partial),
        next_page_token=message.next_page_token,
        notice=message.notice,
        turns_pending=freshness.turns_pending,
        as_of=_time(freshness.as_of),
    )


def hit_of(message: types_pb.SearchHit) -> SearchHit:
    """Returns the hit for a message."""
    return SearchHit(
        agent_id=message.agent_id,
        name=message.name,
        archived=message.archived,
        parent_agent_id=message.parent_agent_id,
        conversation_id=message.conversation_id,
        title=message.title,
        turn_id=message.turn_id,
        seq=message.seq,
        role=message.role,
        created_at=_time(message.created_at),
        snippet=message.snippet,
        score=message.score,
        content_offset=message.content_offset,
        content_length=message.content_length,
        digest=message.digest,
        before=tuple(_context_of(turn) for turn in message.before),
        after=tuple(_context_of(turn) for turn in message.after),
        source=_source_of(message.source),
        part_kinds=tuple(_KIND_NAMES[kind] for kind in message.part_kinds if kind in _KIND_NAMES),
    )


def _source_of(message: types_pb.Source | None) -> Source:
    return Source(message.format, message.file, message.project) if message is not None else Source()


def _context_of(message: types_pb.ContextTurn) -> ContextTurn:
    return ContextTurn(message.turn_id, message.seq, message.role, message.text, message.cut, _time(message.created_at))


def appended_of(message: conversation_service_pb.AppendTurnsResponse) -> Appended:
    """Returns what an append made."""
    return Appended(message.revision, tuple(turn_of(turn) for turn in message.turns))


def indexed_of(message: conversation_service_pb.IndexConversationResponse) -> Indexed:
    """Returns what became of a conversation that was kept elsewhere."""
    match message.outcome:
        case conversation_service_pb.IndexOutcome.TOMBSTONED:
            return Indexed("tombstoned", None)
        case conversation_service_pb.IndexOutcome.UNCHANGED:
            return Indexed("unchanged", conversation_of(message.conversation))
        case _:
            return Indexed("written", conversation_of(message.conversation))


def found_turns_of(message: conversation_service_pb.SearchTurnsResponse) -> FoundTurns:
    """Returns the turns that were found."""
    freshness = message.freshness or types_pb.Freshness()
    hits = tuple(turn_hit_of(hit) for hit in message.hits)
    return FoundTurns(hits, message.notice, freshness.turns_pending, _time(freshness.as_of))


def turn_hit_of(message: conversation_service_pb.TurnHit) -> TurnHit:
    """Returns the hit for a message."""
    return TurnHit(
        agent_id=message.agent_id,
        scope=dict(message.scope),
        conversation_id=message.conversation_id,
        turn=turn_of(message.turn or types_pb.Turn()),
        score=message.score,
        before=tuple(turn_of(turn) for turn in message.before),
        after=tuple(turn_of(turn) for turn in message.after),
        digest=message.digest,
        parts_left_out=message.parts_left_out,
    )


def resolved_of(message: conversation_service_pb.ResolveSourceResponse) -> ResolvedSource:
    """Returns the turn that a source names."""
    return ResolvedSource(
        agent_id=message.agent_id,
        scope=dict(message.scope),
        conversation_id=message.conversation_id,
        turn=turn_of(message.turn or types_pb.Turn()),
        digest=message.digest,
        unchanged=message.unchanged if message.has_field("unchanged") else None,
    )


def candidate_of(message: conversation_service_pb.ContextCandidate) -> ContextCandidate:
    """Returns the candidate for a message."""
    return ContextCandidate(
        text=message.text,
        match=message.match,
        agent_id=message.agent_id,
        conversation_id=message.conversation_id,
        turn_id=message.turn_id,
        seq=message.seq,
        score=message.score,
    )


def compiled_of(message: conversation_service_pb.CompileContextResponse) -> CompiledContext:
    """Returns what a prompt may quote."""
    return CompiledContext(tuple(candidate_of(candidate) for candidate in message.candidates), message.left_out)


def imported_of(message: conversation_service_pb.ImportTurnsResponse) -> Imported:
    """Returns what one stream of an import took. Somebody deleted a tombstoned conversation; any other skip is a refusal."""
    left_out = [(skip.code, LeftOut(skip.agent_id, skip.conversation_id, skip.turns, skip.reason)) for skip in message.skipped]
    return Imported(
        added=message.turns_added,
        replaced=message.turns_replaced,
        unchanged=message.turns_unchanged,
        skipped=tuple(left for code, left in left_out if code == _TOMBSTONED),
        refused=tuple(left for code, left in left_out if code != _TOMBSTONED),
    )


def record_of(message: audit_service_pb.ReadRecord) -> ReadRecord:
    """Returns the record for a message."""
    return ReadRecord(
        time=_time(message.time),
        caller_agent_id=message.caller_agent_id,
        role=message.role,
        target_agent_ids=tuple(message.target_agent_ids),
        method=message.method,
        door=message.door,
        granted=message.granted,
        query_hash=message.query_hash,
        turn_ids=tuple(message.turn_ids),
        reason=message.reason,
        request_id=message.request_id,
        filters=message.filters,
        later_page=message.later_page,
        query=message.query,
    )


def check_of(message: audit_service_pb.VerifyAuditResponse) -> AuditCheck:
    """Returns what a check of the audit log found."""
    faults = tuple(AuditFault(fault.record, fault.problem) for fault in message.faults)
    return AuditCheck(message.intact, message.records, message.head, faults)
