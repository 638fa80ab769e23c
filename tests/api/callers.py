"""Whoever asks a running service over Connect: the user, or the agent of an id. Requests and replies are JSON as on the wire.

Ids and words are made anew for every test, so that tests share a server and see nothing of each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from tests.api.doors import AGENTS, AUDIT, CONVERSATIONS, SEARCH, ConnectDoor, Json, Reply

READ, LIST_AGENTS, GET_AGENT, UPDATE_AGENT = (
    f"{AGENTS}/{name}" for name in ("ReadTranscript", "ListAgents", "GetAgent", "UpdateAgent")
)
LIST_CONVERSATIONS, GET_CONVERSATION = (f"{AGENTS}/{name}" for name in ("ListConversations", "GetConversation"))
APPEND, WRITE, DELETE, IMPORT = (
    f"{CONVERSATIONS}/{name}" for name in ("AppendTurns", "WriteConversation", "DeleteConversation", "ImportTurns")
)
INDEX, SEARCH_TURNS, RESOLVE, COMPILE = (
    f"{CONVERSATIONS}/{name}" for name in ("IndexConversation", "SearchTurns", "ResolveSource", "CompileContext")
)
LIST_READS, VERIFY = f"{AUDIT}/ListReads", f"{AUDIT}/VerifyAudit"
LISTS = ("matches", "near", "partial")


@dataclass(frozen=True, slots=True)
class Caller:
    """One who asks: `agent_id` empty is the user; `scope` goes into every request that names none, `token` with every request."""

    door: ConnectDoor
    agent_id: str = ""
    scope: Mapping[str, str] = field(default_factory=dict)
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The header that names the agent, percent-encoded, and the one that carries the token."""
        named = {"x-agent-id": quote(self.agent_id, safe="")} if self.agent_id else {}
        return named | ({"authorization": f"Bearer {self.token}"} if self.token else {})

    def within(self, **scope: str) -> Caller:
        """The same caller with a scope in each request."""
        return replace(self, scope=scope)

    def agent(self, agent_id: str) -> Caller:
        """An agent on the same connection, with no scope in its requests."""
        return Caller(self.door, agent_id)

    def call(self, method: str, body: Json) -> Reply:
        """Calls a method; any answer is returned."""
        return self.door.call(method, self._scoped(body), self.headers)

    def _scoped(self, body: Json) -> Json:
        return {"scope": dict(self.scope)} | body if self.scope else body

    # -- searching and reading

    def search(self, query: str, **fields: Any) -> Reply:
        """Searches."""
        return self.call(SEARCH, {"query": query} | fields)

    def pages(self, query: str, *, limit: int = 100, **fields: Any) -> Iterator[Reply]:
        """Yields the pages of a search, each asked for when it is wanted; ends after the last."""
        cursor = ""
        while True:
            page = ok(self.search(query, pagination={"limit": limit, "cursor": cursor}, **fields))
            yield page
            cursor = page.body.get("nextPageToken", "")
            if not cursor:
                return

    def read(self, conversation_id: str, **fields: Any) -> Reply:
        """Reads turns of a conversation."""
        return self.call(READ, {"conversationId": conversation_id} | fields)

    def all_of(self, method: str, name: str, **fields: Any) -> list[Json]:
        """Walks all pages of a method that lists, and returns what stands in the field `name`."""
        found: list[Json] = []
        cursor = ""
        while True:
            page = ok(self.call(method, {"pagination": {"limit": 100, "cursor": cursor}} | fields)).body
            found += page.get(name, [])
            cursor = page.get("nextPageToken", "")
            if not cursor:
                return found

    def reads(self, **fields: Any) -> list[Json]:
        """Returns all records of the audit log that the caller may see, newest first."""
        return self.all_of(LIST_READS, "records", **fields)

    # -- writing

    def say(self, conversation_id: str, *texts: str, agent_id: str = "", turns: Sequence[Json] = ()) -> list[str]:
        """Appends a turn of the user for each text, and the turns; returns the ids of all."""
        body: Json = {"conversationId": conversation_id, "turns": [*map(turn, texts), *turns]}
        if agent_id:
            body["agentId"] = agent_id
        return [kept["turnId"] for kept in ok(self.call(APPEND, body)).body.get("turns", [])]

    def make(self, agent_id: str, **fields: Any) -> None:
        """Makes or changes an agent by UpdateAgent."""
        ok(self.call(UPDATE_AGENT, {"agent": {"agentId": agent_id} | fields, "updateMask": ",".join(fields)}))

    def bring(self, messages: Iterable[Json]) -> Reply:
        """Sends a stream of ImportTurns; the first message carries the scope."""
        frames = (_framed(message if place else self._scoped(message)) for place, message in enumerate(messages))
        headers = {"content-type": "application/connect+json"} | self.headers
        return _of_stream(self.door.http.post(f"/{IMPORT}", content=frames, headers=headers).content)


def _framed(message: Json) -> bytes:
    data = json.dumps(message).encode()
    return bytes([0]) + len(data).to_bytes(4, "big") + data


def _of_stream(content: bytes) -> Reply:
    """The reply of a stream that the service ends with one message: that message, if all went well, and how it ended."""
    frames: list[tuple[int, Json]] = []
    while content:
        end = 5 + int.from_bytes(content[1:5], "big")
        frames.append((content[0], json.loads(content[5:end])))
        content = content[end:]
    flags, ended = frames[-1]
    assert flags & 2, "the stream was cut off"
    if "error" in ended:
        return Reply(ended["error"]["code"], ended["error"], ended["error"].get("message", ""))
    return Reply("ok", frames[0][1])


# What goes in, and what came out


def new(prefix: str) -> str:
    """An id that nothing else has."""
    return f"{prefix}-{uuid4().hex[:12]}"


def new_word(prefix: str = "w") -> str:
    """A word of small letters that nothing else says and that no stemmer shortens."""
    return prefix + "".join(chr(ord("g") + int(digit, 16)) for digit in uuid4().hex[:12]) + "q"


def turn(text: str, turn_id: str = "", **fields: Any) -> Json:
    """A turn of one text."""
    return {"role": "user", "parts": [{"text": text}]} | ({"turnId": turn_id} if turn_id else {}) | fields


def ok(reply: Reply) -> Reply:
    """The reply, which must be none of the errors."""
    assert reply.code == "ok", f"{reply.code}: {reply.message}"
    return reply


def hits(reply: Reply) -> list[Json]:
    """The hits of all lists."""
    return [hit for name in LISTS for hit in reply.body.get(name, [])]


def turn_ids(reply: Reply) -> list[str]:
    """The ids of the turns in all lists, in order."""
    return [hit["turnId"] for hit in hits(reply)]


def owners(reply: Reply) -> set[str]:
    """The agents whose turns were found."""
    return {hit["agentId"] for hit in hits(reply)}


def number(message: Json, name: str) -> int:
    """A number of a message: zeros are left out, those of 64 bits are strings."""
    return int(message.get(name, 0))
