"""Blocks of message content -> parts: the shapes of Anthropic's, of OpenAI's and of the AI SDK's messages, which people also mix.

The AI SDK has two: those of its model messages (`tool-call`) and those of its UI messages (`tool-<name>`, `dynamic-tool`).

Bytes of images and files are never taken, nor encrypted content. A block of a type that is not known here gives its `text` if it
has one; otherwise it is noted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aforesaid.formats.lines import written
from aforesaid.formats.tally import Tally, label
from aforesaid.formats.values import Object, as_object, string
from aforesaid.model import File, Part, Reasoning, Text, ToolCall, ToolResult

_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9*][a-z0-9.+*-]{0,100}", re.IGNORECASE)
_OF_BLOCKS = frozenset({"type", "text", "title", "url"})
# Not `mimetypes`: its answers come from files of the machine, and a file is to read the same everywhere.
_BY_SUFFIX = {
    "csv": "text/csv",
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "mp3": "audio/mpeg",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webp": "image/webp",
}


def read_content(content: object, tally: Tally) -> list[Part]:
    """Reads a message's content: a string, or a list of strings and blocks. Blank texts give no part."""
    if isinstance(content, str):
        return list(_text(content))
    if not isinstance(content, list):
        return []
    return [part for block in content for part in read_block(block, tally)]


def read_block(block: object, tally: Tally) -> Iterator[Part]:
    """Yields the parts of one block: none, one, or a tool result and the images that came with it."""
    if isinstance(block, str):
        yield from _text(block)
        return
    fields = as_object(block)
    kind = string(fields.get("type"))
    match kind:
        case "text" | "input_text" | "output_text":
            yield from _text(fields.get("text"))
        case "thinking" | "reasoning":
            yield from reasoning(fields.get("thinking") or fields.get("text"))
        case "refusal":
            yield from _text(fields.get("refusal"))
        case "image" | "document" | "image_url" | "input_image" | "input_audio" | "file" | "input_file":
            yield read_file_block(kind, fields)
        case _ if kind.endswith("tool_use"):
            yield tool_call(fields.get("name"), fields.get("input"), fields.get("id"))
        case _ if kind.endswith("tool_result"):
            yield from _tool_result(fields, tally)
        case "tool-call":
            yield tool_call(fields.get("toolName"), fields.get("input", fields.get("args")), fields.get("toolCallId"))
        case "tool-result":
            yield from _sdk_result(fields, tally)
        case "dynamic-tool" | "tool-invocation":
            yield from _ui_tool(as_object(fields.get("toolInvocation")) or fields, tally)
        case _ if kind.startswith("tool-"):
            yield from _ui_tool({"toolName": kind.removeprefix("tool-"), **fields}, tally)
        case _:
            yield from _unknown(kind, fields, tally)


def _text(value: object) -> Iterator[Part]:
    if isinstance(value, str) and value.strip():
        yield Text(value)


def reasoning(value: object) -> Iterator[Part]:
    """Yields a thought where there is text in it; a signature alone is none."""
    if isinstance(value, str) and value.strip():
        yield Reasoning(value)


def tool_call(name: object, arguments: object, call_id: object) -> ToolCall:
    """A tool call whose arguments stand as they were written: text as it is, anything else as compact JSON."""
    given = arguments if isinstance(arguments, str) else "" if arguments is None else written(arguments)
    return ToolCall(string(name), given, string(call_id))


def tool_result(content: object, call_id: object, tally: Tally, *, is_error: bool = False) -> list[Part]:
    """A tool's answer: text as it is, a list by its texts joined by newlines and its images behind, any other JSON as written."""
    if content is None or isinstance(content, str):
        return [ToolResult(content or "", string(call_id), is_error=is_error)]
    if not isinstance(content, list) or _is_data(content):
        return [ToolResult(written(content), string(call_id), is_json=True, is_error=is_error)]
    texts: list[str] = []
    files: list[Part] = []
    for block in content:
        found = list(read_block(block, tally))
        texts += [part.text for part in found if isinstance(part, Text)]
        files += [part for part in found if isinstance(part, File)]
    return [ToolResult("\n".join(texts), string(call_id), is_error=is_error), *files]


def _is_data(content: list[object]) -> bool:
    """Tells whether a list holds neither texts nor anything that could be a block."""
    return bool(content) and not any(isinstance(block, str) or not _OF_BLOCKS.isdisjoint(as_object(block)) for block in content)


def _tool_result(fields: Object, tally: Tally) -> list[Part]:
    content = fields.get("content", fields.get("output"))
    return tool_result(content, fields.get("tool_use_id"), tally, is_error=fields.get("is_error") is True)


def _sdk_result(fields: Object, tally: Tally) -> list[Part]:
    """The result of a call: `output` says itself of which kind its value is; `result`, of older versions, does not."""
    output = as_object(fields.get("output"))
    kind, failed = string(output.get("type")), fields.get("isError") is True
    if "value" not in output and kind != "execution-denied":
        return _answer(fields.get("output", fields.get("result")), fields, tally, failed=failed)
    failed = failed or kind.startswith("error") or kind == "execution-denied"
    value = output.get("value", output.get("reason"))
    if kind.endswith("json"):
        return [ToolResult(written(value), string(fields.get("toolCallId")), is_json=True, is_error=failed)]
    return _answer(value, fields, tally, failed=failed)


def _ui_tool(fields: Object, tally: Tally) -> Iterator[Part]:
    """A tool as a chat shows it: the call and, where it has ended, what came of it, in one block."""
    for key in ("input", "args", "rawInput"):
        if key in fields:
            yield tool_call(fields.get("toolName"), fields[key], fields.get("toolCallId"))
            break
    for key in ("output", "result"):
        if key in fields:
            yield from _answer(fields[key], fields, tally)
            return
    if "errorText" in fields:
        yield from _answer(fields["errorText"], fields, tally, failed=True)


def _answer(content: object, fields: Object, tally: Tally, *, failed: bool = False) -> list[Part]:
    """A tool's answer: a list is one of blocks only where each says so."""
    if isinstance(content, list) and not (content and all(string(as_object(block).get("type")) for block in content)):
        return [ToolResult(written(content), string(fields.get("toolCallId")), is_json=True, is_error=failed)]
    return tool_result(content, fields.get("toolCallId"), tally, is_error=failed)


def _unknown(kind: str, fields: Object, tally: Tally) -> Iterator[Part]:
    """What an unknown block says: its text, or the title and address of what a search found."""
    said = [string(fields.get(key)) for key in ("text", "title", "url")]
    if said[0].strip():
        yield Text(said[0])
    elif any(said):
        yield Text("\n".join(filter(None, said)))
    else:
        tally.note(f"content block without text: {label(kind)}")


def read_file_block(kind: str, fields: Object) -> File:
    """A file or image by its type and name; where it only has an address, by what the address ends in."""
    source = as_object(fields.get("source")) or as_object(fields.get(kind)) or fields
    address = next((text for key in ("url", "image_url", "file_data") if (text := string(source.get(key)))), "")
    name = string(fields.get("title")) or string(source.get("filename")) or string(source.get("name")) or _last_segment(address)
    general = {"input_audio": "audio/*", "document": "application/*", "file": "application/*", "input_file": "application/*"}
    named = [
        string(source.get("media_type")),
        string(source.get("mime_type")),
        string(source.get("mediaType")),
        string(source.get("mimeType")),
        address[5:200] if address.startswith("data:") else "",
        _BY_SUFFIX.get(name.rpartition(".")[2].lower(), ""),
        f"audio/{string(source.get('format'))}" if kind == "input_audio" else "",
    ]
    types = (found[0].lower() for text in named if (found := _MEDIA_TYPE.match(text)))
    return File(next(types, general.get(kind, "image/*")), name)


def _last_segment(address: str) -> str:
    """The name at the end of an address. A data URL has none."""
    if address.startswith("data:"):
        return ""
    return re.split(r"[?#]", address, maxsplit=1)[0].rstrip("/").rpartition("/")[2]
