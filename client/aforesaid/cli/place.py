"""The short id of a turn on the command line: AGENT/CONVERSATION:SEQ, which `search` prints and `show` takes.

    shop-implementer/5b0c7a52-3f0e-4c1b-9a6d-2f8e41d7c903:11     turn 11, counted from 0
    shop-implementer/5b0c7a52-3f0e-4c1b-9a6d-2f8e41d7c903        the conversation
    shop-implementer/5b0c7a52-3f0e-4c1b-9a6d-2f8e41d7c903@t%2F7  the turn with the id `t/7`
    5b0c7a52-3f0e-4c1b-9a6d-2f8e41d7c903:11                      of the caller's own conversation

Ids may hold any character. Letters, digits and `- . _ +` stand for themselves, everything else as its UTF-8 bytes in %XX, so that
no shell takes a part of it for something else and the signs between the parts can be told from those in them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

from aforesaid._errors import InvalidArgument

_SAFE = frozenset("-._+")
_ESCAPE = re.compile("%(?:[0-9A-Fa-f]{2})?")
_PLACE = re.compile(r"(?:(?P<agent>[^/]*)/)?(?P<conversation>[^/:@]+)(?::(?P<seq>[0-9]{1,10})|@(?P<turn>[^/:@]+))?")
# Conjoining letters of Hangul: some terminals compose them when they are copied, and two of them are invisible.
_JAMO = range(0x1100, 0x1200)


@dataclass(frozen=True, slots=True)
class Place:
    """A turn, by `seq` or by `turn_id`, or a whole conversation. An empty `agent_id` is the caller's own."""

    agent_id: str
    conversation_id: str
    seq: int | None = None
    turn_id: str = ""

    def __str__(self) -> str:
        agent = f"{escaped(self.agent_id)}/" if self.agent_id else ""
        turn = f"@{escaped(self.turn_id)}" if self.turn_id else "" if self.seq is None else f":{self.seq}"
        whole = f"{agent}{escaped(self.conversation_id)}{turn}"
        # `--` begins an option, whatever follows; one minus does not for the commands that take an id.
        return f"%2D{whole[1:]}" if whole.startswith("--") else whole


def read_place(text: str) -> Place:
    """Returns the place that a short id names. Raises InvalidArgument."""
    found = _PLACE.fullmatch(text)
    if found is None or any(escape == "%" for escape in _ESCAPE.findall(text)):
        raise InvalidArgument.of("id", f"must be AGENT/CONVERSATION:SEQ, as search prints it: {text}")
    try:
        agent, conversation, turn = (unquote(found[part] or "", errors="strict") for part in ("agent", "conversation", "turn"))
    except UnicodeDecodeError:
        raise InvalidArgument.of("id", f"must be UTF-8 where it is escaped: {text}") from None
    return Place(agent, conversation, None if found["seq"] is None else int(found["seq"]), turn)


@contextmanager
def naming_agent(place: Place, typed: str) -> Iterator[None]:
    """Says of an id without an agent that it must name one, where the service says so of a field that nobody typed."""
    try:
        yield
    except InvalidArgument as error:
        if place.agent_id or all(violation.field != "agent_id" for violation in error.violations):
            raise
        problem = f"names no agent, as it must where no agent asks: {typed}; `aforesaid conversations` lists ids"
        raise InvalidArgument.of("id", problem) from None


def escaped(name: str) -> str:
    """Returns an id as it stands in a place."""
    return "".join(char if _stands(char) else "".join(f"%{byte:02X}" for byte in char.encode()) for char in name)


def _stands(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char in _SAFE
    # A letter that is not what others write in its stead, so that copying keeps it as it is.
    return char.isalpha() and ord(char) not in _JAMO and unicodedata.is_normalized("NFKC", char)
