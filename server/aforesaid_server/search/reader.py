"""Reading: ReadTranscript, and the lists and single looks at agents and conversations."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from aforesaid_server.access import Access, Call, Readable, Refused, Who
from aforesaid_server.audit import Audit, Reading
from aforesaid_server.errors import InvalidArgument, NotFound
from aforesaid_server.paging import Seal, binding, limit_of
from aforesaid_server.search import Page, ReadReply, ReadRequest
from aforesaid_server.store import Scope, Store, StoredAgent, StoredConversation, StoredTurn

MOST_BYTES = 1_048_576
"""Bytes of text in one reply; one turn always comes whole."""
_CHUNK = 64
# What page tokens hold, in a fixed width: the length of a token must not tell how many agents other scopes have.
_PK, _TIME_AND_PK = struct.Struct(">q"), struct.Struct(">qq")


class Reader:
    """Answers reads and lists."""

    def __init__(self, store: Store, access: Access, audit: Audit, seal: Seal) -> None:
        self._store = store
        self._access = access
        self._audit = audit
        self._seal = seal

    # -- the transcript

    def read(self, call: Call, request: ReadRequest) -> ReadReply:
        """Returns the whole turns that a range touches, or one turn by id."""
        if request.turn_id and (request.offset or request.length):
            raise InvalidArgument("turn_id", "not together with offset and length")
        for field, value in (("offset", request.offset), ("length", request.length)):
            if value < 0:
                raise InvalidArgument(field, f"{value} is less than 0")
        who = self._access.who(call, request.scope)
        readable = self._readable(call, who, request)
        try:
            reply = self._reply(call, request, readable)
        except NotFound:
            self._record(call, who, request, readable, ())
            raise
        self._record(call, who, request, readable, reply.turns)
        return reply

    def _readable(self, call: Call, who: Who, request: ReadRequest) -> Readable:
        if not request.agent_id and not who.is_agent:
            raise InvalidArgument("agent_id", "is empty: a user names the agent")
        try:
            return self._access.readable(who, request.agent_id or who.agent_id, request.scope)
        except Refused as refused:
            self._audit.record(call, Reading(who, refused.targets, False, filters=_filters(request), reason=request.reason))
            raise refused.error from None

    def _record(self, call: Call, who: Who, request: ReadRequest, readable: Readable, turns: Sequence[StoredTurn]) -> None:
        if not readable.recorded:
            return
        pk = readable.targets[0][1] or 0
        returned = [(pk, turn.turn_id) for turn in turns]
        self._audit.record(
            call,
            Reading(who, readable.targets, True, filters=_filters(request), turns=returned, reason=request.reason),
        )

    def _reply(self, call: Call, request: ReadRequest, readable: Readable) -> ReadReply:
        agents = readable.agents or frozenset()
        conversation = self._store.conversation(next(iter(agents)), request.conversation_id) if agents else None
        if conversation is None:
            raise NotFound(f"conversation_id: there is no conversation {request.conversation_id}")
        if request.turn_id:
            turn = self._store.turn(conversation.pk, request.turn_id)
            if turn is None:
                raise NotFound(f"turn_id: there is no turn {request.turn_id}")
            return ReadReply([turn], 0)
        return self._range(call, conversation, request)

    def _range(self, call: Call, conversation: StoredConversation, request: ReadRequest) -> ReadReply:
        end = request.offset + request.length if request.length else conversation.content_length
        turns: list[StoredTurn] = []
        size = 0
        seq = self._store.seq_at(conversation.pk, request.offset)
        while chunk := self._store.turns_from(conversation.pk, seq, _CHUNK):
            call.patience.check()
            for turn in chunk:
                if turns and turn.content_offset >= end:
                    return ReadReply(turns, 0)
                if turn.content_offset >= end:
                    return ReadReply([], 0)
                if turns and size + turn.content_length > MOST_BYTES:
                    return ReadReply(turns, turn.content_offset)
                turns.append(turn)
                size += turn.content_length
            seq = chunk[-1].seq + 1
        return ReadReply(turns, 0)

    # -- agents

    def list_agents(self, call: Call, page: Page, scope: Scope) -> tuple[list[StoredAgent], str]:
        """Returns a page of the agents that the caller may list, by id, and the next token."""
        limit = limit_of(page.limit)
        who = self._access.who(call, scope)
        bound = binding("ListAgents", call.agent_id, dict(call.scope), dict(scope))
        after = None
        if page.cursor:
            opened = self._seal.open(page.cursor, bound)
            after = (opened[_PK.size :].decode("utf-8", "surrogatepass"), _PK.unpack_from(opened)[0])
        found = self._store.list_agents(who.scope or {}, self._access.listed(who), after, limit + 1)
        shown = found[:limit]
        token = ""
        if len(found) > limit:
            last = shown[-1]
            token = self._seal.close(_PK.pack(last.pk) + last.agent_id.encode("utf-8", "surrogatepass"), bound)
        return [self._access.seen_by(who, agent) for agent in shown], token

    def get_agent(self, call: Call, agent_id: str, scope: Scope) -> StoredAgent:
        """Returns one agent."""
        who = self._access.who(call, scope)
        return self._access.seen_by(who, self._access.told_of(who, agent_id, scope))

    # -- conversations

    def list_conversations(
        self, call: Call, agent_id: str, page: Page, scope: Scope
    ) -> tuple[list[tuple[StoredConversation, StoredAgent]], str]:
        """Returns a page of conversations, the one written last first, and the next token."""
        limit = limit_of(page.limit)
        who = self._access.who(call, scope)
        agents = self._conversations_of(who, agent_id, scope)
        bound = binding("ListConversations", agent_id, call.agent_id, dict(call.scope), dict(scope))
        after = None
        if page.cursor:
            updated_at, pk = _TIME_AND_PK.unpack(self._seal.open(page.cursor, bound))
            after = (updated_at, pk)
        found = self._store.list_conversations(who.scope or {}, agents, after, limit + 1)
        shown = found[:limit]
        token = ""
        if len(found) > limit:
            last = shown[-1][0]
            token = self._seal.close(_TIME_AND_PK.pack(last.updated_at, last.pk), bound)
        return shown, token

    def _conversations_of(self, who: Who, agent_id: str, scope: Scope) -> frozenset[int] | None:
        if agent_id:
            return frozenset({self._access.told_of(who, agent_id, scope).pk})
        if who.scope is None:
            return frozenset()
        return self._access.family(who) if who.is_agent else None

    def get_conversation(
        self, call: Call, agent_id: str, conversation_id: str, scope: Scope
    ) -> tuple[StoredConversation, StoredAgent]:
        """Returns one conversation."""
        agent = self._access.told_of(self._access.who(call, scope), agent_id, scope)
        conversation = self._store.conversation(agent.pk, conversation_id)
        if conversation is None:
            raise NotFound(f"conversation_id: there is no conversation {conversation_id}")
        return conversation, agent


def _filters(request: ReadRequest) -> dict[str, object]:
    fields: dict[str, object] = {
        "agent_id": request.agent_id,
        "conversation_id": request.conversation_id,
        "offset": request.offset,
        "length": request.length,
        "turn_id": request.turn_id,
        "scope": dict(request.scope),
    }
    return {name: value for name, value in fields.items() if value}
