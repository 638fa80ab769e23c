"""`aforesaid show` against the service itself: a turn in its place, by the id that search prints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

import pytest

from aforesaid import Client, Conversation, File, Reasoning, Source, Text, ToolCall, ToolResult, Turn
from aforesaid.cli.place import Place
from aforesaid.cli.stretch import ONE_READ
from tests.cli.conftest import Command, Ended, obeyed, uncoloured

# 2026-03-04 10:22 UTC.
TIME = 1_772_619_720_000_000
SESSION = "5b0c7a52-3f0e-4c1b-9a6d-2f8e41d7c903"
STRANGE = "talk /:@%#'~ é"
PARTS = (
    Reasoning("so it is\nindeed"),
    Text("I look:\n\n\tindented \x1b[31mred\x9b"),
    ToolCall("shell", '{"command": "ls -l\\nwc", "deep": {"list": [1.50, null, {"x": true}]}, "empty": {}}', "c1"),
    ToolCall("odd\x07", "not {json"),
    ToolResult("two\nlines", "c1", is_error=True),
    ToolResult('{"code": 0}', "c1", is_json=True),
    File("image/png", "a.png"),
)


@dataclass(frozen=True, slots=True)
class Kept:
    """The conversations of this file's tests: a short one, one with a strange id, one longer than a read, one of long turns."""

    url: str
    agent: str
    long: list[int]


@pytest.fixture(scope="module")
def kept(service_url: str) -> Kept:
    agent = f"-show/{uuid4().hex[:12]}"
    # From one byte to 20 kB, so that where a turn stands cannot be told from its number.
    sizes = [1 + (number * number * 37) % 20_000 if number % 7 == 0 else number % 50 for number in range(400)]
    with Client(service_url, "") as client:
        source = Source("claude-code", f"/nowhere/{SESSION}.jsonl", "/srv/shop")
        turns = [Turn("user", (Text(f"number {number}"),), f"line-{number * 2}", TIME + number * 60_000_000) for number in range(9)]
        client.write(Conversation("short", agent, "Talk about\npages", tuple(turns), source))
        client.append(STRANGE, [Turn("assistant\x1b", PARTS, "t/1@:", TIME)], agent_id=agent)
        client.write(Conversation("long", agent, turns=tuple(Turn("user", (Text("x" * size or "-"),)) for size in sizes)))
        assert client.conversation("long", agent_id=agent).content_length > 5 * ONE_READ
    return Kept(service_url, agent, sizes)


@pytest.fixture
def show(kept: Kept, here: Command) -> Callable[..., Ended]:
    return lambda *arguments: here("show", *map(str, arguments), "--url", kept.url)


def test_an_id_without_an_agent_is_told_as_an_id(show: Callable[..., Ended]) -> None:
    told = "aforesaid: id: names no agent, as it must where no agent asks: short:1; `aforesaid conversations` lists ids\n"
    assert show("short:1") == Ended(2, "", told)


def headings(out: str) -> list[str]:
    """The sign and the number of each turn that was shown."""
    return re.findall(r"^[> ] \[\d+\]", out, re.MULTILINE)


def test_a_turn_stands_in_its_place_with_the_way_back(kept: Kept, show: Callable[..., Ended]) -> None:
    ended = show(Place(kept.agent, "short", 4), "--around", "1")
    assert (ended.code, ended.err) == (0, "")
    heading, *told = ended.out.splitlines()
    assert re.fullmatch(rf"{kept.agent} · Talk about pages · 9 turns · \d{{4}}-\d\d-\d\d \d\d:\d\d", heading)
    assert told == [
        f"cd /srv/shop && claude --resume {SESSION}",
        "",
        "  [3] · user · 2026-03-04 10:25",
        "    number 3",
        "",
        f"> [4] · user · 2026-03-04 10:26 · /nowhere/{SESSION}.jsonl:9",
        "    number 4",
        "",
        "  [5] · user · 2026-03-04 10:27",
        "    number 5",
    ]


@pytest.mark.parametrize(
    ("place", "options", "told"),
    [
        (Place("", "short", 0), (), [">0", " 1", " 2"]),
        (Place("", "short", 8), (), [" 6", " 7", ">8"]),
        (Place("", "short", 4), ("--around", "0"), [">4"]),
        (Place("", "short", 4), ("--around", "99"), [" 0", " 1", " 2", " 3", ">4", " 5", " 6", " 7", " 8"]),
        (Place("", "short", 4), ("--whole",), [" 0", " 1", " 2", " 3", ">4", " 5", " 6", " 7", " 8"]),
        (Place("", "short", turn_id="line-6"), ("--around", "1"), [" 2", ">3", " 4"]),
        (Place("", "short"), (), [" 0", " 1", " 2", " 3", " 4", " 5", " 6", " 7", " 8"]),
    ],
)
def test_how_much_is_shown(place: Place, options: tuple[str, ...], told: list[str], kept: Kept, show: Callable[..., Ended]) -> None:
    ended = show(Place(kept.agent, place.conversation_id, place.seq, place.turn_id), *options)
    assert (ended.code, ended.err) == (0, "")
    assert headings(ended.out) == [f"{sign[0]} [{sign[1:]}]" for sign in told]
    # An agent's own conversation needs no name.
    assert show(place, *options, "--as", kept.agent).out == ended.out


@pytest.mark.parametrize("seq", [0, 1, 57, 199, 350, 398, 399])
def test_a_turn_of_a_conversation_that_is_longer_than_a_read(seq: int, kept: Kept, show: Callable[..., Ended]) -> None:
    ended = show(Place(kept.agent, "long", seq), "--json")
    shown = [(turn.get("seq", 0), len(turn["parts"][0]["text"])) for turn in json.loads(ended.out)["turns"]]
    expected = range(max(0, seq - 2), min(len(kept.long), seq + 3))
    assert shown == [(number, max(1, kept.long[number])) for number in expected]


def test_the_whole_of_a_long_conversation(kept: Kept, show: Callable[..., Ended]) -> None:
    ended = show(Place(kept.agent, "long", 7), "--whole", "--json")
    assert [turn.get("seq", 0) for turn in json.loads(ended.out)["turns"]] == list(range(len(kept.long)))


def test_parts_are_readable_and_nothing_in_them_is_obeyed(kept: Kept, show: Callable[..., Ended]) -> None:
    ended = show(Place(kept.agent, STRANGE, turn_id="t/1@:"))
    assert ended.code == 0
    assert obeyed(ended.out.replace("\n", "")) == []
    assert ended.out.partition("\n\n")[2].splitlines() == [
        "> [0] · assistant␛ · 2026-03-04 10:22",
        "    reasoning:",
        "      so it is",
        "      indeed",
        "    I look:",
        "",
        "            indented ␛[31mred<U+009B>",
        "    calls shell",
        "      command:",
        "        ls -l",
        "        wc",
        "      deep.list.0: 1.50",
        "      deep.list.1: null",
        "      deep.list.2.x: true",
        "      empty: {}",
        "    calls odd␇",
        "      not {json",
        "    answers with an error:",
        "      two",
        "      lines",
        "    answers:",
        "      code: 0",
        "    file a.png (image/png)",
    ]


def test_json_is_the_conversation_with_the_turns_that_were_asked_for(kept: Kept, show: Callable[..., Ended]) -> None:
    ended = show(Place(kept.agent, "short", 4), "--json", "--around", "1")
    assert (ended.code, ended.out.count("\n")) == (0, 1)
    reply = json.loads(ended.out)
    assert (reply["agentId"], reply["conversationId"], reply["turnCount"]) == (kept.agent, "short", 9)
    assert reply["source"]["project"] == "/srv/shop"
    assert [turn["turnId"] for turn in reply["turns"]] == ["line-6", "line-8", "line-10"]


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("{agent}/short:9", r"aforesaid: id: there is no turn 9: the conversation has 9, counted from 0\n"),
        ("{agent}/gone:0", r"aforesaid: conversation_id: there is no conversation gone\n"),
        ("{agent}/short@gone", r"aforesaid: turn_id: there is no turn gone\n"),
        ("nobody-is-this/short:0", r"aforesaid: agent_id: [^\n]+\n"),
    ],
)
def test_what_is_not_there_is_an_error(place: str, told: str, kept: Kept, show: Callable[..., Ended]) -> None:
    ended = show(place.format(agent=str(Place(kept.agent, "c")).partition("/")[0]))
    assert (ended.code, ended.out) == (2, "")
    assert re.fullmatch(told, ended.err)


def test_the_id_that_search_prints_is_the_one_that_show_takes(kept: Kept, piped: Command) -> None:
    found = piped("search", "number", "7", "--agent", kept.agent, "--url", kept.url)
    place = re.search(r"^    (\S+:\d+) · ", found.out, re.MULTILINE)
    assert place is not None
    assert "> [7]" in piped("show", place[1], "--url", kept.url).out


def test_a_terminal_shows_the_turn_in_colour(kept: Kept, terminal: Command, show: Callable[..., Ended]) -> None:
    place = Place(kept.agent, "short", 4)
    shown = terminal("show", str(place), environment={"AFORESAID_URL": kept.url})
    assert uncoloured(shown.out) == show(place).out
    assert "\x1b[1m\x1b[1;31m> [4]" in shown.out


def test_a_read_of_another_agent_has_its_reason(kept: Kept, show: Callable[..., Ended]) -> None:
    reader = f"reader-{uuid4().hex[:12]}"
    with Client(kept.url, reader) as client:
        client.append("c", [Turn("user", (Text("hello"),))])
    assert show(Place(kept.agent, "short", 4), "--as", reader, "--reason", "to see").code == 0
    with Client(kept.url, "") as client:
        record = next(client.reads(kept.agent))
    assert (record.caller_agent_id, record.method, record.reason) == (reader, "ReadTranscript", "to see")
