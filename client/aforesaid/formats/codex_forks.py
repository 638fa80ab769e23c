"""Where a session's own lines begin, if it began with a copy of another one.

A fork, and many a sub-agent, starts with the lines of its parent, written anew: other times, the same content. Its header is its
own; the parent's header, when it comes along, is the second line. What tells a copy from what is new, in this order:

- the header says the `ordinal` of the first line that is its own;
- the ids of turns are made when a turn begins: one that is older than the session was copied, the first that is younger is its own;
  lines at the beginning that are older than the session were copied, too;
- the parent's file, where it lies in the same home or folder: what it holds in the same order is a copy;
- without it, the time: a copy is written in one go, so its lines are less than a second apart.

Where none of these tells, nothing is taken for a copy: better twice than lost.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from pathlib import Path

from aforesaid.formats.codex_folders import Header, header_of, minted_at, objects
from aforesaid.formats.codex_items import read_line, unwrapped
from aforesaid.formats.tally import Tally
from aforesaid.formats.values import Object, identifier, microseconds, string

_APART = 1_000_000


@dataclass(frozen=True, slots=True)
class _Row:
    """What a line gives away about its origin. What the program wrote by itself, it may write into a new session as well."""

    line: int
    time: int | None
    turn_id: str
    header_of: str
    said: bytes
    by_program: bool


@dataclass(slots=True)
class _Known:
    """What a session says, to be compared with: the places of each text, and the ids of its turns."""

    places: dict[bytes, list[int]] = field(default_factory=dict)
    turn_ids: set[str] = field(default_factory=set)


def own_from(path: Path, header: Header, parent: Path | None) -> int:
    """The number of the first line after the header that is no copy; 0 for a session that began with none."""
    if header.own_from is not None:
        return _from_ordinal(path, header.own_from)
    rows: list[_Row] = []
    own: int | None = None
    for row in _rows(path):
        if not rows and not _may_be_copy(row, header):
            return 0
        if row.turn_id and _is_younger(row.turn_id, header):
            own = row.line
            break
        rows.append(row)
    if not rows:
        return 0
    # The clock may be set back later on: only at the beginning does an older line tell.
    older = takewhile(lambda row: _is_older(row, header), rows)
    foreign = sorted({row.line for row in (*older, *(row for row in rows if _is_foreign(row, header)))})
    behind = [row for row in rows if foreign and row.line >= foreign[-1]]
    begins = own
    if foreign and own is not None:
        begins = _after_gap(behind, own)
        if begins == own:
            return own
    known = _read(parent) if parent is not None else None
    if known is not None:
        return max(_compared(rows, known, own), foreign[-1] + 1 if foreign else 0)
    if not foreign:
        return 0
    if begins is not None:
        return begins
    return _after_gap(behind, rows[-1].line + 1) if all(row.time for row in behind) else foreign[-1] + 1


def _rows(path: Path) -> Iterator[_Row]:
    """The lines after the header."""
    for place, (number, fields) in enumerate(objects(path)):
        kind, payload = unwrapped(fields)
        if place or kind != "session_meta":
            time = microseconds(fields.get("timestamp"))
            named = header_of(payload).session_id if kind == "session_meta" else ""
            yield _Row(number, time, _turn_id(kind, payload), named, *_digest(kind, payload))


def _turn_id(kind: str, payload: Object) -> str:
    marks = kind == "turn_context" or (kind == "event_msg" and string(payload.get("type")) in {"task_started", "turn_started"})
    return identifier(payload.get("turn_id")) if marks else ""


def _digest(kind: str, payload: Object) -> tuple[bytes, bool]:
    """What a line says, in whatever way its version writes it, and whether the program says it; empty for one that says nothing."""
    try:
        said = [(one.role, one.parts) for one in read_line(kind, payload, Tally(), events_alone=True) if one.parts]
    except RecursionError:
        said = []
    digest = hashlib.blake2b(repr((kind, said)).encode("utf-8"), digest_size=16).digest() if said else b""
    return digest, all(role == "system" for role, _ in said)


def _begun_at(header: Header) -> int | None:
    return minted_at(header.session_id) or header.created_at


def _is_younger(turn_id: str, header: Header) -> bool:
    begun, forked = minted_at(turn_id), _begun_at(header)
    return begun is not None and forked is not None and begun >= forked


def _is_foreign(row: _Row, header: Header) -> bool:
    """Says whether a line can only come from another session."""
    if row.header_of:
        return row.header_of != header.session_id
    return minted_at(row.turn_id) is not None and not _is_younger(row.turn_id, header)


def _is_older(row: _Row, header: Header) -> bool:
    forked = _begun_at(header)
    return forked is not None and row.time is not None and row.time < forked - _APART


def _may_be_copy(first: _Row, header: Header) -> bool:
    """Says whether a session names a parent, or has the header of another one as its second line."""
    return bool(header.parent_id) or header.is_sub_agent or bool(first.header_of and first.header_of != header.session_id)


def _from_ordinal(path: Path, first: int) -> int:
    end = 0
    for number, fields in objects(path):
        ordinal = fields.get("ordinal")
        if isinstance(ordinal, int) and ordinal >= first:
            return number
        end = number + 1
    return end


def _after_gap(rows: list[_Row], end: int) -> int:
    """The first line that was written a second and more after the one before it; `end` where none was."""
    for before, row in pairwise(rows):
        if before.time and row.time and row.time - before.time >= _APART:
            return row.line
    return end


def _compared(rows: list[_Row], known: _Known, own: int | None) -> int:
    """The end of what stands in the parent, too, in the same order."""
    place = -1
    end = 0
    for row in rows:
        if row.turn_id and known.turn_ids and row.turn_id not in known.turn_ids:
            break
        if row.turn_id in known.turn_ids:
            end = row.line + 1
        if not row.said:
            continue
        places = known.places.get(row.said, [])
        at = bisect_left(places, place + 1)
        if at < len(places):
            place, end = places[at], row.line + 1
        elif not row.by_program:
            break
    return end if own is None else min(end, own)


def _read(parent: Path) -> _Known | None:
    known = _Known()
    try:
        for row in _rows(parent):
            if row.said:
                known.places.setdefault(row.said, []).append(row.line)
            if row.turn_id:
                known.turn_ids.add(row.turn_id)
    except OSError:
        return None
    return known
