"""The short id of a turn: read as it was written, whatever the ids hold, and left alone by shells."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid import InvalidArgument
from aforesaid.cli.place import Place, read_place
from tests.cli.conftest import SECONDS, bare, obeyed
from tests.conftest import missing

ANY_ID = st.text(st.characters(codec="utf-8") | st.sampled_from("/:@%#~ '\"$\\\n-*?[é日ㅤ"), min_size=1, max_size=30)
PLACES = st.one_of(
    st.builds(Place, st.just("") | ANY_ID, ANY_ID),
    st.builds(Place, st.just("") | ANY_ID, ANY_ID, st.integers(0, 2**31 - 1)),
    st.builds(Place, st.just("") | ANY_ID, ANY_ID, turn_id=ANY_ID),
)


@pytest.mark.parametrize(
    ("place", "written"),
    [
        (Place("shop", "5b0c", 11), "shop/5b0c:11"),
        (Place("shop", "5b0c"), "shop/5b0c"),
        (Place("", "5b0c", 0), "5b0c:0"),
        (Place("-srv-shop", "c_1.x", 3), "-srv-shop/c_1.x:3"),
        (Place("--help", "--help", 3), "%2D-help/--help:3"),
        (Place("", "--", 3), "%2D-:3"),
        (Place("shop/agent-1", "runs/chat.jsonl:3", 7), "shop%2Fagent-1/runs%2Fchat.jsonl%3A3:7"),
        (Place("a", "c", turn_id="chat.jsonl:3@x"), "a/c@chat.jsonl%3A3%40x"),
        (Place("größe", "日本語", 1), "größe/日本語:1"),
        (Place("a b", "c#d%", 1), "a%20b/c%23d%25:1"),
        # Composed otherwise, invisible, or of another width: it would not survive being copied.
        (Place("e\u0301", "\u3164", 1), "e%CC%81/%E3%85%A4:1"),
        (Place("\u1100", "ｗ", 1), "%E1%84%80/%EF%BD%97:1"),
    ],
)
def test_how_a_place_is_written(place: Place, written: str) -> None:
    assert str(place) == written
    assert read_place(written) == place


@given(PLACES)
def test_what_is_written_is_read_again(place: Place) -> None:
    assert read_place(str(place)) == place


@given(PLACES)
def test_a_place_holds_nothing_that_a_shell_or_a_terminal_obeys(place: Place) -> None:
    written = str(place)
    assert obeyed(written) == []
    assert all(char.isalnum() or char in "-._+%/:@" for char in written)


@pytest.mark.parametrize(
    "written", ["", "/", "a/", "a/b/c", "a/b:", "a/b:-1", "a/b:x", "a/b@", "a%2/b", "a%zz/b", "a/b:1:2", "a/b:1@c"]
)
def test_what_names_no_place_is_refused_with_its_value(written: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read_place(written)
    assert caught.value.message == f"id: must be AGENT/CONVERSATION:SEQ, as search prints it: {written}"


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="id: must be UTF-8 where it is escaped: a/%FF:1"):
        read_place("a/%FF:1")


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_shells_hand_it_over_as_it_is(shell: str) -> None:
    found = shutil.which(shell)
    if found is None:
        missing(f"no {shell} on this machine")
    written = str(Place("-srv ~#$*?[a]{b,c}'\"\\!größe日", "x/y:z@&|;<>()=^`", 7))
    done = subprocess.run([found, "-c", f"echo {written}"], capture_output=True, timeout=SECONDS, check=True, env=bare(None))
    assert done.stdout.decode() == written + "\n"
