"""Random corpora as a change log, and random questions: what every engine is asked in the same way.

The words are few, so that stems, ties, phrases, humps, pairs of Han and signs come together. A world keeps the truth; what reads
its log gets the changes as the store gives them: a turn that has since been changed again is not in them. Which calls results
answer is told by the plain rule of tests/store, to which the store is held there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hypothesis import strategies as st

from aforesaid.model import File, Part, Reasoning, Source, Text, ToolCall, ToolResult
from aforesaid_server.errors import InvalidArgument
from aforesaid_server.index import Batch, Document, Reach
from aforesaid_server.index.document import Brought, Documents, brought_by, lasting
from aforesaid_server.query.judge import Question
from aforesaid_server.query.parse import parse
from aforesaid_server.store import Change, Forget, ForgetConversation, Put, StoredAgent, StoredConversation, StoredTurn, TurnInPlace
from aforesaid_server.text.transcript import NO_KIND, Kind, Searched, fold_letters
from aforesaid_server.text.words import Analyser
from tests.store.plain import plain_answers

ENGLISH = Analyser()
DOCUMENTS = Documents(ENGLISH, Searched(reasoning=True))

# What is said, and what is asked for; a world is of one or two of them, so that words come together.
THEMES: list[tuple[list[str], list[str]]] = [
    (
        ["deploy", "deploys", "Deployed,", "redeploy", "deployUser", "the", "the", "it"],
        [
            "deploy",
            "Deploys",
            "the",
            "it",
            "redeploy",
            "ploy",
            "the deploy",
            '"the deploy"',
            "deploy deploy",
            "what the deploy",
            "-deployed",
        ],
    ),
    (
        ["user", "users", "userland", "getUserId", "superusers", "what", "use", "the user"],
        [
            "user",
            "users",
            "use",
            "ser",
            "get user",
            '"user"',
            '"the user"',
            "what user",
            "getuser",
            "-the",
            '-"the user"',
            "land user",
        ],
    ),
    (
        ["http", "HTTPServer", "http2", "xhttpd", "server", "HTTP", "a server", "servers"],
        ["http", "ttp", "server", "http server", "a http", '"http server"', "htt", "http2", "-a", "servers http"],
    ),
    (
        ["t-shirt", "t shirt", "shirt", "C++", "C", "c#.", ".NET", "net", "ASP.NET", "#123", "123", "->", "…"],
        [
            "t-shirt",
            "shirt",
            "C++",
            "C",
            "c#",
            ".NET",
            "net",
            "#123",
            "123",
            '"t shirt"',
            "C++ .NET",
            "-t-shirt",
            "->",
            "net C",
            "shirt t",
        ],
    ),
    (
        ["東京", "東京都", "京都へ", "京", "都", "が", "か", "회의록", "회의", "回youer服", "youer"],
        [
            "東京",
            "京",
            "京都",
            "東京 都",
            "회의",
            "が",
            "youer",
            "回youer",
            '"東京"',
            '"京 都"',
            "-東京",
            "-か",
            "東京都へ",
            "都 youer",
        ],
    ),
    (
        ["é", "café", "cafe\u0301", "cafeteria", "naïve-ing", "Straße", "ﬁne", "src/main.py", "main", "pay\x00load", "\u0903a"],
        [
            "cafe",
            "Café",
            "eteria",
            "caf",
            "strasse",
            "rass",
            "fine",
            "ing",
            "src/main.py",
            "main",
            "load",
            "\u0903a",
            "main cafe",
            "-cafe",
        ],
    ),
    (
        ["a", "ab", "aab", "abab", "a a", "x12345y", "12345", "b", "-x", "aBaB"],
        ["a", "ab", "aba", "a b", "a a", "ab ab", '"a ab"', "“a a”", "345", "x12", '"ab', "-ab", "b a", "12345"],
    ),
]
LENGTHS = [1, 7, 7, 7, 500, 262_142, 262_143, 262_144, 10**7]
ROLES = ["user", "assistant", "tool", "user", "assistant", "tool", "system"]
PROJECTS = ["", "/srv/shop", "/srv"]
TEAMS = ["", "a", "b"]
# The first and the last time that a turn may have, and some that several have.
TIMES = [-62_135_596_800_000_000, -5, -4, 0, 1, 2, 2, 2, 3, 253_402_300_799_999_999]
TOOLS = ["search_transcripts", "mcp__x__Read_Transcript", "Bash", "Bash"]
CALL_IDS = ["", "1", "1", "2"]

# -- what is done


@dataclass(frozen=True)
class Say:
    """A new turn of conversation 0, 1 or 2."""

    conversation: int
    parts: tuple[Part, ...]
    role: str
    length: int
    at: int


@dataclass(frozen=True)
class Rewrite:
    """Other parts for the turn at a place of the truth, counted round."""

    place: int
    parts: tuple[Part, ...]
    length: int


@dataclass(frozen=True)
class Touch:
    """Another role and time for a turn, which keeps its text and number."""

    place: int
    role: str
    at: int


@dataclass(frozen=True)
class Remove:
    """A turn goes."""

    place: int


@dataclass(frozen=True)
class Drop:
    """A conversation goes, and does not come back."""

    conversation: int


@dataclass(frozen=True)
class Follow:
    """The follower reads so many changes."""

    most: int


Step = Say | Rewrite | Touch | Remove | Drop | Follow


def _steps(said: Sequence[str]) -> st.SearchStrategy[list[Step]]:
    """Many turns, then changes of some and more of them, and few commits: each costs as much as a hundred questions."""
    texts = st.lists(st.sampled_from(said), min_size=1, max_size=7).map(" ".join)
    parts = _mostly_text(texts)
    lengths, place = st.sampled_from(LENGTHS), st.integers(0, 60)
    say = st.builds(Say, st.integers(0, 2), parts, st.sampled_from(ROLES), lengths, st.sampled_from(TIMES))
    changes = [
        st.builds(Rewrite, place, parts, lengths),
        st.builds(Touch, place, st.sampled_from(ROLES), st.sampled_from(TIMES)),
        st.builds(Remove, place),
    ]
    rare = [st.builds(Drop, st.integers(0, 2)), st.builds(Follow, st.sampled_from([1, 2, 5, 100]))]
    later = st.lists(st.one_of(*changes, *changes, *rare, say), min_size=3, max_size=12)
    return st.tuples(st.lists(say, min_size=16, max_size=40), later).map(lambda both: [*both[0], *both[1]])


def _mostly_text(texts: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[Part, ...]]:
    """One text, or some parts with calls and results among them."""
    names, ids = st.sampled_from(TOOLS), st.sampled_from(CALL_IDS)
    text = st.builds(Text, texts)
    rest = [st.builds(kind, texts) for kind in (Reasoning, lambda name: File("", name))]
    part = st.one_of(text, st.builds(ToolCall, names, texts, ids), st.builds(ToolResult, texts, ids, st.booleans()), *rest)
    parts = st.lists(part, min_size=1, max_size=5).map(tuple)
    return st.one_of(st.tuples(text), st.tuples(text), parts)


# -- the truth and its log


@dataclass
class World:
    """The turns as they are now, and the log of changes that led there, from change `began` + 1 on."""

    name: str
    began: int
    truth: dict[int, TurnInPlace] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    said: int = 0

    @property
    def head(self) -> int:
        """The number of the last change."""
        return self.began + len(self.log)

    def do(self, step: Step) -> list[Change]:
        """Makes the changes of one write, and returns them as the writer has them."""
        before = len(self.log)
        match step:
            case Say(conversation=conversation) if conversation not in self.dropped:
                self._put(self._place(step, self.head + 1), 0)
            case Rewrite() if self.truth:
                old = self._at(step.place)
                turn = replace(old.turn, number=self.head + 1, parts=step.parts, content_length=step.length)
                del self.truth[old.turn.number]
                self._put(replace(old, turn=turn), old.turn.number)
            case Touch() if self.truth:
                old = self._at(step.place)
                self._put(replace(old, turn=replace(old.turn, role=step.role, created_at=step.at)), 0)
            case Remove() if self.truth:
                old = self._at(step.place)
                del self.truth[old.turn.number]
                self.log.append(Forget(self.head + 1, old.turn.number))
            case Drop():
                pk = self._conversation(step.conversation).pk
                self.dropped.add(step.conversation)
                self.truth = {number: place for number, place in self.truth.items() if place.conversation.pk != pk}
                self.log.append(ForgetConversation(self.head + 1, pk))
            case _:
                pass
        self._join(before)
        return self.log[before:]

    def read(self, after: int, most: int) -> list[Change]:
        """Returns changes as the store gives them now."""
        changes = self.log[after - self.began :][:most]
        return [replace(c, place=self.truth.get(c.turn_number)) if isinstance(c, Put) else c for c in changes]

    def documents(self) -> list[Document]:
        """Returns the documents of all turns that are there."""
        return [DOCUMENTS.of(place) for place in self.truth.values()]

    def _join(self, before: int) -> None:
        """Looks up which calls all results answer, and puts the turns for which that has changed, if the step did not put them."""
        answers = plain_answers([place.turn for place in self.truth.values()])
        put = {change.turn_number for change in self.log[before:] if isinstance(change, Put)}
        for number, place in self.truth.items():
            now = replace(place, answers=answers[number])
            if now != place:
                self.truth[number] = now
                if number not in put:
                    self.log.append(Put(self.head + 1, number, 0, now))
        joined = (
            replace(change, place=self.truth[change.turn_number]) if isinstance(change, Put) else change
            for change in self.log[before:]
        )
        self.log[before:] = list(joined)

    def _at(self, place: int) -> TurnInPlace:
        return list(self.truth.values())[place % len(self.truth)]

    def _put(self, place: TurnInPlace, replaces: int) -> None:
        self.truth[place.turn.number] = place
        self.log.append(Put(self.head + 1, place.turn.number, replaces, place))

    def _conversation(self, number: int) -> StoredConversation:
        source = Source(project=PROJECTS[number])
        return StoredConversation(self.began * 3 + number + 1, number + 1, f"c{number}", "", source, 1, 0, 0, 0, 0)

    def _place(self, say: Say, number: int) -> TurnInPlace:
        conversation = self._conversation(say.conversation)
        team = TEAMS[say.conversation]
        scope = {"world": self.name} | ({"team": team} if team else {})
        agent = StoredAgent(conversation.agent_pk, f"agent-{say.conversation}", "", "", False, scope, None, "")
        self.said += 1
        turn = StoredTurn(number, conversation.pk, str(number), self.said, say.role, say.parts, say.at, 0, say.length, b"")
        return TurnInPlace(turn, conversation, agent)


def batch_of(changes: Sequence[Change]) -> Batch:
    """Returns what the follower makes of changes."""
    left = lasting(changes)
    return Batch(left.position, (DOCUMENTS.of(place) for _, place in left.puts), left.forget, left.forget_conversations)


def brought(changes: Sequence[Change]) -> Brought:
    """Returns what a writer makes of its changes."""
    return brought_by(changes, DOCUMENTS, {})


# -- what is asked


@dataclass(frozen=True)
class Asked:
    """A query, how it counts, what is looked at of a world, and how long a page is."""

    query: str
    as_typed: bool
    agents: frozenset[int] | None
    conversations: frozenset[int] | None
    roles: frozenset[str]
    project: str
    team: str
    since: int | None
    until: int | None
    limit: int
    own_searches: bool = False
    kinds: Kind = NO_KIND
    except_roles: frozenset[str] = frozenset()
    letters: str = "a"

    def question(self) -> Question | None:
        """Returns the question, None for a query that is refused: of nothing but exclusions and signs."""
        try:
            return Question(parse(self.query, ENGLISH), self.as_typed)
        except InvalidArgument:
            return None

    def reach(self, world: World) -> Reach:
        """Returns what is looked at."""
        scope = {"world": world.name} | ({"team": self.team} if self.team else {})
        conversations = self.conversations
        pks = None if conversations is None else frozenset(world.began * 3 + number + 1 for number in conversations)
        narrowed = (self.roles, self.project, self.since, self.until)
        return Reach(scope, self.agents, pks, *narrowed, self.own_searches, kinds=self.kinds, except_roles=self.except_roles)


T = TypeVar("T")


def _mostly(usual: T, other: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    return st.integers(0, 5).flatmap(lambda dice: other if dice == 5 else st.just(usual))


def _asking(words: Sequence[str], said: Sequence[str]) -> st.SearchStrategy[Asked]:
    word = st.sampled_from(words)
    several = st.lists(word, min_size=2, max_size=4).map(" ".join)
    return st.builds(
        Asked,
        st.one_of(word, word, several),
        st.sampled_from([False, False, True]),
        _mostly(None, st.frozensets(st.integers(1, 4), max_size=3)),
        _mostly(None, st.frozensets(st.integers(0, 2), max_size=2)),
        _mostly(frozenset(), st.frozensets(st.sampled_from([*ROLES, "none"]), max_size=2)),
        _mostly("", st.sampled_from([*PROJECTS, "/other"])),
        _mostly("", st.sampled_from([*TEAMS, "c"])),
        _mostly(None, st.sampled_from(TIMES)),
        _mostly(None, st.sampled_from(TIMES)),
        st.sampled_from([1, 2, 3, 7, 100]),
        st.booleans(),
        st.one_of(st.just(NO_KIND), st.sampled_from(Kind), st.integers(1, 63).map(Kind)),
        _mostly(frozenset(), st.frozensets(st.sampled_from(ROLES), max_size=2)),
        _letters(said),
    )


def _letters(said: Sequence[str]) -> st.SearchStrategy[str]:
    """A piece of what may be said in a turn, long or short."""
    word, between = st.sampled_from(said), st.sampled_from([" ", " ", "\n", ""])
    texts = st.tuples(word, between, word).map("".join)
    return st.builds(
        lambda text, start, size: fold_letters(text[start:][:size] or text), texts, st.integers(0, 6), st.integers(1, 12)
    )


def _of_themes(themes: list[tuple[list[str], list[str]]]) -> st.SearchStrategy[tuple[list[Step], list[Asked]]]:
    said = [word for words, _ in themes for word in words]
    asked = [word for _, words in themes for word in words]
    return st.tuples(_steps(said), st.lists(_asking(asked, said), min_size=10, max_size=20))


# Steps, and what is then asked.
STORIES = st.lists(st.sampled_from(THEMES), min_size=1, max_size=2).flatmap(_of_themes)


def single_words() -> Iterator[Asked]:
    """Yields everything that is asked for, alone, of all turns."""
    for _, asked in THEMES:
        for query in asked:
            for as_typed in (False, True):
                yield Asked(query, as_typed, None, None, frozenset(), "", "", None, None, 100)


EVERY_THEME = _steps([word for said, _ in THEMES for word in said])
