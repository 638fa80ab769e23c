"""The core, built over a data folder: Settings -> keys, store, index, access, audit log -> what the doors call.

No port is opened here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import structlog

from aforesaid_server.access import Access, Call
from aforesaid_server.api import Core
from aforesaid_server.api.figures import Figures, figures
from aforesaid_server.api.health import Readiness
from aforesaid_server.audit import Audit, HeadFile, HeadInMemory
from aforesaid_server.audit_without_key import AuditWithoutKey
from aforesaid_server.errors import AforesaidError, StartError
from aforesaid_server.folder import HEAD, INDEX, SECRET, STORE
from aforesaid_server.index.document import Documents
from aforesaid_server.index.live import LiveIndex
from aforesaid_server.index.others import Others
from aforesaid_server.ingest.follower import Follower
from aforesaid_server.ingest.writer import Writer
from aforesaid_server.keys import keys_of, new_secret
from aforesaid_server.paging import Seal
from aforesaid_server.search.chats import Chats
from aforesaid_server.search.context import Contexts
from aforesaid_server.search.reader import Reader
from aforesaid_server.search.searcher import Searcher
from aforesaid_server.settings import Settings
from aforesaid_server.store.opening import keys_of_deployment, open_store
from aforesaid_server.store.sql import open_in_memory
from aforesaid_server.text.transcript import SEARCH_TOOLS, Searched
from aforesaid_server.text.words import Analyser
from aforesaid_server.tokens import Tokens

if TYPE_CHECKING:  # the extra [otel] may be missing
    from aforesaid_server.api.tracing import Tracing

_SETTLING_SECONDS = 0.5

log = structlog.get_logger("aforesaid")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class House:
    """The core and what holds it up. `readiness` and `figures` are cheap; `close` ends follower, index and store, and waits for
    them.

    `settle` waits until searches find all that was written before; it raises Stopped when the call hangs up. `authenticate` tells
    whose a call is, by the values of its authorization header; None where no tokens are demanded.
    """

    core: Core
    readiness: Callable[[], Readiness]
    close: Callable[[], None]
    settle: Callable[[Call], None] = lambda _: None
    figures: Callable[[], Figures] = Figures
    tracing: Tracing | None = None
    authenticate: Callable[[Call, Sequence[str]], Call] | None = None


def build_core(settings: Settings, *, in_memory: bool = False, has_secret: bool = True) -> House:
    """Opens what lies in the data folder and builds the core upon it. Blocks; runs in a thread.

    With `in_memory` nothing is read from a disk or written to one, and all is gone when the house is closed. Where the data folder
    has not the secret of the deployment whose store it is, what wants that is refused.
    """
    tracing = _tracing(settings)
    traced = tracing.steps if tracing else _as_it_is
    gone = not in_memory and (settings.data / STORE).exists() and not (settings.data / SECRET).exists()
    store = open_in_memory() if in_memory else open_store(settings)
    try:
        keys = keys_of(new_secret()) if in_memory or not has_secret else keys_of_deployment(settings.data, store)
    except BaseException:
        store.close()
        raise
    if gone and not store.shared:
        log.warning("secret was gone, made anew", lost="tokens, page tokens, the proof of the audit log")
    searched = Searched(settings.index_reasoning, settings.index_system, SEARCH_TOOLS | settings.search_tools)
    documents = Documents(Analyser(settings.language), searched)
    live = LiveIndex(Others(store, documents) if store.shared else None)
    follower = Follower(store, live, documents, None if in_memory else settings.data / INDEX)
    seen, found = traced("store", store), traced("index", live)
    access = traced("access", Access(seen, settings.readers))
    seal = Seal(keys.cursors)
    head = HeadInMemory() if in_memory else HeadFile(settings.data / HEAD)
    audit = (Audit if has_secret else AuditWithoutKey)(seen, access, head, keys.audit, seal, keep_query=settings.audit_query_text)
    recording = traced("audit", audit)
    chats = traced("chats", Chats(seen, found, access, documents))
    core = Core(
        searcher=traced("searcher", Searcher(seen, found, access, recording, seal, documents)),
        reader=traced("reader", Reader(seen, access, recording, seal)),
        writer=traced("writer", Writer(seen, access, found, documents)),
        audit=recording,
        chats=chats,
        contexts=traced("contexts", Contexts(seen, access, chats, documents)),
    )
    follower.start()

    def readiness() -> Readiness:
        progress = follower.progress
        try:
            store.head()
        except AforesaidError as error:
            return Readiness(False, error.message, progress.done, progress.of)
        return Readiness(progress.ready, progress.why, progress.done, progress.of)

    def close() -> None:
        follower.stop()
        store.close()
        if tracing:
            tracing.close()

    def settle(call: Call) -> None:
        while not live.hurry(_SETTLING_SECONDS):
            call.patience.check()

    authenticate = Tokens(store, keys.tokens).authenticated if settings.auth == "token" else None

    def now() -> Figures:
        return figures(settings.data, live, follower, audit, shared=store.shared)

    return House(core, readiness, close, settle, now, tracing, authenticate)


def _tracing(settings: Settings) -> Tracing | None:
    """Returns what makes spans, None where no setting wants them."""
    if not settings.tracing:
        return None
    try:
        from aforesaid_server.api import tracing  # an extra, and a third of a second to load
    except ImportError as error:
        raise StartError(f"tracing needs what the extra [otel] installs: pip install 'aforesaid[otel]' ({error})") from None
    try:
        return tracing.open_tracing()
    except tracing.TracingError as error:
        raise StartError(str(error)) from None


def _as_it_is(_: str, part: T) -> T:
    return part
