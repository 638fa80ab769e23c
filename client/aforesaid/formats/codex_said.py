"""What a line of a Codex session says: the value that items and events are read into, and the messages that both of them hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aforesaid.formats.codex_prompts import is_picture_tag, split
from aforesaid.formats.parts import read_content
from aforesaid.formats.tally import Tally
from aforesaid.formats.values import Object
from aforesaid.model import Part, Reasoning, Text

_MARKUP = re.compile(r"<(oai-mem-citation|proposed_plan)>(.*?)</\1>", re.DOTALL)


@dataclass(slots=True)
class Said:
    """What a line says in one role. `log` names the log that may be repeated by another one; empty for what has no copy.

    `aside` marks what the program put around a message of the same line, `dropped` names what of it is not kept.
    """

    role: str
    parts: list[Part]
    log: str = ""
    aside: bool = False
    dropped: tuple[str, ...] = ()

    def pieces(self) -> list[str]:
        """The texts by which a copy in another log is known: without what that log shows apart from the message."""
        whole = "\n".join(part.text for part in self.parts if isinstance(part, Text | Reasoning))
        plans = [found[2] for found in _MARKUP.finditer(whole) if found[1] == "proposed_plan"]
        return [piece for piece in (_MARKUP.sub("", whole), *plans) if piece.strip()] or [whole]


def read_prompt(content: Iterable[object], tally: Tally, log: str) -> Iterator[Said]:
    """Yields what the program put around a message, as an aside in front, then the message."""
    asides: list[Part] = []
    parts: list[Part] = []
    dropped: list[str] = []
    for part in (part for block in content for part in read_content([block], tally)):
        if not isinstance(part, Text):
            parts.append(part)
        elif not is_picture_tag(part.text):
            found = split(part.text)
            asides += [Text(found.aside)] if found.aside else []
            parts += [Text(found.said)] if found.said else []
            dropped += found.dropped
    yield Said("system", asides, aside=bool(parts), dropped=() if parts else tuple(dropped))
    yield Said("user", parts, log, dropped=tuple(dropped))


def dropped_from(payload: Object) -> str:
    """The name of the program's text that is all that a message holds; empty if it is something else."""
    content = blocks(payload.get("content", payload.get("message")))
    texts = [part.text for part in read_content(content, Tally()) if isinstance(part, Text)]
    names = [name for text in texts for name in split(text).dropped]
    return names[0] if names else ""


def blocks(content: object) -> list[object]:
    """Content as a list: many a field holds one block, or several."""
    return content if isinstance(content, list) else [] if content is None else [content]
