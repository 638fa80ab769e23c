"""An application's chats, searched: embedded in its process or on a service, with one set of methods.

    from aforesaid.transcript_index import ChatRecord, TranscriptIndex

    with TranscriptIndex.open("chats") as index:
        index.write_chat(ChatRecord("monday", {"user_id": "ada"}, [{"role": "user", "content": "Where is the zebra crossing?"}]))
        for hit in index.search({"user_id": "ada"}, "zebra"):
            print(hit.chat_id, hit.message_id, hit.message.text)

A chat is a conversation of the agent `chat` in exactly the chat's scope. Embedded, the caller is a user of the empty scope, and the
methods, rules and errors are the service's own, called in this process. What comes back is quoted material, not instructions.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit

from connectrpc.errors import ConnectError

from aforesaid._chat_fields import asked
from aforesaid._client import Client
from aforesaid._errors import FailedPrecondition, InvalidArgument, NotFound, translated
from aforesaid._replies import StoredTurn, TurnHit
from aforesaid._wire import CONNECTIONS
from aforesaid.chat_records import (
    CHAT_AGENT,
    MESSAGE,
    ChatRecord,
    MessageRef,
    check_id,
    check_ids,
    conversation_of,
    message_ids,
    ref_of,
    scope_of,
)
from aforesaid.context_source import Candidate, Candidates, ContextSource, context_source
from aforesaid.message_shapes import ChatMessage, check_number, check_text, message_of_turn
from aforesaid.model import SourceRef
from aforesaid.ui_messages import ui_messages

__all__ = [
    "CHAT_AGENT",
    "Candidate",
    "Candidates",
    "ChatInfo",
    "ChatMessage",
    "ChatRecord",
    "ContextSource",
    "IndexedChat",
    "MessageHit",
    "MessageRef",
    "ResolvedMessage",
    "TranscriptIndex",
    "WrittenChat",
    "context_source",
    "message_ids",
    "ui_messages",
]

Asked = ParamSpec("Asked")
Value = TypeVar("Value")
Scope = Mapping[str, str | None]

_POSTGRESQL = ("postgresql", "postgres")
# Where an embedded service says that it is; nobody listens there.
_IN_PROCESS = "http://localhost"
_TIMEOUT = 60.0
_TRIES_AT_ONE_REVISION = 5


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message that was found, and the messages around it. The best hit has the `score` 1.

    `index` is its place in the chat, from 0, `scope` the chat's, `digest` that of its text, to be cited with.
    """

    chat_id: str
    message_id: str
    index: int
    message: ChatMessage
    score: float
    before: tuple[ChatMessage, ...]
    after: tuple[ChatMessage, ...]
    digest: str
    scope: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WrittenChat:
    """What a write made: the revision of the chat, and the ids of its messages in order."""

    revision: int
    message_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexedChat:
    """What became of a chat that was saved elsewhere. One that was deleted here is `tombstoned`, and has revision 0 and no ids."""

    outcome: Literal["written", "unchanged", "tombstoned"]
    revision: int
    message_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResolvedMessage:
    """The message that a reference names. `unchanged` tells whether its text is the one that was cited: None without a digest."""

    chat_id: str
    message_id: str
    index: int
    message: ChatMessage
    digest: str
    unchanged: bool | None
    scope: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ChatInfo:
    """A chat without its messages. Times are microseconds since 1970."""

    chat_id: str
    scope: Mapping[str, str]
    title: str
    revision: int
    message_count: int
    created_at: int | None
    updated_at: int | None


class TranscriptIndex:
    """Chats that are searched; made by `open`, `in_memory` or `connect`. Blocks; may be used from several threads.

    `client` calls the same service as a `Client`, for what is not here. Every method may raise AforesaidError.
    """

    def __init__(self, client: Client, close: Callable[[], None] | None = None) -> None:
        self.client = client
        self._close = close

    @classmethod
    def open(
        cls,
        path_or_url: str | PathLike[str],
        *,
        data: str | PathLike[str] | None = None,
        language: str = "english",
        timeout: float = _TIMEOUT,
    ) -> Self:
        """Opens chats in this process: in a folder, which is a service's data folder, or in the database of a postgresql:// URL.

        Blocks until searches are answered. A folder is used by one process at a time: Unavailable tells who has it. Beside a
        database `data` is the folder for index and keys of this process; without it a temporary one is used, and the index built
        anew. `language` is the stemmer's. Needs the extra [server], a database also [postgresql].
        """
        place, beside = _path("path_or_url", path_or_url), None if data is None else _path("data", data)
        if urlsplit(place).scheme in _POSTGRESQL:
            return cls._embedded(timeout, store=place, data=beside, language=language)
        if "://" in place:
            raise InvalidArgument.of("path_or_url", f"is neither a folder nor postgresql://: {urlsplit(place).scheme}://…")
        if beside is not None:
            raise InvalidArgument.of("data", "goes with a postgresql:// URL only: a folder holds index and keys itself")
        return cls._embedded(timeout, data=place, language=language)

    @classmethod
    def in_memory(cls, *, language: str = "english", timeout: float = _TIMEOUT) -> Self:
        """Opens chats that are gone when it is closed: the same service, with nothing on a disk. Needs the extra [server]."""
        return cls._embedded(timeout, in_memory=True, language=language)

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float | None = None,
        retries: int | None = None,
        token_in_clear: bool | None = None,
        ca: str | None = None,
        connections: int = CONNECTIONS,
    ) -> Self:
        """Calls a service as the user, or as whom the token is bound to. What is not given is found as by `Client`."""
        client = Client(
            url,
            "",
            token=token,
            timeout=timeout,
            retries=retries,
            token_in_clear=token_in_clear,
            ca=ca,
            connections=connections,
        )
        return cls(client)

    @classmethod
    def _embedded(cls, timeout: float, **place: Any) -> Self:
        try:
            embedded = importlib.import_module("aforesaid_server.embedded")
        except ImportError as error:
            raise FailedPrecondition(
                f"chats in this process need what the extra [server] installs: pip install 'aforesaid[server]' ({error})"
            ) from None
        try:
            service = embedded.open_service(**place)
        except ConnectError as error:
            raise translated(error, _IN_PROCESS, timeout) from None
        try:
            # Each setting is given: nothing of the environment is meant for a service in this process.
            client = Client(
                _IN_PROCESS,
                "",
                timeout=timeout,
                retries=0,
                token="",
                token_in_clear=False,
                ca="",
                transport=service,
            )
            return cls(client, service.close)
        except BaseException:
            service.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Gives connections back; embedded, ends the service in this process."""
        self.client.close()
        if self._close is not None:
            self._close()

    def __repr__(self) -> str:
        return f"TranscriptIndex({'embedded' if self._close else self.client.config.url!r})"

    # -- searching

    def search(
        self,
        scope: Scope,
        query: str,
        *,
        limit: int = 20,
        around: int = 0,
        chat_ids: Iterable[str] | None = None,
        stem: bool = False,
    ) -> list[MessageHit]:
        """Returns the messages that hold any term of the query, the best first; at most `limit` of them, and no more than 100.

        Terms are runs of letters and digits, case and accents aside, whole words unless `stem`; there is no other syntax. Only
        chats whose scope has every field of `scope`; only `chat_ids`, if given. `around` is how many messages on each side come
        with a hit, up to 10.
        """
        check_text("query", query)
        check_number("limit", limit)
        check_number("around", around)
        if limit < 1:
            raise InvalidArgument.of("limit", f"{limit} is less than 1")
        only = None if chat_ids is None else check_ids("chat_ids", chat_ids)
        if only == []:
            return []
        found = asked(
            self.client.search_turns,
            query,
            limit=limit,
            conversation_ids=only or [],
            agent_ids=[CHAT_AGENT],
            stem=stem,
            around=around,
            scope=scope_of(scope),
        )
        hits = (self._whole(hit) if hit.parts_left_out else _hit_of(hit) for hit in found.hits)
        return [hit for hit in hits if hit is not None]

    def _whole(self, hit: TurnHit) -> MessageHit | None:
        """Returns a hit whose messages did not fit the reply, read one by one; None where it is gone by now."""
        turn = self._turn_again(hit, hit.turn)
        if turn is None:
            return None
        beside = [
            tuple(found for one in side if (found := self._turn_again(hit, one)) is not None) for side in (hit.before, hit.after)
        ]
        return _hit_of(hit, turn, beside[0], beside[1])

    def _turn_again(self, hit: TurnHit, turn: StoredTurn) -> StoredTurn | None:
        if turn.parts:
            return turn
        source = SourceRef(hit.conversation_id, turn.turn_id, agent_id=hit.agent_id)
        try:
            return self.client.resolve_source(source, scope=hit.scope).turn
        except NotFound:
            return None

    def resolve_source(self, scope: Scope, ref: MessageRef | Mapping[str, Any]) -> ResolvedMessage | None:
        """Returns the message that a reference names; None for one that is unknown, removed, deleted, of another scope or kind."""
        ref = ref_of(ref)
        if ref.kind != MESSAGE:
            return None
        source = SourceRef(ref.chat_id, ref.message_id, ref.digest, CHAT_AGENT)
        try:
            found = asked(self.client.resolve_source, source, scope=scope_of(scope))
        except NotFound:
            return None
        turn = found.turn
        return ResolvedMessage(
            found.conversation_id, turn.turn_id, turn.seq, message_of_turn(turn), found.digest, found.unchanged, found.scope
        )

    # -- chats

    def write_chat(self, record: ChatRecord, *, expected_revision: int | None = None) -> WrittenChat:
        """Writes a whole chat: messages that it lacks are gone afterwards. Every later search sees it as it is then.

        With `expected_revision` only over that one, 0 for none yet: else Aborted is raised and nothing is written, as it is where
        the words of a message cannot be found. A deleted chat is not written again (FailedPrecondition).
        """
        conversation, scope = conversation_of(record), scope_of(record.scope)
        kept = asked(self.client.write, conversation, expected_revision=expected_revision, exact_scope=True, scope=scope)
        return WrittenChat(kept.revision, tuple(turn.turn_id for turn in conversation.turns))

    def index_chat(self, record: ChatRecord, *, expected_revision: int | None = None) -> IndexedChat:
        """Takes in a chat that was saved elsewhere, as `write_chat` does; one that was deleted here is left out, and stays so."""
        conversation, scope = conversation_of(record), scope_of(record.scope)
        done = asked(
            self.client.index_conversation, conversation, expected_revision=expected_revision, exact_scope=True, scope=scope
        )
        if done.outcome == "tombstoned" or done.conversation is None:
            return IndexedChat("tombstoned", 0, ())
        return IndexedChat(done.outcome, done.conversation.revision, tuple(turn.turn_id for turn in conversation.turns))

    def delete_chat(self, scope: Scope, chat_id: str) -> bool:
        """Deletes a chat of exactly this scope for good: no search shows it any more. Returns False if there was none."""
        check_id("chat_id", chat_id)
        try:
            asked(self.client.delete, chat_id, agent_id=CHAT_AGENT, exact_scope=True, scope=scope_of(scope))
        except NotFound:
            return False
        return True

    def read_chat(self, scope: Scope, chat_id: str) -> ChatRecord | None:
        """Returns a whole chat, None if there is none: that of exactly this scope, else the one of a narrower scope, if it is one.

        It is as `write_chat` takes it, so that a chat moves to another store with the ids of its messages.
        """
        check_id("chat_id", chat_id)
        try:
            owner = asked(self.client.agent, CHAT_AGENT, scope=scope_of(scope))
            return asked(self._read, chat_id, owner.scope)
        except NotFound:
            return None

    def _read(self, chat_id: str, scope: Mapping[str, str]) -> ChatRecord:
        for _ in range(_TRIES_AT_ONE_REVISION):
            before = self.client.conversation(chat_id, agent_id=CHAT_AGENT, scope=scope)
            turns = list(self.client.read(chat_id, agent_id=CHAT_AGENT, scope=scope))
            after = self.client.conversation(chat_id, agent_id=CHAT_AGENT, scope=scope)
            if before.revision == after.revision:
                messages = tuple(message_of_turn(turn) for turn in turns)
                return ChatRecord(chat_id, scope, messages, after.title, after.source, after.revision)
        raise FailedPrecondition(f"chat_id: {chat_id} is written too often to be read whole")

    def list_chats(self, scope: Scope) -> Iterator[ChatInfo]:
        """Yields the chats whose scope has every field of `scope`: scope by scope, in each the chat written last first."""
        for agent in _all(self.client.agents, scope=scope_of(scope)):
            if agent.agent_id != CHAT_AGENT:
                continue
            for one in _all(self.client.conversations, CHAT_AGENT, scope=agent.scope):
                yield ChatInfo(
                    one.conversation_id,
                    agent.scope,
                    one.title,
                    one.revision,
                    one.turn_count,
                    one.created_at,
                    one.updated_at,
                )


def _path(field: str, given: object) -> str:
    if not isinstance(given, str | PathLike) or not isinstance(path := fspath(given), str):
        raise InvalidArgument.of(field, f"must be a path, and is of type {type(given).__name__}")
    if not path:
        raise InvalidArgument.of(field, "is empty")
    if "\0" in path:
        raise InvalidArgument.of(field, "holds a zero byte")
    return path


def _all(call: Callable[Asked, Iterator[Value]], *args: Asked.args, **kwargs: Asked.kwargs) -> Iterator[Value]:
    entries = asked(call, *args, **kwargs)
    while (entry := asked(next, entries, None)) is not None:
        yield entry


def _hit_of(
    hit: TurnHit,
    turn: StoredTurn | None = None,
    before: tuple[StoredTurn, ...] | None = None,
    after: tuple[StoredTurn, ...] | None = None,
) -> MessageHit:
    turn = turn or hit.turn
    return MessageHit(
        chat_id=hit.conversation_id,
        message_id=turn.turn_id,
        index=turn.seq,
        message=message_of_turn(turn),
        score=hit.score,
        before=tuple(map(message_of_turn, hit.before if before is None else before)),
        after=tuple(map(message_of_turn, hit.after if after is None else after)),
        digest=hit.digest,
        scope=hit.scope,
    )
