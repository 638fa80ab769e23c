"""Does a turn say it? Tiers, steps, partial and any word, one line each, read off contract.md."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid_server.query.judge import Question, capped, contains, letters_step, match_score, near_score
from aforesaid_server.query.parse import parse
from aforesaid_server.query.question_words import QUESTION_WORDS
from aforesaid_server.text.words import Analyser, TurnWords, words_of
from tests.text.effort import examples

ENGLISH = Analyser()


def ask(query: str, *, as_typed: bool = False) -> Question:
    return Question(parse(query, ENGLISH), as_typed)


def said(text: str) -> TurnWords:
    return ENGLISH.turn(text)


# -- matches: query, {turn: tier}

TIERS: dict[str, dict[str, int]] = {
    "deploy": {"deploy": 3, "we DEPLOY now": 3, "deploys": 1, "redeploy": 0, "": 0},
    "déploy": {"deploy": 3, "Déploy": 3},
    "deploys": {"deploys": 3, "deploy": 1, "deployed deploys": 3},
    "red fox": {
        "a red fox": 3,
        "red. Fox!": 3,
        "red\n\nfox": 3,
        "fox red": 2,
        "red old fox": 2,
        "red foxes": 1,
        "foxes, red ones, fox": 2,
        "red": 0,
        "": 0,
    },
    "the the": {"the the": 3, "the": 2, "the other the": 2},
    "deploy deploys": {"deploy deploys": 3, "deploys deploy": 2, "deploy": 1, "deployed": 1},
    '"red fox"': {"red fox": 3, "red foxes": 1, "fox red": 0, "red. fox": 3, "reds fox": 1},
    '"red fox" den': {"red fox den": 3, "den, red fox": 2, "den red foxes": 1, "red den fox": 0},
    # One word by stem brings a turn down, however many others stand as typed.
    "running fox den": {"running fox den": 3, "fox running den": 2, "run fox den": 1},
    "red -fox": {"red": 3, "red fox": 0, "red foxes": 0, "red firefox": 3},
    "red -foxes": {"red fox": 0},
    'red -"old fox"': {"red old fox": 0, "red fox old": 3, "red older fox": 3, "red old foxes": 0},
    "red -fox den": {"red den": 3, "red x den": 2},
    # Signs: of every token that has some.
    "C++": {"C++ code": 3, "c++": 3, "C": 2, "C+": 2, "C++11": 2, "(C++)": 3, "C++.": 3, "'C++',": 3},
    ".NET": {".NET core": 3, "net": 2, "ASP.NET": 2, "nets": 1},
    "t-shirt": {"t-shirt": 3, "t shirt": 2, "t-shirts": 1, "shirt t": 0},
    "C++ linker": {"C++ linker": 3, "C# linker": 2, "linker C++": 2, "C++ linkers": 1},
    "see #12 now": {"see #12 now": 3, "see 12 now": 2, "see #12, now": 3, "now see #12": 2},
    '"use C++"': {"use C++": 3, "use C": 2},
    "fox ->": {"fox": 3},
    "red ??? fox": {"red fox": 3},
    "修改C++": {"修改C++服务": 3, "修改C服务": 2},
    "東京": {"東京タワー": 3, "東の京": 0, "京東": 0},
    "東京 タワー": {"東京タワー": 3, "タワーと東京": 2},
    "회의": {"오늘회의록": 3},
    "foo:bar": {"foo:bar": 3, "foo bar": 2, "bar foo": 0},
}
CASES = [(query, turn, tier) for query, turns in TIERS.items() for turn, tier in turns.items()]


@pytest.mark.parametrize(("query", "turn", "tier"), CASES)
def test_tier(query: str, turn: str, tier: int) -> None:
    question = ask(query)
    assert question.tier(said(turn)) == tier
    # Tiers 3 and 2 are what is said as typed; nothing else moves.
    assert ask(query, as_typed=True).tier(said(turn)) == (tier if tier > 1 else 0)
    if tier:
        assert question.step(said(turn)) == 0, "a match has no place in near"


# -- near: query, {turn: step}

STEPS: dict[str, dict[str, int]] = {
    "user": {
        "getUserId": 4,
        "user2": 4,
        "userland": 3,
        "superuser": 2,
        "superusers": 1,
        "enduser userland": 3,
        "superusers getUser": 4,
        "user": 0,
        "users": 0,
        "use": 0,
        "get_user_id": 0,  # the words are apart, so that it is a match
    },
    "http": {"http2": 4, "HTTPServer": 4, "httpd": 3, "xhttp": 2, "HTTPs": 3},
    "server": {"HTTPServer": 4, "Serverless": 3, "myserver": 2},
    "123": {"x12345y": 1, "abc123": 4, "v123": 4, "1234": 3, "0123": 2},
    "ploy": {"deploy": 2, "deployed": 1},
    # Several terms: the best place of each, then the lowest of them.
    "get user": {
        "getUser": 4,
        "getUsers": 1,
        "forgetUser": 1,
        "budget userland": 2,
        "budget getUser": 4,
        "get userland": 3,
        "user getId": 4,
        "getId": 0,
        "budgetxusers": 1,
    },
    "user fox": {"getUser foxes": 4, "getUser": 0, "fox": 0},
    # Under three characters, and in quotes or as a token of several words: it must be said.
    "my user": {"my userland": 3, "myuser": 0},
    "us": {"usual": 0},
    '"user"': {"userland": 0},
    '"red fox" user': {"red fox userland": 3, "red foxes getUser": 4, "redfox userland": 0},
    "t-shirt user": {"t-shirt userland": 3, "t-shirts superuser": 2, "tshirt userland": 0},
    # Exclusions bind by stem, and only words of their own.
    "user -root": {"userland": 3, "userland root": 0, "userland roots": 0, "userland rooted": 0, "userland chroot": 3},
    "user -user": {"userland": 3},
    "東京": {"東京都": 0},
    "user 東京": {"userland 東京": 3, "userland 東": 0},
    # The letters of a term are those that were typed, not its stem.
    "deploys": {"redeploys": 2, "predeployer": 0},
    "café": {"cafeteria": 3, "CAFÉteria": 3, "myCafé": 4},
}
NEAR = [(query, turn, step) for query, turns in STEPS.items() for turn, step in turns.items()]


@pytest.mark.parametrize(("query", "turn", "step"), NEAR)
def test_step(query: str, turn: str, step: int) -> None:
    assert ask(query).step(said(turn)) == step
    if step:
        assert ask(query).tier(said(turn)) == 0


def test_as_typed_counts_in_near_too() -> None:
    # By stem it is a match; as typed its letters begin a word.
    assert ask("user").tier(said("users")) == 1
    assert ask("user", as_typed=True).step(said("users")) == 3
    assert ask("user fox", as_typed=True).step(said("user foxes")) == 3
    assert ask("user my", as_typed=True).step(said("userland mys")) == 0
    # Exclusions go by stem all the same.
    assert ask("user -fox", as_typed=True).step(said("userland foxes")) == 0
    assert ask("user -foxes", as_typed=True).tier(said("user fox")) == 0


@pytest.mark.parametrize(
    ("term", "word", "step"),
    [
        ("ing", "ingot", 3),
        ("ing", "king", 2),
        ("ing", "kings", 1),
        ("ing", "kingsing", 2),
        ("ana", "banana", 2),
        ("aaa", "aaaa", 3),
        ("ban", "anab", 0),
        ("getuser", "getUserId", 3),  # two parts are not one
        ("userid", "getUserId", 2),
    ],
)
def test_where_letters_sit(term: str, word: str, step: int) -> None:
    assert letters_step(term, said(word)) == step


# -- partial and any word

Counted = list[str]
COUNTED: dict[str, tuple[Counted, Counted]] = {
    # query: what counts in partial, what counts in MATCH_ANY_WORD
    "what did the deploy break": (["deploy", "break"], ["what", "did", "the", "deploy", "break"]),
    "what did the": (["what", "did", "the"], ["what", "did", "the"]),
    "don't deploy": (["deploy"], ["don t", "deploy"]),
    "why don't we": (["why", "don t", "we"], ["why", "don t", "we"]),
    '"red fox" what': ([], ["what"]),
    '"red fox" what jumped': (["jumped"], ["what", "jumped"]),
    '"what"': ([], []),
    "src/main.py broke": (["src main py", "broke"], ["src main py", "broke"]),
    "the-fox": (["the fox"], ["the fox"]),
    "記憶断裂": (["記 憶", "憶 断", "断 裂"], ["記 憶", "憶 断", "断 裂"]),
    "東京": (["東 京"], ["東 京"]),
    "東": (["東"], ["東"]),
    "修改youer服务端": (["修 改", "youer", "服 务", "务 端"], ["修 改", "youer", "服 务", "务 端"]),
    "a東b": (["a", "東", "b"], ["a", "東", "b"]),
    "fox fox foxes": (["fox", "foxes"], ["fox", "foxes"]),
    "Fox -den": (["fox"], ["fox"]),
}


@pytest.mark.parametrize("query", COUNTED)
def test_what_counts(query: str) -> None:
    partial, any_word = COUNTED[query]
    question = ask(query)
    assert [" ".join(one.words) for one in question.counted(every_word=False)] == partial
    assert [" ".join(one.words) for one in question.counted(every_word=True)] == any_word
    assert all(one.stems == tuple(ENGLISH.stems(list(one.words))) for one in question.counted(every_word=True))


SOME: dict[str, tuple[dict[str, bool], dict[str, bool]]] = {
    # query: {turn: whether partial may hold it}, {turn: whether MATCH_ANY_WORD holds it}
    "the red fox": (
        {"red": True, "foxes": True, "the": False, "": False, "refox": False},
        {"red": True, "the": True, "the red fox": True, "den": False},
    ),
    "red fox -den": (
        {"red": True, "red den": False, "red dens": False},
        {"fox": True, "fox dens": False},
    ),
    '"red fox" den hat': (
        {"red fox": True, "red foxes": True, "den hat": False, "red fox hat": True},
        {"red fox": True, "den": False},
    ),
    '"red fox" "old hat"': ({"red fox": False, "red fox old hat": True}, {"red fox": False, "old hats, red fox": True}),
    "t-shirt blue": ({"shirt": False, "t shirt": True, "blue": True, "t": False}, {"t-shirts": True, "shirt": False}),
    "記憶断裂": ({"記憶": True, "断裂": True, "記": False, "憶断": True, "記断": False}, {"記憶": True, "裂": False}),
}


@pytest.mark.parametrize("every_word", [False, True])
@pytest.mark.parametrize("query", SOME)
def test_who_says_some(query: str, every_word: bool) -> None:
    turns = SOME[query][every_word]
    assert {turn: ask(query).says_some(said(turn), every_word=every_word) for turn in turns} == turns


def test_as_typed_counts_in_partial_too() -> None:
    question = ask("red fox", as_typed=True)
    assert question.says_some(said("fox"), every_word=False)
    assert not question.says_some(said("foxes"), every_word=False)
    assert not ask('"red foxes" x', as_typed=True).says_some(said("red fox"), every_word=False)
    assert not ask("red -foxes", as_typed=True).says_some(said("red fox"), every_word=True)


def test_question_words_are_words_as_they_are_folded() -> None:
    assert all(words_of(word) == [word] for word in QUESTION_WORDS)
    assert {"what", "did", "the", "why", "how", "t", "don"} <= QUESTION_WORDS
    # Words with which people tell one thing from another.
    assert not QUESTION_WORDS & {"fox", "one", "two", "again", "before", "after", "error", "new", "old", "first", "last"}


# -- scores


@pytest.mark.parametrize(
    ("length", "share"),
    [(0, 1.0), (1024, 0.5), (3072, 0.25), (262_143, 1 / (1 + 262_143 / 1024)), (10**9, 1 / (1 + 262_143 / 1024))],
)
def test_scores(length: int, share: float) -> None:
    assert [match_score(tier, length) for tier in (1, 2, 3)] == [tier + share for tier in (1, 2, 3)]
    assert [near_score(step, length) for step in (1, 2, 3, 4)] == [(step - 1 + share) / 4 for step in (1, 2, 3, 4)]
    assert capped(length) == min(length, 262_143)


@examples(100)
@given(st.integers(1, 4), st.integers(0, 300_000), st.integers(1, 4), st.integers(0, 300_000))
def test_scores_order_as_the_lists_do(rank: int, size: int, other: int, length: int) -> None:
    before = (-rank, capped(size)) < (-other, capped(length))
    assert (match_score(rank, size) > match_score(other, length)) is before
    assert (near_score(rank, size) > near_score(other, length)) is before


# -- adjacency


@examples(300)
@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc"), min_size=1, max_size=4))
def test_contains_is_a_phrase(words: list[str], phrase: list[str]) -> None:
    assert contains(words, phrase) == ("".join(phrase) in "".join(words))
    assert contains(tuple(words), tuple(phrase)) == contains(words, phrase)
