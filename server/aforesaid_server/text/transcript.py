"""The text of a turn and of a transcript: parts to text, the leaves of JSON, and which of it is searched. contract.md, "A turn's
text".

A transcript is the bytes of one conversation: each turn's text in order, each followed by one newline. Offsets and lengths are
UTF-8 bytes into it, the newline not counted.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, assert_never

from aforesaid.model import File, Part, Reasoning, Text, ToolCall, ToolResult

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Bounded and never given back, and runs are tried at their beginning only: linear on any input. RFC 6838 allows 127 characters.
_DATA_URL = re.compile(
    r"(?i)\bdata:(?:[\w.+-]{1,127}+/[\w.+-]{1,127}+(?:;[^\s,;]{0,256}+){0,16}+|(?:;[^\s,;]{0,256}+){1,16}+),\S*+"
)
_SHORTEST_RUN = 200
_BASE64_RUN = re.compile(rf"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{{{_SHORTEST_RUN},}}+={{0,2}}")
_DEEPEST = 500
"""Levels of JSON that are taken apart. The parser's own limit depends on who calls it, and a turn must read as it was written."""
_LONGEST_KEYS = 32 * 1024 * 1024
"""Characters of all keys of one JSON but for their last names: a long key over a long list would fill the memory otherwise."""
_CAPITAL, _SMALL, _DIGIT = re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]")


class _Number(str):
    """A number of JSON as it was written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON with its keys in order, repeated ones included."""


def _no_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def well_formed(text: str) -> str:
    """Returns a text whose lone surrogates are U+FFFD, so that it has UTF-8 bytes."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def leaves(written: str) -> list[tuple[str, str]] | None:
    """Returns the leaves of JSON in order as (key, value), `a.b` when nested and `a.0` in a list; None for what is not JSON, or too
    deep or too long in its keys to be taken apart.

    Strings are unescaped, numbers and booleans as JSON writes them; null and empty ones are left out. A bare value has the key "".
    """
    try:
        root = json.loads(written, parse_int=_Number, parse_float=_Number, parse_constant=_no_json, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    found: list[tuple[str, str]] = []
    waiting: list[tuple[int, str, Any]] = [(0, "", root)]
    left = _LONGEST_KEYS
    while waiting:
        depth, key, value = waiting.pop()
        prefix = f"{key}." if key else ""
        if isinstance(value, list):
            left -= len(prefix) * len(value)
            if depth == _DEEPEST or left < 0:
                return None
        if isinstance(value, _Pairs):
            waiting.extend((depth + 1, prefix + name, inner) for name, inner in reversed(value))
        elif isinstance(value, list):
            waiting.extend((depth + 1, f"{prefix}{at}", inner) for at, inner in reversed(list(enumerate(value))))
        elif isinstance(value, bool):
            found.append((key, "true" if value else "false"))
        elif value:
            found.append((well_formed(key), well_formed(value)))
    return found


def _lines(written: str) -> list[str]:
    pairs = leaves(written)
    if pairs is None:
        return [written]
    return [f"{key}: {value}" if key else value for key, value in pairs]


def _values(written: str) -> str:
    pairs = leaves(written)
    return written if pairs is None else "\n".join(value for _, value in pairs)


def text_of_part(part: Part) -> str:
    """Returns the text of a part."""
    match part:
        case Text(text) | Reasoning(text):
            return text
        case ToolCall(name, arguments):
            return "\n".join([name, *(_lines(arguments) if arguments else [])])
        case ToolResult(content, is_json=True):
            return "\n".join(_lines(content))
        case ToolResult(content):
            return content
        case File(name=name):
            return name
        case _:
            assert_never(part)


def text_of(parts: Sequence[Part]) -> str:
    """Returns the text of a turn: its parts' texts joined by newlines."""
    return "\n".join(map(text_of_part, parts))


@dataclass(frozen=True, slots=True)
class Measure:
    """How long a turn's text is, in UTF-8 bytes, and the SHA-256 over them."""

    content_length: int
    digest: bytes


def measure(text: str) -> Measure:
    """Measures a turn's text."""
    data = text.encode()
    return Measure(len(data), hashlib.sha256(data).digest())


def without_bytes(text: str) -> str:
    """Returns a text with a blank where base64 or a data URL stood."""
    if len(text) < 5:
        return text
    if "data:" in text or "DATA:" in text or "Data:" in text:
        text = _DATA_URL.sub(" ", text)
    # Most texts hold nothing so long, which is quicker to see than to search for.
    return _BASE64_RUN.sub(_cut_base64, text) if _has_long_run(text) else text


def _has_long_run(text: str) -> bool:
    """Tells whether there may be _SHORTEST_RUN characters without a blank or line end between them."""
    at = 0
    while at + _SHORTEST_RUN <= len(text):
        end = at + _SHORTEST_RUN
        blank = max(text.rfind(" ", at, end), text.rfind("\n", at, end))
        if blank < 0:
            return True
        at = blank + 1
    return False


def _cut_base64(found: re.Match[str]) -> str:
    run = found.group()
    return " " if _CAPITAL.search(run) and _SMALL.search(run) and _DIGIT.search(run) else run


SEARCH_TOOLS = frozenset({"search_transcripts", "transcript_search", "read_transcript"})
"""The tools whose calls are searches of transcripts, under any prefix."""


@lru_cache(maxsize=4096)
def is_search_tool(name: str, tools: frozenset[str]) -> bool:
    """Tells whether a name is one of `tools`, bare or after a prefix that ends in a character which is no letter or digit.

    Case does not count: `mcp__aforesaid__Search_Transcripts` is one, `research_transcripts` and `SearchTranscripts` are others.
    """
    folded = name.casefold()
    return any(folded.endswith(tool) and not folded.removesuffix(tool)[-1:].isalnum() for tool in map(str.casefold, tools))


@dataclass(frozen=True, slots=True)
class Searched:
    """Which parts a deployment searches beside text, tool results and the arguments of tool calls, and the names of search tools,
    whose calls and results are searched only where own searches are asked for.
    """

    reasoning: bool = False
    system: bool = False
    search_tools: frozenset[str] = SEARCH_TOOLS

    @property
    def fingerprint(self) -> str:
        """Names the choice; an index built under another one is rebuilt."""
        tools = json.dumps(sorted({tool.casefold() for tool in self.search_tools}))
        return f"searched-2 reasoning={self.reasoning} system={self.system} search_tools={tools}"

    def text_of(self, role: str, parts: Sequence[Part]) -> str:
        """Returns the searched text of a turn: the searched parts in order, of tool calls and JSON the values, joined by
        newlines.
        """
        if role == "system" and not self.system:
            return ""
        return "\n".join(without_bytes(text) for text in self._texts(parts))

    def own_searches(self, parts: Sequence[Part], answers: Mapping[int, str]) -> frozenset[int]:
        """Returns the places of the parts that are calls of search tools or their results.

        `answers` names the calls that results answer, by the place of the result.
        """
        tools = self.search_tools
        return frozenset(
            place
            for place, part in enumerate(parts)
            if (isinstance(part, ToolCall) and is_search_tool(part.name, tools))
            or (isinstance(part, ToolResult) and place in answers and is_search_tool(answers[place], tools))
        )

    def stretches_of(self, role: str, parts: Sequence[Part], left_out: Collection[int]) -> list[str]:
        """Returns the searched text without the parts at some places: a text for each stretch of the turn between them."""
        stretches: list[list[Part]] = [[]]
        for place, part in enumerate(parts):
            if place not in left_out:
                stretches[-1].append(part)
            elif stretches[-1]:
                stretches.append([])
        return [text for stretch in stretches if (text := self.text_of(role, stretch))]

    def _texts(self, parts: Sequence[Part]) -> Iterator[str]:
        for part in parts:
            match part:
                case Text(text):
                    yield text
                case Reasoning(text):
                    if self.reasoning:
                        yield text
                case ToolCall(arguments=arguments):
                    yield _values(arguments)
                case ToolResult(content, is_json=is_json):
                    yield _values(content) if is_json else content
                case File():
                    pass
                case _:
                    assert_never(part)
