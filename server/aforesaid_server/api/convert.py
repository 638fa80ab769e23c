"""Protobuf messages to the core's values and back. Pure; decides nothing but whether a value can be expressed at all.

Times on the wire have nanoseconds, the core's microseconds: what is stored is cut off, a bound of a search is rounded up, so that
"at this time or later" and "before this time" hold for every stored time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

from protobuf import Oneof
from protobuf.wkt import Timestamp

from aforesaid import model
from aforesaid.agent.v1 import agent_service_pb as agents_pb
from aforesaid.agent.v1 import audit_service_pb as audit_pb
from aforesaid.agent.v1 import conversation_service_pb as conversations_pb
from aforesaid.agent.v1 import types_pb as pb
from aforesaid.model import EMPTY_SCOPE
from aforesaid_server.audit import ReadRecord, Verification
from aforesaid_server.errors import InvalidArgument
from aforesaid_server.ingest import (
    AppendRequest,
    DeleteRequest,
    ImportTally,
    Indexed,
    IndexOutcome,
    UpdateRequest,
    WriteRequest,
)
from aforesaid_server.search import ContextTurn, Hit, Page, ReadReply, ReadRequest, SearchReply, SearchRequest
from aforesaid_server.search.chats import Resolved, TurnHit, TurnsReply, TurnsRequest, digest_of
from aforesaid_server.search.context import Context, ContextRequest
from aforesaid_server.store import StoredAgent, StoredConversation, StoredTurn, Written
from aforesaid_server.text.transcript import NO_KIND, Kind, kinds_of

_SECOND = 1_000_000
# 0001-01-01 and the last second of 9999: what a Timestamp may hold.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799

UPDATABLE = ("name", "role", "archived", "parent_agent_id", "scope")


# -- asked


def search_request(message: agents_pb.SearchTranscriptsRequest) -> SearchRequest:
    """Returns what a search is asked. Raises InvalidArgument for a time out of range."""
    return SearchRequest(
        query=message.query,
        page=page(message.pagination),
        agent_id=message.agent_id,
        conversation_id=message.conversation_id,
        roles=frozenset(message.roles),
        kinds=_kinds(message.part_kinds),
        since=_bound(message.since, "since"),
        until=_bound(message.until, "until"),
        project=message.project,
        any_word=message.match == pb.Match.ANY_WORD,
        substring=message.match == pb.Match.SUBSTRING,
        as_typed=message.words == pb.Words.AS_TYPED,
        around=message.around,
        every_agent=message.every_agent,
        newest=message.order == pb.Order.NEWEST,
        include_own_searches=message.include_own_searches,
        reason=message.reason,
        scope=scope(message.scope),
    )


def _kinds(named: Iterable[pb.PartKind]) -> Kind:
    kinds = NO_KIND
    for kind in named:
        kinds |= Kind[kind.name]
    return kinds


def read_request(message: agents_pb.ReadTranscriptRequest) -> ReadRequest:
    """Returns what a read is asked."""
    return ReadRequest(
        agent_id=message.agent_id,
        conversation_id=message.conversation_id,
        offset=message.offset,
        length=message.length,
        turn_id=message.turn_id,
        reason=message.reason,
        scope=scope(message.scope),
    )


def update_request(message: agents_pb.UpdateAgentRequest) -> UpdateRequest:
    """Returns what is to change. Raises InvalidArgument for a mask with a field that cannot be changed."""
    paths = message.update_mask.paths if message.update_mask is not None else []
    for place, path in enumerate(paths):
        if path not in UPDATABLE:
            raise InvalidArgument("update_mask", f"path {place} is none of {', '.join(UPDATABLE)}")
    return UpdateRequest(agent(message.agent or pb.Agent()), frozenset(paths), scope(message.scope))


def append_request(message: conversations_pb.AppendTurnsRequest) -> AppendRequest:
    """Returns the turns to append. Raises InvalidArgument for a time out of range."""
    return AppendRequest(message.agent_id, message.conversation_id, turns(message.turns, "turns"), scope(message.scope))


def write_request(
    message: conversations_pb.WriteConversationRequest | conversations_pb.IndexConversationRequest,
) -> WriteRequest:
    """Returns the conversation to write. Raises InvalidArgument for a time out of range."""
    expected = message.expected_revision if message.has_field("expected_revision") else None
    whole = conversation(message.conversation or pb.Conversation())
    return WriteRequest(whole, expected, scope(message.scope), message.exact_scope)


def delete_request(message: conversations_pb.DeleteConversationRequest) -> DeleteRequest:
    """Returns which conversation to delete."""
    return DeleteRequest(message.agent_id, message.conversation_id, scope(message.scope), message.exact_scope)


def turns_request(message: conversations_pb.SearchTurnsRequest) -> TurnsRequest:
    """Returns what a search of the caller's own turns is asked."""
    return TurnsRequest(
        query=message.query,
        limit=message.limit,
        conversation_ids=tuple(message.conversation_ids),
        agent_ids=tuple(message.agent_ids),
        stem=message.stem,
        around=message.around,
        scope=scope(message.scope),
    )


def context_request(message: conversations_pb.CompileContextRequest) -> ContextRequest:
    """Returns what a prompt may want to quote."""
    return ContextRequest(
        query=message.query,
        sources=tuple(map(source_ref, message.sources)),
        budget=message.budget,
        limit=message.limit,
        conversation_ids=tuple(message.conversation_ids),
        agent_ids=tuple(message.agent_ids),
        stem=message.stem,
        around=message.around,
        scope=scope(message.scope),
    )


def source_ref(message: conversations_pb.SourceRef) -> model.SourceRef:
    """Returns the turn that is named."""
    return model.SourceRef(message.conversation_id, message.turn_id, message.digest, message.agent_id)


def page(message: pb.Pagination | None) -> Page:
    """Returns which page is asked for."""
    return Page(message.limit, message.cursor) if message is not None else Page()


def scope(pairs: Mapping[str, str]) -> Mapping[str, str]:
    """Returns a scope that nobody can change."""
    return MappingProxyType(dict(pairs)) if pairs else EMPTY_SCOPE


def agent(message: pb.Agent) -> model.Agent:
    """Returns an agent."""
    return model.Agent(
        message.agent_id, message.name, message.role, message.archived, scope(message.scope), message.parent_agent_id
    )


def conversation(message: pb.Conversation, path: str = "conversation") -> model.Conversation:
    """Returns a conversation with its turns; `path` is its place in the request. Raises InvalidArgument for a time out of range."""
    source = message.source
    return model.Conversation(
        message.conversation_id,
        message.agent_id,
        message.title,
        turns(message.turns, f"{path}.turns"),
        model.Source(source.format, source.file, source.project) if source is not None else model.Source(),
    )


def turns(messages: Iterable[pb.Turn], path: str) -> tuple[model.Turn, ...]:
    """Returns turns in order; `path` is where they stand in the request. Raises InvalidArgument for a time out of range."""
    return tuple(
        model.Turn(
            role=message.role,
            parts=tuple(_part(part, f"{path}[{place}].parts[{number}]") for number, part in enumerate(message.parts)),
            turn_id=message.turn_id,
            created_at=_said_at(message.created_at, f"{path}[{place}].created_at"),
        )
        for place, message in enumerate(messages)
    )


def _part(message: pb.Part, path: str) -> model.Part:
    match message.kind:
        case Oneof("text", str(text)):
            return model.Text(text)
        case Oneof("reasoning", str(text)):
            return model.Reasoning(text)
        case Oneof("tool_call", pb.ToolCall() as call):
            return model.ToolCall(call.name, call.arguments, call.call_id)
        case Oneof("tool_result", pb.ToolResult() as result):
            content = result.content
            return model.ToolResult(
                content.value if content is not None else "",
                result.call_id,
                content is not None and content.field == "json",
                result.is_error,
            )
        case Oneof("file", pb.File() as file):
            return model.File(file.media_type, file.name)
        case _:
            raise InvalidArgument(path, "is none of text, reasoning, tool_call, tool_result, file")


def _said_at(time: Timestamp | None, path: str) -> int | None:
    """Returns microseconds, what is finer cut off."""
    if time is None:
        return None
    _check(time, path)
    return time.seconds * _SECOND + time.nanos // 1000


def _bound(time: Timestamp | None, path: str) -> int | None:
    """Returns microseconds, what is finer rounded up."""
    if time is None:
        return None
    _check(time, path)
    return time.seconds * _SECOND - -time.nanos // 1000


def _check(time: Timestamp, path: str) -> None:
    if not _FIRST_SECOND <= time.seconds <= _LAST_SECOND:
        raise InvalidArgument(path, f"{time.seconds} seconds lie outside of the years 1 to 9999")
    if not 0 <= time.nanos < 1_000_000_000:
        raise InvalidArgument(path, f"{time.nanos} nanoseconds are not within a second")


# -- answered


def search_response(reply: SearchReply) -> agents_pb.SearchTranscriptsResponse:
    """Returns one page of what was found."""
    return agents_pb.SearchTranscriptsResponse(
        matches=[_hit(hit) for hit in reply.matches],
        near=[_hit(hit) for hit in reply.near],
        partial=[_hit(hit) for hit in reply.partial],
        next_page_token=reply.next_page_token,
        notice=reply.notice,
        freshness=pb.Freshness(turns_pending=reply.turns_pending, as_of=_timestamp(reply.as_of)),
    )


def _hit(hit: Hit) -> pb.SearchHit:
    turn, of, by = hit.turn, hit.conversation, hit.agent
    return pb.SearchHit(
        agent_id=by.agent_id,
        snippet=hit.snippet,
        name=by.name,
        archived=by.archived,
        score=hit.score,
        seq=turn.seq,
        role=turn.role,
        content_offset=turn.content_offset,
        content_length=turn.content_length,
        conversation_id=of.conversation_id,
        turn_id=turn.turn_id,
        title=of.title,
        created_at=_timestamp(turn.created_at),
        part_kinds=[pb.PartKind[kind.name] for kind in kinds_of(turn.parts) if kind.name],
        digest=f"sha256:{turn.digest.hex()}",
        parent_agent_id=by.parent_agent_id,
        before=[_beside(turn) for turn in hit.before],
        after=[_beside(turn) for turn in hit.after],
        source=_stored_source(of.source),
    )


def _beside(turn: ContextTurn) -> pb.ContextTurn:
    return pb.ContextTurn(
        turn_id=turn.turn_id, seq=turn.seq, role=turn.role, text=turn.text, cut=turn.cut, created_at=_timestamp(turn.created_at)
    )


def read_response(reply: ReadReply) -> agents_pb.ReadTranscriptResponse:
    """Returns whole turns."""
    return agents_pb.ReadTranscriptResponse(
        turns=[stored_turn(turn, parts=True) for turn in reply.turns], next_offset=reply.next_offset
    )


def stored_agent(stored: StoredAgent) -> pb.Agent:
    """Returns an agent as it is kept."""
    return pb.Agent(
        agent_id=stored.agent_id,
        name=stored.name,
        role=stored.role,
        archived=stored.archived,
        scope=dict(stored.scope),
        parent_agent_id=stored.parent_agent_id,
    )


def stored_conversation(stored: StoredConversation, by: StoredAgent) -> pb.Conversation:
    """Returns a conversation as it is kept, without its turns."""
    return pb.Conversation(
        conversation_id=stored.conversation_id,
        agent_id=by.agent_id,
        title=stored.title,
        revision=stored.revision,
        updated_at=_timestamp(stored.updated_at),
        created_at=_timestamp(stored.created_at),
        source=_stored_source(stored.source),
        turn_count=stored.turn_count,
        content_length=stored.content_length,
    )


def _stored_source(source: model.Source) -> pb.Source | None:
    return pb.Source(format=source.format, file=source.file, project=source.project) if source != model.Source() else None


def stored_turn(stored: StoredTurn, *, parts: bool) -> pb.Turn:
    """Returns a turn as it is kept, with or without its parts."""
    return pb.Turn(
        turn_id=stored.turn_id,
        seq=stored.seq,
        role=stored.role,
        parts=[_stored_part(part) for part in stored.parts] if parts else [],
        created_at=_timestamp(stored.created_at),
        content_offset=stored.content_offset,
        content_length=stored.content_length,
    )


def _stored_part(part: model.Part) -> pb.Part:
    # The literals are spelled out because a Oneof is invariant in its name.
    match part:
        case model.Text(text):
            said: Oneof[Literal["text"], str] = Oneof("text", text)
            return pb.Part(kind=said)
        case model.Reasoning(text):
            thought: Oneof[Literal["reasoning"], str] = Oneof("reasoning", text)
            return pb.Part(kind=thought)
        case model.ToolCall(name, arguments, call_id):
            call: Oneof[Literal["tool_call"], pb.ToolCall] = Oneof(
                "tool_call", pb.ToolCall(name=name, arguments=arguments, call_id=call_id)
            )
            return pb.Part(kind=call)
        case model.ToolResult():
            result: Oneof[Literal["tool_result"], pb.ToolResult] = Oneof("tool_result", _stored_result(part))
            return pb.Part(kind=result)
        case model.File(media_type, name):
            file: Oneof[Literal["file"], pb.File] = Oneof("file", pb.File(media_type=media_type, name=name))
            return pb.Part(kind=file)


def _stored_result(part: model.ToolResult) -> pb.ToolResult:
    text: Oneof[Literal["text"], str] = Oneof("text", part.content)
    json: Oneof[Literal["json"], str] = Oneof("json", part.content)
    return pb.ToolResult(call_id=part.call_id, content=json if part.is_json else text, is_error=part.is_error)


def append_response(written: Written) -> conversations_pb.AppendTurnsResponse:
    """Returns the turns of the request in its order, without their parts."""
    in_order = sorted(written.turns, key=lambda turn: turn.place)
    return conversations_pb.AppendTurnsResponse(
        revision=written.conversation.revision, turns=[stored_turn(turn.turn, parts=False) for turn in in_order]
    )


def write_response(written: Written) -> conversations_pb.WriteConversationResponse:
    """Returns the conversation as it was kept, without its turns."""
    return conversations_pb.WriteConversationResponse(conversation=stored_conversation(written.conversation, written.agent))


_OUTCOMES = {
    IndexOutcome.WRITTEN: conversations_pb.IndexOutcome.WRITTEN,
    IndexOutcome.UNCHANGED: conversations_pb.IndexOutcome.UNCHANGED,
    IndexOutcome.TOMBSTONED: conversations_pb.IndexOutcome.TOMBSTONED,
}


def index_response(indexed: Indexed) -> conversations_pb.IndexConversationResponse:
    """Returns what became of a conversation that was kept elsewhere."""
    written = indexed.written
    kept = stored_conversation(written.conversation, written.agent) if written is not None else None
    return conversations_pb.IndexConversationResponse(conversation=kept, outcome=_OUTCOMES[indexed.outcome])


def turns_response(reply: TurnsReply) -> conversations_pb.SearchTurnsResponse:
    """Returns the turns that were found."""
    return conversations_pb.SearchTurnsResponse(
        hits=[_turn_hit(hit) for hit in reply.hits],
        notice=reply.notice,
        freshness=pb.Freshness(turns_pending=reply.turns_pending, as_of=_timestamp(reply.as_of)),
    )


def _turn_hit(hit: TurnHit) -> conversations_pb.TurnHit:
    place = hit.place
    return conversations_pb.TurnHit(
        agent_id=place.agent.agent_id,
        scope=dict(place.agent.scope),
        conversation_id=place.conversation.conversation_id,
        turn=stored_turn(place.turn, parts=True),
        score=hit.score,
        before=[stored_turn(turn, parts=True) for turn in hit.before],
        after=[stored_turn(turn, parts=True) for turn in hit.after],
        digest=digest_of(place.turn),
        parts_left_out=hit.parts_left_out,
    )


def resolved(found: Resolved) -> conversations_pb.ResolveSourceResponse:
    """Returns the turn that is cited."""
    place = found.place
    return conversations_pb.ResolveSourceResponse(
        agent_id=place.agent.agent_id,
        scope=dict(place.agent.scope),
        conversation_id=place.conversation.conversation_id,
        turn=stored_turn(place.turn, parts=True),
        digest=digest_of(place.turn),
        **({"unchanged": found.unchanged} if found.unchanged is not None else {}),
    )


def context_response(context: Context) -> conversations_pb.CompileContextResponse:
    """Returns what a prompt may quote."""
    return conversations_pb.CompileContextResponse(
        candidates=[
            conversations_pb.ContextCandidate(
                text=one.text,
                match=one.match,
                agent_id=one.agent_id,
                conversation_id=one.conversation_id,
                turn_id=one.turn_id,
                seq=one.seq,
                score=one.score,
            )
            for one in context.candidates
        ],
        left_out=context.left_out,
    )


def import_response(tally: ImportTally) -> conversations_pb.ImportTurnsResponse:
    """Returns what an import took and what it left out."""
    return conversations_pb.ImportTurnsResponse(
        turns_added=tally.added,
        turns_replaced=tally.replaced,
        turns_unchanged=tally.unchanged,
        skipped=[
            conversations_pb.ImportSkip(
                agent_id=agent_id, conversation_id=conversation_id, turns=count, reason=reason, code=code.value
            )
            for (agent_id, conversation_id, code, reason), count in tally.frozen().items()
        ],
    )


def read_record(record: ReadRecord) -> audit_pb.ReadRecord:
    """Returns a record of the audit log."""
    return audit_pb.ReadRecord(
        time=_timestamp(record.time),
        caller_agent_id=record.caller_agent_id,
        role=record.role,
        target_agent_ids=list(record.target_agent_ids),
        method=record.method,
        door=record.door,
        granted=record.granted,
        query_hash=record.query_hash,
        turn_ids=list(record.turn_ids),
        reason=record.reason,
        request_id=record.request_id,
        filters=record.filters,
        later_page=record.later_page,
        query=record.query,
    )


def verification(found: Verification) -> audit_pb.VerifyAuditResponse:
    """Returns what a check of the audit log found."""
    return audit_pb.VerifyAuditResponse(
        intact=found.intact,
        records=found.records,
        head=found.head,
        faults=[audit_pb.AuditFault(record=fault.record, problem=fault.problem) for fault in found.faults],
    )


def _timestamp(microseconds: int) -> Timestamp:
    seconds, rest = divmod(microseconds, _SECOND)
    return Timestamp(seconds=seconds, nanos=rest * 1000)
