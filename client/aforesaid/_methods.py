"""The methods of the service as proto/ declares them: path, messages, and whether a call may be repeated.

Taken off the descriptors of the generated code when this module is loaded; nothing about a method is written down a second time.
"""

from __future__ import annotations

from typing import Any, TypeVar

from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from protobuf import DescMethod, Message

from aforesaid.agent.v1 import agent_service_pb as agents
from aforesaid.agent.v1 import audit_service_pb as audit
from aforesaid.agent.v1 import conversation_service_pb as conversations

Request = TypeVar("Request", bound=Message)
Reply = TypeVar("Reply", bound=Message)

_DECLARED: dict[str, DescMethod] = {
    method.input.type_name: method
    for file in (agents.desc(), conversations.desc(), audit.desc())
    for service in file.services
    for method in service.methods
}
_LEVELS = {
    "IDEMPOTENCY_UNKNOWN": IdempotencyLevel.UNKNOWN,
    "NO_SIDE_EFFECTS": IdempotencyLevel.NO_SIDE_EFFECTS,
    "IDEMPOTENT": IdempotencyLevel.IDEMPOTENT,
}


def _declared(request: type[Request], reply: type[Reply]) -> MethodInfo[Request, Reply]:
    """Returns the method that takes these requests; buf's lint sees that no other does. Raises LookupError for another reply."""
    method = _DECLARED[request.desc().type_name]
    if method.output.type_name != reply.desc().type_name:
        raise LookupError(f"{method} answers with {method.output.type_name}, not {reply.desc().type_name}")
    return MethodInfo(
        name=method.name,
        service_name=method.parent.type_name,
        input=request,
        output=reply,
        idempotency_level=_LEVELS[method.idempotency.name],
        stream_type=StreamType[method.method_kind.upper().replace("STREAMING", "STREAM")],
    )


def may_repeat(method: MethodInfo[Any, Any]) -> bool:
    """Tells whether calling a method twice is the same as calling it once: it reads."""
    return method.idempotency_level is not IdempotencyLevel.UNKNOWN


class AgentMethods:
    """What AgentService can be asked."""

    search_transcripts = _declared(agents.SearchTranscriptsRequest, agents.SearchTranscriptsResponse)
    read_transcript = _declared(agents.ReadTranscriptRequest, agents.ReadTranscriptResponse)
    list_agents = _declared(agents.ListAgentsRequest, agents.ListAgentsResponse)
    get_agent = _declared(agents.GetAgentRequest, agents.GetAgentResponse)
    update_agent = _declared(agents.UpdateAgentRequest, agents.UpdateAgentResponse)
    list_conversations = _declared(agents.ListConversationsRequest, agents.ListConversationsResponse)
    get_conversation = _declared(agents.GetConversationRequest, agents.GetConversationResponse)


class ConversationMethods:
    """What ConversationService can be asked."""

    append_turns = _declared(conversations.AppendTurnsRequest, conversations.AppendTurnsResponse)
    write_conversation = _declared(conversations.WriteConversationRequest, conversations.WriteConversationResponse)
    delete_conversation = _declared(conversations.DeleteConversationRequest, conversations.DeleteConversationResponse)
    import_turns = _declared(conversations.ImportTurnsRequest, conversations.ImportTurnsResponse)
    index_conversation = _declared(conversations.IndexConversationRequest, conversations.IndexConversationResponse)
    search_turns = _declared(conversations.SearchTurnsRequest, conversations.SearchTurnsResponse)
    resolve_source = _declared(conversations.ResolveSourceRequest, conversations.ResolveSourceResponse)
    compile_context = _declared(conversations.CompileContextRequest, conversations.CompileContextResponse)


class AuditMethods:
    """What AuditService can be asked."""

    list_reads = _declared(audit.ListReadsRequest, audit.ListReadsResponse)
    verify_audit = _declared(audit.VerifyAuditRequest, audit.VerifyAuditResponse)
