"""Documents by hand, and what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aforesaid.model import Part, Source
from aforesaid_server.index import Batch, Candidate, Document, Found, Lists, Reach
from aforesaid_server.index.document import Brought, Documents, Fresh
from aforesaid_server.query.judge import Question
from aforesaid_server.query.parse import parse
from aforesaid_server.store import StoredAgent, StoredConversation, StoredTurn, TurnInPlace
from aforesaid_server.text.transcript import Kind, Searched, fold_letters
from aforesaid_server.text.words import Analyser

ENGLISH = Analyser()
DOCUMENTS = Documents(ENGLISH, Searched())
ALL = Reach({})
OWN_TOO = Reach({}, own_searches=True)


def document(
    number: int, text: str = "zebra", *, conversation: int = 1, at: int = 0, left: Sequence[str] | None = None
) -> Document:
    """A turn of the length of its text; `left` are the stretches of it without own searches, None where it has none."""
    without = None if left is None else ENGLISH.turn_of_stretches(left)
    return Document(number, len(text.encode()), 1, conversation, "user", "", {}, at, ENGLISH.turn(text), without)


def of_parts(number: int, *parts: Part, conversation: int = 1, answers: Mapping[int, str] | None = None) -> Document:
    """A turn of some parts; `answers` names the calls that its results answer, by place."""
    turn = StoredTurn(number, conversation, str(number), 0, "assistant", parts, 0, 0, 10, b"")
    kept = StoredConversation(conversation, 1, str(conversation), "", Source(), 1, 0, 0, 0, 0)
    return DOCUMENTS.of(TurnInPlace(turn, kept, StoredAgent(1, "ada", "", "", False, {}, None, ""), answers or {}))


def batch(head: int, *documents: Document, forget: Sequence[int] = (), forget_conversations: Sequence[int] = ()) -> Batch:
    return Batch(head, documents, forget, forget_conversations)


def brought(position: int, *documents: Document, forget: Sequence[int] = (), forget_conversations: Sequence[int] = ()) -> Brought:
    """What one write brings; its turns stand in the log one after the other, the last at `position`."""
    first = position - len(documents) + 1
    fresh = [Fresh(first + at, one) for at, one in enumerate(documents)]
    return Brought(position, fresh, forget, forget_conversations)


def ask(query: str) -> Question:
    return Question(parse(query, ENGLISH))


def matches(lists: Lists, query: str = "zebra", reach: Reach = ALL) -> list[int]:
    return [one.number for one in lists.matches(ask(query), reach, None, 1_000)]


def newest(lists: Lists, query: str = "zebra", reach: Reach = ALL, *, limit: int = 1_000) -> list[int]:
    """The numbers of all pages of so many."""
    found: list[Found] = []
    while page := lists.newest(ask(query), reach, found[-1] if found else None, limit):
        found += page
    return [one.number for one in found]


def of_kinds(*kinds: Kind, own_searches: bool = False) -> Reach:
    """A reach of parts of some kinds."""
    return Reach({}, own_searches=own_searches, kinds=Kind(sum(kinds)))


def held(lists: Lists, letters: str, reach: Reach = ALL, *, after: int | None = None, limit: int = 1_000) -> list[Candidate]:
    """The turns of a page that may hold some letters, not yet folded."""
    return lists.holding(fold_letters(letters), reach, after, limit)


def holding(lists: Lists, letters: str, reach: Reach = ALL) -> list[int]:
    """Their numbers."""
    return [one.number for one in held(lists, letters, reach)]


def near(lists: Lists, query: str, reach: Reach = ALL) -> list[int]:
    return [one.number for one in lists.near(ask(query), reach, None, 1_000)]
