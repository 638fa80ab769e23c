"""What the command line tells of an import, as lines: its sums, and what could not be read or sent. Pure; nothing here writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aforesaid.cli.terminal import visible

if TYPE_CHECKING:
    # Its dataclasses take long to make: not for --help.
    from aforesaid.cli.tally import Tally

# A full screen tells enough of a folder in which nothing can be read.
TROUBLES = 20
# So many files of a kind show what kind they are.
NAMED = 3


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
