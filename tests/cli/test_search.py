"""`aforesaid search` against the service itself, through pipes and on a terminal."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from aforesaid import Agent, Client, Conversation, Source, Text, ToolCall, ToolResult, Turn
from aforesaid_server.search.substring import MOST_TURNS
from tests.cli.conftest import Command, Ended

# 2026-03-04 10:22 UTC.
TIME = 1_772_619_720_000_000
HOSTILE = "\x1b]0;owned\x07\x1b[31m {word} \x9b2J\u202e ⟦no mark⟧ \x00"


@dataclass(frozen=True, slots=True)
class Said:
    """What was written for this file's tests: words that nobody else says, and who said them."""

    url: str
    word: str
    hostile: str
    many: str
    kinds: str
    ada: str
    bob: str


@pytest.fixture(scope="module")
def said(service_url: str) -> Said:
    token = "".join(chr(ord("a") + digit) for digit in uuid4().bytes[:10] for digit in divmod(digit, 16))
    made = Said(service_url, f"qua{token}", f"hos{token}", f"man{token}", f"kin{token}", f"ada-{token}", f"bob-{token}")
    with Client(service_url, "") as client:
        client.update_agent(Agent(made.ada, name="Ada \x1b[5m", role="reviewer"), ["name", "role"])
        turns = (
            Turn("user", (Text(f"the {made.word} page of the shop"),), "t0", TIME),
            Turn("assistant", (Text(f"{made.word} page"),), "t1", TIME + 60_000_000),
            Turn("assistant", (Text(f"call get{made.word.capitalize()}Id"),), "t2", TIME),
            Turn("assistant", (Text(f"a page without the rare one, {made.word[:3]}"),), "t3", TIME),
        )
        client.write(Conversation("talk", made.ada, "Talk about\npages", turns, Source("", "", "/srv/shop")))
        client.append("talk", [Turn("user", (Text(HOSTILE.format(word=made.hostile)),), "t", TIME)], agent_id=made.bob)
        pieces = (
            Turn("assistant", (Text(f"{made.kinds} said"), ToolCall("sh", f'{{"x": "-{made.kinds} \\"--called"}}', "c"))),
            Turn("tool", (ToolResult(f"{made.kinds} answered", "c"),)),
            Turn("tool", (ToolResult(f'{{"y": "{made.kinds}"}}', "c", is_json=True),)),
        )
        client.append("kinds", pieces, agent_id=made.bob)
        client.append("long", [Turn("user", (Text(f"{made.many} {number}"),)) for number in range(130)], agent_id=made.bob)
    return made


@pytest.fixture
def search(said: Said, piped: Command) -> Command:
    def run(*arguments: str, environment: dict[str, str] | None = None) -> Ended:
        return piped("search", *arguments, environment={"AFORESAID_URL": said.url} | (environment or {}))

    return run  # type: ignore[return-value]


def test_hits_and_their_places_go_to_stdout(said: Said, search: Command) -> None:
    ended = search(said.word)
    assert ended.out.splitlines() == [
        "matches",
        f"  Ada ␛[5m ({said.ada}) · Talk about pages · assistant · 2026-03-04 10:23",
        f"    ⟦{said.word}⟧ page",
        f"    {said.ada}/talk:1",
        f"  Ada ␛[5m ({said.ada}) · Talk about pages · user · 2026-03-04 10:22",
        f"    the ⟦{said.word}⟧ page of the shop",
        f"    {said.ada}/talk:0",
        "",
        "near",
        f"  Ada ␛[5m ({said.ada}) · Talk about pages · assistant · 2026-03-04 10:22",
        f"    call get⟦{said.word.capitalize()}⟧Id",
        f"    {said.ada}/talk:2",
    ]
    assert (ended.code, ended.err) == (0, "")


def test_several_arguments_are_one_query(said: Said, search: Command) -> None:
    together, apart = search(f"{said.word} shop -nothing"), search(said.word, "shop", "--", "-nothing")
    assert together == apart
    assert "talk:0" in together.out
    assert "talk:1" not in together.out.partition("partial")[0]


@pytest.mark.parametrize("query", [("-the", "{word}"), ("{word}", "-the")])
def test_a_word_with_a_minus_excludes_wherever_it_stands(query: tuple[str, ...], said: Said, search: Command) -> None:
    ended = search(*(word.format(word=said.word) for word in query), "--limit", "5")
    assert ended.code == 0
    assert "talk:1" in ended.out
    assert "talk:0" not in ended.out


def test_a_limit_that_is_too_much_is_a_full_page(said: Said, search: Command) -> None:
    full, more = search(said.many, "--limit", "100"), search(said.many, "--limit", "99999999999")
    assert (more.code, more.out) == (0, full.out)
    assert full.out.count("\n    ⟦man") == 100
    assert search(said.many, "--limit", "-99999999999").err.startswith("aforesaid: pagination.limit: ")


def test_nothing_found_is_1_and_the_notice_goes_to_stderr(said: Said, search: Command) -> None:
    ended = search(f"{said.word}gone")
    assert (ended.code, ended.out) == (1, "")
    assert len(ended.err.splitlines()) == 1
    with Client(said.url, "") as client:
        assert ended.err == next(client.search(f"{said.word}gone")).notice + "\n"


def test_an_error_is_2_and_the_services_own_words(said: Said, search: Command) -> None:
    ended = search("???")
    assert (ended.code, ended.out) == (2, "")
    assert re.fullmatch(r"aforesaid: query: [^A-Z]+\n", ended.err)
    assert search(said.word, "--limit", "-1").err.startswith("aforesaid: pagination.limit: ")


def test_json_is_the_reply_as_the_wire_has_it(said: Said, search: Command) -> None:
    ended = search(said.word, "--json", "--limit", "1")
    assert (ended.code, ended.err) == (0, "")
    reply = json.loads(ended.out)
    assert ended.out.count("\n") == 1
    assert [(hit["agentId"], hit["conversationId"], hit["seq"]) for hit in reply["matches"]] == [(said.ada, "talk", 1)]
    assert isinstance(reply["matches"][0]["contentOffset"], str)
    assert reply["nextPageToken"]
    assert search(f"{said.word}gone", "--json").code == 1


def test_nothing_that_an_agent_printed_reaches_a_terminal_as_a_command(said: Said, search: Command, terminal: Command) -> None:
    environment = {"AFORESAID_URL": said.url}
    for told in (
        search(said.hostile).out,
        search(said.hostile, "--json").out,
        terminal("search", said.hostile, environment=environment | {"NO_COLOR": "1"}).out,
        re.sub(r"\x1b\[[0-9;]*m", "", terminal("search", said.hostile, environment=environment).out),
    ):
        assert said.hostile in told
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", told) is None


def test_marks_are_coloured_on_a_terminal_unless_no_color_says_otherwise(said: Said, terminal: Command) -> None:
    environment = {"AFORESAID_URL": said.url}
    coloured = terminal("search", said.word, environment=environment)
    assert (coloured.code, coloured.err) == (0, "")
    assert f"\x1b[1;31m{said.word}\x1b[0m page\n" in coloured.out
    assert "⟦" not in coloured.out
    plain = terminal("search", said.word, environment=environment | {"NO_COLOR": "1"})
    assert f"    ⟦{said.word}⟧ page\n" in plain.out
    assert "\x1b" not in plain.out
    assert "\x1b" not in terminal("search", said.word, environment=environment | {"TERM": "dumb"}).out


def test_when_there_is_more_a_hint_says_how_to_get_it(said: Said, search: Command) -> None:
    first = search(said.many)
    assert first.out.count("\n    ⟦man") == 20
    ways = r"--cursor \S+ prints the next page, --all prints all\n"
    assert re.fullmatch(rf"there is more: --limit shows up to 100 hits of each list, {ways}", first.err)
    full = search(said.many, "--limit", "100")
    assert full.out.count("\n    ⟦man") == 100
    assert re.fullmatch(f"there is more: {ways}", full.err)
    every = search(said.many, "--all")
    assert (every.out.count("\n    ⟦man"), every.err) == (130, "")


def test_all_pages_as_json_are_a_page_a_line(said: Said, search: Command) -> None:
    ended = search(said.many, "--all", "--json", "--limit", "50")
    assert (ended.code, ended.err) == (0, "")
    pages = [json.loads(line) for line in ended.out.splitlines()]
    assert [len(page["matches"]) for page in pages] == [50, 50, 30]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--agent", "{ada}"), [1, 0, 2]),
        (("--agent", "{bob}"), []),
        (("--conversation", "talk"), [1, 0, 2]),
        (("--conversation", "other"), []),
        (("--role", "user"), [0]),
        (("--role", "user", "--role", "assistant"), [1, 0, 2]),
        (("--since", "2026-03-04T10:23Z"), [1]),
        (("--since", "2026-03-04T11:23+01:00"), [1]),
        (("--until", "2026-03-04 10:23"), [0, 2]),
        (("--since", "2026-03-05"), []),
        (("--project", "/srv/shop"), [1, 0, 2]),
        (("--project", "/srv/shop/"), []),
        (("--scope", "team={word}"), []),
        (("--limit", "1"), [1]),
    ],
)
def test_what_narrows_a_search(options: tuple[str, ...], found: list[int], said: Said, here: Command) -> None:
    ended = here(
        "search", "--url", said.url, said.word, *(option.format(ada=said.ada, bob=said.bob, word=said.word) for option in options)
    )
    assert [int(seq) for seq in re.findall(rf"{said.ada}/talk:(\d)", ended.out)] == found
    assert ended.code == (0 if found else 1)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("--kind", "text", "{word}"), [0]),
        (("--kind", "tool-call", "{word}"), [0]),
        (("--kind", "tool-call", '"{word} said"'), []),
        (("--kind", "tool-result", "{word}"), [1, 2]),
        (("--kind", "tool-result-json", "{word}"), [2]),
        (("--kind", "Tool_Result_Text", "{word}"), [1]),
        (("--kind", "text", "--kind", "tool-result-json", "{word}"), [0, 2]),
        (("--kind", "reasoning", "{word}"), []),
        (("--substring", "{word:.9}"), [0, 1, 2]),
        (("--substring", "{word} ANSW"), [1]),
        (("--substring", "-{word}"), [0]),
        (("--substring", '\\"--called"}}'), [0]),
        (("--substring", "--kind", "text", "-{word}"), []),
        (("--substring", "--kind", "tool-result-text", "{word}"), [1]),
    ],
)
def test_letters_and_kinds_of_parts(arguments: tuple[str, ...], found: list[int], said: Said, here: Command) -> None:
    ended = here("search", "--url", said.url, "--agent", said.bob, *(argument.format(word=said.kinds) for argument in arguments))
    assert sorted(map(int, re.findall(rf"{said.bob}/kinds:(\d)", ended.out))) == found
    assert ended.code == (0 if found else 1)


def test_a_page_without_hits_is_passed_over_where_there_are_more(said: Said, here: Command) -> None:
    # More turns than the service reads for a page hold the letters of the query by threes, and not the query.
    agent, word = f"many-{said.ada}", said.kinds[3:11]
    decoys = [Turn("user", (Text(f"{word[:-1]} {word[1:]}"),), str(number)) for number in range(MOST_TURNS + 10)]
    with Client(said.url, "") as client:
        client.append("first", [Turn("user", (Text(f"so {word.upper()} it is"),))], agent_id=agent)
        client.append("then", decoys, agent_id=agent)
        pages = list(client.search(word, agent_id=agent, match="substring"))
    assert [len(page.matches) for page in pages] == [0, 1]
    ended = here("search", "--substring", word, "--agent", agent, "--url", said.url)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[-1].strip() == f"{agent}/first:0"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--kind", "image"),
            "kind: must be one of text, reasoning, tool-call, tool-result, tool-result-text, tool-result-json, file: image",
        ),
        (("--substring", "--any"), "substring: cannot be together with --any, which looks for words"),
    ],
)
def test_flags_that_cannot_be_are_told(arguments: tuple[str, ...], told: str, here: Command) -> None:
    assert here("search", *arguments, "x") == Ended(2, "", f"aforesaid: {told}\n")


def test_every_other_flag_of_a_search_is_in_the_request(said: Said, search: Command) -> None:
    with Client(said.url, said.ada) as client:
        asked = next(
            client.search(
                f"{said.hostile} red",
                agent_id=said.bob,
                words="as_typed",
                match="any_word",
                order="newest",
                include_own_searches=True,
                around=1,
                reason="why",
                roles=["user"],
            )
        )
    flags = ["--as-typed", "--any", "--newest", "--own-searches", "--around", "1", "--reason", "why", "--role", "user"]
    reply = json.loads(search(f"{said.hostile} red", "--agent", said.bob, *flags, "--as", said.ada, "--json").out)
    assert [hit["turnId"] for hit in reply["matches"]] == [hit.turn_id for hit in asked.matches] == ["t"]
    with Client(said.url, "") as client:
        latest = client.reads(said.bob)
        typed, called = next(latest), next(latest)
    assert (typed.filters, typed.reason, typed.caller_agent_id) == (called.filters, "why", said.ada)
    for name in ("words", "match", "order", "around", "include_own_searches", "roles"):
        assert name in typed.filters


def test_every_agent_that_may_be_read_is_searched(said: Said, search: Command) -> None:
    assert search(said.hostile, "--as", said.ada).code == 1
    assert f"{said.bob}/talk:0" in search(said.hostile, "--as", said.ada, "--every-agent").out
    assert search(said.hostile, "--every-agent", "--agent", said.bob, "--as", said.ada).code == 2


def test_the_latest_come_first_if_wanted(said: Said, search: Command) -> None:
    ended = search(said.word, "--newest", "--any")
    assert [int(seq) for seq in re.findall(rf"{said.ada}/talk:(\d)", ended.out)] == [1, 0]


def test_turns_around_a_hit_are_shown(said: Said, search: Command) -> None:
    ended = search(f"{said.word} shop", "--around", "1", "--limit", "1")
    assert f"    [1] assistant: {said.word} page" in ended.out.splitlines()


def test_the_agent_that_is_searched_and_the_one_that_asks_are_two(said: Said, search: Command) -> None:
    assert search(said.word, "--agent", said.bob, "--as", said.ada).code == 1
    assert search(said.hostile, "--agent", said.bob, "--as", said.ada).code == 0


def test_a_folder_may_be_named_from_here(said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: Command) -> None:
    word = said.word.replace("qua", "fol")
    with Client(said.url, "") as client:
        source = Source("chat-messages", "", str(tmp_path))
        client.write(Conversation("here", said.bob, turns=(Turn("user", (Text(word),)),), source=source))
    monkeypatch.chdir(tmp_path)
    for typed in (".", "./x/..", str(tmp_path)):
        assert f"{said.bob}/here:0" in search(word, "--project", typed).out


def test_color_says_more_than_the_terminal(said: Said, search: Command) -> None:
    assert f"\x1b[1;31m{said.word}\x1b[0m" in search(said.word, "--color", "always", environment={"NO_COLOR": "1"}).out
    assert f"\x1b[1;31m{said.word}\x1b[0m" in search(said.word, environment={"FORCE_COLOR": "1"}).out
    assert "\x1b" not in search(said.word, "--color", "never", environment={"FORCE_COLOR": "1"}).out


def test_another_agent_is_read_for_a_reason_that_is_kept(said: Said, search: Command) -> None:
    asked = search(said.hostile, "--agent", said.bob, "--as", said.ada, "--reason", "looking for the red one")
    assert asked.code == 0
    assert "talk:0" in asked.out
    with Client(said.url, "") as client:
        record = next(client.reads(said.bob))
    assert (record.caller_agent_id, record.target_agent_ids, record.reason, record.granted) == (
        said.ada,
        (said.bob,),
        "looking for the red one",
        True,
    )


def test_an_agent_searches_its_own(said: Said, search: Command) -> None:
    assert search(said.word, "--as", said.bob).code == 1
    assert search(said.word, environment={"AFORESAID_AGENT_ID": said.ada}).code == 0


def test_who_may_not_read_others_is_told(said: Said, search: Command) -> None:
    ended = search(said.word, "--agent", said.ada, "--as", f"{said.ada}-unknown")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("aforesaid: ")
    assert said.ada not in ended.err.replace(f"{said.ada}-unknown", "")
