"""`aforesaid delete` against the service itself: asked for on a terminal, told by --yes elsewhere, and gone for good."""

from __future__ import annotations

from uuid import uuid4

import pytest

import aforesaid
from aforesaid import Client, Conversation, Text, Turn
from aforesaid.cli.place import Place
from tests.cli.conftest import Command, Ended, Sitting

# 2026-03-04 10:22 UTC.
TIME = 1_772_619_720_000_000
ASKS = "Delete it for good? [y/N]: "


@pytest.fixture
def agent() -> str:
    return f"-delete/{uuid4().hex[:12]}"


@pytest.fixture
def user(service_url: str, agent: str) -> Client:
    client = Client(service_url, "")
    for name in ("keep", "talk\x1b"):
        client.write(Conversation(name, agent, "About\npages \x1b[5m", (Turn("user", (Text(agent),), "t", TIME),)))
    return client


def left(client: Client, agent: str) -> list[str]:
    return sorted(conversation.conversation_id for conversation in client.conversations(agent))


def test_with_yes_it_is_gone_and_stays_so(user: Client, agent: str, service_url: str, piped: Command) -> None:
    place = Place(agent, "talk\x1b")
    assert piped("delete", str(place), "--yes", "--url", service_url) == Ended(0, f"deleted {place}\n", "")
    assert left(user, agent) == ["keep"]
    assert not any(hit.conversation_id == "talk\x1b" for page in user.search(f'"{agent}"') for hit in page.matches)
    with pytest.raises(aforesaid.FailedPrecondition):
        user.append("talk\x1b", [Turn("user", (Text("again"),))], agent_id=agent)
    again = piped("delete", str(place), "--yes", "--url", service_url)
    assert (again.code, again.out) == (2, "")
    assert again.err.startswith("aforesaid: conversation_id: ")


@pytest.mark.parametrize(
    ("typed", "code", "kept"), [("y\n", 0, ["keep"]), ("n\n", 1, ["keep", "talk\x1b"]), ("\n", 1, ["keep", "talk\x1b"])]
)
def test_on_a_terminal_somebody_is_asked(
    typed: str, code: int, kept: list[str], user: Client, agent: str, service_url: str, sitting: Sitting
) -> None:
    place = Place(agent, "talk\x1b")
    ended = sitting("delete", str(place), "--url", service_url, keys=[typed], asks=ASKS)
    assert (ended.code, ended.err) == (code, "")
    heading, question, *rest = ended.out.splitlines()
    assert heading.startswith(f"{agent} · About pages ␛[5m · 1 turn · ")
    assert question.startswith(ASKS)
    assert rest == ([f"deleted {place}"] if code == 0 else [])
    assert left(user, agent) == kept


def test_ctrl_c_keeps_it(user: Client, agent: str, service_url: str, sitting: Sitting) -> None:
    ended = sitting("delete", str(Place(agent, "keep")), "--url", service_url, keys=["\x03"], asks=ASKS)
    assert ended.code == 130
    assert ended.out.endswith("aforesaid: interrupted\n")
    assert "keep" in left(user, agent)


def test_an_agent_deletes_its_own(user: Client, agent: str, service_url: str, here: Command) -> None:
    assert here("delete", "keep", "--yes", "--url", service_url, "--as", agent) == Ended(0, "deleted keep\n", "")
    assert left(user, agent) == ["talk\x1b"]
    refused = here("delete", str(Place(agent, "talk\x1b")), "--yes", "--url", service_url, "--as", f"{agent}-other")
    assert (refused.code, refused.out) == (2, "")
    assert left(user, agent) == ["talk\x1b"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("a/c",), "yes: must be given where nobody can be asked: a conversation is deleted for good"),
        (("a/c:3", "--yes"), "id: names a turn, and only a whole conversation can be deleted: a/c:3"),
        (("a/c@t", "--yes"), "id: names a turn, and only a whole conversation can be deleted: a/c@t"),
        (("a/b/c", "--yes"), "id: must be AGENT/CONVERSATION:SEQ, as search prints it: a/b/c"),
        (("a/c", "--yes", "--scope", "x"), "scope: must be KEY=VALUE: x"),
        (
            ("c", "--yes"),
            "id: names no agent, as it must where no agent asks: c; `aforesaid conversations` lists ids",
        ),
    ],
)
def test_what_is_wrong_is_told_and_nothing_deleted(arguments: tuple[str, ...], told: str, service_url: str, piped: Command) -> None:
    assert piped("delete", *arguments, "--url", service_url) == Ended(2, "", f"aforesaid: {told}\n")
