"""Stores of conversations for `transcript_search_tool`: a dict, a folder of JSON files, the service.

Any other object with `list()` and `get(id)` will do. A store that can find letters by itself has `search_substring` too, as the
service has, so that not everything need be read (`aforesaid.transcript_tool.SubstringStore`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from aforesaid._errors import InvalidArgument, NotFound
from aforesaid._messages import NotReadable
from aforesaid._replies import PartKind, ResolvedSource, SearchHit, SearchPage, StoredConversation, StoredTurn
from aforesaid.chat_records import CHAT_AGENT, scope_of
from aforesaid.formats.chat_messages import parse_document
from aforesaid.formats.lines import LINE_LIMIT, Unreadable, open_regular
from aforesaid.formats.tally import Tally
from aforesaid.model import SourceRef
from aforesaid.transcript_tool import Candidate

if TYPE_CHECKING:
    # At run time whoever hands in a client has loaded it; the other stores do without the wire.
    from aforesaid._client import Client
    from aforesaid.transcript_index import ChatInfo, TranscriptIndex

__all__ = [
    "DictConversationStore",
    "FileConversationStore",
    "IndexConversationStore",
    "NotReadable",
    "ServiceConversationStore",
]

_Listed = TypeVar("_Listed", "StoredConversation", "ChatInfo")

_SUFFIX = ".json"
_LONGEST_QUERY = 500
"""Code points of a query that the service takes."""
_PAGE = 100
_SEARCHED: tuple[PartKind, ...] = ("text", "tool_call", "tool_result_text", "tool_result_json")
"""The kinds of parts whose texts the tool looks at."""
_NEAR, _MOST_BYTES = 65_536, 1_048_576
"""Bytes between two turns that are read together, and bytes of text that one read brings at most."""


class DictConversationStore:
    """Conversations in a dict, by id; the one that was put in last comes first. The dict may change between searches."""

    def __init__(self, conversations: Mapping[Any, object]) -> None:
        if not isinstance(conversations, Mapping):
            raise InvalidArgument.of("conversations", f"must be a map, and is of type {type(conversations).__name__}")
        self._conversations = conversations

    def list(self) -> Sequence[Any]:
        """Returns the ids, the one put in last first."""
        return tuple(self._conversations)[::-1]

    def get(self, conversation_id: Any) -> object:
        """Returns a conversation, None where there is none."""
        return self._conversations.get(conversation_id)


class FileConversationStore:
    """A folder with a file for each conversation, `<id>.json`: a list of messages, or an object that holds one as `messages`.

    The file that was changed last comes first, those of one time by name. Files in folders below, and those of other names, are
    no conversations. The folder is looked at anew by each search, and every file in it is read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._folder = Path(path)
        if not self._folder.is_dir():
            raise InvalidArgument.of("path", f"there is no folder {self._folder}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._folder)!r})"

    def list(self) -> Sequence[str]:
        """Returns the ids, the file that was changed last first. Raises OSError where the folder cannot be read."""
        found: dict[str, int] = {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                name = entry.name.removesuffix(_SUFFIX)
                if name and name != entry.name and not _is_folder(entry):
                    found[name] = _changed_at(entry)
        return sorted(found, key=lambda name: (-found[name], name))

    def get(self, conversation_id: str) -> object:
        """Returns what the file of a conversation holds, None where there is none. Raises NotReadable with the reason."""
        name = f"{conversation_id}{_SUFFIX}"
        # An id is the name of a file in this folder, and never a way out of it.
        if "\0" in name or Path(name).name != name:
            return None
        file = self._folder / name
        try:
            with open_regular(file) as opened:
                data = opened.read(LINE_LIMIT + 1)
        except FileNotFoundError:
            if file.is_symlink():
                raise NotReadable("is a link that leads nowhere") from None
            return None  # deleted since it was listed
        except OSError as error:
            raise NotReadable(f"cannot be read: {(error.strerror or str(error)).lower()}") from None
        try:
            return parse_document(data, Tally())
        except Unreadable as reason:
            raise NotReadable(f"is no conversation: {reason}") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself: reading it will tell
        return False


def _changed_at(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_mtime_ns
    except OSError:  # a link that leads nowhere: reading it will tell
        return 0


class ServiceConversationStore:
    """The conversations of the service: those of `agent_id`; without it the caller's own and its sub-agents', or all of a user.

    The conversation that was begun last comes first. The service finds the letters; read are the turns that are shown, and those of
    which it must be seen whether what was found is more than a tool's name. With `agent_id` a search of another agent goes into the
    audit log, with `reason`; without it nothing does.
    """

    def __init__(self, client: Client, *, agent_id: str = "", scope: Mapping[str, str] | None = None, reason: str = "") -> None:
        self._client = client
        self._agent_id = agent_id
        self._scope = scope
        self._reason = reason

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._client!r}, agent_id={self._agent_id!r})"

    def list(self) -> Sequence[StoredConversation]:
        """Returns the conversations without their turns, the newest first."""
        return _newest_first(self._client.conversations(self._agent_id, scope=self._scope))

    def get(self, conversation_id: str) -> Sequence[object] | None:
        """Returns the turns of a conversation, None where there is none. Raises InvalidArgument where several agents have one."""
        listed = self._client.conversations(self._agent_id, scope=self._scope)
        agents = sorted({one.agent_id for one in listed if one.conversation_id == conversation_id})
        if len(agents) > 1:
            raise InvalidArgument.of("conversation_id", f"{conversation_id} is one of {' and of '.join(agents)}: name the agent_id")
        try:
            return tuple(self._read(agents[0], conversation_id)) if agents else None
        except NotFound:
            return None

    def search_substring(self, query: str, conversation_id: str | None = None, shown: int = 0) -> Iterator[Candidate]:
        """Yields the turns in which the service finds a text, in the order of `list()` and by index; `shown` will be shown."""
        # What the service finds is letters across two parts, too, and the names of tools.
        asked = query[:_LONGEST_QUERY]
        doubtful = {"tool_call"} if asked == query and "\n" not in query else set(_SEARCHED)
        for page in self._pages(asked, conversation_id):
            for (agent_id, of), found in groupby(page.matches, lambda hit: (hit.agent_id, hit.conversation_id)):
                hits = [(hit, doubtful.isdisjoint(hit.part_kinds)) for hit in found if self._is_looked_at(hit)]
                needed = [hit for place, (hit, certain) in enumerate(hits) if place < shown or not certain]
                read = self._reading(agent_id, of, needed)
                shown -= len(hits)
                for hit, certain in hits:
                    yield Candidate(of, hit.seq, partial(read, hit), certain)

    def _pages(self, query: str, conversation_id: str | None) -> Iterator[SearchPage]:
        return self._client.search(
            query,
            agent_id=self._agent_id,
            conversation_id=conversation_id or "",
            part_kinds=_SEARCHED,
            match="substring",
            include_own_searches=True,
            reason=self._reason,
            scope=self._scope,
            limit=_PAGE,
        )

    def _is_looked_at(self, hit: SearchHit) -> bool:
        return not self._agent_id or hit.agent_id == self._agent_id

    def _reading(
        self, agent_id: str, conversation_id: str, needed: Sequence[SearchHit]
    ) -> Callable[[SearchHit], StoredTurn | None]:
        """Returns what reads the turns of hits. A user must name the agent to read many at once, which is put on record: where it
        named none for the search either, they are looked up one by one.
        """
        if self._agent_id or self._client.config.agent_id:
            return _Stretches(partial(self._read, agent_id, conversation_id), needed).read
        return self._looked_up

    def _read(self, agent_id: str, conversation_id: str, *, offset: int = 0, length: int = 0) -> Iterator[StoredTurn]:
        return self._client.read(
            conversation_id, agent_id=agent_id, offset=offset, length=length, reason=self._reason, scope=self._scope
        )

    def _looked_up(self, hit: SearchHit) -> StoredTurn | None:
        """Returns the turn of a hit among the caller's own. Agents of several scopes may have one of this id: the text tells."""
        source = SourceRef(hit.conversation_id, hit.turn_id, hit.digest, hit.agent_id)
        found = self._resolved(source, self._scope)
        if found is not None and found.unchanged:
            return found.turn
        for agent in self._client.agents(scope=self._scope):
            other = self._resolved(source, agent.scope) if agent.agent_id == hit.agent_id else None
            if other is not None and other.unchanged:
                return other.turn
        return None if found is None else found.turn

    def _resolved(self, source: SourceRef, scope: Mapping[str, str] | None) -> ResolvedSource | None:
        # Several turns are an invalid argument: the source names no single one.
        with suppress(NotFound, InvalidArgument):
            return self._client.resolve_source(source, scope=scope)
        return None


class IndexConversationStore(ServiceConversationStore):
    """The chats of a TranscriptIndex, embedded or of a service, whose scope has every field of `scope`. No audit record is made."""

    def __init__(self, index: TranscriptIndex, scope: Mapping[str, str | None]) -> None:
        super().__init__(index.client, scope=scope_of(scope))
        self._index = index

    def list(self) -> Sequence[Any]:
        """Returns the chats without their messages, the newest first."""
        return _newest_first(self._index.list_chats(self._scope or {}))

    def get(self, conversation_id: str) -> Sequence[object] | None:
        """Returns the messages of a chat, None where there is none."""
        chat = self._index.read_chat(self._scope or {}, conversation_id)
        return None if chat is None else chat.messages

    def _is_looked_at(self, hit: SearchHit) -> bool:
        return hit.agent_id == CHAT_AGENT


def _newest_first(listed: Iterable[_Listed]) -> Sequence[_Listed]:
    return sorted(listed, key=lambda one: -(one.created_at or 0))


@dataclass(slots=True)
class _Stretches:
    """The turns of hits of one conversation, those that will be read: what lies close together is read at once."""

    _read: Callable[..., Iterator[StoredTurn]]
    _hits: Sequence[SearchHit]
    _known: dict[str, StoredTurn] = field(default_factory=dict)

    def read(self, hit: SearchHit) -> StoredTurn | None:
        """Returns the turn of a hit, None where it is gone by now."""
        if hit.turn_id not in self._known:
            begin, end = hit.content_offset, hit.content_offset + hit.content_length
            for later in self._hits:
                later_end = later.content_offset + later.content_length
                if later.seq > hit.seq and later.content_offset - end <= _NEAR and later_end - begin <= _MOST_BYTES:
                    end = later_end
            # A turn without text has no length, and a length of 0 would read to the end.
            turns = self._read(offset=begin, length=max(end - begin, 1))
            self._known = {turn.turn_id: turn for turn in turns}
        return self._known.pop(hit.turn_id, None)
