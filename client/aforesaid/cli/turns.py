"""Turns of a conversation as lines for people: who said it and when, texts as they are, tool calls as `key: value`. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, assert_never

from aforesaid.cli.terminal import Style, local_time, visible, visible_lines
from aforesaid.model import File, Part, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from aforesaid._replies import StoredTurn

MARKED, INDENT = ">", "    "


def turn_lines(
    turns: Iterable[StoredTurn], marked: int | None, style: Style, origin_of: Callable[[StoredTurn], str]
) -> Iterator[str]:
    """Yields turns with a blank line between; the one whose seq is `marked` has a sign in front, its own colour, its origin."""
    for number, turn in enumerate(turns):
        if number:
            yield ""
        sign, begin = (MARKED, style.heading + style.mark[0]) if turn.seq == marked else (" ", style.name)
        # Without colours a mark is brackets, which stand around matches only.
        begin = begin if style.end else ""
        origin = origin_of(turn) if turn.seq == marked else ""
        facts = (f"[{turn.seq}]", visible(turn.role), local_time(turn.created_at), origin)
        yield f"{begin}{sign} {' · '.join(fact for fact in facts if fact)}{style.end}"
        for part in turn.parts:
            yield from (f"{INDENT}{line}".rstrip() for line in _part_lines(part, style))


def _part_lines(part: Part, style: Style) -> Iterator[str]:
    match part:
        case Text(text):
            yield from visible_lines(text)
        case Reasoning(text):
            yield f"{style.place}reasoning:{style.end}"
            yield from (f"  {style.place}{line}{style.end}" for line in visible_lines(text))
        case ToolCall(name, arguments):
            yield f"{style.place}calls{style.end} {visible(name)}"
            yield from (f"  {line}" for line in argument_lines(arguments))
        case ToolResult(content, is_json=is_json, is_error=is_error):
            yield f"{style.place}{'answers with an error' if is_error else 'answers'}:{style.end}"
            yield from (f"  {line}" for line in (argument_lines(content) if is_json else visible_lines(content)))
        case File(media_type, name):
            yield f"{style.place}file{style.end} {visible(name)} ({visible(media_type)})"
        case _:
            assert_never(part)


def argument_lines(written: str) -> list[str]:
    """Returns JSON as lines `key: value`, `a.b` when nested and `a.0` in a list, longer texts below their key; else it as it is."""
    if not written:
        return []
    try:
        # Numbers stay as they were written.
        value = json.loads(written, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
        return list(_leaves("", value))
    except (ValueError, RecursionError):
        return visible_lines(written)


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def _leaves(key: str, value: object) -> Iterator[str]:
    match value:
        case dict() if value:
            for name, inner in value.items():
                yield from _leaves(f"{key}.{name}" if key else name, inner)
        case list() if value:
            for at, inner in enumerate(value):
                yield from _leaves(f"{key}.{at}" if key else str(at), inner)
        case str():
            first, *more = visible_lines(value)
            label = f"{visible(key)}:" if key else ""
            if more:
                yield from [label] if label else []
                yield from (f"  {line}" for line in (first, *more))
            else:
                yield f"{label} {first}".strip()
        case _:
            yield f"{visible(key)}: {json.dumps(value)}" if key else json.dumps(value)
