"""What `aforesaid search` prints of a page of hits, as lines. Pure but for the way back, which looks into files that are here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from aforesaid.cli.origin import origin_line, resume_command
from aforesaid.cli.place import Place
from aforesaid.cli.terminal import Style, cut, local_time, visible

if TYPE_CHECKING:
    # Their two dozen dataclasses take 50 ms to make: not for --help.
    from aforesaid._replies import ContextTurn, SearchHit, SearchPage

TITLE_LENGTH = 60
# A turn beside a hit stands on one line; `show` has the whole of it.
CONTEXT_LENGTH = 120

_MARK = re.compile("⟦([^⟦⟧]*)⟧")


def page_lines(page: SearchPage, style: Style) -> Iterator[str]:
    """Yields the hits of a page: the list's name where it changes, and of each hit who said it and when, its snippet, its way
    back.
    """
    for number, (name, hits) in enumerate(page.lists()):
        if number:
            yield ""
        yield f"{style.heading}{name}{style.end}"
        for hit in hits:
            yield _header(hit, style)
            yield from _context(hit.before, style)
            yield f"    {_snippet(hit.snippet, style)}"
            yield from _context(hit.after, style)
            yield from _way_back(hit, style)


def _header(hit: SearchHit, style: Style) -> str:
    who = f"{style.name}{visible(hit.name or hit.agent_id)}{style.end}"
    facts = (
        f"{who} ({visible(hit.agent_id)})" if hit.name not in {"", hit.agent_id} else who,
        f"sub-agent of {visible(hit.parent_agent_id)}" if hit.parent_agent_id else "",
        "archived" if hit.archived else "",
        cut(visible(hit.title), TITLE_LENGTH),
        visible(hit.role),
        local_time(hit.created_at),
    )
    return "  " + " · ".join(fact for fact in facts if fact)


def _context(turns: Iterable[ContextTurn], style: Style) -> Iterator[str]:
    for turn in turns:
        text = cut(visible(" ".join(turn.text.split())), CONTEXT_LENGTH)
        yield f"    {style.place}[{turn.seq}] {visible(turn.role)}: {text}{style.end}"


def _snippet(snippet: str, style: Style) -> str:
    before, after = style.mark
    return _MARK.sub(lambda match: f"{before}{match[1]}{after}", visible(snippet))


def _way_back(hit: SearchHit, style: Style) -> Iterator[str]:
    place = str(Place(hit.agent_id, hit.conversation_id, hit.seq))
    facts = [place, origin_line(hit.source, hit.turn_id)]
    yield f"    {style.place}{' · '.join(fact for fact in facts if fact)}{style.end}"
    if command := resume_command(hit.source, hit.agent_id):
        yield f"    {style.place}{command}{style.end}"
