"""Checks a service that runs as a caller would: a canary, a turn with a word that nobody else says, is written, found, read,
deleted and no longer found. The canary lies in a scope of its own and is deleted whatever happens. What stays is one archived
agent without turns, and of each check a tombstone and, since a user who reads names the agent, a record of that read.

HTTP is spoken with the standard library and JSON, so that what is tried is what curl would send.
"""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

import grpc

from aforesaid.agent.v1.agent_service_pb import SearchTranscriptsRequest, SearchTranscriptsResponse
from aforesaid_server.checks import Step, Wrong, run

Json: TypeAlias = dict[str, Any]

AGENTS, CONVERSATIONS, AUDIT = "agent.v1.AgentService", "agent.v1.ConversationService", "agent.v1.AuditService"
CANARY_AGENT = "aforesaid-check"
CANARY_SCOPE = {"aforesaid": "check"}
POLL_SECONDS = 0.2
LISTS = ("matches", "near", "partial")


@dataclass(frozen=True, slots=True)
class Target:
    """The service to check and who checks it. `grpc` is host:port, empty to leave gRPC out; `agent_id` empty for a user or service;
    `ca` a file of certificates to trust; `seconds` how long one call may take and `wait` how long the service may take to be ready.
    """

    url: str
    grpc: str = ""
    token: str = field(default="", repr=False)
    agent_id: str = ""
    ca: Path | None = None
    seconds: float = 10.0
    wait: float = 0.0

    @property
    def headers(self) -> dict[str, str]:
        """What says who asks."""
        asking = {"authorization": f"Bearer {self.token}"} if self.token else {}
        return asking | ({"x-agent-id": quote(self.agent_id, safe="")} if self.agent_id else {})


def check_service(target: Target, tell: Callable[[str], None]) -> bool:
    """Runs the whole check; returns whether all was right."""
    canary = _Canary(target)
    try:
        return run(canary.steps(), tell)
    finally:
        canary.remove(tell)


class _Canary:
    """The canary and what is done with it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._service = _Service(target)
        # A word that is found whole or not at all: no stemmer shortens it.
        self._word = "canary" + "".join(secrets.choice("ghjkmpv") for _ in range(14)) + "q"
        self._text = f"This turn was written by aforesaid-server check and says {self._word}."
        self._conversation = f"check-{secrets.token_hex(8)}"
        self._there = False

    @property
    def _whose(self) -> Json:
        """What names the canary's agent: a user's own one, in a scope of its own, or the agent that checks."""
        return {} if self._target.agent_id else {"agentId": CANARY_AGENT, "scope": CANARY_SCOPE}

    @property
    def _search(self) -> Json:
        return {"query": self._word} | ({} if self._target.agent_id else {"scope": CANARY_SCOPE})

    def steps(self) -> Iterator[Step]:
        """Yields the steps in order."""
        yield Step("alive", self._alive)
        yield Step("ready", self._ready)
        yield Step("write", self._write)
        yield Step("find", lambda: self._find(self._service.call(f"{AGENTS}/SearchTranscripts", self._search)))
        if self._target.grpc:
            yield Step("find over gRPC", lambda: self._find(_search_over_grpc(self._target, self._search)))
        yield Step("read", self._read)
        yield Step("delete", self._delete)
        yield Step("no longer find", self._gone)
        if not self._target.agent_id:
            yield Step("audit log", self._audit)

    def _alive(self) -> str:
        status, _ = self._service.ask("GET", "/healthz")
        if status != 200:
            raise Wrong("/healthz to answer 200", str(status))
        return self._target.url

    def _ready(self) -> str:
        deadline = time.monotonic() + self._target.wait
        while True:
            status, told = self._service.ask("GET", "/readyz")
            if status == 200:
                return "searches are answered"
            if time.monotonic() >= deadline:
                done = f", {told.get('done')} of {told['total']} changes" if "total" in told else ""
                raise Wrong("/readyz to answer 200", f"{status}: {told.get('reason', 'no reason')}{done}")
            time.sleep(POLL_SECONDS)

    def _write(self) -> str:
        self._there = True  # perhaps, whatever the answer will be
        turn = {"role": "user", "parts": [{"text": self._text}]}
        body = {"conversationId": self._conversation, "turns": [turn]} | self._whose
        written = self._service.call(f"{CONVERSATIONS}/AppendTurns", body).get("turns", [])
        if len(written) != 1:
            raise Wrong("one turn to be written", str(len(written)))
        if not self._target.agent_id:
            self._archive()
        return f"conversation {self._conversation}"

    def _archive(self) -> None:
        agent = {"agentId": CANARY_AGENT, "name": "aforesaid-server check", "archived": True}
        body = {"agent": agent, "updateMask": "name,archived", "scope": CANARY_SCOPE}
        self._service.call(f"{AGENTS}/UpdateAgent", body)

    def _find(self, found: Json) -> str:
        matches = found.get("matches", [])
        if [hit.get("conversationId") for hit in matches] != [self._conversation]:
            raise Wrong("the turn as the one match", f"{len(matches)} matches")
        marked = f"⟦{self._word}⟧"
        if marked not in matches[0].get("snippet", ""):
            raise Wrong(f"a snippet that marks {marked}", "another one")
        return "one match"

    def _read(self) -> str:
        body = {"conversationId": self._conversation, "reason": "aforesaid-server check"} | self._whose
        turns = self._service.call(f"{AGENTS}/ReadTranscript", body).get("turns", [])
        texts = [part.get("text") for turn in turns for part in turn.get("parts", [])]
        if texts != [self._text]:
            raise Wrong("the text as it was written", f"{len(texts)} parts that say something else" if texts else "nothing")
        return "the text as it was written"

    def _delete(self) -> str:
        self._service.call(f"{CONVERSATIONS}/DeleteConversation", {"conversationId": self._conversation} | self._whose)
        self._there = False
        return "acknowledged"

    def _gone(self) -> str:
        found = self._service.call(f"{AGENTS}/SearchTranscripts", self._search)
        hits = sum(len(found.get(name, [])) for name in LISTS)
        if hits:
            raise Wrong("nothing", f"{hits} hits")
        return "nothing is found"

    def _audit(self) -> str:
        told = self._service.call(f"{AUDIT}/VerifyAudit", {})
        if not told.get("intact"):
            faults = [f"record {fault.get('record', 0)}: {fault.get('problem', '')}" for fault in told.get("faults", [])]
            raise Wrong("an audit log that is intact", "; ".join(faults) or "one that is not")
        return f"{told.get('records', '0')} records, intact"

    def remove(self, tell: Callable[[str], None]) -> None:
        """Deletes the canary, if it may still be there."""
        if self._there:
            run([Step("delete after all", self._delete)], tell)


class _Service:
    """HTTP to the service, a connection a request."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._address = urlsplit(target.url)

    def call(self, method: str, body: Json) -> Json:
        """Calls a method; raises Wrong for an error."""
        status, told = self.ask("POST", f"/{method}", body)
        if status != 200:
            raise Wrong(f"{method.partition('/')[2]} to succeed", f"{told.get('code', status)}: {told.get('message', '')}")
        return told

    def ask(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, Json]:
        """Returns the status and the JSON of an answer. Raises Wrong where there is none."""
        connection = self._connection()
        content = json.dumps(body).encode() if body is not None else None
        headers = self._target.headers | ({"content-type": "application/json"} if content is not None else {})
        try:
            connection.request(verb, self._address.path.rstrip("/") + path, content, headers)
            answer = connection.getresponse()
            return answer.status, _object(answer.read())
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Wrong(f"an answer from {self._target.url}", why.lower()) from None
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme != "https":
            return http.client.HTTPConnection(host, port, timeout=self._target.seconds)
        trusted = ssl.create_default_context(cafile=self._target.ca)
        return http.client.HTTPSConnection(host, port, timeout=self._target.seconds, context=trusted)


def _object(content: bytes) -> Json:
    try:
        told = json.loads(content)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _search_over_grpc(target: Target, body: Json) -> Json:
    """Searches over gRPC; returns the JSON form of the answer. Raises Wrong for an error."""
    with _channel(target) as channel:
        search = channel.unary_unary(
            f"/{AGENTS}/SearchTranscripts",
            request_serializer=SearchTranscriptsRequest.to_binary,
            response_deserializer=SearchTranscriptsResponse.from_binary,
        )
        request = SearchTranscriptsRequest(query=body["query"], scope=body.get("scope", {}))
        try:
            found = search(request, timeout=target.seconds, metadata=tuple(target.headers.items()))
        except grpc.RpcError as error:
            raise Wrong("SearchTranscripts to succeed", f"{error.code().name.lower()}: {error.details()}") from None
    told: Json = json.loads(found.to_json())
    return told


def _channel(target: Target) -> grpc.Channel:
    if urlsplit(target.url).scheme != "https":
        return grpc.insecure_channel(target.grpc)
    trusted = target.ca.read_bytes() if target.ca else None
    return grpc.secure_channel(target.grpc, grpc.ssl_channel_credentials(trusted))
