"""Writing: what the use cases are asked and what they answer. No protobuf here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from aforesaid.model import EMPTY_SCOPE, Agent, Conversation, Turn
from aforesaid_server.errors import AforesaidError, Code
from aforesaid_server.store import Scope, Written


@dataclass(frozen=True, slots=True)
class AppendRequest:
    """Turns for the end of a conversation."""

    agent_id: str
    conversation_id: str
    turns: Sequence[Turn]
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A whole conversation; `expected_revision` None writes whatever is there. With `exact_scope` its agent is the one of exactly
    the caller's scope and this one.
    """

    conversation: Conversation
    expected_revision: int | None = None
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)
    exact_scope: bool = False


class IndexOutcome(Enum):
    """What became of a conversation that was kept elsewhere."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    TOMBSTONED = "tombstoned"


@dataclass(frozen=True, slots=True)
class Indexed:
    """What became of it, and what was written; None where it was deleted here."""

    outcome: IndexOutcome
    written: Written | None


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """The conversation to delete; `exact_scope` as in WriteRequest."""

    agent_id: str
    conversation_id: str
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)
    exact_scope: bool = False


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """The fields of `agent` to change, named as in model.Agent; an empty mask changes nothing."""

    agent: Agent
    mask: frozenset[str]
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


@dataclass(frozen=True, slots=True)
class ImportItem:
    """Some turns of one conversation with its agent; `conversation.turns` are appended."""

    agent: Agent
    conversation: Conversation
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


@dataclass(slots=True)
class ImportTally:
    """What an import took so far. `skipped` counts turns by agent id, conversation id, code and reason."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    skipped: dict[tuple[str, str, Code, str], int] = field(default_factory=dict)

    def skip(self, item: ImportItem, error: AforesaidError) -> None:
        """Counts the turns of an item that was left out."""
        key = (item.agent.agent_id, item.conversation.conversation_id, error.code, error.message)
        self.skipped[key] = self.skipped.get(key, 0) + len(item.conversation.turns)

    def frozen(self) -> Mapping[tuple[str, str, Code, str], int]:
        """Returns what was left out."""
        return dict(self.skipped)
