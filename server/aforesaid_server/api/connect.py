"""The three services: each method takes a message, calls the core in a worker thread and answers with a message.

These are the functions behind Connect, gRPC-Web and gRPC alike. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeAlias

from connectrpc.request import RequestContext

from aforesaid.agent.v1 import agent_service_pb as agents_pb
from aforesaid.agent.v1 import audit_service_pb as audit_pb
from aforesaid.agent.v1 import conversation_service_pb as conversations_pb
from aforesaid.agent.v1.agent_service_connect import AgentService
from aforesaid.agent.v1.audit_service_connect import AuditService
from aforesaid.agent.v1.conversation_service_connect import ConversationService
from aforesaid_server.api import Core, convert
from aforesaid_server.api.importing import Importing
from aforesaid_server.api.intake import Intake
from aforesaid_server.api.interceptors import current_call
from aforesaid_server.api.workers import Workers

Context: TypeAlias = RequestContext[Any, Any]


class Agents(AgentService):
    """Searching and reading."""

    def __init__(self, core: Core, workers: Workers) -> None:
        self._core, self._workers = core, workers

    async def search_transcripts(
        self, request: agents_pb.SearchTranscriptsRequest, _: Context
    ) -> agents_pb.SearchTranscriptsResponse:
        """Searches."""
        asked = convert.search_request(request)
        return convert.search_response(await self._workers.read(self._core.searcher.search, current_call(), asked))

    async def read_transcript(self, request: agents_pb.ReadTranscriptRequest, _: Context) -> agents_pb.ReadTranscriptResponse:
        """Reads whole turns."""
        asked = convert.read_request(request)
        return convert.read_response(await self._workers.read(self._core.reader.read, current_call(), asked))

    async def list_agents(self, request: agents_pb.ListAgentsRequest, _: Context) -> agents_pb.ListAgentsResponse:
        """Lists agents."""
        page, scope = convert.page(request.pagination), convert.scope(request.scope)
        listed, token = await self._workers.read(self._core.reader.list_agents, current_call(), page, scope)
        return agents_pb.ListAgentsResponse(agents=[convert.stored_agent(agent) for agent in listed], next_page_token=token)

    async def get_agent(self, request: agents_pb.GetAgentRequest, _: Context) -> agents_pb.GetAgentResponse:
        """Tells of an agent."""
        scope = convert.scope(request.scope)
        agent = await self._workers.read(self._core.reader.get_agent, current_call(), request.agent_id, scope)
        return agents_pb.GetAgentResponse(agent=convert.stored_agent(agent))

    async def update_agent(self, request: agents_pb.UpdateAgentRequest, _: Context) -> agents_pb.UpdateAgentResponse:
        """Changes an agent."""
        asked = convert.update_request(request)
        agent = await self._workers.write(self._core.writer.update_agent, current_call(), asked)
        return agents_pb.UpdateAgentResponse(agent=convert.stored_agent(agent))

    async def list_conversations(
        self, request: agents_pb.ListConversationsRequest, _: Context
    ) -> agents_pb.ListConversationsResponse:
        """Lists conversations."""
        page, scope = convert.page(request.pagination), convert.scope(request.scope)
        listed, token = await self._workers.read(
            self._core.reader.list_conversations, current_call(), request.agent_id, page, scope
        )
        return agents_pb.ListConversationsResponse(
            conversations=[convert.stored_conversation(stored, by) for stored, by in listed], next_page_token=token
        )

    async def get_conversation(self, request: agents_pb.GetConversationRequest, _: Context) -> agents_pb.GetConversationResponse:
        """Tells of a conversation."""
        scope = convert.scope(request.scope)
        stored, by = await self._workers.read(
            self._core.reader.get_conversation, current_call(), request.agent_id, request.conversation_id, scope
        )
        return agents_pb.GetConversationResponse(conversation=convert.stored_conversation(stored, by))


class Conversations(ConversationService):
    """Writing, and looking up in the caller's own."""

    def __init__(self, core: Core, workers: Workers, intake: Intake) -> None:
        self._core, self._workers, self._intake = core, workers, intake

    async def append_turns(self, request: conversations_pb.AppendTurnsRequest, _: Context) -> conversations_pb.AppendTurnsResponse:
        """Appends turns."""
        asked = convert.append_request(request)
        return convert.append_response(await self._workers.write(self._core.writer.append, current_call(), asked))

    async def write_conversation(
        self, request: conversations_pb.WriteConversationRequest, _: Context
    ) -> conversations_pb.WriteConversationResponse:
        """Writes a whole conversation."""
        asked = convert.write_request(request)
        return convert.write_response(await self._workers.write(self._core.writer.write, current_call(), asked))

    async def delete_conversation(
        self, request: conversations_pb.DeleteConversationRequest, _: Context
    ) -> conversations_pb.DeleteConversationResponse:
        """Deletes a conversation."""
        await self._workers.write(self._core.writer.delete, current_call(), convert.delete_request(request))
        return conversations_pb.DeleteConversationResponse()

    async def index_conversation(
        self, request: conversations_pb.IndexConversationRequest, _: Context
    ) -> conversations_pb.IndexConversationResponse:
        """Writes a whole conversation that was kept elsewhere."""
        asked = convert.write_request(request)
        return convert.index_response(await self._workers.write(self._core.writer.index, current_call(), asked))

    async def search_turns(self, request: conversations_pb.SearchTurnsRequest, _: Context) -> conversations_pb.SearchTurnsResponse:
        """Searches the caller's own turns."""
        asked = convert.turns_request(request)
        return convert.turns_response(await self._workers.read(self._core.chats.search_turns, current_call(), asked))

    async def resolve_source(
        self, request: conversations_pb.ResolveSourceRequest, _: Context
    ) -> conversations_pb.ResolveSourceResponse:
        """Returns a turn that is cited."""
        source, scope = convert.source_ref(request.source or conversations_pb.SourceRef()), convert.scope(request.scope)
        return convert.resolved(await self._workers.read(self._core.chats.resolve_source, current_call(), source, scope))

    async def compile_context(
        self, request: conversations_pb.CompileContextRequest, _: Context
    ) -> conversations_pb.CompileContextResponse:
        """Collects what a prompt may quote."""
        asked = convert.context_request(request)
        return convert.context_response(await self._workers.read(self._core.contexts.compile_context, current_call(), asked))

    async def import_turns(
        self, request: AsyncIterator[conversations_pb.ImportTurnsRequest], _: Context
    ) -> conversations_pb.ImportTurnsResponse:
        """Takes turns of many conversations."""
        importing = Importing(self._core.writer, self._workers, current_call())
        async for message in self._intake.in_time(request):
            await importing.take(message)
        return convert.import_response(await importing.finish())


class Audits(AuditService):
    """The record of reads."""

    def __init__(self, core: Core, workers: Workers) -> None:
        self._core, self._workers = core, workers

    async def list_reads(self, request: audit_pb.ListReadsRequest, _: Context) -> audit_pb.ListReadsResponse:
        """Lists reads."""
        page, scope = convert.page(request.pagination), convert.scope(request.scope)
        listed, token = await self._workers.read(self._core.audit.list_reads, current_call(), request.agent_id, page, scope)
        return audit_pb.ListReadsResponse(records=[convert.read_record(record) for record in listed], next_page_token=token)

    async def verify_audit(self, _: audit_pb.VerifyAuditRequest, __: Context) -> audit_pb.VerifyAuditResponse:
        """Checks the record."""
        return convert.verification(await self._workers.read(self._core.audit.verify, current_call()))
