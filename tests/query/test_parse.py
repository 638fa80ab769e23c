"""From text to query: tokens and syntax as tables, `parse(str(q)) == q` as a law, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aforesaid_server.errors import InvalidArgument
from aforesaid_server.query.ast import Clause, Query
from aforesaid_server.query.parse import LONGEST_QUERY, parse, terms_of, terms_query
from aforesaid_server.text.words import Analyser, is_spaceless, words_of
from tests.text.alphabets import NASTY, texts
from tests.text.effort import examples

ENGLISH = Analyser()


def clauses(found: tuple[Clause, ...]) -> list[str]:
    """Writes clauses as their words, a quoted one in quotes."""
    return [f'"{" ".join(c.words)}"' if c.quoted else " ".join(c.words) for c in found]


def read(text: str) -> tuple[list[str], list[str], list[str]]:
    query = parse(text, ENGLISH)
    return clauses(query.wanted), clauses(query.excluded), list(query.ignored)


# text: wanted, excluded, ignored; a phrase is a clause of several words
SYNTAX: dict[str, tuple[list[str], list[str], list[str]]] = {
    "fox": (["fox"], [], []),
    "  red \t fox\n": (["red", "fox"], [], []),
    "red\u3000fox\u00a0den\u2028end\u200bx\x1cy\x85z": (["red", "fox", "den", "end", "x", "y", "z"], [], []),
    "deploy deploys": (["deploy", "deploys"], [], []),
    "the the": (["the", "the"], [], []),
    # Tokens of several words.
    "src/main.py": (["src main py"], [], []),
    "don't": (["don t"], [], []),
    "3.11.7": (["3 11 7"], [], []),
    "修改youer": (["修 改 youer"], [], []),
    "東京": (["東 京"], [], []),
    "東": (["東"], [], []),
    "a´b": (["a b"], [], []),
    "soft\u00adware": (["software"], [], []),
    # Quotes.
    '"red fox"': (['"red fox"'], [], []),
    '"fox"': (['"fox"'], [], []),
    "“red fox”": (['"red fox"'], [], []),
    '“red "fox”': (['"red fox"'], [], []),
    '"red” fox"': (['"red fox"'], [], []),
    '"red fox': (['"red fox"'], [], []),
    '"red fox"den': (['"red fox"', "den"], [], []),
    '"red fox"den"hat" x': (['"red fox"', "den hat", "x"], [], []),
    '"a""b"“c”': (['"a"', '"b"', '"c"'], [], []),
    'say"red fox"': (["say red", "fox"], [], []),
    '"red\u200bfox\u00ad\u2060es"': (['"red foxes"'], [], []),
    "”red fox”": (["red", "fox"], [], []),
    "'red fox'": (["red", "fox"], [], []),
    "«red fox»": (["red", "fox"], [], []),
    # Exclusions.
    "red -fox": (["red"], ["fox"], []),
    "-fox red": (["red"], ["fox"], []),
    'red -"old fox" den': (["red", "den"], ['"old fox"'], []),
    "red -“old fox”den": (["red", "den"], ['"old fox"'], []),
    'red -"old fox': (["red"], ['"old fox"'], []),
    '"red fox"-den': (['"red fox"'], ["den"], []),
    "red -t-shirt": (["red"], ["t shirt"], []),
    "red -東京": (["red"], ["東 京"], []),
    "red -5 -é": (["red"], ["5", "e"], []),
    "red -fox -fox": (["red"], ["fox", "fox"], []),
    "re-run": (["re run"], [], []),
    # No exclusions.
    "push --force": (["push", "force"], [], []),
    "---fox": (["fox"], [], []),
    "-(fox)": (["fox"], [], []),
    "-\u00adfox": (["fox"], [], []),
    "-\u0301fox": (["fox"], [], []),
    "−fox": (["fox"], [], []),
    "–fox": (["fox"], [], []),
    '--"a b"': (["a", "b"], [], []),
    # Ignored: tokens without a letter or digit, in the order typed; an exclusion of nothing is nothing.
    "a - b -> c": (["a", "b", "c"], [], ["-", "->"]),
    'fox "" ??? "!!" 😀': (["fox"], [], ['""', "???", '"!!"', "😀"]),
    'fox "': (["fox"], [], ['""']),
    'fox “"”': (["fox"], [], ['“"”']),
    'fox -"" -"!"': (["fox"], [], []),
    "fox \u00ad \u0301": (["fox"], [], ["\u00ad", "\u0301"]),
    "fox -": (["fox"], [], ["-"]),
    # Nothing else is syntax.
    "red OR fox AND NOT den": (["red", "OR".lower(), "fox", "and", "not", "den"], [], []),
    "body:fox title:": (["body fox", "title"], [], []),
    "fox* * ?x": (["fox", "x"], [], ["*"]),
    "[a TO b] {x} (y)": (["a", "to", "b", "x", "y"], [], []),
    "+fox ~red ^den red^2 fox~1": (["fox", "red", "den", "red 2", "fox 1"], [], []),
    "fox\\": (["fox"], [], []),
    "(a+)+$": (["a"], [], []),
    '\\"red fox\\"': (["red", "fox"], [], []),
}


@pytest.mark.parametrize("text", SYNTAX)
def test_syntax(text: str) -> None:
    assert read(text) == SYNTAX[text]


@pytest.mark.parametrize("text", SYNTAX)
def test_a_query_prints_itself(text: str) -> None:
    query = parse(text, ENGLISH)
    assert parse(str(query), ENGLISH) == query


REFUSED = [
    "",
    " ",
    "\u200b",
    "\u00ad",
    "\u0301",
    "???",
    "😀",
    "-",
    "->",
    "-fox",
    '-"red fox"',
    "-fox -den",
    '""',
    '"',
    '"!"',
    '-"',
    "“”",
    "\x00",
]


@pytest.mark.parametrize("text", REFUSED)
def test_a_query_without_a_word_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse(text, ENGLISH)
    assert refused.value.field == "query"
    assert refused.value.message == "query: needs a word to look for: a letter or digit outside of exclusions"


def test_length_is_counted_in_code_points() -> None:
    assert len(parse("a" * LONGEST_QUERY, ENGLISH).wanted[0].words[0]) == LONGEST_QUERY
    assert len(parse("😀" * (LONGEST_QUERY - 1) + "東", ENGLISH).wanted) == 1
    for text in ("a" * 501, "é" * 501, " " * 500 + "a", "a" * 100_000):
        with pytest.raises(InvalidArgument, match=f"query: {len(text)} characters, at most 500 are allowed"):
            parse(text, ENGLISH)


# -- laws

PIECES = st.sampled_from(
    [
        *'""“”--- \t\u200b\u3000',
        "fox",
        "Foxes",
        "東京",
        "t-shirt",
        "C++",
        "#1",
        "é",
        "\u0301",
        "\u00ad",
        "???",
        "->",
        '"red fox"',
        "-x",
        "’",
        "a",
    ]
)
QUERIES = st.one_of(
    st.lists(PIECES, max_size=14).map("".join),
    st.lists(PIECES, max_size=10).map(" ".join),
    st.text(st.sampled_from('ab "“”-\u200b.'), max_size=14),
    st.text(st.sampled_from(NASTY), max_size=20),
    texts,
)


def parsed(text: str) -> Query:
    """Parses a query; one that is refused is no example."""
    try:
        return parse(text, ENGLISH)
    except InvalidArgument:
        assume(False)
        raise


@examples(500)
@given(QUERIES)
def test_parse_of_what_is_printed_is_the_same_query(text: str) -> None:
    query = parsed(text)
    # An end quote and blanks may come to what was typed, so that the longest queries do not print themselves.
    assert len(str(query)) <= 2 * len(text) + 1
    assert parse(str(query), ENGLISH) == query
    assert str(parse(str(query), ENGLISH)) == str(query)


@examples(300)
@given(QUERIES)
def test_every_word_is_wanted_or_excluded(text: str) -> None:
    query = parsed(text)
    everything = [*query.wanted, *query.excluded]
    assert sorted(word for clause in everything for word in clause.words) == sorted(words_of(text))
    assert query.order == tuple(word for clause in query.wanted for word in clause.words)
    for clause in everything:
        assert clause.words == tuple(words_of(clause.raw)) != ()
        assert clause.stems == tuple(ENGLISH.stems(list(clause.words)))
        assert clause.is_phrase == (clause.quoted or len(clause.words) > 1)
        assert clause.quoted or not any(map(str.isspace, clause.raw))
    assert not any(map(words_of, query.ignored))


@examples(200)
@given(QUERIES, st.sampled_from([" ", "\t", "\u3000", "\u200b", " \n "]))
def test_blanks_around_and_between_tokens_do_not_matter(text: str, blank: str) -> None:
    assume('"' not in text and "“" not in text)  # inside quotes they are kept as typed
    query = parsed(text)
    assert parse(f"{blank}{text}{blank}", ENGLISH) == query
    assert parse(blank.join(text.replace("\u200b", " ").split()), ENGLISH) == query


@examples(300)
@given(st.one_of(QUERIES, st.text(max_size=520)))
def test_anything_is_a_query_or_refused(text: str) -> None:
    try:
        query = parse(text, ENGLISH)
    except InvalidArgument:
        assert len(text) > LONGEST_QUERY or not words_of(text) or "-" in text
    else:
        assert query.wanted


# -- signs

SYMBOLS = {
    "C++": {"c++"},
    "net .NET": {".net"},
    "#123, see": {"#123"},
    '"use C++ here" x': {"c++"},
    '"red fox"den': set(),
    '"a -> b"': set(),
    "a -> b": set(),
    "red -C++": set(),
    "a ??? b+": {"b+"},
    "修改C++服务": {"c++"},
    "(#123).": {"#123"},
    "t-shirt t-shirt": {"t-shirt"},
    "src/main.py don't": {"src/main.py", "don't"},
}


@pytest.mark.parametrize("text", SYMBOLS)
def test_which_signs_count(text: str) -> None:
    """Those of wanted tokens with a word in them."""
    assert parse(text, ENGLISH).symbols == SYMBOLS[text]


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("fox", False),
        ("fox fox", False),
        ("Fox FOX fóx", False),
        ("red fox", True),
        ("deploy deploys", True),
        ("t-shirt", True),
        ('"red fox"', True),
        ("東京", True),
        ("東東", False),
        ("fox -red", False),
        ("fox ???", False),
    ],
)
def test_whether_two_different_words_are_wanted(text: str, several: bool) -> None:
    assert parse(text, ENGLISH).several is several


# -- plain text


TERMS: dict[str, list[str]] = {
    "": [],
    "?! \u00ad ❤\ufe0f": [],
    "Red FOX, red fóx": ["red", "fox"],
    '"red fox" -den OR a:b': ["red", "fox", "den", "or", "a", "b"],
    "src/main.py getUserId": ["src", "main", "py", "getuserid"],
    "deploy deploys": ["deploy", "deploys"],
    "記憶": ["記 憶"],
    "記憶術 記": ["記 憶", "憶 術", "記"],
    "記、憶": ["記", "憶"],
    "記\u200b憶": ["記", "憶"],
    "記\u00ad憶": ["記 憶"],
    "修改youer設": ["修 改", "youer", "設"],
    "สมชาย": ["ส ม", "ม ช", "ช า", "า ย"],
    "が": ["が"],
}


@pytest.mark.parametrize("text", TERMS)
def test_the_terms_of_a_plain_text(text: str) -> None:
    terms = terms_of(text)
    assert [" ".join(words) for words in terms] == TERMS[text]
    wanted = terms_query(terms, ENGLISH).wanted
    assert [clause.words for clause in wanted] == terms
    assert [clause.stems for clause in wanted] == [tuple(ENGLISH.stems(list(words))) for words in terms]
    assert not any(clause.quoted for clause in wanted)


@examples(300)
@given(texts)
def test_the_terms_are_all_the_words(text: str) -> None:
    """None left out, none twice; more than one word only of scripts that are written without spaces."""
    terms = terms_of(text)
    assert len(set(terms)) == len(terms)
    assert {word for words in terms for word in words} == set(words_of(text))
    assert all(len(words) == 1 or (len(words) == 2 and all(map(is_spaceless, words))) for words in terms)
