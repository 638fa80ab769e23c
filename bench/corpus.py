"""Makes turns that look like the transcripts of agents, as many as asked for, the same ones for the same seed.

What is imitated is what costs an index something, with the figures of the archive that the design was measured on: word
frequencies after Zipf with inflected forms, identifiers, paths, uuids and hashes (three to four new hexadecimal words a turn), turn
lengths after a log-normal law (median 388 bytes, mean about 1,150, one turn in a hundred over 12 kB), 7 turns in 100 that are not
ASCII, agents whose sizes follow Zipf too, and planted words that are known to stand in exactly so many turns. The text makes no
sense: nothing about relevance can be measured on it.

Turns come as a stream: a corpus of 100,000 turns is the beginning of the one of 1,000,000 of the same seed, and neither is ever
held in memory. Every conversation is drawn by a generator of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, count, islice
from random import Random

from bench.vocabulary import ACCENTED, SPACELESS, TECHNICAL, Vocabulary, vocabulary

# Raised with every change of what a seed gives: results of different versions are not comparable.
CORPUS_VERSION = 1

MEDIAN_BYTES = 388
# The mean over the median is exp(sigma ** 2 / 2): 1.5 gives a mean of 1,195 bytes and a 99th percentile of 12.7 kB.
SIGMA = 1.5
SHORTEST_BYTES = 12
LONGEST_BYTES = 438_000

AGENTS = 1_000
# Of the turns: written with words that are not ASCII. Some lose them where the text is cut; 7 in 100 are left.
FOREIGN_SHARE = 0.085
# Of the words of a turn: those that are no plain words.
SPECIAL_SHARE = 0.06
# 2026-01-01 UTC; each conversation begins ten minutes after the one before.
FIRST_TIME = 1_767_225_600_000_000
BETWEEN_CONVERSATIONS = 600_000_000

ROLES = ("user", "assistant", "tool")
ROLE_WEIGHTS = (20, 65, 100)


@dataclass(frozen=True, slots=True)
class CorpusTurn:
    """One turn of the corpus, numbered from 0. `created_at` is in microseconds since 1970."""

    number: int
    agent_id: str
    conversation_id: str
    turn_id: str
    role: str
    text: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Plant:
    """A text that stands in every turn whose number leaves `rest` when divided by `every`, and in no other."""

    text: str
    every: int
    rest: int

    def stands_in(self, number: int) -> bool:
        """Says whether the turn of that number holds it."""
        return number % self.every == self.rest

    def turns(self, turns: int) -> int:
        """Says how many of the first `turns` turns hold it."""
        return max(0, -(-(turns - self.rest) // self.every))


PLANTED_WORDS = (
    Plant("xylophyte", 10, 3),
    Plant("quokkaport", 100, 14),
    Plant("zibberwock", 1_000, 159),
    Plant("vexillarium", 10_000, 2_653),
)
PLANTED_PHRASE = Plant("ormolu jackdaw viaduct", 997, 58)
# The words of the phrase in another order: found by the words, not by the phrase.
SCATTERED_PHRASE = Plant("viaduct and jackdaw or ormolu", 499, 97)


@dataclass(frozen=True)
class Corpus:
    """The turns of one seed. `turns` cuts the stream; what comes before the cut is the same wherever it is."""

    seed: int
    turns: int
    agents: int = AGENTS

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of this seed, made when first needed (a third of a second)."""
        return vocabulary(Random(f"vocabulary/{self.seed}"))

    @cached_property
    def agent_weights(self) -> list[float]:
        """How many conversations each agent has, beside the others, summed up to each."""
        return list(accumulate(1 / rank for rank in range(1, self.agents + 1)))

    def agent_of(self, random: Random) -> str:
        """Draws whose conversation the next one is."""
        return agent_name(random.choices(range(self.agents), cum_weights=self.agent_weights)[0])

    def __iter__(self) -> Iterator[CorpusTurn]:
        return islice(self._endless(), self.turns)

    def _endless(self) -> Iterator[CorpusTurn]:
        numbers = count()
        for conversation in count():
            random = Random(f"conversation/{self.seed}/{conversation}")
            writer = Writer(random, self.vocabulary)
            agent_id = self.agent_of(random)
            conversation_id = f"conversation-{conversation:07d}"
            now = FIRST_TIME + conversation * BETWEEN_CONVERSATIONS
            for seq in range(min(400, 1 + int(random.lognormvariate(3.2, 0.8)))):
                number = next(numbers)
                role = random.choices(ROLES, cum_weights=ROLE_WEIGHTS)[0] if seq else "user"
                text = planted(writer.text(role, turn_length(random)), number, random)
                now += random.randrange(1_000_000, 20_000_000)
                yield CorpusTurn(number, agent_id, conversation_id, f"{conversation_id}/{seq}", role, text, now)


def agent_name(rank: int) -> str:
    """Names the agent of that rank; the one of rank 0 has the most turns."""
    return f"agent-{rank:04d}"


def turn_length(random: Random) -> int:
    """Draws the length of a turn in bytes."""
    return min(LONGEST_BYTES, max(SHORTEST_BYTES, int(MEDIAN_BYTES * random.lognormvariate(0, SIGMA))))


def planted(text: str, number: int, random: Random) -> str:
    """Puts what the turn of that number must hold at a blank of its text."""
    for plant in (*PLANTED_WORDS, PLANTED_PHRASE, SCATTERED_PHRASE):
        if plant.stands_in(number):
            at = text.find(" ", random.randrange(len(text)))
            at = len(text) if at < 0 else at
            text = f"{text[:at]} {plant.text}{text[at:]}"
    return text


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the texts of turns, drawing from one generator."""

    random: Random
    vocabulary: Vocabulary

    def text(self, role: str, length: int) -> str:
        """Writes a text of about `length` bytes: never more, and cut at a blank or a line's end."""
        foreign = self.random.random() < FOREIGN_SHARE
        pieces: list[str] = []
        size = 0
        while size < length:
            # A word takes 7 bytes on average with its blank; what is missing after the first round comes in the next.
            piece = self.shaped(role, self.words(max(4, (length - size) // 7), foreign))
            pieces.append(piece)
            size += len(piece.encode()) + 1
        return cut("\n".join(pieces), length)

    def words(self, number: int, foreign: bool) -> list[str]:
        """Draws words, some of them replaced by identifiers, paths, hashes and the like."""
        words = self.vocabulary.words.draw(self.random, number)
        expected = number * SPECIAL_SHARE
        for _ in range(int(expected) + (self.random.random() < expected % 1)):
            words[self.random.randrange(number)] = self.special()
        if foreign:
            words[self.random.randrange(min(number, 20))] = self.foreign()
        return words

    def special(self) -> str:
        """Draws something that is no plain word."""
        random = self.random
        match random.choices(range(8), cum_weights=(38, 50, 62, 80, 90, 93, 96, 100))[0]:
            case 0:
                return self.vocabulary.identifiers.draw(random, 1)[0]
            case 1:
                return self.vocabulary.paths.draw(random, 1)[0]
            case 2:
                return str(random.randrange(10 ** random.randrange(1, 6)))
            case 3:
                return f"{random.getrandbits(160):040x}"[: random.choice((7, 12, 40))]
            case 4:
                return uuid(random)
            case 5:
                return f"{random.randrange(4)}.{random.randrange(20)}.{random.randrange(30)}"
            case 6:
                return f"#{random.randrange(1, 5000)}"
            case _:
                return f"--{random.choice(TECHNICAL)}={random.randrange(100)}"

    def foreign(self) -> str:
        """Draws a word with accents or of another alphabet, or a run of a script without spaces."""
        if self.random.random() < 0.7:
            return self.random.choice(ACCENTED)
        return "".join(self.random.choices(self.random.choice(SPACELESS), k=self.random.randrange(2, 9)))

    def shaped(self, role: str, words: list[str]) -> str:
        """Lays words out as prose, code or a log, as that role would write."""
        if role == "tool":
            return self.log(words) if self.random.random() < 0.6 else self.code(words)
        if role == "assistant" and self.random.random() < 0.2:
            return self.code(words)
        return self.prose(words)

    def prose(self, words: list[str]) -> str:
        """Lays words out as sentences."""
        sentences = (" ".join(sentence) + self.random.choice("...,?:") for sentence in slices(words, self.random, 4, 19))
        return " ".join(sentence[:1].upper() + sentence[1:] for sentence in sentences)

    def code(self, words: list[str]) -> str:
        """Lays words out as assignments of calls."""
        lines = []
        for line in slices(words, self.random, 2, 8):
            name = self.vocabulary.identifiers.draw(self.random, 1)[0]
            lines.append(f"{'    ' * self.random.randrange(3)}{name} = {line[0]}({', '.join(line[1:])})")
        return "\n".join(lines)

    def log(self, words: list[str]) -> str:
        """Lays words out as lines of a log."""
        lines = []
        for line in slices(words, self.random, 5, 15):
            second = self.random.randrange(86_400)
            time = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
            lines.append(f"{time} {self.random.choice(('INFO', 'DEBUG', 'WARN', 'ERROR'))} {' '.join(line)}")
        return "\n".join(lines)


def slices(words: list[str], random: Random, least: int, most: int) -> Iterator[list[str]]:
    """Cuts words into runs of `least` to `most` - 1 words; the last may be shorter."""
    at = 0
    while at < len(words):
        size = random.randrange(least, most)
        yield words[at : at + size]
        at += size


def cut(text: str, length: int) -> str:
    """Cuts a text to `length` bytes or fewer, at the last blank or line's end if there is one."""
    kept = text.encode()[:length].decode(errors="ignore")
    if len(kept) == len(text):
        return text
    at = max(kept.rfind(" "), kept.rfind("\n"), 0)
    return kept[:at].rstrip() or kept.strip()


def uuid(random: Random) -> str:
    """Draws a random uuid."""
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
