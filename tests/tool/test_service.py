"""Over the service the tool reads only what it shows, and its lines are those of a plain scan of every conversation."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from aforesaid import (
    Agent,
    Client,
    Conversation,
    File,
    InvalidArgument,
    NotFound,
    Part,
    PermissionDenied,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from aforesaid.conversation_stores import IndexConversationStore, ServiceConversationStore
from aforesaid.transcript_index import ChatRecord, TranscriptIndex
from aforesaid.transcript_tool import ConversationStore, transcript_search_tool
from scripts.running_server import RunningServer, start
from tests.conftest import end
from tests.tool.plain import WithoutSearch

NUMBERS = itertools.count()


def an_agent() -> str:
    return f"tool-{next(NUMBERS)}"


def text(said: str, role: str = "user") -> Turn:
    return Turn(role, (Text(said),))


def both(store: ConversationStore, **input_: Any) -> str:
    """What the tool answers over a store, which must be what it answers where it has to read everything."""
    answer = transcript_search_tool(store).execute(input_)
    assert answer == transcript_search_tool(WithoutSearch(store)).execute(input_)
    return answer


@pytest.fixture(scope="module")
def everything_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that searches system turns and reasoning, too."""
    folder = tmp_path_factory.mktemp("everything")
    settings = {"AFORESAID_INDEX_SYSTEM": "true", "AFORESAID_INDEX_REASONING": "true"}
    running = start(folder / "data", settings=settings, log=folder / "server.log")
    yield running
    end(running)


# -- the same lines

LETTERS = st.text('abABß "\n:', max_size=8)
JSON_VALUES = st.recursive(
    LETTERS | st.integers(0, 99) | st.none(), lambda inner: st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
)
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, LETTERS),
    st.builds(Reasoning, LETTERS),
    st.builds(ToolCall, st.sampled_from(["aba", "transcript_search"]), LETTERS | JSON_VALUES.map(json.dumps), st.just("call")),
    st.builds(ToolResult, LETTERS, st.just("call")),
    st.builds(ToolResult, JSON_VALUES.map(json.dumps), st.just("call"), st.just(True)),
    st.builds(File, st.just("image/png"), st.text("ab", max_size=3)),
)
TURNS = st.builds(
    Turn, st.sampled_from(["user", "assistant", "tool", "system", "a\nb"]), st.lists(PARTS, min_size=1, max_size=4).map(tuple)
)
STORES = st.lists(st.lists(TURNS, max_size=6), max_size=4)


@given(STORES, st.text('abABß "\n:', min_size=1, max_size=4), st.integers(1, 6), st.none() | st.integers(0, 4))
@effort(max_examples=60)
def test_the_lines_are_those_of_a_plain_scan(
    everything_server: RunningServer, conversations: list[list[Turn]], query: str, limit: int, only: int | None
) -> None:
    with Client(everything_server.url, an_agent()) as client:
        for number, turns in enumerate(conversations):
            client.append(f"c{number}", turns)
        asked = {"query": query, "limit": limit} | ({} if only is None else {"conversation_id": f"c{only}"})
        both(ServiceConversationStore(client), **asked)


def test_system_turns_are_found_where_the_service_searches_them(server: RunningServer, everything_server: RunningServer) -> None:
    answers = []
    for running in (server, everything_server):
        with Client(running.url, an_agent()) as client:
            client.append("c", [text("be kind", "system"), text("be quick")])
            answers.append(transcript_search_tool(ServiceConversationStore(client)).execute({"query": "BE "}))
    assert answers == ["c#1 user: be quick", "c#0 system: be kind\nc#1 user: be quick"]


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    """An agent of its own."""
    with Client(server.url, an_agent()) as made:
        yield made


def test_the_newest_is_the_one_that_was_begun_last(client: Client) -> None:
    for name in ("first", "second", "third"):
        client.append(name, [text("hello")])
    client.append("first", [text("hello again")])
    assert both(ServiceConversationStore(client), query="HELLO") == (
        "third#0 user: hello\nsecond#0 user: hello\nfirst#0 user: hello\nfirst#1 user: hello again"
    )


def test_names_of_tools_and_values_out_of_their_json_are_no_hits(client: Client) -> None:
    call = ToolCall("deploy", '{"text": "say \\"hi\\"", "why": "deploy"}')
    client.append("c", [Turn("assistant", (call,)), text("deploy"), Turn("assistant", (ToolCall("deploy", "{}"),))])
    store = ServiceConversationStore(client)
    assert both(store, query="deploy", limit=1).endswith("\n(+1 more)")
    assert both(store, query='say "hi"') == "no matches"
    assert both(store, query='say \\"hi\\"') == f"c#0 assistant: {call.arguments}"
    assert both(store, query="text: say") == "no matches"


def test_earlier_searches_are_not_left_out(client: Client) -> None:
    calls = (ToolCall("transcript_search", '{"query": "zebra"}', "1"), ToolResult("no zebra", "1"))
    client.append("c", [Turn("assistant", calls)])
    assert both(ServiceConversationStore(client), query="ZEBRA") == 'c#0 assistant: {"query": "zebra"} no zebra'


def test_a_long_query_is_looked_for_whole(client: Client) -> None:
    client.append("c", [text("a" * 700 + "b"), text("a" * 600)])
    store = ServiceConversationStore(client)
    assert both(store, query="A" * 650 + "b").startswith("c#0 user: …a")
    assert both(store, query="a" * 600 + "c") == "no matches"


def test_letters_in_any_script_and_a_query_of_signs_alone(client: Client) -> None:
    client.append("c", [text("長い記憶の話"), text("Straße 👨‍👩‍👧"), text("??? -- ")])
    store = ServiceConversationStore(client)
    assert both(store, query="記憶") == "c#0 user: 長い記憶の話"
    assert both(store, query="STRASSE") == "c#1 user: Straße 👨‍👩‍👧"
    assert both(store, query="👩") == "c#1 user: Straße 👨‍👩‍👧"
    assert both(store, query="? -") == "c#2 user: ??? -- "


def test_an_unknown_conversation_has_no_matches(client: Client) -> None:
    client.append("c", [text("hello")])
    assert both(ServiceConversationStore(client), query="hello", conversation_id="d") == "no matches"


# -- what is read


class Counting:
    """A client that counts what it is asked."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.config = client.config
        self.asked = Counter[str]()

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return getattr(self._client, name)

    def read(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        self.asked["read"] += 1
        for turn in self._client.read(*args, **kwargs):
            self.asked["turns"] += 1
            yield turn


def test_only_what_is_shown_is_read_and_more_is_counted_to_the_last(client: Client) -> None:
    client.append("c", [text(f"hello {number} {'x' * 70_000 * (number in {1, 40})}") for number in range(250)])
    counting: Any = Counting(client)
    answer = transcript_search_tool(ServiceConversationStore(counting)).execute({"query": "hello", "limit": 1})
    assert answer == "c#0 user: hello 0 \n(+249 more)"
    assert counting.asked == {"search": 1, "read": 1, "turns": 1}


def test_turns_with_calls_are_looked_at_many_at_once(client: Client) -> None:
    client.append("c", [Turn("assistant", (ToolCall("run", f'{{"n": {number}}}'),)) for number in range(250)])
    counting: Any = Counting(client)
    tool = transcript_search_tool(ServiceConversationStore(counting))
    assert tool.execute({"query": '"N"', "limit": 2}).endswith("\n(+248 more)")
    assert counting.asked["read"] <= 3
    assert tool.execute({"query": "run"}) == "no matches"


def test_a_turn_that_is_rewritten_or_gone_meanwhile_is_no_hit(client: Client) -> None:
    client.append("c", [Turn("user", (Text("hello"),), "m1"), Turn("user", (Text("hello"),), "m2")])
    client.append("d", [text("hello")])
    found = list(ServiceConversationStore(client).search_substring("hello"))
    client.append("c", [Turn("user", (Text("changed"),), "m1")])
    client.delete("d")
    with pytest.raises(NotFound):
        found[0].read()
    assert [candidate.read().parts for candidate in found[1:]] == [(Text("changed"),), (Text("hello"),)]  # type: ignore[attr-defined]
    assert [candidate.conversation_id for candidate in found] == ["d", "c", "c"]


# -- whose conversations


def test_a_user_searches_every_agent_or_one(server: RunningServer, client: Client) -> None:
    one, other, word = an_agent(), an_agent(), f"word{next(NUMBERS)}x"
    with Client(server.url, "") as user:
        user.append("same", [text(f"{word} one")], agent_id=one)
        user.append("same", [text(f"{word} other")], agent_id=other)
        user.append("alone", [text(f"{word} alone")], agent_id=other)
        every = ServiceConversationStore(user)
        assert transcript_search_tool(every).execute({"query": word}) == (
            f"alone#0 user: {word} alone\nsame#0 user: {word} other\nsame#0 user: {word} one"
        )
        with pytest.raises(InvalidArgument, match=f"^conversation_id: same is one of {one} and of {other}: name the agent_id$"):
            every.get("same")
        assert both(ServiceConversationStore(user, agent_id=one), query=word) == f"same#0 user: {word} one"
        assert every.get("alone")
        assert every.get("nowhere") is None
        client.append("own", [text("nothing")])
        store = ServiceConversationStore(client, agent_id=other, reason="a test")
        assert transcript_search_tool(store).execute({"query": word, "limit": 1}).endswith("(+1 more)")
        assert {record.reason for record in user.reads(other) if record.caller_agent_id == client.config.agent_id} == {"a test"}


def test_scopes_are_not_crossed(server: RunningServer) -> None:
    word = f"word{next(NUMBERS)}y"
    with Client(server.url, "") as user:
        for name in ("ada", "bob"):
            agent = an_agent()
            user.update_agent(Agent(agent, scope={"user_id": f"{name}-{word}"}), ["scope"])
            user.append(name, [text(word)], agent_id=agent)
        assert both(ServiceConversationStore(user, scope={"user_id": f"ada-{word}"}), query=word) == f"ada#0 user: {word}"


def test_an_agent_that_may_not_read_another_is_told_so(server: RunningServer) -> None:
    with Client(server.url, "") as user:
        mine, other = an_agent(), an_agent()
        user.update_agent(Agent(mine, role="intern"), ["role"])
        user.append("c", [text("hello")], agent_id=other)
    with Client(server.url, mine) as client:
        tool = transcript_search_tool(ServiceConversationStore(client, agent_id=other))
        with pytest.raises(PermissionDenied):
            tool.execute({"query": "hello"})


# -- the embedded index


def chat(scope: dict[str, str], name: str, *messages: str) -> ChatRecord:
    return ChatRecord(name, scope, [{"id": f"m{at}", "role": "user", "content": said} for at, said in enumerate(messages)])


def test_chats_of_an_embedded_index() -> None:
    ada, bob, eve = ({"user_id": name} for name in ("ada", "bob", "eve"))
    with TranscriptIndex.in_memory() as index:
        index.write_chat(chat(ada, "monday", "The zebra of ada", "ZEBRA!"))
        index.write_chat(chat(bob, "monday", "The zebra of bob"))
        index.write_chat(chat(ada, "run-7:3", "A zebra"))
        index.client.append("notes", [text("no chat, but a zebra")], agent_id="scribe", scope=ada)
        assert both(IndexConversationStore(index, ada), query="zebra") == (
            "run-7:3#0 user: A zebra\nmonday#0 user: The zebra of ada\nmonday#1 user: ZEBRA!"
        )
        assert (
            both(IndexConversationStore(index, bob), query="zebra of", conversation_id="monday")
            == "monday#0 user: The zebra of bob"
        )
        assert both(IndexConversationStore(index, eve), query="zebra") == "no matches"


def test_chats_of_one_id_in_several_scopes_are_told_apart() -> None:
    scopes: list[dict[str, str]] = [{"user_id": "ada"}, {"user_id": "ada", "project": "x"}, {"user_id": "ada", "project": "y"}]
    with TranscriptIndex.in_memory() as index:
        for number, scope in enumerate(scopes):
            index.write_chat(chat(scope, "same", f"zebra {number}", "lion"))
        for looked_at in ({"user_id": "ada"}, {}):
            tool = transcript_search_tool(IndexConversationStore(index, looked_at))
            assert tool.execute({"query": "zebra"}) == "same#0 user: zebra 2\nsame#0 user: zebra 1\nsame#0 user: zebra 0"
        assert list(index.client.reads()) == []


def test_a_conversation_is_only_listed_once_per_id(client: Client) -> None:
    client.write(Conversation("c", client.config.agent_id, "A title", (text("hello"),)))
    assert [one.conversation_id for one in ServiceConversationStore(client).list()] == ["c"]
    assert repr(ServiceConversationStore(client, agent_id="x")).endswith("agent_id='x')")
