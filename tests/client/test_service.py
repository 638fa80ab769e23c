"""Both clients against the service itself: every method, and what comes back is what was written."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

import aforesaid
from aforesaid import Agent, Client, Conversation, File, Part, Reasoning, Source, SourceRef, Text, ToolCall, ToolResult, Turn
from tests.client.both import Connect

PARTS: tuple[Part, ...] = (
    Text("said\x00 naïve 記憶 👩\u200d💻"),
    Reasoning("thought"),
    ToolCall("bash", '{"command": "ls", "n": 12345678901234567890}', "call-1"),
    ToolResult("plain", "call-1", is_error=True),
    ToolResult('{"a": [1.0, null]}', "call-1", is_json=True),
    File("image/png", "shot.png"),
)


@pytest.fixture
def user(connect: Connect, service_url: str) -> Client:
    return connect(service_url, "")


@pytest.fixture
def name() -> str:
    """An id that no other test has; letters only, so that it is one word."""
    return "".join(chr(ord("a") + digit) for byte in uuid4().bytes[:10] for digit in divmod(byte, 16))


def turns(*texts: str) -> list[Turn]:
    return [Turn("user", (Text(text),)) for text in texts]


def test_a_conversation_comes_back_as_it_was_written(user: Client, name: str) -> None:
    written = (
        Turn("assistant", PARTS, "id with\nanything é", 1_700_000_000_000_001),
        Turn("user", (Text("second"),), "", 1_700_000_000_000_002),
    )
    source = Source("claude-code", "/a/file.jsonl", "/a/project")
    kept = user.write(Conversation("c", name, "Title", written, source))
    assert (kept.agent_id, kept.title, kept.source, kept.revision, kept.turn_count) == (name, "Title", source, 1, 2)
    assert user.conversation("c", agent_id=name) == kept
    assert list(user.conversations(name)) == [kept]
    read = list(user.read("c", agent_id=name))
    assert [(turn.turn_id, turn.seq, turn.role, turn.parts, turn.created_at) for turn in read] == [
        ("id with\nanything é", 0, "assistant", PARTS, 1_700_000_000_000_001),
        ("c:1", 1, "user", (Text("second"),), 1_700_000_000_000_002),
    ]
    assert (read[0].content_offset, read[1].content_offset) == (0, read[0].content_length + 1)
    assert kept.content_length == read[1].content_offset + len("second") + 1
    assert [turn.seq for turn in user.read("c", agent_id=name, turn_id="c:1")] == [1]
    assert [turn.seq for turn in user.read("c", agent_id=name, offset=read[1].content_offset, length=1)] == [1]


def test_appending_tells_ids_and_places(user: Client, name: str) -> None:
    first = user.append("c", turns("one", "two"), agent_id=name)
    assert (first.revision, [(turn.turn_id, turn.seq, turn.content_offset) for turn in first.turns]) == (
        1,
        [("c:0", 0, 0), ("c:1", 1, 4)],
    )
    same = user.append("c", [Turn("user", (Text("one"),), "c:0")], agent_id=name)
    assert (same.revision, [turn.seq for turn in same.turns]) == (1, [0])


def test_a_revision_that_does_not_match_is_aborted_and_a_deleted_conversation_stays_gone(user: Client, name: str) -> None:
    conversation = Conversation("c", name, turns=tuple(turns("one")))
    user.write(conversation, expected_revision=0)
    with pytest.raises(aforesaid.Aborted):
        user.write(conversation, expected_revision=0)
    user.delete("c", agent_id=name)
    with pytest.raises(aforesaid.NotFound):
        user.conversation("c", agent_id=name)
    with pytest.raises(aforesaid.FailedPrecondition):
        user.append("c", turns("two"), agent_id=name)


def test_a_long_transcript_is_read_whole(user: Client, name: str) -> None:
    texts = [f"{number} {'x' * 300_000}" for number in range(8)]
    user.append("c", turns(*texts), agent_id=name)
    whole = list(user.read("c", agent_id=name))
    assert [turn.parts for turn in whole] == [(Text(text),) for text in texts]
    begin, end = whole[1].content_offset, whole[6].content_offset
    assert [turn.seq for turn in user.read("c", agent_id=name, offset=begin, length=end - begin + 1)] == [1, 2, 3, 4, 5, 6]


def test_searches_page_by_page_are_the_whole_list(user: Client, name: str) -> None:
    user.append("c", turns(*(f"{name} {'x' * number}" for number in range(25))), agent_id=name)
    pages = list(user.search(name, agent_id=name, limit=10))
    assert [len(page.matches) for page in pages][:3] == [10, 10, 5]
    assert [hit.seq for page in pages for hit in page.matches] == list(range(25))
    assert [
        hit.seq for page in user.search(name, agent_id=name, limit=10, cursor=pages[0].next_page_token) for hit in page.matches
    ] == list(range(10, 25))
    with pytest.raises(aforesaid.InvalidArgument) as caught:
        next(user.search("another", agent_id=name, cursor=pages[0].next_page_token))
    assert [violation.field for violation in caught.value.violations] == ["pagination.cursor"]


def test_filters_reach_the_service(user: Client, name: str) -> None:
    said = (
        Turn("user", (Text(f"{name} running"),), "a", 1_000_000),
        Turn("assistant", (Text(f"{name} run"),), "b", 2_000_000),
        Turn("user", (Text("other"),), "c", 3_000_000),
    )
    user.write(Conversation("c", name, turns=said, source=Source(project="/shop")))
    user.write(Conversation("d", name, turns=said))

    def found(**filters: Any) -> list[tuple[str, str]]:
        return sorted(
            (hit.conversation_id, hit.turn_id) for hit in next(user.search(f"{name} run", agent_id=name, **filters)).matches
        )

    assert found() == [("c", "a"), ("c", "b"), ("d", "a"), ("d", "b")]
    assert found(roles=["assistant"], conversation_id="d") == [("d", "b")]
    assert found(since=2_000_000, project="/shop") == [("c", "b")]
    assert found(until=2_000_000, project="/shop") == [("c", "a")]
    assert found(words="as_typed", project="/shop") == [("c", "b")]
    assert found(project="/none") == []
    with pytest.raises(aforesaid.NotFound):
        found(scope={"user_id": "nobody"})
    page = next(user.search(f"{name} nothing", agent_id=name, match="any_word", conversation_id="c", around=1))
    assert sorted(hit.turn_id for hit in page.matches) == ["a", "b"]
    hit = next(hit for hit in page.matches if hit.turn_id == "a")
    assert (hit.before, [turn.text for turn in hit.after]) == ((), [f"{name} run"])


def test_kinds_of_parts_narrow_a_search_and_come_with_each_hit(user: Client, name: str) -> None:
    said = (
        Turn("assistant", (Text(f"{name} said"), ToolCall("bash", f'{{"command": "cat {name}"}}', "call-1")), "call"),
        Turn("tool", (ToolResult(f"{name} plain"), ToolResult(f'{{"a": "{name} json"}}', is_json=True)), "result"),
        Turn("assistant", (Reasoning(f"{name} thought"), Text("not so")), "thought"),
    )
    user.write(Conversation("c", name, turns=said))

    def found(*kinds: aforesaid.PartKind, query: str = name, match: Any = "all_words") -> set[str]:
        page = next(user.search(query, agent_id=name, part_kinds=kinds, match=match))
        return {hit.turn_id for hit in page.matches}

    assert found() == {"call", "result"}
    assert found("text") == {"call"}
    assert found("tool_call") == found("tool_call", "reasoning") == {"call"}
    assert found("tool_result_json", query=f"{name} json") == {"result"}
    assert found("tool_result_text", query=f"{name} json") == set()
    assert found("tool_result_text", query=f"{name} PL", match="substring") == {"result"}
    assert found(query=f'cat {name}"}}', match="substring") == {"call"}
    kinds = {hit.turn_id: hit.part_kinds for page in user.search(name, agent_id=name) for hit in page.matches}
    assert kinds == {"call": ("text", "tool_call"), "result": ("tool_result_text", "tool_result_json")}


def test_whole_turns_are_found_and_cited_turns_are_resolved(user: Client, name: str) -> None:
    scope = {"user_id": name}
    texts = [f"first {name}", f"{name} deploys on friday", "nothing of it"]
    written = Conversation("run-7:3", "chat", turns=tuple(turns(*texts)))
    assert user.write(written, exact_scope=True, scope=scope).revision == 1
    found = user.search_turns(f"deploy friday {name}", agent_ids=["chat"], around=1, scope=scope)
    assert [(hit.turn.turn_id, hit.conversation_id, hit.agent_id, hit.scope) for hit in found.hits] == [
        ("run-7:3:1", "run-7:3", "chat", scope),
        ("run-7:3:0", "run-7:3", "chat", scope),
    ]
    best = found.hits[0]
    assert (best.score, best.turn.parts, best.parts_left_out) == (1.0, (Text(texts[1]),), False)
    assert [turn.parts for turn in (*best.before, *best.after)] == [(Text(texts[0]),), (Text(texts[2]),)]
    assert [hit.turn.seq for hit in user.search_turns("deploy", stem=True, limit=1, scope=scope).hits] == [1]
    assert user.search_turns("deploy", scope=scope).hits == ()
    assert user.search_turns(name, agent_ids=["another"], scope=scope).hits == ()
    assert user.search_turns(name, conversation_ids=["another"], scope=scope).hits == ()

    source = user.resolve_source(SourceRef("run-7:3", "run-7:3:1"), scope=scope)
    assert (source.turn, source.scope, source.digest, source.unchanged) == (best.turn, scope, best.digest, None)
    assert user.resolve_source(SourceRef("run-7:3", "run-7:3:1", best.digest), scope=scope).unchanged is True
    assert user.resolve_source(SourceRef("run-7:3", "run-7:3:0", best.digest, "chat"), scope=scope).unchanged is False
    for missing in (SourceRef("run-7:3", "run-7:3:9"), SourceRef("gone", "x"), SourceRef("run-7:3", "run-7:3:1", agent_id="other")):
        with pytest.raises(aforesaid.NotFound):
            user.resolve_source(missing, scope=scope)
    with pytest.raises(aforesaid.NotFound):
        user.resolve_source(SourceRef("run-7:3", "run-7:3:1"), scope={"user_id": f"not {name}"})

    context = user.compile_context("friday", sources=[SourceRef("run-7:3", "run-7:3:2")], scope=scope)
    assert [(candidate.match, candidate.text.rstrip("\n"), candidate.turn_id) for candidate in context.candidates] == [
        ("source-ref", "user: nothing of it", "run-7:3:2"),
        ("search", f"user: {texts[1]}", "run-7:3:1"),
    ]
    assert user.compile_context("friday", budget=3, scope=scope).left_out == 1


def test_a_conversation_kept_elsewhere_is_taken_unless_it_was_deleted(user: Client, name: str) -> None:
    scope = {"user_id": name}
    kept = Conversation("c", "chat", turns=tuple(turns(f"{name} one")))
    first = user.index_conversation(kept, exact_scope=True, scope=scope)
    assert first.outcome == "written"
    assert first.conversation is not None
    assert (first.conversation.revision, first.conversation.turn_count) == (1, 1)
    again = user.index_conversation(kept, exact_scope=True, scope=scope)
    assert (again.outcome, again.conversation) == ("unchanged", first.conversation)
    with pytest.raises(aforesaid.Aborted):
        user.index_conversation(kept, expected_revision=5, exact_scope=True, scope=scope)
    user.delete("c", agent_id="chat", exact_scope=True, scope=scope)
    gone = user.index_conversation(kept, exact_scope=True, scope=scope)
    assert (gone.outcome, gone.conversation) == ("tombstoned", None)
    assert user.search_turns(name, scope=scope).hits == ()


def test_with_an_exact_scope_no_agent_of_a_narrower_one_is_meant(user: Client, name: str) -> None:
    wide = {"user_id": name}
    shop, bank = ({**wide, "project": project} for project in ("shop", "bank"))
    written = Conversation("c", "chat", turns=tuple(turns(f"{name} said")))
    for scope in (shop, bank):
        user.write(written, exact_scope=True, scope=scope)
    for call in (user.write, user.index_conversation, lambda _, **given: user.delete("c", agent_id="chat", **given)):
        with pytest.raises(aforesaid.InvalidArgument):
            call(written, scope=wide)
    with pytest.raises(aforesaid.NotFound):
        user.delete("c", agent_id="chat", exact_scope=True, scope=wide)
    assert user.index_conversation(written, exact_scope=True, scope=wide).outcome == "written"
    found = {tuple(sorted(hit.scope.items())) for hit in user.search_turns(name, scope=wide).hits}
    assert found == {tuple(sorted(scope.items())) for scope in (wide, shop, bank)}
    user.delete("c", agent_id="chat", exact_scope=True, scope=wide)
    assert len(user.search_turns(name, scope=wide).hits) == 2


def test_agents_their_reads_and_the_audit_log(connect: Connect, service_url: str, user: Client, name: str) -> None:
    reader, target = f"{name} Zoë 100%", f"{name}-b"
    made = user.update_agent(Agent(reader, name="Zoë", role="reviewer"), ["name", "role"])
    assert (made.agent_id, made.name, made.role) == (reader, "Zoë", "reviewer")
    user.append("c", turns(f"{name} secret"), agent_id=target)
    assert {reader, target} <= {agent.agent_id for agent in user.agents()}
    with connect(service_url, reader) as zoe:
        assert zoe.agent().name == "Zoë"
        hits = next(zoe.search(name, agent_id=target, reason="a look")).matches
        assert [hit.snippet for hit in hits] == [f"⟦{name}⟧ secret"]
        zoe.append("own", turns("mine"))
        with pytest.raises(aforesaid.PermissionDenied):
            zoe.append("c", turns("not mine"), agent_id=target)
        with pytest.raises(aforesaid.PermissionDenied):
            zoe.verify_audit()
    (record,) = user.reads(target)
    assert (record.caller_agent_id, record.role, record.target_agent_ids, record.method) == (
        reader,
        "reviewer",
        (target,),
        "SearchTranscripts",
    )
    assert (record.granted, record.turn_ids, record.reason, record.door, record.query) == (True, ("c:0",), "a look", "connect", "")
    check = user.verify_audit()
    assert (check.intact, check.faults) == (True, ())
    assert check.records >= 1


@pytest.mark.parametrize(
    ("call", "kind", "field"),
    [
        (lambda client: next(client.search("???")), aforesaid.InvalidArgument, "query"),
        (lambda client: next(client.search("x" * 501)), aforesaid.InvalidArgument, "query"),
        (lambda client: next(client.search("x", limit=-1)), aforesaid.InvalidArgument, "pagination.limit"),
        (lambda client: next(client.search("x", around=11)), aforesaid.InvalidArgument, "around"),
        (lambda client: client.agent("nobody has this id"), aforesaid.NotFound, None),
        (lambda client: next(client.read("none", agent_id="nobody has this id")), aforesaid.NotFound, None),
    ],
)
def test_errors_are_of_the_tree_and_name_the_field(
    user: Client, call: object, kind: type[aforesaid.AforesaidError], field: str | None
) -> None:
    assert callable(call)
    with pytest.raises(kind) as caught:
        call(user)
    if isinstance(caught.value, aforesaid.InvalidArgument):
        assert [violation.field for violation in caught.value.violations] == [field]
        assert caught.value.message.startswith(f"{field}: ")


def test_a_request_over_the_limit_is_resource_exhausted(user: Client, name: str) -> None:
    with pytest.raises(aforesaid.ResourceExhausted):
        user.append("c", turns("x" * (33 * 1024 * 1024)), agent_id=name)


def test_an_import_takes_what_the_service_allows_and_counts_the_rest(user: Client, name: str) -> None:
    long_role = Turn("r" * 129, (Text("bad"),), "bad")
    good = [Turn("user", (Text(str(number)),), str(number)) for number in range(40)]
    chunks = [
        (Agent(name, name="Imported", role="reviewer"), Conversation("c", name, "Title", (*good[:20], long_role, *good[20:]))),
        (Agent(f"{name}-child", parent_agent_id=name), Conversation("d", f"{name}-child", turns=tuple(good))),
    ]
    taken = user.import_turns(chunks)
    assert taken.added + taken.unchanged == 80
    assert [(left.agent_id, left.conversation_id, left.turns) for left in taken.refused] == [(name, "c", 1)]
    assert "role" in taken.refused[0].reason
    assert [turn.turn_id for turn in user.read("c", agent_id=name)] == [turn.turn_id for turn in good]
    assert (user.agent(name).name, user.agent(name).role, user.agent(f"{name}-child").parent_agent_id) == (
        "Imported",
        "reviewer",
        name,
    )
    again = user.import_turns(chunks)
    assert (again.added, again.replaced, again.unchanged) == (0, 0, 80)
    user.delete("d", agent_id=f"{name}-child")
    third = user.import_turns(chunks)
    assert [(left.conversation_id, left.turns, left.reason) for left in third.skipped] == [
        ("d", 40, "the conversation is tombstoned")
    ]
