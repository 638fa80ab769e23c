"""The text of a turn and what of it is searched: parts, the leaves of JSON, base64 and data URLs."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.leaves import leaves, well_formed
from aforesaid.model import File, Part, Reasoning, Text, ToolCall, ToolResult
from aforesaid_server.text.transcript import (
    NO_KIND,
    SAYING,
    SEARCH_TOOLS,
    Kind,
    Searched,
    are_several,
    fold_letters,
    is_search_tool,
    kind_of,
    kinds_of,
    measure,
    text_of,
    text_of_part,
    without_bytes,
)
from tests.text.effort import examples

DEFAULT = Searched()
ALL = Searched(reasoning=True, system=True)

# -- parts: part, its text, what is searched of it

PARTS: dict[str, tuple[Part, str, list[str]]] = {
    "text": (Text("as it is\n"), "as it is\n", ["as it is\n"]),
    "empty text": (Text(""), "", [""]),
    "reasoning": (Reasoning("a thought"), "a thought", []),
    "file": (File("image/png", "plan.png"), "plan.png", []),
    "file without a name": (File("image/png"), "", []),
    "call": (ToolCall("Bash", '{"command": "ls -l", "timeout": 5}'), "Bash\ncommand: ls -l\ntimeout: 5", ["ls -l\n5"]),
    "call without arguments": (ToolCall("Bash"), "Bash", [""]),
    "call with none": (ToolCall("Bash", "{}"), "Bash", [""]),
    "call with null": (ToolCall("Bash", "null"), "Bash", [""]),
    "call with a bare string": (ToolCall("Bash", '"ls"'), "Bash\nls", ["ls"]),
    "call with a list": (ToolCall("Go", '["a", ["b"]]'), "Go\n0: a\n1.0: b", ["a\nb"]),
    "call that is not JSON": (ToolCall("Bash", "ls -l {"), "Bash\nls -l {", ["ls -l {"]),
    "call with blanks": (ToolCall("Bash", " \n"), "Bash\n \n", [" \n"]),
    "result": (ToolResult('{"not": "taken apart"}'), '{"not": "taken apart"}', ['{"not": "taken apart"}']),
    "error": (ToolResult("no such file", is_error=True), "no such file", ["no such file"]),
    "JSON result": (ToolResult('{"rows": [{"id": 7, "name": "ada"}]}', is_json=True), "rows.0.id: 7\nrows.0.name: ada", ["7\nada"]),
    "JSON result that is none": (ToolResult("oops {", is_json=True), "oops {", ["oops {"]),
    "empty JSON result": (ToolResult("", is_json=True), "", [""]),
}


@pytest.mark.parametrize("name", PARTS)
def test_text_of_a_part(name: str) -> None:
    part, text, searched = PARTS[name]
    assert text_of_part(part) == text
    assert DEFAULT.text_of("assistant", [part]) == "\n".join(searched)


def test_parts_are_joined_by_newlines() -> None:
    parts = [part for part, _, _ in PARTS.values()]
    assert text_of(parts) == "\n".join(text for _, text, _ in PARTS.values())
    assert DEFAULT.text_of("user", parts) == "\n".join(line for _, _, lines in PARTS.values() for line in lines)
    assert text_of([]) == DEFAULT.text_of("user", []) == ""


# -- kinds


def test_kinds_of_parts() -> None:
    kinds = {name: kind_of(part) for name, (part, _, _) in PARTS.items()}
    beginnings = {"text": Kind.TEXT, "reasoning": Kind.REASONING, "file": Kind.FILE, "call": Kind.TOOL_CALL}
    results = {"result": Kind.TOOL_RESULT_TEXT, "error": Kind.TOOL_RESULT_TEXT, "JSON": Kind.TOOL_RESULT_JSON}
    assert kinds == {
        name: kind
        for name in PARTS
        for word, kind in (beginnings | results).items()
        if name.removeprefix("empty ").startswith(word)
    }
    parts = [part for part, _, _ in PARTS.values()]
    assert kinds_of(parts) == SAYING | Kind.FILE == ~NO_KIND
    assert kinds_of(parts[:2]) == Kind.TEXT
    assert kinds_of([]) == NO_KIND


def test_several_kinds_are_more_than_one() -> None:
    assert not any(map(are_several, [NO_KIND, *Kind]))
    assert all(are_several(one | other) for one in Kind for other in Kind if one != other)


def test_which_kinds_are_looked_at() -> None:
    parts: list[Part] = [Text("said"), Reasoning("thought"), File("text/plain", "name.txt")]
    assert DEFAULT.kinds_in("user", parts) == Kind.TEXT | Kind.FILE
    assert ALL.kinds_in("user", parts) == kinds_of(parts)
    assert (DEFAULT.kinds_in("system", parts), ALL.kinds_in("system", parts)) == (NO_KIND, kinds_of(parts))


@pytest.mark.parametrize(
    ("searched", "role", "expected"),
    [
        (DEFAULT, "user", "said"),
        (DEFAULT, "tool", "said"),
        (DEFAULT, "anything", "said"),
        (DEFAULT, "", "said"),
        (DEFAULT, "system", ""),
        (Searched(system=True), "system", "said"),
        (Searched(reasoning=True), "user", "said\nthought"),
        (Searched(reasoning=True), "system", ""),
        (ALL, "system", "said\nthought"),
    ],
)
def test_a_deployment_chooses_what_is_searched(searched: Searched, role: str, expected: str) -> None:
    assert searched.text_of(role, [Text("said"), Reasoning("thought"), File("text/plain", "name.txt")]) == expected


def test_each_choice_has_a_fingerprint_of_its_own() -> None:
    assert len({Searched(r, s).fingerprint for r in (True, False) for s in (True, False)}) == 4


# -- own searches

NAMES = {
    "search_transcripts": True,
    "transcript_search": True,
    "read_transcript": True,
    "mcp__aforesaid__search_transcripts": True,
    "functions.transcript_search": True,
    "aforesaid-read_transcript": True,
    "a:b/c search_transcripts": True,
    "my_search_transcripts": True,
    "Search_Transcripts": True,
    "MCP.READ_TRANSCRIPT": True,
    "_search_transcripts": True,
    # A letter or digit before it makes another name of it, and so does anything behind it.
    "research_transcripts": False,
    "2search_transcripts": False,
    "ésearch_transcripts": False,
    "search_transcripts2": False,
    "search_transcripts ": False,
    "search_transcript": False,
    "SearchTranscripts": False,
    "search-transcripts": False,
    "transcripts": False,
    "": False,
}


@pytest.mark.parametrize("name", NAMES)
def test_which_tools_search(name: str) -> None:
    assert is_search_tool(name, SEARCH_TOOLS) is NAMES[name]


def test_a_setting_adds_names() -> None:
    tools = SEARCH_TOOLS | {"SearchTranscripts", "Straße"}
    assert is_search_tool("mcp__x__searchTranscripts", tools)
    assert is_search_tool("x.STRASSE", tools)
    assert is_search_tool("search_transcripts", tools)
    assert not is_search_tool("ReSearchTranscripts", tools)
    # Names that mean the same are no reason to build an index anew.
    fingerprints = {Searched(search_tools=SEARCH_TOOLS | {name}).fingerprint for name in ("find", "FIND", "seek")}
    assert len(fingerprints | {Searched().fingerprint}) == 3


CALL, OTHER = ToolCall("search_transcripts", "sought", "1"), ToolCall("Bash", "ran", "2")
FOUND, RAN = ToolResult("found", "1"), ToolResult("output", "2")
ANSWERED = {FOUND: "x.search_transcripts", RAN: "Bash"}

# parts: the stretches that are left of them
LEFT: list[tuple[list[Part], list[str]]] = [
    ([], []),
    ([Text("a"), OTHER], ["a\nran"]),
    ([CALL], []),
    ([FOUND], []),
    ([RAN], ["output"]),
    ([Text("a"), CALL], ["a"]),
    ([CALL, Text("a")], ["a"]),
    ([Text("a"), CALL, FOUND, Text("b"), OTHER], ["a", "b\nran"]),
    ([Text("a"), CALL, Reasoning("not searched"), FOUND, Text("b")], ["a", "b"]),
    ([Text("a"), FOUND, Text("b"), FOUND, RAN], ["a", "b", "output"]),
]


@pytest.mark.parametrize(("parts", "stretches"), LEFT)
def test_what_is_left_without_own_searches(parts: list[Part], stretches: list[str]) -> None:
    answers = {place: ANSWERED[part] for place, part in enumerate(parts) if isinstance(part, ToolResult)}
    left_out = DEFAULT.own_searches(parts, answers)
    assert left_out == {place for place, part in enumerate(parts) if part in (CALL, FOUND)}
    assert DEFAULT.stretches_of("assistant", parts, left_out) == stretches
    # A result whose call is not known is a result like any other.
    assert DEFAULT.own_searches(parts, {}) == {place for place, part in enumerate(parts) if part == CALL}
    assert DEFAULT.stretches_of("system", parts, left_out) == []
    # With nothing left out it is one stretch, the searched text.
    whole = DEFAULT.text_of("assistant", parts)
    assert DEFAULT.stretches_of("assistant", parts, ()) == ([whole] if whole else [])


# -- parts of some kinds

SAID, THOUGHT, NAMED = Text("said"), Reasoning("thought"), File("text/plain", "name.txt")

# parts, kinds: the stretches that are left of them, where reasoning is not searched and where it is
OF_KINDS: list[tuple[list[Part], Kind, list[str], list[str]]] = [
    ([SAID, OTHER], Kind.TEXT, ["said"], ["said"]),
    ([SAID, OTHER], Kind.TEXT | Kind.TOOL_CALL, ["said\nran"], ["said\nran"]),
    ([SAID, OTHER], Kind.TOOL_RESULT_TEXT, [], []),
    ([SAID, OTHER, SAID], Kind.TEXT, ["said", "said"], ["said", "said"]),
    ([SAID, ToolCall("Bash"), SAID], Kind.TEXT, ["said", "said"], ["said", "said"]),
    ([OTHER, RAN, SAID, RAN], Kind.TEXT | Kind.TOOL_RESULT_TEXT, ["output\nsaid\noutput"], ["output\nsaid\noutput"]),
    # What is not searched anyway is not left out: words stand side by side across it, as in the whole turn.
    ([SAID, THOUGHT, SAID], Kind.TEXT, ["said\nsaid"], ["said", "said"]),
    ([SAID, THOUGHT, OTHER], Kind.REASONING | Kind.TEXT, ["said"], ["said\nthought"]),
    ([SAID, THOUGHT], Kind.REASONING, [], ["thought"]),
    ([SAID, NAMED, SAID], Kind.TEXT, ["said\nsaid"], ["said\nsaid"]),
    ([SAID, NAMED], Kind.FILE, [], []),
]


@pytest.mark.parametrize(("parts", "kinds", "stretches", "with_reasoning"), OF_KINDS)
def test_what_is_left_of_some_kinds(parts: list[Part], kinds: Kind, stretches: list[str], with_reasoning: list[str]) -> None:
    assert DEFAULT.stretches_of("user", parts, DEFAULT.beside(parts, kinds)) == stretches
    assert ALL.stretches_of("user", parts, ALL.beside(parts, kinds)) == with_reasoning
    assert DEFAULT.beside(parts, ~NO_KIND) == DEFAULT.beside(parts, SAYING) == frozenset()


# -- letters


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("AbC", "abc"),
        ("Straße", "strasse"),
        ("İ", "i\u0307"),
        ("ΣΑΣ", "σασ"),
        ("E\u0301 É", "e\u0301 é"),
        ("ﬁ Ⅳ ＡＢ", "fi ⅳ ａｂ"),
        ("a\u200bB\x00\r\n\t “”", "a\u200bb\x00\r\n\t “”"),
        ("𐐀😀", "𐐨😀"),
    ],
)
def test_letters_are_folded_by_case_alone(text: str, folded: str) -> None:
    assert fold_letters(text) == folded


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_letters_are_folded_one_by_one(one: str, other: str) -> None:
    """So whatever stands in a text stands in it folded."""
    assert fold_letters(one + other) == fold_letters(one) + fold_letters(other) == "".join(map(fold_letters, one + other))


ARGUED = ToolCall("Bash", '{"command": "ls -l", "all": null}')

# parts, which of them are left out: the stretches and the arguments that letters are looked for in
LITERAL: list[tuple[list[Part], set[int], list[str], list[str]]] = [
    ([], set(), [], []),
    ([SAID, SAID], set(), ["said\nsaid"], []),
    ([SAID, ARGUED, RAN], set(), ["said\nBash\ncommand: ls -l\noutput"], [ARGUED.arguments]),
    ([SAID, ARGUED, RAN], {1}, ["said", "output"], []),
    ([SAID, ARGUED, OTHER], {0}, ["Bash\ncommand: ls -l\nBash\nran"], [ARGUED.arguments, OTHER.arguments]),
    ([ToolCall("Bash")], set(), ["Bash"], []),
    # Reasoning that is not searched is left out; bytes and names are not.
    ([SAID, THOUGHT, SAID], set(), ["said", "said"], []),
    ([SAID, NAMED], set(), ["said\nname.txt"], []),
    ([Text("data:image/png;base64,AAAA")], set(), ["data:image/png;base64,AAAA"], []),
    ([ToolResult('{"id": 7, "none": null}', is_json=True)], set(), ["id: 7"], []),
]


@pytest.mark.parametrize(("parts", "left_out", "stretches", "arguments"), LITERAL)
def test_what_letters_are_looked_for_in(parts: list[Part], left_out: set[int], stretches: list[str], arguments: list[str]) -> None:
    literal = DEFAULT.literal_of("assistant", parts, left_out)
    assert ([*literal.stretches], [*literal.arguments]) == (stretches, arguments)
    assert [*literal.texts] == [*stretches, *arguments]
    assert [*DEFAULT.literal_of("system", parts, left_out).texts] == []
    assert ALL.literal_of("system", parts, ()).stretches == tuple(filter(None, [text_of(parts)]))


# -- the leaves of JSON

LEAVES: dict[str, list[tuple[str, str]] | None] = {
    '{"a": 1, "b": {"c": "d"}}': [("a", "1"), ("b.c", "d")],
    '{"a": [1, [2, {"b": 3}]]}': [("a.0", "1"), ("a.1.0", "2"), ("a.1.1.b", "3")],
    "[]": [],
    "{}": [],
    "null": [],
    '""': [],
    "5": [("", "5")],
    "true": [("", "true")],
    '{"a": null, "b": "", "c": [], "d": {}, "e": [null, ""], "f": 0, "g": false, "h": " "}': [
        ("f", "0"),
        ("g", "false"),
        ("h", " "),
    ],
    # Numbers as they are written, whatever a float makes of them.
    "[1.0, 1e400, -0, 1E+2, 0.10, 12345678901234567890123]": [
        ("0", "1.0"),
        ("1", "1e400"),
        ("2", "-0"),
        ("3", "1E+2"),
        ("4", "0.10"),
        ("5", "12345678901234567890123"),
    ],
    '{"a": 1, "a": 2, "b": {"x": 1}, "b": 3}': [("a", "1"), ("a", "2"), ("b.x", "1"), ("b", "3")],
    '{"z": 1, "a": 2, "10": 3, "9": 4}': [("z", "1"), ("a", "2"), ("10", "3"), ("9", "4")],
    '{"a.b": {"c": 1}, "": 2, "k": {"": 3}}': [("a.b.c", "1"), ("", "2"), ("k.", "3")],
    r'{"a": "x\ny\t\"z\" \u00e9 \ud83d\ude00"}': [("a", 'x\ny\t"z" é 😀')],
    r'{"\u00e9": "\u0000"}': [("é", "\x00")],
    # Half of a pair of surrogates has no bytes.
    r'{"a\ud800": "b\udc00c"}': [("a\ufffd", "b\ufffdc")],
    "": None,
    "   ": None,
    "plain words": None,
    '{"a": 1': None,
    '{"a": 1} {"b": 2}': None,
    "{'a': 1}": None,
    '{"a": NaN}': None,
    "[Infinity]": None,
    "[-Infinity]": None,
    "[01]": None,
    '["line\nbreak"]': None,
    '\ufeff{"a": 1}': None,
    "[1,]": None,
}


@pytest.mark.parametrize("written", LEAVES)
def test_leaves(written: str) -> None:
    assert leaves(written) == LEAVES[written]


@pytest.mark.parametrize(("opens", "closes", "key"), [("[", "]", "0"), ('{"a":', "}", "a")])
def test_nested_as_deep_as_may_be(opens: str, closes: str, key: str) -> None:
    assert leaves(opens * 500 + "1" + closes * 500) == [(".".join([key] * 500), "1")]
    for levels in (501, 5_000, 200_000):
        written = opens * levels + "1" + closes * levels
        assert leaves(written) is None
        assert text_of_part(ToolCall("Go", written)) == f"Go\n{written}"


def test_the_depth_that_is_read_does_not_depend_on_the_caller() -> None:
    written = "[" * 499 + "1" + "]" * 499

    def deeper(levels: int) -> list[tuple[str, str]] | None:
        return deeper(levels - 1) if levels else leaves(written)

    assert deeper(250) == leaves(written) is not None


def test_a_long_key_over_a_long_list_stands_as_it_is_written() -> None:
    key = "k" * 100_000
    assert len(leaves(json.dumps({key: [1] * 100})) or ()) == 100
    written = json.dumps({key: [1] * 100_000})  # ten gigabytes of keys
    assert leaves(written) is None
    assert DEFAULT.text_of("assistant", [ToolCall("Go", written)]) == written


Json: TypeAlias = Any
STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSONS: st.SearchStrategy[Json] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), STRINGS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(STRINGS, inner, max_size=4)),
    max_leaves=12,
)


def walked(value: Json, key: str = "") -> list[tuple[str, str]]:
    """The leaves, said again by going down; a key before which there is none has no dot before it."""
    match value:
        case dict():
            return [leaf for name, inner in value.items() for leaf in walked(inner, f"{key}.{name}" if key else name)]
        case list():
            return [leaf for at, inner in enumerate(value) for leaf in walked(inner, f"{key}.{at}" if key else str(at))]
        case None | "":
            return []
        case bool() | int():
            return [(key, json.dumps(value))]
        case _:
            return [(key, value)]


@examples(200)
@given(JSONS, st.booleans(), st.sampled_from([None, 1]))
def test_any_json(value: Json, ascii_only: bool, indent: int | None) -> None:
    assert leaves(json.dumps(value, ensure_ascii=ascii_only, indent=indent)) == walked(value)


# -- bytes


def encoded(size: int) -> str:
    return base64.b64encode(random.Random(size).randbytes(size)).decode()


RUN = encoded(150)  # 200 characters
WITHOUT = {
    "a run of 200": (f"a {RUN} b", "a   b"),
    "a run of 199": (f"a {RUN[:199]} b", f"a {RUN[:199]} b"),
    "padding": (f"a {encoded(151)} b", "a   b"),
    "padding does not count": (f"a {RUN[:198]}== b", f"a {RUN[:198]}== b"),
    "no more than two are padding": (f"a {RUN}=== b", "a  = b"),
    "no capitals": (f"a {RUN.lower()} b", f"a {RUN.lower()} b"),
    "no small letters": (f"a {RUN.upper()} b", f"a {RUN.upper()} b"),
    "no digits": ("Ab" * 150, "Ab" * 150),
    "all three": ("Ab1" * 100, " "),
    "letters of a word": ("word" * 60, "word" * 60),
    "a hexadecimal": ("0123456789abcdef" * 20, "0123456789abcdef" * 20),
    "other alphabet": (f"a {RUN.replace('A', '-').replace('b', '_')}", f"a {RUN.replace('A', '-').replace('b', '_')}"),
    "in quotes": (f'"{RUN}",', '" ",'),
    "glued to a word by a sign": (f"key={RUN}", "key= "),
    "glued to a word": (f"é{RUN}é", "é é"),
    "over lines": (f"{RUN[:76]}\n{RUN[76:152]}", f"{RUN[:76]}\n{RUN[76:152]}"),
    "data url": ("see data:image/png;base64,iVBORw0KGgo= here", "see   here"),
    "data url to the next blank": ("(data:text/html,<b>x</b>)\tnext", "( \tnext"),
    "data url to the end": ("x data:;base64,aGk=", "x  "),
    "several parameters": ("data:text/plain;charset=utf-8;base64,aGk= y", "  y"),
    "an empty body": ("data:text/plain, y", "  y"),
    "capitals": ("DATA:Image/PNG;base64,AA y", "  y"),
    "no type and no parameter": ("data:,hello y", "data:,hello y"),
    "a list of data": ("data:a,b y", "data:a,b y"),
    "data and a colon": ("the data: one, two", "the data: one, two"),
    "inside a word": ("mydata:text/plain,x y", "mydata:text/plain,x y"),
    "no comma": ("data:image/png;base64", "data:image/png;base64"),
    "two": ("data:a/b,c data:d/e,f g", "    g"),
    "short": ("a", "a"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_bytes_are_cut_out(name: str) -> None:
    text, left = WITHOUT[name]
    assert without_bytes(text) == left


def test_bytes_are_kept_in_the_text_and_cut_from_what_is_searched() -> None:
    parts: list[Part] = [
        Text(f"a {RUN} b"),
        ToolCall("Save", json.dumps({"data": RUN})),
        ToolResult(f"data:image/png;base64,{RUN} c"),
    ]
    assert RUN in text_of(parts)
    assert DEFAULT.text_of("user", parts) == "a   b\n \n  c"


def test_megabytes_of_base64() -> None:
    assert without_bytes(f"before {encoded(3_000_000)} after") == "before   after"


# -- measures


@examples(100)
@given(st.lists(st.one_of(st.text(), st.text("aé東😀\n\ud800")), max_size=4))
def test_offsets_slice_the_transcript(texts: list[str]) -> None:
    texts = [well_formed(text) for text in texts]
    transcript = "".join(f"{text}\n" for text in texts).encode()
    at = 0
    for text in texts:
        taken = measure(text)
        piece = transcript[at : at + taken.content_length]
        assert piece.decode() == text
        assert taken.digest == hashlib.sha256(piece).digest()
        at += taken.content_length + 1
    assert at == len(transcript)


def test_lone_surrogates_are_replaced_and_nothing_else_is() -> None:
    assert well_formed("a\ud83cb\udfffc") == "a\ufffdb\ufffdc"
    assert well_formed("😀 é \x00 \uffff") == "😀 é \x00 \uffff"
    assert well_formed("plain") == "plain"
