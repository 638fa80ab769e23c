"""Importing files at the start: every turn reaches the writer, a refused one takes no other along, every line is accounted for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from aforesaid.formats import PathError
from aforesaid_server.access import Call
from aforesaid_server.api.files import FileImport, FileTally
from aforesaid_server.api.importing import BATCH_TURNS
from aforesaid_server.errors import InvalidArgument, Stopped, Unavailable
from aforesaid_server.ingest import ImportItem, ImportTally
from tests.api.fakes import FakeCore

CALL = Call("ImportTurns", "serve", "r")


def _chat(folder: Path, name: str, turns: int, extra: str = "") -> Path:
    """Writes a conversation."""
    lines = [json.dumps({"role": "user", "content": f"turn {n} of {name}"}) for n in range(turns)]
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(lines) + "\n" + extra)
    return path


def _names(core: FakeCore) -> list[tuple[str, int]]:
    items = [item.conversation for batch in core.batches for item in batch]
    return [(item.conversation_id.rpartition("/")[2], len(item.turns)) for item in items]


def _run(core: FakeCore, *paths: Path) -> tuple[FileTally, list[str]]:
    told: list[str] = []
    return FileImport(core, CALL, told.append).run(paths), told


def test_all_that_lies_under_the_paths_is_taken(tmp_path: Path, core: FakeCore) -> None:
    _chat(tmp_path, "one", 2)
    _chat(tmp_path, "two", 1, extra='{"role": "user", "cont')
    (tmp_path / "notes.txt").write_text("nothing of ours")
    tally, told = _run(core, tmp_path)
    assert _names(core) == [("one.jsonl", 2), ("two.jsonl", 1)]
    assert (tally.files, tally.lines, tally.taken, tally.turns.added) == (2, 4, 3, 3)
    assert sum(tally.lines_skipped.values()) == 1
    assert sum(tally.files_left_out.values()) == 1
    lines = list(tally.summary())
    assert lines[0] == "imported 2 files: 3 turns added, 0 replaced, 0 unchanged; 3 of 4 lines taken"
    assert any("lines skipped: 1 (" in line for line in lines)
    assert lines[-1] == f"  files left out: 1 (no known format): {tmp_path}/notes.txt"
    assert told == ["read one.jsonl: 2 turns of 2 lines", "read two.jsonl: 1 turns of 2 lines"]


def test_the_summary_is_short_and_safe() -> None:
    tally = FileTally()
    tally.lines_skipped.update({"mode: no conversation text": 50, "not JSON": 30, "user: no conversation text": 20})
    for name in ("a", "b\x1b", "c", "d", "e"):
        tally.leave_out(Path(f"/x/{name}"), "no known format")
    assert list(tally.summary())[1:] == [
        "  lines skipped: 70 (without conversation text)",
        "  lines skipped: 30 (not JSON)",
        "  files left out: 5 (no known format): /x/a, /x/b?, /x/c and 2 more",
    ]


@pytest.mark.parametrize("field", ["added", "replaced", "unchanged"])
def test_an_import_is_empty_where_the_store_has_none_of_its_turns(field: str) -> None:
    tally = FileTally(files=1, lines=1, taken=1)
    assert tally.empty
    setattr(tally.turns, field, 1)
    assert not tally.empty


def test_one_refused_conversation_takes_no_other_with_it(tmp_path: Path, core: FakeCore) -> None:
    def take(items: Sequence[ImportItem], tally: ImportTally) -> None:
        if any(item.conversation.conversation_id.endswith("b.jsonl") for item in items):
            raise InvalidArgument("conversation_id", "is b")
        core.batches.append(list(items))
        tally.added += sum(len(item.conversation.turns) for item in items)

    core.take = take
    for name in "abc":
        _chat(tmp_path, name, 2)
    tally, _ = _run(core, tmp_path)
    assert _names(core) == [("a.jsonl", 2), ("c.jsonl", 2)]
    assert (tally.turns.added, list(tally.turns.frozen().values())) == (4, [2])
    assert list(tally.summary())[-1] == "  turns left out: 2 (conversation_id: is b)"


def test_transactions_are_bounded(tmp_path: Path, core: FakeCore) -> None:
    """Many short turns are one chunk of the format."""
    tally, _ = _run(core, _chat(tmp_path, "one", 2 * BATCH_TURNS + 7))
    assert _names(core) == [("one.jsonl", BATCH_TURNS), ("one.jsonl", BATCH_TURNS), ("one.jsonl", 7)]
    assert len(core.batches) == 3
    assert tally.turns.added == 2 * BATCH_TURNS + 7


def test_a_store_that_cannot_answer_ends_the_import(tmp_path: Path, core: FakeCore) -> None:
    def fail(*_: object) -> None:
        raise Unavailable("the store cannot answer")

    core.take = fail
    with pytest.raises(Unavailable):
        _run(core, _chat(tmp_path, "one", 2))


def test_it_stops_when_told(tmp_path: Path, core: FakeCore) -> None:
    call = Call("ImportTurns", "serve", "r")
    call.patience.hang_up()
    with pytest.raises(Stopped):
        FileImport(core, call, lambda _: None).run([_chat(tmp_path, "one", 1)])
    assert not core.batches


def test_a_path_that_is_not_there(tmp_path: Path, core: FakeCore) -> None:
    with pytest.raises(PathError):
        _run(core, tmp_path / "nothing")
