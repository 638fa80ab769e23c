"""Gives ids and places to the turns of one write, as contract.md says. Pure: what is stored already is asked through a function.

Which id a turn gets:

    an id is given, for the first time in this request    it stands; one that the conversation has keeps that turn's place
    it is missing, or stands in this request already      `<conversation_id>:<seq>`, and again `:<seq>` while that is taken
    taken                                                 given anywhere in the request, or had by the conversation

In a whole conversation nothing is held or taken but what the request gives: it says anew which turns there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet


def name_turns(
    conversation_id: str,
    given: Sequence[str],
    *,
    held: Mapping[str, int],
    count: int,
    taken: Callable[[Collection[str]], AbstractSet[str]],
) -> list[tuple[str, int]]:
    """Returns the id and the seq of each turn of a request, in its order.

    `held` tells the seq of each given id that the conversation has, `count` the first free seq, `taken` which of some ids it has.
    """
    named: list[tuple[str, int]] = []
    asked: set[str] = set()
    nameless: dict[int, str] = {}
    for place, turn_id in enumerate(given):
        first = bool(turn_id) and turn_id not in asked
        if first and turn_id in held:
            named.append((turn_id, held[turn_id]))
        else:
            named.append((turn_id, count))
            if not first:
                nameless[place] = f"{conversation_id}:{count}"
            count += 1
        asked.add(turn_id)
    while nameless:
        clashes = asked.intersection(nameless.values()) | taken(nameless.values())
        for place, name in list(nameless.items()):
            seq = named[place][1]
            if name in clashes:
                nameless[place] = f"{name}:{seq}"
            else:
                named[place] = (name, seq)
                del nameless[place]
    return named
