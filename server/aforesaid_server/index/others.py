"""What other processes write into a store that several share, as fresh turns: read from the change log, a piece at a time."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from aforesaid_server.index import Document
from aforesaid_server.index.document import Brought, Documents, Fresh, lasting
from aforesaid_server.store import Imported, Store, TurnInPlace

log = structlog.get_logger(__name__)


class Others:
    """Tells what stands in the change log, whoever wrote it."""

    def __init__(self, store: Store, documents: Documents) -> None:
        self._store = store
        self._documents = documents

    def head(self) -> int:
        """Returns the number of the last change."""
        return self._store.head()

    def after(self, number: int, limit: int) -> tuple[Brought, Sequence[Imported]]:
        """Returns what stands in the log after a number, and what imports of it are left to the follower: up to `limit` changes,
        and up to the `position` of what is returned.
        """
        tail = self._store.tail(number, limit)
        if not tail.changes:
            return Brought(tail.head, (), (), (), number + 1), tail.imported
        left = lasting(tail.changes)
        fresh = [Fresh(position, document_of(self._documents, place, letters=False)) for position, place in left.puts]
        return Brought(tail.head, fresh, left.forget, left.forget_conversations, number + 1), tail.imported


def document_of(documents: Documents, place: TurnInPlace, *, letters: bool = True) -> Document:
    """Returns the document of a turn. One whose words cannot be found is kept without them and told, or it would stop all
    others.
    """
    try:
        return documents.of(place, letters=letters)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        log.error("a turn cannot be searched", number=place.turn.number, error=type(error).__name__)  # noqa: TRY400 - it may hold text
        return documents.wordless(place)
