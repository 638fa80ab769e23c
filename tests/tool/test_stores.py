"""The stores that keep conversations in a dict and in a folder: order, ids, what cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from aforesaid import InvalidArgument
from aforesaid.conversation_stores import DictConversationStore, FileConversationStore
from aforesaid.transcript_tool import ConversationStore, transcript_search_tool
from tests.tool.plain import said


def lines(store: ConversationStore, query: str, **input_: object) -> list[str]:
    return transcript_search_tool(store).execute({"query": query, **input_}).split("\n")


def test_of_a_dict_the_last_comes_first() -> None:
    conversations: dict[Any, object] = {"first": [said("user", "a")], 2: {"messages": [said("user", "a")]}}
    store = DictConversationStore(conversations)
    assert lines(store, "A") == ["2#0 user: a", "first#0 user: a"]
    assert lines(store, "A", conversation_id="2") == ["2#0 user: a"]
    conversations["last"] = [said("user", "b"), said("user", "a")]
    assert lines(store, "A")[0] == "last#1 user: a"
    assert store.get("nowhere") is None


def test_a_dict_is_a_map() -> None:
    given: Any = [("a", [])]
    with pytest.raises(InvalidArgument, match=r"^conversations: must be a map, and is of type list$"):
        DictConversationStore(given)


class Folder:
    """A folder of conversations; each file was changed a second after the one before, unless it is told when."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = 1_700_000_000

    def write(self, name: str, content: object, at: int = 0) -> None:
        file = self.path / name
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        self.clock += 1
        os.utime(file, (at or self.clock, at or self.clock))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_of_a_folder_the_file_that_was_changed_last_comes_first(folder: Folder) -> None:
    folder.write("b.json", [said("user", "hello 1")])
    folder.write("a.json", {"title": "x", "messages": [said("user", "hello 2")]})
    folder.write("d.json", {"turns": [said("user", "hello 3")]}, at=5)
    folder.write("c.json", [said("user", "hello 4")], at=5)
    store = FileConversationStore(folder.path)
    assert lines(store, "hello") == ["a#0 user: hello 2", "b#0 user: hello 1", "c#0 user: hello 4", "d#0 user: hello 3"]
    folder.write("b.json", [said("user", "no"), said("assistant", "hello 5")])
    assert lines(store, "HELLO")[:2] == ["b#1 assistant: hello 5", "a#0 user: hello 2"]
    (folder.path / "b.json").unlink()
    assert lines(store, "hello")[0] == "a#0 user: hello 2"


def test_ids_are_the_names_of_files(folder: Folder) -> None:
    names = ["with blank", "zürich", "a.b", "x#1", ".hidden", "記憶"]
    for name in names:
        folder.write(f"{name}.json", [said("user", name)])
    for other in (".json", "notes.txt", "c.jsonl", "d.JSON", "json"):
        folder.write(other, [said("user", "a")])
    (folder.path / "sub.json").mkdir()
    (folder.path / "below").mkdir()
    Folder(folder.path / "below").write("e.json", [said("user", "a")])
    store = FileConversationStore(str(folder.path))
    assert sorted(store.list()) == sorted(names)
    for name in names:
        assert lines(store, name, conversation_id=name) == [f"{name}#0 user: {name}"]


def test_an_id_never_leads_out_of_the_folder(folder: Folder, tmp_path: Path) -> None:
    folder.write("secret.json", [said("user", "a")])
    inside = tmp_path / "inside"
    inside.mkdir()
    store = FileConversationStore(inside)
    for name in ("../secret", f"{tmp_path}/secret", "./../secret", "..", "", "a\0b", "sub/../../secret", "x/"):
        assert store.get(name) is None


def test_files_that_cannot_be_read_are_told(folder: Folder) -> None:
    folder.write("good.json", [said("user", "hello")])
    folder.write("config.json", {"name": "hello", "version": 1})
    folder.write("broken.json", b'{"messages": [')
    folder.write("deep.json", b"[" * 100_000)
    (folder.path / "gone.json").symlink_to(folder.path / "nowhere")
    (folder.path / "loop.json").symlink_to(folder.path / "loop.json")
    os.mkfifo(folder.path / "pipe.json")
    os.utime(folder.path / "pipe.json", (1, 1))
    told = (
        "(not searched: deep is no conversation: nested too deeply; broken is no conversation: malformed JSON; "
        "config is of type dict and holds no list of messages; pipe cannot be read: not a regular file; "
        "gone is a link that leads nowhere; and 1 more)"
    )
    assert lines(FileConversationStore(folder.path), "hello") == ["good#0 user: hello", told]
    assert lines(FileConversationStore(folder.path), "nothing") == ["no matches", told]


def test_files_are_read_as_they_are(folder: Folder) -> None:
    folder.write("bom.json", b"\xef\xbb\xbf" + json.dumps([said("user", "hello bom")]).encode())
    folder.write("latin.json", '[{"role": "user", "content": "hello caf\xe9"}]'.encode("latin-1"))
    folder.write("half.json", b'[{"role": "user", "content": "hello \\ud83d"}]')
    call = b'[{"role": "assistant", "content": [{"type": "tool_use", "input": {"hello": 1.10, "big": 1e3}}]}]'
    folder.write("number.json", call)
    assert lines(FileConversationStore(folder.path), "hello") == [
        'number#0 assistant: {"hello":1.10,"big":1e3}',
        "half#0 user: hello \ufffd",
        "latin#0 user: hello caf\ufffd",
        "bom#0 user: hello bom",
    ]


def test_nothing_in_the_folder_is_changed(folder: Folder) -> None:
    folder.write("a.json", [said("user", "hello")])
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.iterdir()}
    lines(FileConversationStore(folder.path), "hello")
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.iterdir()} == before


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"^path: there is no folder .*/nowhere$"):
        FileConversationStore(tmp_path / "nowhere")
    store = FileConversationStore(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(OSError, match="No such file"):
        lines(store, "hello")
