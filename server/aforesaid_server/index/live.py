"""The index and what it does not hold yet, as one: committed turns are found at once, whatever the engine is doing.

An engine commits in batches (18 to 29 ms each); a write must not wait for that. So the turns of the last writes lie in memory,
are scanned with the judge, and are merged with the engine's lists by the same key until the engine holds them.

Where other processes write to the same store, a search first asks how far the change log goes, and reads what is not known here.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from aforesaid_server.errors import AforesaidError, Unavailable
from aforesaid_server.index import MOST_PARTIAL, Batch, Candidate, Document, Found, Index, Lists, Reach, Weighed
from aforesaid_server.index.document import Brought, Fresh
from aforesaid_server.index.memory import MemoryLists, whole_conversations
from aforesaid_server.index.others import Others
from aforesaid_server.query.judge import Question
from aforesaid_server.store import Imported

_T = TypeVar("_T")
_NOT_FAR = 2_000
"""Changes that an engine takes in well under a second."""
MOST_SCANNED = 5_000
"""Fresh turns past which a search waits for the engine, rather than read more of what others wrote."""
_PATIENCE_SECONDS = 5.0


def _admits(reach: Reach, imported: Imported) -> bool:
    """Tells whether a caller may read the agent of an import, the other filters aside."""
    seen = all(imported.scope.get(key) == value for key, value in reach.scope.items())
    return seen and (reach.agents is None or imported.agent_pk in reach.agents)


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

    def holding(self, letters: str, reach: Reach, after: int | None, limit: int) -> list[Candidate]:
        """Returns the turns that may hold folded letters, of whole conversations, below one that came before. Of each list all
        conversations are known down to its last one; below the higher of these the other may have more.
        """
        while True:
            engine = self._ask(partial(self._engine.holding, letters, reach, after, limit))
            fresh = self._fresh.holding(letters, reach, after, limit)
            known_to = max((some[-1].conversation_pk for some in (engine, fresh) if len(some) >= limit), default=None)
            found = [*(one for one in engine if one.number not in self._hidden), *fresh]
            known = whole_conversations((one for one in found if known_to is None or one.conversation_pk >= known_to), limit)
            if known or known_to is None:
                return known
            after = known_to  # what the engine gave is hidden, and below it may have more

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
    threads. `others` tells what other processes write, where there may be some.
    """

    def __init__(self, others: Others | None = None) -> None:
        self._others = others
        self._engine: Index | None = None
        self._expecting = False  # fresh turns are kept; without an engine only when one is about to be used
        self._held = 0  # how far the log is in that engine
        self._seen = 0  # how far the log is in that engine, among the fresh turns or in `_imported`
        self._known: dict[int, int] = {}  # what of the log beyond is there too: first and last change
        self._reading = threading.Lock()
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
        """Returns the lists of now. Raises Unavailable while there is no engine, and where what others wrote cannot be known."""
        self._catch_up()
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
        self._catch_up()
        counted, head = 0, self._engine.head if self._engine else 0
        for one in sorted(self._imported, key=lambda one: one.first):
            if one.last > head and _admits(reach, one):
                counted += one.last - max(one.first - 1, head)
                head = one.last  # its own imports may be told twice: by the writer, and by the log
        return counted

    def _catch_up(self) -> None:
        """Learns what others had committed when this was called. Raises Unavailable where that cannot be known in time."""
        if self._others is None:
            return
        head = self._others.head()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._lacks(head):
            with self._reading:  # what one reads, all who wait know
                self._read_on(self._others, head)
            if self._lacks(head) and not self._wait_for_engine(head, deadline - time.monotonic()):
                raise Unavailable("the index is behind: try again later")

    def _lacks(self, head: int) -> bool:
        return self._engine is not None and self._seen < head

    def _read_on(self, others: Others, head: int) -> None:
        """Reads the log up to a number, as long as there is room for fresh turns."""
        while self._lacks(head) and (room := MOST_SCANNED - len(self._fresh)) > 0:
            brought, imported = others.after(self._seen, room)
            if imported:
                self.imported(imported)
            self.add(brought)

    def _wait_for_engine(self, head: int, seconds: float) -> bool:
        """Waits until the engine has made room for more, or holds the log up to a number; tells whether it has."""
        self._urgent.set()
        self._work.set()
        with self._changed:
            return self._changed.wait_for(lambda: not self._lacks(head) or len(self._fresh) < MOST_SCANNED, max(0.0, seconds))

    # -- writing

    def add(self, brought: Brought) -> None:
        """Takes the changes of one write: from now on searches see them. Writes may come in another order than that of the log:
        what a later one has put stays.
        """
        with self._changed:
            gone, dropped = frozenset(brought.forget), frozenset(brought.forget_conversations)
            kept = {
                number: one
                for number, one in self._fresh.items()
                if one.position > brought.position or (number not in gone and one.document.conversation_pk not in dropped)
            }
            for one in brought.fresh if self._expecting else ():
                before = kept.get(one.document.number)
                # The follower may have been quicker: what the engine holds would wait here for a batch that never comes.
                if one.position > self._held and (before is None or before.position < one.position):
                    kept[one.document.number] = one
            self._fresh = kept
            if brought.first:
                self._knows(brought.first, brought.position)
            self._has_grown(brought.position)
            self._changed.notify_all()
        self._work.set()

    def imported(self, some: Sequence[Imported]) -> None:
        """Learns of changes that only the follower brings in, some at least."""
        with self._changed:
            self._imported = [*self._imported, *some]
            for one in some:
                self._knows(one.first, one.last)
            self._has_grown(max(one.last for one in some))
            self._changed.notify_all()
        self._work.set()

    def log_reaches(self, head: int) -> None:
        """Learns how far the log reaches."""
        with self._changed:
            self._has_grown(head)

    def _knows(self, first: int, last: int) -> None:
        """Learns that the changes from one to another need not be read."""
        if self._others is not None and self._expecting:
            self._known[first] = max(last, self._known.get(first, 0))
            self._sees(self._seen)

    def _sees(self, number: int) -> None:
        """Learns that the changes up to a number need not be read, and with them those known that follow."""
        self._seen = max(self._seen, number)
        for first in sorted(self._known):
            if first > self._seen + 1:
                break
            self._seen = max(self._seen, self._known.pop(first))

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
        """Waits until the log has grown, and then, unless somebody hurries, for what else is written within `lag` seconds. Where
        others write to it, no longer than that.
        """
        if self._work.wait(lag if self._others is not None else None):
            self._urgent.wait(lag)
        self._work.clear()
        self._urgent.clear()

    def expect(self, head: int) -> None:
        """Keeps fresh turns from now on, for an engine that holds the log up to `head` and is used next.

        Without an engine none are kept: nobody searches them, and the log holds them for whoever builds the next one.
        """
        with self._changed:
            if self._engine is None:
                self._expecting, self._held, self._seen = True, head, head

    def use(self, engine: Index | None) -> None:
        """Searches in another engine from now on, or in none."""
        with self._changed:
            self._engine, self._expecting = engine, engine is not None
            if engine is None:
                self._held, self._seen, self._fresh, self._known = 0, 0, {}, {}
            else:
                self._holds(engine.head)
            self._changed.notify_all()

    def apply(self, engine: Index, batch: Batch) -> None:
        """Has the engine take a batch, then lets go of what it holds now, unless searches still go to another one."""
        engine.apply(batch)
        with self._changed:
            if self._engine is None or self._engine is engine:
                self._holds(batch.head)
            self._changed.notify_all()

    def _holds(self, head: int) -> None:
        """Lets go of what the engine holds."""
        self._held = head
        self._sees(head)
        self._fresh = {number: one for number, one in self._fresh.items() if one.position > head}
        self._imported = [one for one in self._imported if one.last > head]
        while self._waiting and self._waiting[0][0] <= head:
            self._waiting.popleft()
