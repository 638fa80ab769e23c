"""The audit log: who read whom. Append-only, chained and keyed, so that a changed, missing, moved or cut-off record is found.

Each record is canonical JSON that holds the MAC of the record before, under HMAC-SHA256 over both. The head (count and MAC of the
last record) is kept outside the table too, in a file, and written to the service's log. The chain goes on from the head, never from
what the table says: records cut off stay missing, whatever is recorded later. A record is committed before the reply leaves; if it
cannot be, the reply is Unavailable and no text goes out.
"""

from __future__ import annotations

import hmac
import json
import os
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import structlog

from aforesaid.model import EMPTY_SCOPE
from aforesaid_server.access import Access, Call, Who, Whom, holds
from aforesaid_server.errors import AforesaidError, Unavailable
from aforesaid_server.paging import Page, Seal, binding, limit_of
from aforesaid_server.store import ReadListing, ReadRow, Scope, Store

log = structlog.get_logger(__name__)

_GENESIS = b"\0" * 32
_HEAD = struct.Struct(">q32s")
_MOST_FAULTS = 100
_RECORDS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Reading:
    """A read to be recorded. `turns` are (pk of the agent, turn id) of the turns returned, in order; `filters` never hold the
    query.
    """

    who: Who
    targets: tuple[tuple[str, int | None], ...]
    granted: bool
    query: str = ""
    filters: dict[str, Any] = field(default_factory=dict)
    later_page: bool = False
    turns: Sequence[tuple[int, str]] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A record as it is shown: ids that the lister may not see are left out. `time` in microseconds, `filters` JSON."""

    number: int
    time: int
    caller_agent_id: str
    role: str
    target_agent_ids: tuple[str, ...]
    method: str
    door: str
    granted: bool
    query_hash: str
    turn_ids: tuple[str, ...]
    reason: str
    request_id: str
    filters: str
    later_page: bool
    query: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A record that is not as it was written: altered, missing, reordered or cut off."""

    record: int
    problem: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the whole log found; `head` is the MAC of the last record in hexadecimal digits."""

    intact: bool
    records: int
    head: str
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where the log stood when a check of it began: the number of the table's last record, the head, and what its file said."""

    end: int
    count: int
    mac: bytes
    file: tuple[int, bytes]


class HeadFile:
    """The head outside of the table: how many records there are, and the MAC of the last one. Opened anew each time, so that a
    file that was removed or replaced meanwhile is noticed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[int, bytes]:
        """Returns count and MAC; (0, zeros) if nothing was written yet."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            data = b""
        count, mac = _HEAD.unpack(data) if len(data) == _HEAD.size else (0, _GENESIS)
        return count, mac

    def write(self, count: int, mac: bytes) -> None:
        """Replaces the head, durably: 40 bytes at the start of the file, within one sector."""
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(file, _HEAD.pack(count, mac), 0)
            os.fdatasync(file)
        finally:
            os.close(file)


_SOMEWHERE = Fault(0, "not as it was written: a caller that no scope binds is told where")


def _mac(key: bytes, before: bytes, body: str) -> bytes:
    return hmac.digest(key, before + body.encode(), "sha256")


def follow_chain(key: bytes, head: tuple[int, bytes], rows: Iterable[ReadRow]) -> tuple[int, bytes]:
    """Returns how far records, in order, go on from a head as they were written: the count and MAC of the last one that does."""
    for row in rows:
        count, mac = head
        if row.number != count + 1 or not hmac.compare_digest(row.mac, _mac(key, mac, row.body)):
            break
        head = row.number, row.mac
    return head


def _now() -> int:
    return time.time_ns() // 1_000


class Audit:
    """Writes, lists and checks the log."""

    def __init__(
        self,
        store: Store,
        access: Access,
        head: HeadFile,
        key: bytes,
        seal: Seal,
        *,
        keep_query: bool = False,
        now: Callable[[], int] = _now,
    ) -> None:
        self._store = store
        self._access = access
        self._head = head
        self._key = key
        self._seal = seal
        self._keep_query = keep_query
        self._now = now
        self._lock = threading.Lock()
        self._behind = False  # the file lacks the last record
        self.failures = 0  # records that could not be written
        self._count, self._last = self._settled_head()

    def _settled_head(self) -> tuple[int, bytes]:
        """Returns the head, with the one record that was committed just before a crash kept the head from being written."""
        written, last = self._head.read(), self._store.last_read()
        head = follow_chain(self._key, written, [last] if last is not None else [])
        if head != written:
            self._head.write(*head)
        return head

    def _mac(self, before: bytes, body: str) -> bytes:
        return _mac(self._key, before, body)

    def query_hash(self, query: str) -> str:
        """Returns the keyed hash of a query, in hexadecimal digits; empty for none."""
        return hmac.digest(self._key, b"query\0" + query.encode(), "sha256").hex() if query else ""

    @property
    def records(self) -> int:
        """How many records the log holds."""
        return self._count

    # -- writing

    def record(self, call: Call, reading: Reading) -> None:
        """Commits one record. Raises Unavailable if it cannot be."""
        with self._lock:
            try:
                if self._behind:  # never by more than the one record that is taken in at a start
                    self._move_head(self._count, self._last)
                number, mac = self._add(call, reading)
                self._move_head(number, mac)
            except (AforesaidError, OSError) as error:
                self.failures += 1
                log.error("audit record refused", request_id=call.request_id, error=type(error).__name__)  # noqa: TRY400 - the error may hold text
                raise Unavailable("the audit log cannot be written: nothing is shown") from error
        log.info("audit head", records=number, head=mac.hex(), request_id=call.request_id)

    def _add(self, call: Call, reading: Reading) -> tuple[int, bytes]:
        last = self._store.last_read()
        # A record that somebody added has taken its number; it stays, to be found.
        number = max(self._count, last.number if last else 0) + 1
        scope = self._scope_of(call, reading.who)
        body = self._body(call, reading, number, scope)
        mac = self._mac(self._last, body)
        self._store.add_read(ReadRow(number, body, mac), scope=scope, targets=reading.targets)
        return number, mac

    def _move_head(self, count: int, mac: bytes) -> None:
        self._count, self._last, self._behind = count, mac, True
        self._head.write(count, mac)
        self._behind = False

    def _scope_of(self, call: Call, who: Who) -> Scope:
        """Returns the caller's scope, not narrowed where the request's contradicts it."""
        if who.scope is not None:
            return who.scope
        return who.agent.scope if who.agent else call.scope

    def _body(self, call: Call, reading: Reading, number: int, scope: Scope) -> str:
        who = reading.who
        fields: dict[str, Any] = {
            "number": number,
            "before": self._last.hex(),
            "time": self._now(),
            "caller": who.agent_id,
            "caller_pk": who.agent.pk if who.agent else None,
            "token": call.token_id,
            "scope": dict(scope),
            "role": who.role,
            "targets": reading.targets,
            "method": call.method,
            "door": call.door,
            "granted": reading.granted,
            "query_hash": self.query_hash(reading.query),
            "filters": reading.filters,
            "later_page": reading.later_page,
            "turns": list(reading.turns),
            "reason": reading.reason,
            "request_id": call.request_id,
        }
        if self._keep_query:
            fields["query"] = reading.query
        return json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    # -- listing

    def list_reads(self, call: Call, agent_id: str, page: Page, scope: Scope) -> tuple[list[ReadRecord], str]:
        """Returns a page of records, newest first, and the next token: of itself to an agent, of its scope to a
        user.
        """
        limit = limit_of(page.limit)
        who = self._access.who(call, scope)
        bound = binding("ListReads", agent_id, call.agent_id, dict(call.scope), dict(scope))
        before = struct.unpack(">q", self._seal.open(page.cursor, bound))[0] if page.cursor else None
        rows = self._rows(who, agent_id, before, limit + 1)
        records = [record for row in rows[:limit] if (record := self._told(who, row)) is not None]
        token = self._seal.close(struct.pack(">q", rows[limit - 1].number), bound) if len(rows) > limit else ""
        return records, token

    def _rows(self, who: Who, agent_id: str, before: int | None, limit: int) -> list[ReadRow]:
        if who.scope is None:
            return []
        if who.whom is Whom.SCOPE:
            return self._store.reads(who.scope, (agent_id, None) if agent_id else None, before, limit)
        if who.agent is None or agent_id not in ("", who.agent_id) or not holds(who.agent.scope, who.scope):
            return []
        return self._store.reads(EMPTY_SCOPE, (who.agent_id, who.agent.pk), before, limit)

    def _told(self, who: Who, row: ReadRow) -> ReadRecord | None:
        """Returns a record as it is shown, None for one that somebody made unreadable: VerifyAudit tells of it."""
        try:
            return self._shown(who, json.loads(row.body))
        except (ValueError, KeyError, TypeError):
            log.error("audit record unreadable", record=row.number)  # noqa: TRY400 - the error may hold text
            return None

    def _shown(self, who: Who, fields: dict[str, Any]) -> ReadRecord:
        targets = [(name, pk) for name, pk in fields["targets"] if self._sees(who, pk)]
        own = who.agent.pk if who.agent else None
        turns = [turn_id for pk, turn_id in fields["turns"] if (pk == own if who.is_agent else self._sees(who, pk))]
        return ReadRecord(
            number=fields["number"],
            time=fields["time"],
            caller_agent_id=fields["caller"] if self._sees(who, fields["caller_pk"]) else "",
            role=fields["role"],
            target_agent_ids=tuple(name for name, _ in targets),
            method=fields["method"],
            door=fields["door"],
            granted=fields["granted"],
            query_hash=fields["query_hash"],
            turn_ids=tuple(turns),
            reason=fields["reason"],
            request_id=fields["request_id"],
            filters=json.dumps(fields["filters"], ensure_ascii=False, sort_keys=True) if not who.is_agent else "",
            later_page=fields["later_page"],
            query=fields.get("query", ""),
        )

    def _sees(self, who: Who, pk: int | None) -> bool:
        """Tells whether a lister may see an id; one that no agent has is the caller's own word, shown to users of its scope."""
        if pk is None:
            return not who.is_agent
        agent = self._store.agent(pk)
        return agent is not None and who.scope is not None and holds(agent.scope, who.scope)

    # -- checking

    def verify(self, call: Call) -> Verification:
        """Checks the whole log as it stands now; reads are recorded meanwhile. Raises PermissionDenied for an agent.

        A caller that a scope binds is told how many records of its scope there are and whether the log is intact, no more: numbers
        and head tell of other scopes.
        """
        self._access.admit(call)
        with self._lock:  # a record is written to the table first and to the head second
            try:
                last = self._store.last_read()
                standing = _Standing(last.number if last else 0, self._count, self._last, self._head.read())
            except OSError as error:
                raise Unavailable("the head of the audit log cannot be read") from error
        found = self._verify(call, standing)
        if not call.scope:
            return found
        return Verification(found.intact, found.records, "", () if found.intact else (_SOMEWHERE,))

    def _verify(self, call: Call, standing: _Standing) -> Verification:
        """Checks the whole log; counts the records of the caller's scope."""
        faults: list[Fault] = []
        last, last_mac, looked_at, records = 0, _GENESIS, 0, 0
        sound = True  # whether what the next record says of the one before can be compared
        for row, listing in self._with_listings():
            if row.number > standing.end:
                break
            if not looked_at % _RECORDS_AT_ONCE:
                call.patience.check()
            missing = range(last + 1, row.number)
            faults += [Fault(number, "missing") for number in missing[:_MOST_FAULTS]]
            problem = self._problem_of(row, listing, last_mac if sound and not missing else None)
            faults += [Fault(row.number, problem)] if problem else []
            last, last_mac, looked_at, sound = row.number, row.mac, looked_at + 1, not problem
            records += holds(listing.scope, call.scope)
            del faults[_MOST_FAULTS:]
        faults += self._problems_of_head(last, last_mac, standing)
        return Verification(not faults, records, last_mac.hex() if looked_at else "", tuple(faults[:_MOST_FAULTS]))

    def _with_listings(self) -> Iterator[tuple[ReadRow, ReadListing]]:
        """Yields all records with what they are listed by, which tells a lister nothing of a record where it was removed."""
        rows = self._store.all_reads()
        while some := list(islice(rows, _RECORDS_AT_ONCE)):
            listings = self._store.listed_by([row.number for row in some])
            yield from ((row, listings.get(row.number, ReadListing())) for row in some)

    def _problem_of(self, row: ReadRow, listing: ReadListing, before: bytes | None) -> str:
        """Returns what is wrong with a record, empty if nothing is. `before` is the MAC of the record before, None if unknown."""
        try:
            fields = json.loads(row.body)
            written, follows = fields["number"], bytes.fromhex(fields["before"])
            listed = ReadListing(fields["scope"], tuple((agent_id, pk) for agent_id, pk in fields["targets"]))
        except (ValueError, KeyError, TypeError):
            return "altered"
        if not hmac.compare_digest(row.mac, self._mac(follows, row.body)):
            return "altered"
        if written != row.number:
            return f"reordered: it was written as record {written}"
        if before is not None and not hmac.compare_digest(follows, before):
            return "reordered: it was written after another record"
        if listing != listed:
            return "altered: it is listed under other agents or another scope"
        return ""

    def _problems_of_head(self, last: int, last_mac: bytes, standing: _Standing) -> list[Fault]:
        if last < standing.count:
            return [Fault(number, "cut off") for number in range(last + 1, standing.count + 1)[:_MOST_FAULTS]]
        if last > standing.count:
            return [Fault(standing.count + 1, "altered: the head outside of the table does not know it")]
        known, (count, mac) = hmac.compare_digest(last_mac, standing.mac), standing.file
        if known and count == standing.count and hmac.compare_digest(mac, standing.mac):
            return []
        return [Fault(last, "altered: the head outside of the table is another one")]
