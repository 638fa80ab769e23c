"""Asks two engines the same questions, page by page, and compares what they list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from aforesaid_server.index import Candidate, Found, Lists, Reach
from aforesaid_server.query.judge import Question
from aforesaid_server.text.transcript import fold_letters
from tests.conformance.worlds import DOCUMENTS, Asked, World

LookUp = Callable[[Question, Reach, Found | None, int], list[Found]]


def paged(look_up: LookUp, question: Question, reach: Reach, limit: int, alive: Collection[int] | None = None) -> list[Found]:
    """Turns the pages of a list to the end; what is not `alive` any more is left out, as a search does that asks the store."""
    listed: list[Found] = []
    after: Found | None = None
    while True:
        page = look_up(question, reach, after, limit)
        assert len(page) <= limit
        assert after is None or all(found > after for found in page), "a page goes on after the one before"
        listed += page
        if len(page) < limit:
            break
        after = page[-1]
    assert len({found.number for found in listed}) == len(listed), "no turn comes twice"
    return [found for found in listed if alive is None or found.number in alive]


def _bare(listed: Iterable[Found]) -> list[tuple[int, int, int | None]]:
    """Everything of them: in a list by time two are equal for less."""
    return [(one.rank, one.key, one.at) for one in listed]


def some(lists: Lists, question: Question, reach: Reach, alive: Collection[int] | None = None) -> tuple[set[int], set[int]]:
    """Returns the members of `partial` and of MATCH_ANY_WORD."""
    found = []
    for every_word in (False, True):
        weighed = lists.partial(question, reach, every_word=every_word)
        numbers = [one.number for one in weighed]
        assert len(set(numbers)) == len(numbers)
        assert [one.weight for one in weighed] == sorted((one.weight for one in weighed), reverse=True)
        found.append({number for number in numbers if alive is None or number in alive})
    return found[0], found[1]


def candidates(lists: Lists, letters: str, reach: Reach, limit: int) -> list[Candidate]:
    """Turns the pages of the turns that may hold some letters to the end: each goes on below the one before, by whole conversations
    and with no more of them than give so many turns.
    """
    found: list[Candidate] = []
    after = None
    while page := lists.holding(letters, reach, after, limit):
        pks = [one.conversation_pk for one in page]
        assert after is None or pks[0] < after
        assert len([pk for pk in pks if pk != pks[-1]]) < limit, "the last conversation was not needed"
        found += page
        after = pks[-1]
    assert found == sorted(found, key=lambda one: (-one.conversation_pk, one.number))
    assert len({one.number for one in found}) == len(found)
    return found


def holds(judge: Lists, other: Lists, ask: Asked, world: World, *, dead: bool) -> None:
    """Sees that an engine leaves out no turn that holds some letters, and gives none that is not looked at."""
    reach = ask.reach(world)
    found = candidates(other, ask.letters, reach, ask.limit)
    assert candidates(other, ask.letters, reach, 1_000) == found, ask
    numbers = {one.number for one in found if not dead or one.number in world.truth}
    looked_at = {one.number for one in candidates(judge, "", reach, 1_000)}
    truth = {
        number
        for number, place in world.truth.items()
        for text in DOCUMENTS.literal_of(place, own_searches=reach.own_searches, kinds=reach.kinds).texts
        if number in looked_at and ask.letters in fold_letters(text)
    }
    assert truth <= numbers <= looked_at, ask


def same(judge: Lists, other: Lists, asked: Iterable[Asked], world: World, *, dead: bool = False) -> None:
    """Asks two engines the same; with `dead`, the other one may still know turns that are gone."""
    alive = frozenset(world.truth) if dead else None
    for ask in asked:
        question, reach = ask.question(), ask.reach(world)
        holds(judge, other, ask, world, dead=dead)
        if question is None:
            continue
        matches = judge.matches(question, reach, None, 1_000)
        near = judge.near(question, reach, None, 1_000)
        assert paged(other.matches, question, reach, ask.limit, alive) == matches, ask
        assert paged(other.near, question, reach, ask.limit, alive) == near, ask
        newest = judge.newest(question, reach, None, 1_000)
        assert _bare(paged(other.newest, question, reach, ask.limit, alive)) == _bare(newest), ask
        assert {(one.number, one.rank) for one in newest} == {(one.number, one.rank) for one in matches}, ask
        partial, any_word = some(judge, question, reach)
        assert some(other, question, reach, alive) == (partial, any_word), ask
        # A caller that has the whole of near gives it.
        known = frozenset(found.number for found in near)
        given_near = {one.number for one in other.partial(question, reach, every_word=False, near=known)}
        assert given_near & frozenset(world.truth) == partial, ask
        stems = {stem for clause in (*question.query.wanted, *question.query.excluded) for stem in clause.stems}
        occurring = judge.occurring(stems, reach)
        assert occurring <= other.occurring(stems, reach) if dead else occurring == other.occurring(stems, reach), ask
        # What the lists promise of each other.
        listed = {found.number for found in matches}
        assert not listed & known
        assert not partial & (listed | known)
        if not question.bound:
            assert listed <= any_word
