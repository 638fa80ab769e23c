"""Rows written by hand: turns, a query, and the exact lists that the contract promises, asked of a running service over Connect.

This is the second judge. Nothing here parses a query, folds a word or ranks a turn: what each row expects was read off the sentence
it quotes, so that a mistake which the server shares with its own conformance suite cannot hide. Each row writes as an agent of its
own and searches as that agent; other agents' transcripts, grants and the audit log are not judged here.

A row in rows/*.toml holds

    name, says             what it shows; the words of the contract that it stands for
    turns                  a text, or a table with text or parts, and role ("user" unless said), id, conversation ("c" unless said),
                           at (time said), then (true: begins a new AppendTurns); of is the call id of a call or a result
    projects               project folders of conversations, which are then written whole
    query, request         the query; other fields of the request, as they stand in its JSON
    matches, near          [turn, tier] and [turn, step] in order; a turn is its place in turns, from 0
    partial, any_word      turns in any order; any_word are the matches of MATCH_ANY_WORD
    held                   the matches of MATCH_SUBSTRING in order, each with the score 1
    nothing, more, error   true: every list is empty; true: there is a next page; code, and field where the contract names it
    notice, notice_ends    the whole notice; how it ends
    snippets, windows      by turn: the exact snippet; cut (at "start", "end"), holds (pieces of it), between_characters (cut inside
                           a stretch without blanks)
    kinds                  by turn: the part_kinds of the hit
    places, ids, around    [turn, seq, content_offset, content_length]; ids of the turns; by turn: texts before and after

A list that a row does not name must be empty. A text may be a list of strings and of {of, times}, which are joined.
"""

from __future__ import annotations

import base64
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import httpx
import pytest
from google.rpc import error_details_pb2

ROWS = Path(__file__).parent / "rows"
SEARCH = "agent.v1.AgentService/SearchTranscripts"
APPEND = "agent.v1.ConversationService/AppendTurns"
WRITE = "agent.v1.ConversationService/WriteConversation"

# Length counts up to here in every order and score.
MOST_BYTES = 262_143
WINDOW, LEAD = 240, 80

Json: TypeAlias = dict[str, Any]
Pieces: TypeAlias = str | list[str | dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a file, as its author wrote it."""

    file: str
    name: str
    says: str
    query: Pieces
    turns: Sequence[str | Json] = ()
    projects: Mapping[str, str] = field(default_factory=dict)
    request: Json = field(default_factory=dict)
    matches: list[list[int]] = field(default_factory=list)
    near: list[list[int]] = field(default_factory=list)
    partial: list[int] = field(default_factory=list)
    any_word: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    nothing: bool = False
    more: bool = False
    error: Mapping[str, str] = field(default_factory=dict)
    notice: str | None = None
    notice_ends: str = ""
    snippets: Mapping[str, str] = field(default_factory=dict)
    windows: Mapping[str, Json] = field(default_factory=dict)
    kinds: Mapping[str, list[str]] = field(default_factory=dict)
    places: list[list[int]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    around: Mapping[str, Mapping[str, list[Pieces]]] = field(default_factory=dict)

    @property
    def lists(self) -> dict[str, list[list[int]] | list[int]]:
        """What the reply must hold, in the form that `lists_of` gives it."""
        return {"matches": self.any_word or self.held or self.matches, "near": self.near, "partial": self.partial}

    @property
    def hits(self) -> list[int]:
        """The turns of all lists, by their place in `turns`."""
        return [turn for turn, _ in (*self.matches, *self.near)] + self.partial + self.any_word + self.held

    def __str__(self) -> str:
        return f"{self.file}-{self.name.replace(' ', '-')}"


def rows() -> list[Row]:
    """Reads every row, file by file; a key that `Row` does not have is a TypeError."""
    files = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in sorted(ROWS.glob("*.toml"))}
    return [Row(file=name, **row) for name, file in files.items() for row in file["row"]]


ALL = rows()


@pytest.fixture(scope="module")
def http(service_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service_url, timeout=30) as client:
        yield client


@pytest.mark.parametrize("row", ALL, ids=str)
def test_the_row_holds(http: httpx.Client, row: Row) -> None:
    conversation = Written(http, row)
    status, reply = conversation.search()
    if row.error:
        assert_refused(row.error, status, reply)
        return
    assert status == 200, reply
    assert conversation.lists_of(reply) == row.lists
    assert "notice" in reply or not row.nothing, "nothing was found and no notice says why"
    assert row.notice is None or reply.get("notice", "") == row.notice
    assert reply.get("notice", "").endswith(row.notice_ends)
    assert bool(reply.get("nextPageToken")) or not row.more
    hits = {conversation.turn_of(hit): hit for hit in all_hits(reply)}
    assert {turn: hits[int(turn)]["snippet"] for turn in row.snippets} == row.snippets
    for turn, window in row.windows.items():
        assert_window(window, hits[int(turn)]["snippet"], spelled(text_of(row.turns[int(turn)])))
    for turn, kinds in row.kinds.items():
        assert hits[int(turn)].get("partKinds", []) == [f"PART_KIND_{kind}" for kind in kinds]
    assert [place_of(turn, hits[turn]) for turn, *_ in row.places] == row.places
    if row.ids:
        assert conversation.ids == row.ids
        assert [hits[turn]["turnId"] for turn in range(len(row.ids))] == row.ids
    for turn, texts in row.around.items():
        expected = {side: [spelled(text) for text in texts[side]] for side in ("before", "after")}
        assert {side: [turn["text"] for turn in hits[int(turn)].get(side, [])] for side in ("before", "after")} == expected


@pytest.mark.parametrize("row", [row for row in ALL if len(row.hits) > 2 and "pagination" not in row.request], ids=str)
def test_its_pages_hold_the_same(http: httpx.Client, row: Row) -> None:
    conversation = Written(http, row)
    pages: Json = {"matches": [], "near": [], "partial": []}
    cursor = ""
    # No page but the last is without hits, and the last may be followed by an empty one.
    for _ in range(len(row.hits) + 2):
        status, reply = conversation.search({"pagination": {"limit": 2, "cursor": cursor}})
        assert status == 200, reply
        for name, hits in pages.items():
            page = reply.get(name, [])
            assert len(page) <= 2
            hits.extend(page)
        cursor = reply.get("nextPageToken", "")
        if not cursor:
            break
    assert not cursor, "the pages do not end"
    assert conversation.lists_of(pages) == row.lists


class Written:
    """The turns of one row as the service has them, and the agent whose they are."""

    def __init__(self, http: httpx.Client, row: Row) -> None:
        self._http = http
        self._row = row
        self._agent = f"row-{uuid4().hex}"
        # (conversation, seq) of a turn -> its place in the row; a rewritten turn is known by the place of its last text.
        self._turns: dict[tuple[str, int], int] = {}
        self.ids: list[str] = []
        for places in writes(row.turns):
            self._write(places)

    def search(self, also: Json | None = None) -> tuple[int, Json]:
        """Sends the row's request; `also` goes over it."""
        body = {"query": spelled(self._row.query)} | self._row.request | (also or {})
        return call(self._http, SEARCH, self._agent, body)

    def turn_of(self, hit: Json) -> int:
        """Tells which turn of the row a hit is."""
        assert hit["agentId"] == self._agent
        return self._turns[hit["conversationId"], hit.get("seq", 0)]

    def lists_of(self, reply: Json) -> dict[str, list[list[int]] | list[int]]:
        """Brings a reply into the form of a row's lists."""
        matches, near, partial = ([*reply.get(name, [])] for name in ("matches", "near", "partial"))
        found: dict[str, list[list[int]] | list[int]] = {
            "matches": [[self.turn_of(hit), tier_of(hit)] for hit in matches],
            "near": [[self.turn_of(hit), step_of(hit)] for hit in near],
            "partial": sorted(self.turn_of(hit) for hit in partial),
        }
        assert_shares(partial)
        if self._row.any_word:
            assert_shares(matches)
            found["matches"] = sorted(self.turn_of(hit) for hit in matches)
        if self._row.held:
            assert {hit["score"] for hit in matches} <= {1}
            found["matches"] = [self.turn_of(hit) for hit in matches]
        return found

    def _write(self, places: list[int]) -> None:
        entries = [self._row.turns[place] for place in places]
        conversation = conversation_of(entries[0])
        turns = [turn_json(entry) for entry in entries]
        if project := self._row.projects.get(conversation):
            whole = {"conversationId": conversation, "agentId": self._agent, "turns": turns, "source": {"project": project}}
            status, reply = call(self._http, WRITE, self._agent, {"conversation": whole})
            kept = [{"seq": seq} for seq in range(len(turns))]
        else:
            status, reply = call(self._http, APPEND, self._agent, {"conversationId": conversation, "turns": turns})
            kept = reply.get("turns", [])
        assert status == 200, reply
        assert len(kept) == len(places)
        self._turns |= {(conversation, turn.get("seq", 0)): place for turn, place in zip(kept, places, strict=True)}
        self.ids += [str(turn.get("turnId")) for turn in kept]


def call(http: httpx.Client, method: str, agent: str, body: Json) -> tuple[int, Json]:
    """Calls a method as an agent; returns the HTTP status and the JSON of the reply or of the error."""
    reply = http.post(f"/{method}", json=body, headers={"X-Agent-Id": agent})
    return reply.status_code, reply.json()


# What a row says, as the wire has it.


def spelled(text: Pieces) -> str:
    """Joins the pieces of a text."""
    if isinstance(text, str):
        return text
    return "".join(piece if isinstance(piece, str) else piece["of"] * piece["times"] for piece in text)


def conversation_of(entry: str | Json) -> str:
    return "c" if isinstance(entry, str) else str(entry.get("conversation", "c"))


def text_of(entry: str | Json) -> Pieces:
    """Gives the text of a turn that has no other parts."""
    return entry if isinstance(entry, str) else entry["text"]


def writes(turns: Sequence[str | Json]) -> Iterator[list[int]]:
    """Yields the places of the turns of each write: neighbours of one conversation, unless a turn says `then`."""
    write: list[int] = []
    for place, entry in enumerate(turns):
        begins = not isinstance(entry, str) and entry.get("then", False)
        if write and (begins or conversation_of(entry) != conversation_of(turns[place - 1])):
            yield write
            write = []
        write.append(place)
    if write:
        yield write


def turn_json(entry: str | Json) -> Json:
    if isinstance(entry, str):
        entry = {"text": entry}
    turn: Json = {"role": entry.get("role", "user"), "parts": [part_json(part) for part in entry.get("parts", [entry])]}
    return turn | {name: entry[key] for key, name in (("id", "turnId"), ("at", "createdAt")) if key in entry}


def part_json(part: Json) -> Json:
    match part:
        case {"text": text}:
            return {"text": spelled(text)}
        case {"reasoning": text}:
            return {"reasoning": spelled(text)}
        case {"call": name, "arguments": arguments}:
            return {"toolCall": {"name": name, "arguments": spelled(arguments), "callId": part.get("of", "")}}
        case {"result": text}:
            return {"toolResult": {"text": spelled(text), "isError": part.get("is_error", False), "callId": part.get("of", "")}}
        case {"result_json": text}:
            return {"toolResult": {"json": spelled(text), "callId": part.get("of", "")}}
        case {"file": name, "media_type": media_type}:
            return {"file": {"name": name, "mediaType": media_type}}
        case _:
            raise ValueError(f"no part of a turn: {part}")


# What a reply says, as a row has it.


def all_hits(reply: Json) -> Iterator[Json]:
    for name in ("matches", "near", "partial"):
        yield from reply.get(name, [])


def length_score(hit: Json) -> float:
    return 1 / (1 + min(int(hit.get("contentLength", "0")), MOST_BYTES) / 1024)


def tier_of(hit: Json) -> int:
    """Reads the tier out of a match's score; -1 if the rest of it is not what the turn's length makes it."""
    tier: float = hit["score"] - length_score(hit)
    return whole(tier)


def step_of(hit: Json) -> int:
    """Reads the step out of a near hit's score; -1 if the rest of it is not what the turn's length makes it."""
    step: float = hit["score"] * 4 - length_score(hit) + 1
    return whole(step)


def whole(number: float) -> int:
    return round(number) if abs(number - round(number)) < 1e-9 else -1


def assert_shares(hits: list[Json]) -> None:
    """Sees that scores are shares of the best turn's, to three decimals, the best first."""
    scores = [hit.get("score", 0.0) for hit in hits]
    assert not scores or scores[0] == 1
    assert scores == [round(score, 3) for score in scores]
    assert all(before >= after for before, after in pairwise(scores))


def place_of(turn: int, hit: Json) -> list[int]:
    return [turn, hit.get("seq", 0), int(hit.get("contentOffset", "0")), int(hit.get("contentLength", "0"))]


def assert_window(window: Json, snippet: str, text: str) -> None:
    """Sees that a snippet is a window of the text: its size, how far before the match it begins, where and how it is cut."""
    cut = [end for end, there in (("start", snippet.startswith("…")), ("end", snippet.endswith("…"))) if there]
    assert cut == window["cut"]
    for piece in window["holds"]:
        assert piece in snippet
    marked = snippet.strip("… ")
    plain = marked.replace("⟦", "").replace("⟧", "")
    assert len(plain) <= WINDOW
    assert marked.index("⟦") <= LEAD
    folded = " ".join(text.split())
    if window.get("between_characters"):
        assert plain in folded
    else:
        assert f" {plain} " in f" {folded} ", "cut inside a word"


def assert_refused(error: Mapping[str, str], status: int, reply: Json) -> None:
    assert status != 200
    assert reply["code"] == error["code"], reply
    if "field" in error:
        assert error["field"] in refused_fields(reply), reply


def refused_fields(reply: Json) -> list[str]:
    """Reads the fields that the BadRequest details of an error name."""
    details = [detail["value"] for detail in reply.get("details", []) if detail["type"] == "google.rpc.BadRequest"]
    # Connect leaves the padding of base64 out.
    decoded = [error_details_pb2.BadRequest.FromString(base64.b64decode(value + "=" * (-len(value) % 4))) for value in details]
    return [violation.field for bad_request in decoded for violation in bad_request.field_violations]


# The files themselves.


def test_there_are_rows_enough() -> None:
    assert len(ALL) >= 150


def test_the_names_are_unique() -> None:
    names = [str(row) for row in ALL]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("row", ALL, ids=str)
def test_the_row_is_well_formed(row: Row) -> None:
    assert row.says
    assert bool(row.hits) + row.nothing + bool(row.error) == 1, "a row expects hits, or says nothing = true, or an error"
    assert len(row.hits) == len(set(row.hits)), "no turn stands in two lists"
    assert all(0 <= turn < len(row.turns) for turn in row.hits)
    assert all(1 <= tier <= 3 for _, tier in row.matches)
    assert all(1 <= step <= 4 for _, step in row.near)
    assert row.partial == sorted(row.partial)
    assert row.any_word == sorted(row.any_word)
    assert bool(row.any_word) == (row.request.get("match") == "MATCH_ANY_WORD" and not row.nothing)
    assert bool(row.held) == (row.request.get("match") == "MATCH_SUBSTRING" and not row.nothing and not row.error)
    # Within a list the level falls; what stands in the row's other fields is a hit.
    by_time = row.request.get("order") == "ORDER_NEWEST"
    assert by_time or [tier for _, tier in row.matches] == sorted((tier for _, tier in row.matches), reverse=True)
    assert [step for _, step in row.near] == sorted((step for _, step in row.near), reverse=True)
    named = [int(turn) for turns in (row.snippets, row.windows, row.around, row.kinds) for turn in turns]
    assert {*named, *(turn for turn, *_ in row.places)} <= set(row.hits)
    assert all(turn_json(entry)["parts"] for entry in row.turns)
