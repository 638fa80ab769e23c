"""The index and what it does not hold yet, as one: committed turns are found at once, whatever the engine is doing.

An engine commits in batches (18 to 29 ms each); a write must not wait for that. So the turns of the last writes lie in memory,
are scanned with the judge, and are merged with the engine's lists by the same key until the engine holds them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from aforesaid.model import EMPTY_SCOPE
from aforesaid_server.errors import AforesaidError, Unavailable
from aforesaid_server.index import MOST_PARTIAL, Batch, Document, Found, Index, Lists, Reach, Weighed
from aforesaid_server.index.document import Brought, Fresh
from aforesaid_server.index.memory import MemoryLists
from aforesaid_server.query.judge import Question
from aforesaid_server.store import Scope

_T = TypeVar("_T")
_NOT_FAR = 2_000
"""Changes that an engine takes in well under a second."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Changes, from `first` to `last`, that an import made of one agent's turns."""

    first: int
    last: int
    agent_pk: int = 0
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)

    def within(self, reach: Reach) -> bool:
        """Tells whether a caller may read that agent, the other filters aside."""
        seen = all(self.scope.get(key) == value for key, value in reach.scope.items())
        return seen and (reach.agents is None or self.agent_pk in reach.agents)


class MergedLists(Lists):
    """An engine's lists with the fresh turns merged in. A fresh turn hides what the engine knows under the same number.

    Raises Unavailable where the engine is found to be broken; `broken` is then told.
    """

    def __init__(self, index: Index, engine: Lists, fresh: Sequence[Document], broken: Callable[[], None]) -> None:
        self._index = index
        self._broken = broken
        self._engine = engine
        self._fresh = MemoryLists(fresh)
        self._hidden = self._fresh.numbers

    def matches(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` matches in order, after one that came before."""
        engine = self._ask(lambda: self._engine.matches(question, reach, after, limit + len(self._hidden)))
        return self._merged(engine, self._fresh.matches(question, reach, after, limit), limit)

    def newest(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` matches by time and number, the latest first, after one that came before."""
        engine = self._ask(lambda: self._engine.newest(question, reach, after, limit + len(self._hidden)))
        return self._merged(engine, self._fresh.newest(question, reach, after, limit), limit)

    def near(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` turns of `near` in order, after one that came before."""
        engine = self._ask(lambda: self._engine.near(question, reach, after, limit + len(self._hidden)))
        return self._merged(engine, self._fresh.near(question, reach, after, limit), limit)

    def partial(self, question: Question, reach: Reach, *, every_word: bool, near: frozenset[int] | None = None) -> list[Weighed]:
        """Returns the best turns. Weights of two engines cannot be compared: where fresh turns are left, because the engine has an
        import to take first, the best of them is held to be as good as the engine's best.
        """
        engine = self._ask(lambda: self._engine.partial(question, reach, every_word=every_word, near=near))
        found = [weighed for weighed in engine if weighed.number not in self._hidden]
        fresh = self._fresh.partial(question, reach, every_word=every_word)
        if found and fresh and fresh[0].weight:
            scale = found[0].weight / fresh[0].weight
            fresh = [replace(weighed, weight=weighed.weight * scale) for weighed in fresh]
        return sorted([*found, *fresh], key=lambda weighed: (-weighed.weight, -weighed.number))[:MOST_PARTIAL]

    def occurring(self, stems: Collection[str], reach: Reach) -> frozenset[str]:
        """Returns which of the stems some turn says, or said before it was changed."""
        return self._ask(lambda: self._engine.occurring(stems, reach)) | self._fresh.occurring(stems, reach)

    def _ask(self, look_up: Callable[[], _T]) -> _T:
        try:
            return look_up()
        except BaseException as error:  # tantivy's panics are no Exception
            if isinstance(error, (AforesaidError, KeyboardInterrupt, SystemExit)) or self._index.answers():
                raise
            self._broken()
            raise Unavailable("the index has failed and will be rebuilt: see /readyz") from error

    def _merged(self, engine: Iterable[Found], fresh: list[Found], limit: int) -> list[Found]:
        return sorted([*(found for found in engine if found.number not in self._hidden), *fresh])[:limit]


class LiveIndex:
    """An engine, which may be absent while it is being rebuilt, and the turns that it does not hold yet. Safe from several
    threads.
    """

    def __init__(self) -> None:
        self._engine: Index | None = None
        self._expecting = False  # fresh turns are kept; without an engine only when one is about to be used
        self._held = 0  # how far the log is in that engine
        self._fresh: dict[int, Fresh] = {}
        self._imported: list[Imported] = []
        self._latest = 0
        self._failed = False
        self._waiting: deque[tuple[int, float]] = deque()  # changes up to a number, and when the first of them came
        self._changed = threading.Condition()
        self._work = threading.Event()
        self._urgent = threading.Event()

    # -- searching

    def lists(self) -> Lists:
        """Returns the lists of now. Raises Unavailable while there is no engine."""
        with self._changed:
            if self._engine is None:
                raise Unavailable("the index is being rebuilt: see /readyz")
            head, lists = self._engine.lists()
            fresh = [fresh.document for fresh in self._fresh.values() if fresh.position > head]
            return MergedLists(self._engine, lists, fresh, self._break)

    def _break(self) -> None:
        with self._changed:
            self._failed = True
        self._urgent.set()
        self._work.set()

    def take_failure(self) -> bool:
        """Tells, once, whether a search found the engine broken."""
        with self._changed:
            failed, self._failed = self._failed, False
            return failed

    def pending(self, reach: Reach) -> int:
        """Returns how many imported turns that a caller may read are not yet found."""
        head = self._engine.head if self._engine else 0
        return sum(max(0, one.last - max(one.first - 1, head)) for one in self._imported if one.within(reach))

    # -- writing

    def add(self, brought: Brought) -> None:
        """Takes the changes of one write: from now on searches see them. Writes may come in another order than that of the log."""
        with self._changed:
            gone, dropped = frozenset(brought.forget), frozenset(brought.forget_conversations)
            kept = {
                number: one
                for number, one in self._fresh.items()
                if number not in gone and one.document.conversation_pk not in dropped
            }
            for one in brought.fresh if self._expecting else ():
                before = kept.get(one.document.number)
                # The follower may have been quicker: what the engine holds would wait here for a batch that never comes.
                if one.position > self._held and (before is None or before.position < one.position):
                    kept[one.document.number] = one
            self._fresh = kept
            self._has_grown(brought.position)
            self._changed.notify_all()
        self._work.set()

    def imported(self, some: Sequence[Imported]) -> None:
        """Learns of changes that only the follower brings in, some at least."""
        with self._changed:
            self._imported = [*self._imported, *some]
            self._has_grown(max(one.last for one in some))
            self._changed.notify_all()
        self._work.set()

    def _has_grown(self, latest: int) -> None:
        """Learns that the log reaches so far. What came within a second is remembered as one."""
        self._latest = max(self._latest, latest)
        if self._latest <= self._held:
            return
        now = time.monotonic()
        if self._waiting and now - self._waiting[-1][1] < 1.0:
            self._waiting[-1] = self._latest, self._waiting[-1][1]
        else:
            self._waiting.append((self._latest, now))

    def behind(self) -> tuple[int, float]:
        """Returns how many changes the engine lacks, and how many seconds the oldest has waited, up to one too many."""
        with self._changed:
            waiting = time.monotonic() - self._waiting[0][1] if self._waiting else 0.0
            return max(0, self._latest - self._held), waiting

    def wait_for_room(self, most: int, seconds: float) -> bool:
        """Waits until fewer than `most` turns are fresh; tells whether there is room."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._fresh) < most, seconds)

    def hurry(self, seconds: float) -> bool:
        """Has the engine take all that is known now, and waits for it, so long at most; tells whether it holds it."""
        with self._changed:
            target = self._latest
            if self._engine is not None and self._engine.head >= target and seconds:
                return True
            self._urgent.set()
            self._work.set()
            return self._changed.wait_for(lambda: self._engine is not None and self._engine.head >= target, seconds)

    def hurry_fresh(self, seconds: float) -> None:
        """Has the engine take what writes brought, and waits for it, so long at most; not where it has an import to take first."""
        with self._changed:
            target = max((one.position for one in self._fresh.values()), default=0)
            if self._engine is None or target <= self._held or target - self._held > _NOT_FAR:
                return
            self._urgent.set()
            self._work.set()
            self._changed.wait_for(lambda: self._engine is None or self._engine.head >= target, seconds)

    # -- following

    def wait_for_work(self, lag: float) -> None:
        """Waits until the log has grown, and then, unless somebody hurries, for what else is written within `lag` seconds."""
        self._work.wait()
        self._urgent.wait(lag)
        self._work.clear()
        self._urgent.clear()

    def expect(self, head: int) -> None:
        """Keeps fresh turns from now on, for an engine that holds the log up to `head` and is used next.

        Without an engine none are kept: nobody searches them, and the log holds them for whoever builds the next one.
        """
        with self._changed:
            self._expecting, self._held = True, head

    def use(self, engine: Index | None) -> None:
        """Searches in another engine from now on, or in none."""
        with self._changed:
            self._engine, self._expecting = engine, engine is not None
            self._held = engine.head if engine is not None else 0
            self._let_go()
            self._fresh = {number: one for number, one in self._fresh.items() if engine is not None and one.position > self._held}
            self._changed.notify_all()

    def apply(self, engine: Index, batch: Batch) -> None:
        """Has the engine take a batch, then lets go of what it holds now."""
        engine.apply(batch)
        with self._changed:
            self._held = batch.head
            self._let_go()
            self._fresh = {number: one for number, one in self._fresh.items() if one.position > batch.head}
            self._imported = [one for one in self._imported if one.last > batch.head]
            self._changed.notify_all()

    def _let_go(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._held:
            self._waiting.popleft()
