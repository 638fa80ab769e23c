"""The service under measurement: started as a user would start it, filled and asked over the wire.

It runs in a process of its own with an empty data folder, so that its CPU time and memory are its own. The CPU of this side of the
wire is not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from protobuf import Oneof
from protobuf.wkt import Timestamp

from aforesaid.agent.v1.conversation_service_connect import ConversationServiceClientSync
from aforesaid.agent.v1.conversation_service_pb import ImportTurnsRequest, ImportTurnsResponse
from aforesaid.agent.v1.types_pb import Agent, Conversation, Part, Turn
from bench.corpus import CorpusTurn
from bench.measuring import Clock, peak_memory, process_clock

SEARCH_PATH = "/agent.v1.AgentService/SearchTranscripts"
# One message of an import: well under the 4 MiB at which Connect refuses a message by default.
MESSAGE_BYTES = 1 << 20
MESSAGE_TURNS = 500
READY_SECONDS = 60
SETTLE_SECONDS = 3_600
POLL_SECONDS = 0.05


Parts = Callable[[CorpusTurn], list[Part]]


class ServiceError(Exception):
    """The service under measurement did not do what was asked of it."""


@dataclass(frozen=True, slots=True)
class Page:
    """How much one page of a search held, and where the next one begins."""

    matches: int
    near: int
    partial: int
    next_page_token: str
    turns_pending: int

    @property
    def hits(self) -> int:
        """All hits of the page."""
        return self.matches + self.near + self.partial


class Service:
    """A running aforesaid-server; a context manager that starts it and stops it. It goes on from what its folder holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: HTTPConnection | None = None
        self._url = ""

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        ready = self._folder / "ready.json"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "aforesaid_server", "serve", "--data", str(self.data), "--port", "0", "--grpc-port", "0"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([*command, "--ready-file", str(ready)], stdout=log, stderr=subprocess.STDOUT)
        try:
            self._url = str(self._wait_for(ready)["url"])
        except BaseException:
            self._stop()
            raise
        address = urlsplit(self._url)
        self._connection = HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=600)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._connection:
            self._connection.close()
        self._stop()

    @property
    def data(self) -> Path:
        """The data folder of the service."""
        return self._folder / "data"

    @property
    def pid(self) -> int:
        """The process that serves."""
        if self._process is None:
            raise ServiceError("the service is not running")
        return self._process.pid

    def clock(self) -> Clock:
        """Makes a clock of the CPU time of the service."""
        return process_clock(self.pid)

    def peak_memory(self) -> int:
        """Gives the most memory that the service has held, in bytes."""
        return peak_memory(self.pid)

    def import_turns(self, turns: Iterable[CorpusTurn], parts: Parts | None = None) -> ImportTurnsResponse:
        """Sends turns in one ImportTurns call; raises ServiceError if some were left out. `parts` says what a turn is made of."""
        with ConversationServiceClientSync(self._url, send_compression=None) as client:
            told = client.import_turns(import_requests(turns, parts or one_text))
        if told.skipped:
            first = told.skipped[0]
            raise ServiceError(f"{sum(skip.turns for skip in told.skipped)} turns were left out of the import: {first.reason}")
        return told

    def settle(self) -> None:
        """Waits until the index has come as far as the store; raises ServiceError if it does not within an hour."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while pending := self.search("settled").turns_pending:
            if time.monotonic() > deadline:
                raise ServiceError(f"the index is still {pending} turns behind after {SETTLE_SECONDS} seconds")
            time.sleep(POLL_SECONDS)

    def search(
        self,
        query: str,
        agent_id: str = "",
        *,
        of_agent: str = "",
        limit: int = 20,
        cursor: str = "",
        newest: bool = False,
        substring: bool = False,
        part_kinds: Sequence[str] = (),
    ) -> Page:
        """Asks for one page: as the user, or as the agent named; `of_agent` names whose turns, which is put on record.

        `part_kinds` are names of the wire, such as PART_KIND_TEXT.
        """
        headers = {"Content-Type": "application/json"} | ({"X-Agent-Id": agent_id} if agent_id else {})
        pagination = {"limit": limit} | ({"cursor": cursor} if cursor else {})
        body = {"query": query, "pagination": pagination} | ({"agentId": of_agent} if of_agent else {})
        body |= {"order": "ORDER_NEWEST"} if newest else {}
        body |= {"match": "MATCH_SUBSTRING"} if substring else {}
        body |= {"partKinds": list(part_kinds)} if part_kinds else {}
        told = self._post(SEARCH_PATH, json.dumps(body), headers)
        return Page(
            matches=len(told.get("matches", ())),
            near=len(told.get("near", ())),
            partial=len(told.get("partial", ())),
            next_page_token=told.get("nextPageToken", ""),
            turns_pending=int(told.get("freshness", {}).get("turnsPending", 0)),
        )

    def count(self, query: str, *, substring: bool = False, part_kinds: Sequence[str] = ()) -> int:
        """Counts the matches of all pages."""
        ask = partial(self.search, query, limit=100, substring=substring, part_kinds=part_kinds)
        page = ask()
        total = page.matches
        # Near and partial hits may go on after the last match; letters may be looked for on a page in vain.
        while page.next_page_token and (page.matches or substring):
            page = ask(cursor=page.next_page_token)
            total += page.matches
        return total

    def _post(self, path: str, body: str, headers: dict[str, str]) -> dict[str, Any]:
        if self._connection is None:
            raise ServiceError("the service is not running")
        self._connection.request("POST", path, body.encode(), headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise ServiceError(f"{path} answered {answer.status}: {content[:500].decode(errors='replace')}")
        told: dict[str, Any] = json.loads(content)
        return told

    def _wait_for(self, ready: Path) -> dict[str, Any]:
        deadline = time.monotonic() + READY_SECONDS
        while not ready.exists():
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                raise ServiceError(f"the service did not start: {self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(POLL_SECONDS)
        told: dict[str, Any] = json.loads(ready.read_text(encoding="utf-8"))
        return told

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def one_text(turn: CorpusTurn) -> list[Part]:
    """Makes a turn of a single text."""
    said: Oneof[Literal["text"], str] = Oneof("text", turn.text)
    return [Part(kind=said)]


def import_requests(turns: Iterable[CorpusTurn], parts: Parts = one_text) -> Iterator[ImportTurnsRequest]:
    """Packs turns into the messages of an import; the first of each conversation names it and its agent."""
    for (agent_id, conversation_id), said in groupby(turns, key=lambda turn: (turn.agent_id, turn.conversation_id)):
        named = ImportTurnsRequest(
            agent=Agent(agent_id=agent_id), conversation=Conversation(conversation_id=conversation_id, agent_id=agent_id)
        )
        size = 0
        for turn in said:
            if named.turns and (size + len(turn.text.encode()) > MESSAGE_BYTES or len(named.turns) == MESSAGE_TURNS):
                yield named
                named, size = ImportTurnsRequest(), 0
            named.turns.append(wire_turn(turn, parts))
            size += len(turn.text.encode())
        yield named


def wire_turn(turn: CorpusTurn, parts: Parts = one_text) -> Turn:
    """Writes a turn as the wire wants it."""
    seconds, micros = divmod(turn.created_at, 1_000_000)
    time_said = Timestamp(seconds=seconds, nanos=micros * 1_000)
    return Turn(turn_id=turn.turn_id, role=turn.role, parts=parts(turn), created_at=time_said)
