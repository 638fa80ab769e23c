"""The audit log: who read whom. Append-only, chained and keyed, so that a changed, missing, moved or cut-off record is found.

Each record is canonical JSON that holds the MAC of the record before, under HMAC-SHA256 over both. The head (count and MAC of the
last record) is kept outside the table too, in a file, and written to the service's log. The chain goes on from the head, never from
what the table says: records cut off stay missing, whatever is recorded later. A record is committed before the reply leaves; if it
cannot be, the reply is Unavailable and no text goes out.

Where several processes share a store, they add to one chain, and each has a file of its own. It takes in what the others added, as
far as that follows from what it knows. How far the chain goes stands in the store too, with a proof that only the key makes: where
records between have been cut off or changed, the next one goes on from there and tells as well what was known here. So nothing
that any of them knew can be taken out, or put in another's place, without being found.
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
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, TypeAlias

import structlog

from aforesaid.model import EMPTY_SCOPE
from aforesaid_server.access import Access, Call, Who, Whom, holds
from aforesaid_server.errors import AforesaidError, Unavailable
from aforesaid_server.paging import Page, Seal, binding, limit_of
from aforesaid_server.store import NewRead, ReadHead, ReadListing, ReadRow, Scope, Store

log = structlog.get_logger(__name__)

_GENESIS = b"\0" * 32
_NONE = 0, _GENESIS
_HEAD = struct.Struct(">q32s")
_MOST_FAULTS = 100
_RECORDS_AT_ONCE = 500
_KNOWN = "known"

Head: TypeAlias = tuple[int, bytes]
"""How many records there are, and the MAC of the last one."""


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
    """Where the log stood when a check of it began: the number of the table's last record, the head as it is known here, what its
    file said and what the store says. `proven` tells whether that one comes from who has the key.
    """

    end: int
    head: Head
    file: Head
    stored: Head
    proven: bool

    @property
    def furthest(self) -> int:
        """How many records there must be."""
        return max(self.head[0], self.stored[0] if self.proven else 0)


class HeadFile:
    """The head outside of the table: how many records there are, and the MAC of the last one. Opened anew each time, so that a
    file that was removed or replaced meanwhile is noticed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Head:
        """Returns count and MAC; (0, zeros) if nothing was written yet."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            data = b""
        count, mac = _HEAD.unpack(data) if len(data) == _HEAD.size else _NONE
        return count, mac

    def write(self, count: int, mac: bytes) -> None:
        """Replaces the head, durably: 40 bytes at the start of the file, within one sector."""
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(file, _HEAD.pack(count, mac), 0)
            os.fdatasync(file)
        finally:
            os.close(file)


class HeadInMemory(HeadFile):
    """The head of a log that is itself kept in memory."""

    def __init__(self) -> None:
        self._head = _NONE

    def read(self) -> Head:
        """Returns count and MAC."""
        return self._head

    def write(self, count: int, mac: bytes) -> None:
        """Replaces the head."""
        self._head = count, mac


_SOMEWHERE = Fault(0, "not as it was written: a caller that no scope binds is told where")


def _mac(key: bytes, before: bytes, body: str) -> bytes:
    return hmac.digest(key, before + body.encode(), "sha256")


def _proof(key: bytes, head: Head) -> bytes:
    """Returns what shows that somebody who has the key wrote a record of that number and MAC."""
    count, mac = head
    return hmac.digest(key, b"head\0%d\0" % count + mac, "sha256")


def follow_chain(key: bytes, head: Head, rows: Iterable[ReadRow]) -> Head:
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

    def _settled_head(self) -> Head:
        """Returns the head, with the record that was committed just before a crash kept the head from being written; in a store
        that is shared, with all that others have added since.
        """
        written = self._head.read()
        if self._store.shared:
            head = self._followed(written)
        else:
            last, _ = self._store.last_read()
            head = follow_chain(self._key, written, [last] if last is not None else [])
        if head != written:
            self._head.write(*head)
        return head

    def _followed(self, head: Head, until: int | None = None) -> Head:
        """Returns a head, where others add records too, with what they have added, up to one of that number."""
        if not self._store.shared:
            return head
        rows = self._store.reads_after(head[0])
        return follow_chain(self._key, head, rows if until is None else takewhile(lambda row: row.number <= until, rows))

    def _mac(self, before: bytes, body: str) -> bytes:
        return _mac(self._key, before, body)

    def query_hash(self, query: str) -> str:
        """Returns the keyed hash of a query, in hexadecimal digits; empty for none."""
        return hmac.digest(self._key, b"query\0" + query.encode(), "sha256").hex() if query else ""

    @property
    def records(self) -> int:
        """How many records the log holds, as far as this process knows."""
        return self._count

    # -- writing

    def record(self, call: Call, reading: Reading) -> None:
        """Commits one record. Raises Unavailable if it cannot be."""
        with self._lock:
            try:
                if self._behind:  # what it lacks is taken in at a start
                    self._move_head(self._count, self._last)
                known = self._followed((self._count, self._last))
                added = self._store.add_read(known[0], lambda rows, stored: self._made(call, reading, known, rows, stored)).head
                self._move_head(added.count, added.mac)
            except (AforesaidError, OSError) as error:
                self.failures += 1
                log.error("audit record refused", request_id=call.request_id, error=type(error).__name__)  # noqa: TRY400 - the error may hold text
                raise Unavailable("the audit log cannot be written: nothing is shown") from error
        log.info("audit head", records=added.count, head=added.mac.hex(), request_id=call.request_id)

    def _made(self, call: Call, reading: Reading, known: Head, rows: Sequence[ReadRow], stored: ReadHead) -> NewRead:
        """Returns the record that comes next: after the head, and behind those that stand after it, which may be anybody's."""
        if self._store.shared:
            known = follow_chain(self._key, known, rows)
        further = self._store.shared and stored.count > known[0] and self._is_proven(stored)
        before = (stored.count, stored.mac) if further else known
        # A record that somebody added has taken its number; it stays, to be found.
        number = max(before[0], rows[-1].number if rows else 0) + 1
        listing = ReadListing(self._scope_of(call, reading.who), reading.targets)
        fields = self._fields(call, reading, number, before[1], listing.scope)
        if further:
            fields[_KNOWN] = [known[0], known[1].hex()]
        body = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        head = number, self._mac(before[1], body)
        return NewRead(ReadRow(number, body, head[1]), listing, ReadHead(*head, _proof(self._key, head)))

    def _is_proven(self, stored: ReadHead) -> bool:
        return hmac.compare_digest(stored.proof, _proof(self._key, (stored.count, stored.mac)))

    def _move_head(self, count: int, mac: bytes) -> None:
        self._count, self._last, self._behind = count, mac, True
        self._head.write(count, mac)
        self._behind = False

    def _scope_of(self, call: Call, who: Who) -> Scope:
        """Returns the caller's scope, not narrowed where the request's contradicts it."""
        if who.scope is not None:
            return who.scope
        return who.agent.scope if who.agent else call.scope

    def _fields(self, call: Call, reading: Reading, number: int, before: bytes, scope: Scope) -> dict[str, Any]:
        who = reading.who
        fields: dict[str, Any] = {
            "number": number,
            "before": before.hex(),
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
        return fields

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
                standing = self._standing()
            except OSError as error:
                raise Unavailable("the head of the audit log cannot be read") from error
        found = self._verify(call, standing)
        if not call.scope:
            return found
        return Verification(found.intact, found.records, "", () if found.intact else (_SOMEWHERE,))

    def _standing(self) -> _Standing:
        file = self._head.read()
        last, stored = self._store.last_read()
        end = last.number if last else 0
        known = self._count, self._last
        if file == known and (head := self._followed(known, end)) != known:  # or what was done to the file would be written over
            self._move_head(*head)
            file = known = head
        return _Standing(end, known, file, (stored.count, stored.mac), self._is_proven(stored))

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
            faults += [Fault(row.number, problem)] if problem else self._denied_by(row)
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

    def _denied_by(self, row: ReadRow) -> list[Fault]:
        """Returns what a record that is as it was written tells of an earlier one, where it says which one was there."""
        if f'"{_KNOWN}":[' not in row.body:
            return []
        count, mac = json.loads(row.body).get(_KNOWN, _NONE)
        if not count:
            return []
        there = next(self._store.reads_after(count - 1), None)
        if there is not None and there.number == count and there.mac.hex() == mac:
            return []
        return [Fault(count, f"altered: it was another one when record {row.number} was written")]

    def _problems_of_head(self, last: int, last_mac: bytes, standing: _Standing) -> list[Fault]:
        if last < standing.furthest:
            return [Fault(number, "cut off") for number in range(last + 1, standing.furthest + 1)[:_MOST_FAULTS]]
        if last > standing.head[0]:
            return [Fault(standing.head[0] + 1, "altered: the head outside of the table does not know it")]
        heads = [standing.head, standing.file, *([standing.stored] if standing.stored[0] else [])]
        if all(count == last and hmac.compare_digest(mac, last_mac) for count, mac in heads):
            return []
        return [Fault(last, "altered: the head outside of the table is another one")]
