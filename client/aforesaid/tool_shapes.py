"""A tool in the shapes that others take: OpenAI (chat completions, Responses), Anthropic, MCP; and their calls, answered.

    tool = transcript_search_tool(store)
    reply = openai_client.chat.completions.create(model=..., messages=messages, tools=[for_openai_chat(tool)])
    for call in reply.choices[0].message.tool_calls or []:
        messages.append(answer_openai_chat(tool, call.id, call.function.arguments))

Each shape is a new map, as the JSON of its interface; no SDK is needed to make it. An answer never raises for what a model got
wrong: it tells the model, and says that it is an error where the interface has a place for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from aforesaid._errors import AforesaidError, InvalidArgument
from aforesaid.transcript_tool import TranscriptTool

Shape: TypeAlias = dict[str, Any]


def for_openai_chat(tool: TranscriptTool) -> Shape:
    """Returns the tool for `tools` of OpenAI's chat completions."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema, "strict": False}
    return {"type": "function", "function": function}


def for_openai_responses(tool: TranscriptTool) -> Shape:
    """Returns the tool for `tools` of OpenAI's Responses."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        # Strict mode wants every field in every call.
        "strict": False,
    }


def for_anthropic(tool: TranscriptTool) -> Shape:
    """Returns the tool for `tools` of Anthropic's messages."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


def for_mcp(tool: TranscriptTool) -> Shape:
    """Returns the tool as an MCP server lists it, with the hints that it only reads what is kept."""
    return {
        "name": tool.name,
        "title": "Search past conversations",
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
    }


def answer_openai_chat(tool: TranscriptTool, call_id: str, arguments: str | Mapping[str, object]) -> Shape:
    """Runs a call of OpenAI's chat completions; returns the message that answers it."""
    text, _ = answered(tool, arguments)
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def answer_openai_responses(tool: TranscriptTool, call_id: str, arguments: str | Mapping[str, object]) -> Shape:
    """Runs a call of OpenAI's Responses; returns the item that answers it."""
    text, _ = answered(tool, arguments)
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def answer_anthropic(tool: TranscriptTool, call_id: str, arguments: str | Mapping[str, object]) -> Shape:
    """Runs a call of Anthropic's messages; returns the block that answers it."""
    text, is_error = answered(tool, arguments)
    return {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": is_error}


def answer_mcp(tool: TranscriptTool, arguments: str | Mapping[str, object] | None) -> Shape:
    """Runs a call of MCP; returns its result."""
    text, is_error = answered(tool, arguments or {})
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def answered(tool: TranscriptTool, arguments: str | Mapping[str, object]) -> tuple[str, bool]:
    """Runs a tool with arguments as a model wrote them, JSON or taken apart.

    Returns what to tell the model, and whether that is an error.
    """
    try:
        return tool.execute(_taken_apart(arguments)), False
    except AforesaidError as error:
        return f"error: {error}", True


def _taken_apart(arguments: str | Mapping[str, object]) -> Mapping[str, object]:
    if not isinstance(arguments, str):
        return arguments
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        raise InvalidArgument.of("arguments", "are no JSON") from None
    if not isinstance(found, dict):
        raise InvalidArgument.of("arguments", f"must be a JSON object: {type(found).__name__}")
    return found
