"""The tool in the shapes of OpenAI, Anthropic and MCP, by the types of their own SDKs; and their calls, answered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic.types
import mcp
import mcp.types
import openai.types.chat
import openai.types.responses
import openai.types.responses.response_input_param
import openai.types.shared
import pytest
from mcp.server.lowlevel import Server
from pydantic import TypeAdapter

from aforesaid import Client, InvalidArgument
from aforesaid.conversation_stores import ServiceConversationStore
from aforesaid.tool_shapes import (
    Shape,
    answer_anthropic,
    answer_mcp,
    answer_openai_chat,
    answer_openai_responses,
    answered,
    for_anthropic,
    for_mcp,
    for_openai_chat,
    for_openai_responses,
)
from aforesaid.transcript_tool import transcript_search_tool
from tests.tool.plain import Listed, said

TOOL = transcript_search_tool(Listed({"c": [said("user", "a zebra")]}), name="past_chats", max_results=5)
FOUND = "c#0 user: a zebra"
ARGUMENTS = '{"query": "ZEBRA", "limit": 3}'
CALL = json.loads(ARGUMENTS)


def checked(kind: Any, shape: Shape) -> None:
    """What an SDK's type knows of a shape is all of it, and nothing is turned into something else."""
    assert json.loads(json.dumps(shape)) == shape
    read = TypeAdapter(kind).validate_python(shape, strict=True)
    assert TypeAdapter(kind).dump_python(read, mode="json", warnings="error") == shape


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        (openai.types.chat.ChatCompletionFunctionToolParam, for_openai_chat(TOOL)),
        (openai.types.chat.ChatCompletionToolMessageParam, answer_openai_chat(TOOL, "call-1", ARGUMENTS)),
        (openai.types.responses.FunctionToolParam, for_openai_responses(TOOL)),
        (openai.types.responses.response_input_param.FunctionCallOutput, answer_openai_responses(TOOL, "call-1", ARGUMENTS)),
        (anthropic.types.ToolParam, for_anthropic(TOOL)),
        (anthropic.types.ToolResultBlockParam, answer_anthropic(TOOL, "call-1", CALL)),
        (anthropic.types.ToolResultBlockParam, answer_anthropic(TOOL, "call-1", {"query": ""})),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_shape_is_what_its_sdk_takes(kind: Any, shape: Shape) -> None:
    checked(kind, shape)


def test_the_models_of_openai_know_the_shapes() -> None:
    function = openai.types.chat.ChatCompletionFunctionTool.model_validate(for_openai_chat(TOOL)).function
    assert (function.name, function.description, function.parameters) == (TOOL.name, TOOL.description, TOOL.input_schema)
    tool = openai.types.responses.FunctionTool.model_validate(for_openai_responses(TOOL))
    assert (tool.name, tool.description, tool.parameters, tool.strict) == (TOOL.name, TOOL.description, TOOL.input_schema, False)


def test_mcp_reads_the_tool_and_its_hints() -> None:
    tool = mcp.types.Tool.model_validate(for_mcp(TOOL))
    assert (tool.name, tool.description, tool.input_schema) == (TOOL.name, TOOL.description, TOOL.input_schema)
    hints = tool.annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint) == (
        True,
        False,
        True,
        False,
    )
    assert tool.model_dump(by_alias=True, exclude_none=True, mode="json") == for_mcp(TOOL)


@pytest.mark.parametrize(
    ("given", "text", "is_error"), [(CALL, FOUND, False), (None, "error: query: must be text, and is missing", True)]
)
def test_mcp_reads_the_answer(given: Any, text: str, is_error: bool) -> None:
    result = mcp.types.CallToolResult.model_validate(answer_mcp(TOOL, given))
    assert result.content == [mcp.types.TextContent(type="text", text=text)]
    assert result.is_error is is_error


def test_an_mcp_server_offers_the_tool() -> None:
    async def listed(_: Any, __: Any) -> mcp.types.ListToolsResult:
        return mcp.types.ListToolsResult(tools=[mcp.types.Tool.model_validate(for_mcp(TOOL))])

    async def called(_: Any, params: mcp.types.CallToolRequestParams) -> mcp.types.CallToolResult:
        return mcp.types.CallToolResult.model_validate(answer_mcp(TOOL, params.arguments))

    async def main() -> list[Any]:
        server: Server[Any] = Server("chats", on_list_tools=listed, on_call_tool=called)
        async with mcp.Client(server, raise_exceptions=True) as client:
            (tool,) = (await client.list_tools()).tools
            found = await client.call_tool(tool.name, CALL)
            refused = await client.call_tool(tool.name, {"query": ""})
            return [tool.name, found.content[0], found.is_error, refused.content[0], refused.is_error]

    name, found, found_is_error, refused, refused_is_error = asyncio.run(main())
    assert (name, found.text, found_is_error) == (TOOL.name, FOUND, False)
    assert (refused.text, refused_is_error) == ("error: query: must not be empty", True)


def test_calls_are_answered() -> None:
    assert answer_openai_chat(TOOL, "1", ARGUMENTS) == {"role": "tool", "tool_call_id": "1", "content": FOUND}
    assert answer_openai_responses(TOOL, "1", ARGUMENTS) == {"type": "function_call_output", "call_id": "1", "output": FOUND}
    assert answer_anthropic(TOOL, "1", CALL) == {"type": "tool_result", "tool_use_id": "1", "content": FOUND, "is_error": False}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"query": ', "error: arguments: are no JSON"),
        ("", "error: arguments: are no JSON"),
        ("[" * 100_000, "error: arguments: are no JSON"),
        ('["zebra"]', "error: arguments: must be a JSON object: list"),
        ("null", "error: arguments: must be a JSON object: NoneType"),
        ('{"query": ""}', "error: query: must not be empty"),
        ({"query": "a", "limit": 0}, "error: limit: must be 1 or more: 0"),
    ],
)
def test_what_a_model_got_wrong_is_told_to_it(arguments: Any, told: str) -> None:
    assert answered(TOOL, arguments) == (told, True)
    assert answer_openai_chat(TOOL, "1", arguments)["content"] == told
    assert answer_openai_responses(TOOL, "1", arguments)["output"] == told
    assert (answer_anthropic(TOOL, "1", arguments)["content"], answer_anthropic(TOOL, "1", arguments)["is_error"]) == (told, True)


def test_a_service_that_is_not_there_is_told() -> None:
    with Client("http://127.0.0.1:9", "agent", retries=0) as client:
        text, is_error = answered(transcript_search_tool(ServiceConversationStore(client)), {"query": "a"})
    assert (text, is_error) == ("error: cannot reach http://127.0.0.1:9: connection refused", True)


class Broken(Listed):
    def list(self) -> Any:
        raise ZeroDivisionError


def test_a_fault_of_the_store_is_no_answer() -> None:
    with pytest.raises(ZeroDivisionError):
        answered(transcript_search_tool(Broken({})), {"query": "a"})


@pytest.mark.parametrize("make", [for_openai_chat, for_openai_responses, for_anthropic, for_mcp])
def test_a_shape_that_is_changed_changes_no_other(make: Any) -> None:
    first = make(TOOL)
    json_before = json.dumps(make(TOOL))
    (first.get("function") or first).clear()
    TOOL.input_schema.clear()
    assert json.dumps(make(TOOL)) == json_before


def test_errors_of_arguments_are_the_librarys_own() -> None:
    with pytest.raises(InvalidArgument):
        TOOL.execute({"query": ""})
