"""Stores for the tests: a list of conversations as it stands, and one without the search of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aforesaid.transcript_tool import ConversationStore


class Listed:
    """Conversations in a given order."""

    def __init__(self, conversations: Mapping[str, object]) -> None:
        self.conversations = conversations

    def list(self) -> Sequence[str]:
        return list(self.conversations)

    def get(self, conversation_id: str) -> object:
        return self.conversations[conversation_id]


class WithoutSearch:
    """A store of which only `list` and `get` are known."""

    def __init__(self, store: ConversationStore) -> None:
        self.list = store.list
        self.get = store.get


def said(role: str, content: object) -> dict[str, object]:
    return {"role": role, "content": content}
