"""Documents by hand, and what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence

from aforesaid_server.index import Batch, Document, Lists, Reach
from aforesaid_server.index.document import Brought, Fresh
from aforesaid_server.query.judge import Question
from aforesaid_server.query.parse import parse
from aforesaid_server.text.words import Analyser

ENGLISH = Analyser()
ALL = Reach({})


def document(number: int, text: str = "zebra", *, conversation: int = 1) -> Document:
    """A turn of the length of its text."""
    return Document(number, len(text.encode()), 1, conversation, "user", "", {}, 0, ENGLISH.turn(text))


def batch(head: int, *documents: Document, forget: Sequence[int] = (), forget_conversations: Sequence[int] = ()) -> Batch:
    return Batch(head, documents, forget, forget_conversations)


def brought(position: int, *documents: Document, forget: Sequence[int] = (), forget_conversations: Sequence[int] = ()) -> Brought:
    """What one write brings; its turns stand in the log one after the other, the last at `position`."""
    first = position - len(documents) + 1
    fresh = [Fresh(first + at, one) for at, one in enumerate(documents)]
    return Brought(position, fresh, forget, forget_conversations)


def ask(query: str) -> Question:
    return Question(parse(query, ENGLISH))


def matches(lists: Lists, query: str = "zebra") -> list[int]:
    return [one.number for one in lists.matches(ask(query), ALL, None, 1_000)]


def near(lists: Lists, query: str) -> list[int]:
    return [one.number for one in lists.near(ask(query), ALL, None, 1_000)]
