"""What the command line prints, as lines: hits, sums of an import, notes and errors. Pure; nothing here writes anywhere.

Text from the wire may hold whatever an agent once printed. `visible` takes from it what a terminal would obey, colour or not, piped
or not, because a pipe often ends at a terminal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Their two dozen dataclasses take 50 ms to make: not for --help.
    from aforesaid._replies import SearchHit, SearchPage
    from aforesaid.cli.tally import Tally

PROGRAM = "aforesaid"
TITLE_LENGTH = 60
# A full screen tells enough of a folder in which nothing can be read.
TROUBLES = 20
# So many files of a kind show what kind they are.
NAMED = 3

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MARK = re.compile("⟦([^⟦⟧]*)⟧")


@dataclass(frozen=True, slots=True)
class Style:
    """What stands around the pieces of a hit: escape sequences of a terminal, or nothing. `mark` is put around a match."""

    heading: str = ""
    name: str = ""
    place: str = ""
    end: str = ""
    mark: tuple[str, str] = ("⟦", "⟧")


PLAIN = Style()
COLOURS = Style(heading="\x1b[1m", name="\x1b[36m", place="\x1b[2m", end="\x1b[0m", mark=("\x1b[1;31m", "\x1b[0m"))


def wants_colour(is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """Tells whether to colour: on a terminal that can, unless NO_COLOR is set to something."""
    return is_terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def _unsafe() -> Iterator[tuple[int, str]]:
    # Control characters: those of ASCII as their pictures, the rest by number, since C1 ones begin sequences too.
    yield from ((code, chr(0x2400 + code)) for code in range(0x20))
    yield 0x7F, "␡"
    yield from ((code, f"<U+{code:04X}>") for code in range(0x80, 0xA0))
    # What turns the direction of the text around it, breaks lines, or is read by machines and seen by nobody.
    unseen = (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), *range(0xE0000, 0xE0080))
    yield from ((code, f"<U+{code:04X}>") for code in unseen)
    yield from ((ord(blank), " ") for blank in "\t\n\r")


_VISIBLE = dict(_unsafe())


def visible(text: str) -> str:
    """Returns text on one line in which every control character can be seen and none works."""
    return text.translate(_VISIBLE)


def page_lines(page: SearchPage, style: Style) -> Iterator[str]:
    """Yields the hits of a page: the list's name where it changes, for each hit a line that tells where it is, its snippet."""
    for number, (name, hits) in enumerate(page.lists()):
        if number:
            yield ""
        yield f"{style.heading}{name}{style.end}"
        for hit in hits:
            yield _header(hit, style)
            yield f"    {_snippet(hit.snippet, style)}"


def _header(hit: SearchHit, style: Style) -> str:
    who = f"{style.name}{visible(hit.name or hit.agent_id)}{style.end}"
    facts = (
        f"{who} ({visible(hit.agent_id)})" if hit.name not in {"", hit.agent_id} else who,
        f"sub-agent of {visible(hit.parent_agent_id)}" if hit.parent_agent_id else "",
        "archived" if hit.archived else "",
        _cut(visible(hit.title)),
        visible(hit.role),
        _time(hit.created_at),
        f"{style.place}{visible(hit.conversation_id)}#{hit.seq}{style.end}",
    )
    return "  " + " · ".join(fact for fact in facts if fact)


def _cut(title: str) -> str:
    return title if len(title) <= TITLE_LENGTH else title[: TITLE_LENGTH - 1] + "…"


def _time(micros: int | None) -> str:
    """Returns a time to the minute in the zone of this machine."""
    if micros is None:
        return ""
    time = _EPOCH + timedelta(microseconds=micros)
    # The first and the last day of the calendar have no other zone.
    with suppress(OverflowError, ValueError, OSError):
        time = time.astimezone()
    return time.replace(tzinfo=None).isoformat(" ", "minutes")


def _snippet(snippet: str, style: Style) -> str:
    before, after = style.mark
    return _MARK.sub(lambda match: f"{before}{match[1]}{after}", visible(snippet))


def json_line(json: str) -> str:
    """Returns JSON in which the characters that JSON lets stand and a terminal would obey are escaped; it says the same."""
    # Outside of strings JSON holds none of them. Those under U+0020 are escaped already.
    return re.sub(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", lambda match: f"\\u{ord(match[0]):04x}", json)


def note_line(note: str) -> str:
    """Returns what a person should know, on one line."""
    return visible(note)


def error_line(message: str) -> str:
    """Returns an error on one line that begins with the program's name."""
    return f"{PROGRAM}: {visible(message)}"


def import_lines(tally: Tally, *, verbose: bool = False) -> Iterator[str]:
    """Yields the sums of an import: turns, lines, and what was left out with the reasons, most frequent first.

    Of one that was cut short only what is known: the turns that were acknowledged. `verbose` groups no reasons and names all files.
    """
    turns = tally.turns
    taken = f"{_count(turns.added, 'turn')} added, {turns.replaced:,} replaced, {turns.unchanged:,} unchanged"
    if tally.cut_short:
        yield f"cut short: {taken}"
        yield (
            f"{_count(tally.lines, 'line')} of {_count(tally.files, 'file')} read, of which {_count(tally.acknowledged, 'turn')} "
            "acknowledged; run it again to go on"
        )
        yield from _left_out_turns(tally)
        return
    yield f"{_count(tally.files, 'file')}: {taken}"
    yield f"{_count(tally.lines, 'line')}: {tally.lines_taken:,} taken, {tally.lines_skipped.total():,} skipped"
    yield from _reasons(tally.lines_skipped if verbose else _grouped(tally.lines_skipped))
    if tally.notes:
        yield "in lines that were taken:"
        yield from _reasons(tally.notes)
    yield from _left_out_turns(tally)
    if tally.left_out:
        yield f"{_count(sum(map(len, tally.left_out.values())), 'file')} left out:"
        for why, paths in sorted(tally.left_out.items(), key=lambda item: -len(item[1])):
            named = paths if verbose else paths[:NAMED]
            more = f" and {len(paths) - len(named):,} more" if len(paths) > len(named) else ""
            yield f"  {len(paths):,} {visible(why)}: {', '.join(map(visible, named))}{more}"


def _left_out_turns(tally: Tally) -> Iterator[str]:
    skipped: Counter[str] = Counter()
    for left in tally.turns.skipped:
        skipped[left.reason] += left.turns
    if skipped:
        yield f"{_count(skipped.total(), 'turn')} left out by the service:"
        yield from _reasons(skipped)


def _grouped(reasons: Counter[str]) -> Counter[str]:
    from aforesaid.formats import WITHOUT_TEXT  # loaded by then: an import has read files

    grouped: Counter[str] = Counter()
    for reason, number in reasons.items():
        grouped["without conversation text" if reason.endswith(WITHOUT_TEXT) else reason] += number
    return grouped


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _reasons(counted: Counter[str]) -> Iterator[str]:
    for reason, number in counted.most_common():
        yield f"  {number:,} {visible(reason)}"


def import_troubles(tally: Tally) -> Iterator[str]:
    """Yields what could not be read or sent: conversations with the turns that were refused, then the rest; the first TROUBLES."""
    refused: Counter[tuple[str, str, str]] = Counter()
    for left in tally.turns.refused:
        refused[left.agent_id, left.conversation_id, left.reason] += left.turns
    troubles = [
        f"{_count(number, 'turn')} of conversation {conversation} of agent {agent} not taken: {reason}"
        for (agent, conversation, reason), number in refused.items()
    ]
    troubles += tally.troubles
    yield from troubles[:TROUBLES]
    if len(troubles) > TROUBLES:
        yield f"and {len(troubles) - TROUBLES:,} more"
