"""The tantivy engine and its folder: opened again, written by one alone, damaged, and never half of a batch."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aforesaid_server.index import Batch, Document
from aforesaid_server.index.tantivy import Damaged, TantivyIndex
from tests.index.said import ALL, OWN_TOO, ask, batch, document, matches, near, newest


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[TantivyIndex]:
    opened = TantivyIndex(tmp_path)
    yield opened
    opened.close()


def everything(engine: TantivyIndex) -> list[object]:
    head, lists = engine.lists()
    partial = {one.number for one in lists.partial(ask("zebra okapi"), ALL, every_word=False)}
    return [head, engine.head, matches(lists), matches(lists, '"red zebra"'), near(lists, "ebra"), partial]


def test_opened_again_it_lists_the_same(tmp_path: Path) -> None:
    first = TantivyIndex(tmp_path)
    first.apply(batch(4, document(1, "a red zebra"), document(2, "zebra"), document(3, "zebraland"), document(4, "okapi")))
    first.apply(batch(7, document(6, "red zebras", conversation=2), document(7, "unzebra"), forget=[2]))
    before = everything(first)
    assert before[:2] == [7, 7]
    assert before[2] == [1, 6]
    first.close()
    again = TantivyIndex(tmp_path)
    assert everything(again) == before
    # It goes on where it was: what is forgotten stays so, what is new comes to it.
    again.apply(batch(9, document(8, "zebra okapi"), forget_conversations=[2]))
    assert matches(again.lists()[1]) == [8, 1]
    again.close()


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    first = TantivyIndex(tmp_path)
    with pytest.raises(Damaged):
        TantivyIndex(tmp_path)
    first.apply(batch(1, document(1)))
    first.close()
    again = TantivyIndex(tmp_path)
    assert matches(again.lists()[1]) == [1]
    again.close()


def test_an_empty_folder_is_an_empty_index(tmp_path: Path) -> None:
    engine = TantivyIndex(tmp_path / "made" / "by it")
    assert engine.head == 0
    assert engine.answers()
    engine.close()


def test_a_batch_that_fails_leaves_nothing(engine: TantivyIndex) -> None:
    engine.apply(batch(1, document(1)))

    def breaking() -> Iterator[Document]:
        yield document(2)
        raise OSError("the store is gone")

    with pytest.raises(OSError, match="the store is gone"):
        engine.apply(Batch(3, breaking(), forget=[1]))
    assert (engine.head, matches(engine.lists()[1])) == (1, [1])
    # Nor is it in the next one.
    engine.apply(batch(4, document(4)))
    assert (engine.head, matches(engine.lists()[1])) == (4, [4, 1])


def test_words_of_a_batch_that_failed_are_not_lost(engine: TantivyIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vocabulary is full; once there is room, the same turns come again, and their letters are found."""

    def full(_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(engine.vocabulary, "add", full)
        with pytest.raises(OSError, match="no space"):
            engine.apply(batch(1, document(1, "zebraland")))
    engine.apply(batch(1, document(1, "zebraland")))
    assert near(engine.lists()[1], "ebra") == [1]


def test_words_come_back_with_a_turn_after_all_that_said_them_were_forgotten(engine: TantivyIndex) -> None:
    for head in range(1, 9, 2):
        engine.apply(batch(head, document(head, "zebraland")))
        assert near(engine.lists()[1], "ebra") == [head]
        engine.apply(batch(head + 1, forget=[head]))
        assert near(engine.lists()[1], "ebra") == []


def test_many_batches_merge_into_the_same(engine: TantivyIndex) -> None:
    for number in range(1, 41):
        engine.apply(batch(number, document(number, "zebra " + "pad " * (number % 3)), forget=[number - 7] if number > 7 else []))
    alive = sorted(range(34, 41), key=lambda number: (number % 3, -number))
    assert matches(engine.lists()[1]) == alive
    assert engine.head == 40


# -- turns that are two documents


def test_a_turn_with_own_searches_is_found_either_way_and_goes_as_one(engine: TantivyIndex) -> None:
    engine.apply(
        batch(3, document(1, "zebra okapi fox", left=["zebra", "fox"]), document(2, "okapi"), document(3, "okapi", left=[]))
    )
    lists = engine.lists()[1]
    assert [matches(lists, word) for word in ("zebra", "okapi", "fox", '"zebra fox"')] == [[1], [2], [1], []]
    assert [matches(lists, word, OWN_TOO) for word in ("zebra", "okapi", '"zebra okapi"')] == [[1], [3, 2, 1], [1]]
    assert (newest(lists, "okapi"), newest(lists, "okapi", OWN_TOO)) == ([2], [3, 2, 1])
    assert (near(lists, "kapi"), near(lists, "kapi", OWN_TOO)) == ([2], [3, 2, 1])
    # Put again as a turn like any other, it is one.
    engine.apply(batch(4, document(1, "zebra okapi fox"), forget=[1]))
    assert matches(engine.lists()[1], '"zebra okapi"') == matches(engine.lists()[1], '"zebra okapi"', OWN_TOO) == [1]
    engine.apply(batch(5, document(1, "zebra okapi fox", left=["fox"])))
    assert (matches(engine.lists()[1]), matches(engine.lists()[1], reach=OWN_TOO)) == ([], [1])
    engine.apply(batch(6, forget=[1]))
    assert matches(engine.lists()[1], "fox") == matches(engine.lists()[1], "fox", OWN_TOO) == []
    engine.apply(batch(7, forget_conversations=[1]))
    assert matches(engine.lists()[1], "okapi", OWN_TOO) == []


def test_words_past_the_limit_are_found_where_own_searches_make_room(engine: TantivyIndex) -> None:
    """Of a turn the first 262,144 bytes are searched; those of its own searches count only where they are asked for."""
    text = "okapi " * 43_690
    engine.apply(batch(1, document(1, text + "zebraland", left=["zebraland"])))
    lists = engine.lists()[1]
    assert (near(lists, "ebra"), near(lists, "ebra", OWN_TOO)) == ([1], [])
    assert (matches(lists, "zebraland"), matches(lists, "zebraland", OWN_TOO)) == ([1], [])


# -- damage: what is done to a folder, and that opening it raises Damaged


def largest(folder: Path, kind: str) -> Path:
    """The largest file of that kind: none of a segment that holds the marker alone."""
    return max(folder.glob(f"*.{kind}"), key=lambda path: path.stat().st_size)


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def swap(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())


def empty(path: Path) -> None:
    path.write_bytes(b"")


def scribble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    path.write_bytes(bytes(data))


AT_ONCE: dict[str, Callable[[Path], None]] = {
    "turns: meta.json cut": lambda folder: cut(folder / "turns/meta.json"),
    "turns: meta.json empty": lambda folder: empty(folder / "turns/meta.json"),
    "turns: meta.json of another": lambda folder: swap(folder / "vocabulary/meta.json", folder / "turns/meta.json"),
    "vocabulary: meta.json cut": lambda folder: cut(folder / "vocabulary/meta.json"),
    "turns: a segment's dictionary gone": lambda folder: largest(folder / "turns", "term").unlink(),
    "turns: a segment's postings gone": lambda folder: largest(folder / "turns", "idx").unlink(),
    "turns: a segment's postings cut": lambda folder: cut(largest(folder / "turns", "idx")),
    "turns: a segment's keys gone": lambda folder: largest(folder / "turns", "fast").unlink(),
    "turns: a segment's store gone": lambda folder: largest(folder / "turns", "store").unlink(),
    "turns: a segment's places zeroed": lambda folder: scribble(largest(folder / "turns", "pos")),
    "turns: a segment's dictionary zeroed": lambda folder: scribble(largest(folder / "turns", "term")),
    "vocabulary: a segment's store gone": lambda folder: largest(folder / "vocabulary", "store").unlink(),
    "vocabulary: a segment's postings cut": lambda folder: cut(largest(folder / "vocabulary", "idx")),
    "vocabulary: a segment's dictionary gone": lambda folder: largest(folder / "vocabulary", "term").unlink(),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with some turns and nobody in it."""
    folder = tmp_path_factory.mktemp("sound")
    engine = TantivyIndex(folder)
    for number in range(1, 4):
        engine.apply(batch(number, document(number, f"zebra okapi{number} " + "pad " * 200)))
    engine.close()
    return folder


@pytest.mark.parametrize("damage", AT_ONCE)
def test_a_damaged_folder_is_not_opened(damage: str, sound: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "index")
    AT_ONCE[damage](folder)
    with pytest.raises(Damaged):
        TantivyIndex(folder)


def test_turns_without_their_list_of_segments_are_none(sound: Path, tmp_path: Path) -> None:
    """Then the head is 0, and all is read again from the log."""
    folder = shutil.copytree(sound, tmp_path / "index")
    (folder / "turns/meta.json").unlink()
    engine = TantivyIndex(folder)
    assert everything(engine) == [0, 0, [], [], [], set()]
    engine.apply(batch(1, document(1)))
    assert matches(engine.lists()[1]) == [1]
    engine.close()
