"""What one event of a Codex session says: what the program showed to the person, messages and tools at work.

Sessions that are stored in pages write `item_completed` in the place of the events of messages. What a search on the web found, a
plan and a goal stand in events alone; of tools, an event says what the items say better.
"""

from __future__ import annotations

from collections.abc import Iterator

from aforesaid.formats.codex_said import Said, blocks, read_prompt
from aforesaid.formats.parts import read_content, reasoning, tool_call, tool_result
from aforesaid.formats.tally import Tally
from aforesaid.formats.values import Object, as_object, string
from aforesaid.model import ToolResult

_OF_TOOLS = frozenset(
    {
        "collab_agent_interaction_end",
        "collab_agent_spawn_end",
        "commandexecution",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "exec_command_end",
        "exited_review_mode",
        "filechange",
        "image_generation_end",
        "mcp_tool_call_end",
        "mcptoolcall",
        "patch_apply_end",
        "view_image_tool_call",
        "web_search_end",
    }
)


def repeats_items(payload: Object) -> bool:
    """Says whether an event tells of what stands in the items of the session as well, if it has any."""
    kinds = (payload.get("type"), as_object(payload.get("item")).get("type"))
    return any(string(kind).lower() in _OF_TOOLS for kind in kinds)


def read_event(payload: Object, tally: Tally) -> Iterator[Said]:
    """Yields what an event says that is more than the trace of a tool."""
    match payload.get("type"):
        case "user_message":
            yield from read_prompt([payload.get("message"), *_pictures(payload)], tally, "event")
        case "agent_message":
            yield Said("assistant", read_content(payload.get("message"), tally), "event")
        case "agent_reasoning" | "agent_reasoning_raw_content":
            yield Said("assistant", list(reasoning(payload.get("text"))), "event")
        case "thread_goal_updated":
            yield Said("user", read_content(as_object(payload.get("goal")).get("objective"), tally), "goal")
        case "error":
            error = as_object(payload.get("error"))
            yield Said("system", read_content(payload.get("message", error.get("message")), tally))
        case "item_completed":
            yield from _completed(as_object(payload.get("item")), tally)
        case "web_search_end":
            yield from _found(payload)


def _pictures(payload: Object) -> Iterator[Object]:
    for key in ("images", "local_images"):
        for address in blocks(payload.get(key)):
            if isinstance(address, str) and address:
                yield {"type": "input_image", "image_url": address.replace("\\", "/")}


def _completed(item: Object, tally: Tally) -> Iterator[Said]:
    """What sessions that are stored in pages write in the place of messages; a plan stands nowhere else."""
    match string(item.get("type")).lower():
        case "usermessage":
            yield from read_prompt(map(_as_block, blocks(item.get("content"))), tally, "completed")
        case "agentmessage":
            yield Said("assistant", read_content([_as_block(block) for block in blocks(item.get("content"))], tally), "completed")
        case "plan":
            yield Said("assistant", read_content(item.get("text"), tally), "completed")
        case "reasoning":
            thoughts = [*blocks(item.get("summary_text")), *blocks(item.get("raw_content"))]
            yield Said("assistant", [part for text in thoughts for part in reasoning(text)], "completed")
        case "extension":
            yield from _found(item)


def _found(payload: Object) -> Iterator[Said]:
    """What a search on the web found, which no item holds."""
    if payload.get("results"):
        yield Said("tool", tool_result({"results": payload.get("results")}, payload.get("call_id") or payload.get("id"), Tally()))


def _as_block(block: object) -> object:
    """A block whose type is written as a name of a class."""
    kind = string(as_object(block).get("type")).lower()
    if kind in {"image", "localimage", "local_image"}:
        return {"type": "input_image", "image_url": string(as_object(block).get("image_url") or as_object(block).get("path"))}
    return {**as_object(block), "type": kind} if kind else block


def read_tool_event(payload: Object, tally: Tally) -> Iterator[Said]:
    """Yields a call and its result, for sessions without items."""
    call_id = payload.get("call_id")
    match payload.get("type"):
        case "exec_command_end":
            output = payload.get("aggregated_output") or payload.get("formatted_output") or payload.get("stdout")
            yield from _called("exec_command", {"command": payload.get("command")}, output, call_id, tally)
        case "mcp_tool_call_end":
            invocation, result = as_object(payload.get("invocation")), as_object(payload.get("result"))
            answer = as_object(result.get("Ok")).get("content", result.get("Err"))
            yield from _called(string(invocation.get("tool")), invocation.get("arguments"), answer, call_id, tally)
        case "patch_apply_end":
            yield from _called("apply_patch", payload.get("changes"), payload.get("stdout"), call_id, tally)
        case "web_search_end" if not payload.get("results"):
            yield Said("tool", [tool_call("web_search", {"query": payload.get("query")}, call_id)])
        case "exited_review_mode":
            review = as_object(payload.get("review_output"))
            findings = [as_object(finding) for finding in blocks(review.get("findings"))]
            texts = [review.get("overall_explanation"), *(finding.get(key) for finding in findings for key in ("title", "body"))]
            yield Said("assistant", [part for text in texts for part in read_content(text, tally)])


def _called(name: str, arguments: object, result: object, call_id: object, tally: Tally) -> Iterator[Said]:
    results = [part for part in tool_result(result, call_id, tally) if not isinstance(part, ToolResult) or part.content]
    yield Said("tool", [tool_call(name, arguments, call_id), *results])
