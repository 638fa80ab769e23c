"""The corners that random worlds do not reach: ties, huge words, many turns, the ends of numbers, what an engine has already."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aforesaid_server.index import MOST_PARTIAL, NUMBER_BITS, Batch, Document, Index, Lists, Reach, key_of
from aforesaid_server.index.memory import MemoryIndex, MemoryLists
from aforesaid_server.index.tantivy import TantivyIndex
from aforesaid_server.index.vocabulary import CUT, LONGEST_WORD
from aforesaid_server.query.judge import Question
from aforesaid_server.query.parse import parse
from tests.conformance.comparing import paged, some
from tests.conformance.worlds import ENGLISH

_worlds = itertools.count(1_000_000)


def document(number: int, text: str, world: str, *, length: int | None = None, agent: int = 1, conversation: int = 1) -> Document:
    size = len(text.encode()) if length is None else length
    return Document(number, size, agent, conversation, "user", "", {"world": world}, 0, ENGLISH.turn(text))


def ask(query: str, *, as_typed: bool = False) -> Question:
    return Question(parse(query, ENGLISH), as_typed)


class Both:
    """The judge and the engine with the same documents."""

    def __init__(self, engine: TantivyIndex) -> None:
        self.engine = engine
        self.world = str(next(_worlds))
        self.base = engine.head
        self.documents: list[Document] = []
        self.reach = Reach({"world": self.world})

    def put(self, *texts: str, length: int | None = None) -> list[int]:
        """Puts turns in one batch; returns their numbers."""
        first = self.engine.head + 1
        made = [document(first + at, text, self.world, length=length) for at, text in enumerate(texts)]
        self.documents += made
        self.engine.apply(Batch(first + len(texts) - 1, made))
        return [one.number for one in made]

    def same(self, *queries: str) -> None:
        """Sees that both list the same."""
        judge, other = MemoryLists(self.documents), self.engine.lists()[1]
        for query, as_typed, limit in itertools.product(queries, (False, True), (1, 4, 100)):
            question = ask(query, as_typed=as_typed)
            for name in ("matches", "near"):
                expected = getattr(judge, name)(question, self.reach, None, 10_000)
                assert paged(getattr(other, name), question, self.reach, limit) == expected, (name, query)
            assert some(other, question, self.reach) == some(judge, question, self.reach), query

    def listed(self, query: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Returns the engine's matches and near as (number, rank)."""
        lists = self.engine.lists()[1]
        matches, near = (paged(look_up, ask(query), self.reach, 100) for look_up in (lists.matches, lists.near))
        return [(one.number, one.rank) for one in matches], [(one.number, one.rank) for one in near]


@pytest.fixture
def both(engine: TantivyIndex) -> Both:
    return Both(engine)


def test_of_equal_bytes_the_newer_comes_first(both: Both) -> None:
    first = both.put("zebra x", "zebra y", "zebra z")
    second = both.put("zebra w", "zebra v")
    assert [number for number, _ in both.listed("zebra")[0]] == [*reversed(second), *reversed(first)]
    both.same("zebra", "zeb", "zebra x")


def test_bytes_count_up_to_eighteen_bits(both: Both) -> None:
    older, newer = both.put("zebra", length=262_143) + both.put("zebra", length=10**9)
    shorter = both.put("zebra", length=262_142)
    assert [number for number, _ in both.listed("zebra")[0]] == [*shorter, newer, older]
    both.same("zebra", "zeb")


def test_the_highest_number(tmp_path: Path) -> None:
    highest = (1 << NUMBER_BITS) - 1
    engine, memory = TantivyIndex(tmp_path), MemoryIndex()
    turns = [document(number, "zebra", "w", length=size) for number, size in ((1, 10**9), (highest, 10**9), (highest - 1, 0))]
    for index in (engine, memory):
        index.apply(Batch(highest, turns))
        lists = index.lists()[1]
        found = paged(lists.matches, ask("zebra"), Reach({}), 1)
        assert [one.number for one in found] == [highest - 1, highest, 1]
        assert index.head == highest
    assert key_of(10**9, 1) < 1 << 63
    engine.close()


# -- huge words


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Both]:
    """An engine of its own: huge words would slow down the others' look-ups."""
    engine = TantivyIndex(tmp_path)
    yield Both(engine)
    engine.close()


# The letters that begin, end and stand inside a word, and what fills it, of one byte to four.
HUGE = {1: "abcmnoxyzq", 2: "абвгдезийж", 3: "ㄅㄆㄇㄉㄊㄋㄍㄎㄏㄐ", 4: "𐌰𐌱𐌲𐌳𐌴𐌵𐌶𐌷𐌸𐌹"}
# Words are kept whole up to LONGEST_WORD code points, and the dictionary takes 65,530 bytes, fewer than so many of four bytes are.
SIZES = [(size, width) for size in (LONGEST_WORD, LONGEST_WORD + 1, 40_000) for width in HUGE] + [
    (16_382, 4),
    (16_383, 4),
    (60_000, 4),
]


@pytest.mark.parametrize(("size", "width"), SIZES)
def test_letters_of_a_huge_word_are_found(alone: Both, size: int, width: int) -> None:
    letters = HUGE[width]
    begin, middle, end, fill = letters[:3], letters[3:6], letters[6:9], letters[9]
    filled = fill * (size - 9)
    whole = begin + filled[: size // 2] + middle + filled[size // 2 :] + end
    assert (len(whole), len(whole.encode())) == (size, size * width)
    number, other = alone.put(f"red {whole} fox", "red other fox")
    assert alone.listed(begin) == ([], [(number, 3)])
    assert alone.listed(middle) == ([], [(number, 1)])
    assert alone.listed(end) == ([], [(number, 2)])
    assert alone.listed(f"{end} {begin}") == ([], [(number, 2)])
    assert alone.listed(fill * 400) == ([], [(number, 1)])
    # A phrase holds on both sides of it and not across it.
    assert alone.listed('"red other"') == ([(other, 3)], [])
    assert alone.listed('"red fox"') == ([], [])
    alone.same(f"red {begin}", f"{end} -other")


def test_letters_where_a_huge_word_is_cut_are_found(alone: Both) -> None:
    # 25,600 Georgian letters in which no three follow each other twice at places near to each other.
    letters = [chr(0x10D0 + at) for at in range(32)]
    word = "".join(
        letters[at % 32] + letters[at // 32 % 32] + letters[at // 1_024 % 32] + letters[at * 7 % 32] for at in range(6_400)
    )
    (number,) = alone.put(word)
    assert ENGLISH.turn(word).exact == (word,)
    step = LONGEST_WORD - 4_096
    for place in (step, LONGEST_WORD, len(word) - 250):
        for start in (place - 499, place - 250, place - 1):
            term = word[start : start + 500]
            assert alone.listed(term)[1] == [(number, 2 if word.endswith(term) else 1)], start


def test_the_sign_of_a_cut_is_no_word(alone: Both) -> None:
    alone.put(f"red {CUT} fox", f"red {'q' * 20_000} fox")
    alone.same("red fox", '"red fox"', "qqq", "q" * 500)


# -- many


def test_the_best_hundred_and_fifty(both: Both) -> None:
    both.put(*[f"zebra {'pad ' * at}" for at in range(200)])
    lists = both.engine.lists()[1]
    for every_word in (False, True):
        found = lists.partial(ask("zebra quagga"), both.reach, every_word=every_word)
        assert len(found) == MOST_PARTIAL
        judged = MemoryLists(both.documents).partial(ask("zebra quagga"), both.reach, every_word=every_word)
        # Nothing but their length tells them apart, so that here both engines choose the same.
        assert {one.number for one in found} == {one.number for one in judged}
    assert (
        lists.partial(ask("zebra quagga"), both.reach, every_word=False, near=frozenset(n for n, _ in both.listed("zebra")[1]))
        != []
    )


def test_near_of_more_words_than_a_few(both: Both) -> None:
    """Words are asked for one by one up to a number, then as a set."""
    for count in (1, 23, 24, 25, 26, 300):
        both.put(*[f"zebra{chr(97 + at // 26 % 26)}{chr(97 + at % 26)}{count}" for at in range(count)])
    both.same("zebra", "ebra", "zebraaa", "aa300", "zebra 300")


# -- what is there already


ENGINES: dict[str, Callable[[Path], Index]] = {"memory": lambda _: MemoryIndex(), "tantivy": TantivyIndex}


@pytest.fixture(params=ENGINES)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    made: Index = ENGINES[request.param](tmp_path)
    yield made
    made.close()


def numbers(lists: Lists, query: str) -> list[int]:
    return [one.number for one in lists.matches(ask(query), Reach({}), None, 100)]


def test_an_empty_engine(index: Index) -> None:
    head, lists = index.lists()
    assert (head, index.head) == (0, 0)
    assert numbers(lists, "zebra") == []
    assert lists.near(ask("zebra"), Reach({}), None, 10) == []
    assert lists.partial(ask("zebra quagga"), Reach({}), every_word=True) == []


def test_lists_show_one_moment(index: Index) -> None:
    index.apply(Batch(1, [document(1, "zebra", "w")]))
    head, before = index.lists()
    index.apply(Batch(2, [document(2, "zebra", "w")], forget=[1]))
    assert (head, numbers(before, "zebra")) == (1, [1])
    assert numbers(index.lists()[1], "zebra") == [2]
    assert index.head == index.lists()[0] == 2


def test_a_batch_forgets_before_it_puts(index: Index) -> None:
    index.apply(Batch(2, [document(1, "zebra", "w", conversation=7), document(2, "zebra", "w", conversation=8)]))
    index.apply(Batch(3, [document(3, "zebra", "w", conversation=7)], forget=[2, 99], forget_conversations=[7, 99]))
    assert numbers(index.lists()[1], "zebra") == [3]
    # A number that is forgotten and put again, as of a turn whose role has changed.
    index.apply(Batch(4, [document(3, "quagga", "w")], forget=[3]))
    assert (numbers(index.lists()[1], "zebra"), numbers(index.lists()[1], "quagga")) == ([], [3])


def test_a_batch_without_turns_moves_the_head(index: Index) -> None:
    index.apply(Batch(1, [document(1, "zebra", "w")]))
    index.apply(Batch(9))
    assert (index.head, numbers(index.lists()[1], "zebra")) == (9, [1])


def test_what_is_in_already_is_replaced(index: Index) -> None:
    index.apply(Batch(1, [document(1, "zebra", "w")]))
    index.apply(Batch(2, [document(1, "zebra quagga", "w")]))
    assert numbers(index.lists()[1], "zebra") == [1]
    assert numbers(index.lists()[1], "quagga") == [1]


def test_documents_are_gone_through_once(index: Index) -> None:
    index.apply(Batch(2, (document(number, "zebra", "w") for number in (1, 2))))
    assert numbers(index.lists()[1], "zebra") == [2, 1]
