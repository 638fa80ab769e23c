"""ReadTranscript against a plain model of a transcript, and the turns that come beside hits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import pytest

from tests.api.callers import APPEND, WRITE, Caller, hits, new, new_word, number, ok, turn
from tests.api.doors import ConnectDoor, Json

TALK = "talk"
MIB = 1_048_576
LARGEST = 2**63 - 1


@pytest.fixture(scope="module")
def user(service_url: str) -> Iterator[Caller]:
    door = ConnectDoor(service_url)
    yield Caller(door)
    door.close()


@pytest.fixture
def agent(user: Caller) -> Caller:
    """An agent of the test's own, who reads what it said itself."""
    return user.agent(new("agent"))


def begins(texts: Sequence[str]) -> list[int]:
    """Where each turn begins in the transcript, and where the last one ends."""
    return list(accumulate((len(text.encode()) + 1 for text in texts), initial=0))


def touched(texts: Sequence[str], offset: int, length: int) -> list[str]:
    """The turns of which the range holds a byte, the newline that follows each counted to it; length 0 is to the end."""
    starts = begins(texts)
    end = offset + length if length else starts[-1]
    return [text for text, start, after in zip(texts, starts, starts[1:], strict=False) if offset < after and start < end]


def texts_of(body: Json) -> list[str]:
    return ["\n".join(part["text"] for part in one["parts"]) for one in body.get("turns", [])]


# Ranges

SMALL = ["", "é", "a\nb", "", "日", "😀x"]


def test_every_range_of_a_small_transcript(agent: Caller) -> None:
    """Offsets inside of characters, at newlines and in turns without text: whole turns, exactly those that the range touches."""
    agent.say(TALK, *SMALL)
    size = begins(SMALL)[-1]
    assert size == 19
    for offset in range(size + 2):
        for length in range(size + 2):
            body = ok(agent.read(TALK, offset=offset, length=length)).body
            assert texts_of(body) == touched(SMALL, offset, length), (offset, length)
            assert "nextOffset" not in body, (offset, length)


def test_what_a_turn_says_of_itself(agent: Caller) -> None:
    kept = ok(agent.call(APPEND, {"conversationId": TALK, "turns": [turn(text) for text in SMALL]})).body["turns"]
    read = ok(agent.read(TALK)).body["turns"]
    for place, (text, start) in enumerate(zip(SMALL, begins(SMALL), strict=False)):
        for told in (kept[place], read[place]):
            assert (told["turnId"], number(told, "seq"), told["role"]) == (f"{TALK}:{place}", place, "user")
            assert (number(told, "contentOffset"), number(told, "contentLength")) == (start, len(text.encode()))
        assert read[place]["parts"] == [{"text": text}]
        assert "parts" not in kept[place]
        assert read[place]["createdAt"] == kept[place]["createdAt"]


@pytest.mark.parametrize(("offset", "length"), [(19, 0), (20, 1), (10**12, 5), (LARGEST, 0), (LARGEST, LARGEST)])
def test_past_the_end(offset: int, length: int, agent: Caller) -> None:
    agent.say(TALK, *SMALL)
    assert ok(agent.read(TALK, offset=str(offset), length=str(length))).body == {}


def test_a_length_past_the_end(agent: Caller) -> None:
    agent.say(TALK, *SMALL)
    assert texts_of(ok(agent.read(TALK, offset="3", length=str(LARGEST))).body) == SMALL[1:]


def test_a_conversation_without_turns(agent: Caller) -> None:
    ok(agent.call(WRITE, {"conversation": {"conversationId": TALK}}))
    assert ok(agent.read(TALK)).body == ok(agent.read(TALK, offset=1, length=1)).body == {}


def test_offsets_follow_a_turn_that_is_rewritten(agent: Caller) -> None:
    """Longer, shorter, empty and back, in the middle of more turns than are read at once."""
    texts = [f"turn {place} é" for place in range(150)]
    agent.say(TALK, turns=[turn(text, turn_id=f"t{place}") for place, text in enumerate(texts)])
    for place, text in ((70, "日" * 50), (0, ""), (149, "x"), (70, ""), (71, "a\n\nb")):
        texts[place] = text
        agent.say(TALK, turns=[turn(text, turn_id=f"t{place}")])
        body = ok(agent.read(TALK)).body
        assert texts_of(body) == texts
        assert [number(one, "contentOffset") for one in body["turns"]] == begins(texts)[:-1]
        start = begins(texts)[place]
        assert texts_of(ok(agent.read(TALK, offset=start, length=1)).body) == [text]
        assert texts_of(ok(agent.read(TALK, offset=start + len(text.encode()), length=2)).body) == texts[place : place + 2]


# How much one reply holds

HALF = MIB // 2


@pytest.mark.parametrize(
    ("sizes", "replies"),
    [
        ([HALF, HALF, 1], [[0, 1], [2]]),
        ([HALF, HALF + 1, 1], [[0], [1, 2]]),
        ([MIB, 0, 1], [[0, 1], [2]]),
        ([3 * MIB], [[0]]),
        ([5, 3 * MIB, 5], [[0], [1], [2]]),
        ([400_000] * 6, [[0, 1], [2, 3], [4, 5]]),
        ([30_000] * 80, [list(range(34)), list(range(34, 68)), list(range(68, 80))]),
    ],
)
def test_at_most_a_mebibyte_but_at_least_one_turn(sizes: list[int], replies: list[list[int]], agent: Caller) -> None:
    """Each turn that fits comes, the next reply begins where `next_offset` says, and the last one says 0."""
    texts = ["é" * (size // 2) + "x" * (size % 2) for size in sizes]
    agent.say(TALK, *texts)
    starts = begins(texts)
    told: list[list[int]] = []
    offset = 0
    for _ in sizes:
        body = ok(agent.read(TALK, offset=offset)).body
        told.append([number(one, "seq") for one in body["turns"]])
        assert texts_of(body) == [texts[seq] for seq in told[-1]]
        offset = number(body, "nextOffset")
        if not offset:
            break
        assert offset == starts[told[-1][-1] + 1]
    assert told == replies
    assert offset == 0


def test_a_range_that_ends_where_a_reply_is_full(agent: Caller) -> None:
    """`next_offset` is 0 at the end of what was asked for, and else where it goes on."""
    agent.say(TALK, "x" * HALF, "y" * HALF, "z")
    asked = [(0, MIB + 2, 0), (0, MIB + 3, MIB + 2), (0, HALF + 1, 0), (HALF, 2, 0), (HALF + 1, HALF + 2, 0), (1, MIB + 1, 0)]
    for offset, length, goes_on in asked:
        assert number(ok(agent.read(TALK, offset=offset, length=length)).body, "nextOffset") == goes_on, (offset, length)


# By id


def test_a_turn_by_its_id(agent: Caller) -> None:
    ids = ["plain", "with space", "日本", "a/b?c=d&e", "%41", "\x00\n", f"{TALK}:0", "'"]
    agent.say(TALK, turns=[turn(f"said {place}", turn_id=turn_id) for place, turn_id in enumerate(ids)])
    for place, turn_id in enumerate(ids):
        body = ok(agent.read(TALK, turnId=turn_id)).body
        assert [(one["turnId"], number(one, "seq")) for one in body["turns"]] == [(turn_id, place)]
        assert texts_of(body) == [f"said {place}"]
        assert "nextOffset" not in body


def test_a_large_turn_by_its_id(agent: Caller) -> None:
    agent.say(TALK, turns=[turn("x"), turn("é" * MIB, turn_id="large"), turn("y")])
    body = ok(agent.read(TALK, turnId="large")).body
    assert texts_of(body) == ["é" * MIB]
    assert "nextOffset" not in body


@pytest.mark.parametrize("fields", [{"offset": 1}, {"length": 1}, {"offset": 1, "length": 1}])
def test_an_id_together_with_a_range(fields: Json, agent: Caller) -> None:
    agent.say(TALK, turns=[turn("x", turn_id="t")])
    reply = agent.read(TALK, turnId="t", **fields)
    assert (reply.code, [field for field, _ in reply.violations]) == ("invalid_argument", ["turn_id"])


@pytest.mark.parametrize(
    "fields", [{"conversationId": "none"}, {"turnId": "none"}, {"turnId": f"{TALK}:2"}, {"agentId": "nobody-here"}]
)
def test_what_is_not_there(fields: dict[str, Any], agent: Caller) -> None:
    """The message names the field and the id, and nothing of the conversation."""
    agent.say(TALK, "secret", "secret")
    asked = {"conversationId": TALK} | fields
    reply = agent.read(conversation_id=asked.pop("conversationId"), **asked)
    assert reply.code == "not_found"
    field = {"conversationId": "conversation_id", "turnId": "turn_id", "agentId": "agent_id"}[next(iter(fields))]
    assert reply.message.startswith(f"{field}: ")
    assert reply.message.endswith(next(iter(fields.values())))
    assert "secret" not in str(reply.body)


def test_deleted_ones_cannot_be_read(agent: Caller) -> None:
    agent.say(TALK, turns=[turn("x", turn_id="t")])
    ok(agent.call("agent.v1.ConversationService/DeleteConversation", {"conversationId": TALK}))
    assert agent.read(TALK).code == agent.read(TALK, turnId="t").code == agent.read(TALK, offset=9).code == "not_found"


def test_parts_come_back_as_they_were_written(agent: Caller) -> None:
    """Those that are not searched too; arguments and JSON byte for byte, even where they are none."""
    parts: list[Json] = [
        {"reasoning": "let me see"},
        {"text": "first\n\nsecond"},
        {"toolCall": {"name": "run", "arguments": '{ "b" : [1, 2.50],\n"a":null}', "callId": "7"}},
        {"toolCall": {"name": "run", "arguments": "not { json"}},
        {"toolResult": {"callId": "7", "text": "done"}},
        {"toolResult": {"callId": "8", "json": '{"z": 1, "y" : "\\u00e9"}', "isError": True}},
        {"file": {"mediaType": "image/png", "name": "a b.png"}},
    ]
    agent.say(TALK, turns=[{"turnId": "t", "role": "assistant", "parts": parts}, {"role": "", "parts": []}])
    first, second = ok(agent.read(TALK)).body["turns"]
    assert (first["role"], first["parts"]) == ("assistant", parts)
    assert "parts" not in second
    text = "let me see\nfirst\n\nsecond\nrun\nb.0: 1\nb.1: 2.50\nrun\nnot { json\ndone\nz: 1\ny: é\na b.png"
    assert number(first, "contentLength") == len(text.encode())


def test_conversations_of_one_id(user: Caller) -> None:
    """Each agent has its own."""
    one, other = user.agent(new("one")), user.agent(new("other"))
    one.say(TALK, "said by one")
    other.say(TALK, "said by other")
    assert texts_of(ok(one.read(TALK)).body) == ["said by one"]
    assert texts_of(ok(one.read(TALK, agentId=other.agent_id)).body) == ["said by other"]


# Beside hits


@pytest.mark.parametrize("around", [0, 1, 2, 10])
@pytest.mark.parametrize("at", [0, 1, 3, 5, 6])
def test_turns_on_both_sides(around: int, at: int, agent: Caller) -> None:
    word, texts = new_word(), [f"turn {place}" for place in range(7)]
    texts[at] = word
    ids = agent.say(TALK, *texts)
    agent.say("another", "not beside it")
    (hit,) = hits(ok(agent.search(word, around=around)))
    for side, seqs in (("before", range(max(0, at - around), at)), ("after", range(at + 1, min(7, at + 1 + around)))):
        assert [number(one, "seq") for one in hit.get(side, [])] == list(seqs)
        assert [(one["turnId"], one["role"], one["text"]) for one in hit.get(side, [])] == [
            (ids[seq], "user", texts[seq]) for seq in seqs
        ]
        assert all("cut" not in one and "createdAt" in one for one in hit.get(side, []))


def test_hits_of_every_list_have_them(agent: Caller) -> None:
    word, other = new_word(), new_word()
    agent.say("c", "before", f"{word} {other}", "after")
    agent.say("n", "before", f"x{word}x {other}", "after")
    agent.say("p", "before", other, "after")
    reply = ok(agent.search(f"{word} {other}", around=1)).body
    for name in ("matches", "near", "partial"):
        (hit,) = reply[name]
        assert [one["text"] for side in ("before", "after") for one in hit[side]] == ["before", "after"]


def test_a_turn_beside_a_hit_is_cut_at_four_thousand_characters(agent: Caller) -> None:
    """Code points, neither bytes nor UTF-16 units; the text is that of the whole turn, parts that are not searched included."""
    word = new_word()
    texts = ["😀" * 4_000, "😀" * 4_001, word, "é\n" * 2_000, "é\n" * 2_000 + "x"]
    agent.say(TALK, *texts, turns=[{"role": "tool", "parts": [{"reasoning": "thought"}, {"text": "said"}]}])
    (hit,) = hits(ok(agent.search(word, around=3)))
    assert [(one["text"], one.get("cut", False)) for side in ("before", "after") for one in hit[side]] == [
        (texts[0], False),
        (texts[0], True),
        (texts[3], False),
        (texts[3], True),
        ("thought\nsaid", False),
    ]


def test_at_most_a_mebibyte_beside_hits(agent: Caller) -> None:
    """The best hits have all of theirs, the others none, and the notice says of how many; without them nothing is left out."""
    word = new_word()
    beside = ["😀" * 4_000] * 10
    for place in range(5):
        agent.say(f"c{place}", *beside, f"{word}{' x' * place}", *beside)
    body = ok(agent.search(word, around=10)).body
    counts = [(hit["conversationId"], len(hit.get("before", [])), len(hit.get("after", []))) for hit in body["matches"]]
    assert counts == [("c0", 10, 10), ("c1", 10, 10), ("c2", 10, 10), ("c3", 0, 0), ("c4", 0, 0)]
    assert "2 of the hits" in body["notice"]
    size = sum(len(one["text"].encode()) for hit in body["matches"] for side in ("before", "after") for one in hit.get(side, []))
    assert size == 3 * 20 * 16_000 <= MIB
    fewer = ok(agent.search(word, around=6)).body
    assert [len(hit.get("before", [])) for hit in fewer["matches"]] == [6] * 5
    assert "notice" not in fewer
