"""Which id and which place the turns of a request get, as contract.md says."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.store.naming import name_turns

# what the conversation has, by seq | what is given | what comes out
CASES = {
    "given ids stand": ([], ["a", "b"], [("a", 0), ("b", 1)]),
    "missing ids are filled in": ([], ["", ""], [("c:0", 0), ("c:1", 1)]),
    "behind what is there": (["a", "b"], ["", ""], [("c:2", 2), ("c:3", 3)]),
    "an id that is there keeps its place": (["a", "b"], ["b", "x"], [("b", 1), ("x", 2)]),
    "and takes no new one": (["a", "b"], ["", "a", ""], [("c:2", 2), ("a", 0), ("c:3", 3)]),
    "the second of one request": ([], ["a", "a", "a"], [("a", 0), ("c:1", 1), ("c:2", 2)]),
    "the second of one that is there": (["a"], ["a", "a"], [("a", 0), ("c:1", 1)]),
    "given later in the request": ([], ["", "c:0"], [("c:0:0", 0), ("c:0", 1)]),
    "given later, twice over": ([], ["", "c:0", "c:0:0"], [("c:0:0:0", 0), ("c:0", 1), ("c:0:0", 2)]),
    "given later, though only a second": ([], ["x", "", "x", "c:1"], [("x", 0), ("c:1:1", 1), ("c:2", 2), ("c:1", 3)]),
    "had by the conversation": (["c:1"], [""], [("c:1:1", 1)]),
    "had and given": (["c:1"], ["", "c:1:1"], [("c:1:1:1", 1), ("c:1:1", 2)]),
    "had and given again": (["c:1"], ["", "c:1"], [("c:1:1", 1), ("c:1", 0)]),
    "the place of its own, not the index": (["a", "b"], ["a", "b", ""], [("a", 0), ("b", 1), ("c:2", 2)]),
    "case and marks tell ids apart": (["a", "é"], ["A", "e\u0301", "a\0"], [("A", 2), ("e\u0301", 3), ("a\0", 4)]),
    "nothing": (["a"], [], []),
}


def named(conversation_id: str, has: list[str], ids: list[str]) -> list[tuple[str, int]]:
    def taken(some: Collection[str]) -> set[str]:
        return set(has).intersection(some)

    held = {turn_id: has.index(turn_id) for turn_id in ids if turn_id in has}
    return name_turns(conversation_id, ids, held=held, count=len(has), taken=taken)


@pytest.mark.parametrize(("has", "ids", "expected"), CASES.values(), ids=CASES.keys())
def test_ids_and_places(has: list[str], ids: list[str], expected: list[tuple[str, int]]) -> None:
    assert named("c", has, ids) == expected


IDS = st.sampled_from(["", "", "a", "b", "c", "c:0", "c:1", "c:2", "c:1:1", "c:2:2", ":0", ":1", "0"])


@given(st.sampled_from(["c", "", "c:1", ":"]), st.lists(IDS.filter(bool), unique=True, max_size=4), st.lists(IDS, max_size=8))
def test_every_turn_has_one_id_and_one_place(conversation_id: str, has: list[str], ids: list[str]) -> None:
    found = named(conversation_id, has, ids)
    assert len({turn_id for turn_id, _ in found}) == len({seq for _, seq in found}) == len(ids)
    for place, (wanted, (turn_id, seq)) in enumerate(zip(ids, found, strict=True)):
        if wanted and wanted not in ids[:place]:
            assert turn_id == wanted
            assert seq == has.index(wanted) if wanted in has else seq >= len(has)
        else:
            assert turn_id not in has
            assert turn_id not in ids
            assert turn_id.startswith(f"{conversation_id}:{seq}")
            assert set(turn_id.removeprefix(conversation_id).split(":")) == {"", str(seq)}
    new = [seq for _, seq in found if seq >= len(has)]
    assert new == list(range(len(has), len(has) + len(new)))
