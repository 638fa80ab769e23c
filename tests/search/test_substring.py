"""MATCH_SUBSTRING is a plain scan: over random conversations all pages together hold what reading every turn would find, in order,
from the fresh turns and from the engine; and how much is read of a store, seen at the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.model import Text
from aforesaid_server.access import Call, Patience
from aforesaid_server.errors import InvalidArgument, Stopped
from aforesaid_server.index import Batch, Reach
from aforesaid_server.index.document import Documents, lasting
from aforesaid_server.index.memory import MemoryIndex
from aforesaid_server.search.cursor import Reached
from aforesaid_server.search.substring import Bounds, Looked, Substrings, letters_of
from aforesaid_server.store import AgentKey, Append, NewTurn, Store
from aforesaid_server.store.sql import open_in_memory
from aforesaid_server.text.transcript import Searched, measure
from aforesaid_server.text.words import Analyser
from tests.api.callers import APPEND, hits, new, ok
from tests.api.doors import Json
from tests.faults.serving import Served, served
from tests.text.effort import examples


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("substring") / "data") as started:
        started.wait_until_ready()
        yield started


# -- the law

SAID = [
    "fox",
    "Fox",
    "FOXES",
    " ",
    "\n",
    '"',
    "-",
    "ß",
    "ss",
    "İ",
    "i\u0307",
    "ı",
    "é",
    "e\u0301",
    "東京",
    "京",
    "👩\u200d👧",
    "ab",
    "bc",
]
TEXT = st.lists(st.sampled_from(SAID), max_size=5).map("".join)
NAMES = st.sampled_from(["Bash", "search_transcripts", "fox"])


def call_of(name: str, key: str, value: str) -> Json:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return {"toolCall": {"name": name, "arguments": f'{{"{key}": "{escaped}"}}'}}


PART = st.one_of(
    TEXT.map(lambda text: {"text": text}),
    TEXT.map(lambda text: {"text": text}),
    TEXT.map(lambda text: {"reasoning": text}),
    TEXT.map(lambda text: {"toolResult": {"text": text}}),
    st.builds(call_of, NAMES, st.sampled_from(["a", "fox"]), TEXT),
    st.sampled_from(["fox.png", "a"]).map(lambda name: {"file": {"name": name}}),
)
KINDS = {
    "text": "PART_KIND_TEXT",
    "reasoning": "PART_KIND_REASONING",
    "toolCall": "PART_KIND_TOOL_CALL",
    "toolResult": "PART_KIND_TOOL_RESULT_TEXT",
    "file": "PART_KIND_FILE",
}


@dataclass(frozen=True)
class World:
    """Turns as (conversation, role, parts), and what is asked: letters, the length of a page, and other fields of the request."""

    turns: list[tuple[str, str, list[Json]]]
    query: str
    limit: int
    fields: Json = field(default_factory=dict)


ROLES = ["user", "assistant", "system"]
TURN = st.tuples(st.sampled_from(["one", "two", "three"]), st.sampled_from(ROLES), st.lists(PART, min_size=1, max_size=4))
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "roles": st.sampled_from([["user"], ["assistant", "system"]]),
        "partKinds": st.lists(st.sampled_from([*KINDS.values()]), min_size=1, max_size=3),
        "includeOwnSearches": st.just(True),
        "conversationId": st.sampled_from(["one", "two"]),
    },
)
QUERY = st.one_of(
    st.lists(st.sampled_from(SAID), min_size=1, max_size=3).map("".join),
    st.sampled_from(["o", "ox", "oxe", "s", "b", '": "', "fox: ", "\\n", "search_", "x\n", "fox.p"]),
)
WORLDS = st.builds(World, st.lists(TURN, min_size=1, max_size=9), QUERY, st.integers(1, 4), FIELDS)


def texts_of(world: World, role: str, parts: list[Json]) -> list[str]:
    """The texts of a turn that are looked in: neighbours joined by line ends, and arguments as written."""
    if role == "system":
        return []
    stretches: list[list[str]] = [[]]
    arguments = []
    for part in parts:
        kind, what = next(iter(part.items()))
        own = kind == "toolCall" and what["name"] == "search_transcripts" and "includeOwnSearches" not in world.fields
        if own or kind == "reasoning" or KINDS[kind] not in world.fields.get("partKinds", [KINDS[kind]]):
            stretches.append([])
            continue
        match kind:
            case "toolResult":
                text = what["text"]
            case "toolCall":
                arguments.append(what["arguments"])
                key, value = what["arguments"][2:-2].split('": "', 1)
                unescaped = value.replace('\\"', '"').replace("\\n", "\n")
                text = f"{what['name']}\n{key}: {unescaped}" if value else what["name"]
            case "file":
                text = what["name"]
            case _:
                text = what
        stretches[-1].append(text)
    return ["\n".join(stretch) for stretch in stretches if stretch] + arguments


def scanned(world: World) -> list[tuple[str, int]]:
    """What holds the letters, found by reading everything: conversations by their first write, backwards, turns in order."""
    by_conversation: dict[str, list[tuple[str, list[Json]]]] = {}
    for conversation, role, parts in world.turns:
        by_conversation.setdefault(conversation, []).append((role, parts))
    return [
        (conversation, seq)
        for conversation in reversed(by_conversation)
        if world.fields.get("conversationId", conversation) == conversation
        for seq, (role, parts) in enumerate(by_conversation[conversation])
        if role in world.fields.get("roles", ROLES)
        if any(world.query.casefold() in text.casefold() for text in texts_of(world, role, parts))
    ]


@pytest.mark.parametrize("settled", [False, True], ids=["fresh", "in the engine"])
@examples(60)
@given(world=WORLDS)
def test_it_is_a_plain_scan(service: Served, settled: bool, world: World) -> None:
    user = service.user.within(team=new("team"))
    for conversation, role, parts in world.turns:
        ok(user.call(APPEND, {"agentId": "ada", "conversationId": conversation, "turns": [{"role": role, "parts": parts}]}))
    if settled:
        service.house.settle(Call("SearchTranscripts", "test", "test"))
    found: list[Json] = []
    for page in user.pages(world.query, limit=world.limit, match="MATCH_SUBSTRING", **world.fields):
        assert page.body.get("matches") or not found or "nextPageToken" in page.body, "an empty page behind the last hit"
        found += hits(page)
    assert [(hit["conversationId"], hit.get("seq", 0)) for hit in found] == scanned(world)
    assert all("⟦" in hit["snippet"] and hit["score"] == 1 for hit in found)


# -- how much is read


class Counted:
    """A store that counts the turns that are read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.read: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def turns(self, numbers: Sequence[int]) -> Any:
        self.read.append(len(numbers))
        return self._store.turns(numbers)


class Kept:
    """Conversations in a store of their own, an engine that may hold any letters in any turn, and looks through both."""

    def __init__(self, **conversations: Sequence[str]) -> None:
        self.store = open_in_memory()
        self.counted = Counted(self.store)
        self.documents = Documents(Analyser(), Searched())
        self.index = MemoryIndex()
        for conversation_id, texts in conversations.items():
            turns = [new_turn(text) for text in texts]
            self.store.append(Append(AgentKey("ada"), conversation_id, turns), now=1)
        self.follow()

    def follow(self) -> None:
        """Has the index hold what the store holds."""
        left = lasting(self.store.changes(0, 100_000))
        known = [self.documents.of(place, letters=False) for _, place in left.puts]
        self.index.apply(Batch(left.position, known, left.forget, left.forget_conversations))

    def look(self, query: str, after: Reached | None, limit: int, **bounds: int) -> Looked:
        """Looks for one page."""
        _, lists = self.index.lists()
        looking = Substrings(cast("Store", self.counted), self.documents)
        return looking.look(letters_of(query), Reach({}), after, limit, lists=lists, patience=Patience(), bounds=Bounds(**bounds))

    def pages(self, query: str, limit: int, **bounds: int) -> Iterator[Looked]:
        """Yields all pages."""
        after = None
        while True:
            looked = self.look(query, after, limit, **bounds)
            yield looked
            if not (looked.more or looked.ended_early):
                return
            assert looked.reached != after, "the pages do not go on"
            after = looked.reached


def new_turn(text: str, turn_id: str = "") -> NewTurn:
    length = measure(text)
    return NewTurn(turn_id, "user", (Text(text),), None, length.content_length, length.digest)


def shown(looked: Looked) -> list[tuple[str, int]]:
    return [(place.conversation.conversation_id, place.turn.seq) for place in looked.turns]


@pytest.mark.parametrize(
    ("bounds", "looked_at"), [({"turns": 1}, 1), ({"turns": 3}, 3), ({"turns": 5}, 5), ({"size": 1}, 1), ({"size": 25}, 3)]
)
@pytest.mark.parametrize("limit", [1, 2, 50])
def test_a_page_ends_where_the_bound_is_reached(bounds: dict[str, int], looked_at: int, limit: int) -> None:
    """Each text is ten bytes long. No page looks at more turns, the pages go on, and together hold each hit once."""
    kept = Kept(a=["a fox here", "a hen here"] * 6, b=["a hen here"] * 7, c=["a fox here"])
    pages = []
    before = 0
    for looked in kept.pages("fox", limit, **bounds):
        assert sum(kept.counted.read) - before <= looked_at
        before = sum(kept.counted.read)
        pages.append(looked)
    assert [hit for looked in pages for hit in shown(looked)] == [("c", 0), *(("a", seq) for seq in range(0, 12, 2))]
    assert len(pages) > 1


def test_the_bound_at_the_very_end_asks_for_no_other_page() -> None:
    kept = Kept(a=["a fox here", "a hen here"])
    assert [shown(looked) for looked in kept.pages("fox", 5, turns=2)] == [[("a", 0)]]
    assert [shown(looked) for looked in kept.pages("fox", 5, size=20)] == [[("a", 0)]]


def test_a_long_turn_is_read_alone() -> None:
    kept = Kept(a=["x" * 5_000_000, "fox", "fox " * 1_250_000, "fox"])
    assert shown(kept.look("fox", None, 50)) == [("a", 1), ("a", 2), ("a", 3)]
    assert kept.counted.read == [1, 2, 1]


def test_no_more_is_read_than_the_page_needs() -> None:
    kept = Kept(**{f"c{number}": ["a fox", "a hen"] * 20 for number in range(20)})
    looked = kept.look("a ", None, 10)
    assert shown(looked) == [("c19", seq) for seq in range(10)]
    assert (looked.more, looked.ended_early) == (True, False)
    assert kept.counted.read == [11]


def test_it_ends_when_nobody_waits_any_more() -> None:
    kept = Kept(a=["a fox"])
    patience = Patience()
    patience.hang_up()
    with pytest.raises(Stopped):
        Substrings(kept.store, kept.documents).look("fox", Reach({}), None, 1, lists=kept.index.lists()[1], patience=patience)


def test_what_the_store_no_longer_has_is_passed_over() -> None:
    """The index may know of turns that are gone, or that read otherwise now."""
    kept = Kept(a=["fox 0", "fox 1"], b=["fox 2"])
    conversations = {place.conversation_id: place for place, _ in kept.store.list_conversations({}, None, None, 10)}
    kept.store.delete(conversations["b"].agent_pk, "b", now=2)
    kept.store.append(Append(AgentKey("ada"), "a", [new_turn("hen", "a:0")]), now=2)
    assert shown(kept.look("fox", None, 10)) == [("a", 1)]


@pytest.mark.parametrize(("query", "problem"), [("", "is empty"), ("x" * 501, "501 characters, at most 500 are allowed")])
def test_what_is_refused(query: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        letters_of(query)


@pytest.mark.parametrize("query", [" ", "\n", "-", '"', "x" * 500, "ß" * 500])
def test_what_is_not(query: str) -> None:
    assert letters_of(query) == query.casefold()
