"""What one line of a Codex session says, in which role, and in which of the program's two logs.

The program writes the items of its exchange with the model (`response_item`) and what it showed to the person (`event_msg`, see
codex_events): often the same text in both. Who reads a file whole leaves out the copies; `Said.log` says what may be a copy of
what. Calls of tools and their results are taken from the items; where a session has none, from the events. Very old files hold bare
items, without the envelope.

Roles: `user` and `assistant` for what these two said, `tool` for results, `agent` for what another agent sent, `system` for what
the program wrote. Nothing encrypted is taken, no bytes of images, and nothing that a line repeats of others (`replacement_history`,
`last_agent_message`).
"""

from __future__ import annotations

from collections.abc import Iterator

from aforesaid.formats.codex_events import read_event, read_tool_event
from aforesaid.formats.codex_said import Said, blocks, read_prompt
from aforesaid.formats.lines import parse
from aforesaid.formats.parts import read_content, reasoning, tool_call, tool_result
from aforesaid.formats.tally import Tally, label
from aforesaid.formats.values import Object, as_object, string
from aforesaid.model import File, Part

ENVELOPES = frozenset(
    {
        "compacted",
        "event_msg",
        "fork_reference",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "response_item",
        "rollout_reference",
        "session_meta",
        "turn_context",
        "world_state",
    }
)
# Of the items, those that no other program writes bare on a line of its own.
_BARE = frozenset(
    {"custom_tool_call", "custom_tool_call_output", "function_call", "function_call_output", "function_result", "local_shell_call"}
)
_ITEMS = _BARE | {"agent_message", "message", "reasoning", "tool_call", "tool_result", "web_search_call"}
_RESULTS = frozenset({"custom_tool_call_output", "function_call_output", "function_result", "mcp_tool_call_output", "tool_result"})
_MESSAGE_TYPES = frozenset({"input_text", "output_text", "input_image"})


def speaks(value: object) -> bool:
    """Says whether a line of a file is one that only Codex writes."""
    fields = as_object(value)
    kind = fields.get("type")
    if not isinstance(kind, str):
        return is_bare_header(fields) or fields == {"record_type": "state"}
    if kind in ENVELOPES:
        return isinstance(fields.get("payload"), dict)
    if kind == "message":
        content = fields.get("content")
        return isinstance(fields.get("role"), str) and _is_item_content(content)
    return kind in _BARE


def _is_item_content(content: object) -> bool:
    return isinstance(content, list) and any(string(as_object(block).get("type")) in _MESSAGE_TYPES for block in content)


def is_bare_header(fields: Object) -> bool:
    """Says whether a line is the first one of a very old session."""
    named = all(isinstance(fields.get(key), str) for key in ("id", "timestamp"))
    return named and "type" not in fields and "instructions" in fields


def unwrapped(fields: Object) -> tuple[str, Object]:
    """A line's type and what it holds; a bare item, or a header, as if it had an envelope."""
    kind = string(fields.get("type"))
    if kind in ENVELOPES:
        return kind, as_object(fields.get("payload"))
    if kind in _ITEMS or (not kind and isinstance(fields.get("role"), str)):
        return "response_item", fields
    return ("session_meta", fields) if is_bare_header(fields) else (kind, fields)


def kind_of(fields: Object) -> str:
    """A line's type as the report names it."""
    kind, payload = unwrapped(fields)
    if kind in {"response_item", "event_msg"}:
        return f"{kind.removesuffix('_msg')} {label(payload.get('type', 'message' if 'role' in payload else None))}"
    return "state" if "record_type" in fields else label(kind)


def read_line(kind: str, payload: Object, tally: Tally, *, events_alone: bool = False) -> Iterator[Said]:
    """Yields what a line says; `events_alone` says that no item came before, so that events tell of tools, too."""
    match kind:
        case "response_item":
            yield from _item(payload, tally)
        case "event_msg":
            yield from read_event(payload, tally)
            if events_alone:
                yield from read_tool_event(payload, tally)
        case "inter_agent_communication":
            yield Said("agent", read_content(payload.get("content"), tally), "letter")
        case "compacted":
            yield Said("system", read_content(payload.get("message"), tally))


# Items


def _item(payload: Object, tally: Tally) -> Iterator[Said]:
    kind = string(payload.get("type"))
    match kind:
        case "message" | "":
            yield from _message(payload, tally)
        case "agent_message":
            readable = [block for block in blocks(payload.get("content")) if as_object(block).get("type") != "encrypted_content"]
            yield Said("agent", read_content(readable, tally), "item")
        case "reasoning":
            yield Said("assistant", list(_thoughts(payload)), "item")
        case "function_call" | "custom_tool_call" | "tool_call" | "mcp_tool_call":
            function = as_object(payload.get("function"))
            given = payload.get("arguments", payload.get("input", function.get("arguments")))
            yield _call(string(payload.get("name")) or string(function.get("name")), given, payload)
        case "local_shell_call":
            yield _call("local_shell", payload.get("action"), payload)
        case "web_search_call":
            yield _call("web_search", _without_nulls(payload.get("action")), payload)
        case "tool_search_call":
            yield _call("tool_search", payload.get("arguments"), payload)
        case "image_generation_call":
            called = _call("image_generation", _without_nulls({"prompt": payload.get("revised_prompt")}), payload)
            yield Said(called.role, [*called.parts, File("image/png")])
        case _ if kind in _RESULTS:
            yield Said("tool", _result(payload, tally))


def _call(name: str, arguments: object, payload: Object) -> Said:
    return Said("assistant", [tool_call(name, arguments, payload.get("call_id") or payload.get("id"))])


def _without_nulls(value: object) -> object:
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


def _thoughts(payload: Object) -> Iterator[Part]:
    for listed in (payload.get("summary"), payload.get("content")):
        for block in blocks(listed):
            yield from reasoning(block if isinstance(block, str) else as_object(block).get("text"))


def _message(payload: Object, tally: Tally) -> Iterator[Said]:
    role = string(payload.get("role"))
    content = payload.get("content", payload.get("message"))
    match role:
        case "user":
            yield from read_prompt(blocks(content), tally, "item")
        case "assistant":
            yield Said("assistant", read_content(content, tally), "item")
        case "developer" | "system":
            told = list(read_prompt(blocks(content), tally, ""))
            yield Said("system", [part for one in told for part in one.parts], dropped=told[-1].dropped)
        case "tool" | "function":
            yield Said("tool", tool_result(content, payload.get("tool_call_id"), tally))
        case _ if role.strip():
            yield Said(label(role), read_content(content, tally))


def _result(payload: Object, tally: Tally) -> list[Part]:
    """A tool's answer: text, blocks, or an object with the text and how the call ended."""
    output = payload.get("output", payload.get("result", payload.get("content")))
    call_id = payload.get("call_id") or payload.get("id")
    fields = as_object(output) or _ended(output)
    if "metadata" in fields and isinstance(fields.get("output"), str):
        failed = as_object(fields.get("metadata")).get("exit_code") not in (None, 0)
        return tool_result(fields.get("output"), call_id, tally, is_error=failed)
    if "content" in fields and "type" not in fields:
        return tool_result(fields.get("content"), call_id, tally, is_error=fields.get("success") is False)
    if isinstance(fields.get("text"), str) and not isinstance(output, str):
        return tool_result([output], call_id, tally)
    return tool_result(output, call_id, tally, is_error=payload.get("is_error") is True or payload.get("success") is False)


def _ended(output: object) -> Object:
    """The object that a text is, where it is one that says how a call ended."""
    if not isinstance(output, str) or not output.startswith("{") or '"metadata"' not in output:
        return {}
    try:
        return as_object(parse(output.encode("utf-8"), Tally()))
    except (ValueError, RecursionError):
        return {}
