"""The tantivy engine and its folder: opened again, written by one alone, damaged, and never half of a batch."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aforesaid.model import File, Text, ToolCall, ToolResult
from aforesaid_server.index import Batch, Document, Reach
from aforesaid_server.index.tantivy import Damaged, TantivyIndex
from aforesaid_server.text.transcript import Kind
from tests.index.said import ALL, OWN_TOO, ask, batch, document, held, holding, matches, near, newest, of_kinds, of_parts


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


# -- turns of several kinds

CALLS = Kind.TOOL_CALL
MIXED = (Text("zebra"), ToolCall("Bash", '{"command": "okapi"}'), ToolResult("zebra quagga"), Text("fox"))


def test_a_turn_of_several_kinds_is_found_by_each_and_goes_as_one(engine: TantivyIndex) -> None:
    engine.apply(batch(3, of_parts(1, *MIXED), of_parts(2, Text("okapi fox")), of_parts(3, ToolCall("Bash", "fox"))))
    lists = engine.lists()[1]
    expected: dict[tuple[Kind, ...], list[list[int]]] = {
        # kinds: who says zebra; okapi; fox; "zebra okapi"; "zebra fox"
        (): [[1], [2, 1], [3, 2, 1], [1], []],
        (Kind.TEXT,): [[1], [2], [2, 1], [], []],
        (CALLS,): [[], [1], [3], [], []],
        (Kind.TEXT, CALLS): [[1], [2, 1], [3, 2, 1], [1], []],
        (Kind.TOOL_RESULT_TEXT,): [[1], [], [], [], []],
        (Kind.TOOL_RESULT_TEXT, Kind.FILE): [[1], [], [], [], []],
        (Kind.TOOL_RESULT_JSON,): [[], [], [], [], []],
        (Kind.FILE,): [[], [], [], [], []],
        tuple(Kind): [[1], [2, 1], [3, 2, 1], [1], []],
    }
    asked = ("zebra", "okapi", "fox", '"zebra okapi"', '"zebra fox"')
    for kinds, numbers in expected.items():
        reach = of_kinds(*kinds)
        assert [sorted(matches(lists, query, reach), reverse=True) for query in asked] == numbers, kinds
        assert newest(lists, "fox", reach, limit=1) == numbers[2], kinds
        assert sorted(near(lists, "kapi", reach), reverse=True) == numbers[1], kinds
        assert lists.occurring(ask("zebra okapi").query.order, reach) == {
            word for word, found in zip(asked, numbers[:2], strict=False) if found
        }
    # An exclusion is judged on these parts too.
    assert matches(lists, "zebra -okapi", of_kinds(Kind.TEXT)) == [1]
    assert matches(lists, "zebra -okapi") == matches(lists, "zebra -okapi", of_kinds(Kind.TEXT, CALLS)) == []
    # All its documents go, and come, together.
    engine.apply(batch(4, of_parts(1, Text("zebra okapi"))))
    lists = engine.lists()[1]
    assert [matches(lists, "okapi", of_kinds(kind)) for kind in (Kind.TEXT, CALLS)] == [[2, 1], []]
    engine.apply(batch(6, of_parts(6, *MIXED, conversation=2), forget=[1, 3]))
    engine.apply(batch(7, forget_conversations=[2]))
    lists = engine.lists()[1]
    assert [matches(lists, word, of_kinds(*Kind)) for word in ("zebra", "quagga", "fox")] == [[], [], [2]]


def test_kinds_without_own_searches(engine: TantivyIndex) -> None:
    own = (ToolCall("search_transcripts", "zebra okapi", "1"), ToolResult("zebra quagga", "1"))
    mine = of_parts(1, Text("fox"), *own, ToolCall("Bash", "okapi"), answers={2: "search_transcripts"})
    engine.apply(batch(2, mine, of_parts(2, *own)))  # of the second one it is not known what its result answers
    lists = engine.lists()[1]
    results = Kind.TOOL_RESULT_TEXT
    expected = {  # what is said, in which kind: by whom, and by whom without own searches
        ("zebra", CALLS): ([2, 1], []),
        ("okapi", CALLS): ([2, 1], [1]),
        ('"okapi okapi"', CALLS): ([], []),
        ("zebra", results): ([2, 1], [2]),
        ("fox", Kind.TEXT): ([1], [1]),
        ('"okapi zebra"', CALLS | results): ([2, 1], []),
    }
    for (query, kinds), (said, left) in expected.items():
        assert sorted(matches(lists, query, of_kinds(kinds, own_searches=True)), reverse=True) == said, query
        assert matches(lists, query, of_kinds(kinds)) == left, query
    engine.apply(batch(3, of_parts(2, *own, answers={1: "search_transcripts"})))
    lists = engine.lists()[1]
    assert (matches(lists, "zebra", of_kinds(results)), matches(lists, "zebra", of_kinds(results, own_searches=True))) == (
        [],
        [2, 1],
    )


def test_a_turn_counts_once_however_many_documents_it_is(engine: TantivyIndex) -> None:
    engine.apply(batch(3, of_parts(1, *MIXED), document(2, "zebra", left=["fox"]), document(3)))
    assert engine.documents == 3
    engine.apply(batch(4, of_parts(4, *MIXED), forget=[1, 3]))
    assert engine.documents == 2
    engine.apply(batch(5, forget=[2, 4]))
    assert engine.documents == 0


def test_words_past_the_limit_are_found_in_parts_of_some_kinds(engine: TantivyIndex) -> None:
    """Of the parts that are asked for the first 262,144 bytes are searched, whatever stands before them."""
    engine.apply(batch(1, of_parts(1, Text("okapi " * 43_690), ToolCall("Bash", "zebraland"))))
    lists = engine.lists()[1]
    assert (near(lists, "ebra"), near(lists, "ebra", of_kinds(CALLS))) == ([], [1])
    assert (matches(lists, "zebraland"), matches(lists, "zebraland", of_kinds(CALLS))) == ([], [1])


# -- letters

ODD = [
    "a plain text, with blanks  and\ttabs",
    "line one\nline two\r\nline three",
    "nul \x00 \x00\x00 and \x01\x1f\x7f",
    "Straße, İzmir, ﬁne Ⅳ ΣΑΣ",
    "cafe\u0301 café e\u0301\u0323\u0323 \u0301\u0301\u0301",
    "😀😀😀 👩🏽\u200d💻 𐐀𝔷𐌰",
    "東京都へ行く 회의록",
    "\u00ad\u200b\u200d\ufeff\u2028\u2029\u0085",
    '{"path": "C:\\\\src\\\\main.py", "q": "\\u00e9"}',
    '-OR- * [a] (b) +c && ~d^2 field:value "quoted"',
    "aaaaaaaaaa",
]


def test_whatever_letters_a_turn_holds_it_is_found_by_them(engine: TantivyIndex) -> None:
    engine.apply(batch(len(ODD), *(of_parts(number, Text(text)) for number, text in enumerate(ODD, 1))))
    lists = engine.lists()[1]
    for number, text in enumerate(ODD, 1):
        for start, size in itertools.product(range(len(text)), (1, 2, 3, 4, 9, len(text))):
            piece = text[start : start + size]
            assert number in holding(lists, piece), piece
            assert number in holding(lists, piece.upper()), piece
        assert holding(lists, text) == [number]
    assert [holding(lists, few) for few in ("東", "京都", "都へ", "議", "😀", "東都", "京東")] == [[7], [7], [7], [], [6], [], []]
    assert holding(lists, " 東") == [7], "such a letter tells, whatever stands beside it"
    assert holding(lists, "no such letters") == []
    assert holding(lists, "plain\x00text") == []


def test_letters_of_a_long_turn_are_found_to_its_end(engine: TantivyIndex) -> None:
    engine.apply(batch(1, of_parts(1, Text("okapi " * 300_000 + "ZEBRA"), ToolCall("Bash", '{"k": "' + "x" * 300_000 + '~"}'))))
    lists = engine.lists()[1]
    assert [holding(lists, text) for text in ("okapi zebra", 'xxx~"}', '"k": "x', "bash\nk: xx", "zebraland")] == [
        [1],
        [1],
        [1],
        [1],
        [],
    ]


def test_of_a_very_long_turn_beyond_ascii_letters_are_not_known(engine: TantivyIndex) -> None:
    texts = ["東" * 1_000_000, "東" * 1_000_001, "x" * 3_000_000 + "é"]
    engine.apply(batch(3, *(of_parts(number, Text(text)) for number, text in enumerate(texts, 1))))
    lists = engine.lists()[1]
    assert [holding(lists, text) for text in ("東東東", "xxé", "no such", "京")] == [[1, 2], [2, 3], [2], [2]]


def test_of_few_letters_every_turn_may_hold_them(engine: TantivyIndex) -> None:
    engine.apply(batch(3, *(of_parts(number, *MIXED) for number in (1, 2)), document(3)))
    lists = engine.lists()[1]
    assert holding(lists, "q") == holding(lists, "qq") == [1, 2, 3]
    assert holding(lists, "qqq") == [3], "whose letters are not known"
    assert holding(lists, "q", of_kinds(CALLS)) == [1, 2]
    assert holding(lists, "q", Reach({}, except_roles=frozenset({"assistant"}))) == [3]


def test_letters_of_names_are_those_of_files(engine: TantivyIndex) -> None:
    engine.apply(batch(2, of_parts(1, File("image/png", "plan.png")), of_parts(2, Text("plan.png"))))
    lists = engine.lists()[1]
    assert (holding(lists, "PLAN.P"), holding(lists, "plan.p", of_kinds(Kind.FILE))) == ([1, 2], [1])


def test_conversations_come_whole_and_the_newest_first(engine: TantivyIndex) -> None:
    turns = [of_parts(number, Text("zebra" if number % 2 else "okapi"), conversation=1 + number // 50) for number in range(1, 200)]
    engine.apply(batch(199, *turns))
    lists = engine.lists()[1]
    assert [one.number for one in held(lists, "zebra", limit=1)] == [*range(151, 200, 2)]
    assert [one.number for one in held(lists, "zebra", limit=26)] == [*range(151, 200, 2), *range(101, 150, 2)]
    assert {one.conversation_pk for one in held(lists, "zebra", after=3)} == {2, 1}
    assert held(lists, "zebra", after=1) == []
    engine.apply(batch(200, forget_conversations=[4]))
    assert {one.conversation_pk for one in held(engine.lists()[1], "zebra", limit=1)} == {3}


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
