"""A core that answers what a test tells it to, for what the real one cannot be made to do: unforeseen errors, slow calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aforesaid.model import Source, SourceRef, Text, Turn
from aforesaid_server.access import Call
from aforesaid_server.api import Core
from aforesaid_server.api.health import Readiness
from aforesaid_server.audit import ReadRecord, Verification
from aforesaid_server.errors import Stopped
from aforesaid_server.house import House
from aforesaid_server.ingest import (
    AppendRequest,
    DeleteRequest,
    ImportItem,
    ImportTally,
    Indexed,
    IndexOutcome,
    UpdateRequest,
    WriteRequest,
)
from aforesaid_server.search import Page, ReadReply, ReadRequest, SearchReply, SearchRequest
from aforesaid_server.search.chats import Resolved, TurnHit, TurnsReply, TurnsRequest
from aforesaid_server.search.context import Candidate, Context, ContextRequest
from aforesaid_server.store import StoredAgent, StoredConversation, StoredTurn, TurnInPlace, Written, WrittenTurn

AGENT = StoredAgent(1, "ada", "Ada", "implementer", False, {"user_id": "u"}, None, "")
CONVERSATION = StoredConversation(2, 1, "talk", "A talk", Source(), 3, 1_000_001, 2_000_002, 1, 6)
TURN = StoredTurn(9, 2, "t-0", 0, "user", (Text("hello"),), 1_500_000, 0, 5, bytes(range(32)))
PLACE = TurnInPlace(TURN, CONVERSATION, AGENT)
READY = Readiness(True)
NOTHING_FOUND = SearchReply((), (), (), "", "nothing was found", 0, 1_700_000_000_000_000)


@dataclass(slots=True)
class FakeCore:
    """Records what it is asked, in `asked` as (call, request); answers with `answer(request)`, or with something that holds little.

    A batch of an import is kept in `batches`, or handed to `take`.
    """

    answer: Callable[[Any], Any] | None = None
    take: Callable[[Sequence[ImportItem], ImportTally], None] | None = None
    asked: list[tuple[Call, Any]] = field(default_factory=list)
    batches: list[list[ImportItem]] = field(default_factory=list)
    readiness: Readiness = READY
    closed: bool = False

    def _answered(self, call: Call, request: Any, otherwise: Any) -> Any:
        self.asked.append((call, request))
        return self.answer(request) if self.answer is not None else otherwise

    def search(self, call: Call, request: SearchRequest) -> SearchReply:
        reply: SearchReply = self._answered(call, request, NOTHING_FOUND)
        return reply

    def read(self, call: Call, request: ReadRequest) -> ReadReply:
        reply: ReadReply = self._answered(call, request, ReadReply((TURN,), 0))
        return reply

    def list_agents(self, call: Call, page: Page, scope: Mapping[str, str]) -> tuple[list[StoredAgent], str]:
        reply: tuple[list[StoredAgent], str] = self._answered(call, (page, scope), ([AGENT], "next"))
        return reply

    def get_agent(self, call: Call, agent_id: str, scope: Mapping[str, str]) -> StoredAgent:
        reply: StoredAgent = self._answered(call, (agent_id, scope), AGENT)
        return reply

    def list_conversations(
        self, call: Call, agent_id: str, page: Page, scope: Mapping[str, str]
    ) -> tuple[list[tuple[StoredConversation, StoredAgent]], str]:
        reply: tuple[list[tuple[StoredConversation, StoredAgent]], str] = self._answered(
            call, (agent_id, page, scope), ([(CONVERSATION, AGENT)], "next")
        )
        return reply

    def get_conversation(
        self, call: Call, agent_id: str, conversation_id: str, scope: Mapping[str, str]
    ) -> tuple[StoredConversation, StoredAgent]:
        reply: tuple[StoredConversation, StoredAgent] = self._answered(
            call, (agent_id, conversation_id, scope), (CONVERSATION, AGENT)
        )
        return reply

    def append(self, call: Call, request: AppendRequest) -> Written:
        reply: Written = self._answered(call, request, Written(AGENT, CONVERSATION, (WrittenTurn(TURN, "added", 0),), ()))
        return reply

    def write(self, call: Call, request: WriteRequest) -> Written:
        reply: Written = self._answered(call, request, Written(AGENT, CONVERSATION, (), ()))
        return reply

    def index(self, call: Call, request: WriteRequest) -> Indexed:
        written = Indexed(IndexOutcome.WRITTEN, Written(AGENT, CONVERSATION, (), ()))
        reply: Indexed = self._answered(call, request, written)
        return reply

    def search_turns(self, call: Call, request: TurnsRequest) -> TurnsReply:
        reply: TurnsReply = self._answered(call, request, TurnsReply((TurnHit(PLACE, 1.0),), "", 0, 1_700_000_000_000_000))
        return reply

    def resolve_source(self, call: Call, source: SourceRef, scope: Mapping[str, str]) -> Resolved:
        reply: Resolved = self._answered(call, (source, scope), Resolved(PLACE, None))
        return reply

    def compile_context(self, call: Call, request: ContextRequest) -> Context:
        candidate = Candidate("user: hello", "search", "ada", "talk", "t-0", 0, 1.0)
        reply: Context = self._answered(call, request, Context((candidate,), 0))
        return reply

    def delete(self, call: Call, request: DeleteRequest) -> None:
        self._answered(call, request, None)

    def update_agent(self, call: Call, request: UpdateRequest) -> StoredAgent:
        reply: StoredAgent = self._answered(call, request, AGENT)
        return reply

    def import_batch(self, call: Call, items: Sequence[ImportItem], tally: ImportTally) -> None:
        self._answered(call, items, None)
        if self.take is not None:
            self.take(items, tally)
            return
        self.batches.append(list(items))
        tally.added += sum(len(item.conversation.turns) for item in items)

    def list_reads(self, call: Call, agent_id: str, page: Page, scope: Mapping[str, str]) -> tuple[list[ReadRecord], str]:
        reply: tuple[list[ReadRecord], str] = self._answered(call, (agent_id, page, scope), ([], ""))
        return reply

    def verify(self, call: Call) -> Verification:
        reply: Verification = self._answered(call, None, Verification(True, 0, "", ()))
        return reply

    def turns(self) -> list[Turn]:
        """All turns that were imported, in order."""
        return [turn for batch in self.batches for item in batch for turn in item.conversation.turns]

    def forget(self) -> None:
        """Makes it as new."""
        self.answer, self.take, self.asked, self.batches, self.readiness = None, None, [], [], READY

    def close(self) -> None:
        self.closed = True

    def house(self) -> House:
        """The core as the doors take it."""
        return House(Core(self, self, self, self, self, self), lambda: self.readiness, self.close)

    def open_house(self) -> House:
        """The same where tokens are demanded, and everybody has one."""
        return replace(self.house(), authenticate=lambda call, _: call)


class Slow:
    """An answer that waits until it is let go, or until its caller no longer waits."""

    def __init__(self, core: FakeCore) -> None:
        self._core = core
        self.begun, self.go_on, self.stopped = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, _: object) -> SearchReply:
        call = self._core.asked[-1][0]
        self.begun.set()
        while not self.go_on.wait(0.005):
            try:
                call.patience.check()
            except Stopped:
                self.stopped.set()
                raise
        return NOTHING_FOUND
