"""The doors: Connect and gRPC-Web on one port, gRPC on another, one implementation of each method behind all of them.

    HTTP  http.py: paths, Host, Origin  ┐  codecs.py: bytes -> messages  ┌ connect.py: the services, a few lines a method
                                        ├  interceptors.py: who asks,    ┤ importing.py: a stream of turns -> batches
    gRPC  grpc.py: the same functions   ┘  rules, errors, the log        └ convert.py: protobuf <-> the core's values

Here is what the doors need of the core. Nothing that a door decides is about who may read what: that is the core's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aforesaid.model import SourceRef
from aforesaid_server.access import Call
from aforesaid_server.audit import ReadRecord, Verification
from aforesaid_server.ingest import AppendRequest, DeleteRequest, ImportItem, ImportTally, Indexed, UpdateRequest, WriteRequest
from aforesaid_server.search import Page, ReadReply, ReadRequest, SearchReply, SearchRequest
from aforesaid_server.search.chats import Resolved, TurnsReply, TurnsRequest
from aforesaid_server.search.context import Context, ContextRequest
from aforesaid_server.store import StoredAgent, StoredConversation, Written


class Searcher(Protocol):
    """Searches."""

    def search(self, call: Call, request: SearchRequest) -> SearchReply:
        """Returns one page of every list."""
        ...


class Reader(Protocol):
    """Reads turns, and tells of agents and conversations."""

    def read(self, call: Call, request: ReadRequest) -> ReadReply:
        """Returns whole turns."""
        ...

    def list_agents(self, call: Call, page: Page, scope: Mapping[str, str]) -> tuple[list[StoredAgent], str]:
        """Returns a page of agents and the token of the next."""
        ...

    def get_agent(self, call: Call, agent_id: str, scope: Mapping[str, str]) -> StoredAgent:
        """Returns an agent."""
        ...

    def list_conversations(
        self, call: Call, agent_id: str, page: Page, scope: Mapping[str, str]
    ) -> tuple[list[tuple[StoredConversation, StoredAgent]], str]:
        """Returns a page of conversations and the token of the next."""
        ...

    def get_conversation(
        self, call: Call, agent_id: str, conversation_id: str, scope: Mapping[str, str]
    ) -> tuple[StoredConversation, StoredAgent]:
        """Returns a conversation."""
        ...


class Writer(Protocol):
    """Writes."""

    def append(self, call: Call, request: AppendRequest) -> Written:
        """Appends turns."""
        ...

    def write(self, call: Call, request: WriteRequest) -> Written:
        """Writes a whole conversation."""
        ...

    def index(self, call: Call, request: WriteRequest) -> Indexed:
        """Writes a whole conversation that was kept elsewhere."""
        ...

    def delete(self, call: Call, request: DeleteRequest) -> None:
        """Deletes a conversation."""
        ...

    def update_agent(self, call: Call, request: UpdateRequest) -> StoredAgent:
        """Changes an agent."""
        ...

    def import_batch(self, call: Call, items: Sequence[ImportItem], tally: ImportTally) -> None:
        """Takes turns of many conversations in one transaction and adds to the tally."""
        ...


class Chats(Protocol):
    """Looks things up in the caller's own conversations."""

    def search_turns(self, call: Call, request: TurnsRequest) -> TurnsReply:
        """Returns the best turns."""
        ...

    def resolve_source(self, call: Call, source: SourceRef, scope: Mapping[str, str]) -> Resolved:
        """Returns the turn that a source names."""
        ...


class Contexts(Protocol):
    """Collects what a prompt may quote of the caller's own conversations."""

    def compile_context(self, call: Call, request: ContextRequest) -> Context:
        """Returns what fits the budget."""
        ...


class Audit(Protocol):
    """The record of reads."""

    def list_reads(self, call: Call, agent_id: str, page: Page, scope: Mapping[str, str]) -> tuple[list[ReadRecord], str]:
        """Returns a page of reads and the token of the next."""
        ...

    def verify(self, call: Call) -> Verification:
        """Checks the whole record."""
        ...


@dataclass(frozen=True, slots=True)
class Core:
    """What the doors call: synchronous, in worker threads."""

    searcher: Searcher
    reader: Reader
    writer: Writer
    audit: Audit
    chats: Chats
    contexts: Contexts
