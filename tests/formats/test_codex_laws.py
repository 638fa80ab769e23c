"""What holds for every Codex session, whatever is in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aforesaid.formats.codex import REMOVED
from aforesaid.model import Text, Turn
from tests.formats.codex_lines import (
    ID,
    assistant,
    assistant_event,
    event,
    header,
    item,
    line,
    read_one,
    rollout,
    texts,
    turn_begins,
    user,
    user_event,
)
from tests.formats.test_laws import check, files, read
from tests.formats.writing import text_of
from tests.text.effort import examples

words = st.sampled_from(["go", "on", "continue", "<skill>x</skill>", "<environment_context>e</environment_context>go", "\ud800 \0"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "id"]), inner, max_size=3),
    max_leaves=6,
)
says = st.sampled_from([user, assistant, user_event, assistant_event])
spoken = st.builds(lambda say, text: say(text), says, words)
marks = st.sampled_from(
    [
        event("task_complete", turn_id="t"),
        event("turn_aborted"),
        event("thread_rolled_back", num_turns=1),
        event("thread_rolled_back", num_turns=2),
        line("turn_context", turn_id="t"),
        turn_begins("t"),
        item("function_call", name="shell", arguments="{}", call_id="c"),
        item("function_call_output", call_id="c", output="ok"),
        item("reasoning", summary=[{"type": "summary_text", "text": "on"}]),
        event("agent_reasoning", text="on"),
        event("exec_command_end", call_id="c", command=["ls"], aggregated_output="ok"),
        header("another", 3),
    ]
)
kinds = st.sampled_from(
    ["response_item", "event_msg", "session_meta", "compacted", "turn_context", "inter_agent_communication", "novel"]
)
payloads = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "message",
                "function_call",
                "function_call_output",
                "reasoning",
                "web_search_call",
                "user_message",
                "thread_rolled_back",
            ]
        )
        | anything
    },
    optional=dict.fromkeys(
        (
            "action arguments call_id content cwd forked_from_id goal id images input item message name num_turns output "
            "parent_thread_id result results role source summary thread_name timestamp turn_id"
        ).split(),
        anything,
    ),
)
wild = st.fixed_dictionaries(
    {"type": kinds | anything, "payload": payloads | anything}, optional={"timestamp": anything, "ordinal": anything}
)
lines = spoken | marks | wild


@given(data=files(lines), chunk_bytes=st.integers(30, 200), block_bytes=st.integers(1, 50))
@examples(100)
def test_every_line_of_a_session_has_its_place(data: bytes, chunk_bytes: int, block_bytes: int) -> None:
    check(data, "codex", chunk_bytes, block_bytes)


@given(records=st.lists(spoken | marks, max_size=12), cut=st.floats(0, 1))
@examples(150)
def test_a_file_that_grows_only_adds_turns_and_takes_some_back(records: list[dict[str, Any]], cut: float) -> None:
    whole = text_of([header(), *records]).encode("utf-8", "surrogatepass")
    part = whole[: int(len(whole) * cut)]
    before, after = turns_in(part), turns_in(whole)
    assert list(after)[: len(before)] == list(before)
    for turn_id, turn in before.items():
        assert after[turn_id] in (turn, Turn("system", (Text(REMOVED),), turn_id, turn.created_at))


def turns_in(data: bytes) -> dict[str, Turn]:
    chunks, _, _ = read(data, "codex")
    return {turn.turn_id: turn for chunk in chunks for turn in chunk.conversation.turns}


@given(
    st.lists(
        st.tuples(st.sampled_from("ua"), st.sampled_from(["go", "on"]), st.sampled_from(["items", "events", "both"])), max_size=10
    )
)
@examples(150)
def test_each_message_comes_once_in_its_order(said: list[tuple[str, str, str]]) -> None:
    logs = {"u": (user, user_event), "a": (assistant_event, assistant)}
    in_items = {"u": 0, "a": 1}
    records: list[dict[str, Any]] = []
    for number, (who, text, where) in enumerate(said):
        both = [say(text) for say in logs[who]]
        kept = {"both": both, "items": [both[in_items[who]]], "events": [both[1 - in_items[who]]]}[where]
        # An end of the turn, as the program writes it, keeps two messages of one text apart that stand in one log each.
        records += [*kept, event("task_complete", turn_id=str(number))]
    with TemporaryDirectory() as folder:
        turns = read_one(rollout(Path(folder), header(), *records))
    assert [(turn.role[0], *words_of(turn)) for turn in turns] == [(who, text) for who, text, _ in said]


@given(st.lists(st.integers(0, 3), max_size=14))
@examples(150)
def test_turns_are_taken_back_whatever_was_taken_back_before(counts: list[int]) -> None:
    """0 is a prompt with its answer; another number takes so many prompts back, with all that came after the first of them."""
    records: list[dict[str, Any]] = []
    said: list[str] = []
    prompts: list[int] = []
    for number, count in enumerate(counts):
        if not count:
            prompts.append(len(said))
            said += [f"u:{number}", f"a:{number}"]
            records += [user(str(number)), assistant(str(number))]
            continue
        records.append(event("thread_rolled_back", num_turns=count))
        for place in range(prompts[-count:][0], len(said)) if prompts else ():
            said[place] = f"s:{REMOVED}"
        del prompts[-count:]
    with TemporaryDirectory() as folder:
        assert texts(read_one(rollout(Path(folder), header(), *records))) == said


def words_of(turn: Turn) -> Iterator[str]:
    yield from (part.text for part in turn.parts if isinstance(part, Text))


@given(records=st.lists(spoken | marks, max_size=10), times=st.integers(1, 2))
@examples(100)
def test_a_session_beside_its_forks_is_read_as_it_is_alone(records: list[dict[str, Any]], times: int) -> None:
    with TemporaryDirectory() as folder:
        path = rollout(Path(folder), header(), *records)
        alone = read_one(path)
        for number in range(times):
            name = f"other-{number}"
            fork = rollout(Path(folder), header(name, forked_from_id=ID), *records, session_id=name)
            assert read_one(fork) == []
            new = rollout(Path(folder), header(name, forked_from_id=ID), *records, user("new"), session_id=name)
            assert [list(words_of(turn)) for turn in read_one(new)] == [["new"]]
        assert read_one(path) == alone
