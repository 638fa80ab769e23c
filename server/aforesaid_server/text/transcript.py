"""The text of a turn and of a transcript: parts to text, the leaves of JSON, and which of it is searched. contract.md, "A turn's
text".

A transcript is the bytes of one conversation: each turn's text in order, each followed by one newline. Offsets and lengths are
UTF-8 bytes into it, the newline not counted.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import lru_cache
from typing import assert_never

from aforesaid.leaves import leaves, lines_of
from aforesaid.model import File, Part, Reasoning, Text, ToolCall, ToolResult

# Bounded and never given back, and runs are tried at their beginning only: linear on any input. RFC 6838 allows 127 characters.
_DATA_URL = re.compile(
    r"(?i)\bdata:(?:[\w.+-]{1,127}+/[\w.+-]{1,127}+(?:;[^\s,;]{0,256}+){0,16}+|(?:;[^\s,;]{0,256}+){1,16}+),\S*+"
)
_SHORTEST_RUN = 200
_BASE64_RUN = re.compile(rf"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{{{_SHORTEST_RUN},}}+={{0,2}}")
_CAPITAL, _SMALL, _DIGIT = re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]")


class Kind(IntFlag):
    """What a part is; of several kinds together it is their set. The numbers stand in indexes: a change of them changes SCHEMA."""

    TEXT = 1
    REASONING = 2
    TOOL_CALL = 4
    TOOL_RESULT_TEXT = 8
    TOOL_RESULT_JSON = 16
    FILE = 32


NO_KIND = Kind(0)
SAYING = Kind.TEXT | Kind.REASONING | Kind.TOOL_CALL | Kind.TOOL_RESULT_TEXT | Kind.TOOL_RESULT_JSON
"""The kinds whose words are searched; of a file only its name is there, for MATCH_SUBSTRING."""


def kind_of(part: Part) -> Kind:
    """Returns what a part is."""
    match part:
        case Text():
            return Kind.TEXT
        case Reasoning():
            return Kind.REASONING
        case ToolCall():
            return Kind.TOOL_CALL
        case ToolResult(is_json=is_json):
            return Kind.TOOL_RESULT_JSON if is_json else Kind.TOOL_RESULT_TEXT
        case File():
            return Kind.FILE
        case _:
            assert_never(part)


def kinds_of(parts: Iterable[Part]) -> Kind:
    """Returns the kinds of a turn's parts."""
    kinds = NO_KIND
    for part in parts:
        kinds |= kind_of(part)
    return kinds


def are_several(kinds: Kind) -> bool:
    """Tells whether it is more than one kind."""
    return kinds & (kinds - 1) != 0


def fold_letters(text: str) -> str:
    """Returns a text as MATCH_SUBSTRING compares it: Unicode's full case folding of each code point, on its own, and nothing else.

    `ß` is `ss`; `é` in one code point and in two stay different, as blanks and signs do.
    """
    return text.casefold()


def _values(written: str) -> str:
    pairs = leaves(written)
    return written if pairs is None else "\n".join(value for _, value in pairs)


def text_of_part(part: Part) -> str:
    """Returns the text of a part."""
    match part:
        case Text(text) | Reasoning(text):
            return text
        case ToolCall(name, arguments):
            return "\n".join([name, *(lines_of(arguments) if arguments else [])])
        case ToolResult(content, is_json=True):
            return "\n".join(lines_of(content))
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
class Literal:
    """What MATCH_SUBSTRING looks in: the turn's text, a text for each stretch between what is left out, and of each tool call the
    arguments as written.
    """

    stretches: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All of them."""
        return self.stretches + self.arguments


@dataclass(frozen=True, slots=True)
class Searched:
    """Which parts a deployment searches beside text, tool results and the arguments of tool calls, and the names of search tools,
    whose calls and results are searched only where own searches are asked for.
    """

    reasoning: bool = False
    system: bool = False
    search_tools: frozenset[str] = SEARCH_TOOLS

    @property
    def kinds(self) -> Kind:
        """The kinds of parts whose words are searched."""
        return SAYING if self.reasoning else SAYING & ~Kind.REASONING

    @property
    def fingerprint(self) -> str:
        """Names the choice; an index built under another one is rebuilt."""
        tools = json.dumps(sorted({tool.casefold() for tool in self.search_tools}))
        return f"searched-2 reasoning={self.reasoning} system={self.system} search_tools={tools}"

    def text_of(self, role: str, parts: Sequence[Part]) -> str:
        """Returns the searched text of a turn: the searched parts in order, of tool calls and JSON the values, joined by
        newlines.
        """
        return "\n".join(self.texts_of(role, parts).values())

    def texts_of(self, role: str, parts: Sequence[Part]) -> dict[int, str]:
        """Returns the searched text of each part that has one, by its place; it may be empty."""
        if self._is_silent(role):
            return {}
        return {place: without_bytes(text) for place, part in enumerate(parts) if (text := self._text(part)) is not None}

    def kinds_in(self, role: str, parts: Sequence[Part]) -> Kind:
        """Returns the kinds of a turn's parts that a search looks at: by words, or, files, by their names as letters."""
        return NO_KIND if self._is_silent(role) else kinds_of(parts) & (self.kinds | Kind.FILE)

    def _is_silent(self, role: str) -> bool:
        """Tells whether nothing of such a turn is searched."""
        return role == "system" and not self.system

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

    def beside(self, parts: Sequence[Part], kinds: Kind) -> frozenset[int]:
        """Returns the places of the parts that are searched and of none of some kinds."""
        others = self.kinds & ~kinds
        return frozenset(place for place, part in enumerate(parts) if kind_of(part) & others)

    def stretches_of(self, role: str, parts: Sequence[Part], left_out: Collection[int]) -> list[str]:
        """Returns the searched text without the parts at some places: a text for each stretch of the turn between them."""
        texts = self.texts_of(role, parts)
        stretches = stretches_between(len(parts), left_out)
        found = ("\n".join(texts[place] for place in stretch if place in texts) for stretch in stretches)
        return [text for text in found if text]

    def literal_of(self, role: str, parts: Sequence[Part], left_out: Collection[int]) -> Literal:
        """Returns what MATCH_SUBSTRING looks in, without the parts at some places and without reasoning that is not searched."""
        if self._is_silent(role):
            return Literal()
        kept = [at for at, part in enumerate(parts) if at not in left_out and (self.reasoning or not isinstance(part, Reasoning))]
        stretches = stretches_between(len(parts), frozenset(range(len(parts))).difference(kept))
        texts = [text_of([parts[place] for place in stretch]) for stretch in stretches]
        arguments = [part.arguments for place in kept if isinstance(part := parts[place], ToolCall)]
        return Literal(tuple(filter(None, texts)), tuple(filter(None, arguments)))

    def _text(self, part: Part) -> str | None:
        """Returns what is searched of a part, None for one that is not searched."""
        match part:
            case Text(text):
                return text
            case Reasoning(text):
                return text if self.reasoning else None
            case ToolCall(arguments=arguments):
                return _values(arguments)
            case ToolResult(content, is_json=is_json):
                return _values(content) if is_json else content
            case File():
                return None
            case _:
                assert_never(part)


def stretches_between(count: int, left_out: Collection[int]) -> list[list[int]]:
    """Returns the places of so many parts without some of them, a list for each stretch of neighbours; none is empty."""
    stretches: list[list[int]] = [[]]
    for place in range(count):
        if place not in left_out:
            stretches[-1].append(place)
        elif stretches[-1]:
            stretches.append([])
    return [stretch for stretch in stretches if stretch]
