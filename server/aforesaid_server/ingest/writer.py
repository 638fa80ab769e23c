"""Writing: validate, find the words, store, answer. The commit itself makes the turns findable.

Words are found before the store's transaction begins: if they cannot be, nothing is written. Bulk import alone does not wait for
that; its turns come in through the follower.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from aforesaid.leaves import well_formed
from aforesaid.model import Turn
from aforesaid_server.access import Access, Call, Who, joined, no_such_agent
from aforesaid_server.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)
from aforesaid_server.index.document import Documents, KnownWords, brought_by
from aforesaid_server.index.live import LiveIndex
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
from aforesaid_server.store import (
    AgentKey,
    Append,
    Change,
    Imported,
    NewTurn,
    Scope,
    Store,
    StoredAgent,
    Tombstoned,
    Written,
)
from aforesaid_server.text.transcript import measure, text_of

MOST_FRESH = 1_000
"""Turns that wait for the engine; past that, writers wait for it."""
_PATIENCE_SECONDS = 30.0
LONGEST_TURN = 32 * 1024 * 1024
"""Bytes of one turn's text."""


def _now() -> int:
    return time.time_ns() // 1_000


class Writer:
    """Takes turns, conversations and changes of agents."""

    def __init__(
        self,
        store: Store,
        access: Access,
        live: LiveIndex,
        documents: Documents,
        *,
        now: Callable[[], int] = _now,
    ) -> None:
        self._store = store
        self._access = access
        self._live = live
        self._documents = documents
        self._now = now

    # -- conversations

    def append(self, call: Call, request: AppendRequest) -> Written:
        """Appends turns to a conversation."""
        agent = self._target(call, request.agent_id, request.scope)
        turns = self._prepared(request.turns, "turns")
        words = self._words_of(turns)
        self._wait_for_room(call)
        written = self._store.append(Append(agent, request.conversation_id, turns), now=self._now())
        self._show(written.changes, words)
        return written

    def write(self, call: Call, request: WriteRequest) -> Written:
        """Writes a whole conversation."""
        conversation = request.conversation
        if not conversation.conversation_id:
            raise InvalidArgument("conversation.conversation_id", "must not be empty")
        agent = self._target(call, conversation.agent_id, request.scope, "conversation.agent_id", exact_scope=request.exact_scope)
        turns = self._prepared(conversation.turns, "conversation.turns")
        words = self._words_of(turns)
        self._wait_for_room(call)
        whole = Append(agent, conversation.conversation_id, turns, conversation.title, conversation.source)
        written = self._store.write(whole, expected_revision=request.expected_revision, now=self._now())
        self._show(written.changes, words)
        return written

    def index(self, call: Call, request: WriteRequest) -> Indexed:
        """Writes a whole conversation that was kept elsewhere, but for one that was deleted here."""
        try:
            written = self.write(call, request)
        except FailedPrecondition:  # tombstoned, and nothing was written
            return Indexed(IndexOutcome.TOMBSTONED, None)
        return Indexed(IndexOutcome.WRITTEN if written.revised else IndexOutcome.UNCHANGED, written)

    def delete(self, call: Call, request: DeleteRequest) -> None:
        """Deletes a conversation."""
        agent = self._target(call, request.agent_id, request.scope, exact_scope=request.exact_scope)
        if agent.pk is None:
            raise no_such_agent(agent.agent_id)
        self._show(self._store.delete(agent.pk, request.conversation_id, now=self._now()), {})

    def import_batch(self, call: Call, items: Sequence[ImportItem], tally: ImportTally) -> None:
        """Takes turns of many conversations in one transaction, in several where an agent brings sub-agents of sub-agents, and
        counts them. The index follows.
        """
        self._access.confirm(call)  # a stream may go on for long after its token was looked at
        appends: list[tuple[ImportItem, Append]] = []
        made: set[str] = set()
        for item in items:
            if item.agent.parent_agent_id in made:  # it has to be there before what is below it
                self._take(appends, tally)
                appends, made = [], set()
            try:
                append = self._append_of(call, item)
            except (NotFound, PermissionDenied, ResourceExhausted) as error:
                tally.skip(item, error)
                continue
            appends.append((item, append))
            if call.agent_id and append.agent.pk is None:
                made.add(append.agent.agent_id)
        self._take(appends, tally)

    def _take(self, appends: Sequence[tuple[ImportItem, Append]], tally: ImportTally) -> None:
        results = self._store.append_many([append for _, append in appends], now=self._now()) if appends else []
        for (item, _), result in zip(appends, results, strict=True):
            if isinstance(result, Tombstoned):
                tally.skip(item, FailedPrecondition("the conversation is tombstoned"))
                continue
            for turn in result.turns:
                tally.added += turn.outcome == "added"
                tally.replaced += turn.outcome == "replaced"
                tally.unchanged += turn.outcome == "unchanged"
        changed = [result for result in results if isinstance(result, Written) and result.changes]
        if changed:
            self._live.imported(
                [Imported(one.changes[0].number, one.changes[-1].number, one.agent.pk, one.agent.scope) for one in changed]
            )

    def _append_of(self, call: Call, item: ImportItem) -> Append:
        agent, conversation = item.agent, item.conversation
        scope = joined(item.scope, agent.scope)
        if scope is None:
            raise InvalidArgument("agent.scope", "contradicts the scope of the request")
        who = self._access.who(call, scope)
        key = self._access.writable(who, agent.agent_id, scope, "agent.agent_id", agent.parent_agent_id)
        if not who.is_agent:
            key = replace(key, name=agent.name, role=agent.role, parent_agent_id=agent.parent_agent_id)
        elif key.pk is None and agent.agent_id != who.agent_id:  # one that makes itself has no name, role and parent of its choice
            key = replace(key, name=agent.name, parent_agent_id=agent.parent_agent_id)
        turns = self._prepared(conversation.turns, "turns")
        return Append(key, conversation.conversation_id, turns, conversation.title, conversation.source)

    def _target(self, call: Call, agent_id: str, scope: Scope, field: str = "agent_id", *, exact_scope: bool = False) -> AgentKey:
        return self._access.writable(self._access.who(call, scope), agent_id, scope, field, exact_scope=exact_scope)

    def _prepared(self, turns: Sequence[Turn], field: str) -> list[NewTurn]:
        prepared = []
        for place, turn in enumerate(turns):
            text = well_formed(text_of(turn.parts))
            measured = measure(text)
            if measured.content_length > LONGEST_TURN:
                raise ResourceExhausted(f"{field}[{place}]: {measured.content_length} bytes, at most {LONGEST_TURN} are allowed")
            prepared.append(NewTurn(turn.turn_id, turn.role, turn.parts, turn.created_at, measured.content_length, measured.digest))
        return prepared

    def _wait_for_room(self, call: Call) -> None:
        """Waits for an engine that fell behind, so that searches have little to scan."""
        call.patience.check()
        if not self._live.wait_for_room(MOST_FRESH, _PATIENCE_SECONDS):
            raise Unavailable("the index is behind: try again later")

    def _words_of(self, turns: Sequence[NewTurn]) -> KnownWords:
        return {(turn.role, turn.parts): self._documents.words_of(turn.role, turn.parts) for turn in turns}

    def _show(self, changes: Sequence[Change], words: KnownWords) -> None:
        if changes:
            self._live.add(brought_by(changes, self._documents, words))

    # -- agents

    def update_agent(self, call: Call, request: UpdateRequest) -> StoredAgent:
        """Changes an agent's fields; a user makes it so if it does not exist."""
        who = self._access.who(call, request.scope)
        agent, mask = request.agent, request.mask or _populated(request)
        if not agent.agent_id and not who.is_agent:
            raise InvalidArgument("agent.agent_id", "is empty: a user names the agent")
        if unknown := mask - {"name", "role", "archived", "parent_agent_id", "scope"}:
            raise InvalidArgument("update_mask", f"{min(unknown)} is not a field that can change")
        if who.is_agent:
            self._access.writable(who, agent.agent_id, request.scope, "agent.agent_id")
            self._access.check_change(who, mask)
        narrower = joined(request.scope, agent.scope) if "scope" in mask else request.scope
        if narrower is None:
            raise InvalidArgument("agent.scope", "contradicts the scope of the request")
        key = self._key(who, call, agent.agent_id, narrower)
        if "scope" in mask and key.pk is not None and dict(key.scope) != dict(joined(key.scope, agent.scope) or {}):
            raise InvalidArgument("agent.scope", "never changes")
        changed = self._store.update_agent(
            key,
            name=agent.name if "name" in mask else None,
            role=agent.role if "role" in mask else None,
            archived=agent.archived if "archived" in mask else None,
            parent_agent_id=agent.parent_agent_id if "parent_agent_id" in mask else None,
        )
        return self._access.seen_by(who, changed)

    def _key(self, who: Who, call: Call, agent_id: str, scope: Scope) -> AgentKey:
        if scope and not who.is_agent:
            who = self._access.who(call, scope)
        return self._access.writable(who, agent_id, scope, "agent.agent_id")


def _populated(request: UpdateRequest) -> frozenset[str]:
    """Returns the fields that hold something: what an absent mask means, as in AIP-134."""
    agent = request.agent
    fields = {
        "name": agent.name,
        "role": agent.role,
        "archived": agent.archived,
        "parent_agent_id": agent.parent_agent_id,
        "scope": agent.scope,
    }
    return frozenset(name for name, value in fields.items() if value)
