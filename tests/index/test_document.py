"""From stored turns to documents, and what is left of changes when later ones have won."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.model import File, Part, Reasoning, Source, Text, ToolCall, ToolResult
from aforesaid_server.index import Reach
from aforesaid_server.index.document import Documents, FoundWords, Fresh, brought_by, lasting
from aforesaid_server.store import Change, Forget, ForgetConversation, Put, StoredAgent, StoredConversation, StoredTurn, TurnInPlace
from aforesaid_server.text import words
from aforesaid_server.text.transcript import NO_KIND, SAYING, SEARCH_TOOLS, Kind, Searched, kind_of
from aforesaid_server.text.words import GAP, INDEXED_BYTES, NO_WORDS, Analyser
from tests.text.alphabets import texts
from tests.text.effort import examples

ENGLISH = Analyser()
DOCUMENTS = Documents(ENGLISH, Searched())


def place(number: int, text: str = "zebra", *, conversation: int = 1, role: str = "user") -> TurnInPlace:
    turn = StoredTurn(number, conversation, f"t{number}", 0, role, (Text(text), Reasoning("okapi")), 1_000 + number, 0, 77, b"")
    kept = StoredConversation(conversation, 5, "c", "", Source(project="/srv/shop"), 1, 0, 0, 0, 0)
    return TurnInPlace(turn, kept, StoredAgent(5, "ada", "", "", False, {"user_id": "u"}, None, ""))


def test_a_document_is_what_an_index_takes_of_a_turn() -> None:
    made = DOCUMENTS.of(place(7, "The Zebra", role="assistant"))
    assert (made.number, made.content_length, made.agent_pk, made.conversation_pk) == (7, 77, 5, 1)
    assert (made.role, made.project, made.scope, made.created_at) == ("assistant", "/srv/shop", {"user_id": "u"}, 1_007)
    assert made.words == ENGLISH.turn("The Zebra")
    assert made.key >> 45 == 77


def test_words_that_are_known_are_taken() -> None:
    turn = place(7)
    known = {("user", turn.turn.parts): FoundWords(ENGLISH.turn("quagga"))}
    assert DOCUMENTS.of(turn, known).words.exact == ("quagga",)
    assert DOCUMENTS.of(place(7, role="tool"), known).words.exact == ("zebra",), "of another role other parts may be searched"
    assert brought_by([Put(7, 7, 0, turn)], DOCUMENTS, known).fresh[0].document.words.exact == ("quagga",)


def test_only_searched_parts_make_words() -> None:
    parts = (Text("a"), Reasoning("b"), ToolCall("Bash", '{"c": "d"}'))
    assert DOCUMENTS.words_of("user", parts).words.exact == ("a", "d")
    assert DOCUMENTS.words_of("system", parts).words.exact == ()
    assert Documents(ENGLISH, Searched(reasoning=True, system=True)).words_of("system", parts).words.exact == ("a", "b", "d")


def test_own_searches_are_left_out_of_one_half() -> None:
    parts = (
        Text("a red"),
        ToolCall("search_transcripts", '{"q": "b"}', "1"),
        ToolResult("c", "1"),
        ToolResult("d", "2"),
        Text("fox"),
    )
    base = place(7)
    turn = replace(base, turn=replace(base.turn, parts=parts), answers={2: "x.search_transcripts", 3: "Bash"})
    made = DOCUMENTS.of(turn)
    assert made.words.exact == ("a", "red", "b", "c", "d", "fox")
    assert made.without is not None
    assert made.without.exact == ("a", "red", GAP, "d", "fox")
    assert made.said(own_searches=True) == made.words
    assert made.said(own_searches=False) == made.without
    assert DOCUMENTS.stretches_of(turn) == ["a red", "d\nfox"]
    assert DOCUMENTS.stretches_of(turn, own_searches=True) == ["a red\nb\nc\nd\nfox"]
    # Nothing but such a part makes a turn two: neither a result nor another call.
    assert DOCUMENTS.of(place(7)).without is None
    assert DOCUMENTS.of(replace(turn, turn=replace(turn.turn, parts=parts[3:]), answers={0: "Bash"})).without is None
    alone = DOCUMENTS.of(replace(turn, turn=replace(turn.turn, parts=parts[1:2]), answers={}))
    assert alone.without == NO_WORDS


def test_a_turn_of_several_kinds_is_narrowed() -> None:
    parts = (Text("a red"), ToolCall("Bash", '{"c": "b"}', "1"), Text("fox"), File("", "name"))
    base = place(7)
    made = DOCUMENTS.of(replace(base, turn=replace(base.turn, parts=parts)))
    assert made.kinds == Kind.TEXT | Kind.TOOL_CALL | Kind.FILE
    assert made.words.exact == ("a", "red", "b", "fox")

    def said(kinds: Kind) -> tuple[str, ...]:
        return made.said(own_searches=False, kinds=kinds).exact

    assert said(Kind.TEXT) == said(Kind.TEXT | Kind.REASONING) == said(Kind.TEXT | Kind.FILE) == ("a", "red", GAP, "fox")
    assert said(Kind.TOOL_CALL) == ("b",)
    assert made.said(own_searches=False, kinds=Kind.TEXT | Kind.TOOL_CALL) == made.words
    assert said(Kind.FILE) == said(Kind.REASONING) == ()
    assert [Reach({}, kinds=kind).admits(made) for kind in Kind] == [True, False, True, False, False, True]


def test_a_turn_of_one_kind_is_kept_once() -> None:
    """Reasoning that is not searched and files make no turn of several."""
    base = place(7)
    for parts in ((Text("a"), Reasoning("b"), File("", "c")), (ToolCall("Bash", "a"), ToolCall("Bash", "b")), ()):
        turn = replace(base, turn=replace(base.turn, parts=parts))
        made = DOCUMENTS.of(turn)
        assert made.narrowed is None
        assert DOCUMENTS.words_of("user", parts).by_place is None


def test_letters_are_those_of_the_whole_turn() -> None:
    parts = (Text("A Red"), ToolCall("search_transcripts", '{"Q": "B"}'), Reasoning("not searched"), File("", "Name"))
    base = place(7)
    turn = replace(base, turn=replace(base.turn, parts=parts))
    assert DOCUMENTS.of(turn).letters == 'a red\nsearch_transcripts\nq: b\nname\n{"q": "b"}'
    assert DOCUMENTS.of(turn, letters=False).letters is None, "it may hold any"
    assert DOCUMENTS.literal_of(turn).texts == ("A Red", "Name")
    assert DOCUMENTS.literal_of(turn, kinds=Kind.FILE, own_searches=True).texts == ("Name",)
    assert DOCUMENTS.of(replace(turn, turn=replace(turn.turn, role="system"))).letters == ""
    assert brought_by([Put(7, 7, 0, turn)], DOCUMENTS, {}).fresh[0].document.letters is None


NAMES, IDS = st.sampled_from(["search_transcripts", "Bash"]), st.sampled_from(["1", "2"])
PARTS = st.one_of(
    *(st.builds(kind, texts) for kind in (Text, Reasoning)),
    st.builds(File, st.just(""), texts),
    st.builds(ToolCall, NAMES, texts, IDS),
    st.builds(ToolResult, texts, IDS, st.booleans()),
)


@examples(150)
@given(st.lists(PARTS, max_size=6), st.booleans(), st.one_of(st.just(INDEXED_BYTES), st.integers(0, 60)))
def test_whatever_is_left_out_the_words_are_those_of_the_rest(parts: list[Part], reasoning: bool, most: int) -> None:
    """As if only the texts of what is left were there, a gap between them where something searched stood."""
    documents = Documents(ENGLISH, Searched(reasoning=reasoning))
    base = place(7)
    answers = {at: "search_transcripts" for at, part in enumerate(parts) if isinstance(part, ToolResult) and part.call_id == "1"}
    turn = replace(base, turn=replace(base.turn, parts=tuple(parts)), answers=answers)
    searched = SAYING if reasoning else SAYING & ~Kind.REASONING
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(words, "INDEXED_BYTES", most)
        made = documents.of(turn)
        for asked, own in itertools.product([NO_KIND, *map(Kind, range(1, 64))], (False, True)):
            stretches: list[list[str]] = [[]]
            for at, part in enumerate(parts):
                mine = at in answers or (isinstance(part, ToolCall) and part.name != "Bash")
                if not kind_of(part) & searched:
                    continue
                if (asked and not kind_of(part) & asked) or (mine and not own):
                    stretches.append([])
                else:
                    stretches[-1].append(documents.searched.text_of("user", [part]))
            left = [*filter(None, map("\n".join, stretches))]
            assert documents.stretches_of(turn, own_searches=own, kinds=asked) == left, (asked, own)
            assert made.said(own_searches=own, kinds=asked) == ENGLISH.turn_of_stretches(left), (asked, own)


def test_a_turn_without_words_keeps_its_place() -> None:
    turn = replace(place(7), answers={0: "search_transcripts"})
    made = DOCUMENTS.wordless(turn)
    assert made == replace(DOCUMENTS.of(place(7)), words=NO_WORDS)
    assert (made.letters, made.narrowed) == (None, None)
    several = replace(turn, turn=replace(turn.turn, parts=(Text("zebra"), ToolCall("Bash", "okapi"))))
    assert DOCUMENTS.wordless(several).said(own_searches=True, kinds=Kind.TEXT) == NO_WORDS


def test_a_fingerprint_names_all_that_words_depend_on() -> None:
    several = [
        Documents(Analyser(language), Searched(r, s, tools))
        for language in ("english", "german")
        for r in (False, True)
        for s in (False, True)
        for tools in (SEARCH_TOOLS, SEARCH_TOOLS | {"recall"})
    ]
    assert len({one.fingerprint for one in several}) == 16


CHANGES: dict[str, tuple[list[Change], list[tuple[int, int]], list[int], list[int]]] = {
    # changes: (position, turn) of what is put; turns and conversations to forget
    "a turn": ([Put(1, 1, 0, place(1))], [(1, 1)], [], []),
    "a turn and its next text": ([Put(1, 1, 0, place(1)), Put(2, 2, 1, place(2))], [(2, 2)], [1], []),
    "a text three times": ([Put(1, 1, 0, place(1)), Put(2, 2, 1, place(2)), Put(3, 3, 2, place(3))], [(3, 3)], [1, 2], []),
    "the next text of one before": ([Put(5, 5, 3, place(5))], [(5, 5)], [3], []),
    "the same text with another role": ([Put(1, 1, 0, place(1)), Put(2, 1, 0, place(1, role="tool"))], [(2, 1)], [1], []),
    "another role of one before": ([Put(9, 3, 0, place(3))], [(9, 3)], [3], []),
    "changed since": ([Put(1, 1, 0, None), Put(2, 2, 1, place(2))], [(2, 2)], [1], []),
    "gone since": ([Put(1, 1, 0, None), Put(2, 2, 1, None)], [], [1], []),
    "forgotten": ([Put(1, 1, 0, place(1)), Forget(2, 1)], [], [1], []),
    "forgotten before": ([Forget(7, 3)], [], [3], []),
    "a conversation": (
        [Put(1, 1, 0, place(1)), Put(2, 2, 0, place(2, conversation=2)), ForgetConversation(3, 1)],
        [(2, 2)],
        [],
        [1],
    ),
    "a conversation and another turn": ([ForgetConversation(1, 1), Put(2, 2, 0, place(2, conversation=2))], [(2, 2)], [], [1]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_later_changes_win(name: str) -> None:
    changes, puts, forget, conversations = CHANGES[name]
    left = lasting(changes)
    assert left.position == changes[-1].number
    assert [(position, one.turn.number) for position, one in left.puts] == puts
    assert (list(left.forget), list(left.forget_conversations)) == (forget, conversations)
    told = brought_by(changes, DOCUMENTS, {})
    assert told.position == left.position
    assert list(told.fresh) == [Fresh(position, DOCUMENTS.of(one)) for position, one in left.puts]
    assert (list(told.forget), list(told.forget_conversations)) == (forget, conversations)


def test_the_last_of_a_turn_is_what_is_put() -> None:
    left = lasting([Put(1, 1, 0, place(1)), Put(2, 1, 0, place(1, role="tool"))])
    assert [one.turn.role for _, one in left.puts] == ["tool"]
