"""A program of somebody who uses the client; tests/client/test_types.py has it checked strictly, and never runs it.

A wrong call is one that must be an error: strictly, an ignore of nothing is an error as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, assert_type

from aforesaid import (
    Agent,
    Appended,
    AsyncClient,
    AuditCheck,
    Client,
    CompiledContext,
    Conversation,
    FoundTurns,
    Imported,
    Indexed,
    InvalidArgument,
    PartKind,
    ReadRecord,
    ResolvedSource,
    SearchHit,
    SearchPage,
    SourceRef,
    StoredConversation,
    StoredTurn,
    Text,
    Turn,
    Unavailable,
)


def blocking(client: Client) -> None:
    assert_type(client.search("q", order="newest", include_own_searches=True), Iterator[SearchPage])
    assert_type(client.read("c", offset=1), Iterator[StoredTurn])
    assert_type(client.agents(), Iterator[Agent])
    assert_type(client.agent("a"), Agent)
    assert_type(client.update_agent(Agent("a"), ["name"]), Agent)
    assert_type(client.conversations("a"), Iterator[StoredConversation])
    assert_type(client.conversation("c"), StoredConversation)
    assert_type(client.append("c", [Turn("user", (Text("x"),))]), Appended)
    assert_type(client.write(Conversation("c", "a"), expected_revision=0), StoredConversation)
    client.delete("c", exact_scope=True)
    kinds: list[PartKind] = ["text", "tool_call"]
    assert_type(client.search("q", match="substring", part_kinds=kinds), Iterator[SearchPage])
    assert_type(client.index_conversation(Conversation("c", "a"), exact_scope=True), Indexed)
    assert_type(client.search_turns("q", stem=True, around=1), FoundTurns)
    source = client.resolve_source(SourceRef("c", "t", digest="sha256:"))
    assert_type(source, ResolvedSource)
    assert_type(source.unchanged, bool | None)
    assert_type(client.compile_context("q", sources=[SourceRef("c", "t")], budget=800), CompiledContext)
    assert_type(client.reads("a"), Iterator[ReadRecord])
    assert_type(client.verify_audit(), AuditCheck)
    assert_type(client.import_turns([(Agent("a"), Conversation("c", "a"))]), Imported)
    for page in client.search("q"):
        for hit in page.matches:
            assert_type(hit, SearchHit)
            assert_type(hit.created_at, int | None)
            assert_type(hit.part_kinds, tuple[PartKind, ...])


async def awaited(client: AsyncClient) -> None:
    assert_type(client.search("q", scope={"user_id": "ada"}), AsyncIterator[SearchPage])
    coroutine: Coroutine[Any, Any, Agent] = client.agent()
    assert_type(await coroutine, Agent)
    assert_type(await client.append("c", []), Appended)
    assert_type(await client.search_turns("q"), FoundTurns)
    both = await asyncio.gather(client.agent("a"), client.verify_audit())
    assert_type(both, tuple[Agent, AuditCheck])
    assert_type([turn async for turn in client.read("c")], list[StoredTurn])
    assert_type(await client.import_turns([(Agent("a"), Conversation("c", "a"))]), Imported)
    task = asyncio.create_task(client.conversation("c"))
    assert_type(await task, StoredConversation)


def wrong(client: Client, awaiting: AsyncClient) -> None:
    client.search(7)  # type: ignore[arg-type]
    client.search("q", match="some")  # type: ignore[arg-type]
    client.search("q", part_kinds=["image"])  # type: ignore[list-item]
    client.resolve_source("c")  # type: ignore[arg-type]
    client.search("q", "a")  # type: ignore[call-arg]
    client.agent(scope={"a": 1})  # type: ignore[dict-item]
    _ = client.agent("a").surname  # type: ignore[attr-defined]
    for _ in awaiting.search("q"):  # type: ignore[attr-defined]
        pass
    _ = awaiting.agent("a").name  # type: ignore[attr-defined]
    client.append("c", ["text"])  # type: ignore[list-item]


async def forgotten(client: AsyncClient) -> None:
    client.agent()  # type: ignore[unused-coroutine]


def errors(client: Client) -> None:
    try:
        client.agent()
    except InvalidArgument as error:
        assert_type(error.violations[0].field, str)
    except Unavailable as error:
        assert_type(error.retryable, bool)
        assert_type(error.request_id, str)
        assert_type(error.code, str)
