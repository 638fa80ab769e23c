"""Paging with a key: `aforesaid search` on a terminal of its own, with somebody who presses keys."""

from __future__ import annotations

import os
import pty
import re
import sys
from dataclasses import dataclass
from uuid import uuid4

import pytest

from aforesaid import Client, Text, Turn
from aforesaid.cli.pager import ASKS, keyboard
from tests.cli.conftest import Command, Ended, Sitting, uncoloured

TURNS = 13
# Each hit takes three lines, the name of the list one: a page of five fits on a screen.
LIMIT, TALL = 5, (40, 100)


@dataclass(frozen=True, slots=True)
class Said:
    """Turns that all say one word, and who said them."""

    url: str
    word: str
    agent: str


@pytest.fixture(scope="module")
def said(service_url: str) -> Said:
    token = "".join(chr(ord("a") + digit) for byte in uuid4().bytes[:10] for digit in divmod(byte, 16))
    made = Said(service_url, f"pag{token}", f"pager-{token}")
    with Client(service_url, made.agent) as client:
        client.append("c", [Turn("user", (Text(f"{made.word} {'x' * number}"),)) for number in range(TURNS)])
    return made


@pytest.fixture
def search(said: Said, sitting: Sitting) -> Sitting:
    def run(*arguments: str, keys: list[str], size: tuple[int, int] = TALL, environment: dict[str, str] | None = None) -> Ended:
        given = {"AFORESAID_URL": said.url, "AFORESAID_AGENT_ID": said.agent} | (environment or {})
        return sitting("search", said.word, "--limit", str(LIMIT), *arguments, keys=keys, size=size, environment=given)

    return run  # type: ignore[return-value]


def shown(ended: Ended) -> list[int]:
    """The turns that were shown, in order."""
    return [int(seq) for seq in re.findall(r"/c:(\d+)", ended.out)]


@pytest.mark.parametrize("key", [" ", "\n", "\r", "\x1b[B", "x "])
def test_a_key_goes_on_to_the_next_page(key: str, search: Sitting) -> None:
    ended = search(keys=[key, key])
    assert (ended.code, ended.err) == (0, "")
    assert shown(ended) == list(range(TURNS))
    # Each question was taken away again.
    assert ended.out.count(ASKS) == ended.out.count(f"{ASKS}\x1b[0m\r\x1b[K") == 2


@pytest.mark.parametrize("key", ["q", "\x1b", "\x04"])
def test_a_key_ends(key: str, search: Sitting) -> None:
    ended = search(keys=[" ", key])
    assert (ended.code, ended.err) == (0, "")
    assert shown(ended) == list(range(2 * LIMIT))


def test_keys_that_were_typed_ahead_count(search: Sitting) -> None:
    assert shown(search(keys=["  ", ""])) == list(range(TURNS))
    assert shown(search(keys=[" q", ""])) == list(range(2 * LIMIT))


def test_a_question_fits_into_one_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as fingers, os.fdopen(theirs) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with keyboard() as keys:
            fingers.write(b"q")
            assert not keys.goes_on()
    assert capsys.readouterr().out == f"\x1b[7m{ASKS[:20]}\x1b[0m\r\x1b[K"


def test_a_screen_that_is_full_asks_too(search: Sitting) -> None:
    # Seven lines and the question: two hits, then what is left of the page.
    ended = search(keys=[" ", "q"], size=(8, 100))
    assert uncoloured(ended.out).replace("\r", "").replace(ASKS, "").count("\n") == 14
    assert shown(ended) == [0, 1, 2, 3]


def test_lines_that_wrap_take_several_rows(search: Sitting) -> None:
    wide, narrow = search(keys=["q"], size=(14, 200)), search(keys=["q"], size=(14, 45))
    assert len(shown(narrow)) < len(shown(wide))


def test_ctrl_c_at_the_question_is_an_interrupt_and_the_terminal_is_put_back(search: Sitting) -> None:
    ended = search(keys=["\x03"])
    assert (ended.code, ended.err) == (130, "aforesaid: interrupted\n")
    assert shown(ended) == list(range(LIMIT))


def test_no_page_is_asked_for_before_a_key_says_so(said: Said, sitting: Sitting) -> None:
    reader = f"reader-{uuid4().hex[:12]}"
    with Client(said.url, reader) as client:
        client.append("c", [Turn("user", (Text("hello"),))])
    environment = {"AFORESAID_URL": said.url, "AFORESAID_AGENT_ID": reader}
    sitting("search", said.word, "--limit", str(LIMIT), "--agent", said.agent, keys=[" ", "q"], size=TALL, environment=environment)
    with Client(said.url, "") as client:
        pages = [len(record.turn_ids) for record in client.reads(said.agent) if record.caller_agent_id == reader]
    assert pages == [LIMIT, LIMIT]


def test_all_asks_nothing(search: Sitting) -> None:
    ended = search("--all", keys=[])
    assert shown(ended) == list(range(TURNS))


def test_a_dumb_terminal_is_not_asked(search: Sitting) -> None:
    ended = search(keys=[], environment={"TERM": "dumb"})
    assert shown(ended) == list(range(LIMIT))
    assert ended.err.startswith("there is more: ")


@pytest.mark.parametrize("where", ["piped", "terminal"])
def test_without_somebody_at_a_terminal_one_page_and_how_to_go_on(where: str, said: Said, request: pytest.FixtureRequest) -> None:
    command: Command = request.getfixturevalue(where)
    arguments = ("search", said.word, "--limit", str(LIMIT), "--url", said.url, "--as", said.agent)
    seen: list[int] = []
    cursor: tuple[str, ...] = ()
    while True:
        ended = command(*arguments, *cursor)
        seen += shown(ended)
        more = re.fullmatch(r"there is more: --limit .*, --cursor (\S+) prints the next page, --all prints all\n", ended.err)
        if more is None:
            break
        cursor = ("--cursor", more[1])
    assert ended.err == ""
    assert seen == list(range(TURNS))
    assert shown(command(*arguments, "--all")) == seen
