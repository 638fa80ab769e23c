"""The searches that are measured, drawn from the corpus itself, each written for both sides.

Kinds go by how many turns say the words, counted in the first turns of the corpus, so that a size of corpus changes how much there
is to do and not what is asked. Only plain ASCII words are asked for: both sides see the same word there, and nearly the same stem.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from random import Random

from bench import fts5
from bench.corpus import PLANTED_PHRASE, PLANTED_WORDS, Corpus, CorpusTurn, agent_name
from bench.vocabulary import FUNCTION

SAMPLE = 4_000
# Shares of the sampled turns that say a word.
COMMON = (0.2, 1.0)
MIDDLE = (0.005, 0.05)
ORDINARY = (0.005, 0.2)
# The biggest agents, whose turns are not searched alone.
BIGGEST_AGENTS = frozenset(map(agent_name, range(20)))
PLAIN = re.compile("[A-Za-z][a-z]{2,}")
QUESTION_WORDS = ("how", "did", "the", "which", "when", "was", "where")


class Kind(Enum):
    """A kind of search, in the order of the report."""

    MIDDLE_WORD = "middle word"
    COMMON_WORD = "common word"
    THREE_WORDS = "three words"
    PHRASE = "phrase"
    ONE_AGENT = "common word, one agent of 1,000"
    RARE_WORD = "rare word (looks for near ones too)"
    QUESTION = "question (any of its words)"
    NEWEST_MIDDLE = "middle word, newest first"
    NEWEST_COMMON = "common word, newest first"


@dataclass(frozen=True, slots=True)
class BenchQuery:
    """One search: our syntax, FTS5's, the agent that searches its own turns, if it is one, and whether the newest come first."""

    kind: Kind
    text: str
    expression: str
    agent_id: str = ""
    newest: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """A search of which it is known how many turns match, for checking both sides before anything is timed."""

    text: str
    expression: str
    turns: int


def known(turns: int) -> list[Known]:
    """Lists the planted words and the planted phrase with how often they stand in the first `turns` turns."""
    words = [Known(plant.text, fts5.all_words([plant.text]), plant.turns(turns)) for plant in PLANTED_WORDS]
    quoted = fts5.phrase(PLANTED_PHRASE.text.split())
    return [*words, Known(f'"{PLANTED_PHRASE.text}"', quoted, PLANTED_PHRASE.turns(turns))]


def queries(corpus: Corpus, each: int, sample: int = SAMPLE) -> list[BenchQuery]:
    """Draws `each` searches of every kind from the first `sample` turns: the same ones for every corpus that is no smaller."""
    beginning = Corpus(corpus.seed, min(sample, corpus.turns), corpus.agents)
    draw = Draw(Random(f"queries/{corpus.seed}"), list(beginning))
    makers: dict[Kind, Callable[[], BenchQuery]] = {
        Kind.MIDDLE_WORD: draw.middle_word,
        Kind.COMMON_WORD: draw.common_word,
        Kind.THREE_WORDS: draw.three_words,
        Kind.PHRASE: draw.phrase,
        Kind.ONE_AGENT: draw.one_agent,
        Kind.RARE_WORD: draw.rare_word,
        Kind.QUESTION: draw.question,
        Kind.NEWEST_MIDDLE: draw.newest_middle,
        Kind.NEWEST_COMMON: draw.newest_common,
    }
    return [makers[kind]() for kind in Kind for _ in range(each)]


class Draw:
    """Draws searches from a sample of turns."""

    def __init__(self, random: Random, sample: Sequence[CorpusTurn]) -> None:
        self._random = random
        self._sample = sample
        self._texts = [turn.text for turn in sample]
        self._turns_of = Counter(word for text in self._texts for word in set(plain_words(text)))

    def share(self, word: str) -> float:
        """Says in which share of the sampled turns a word stands."""
        return self._turns_of[word] / len(self._texts)

    def middle_word(self) -> BenchQuery:
        """One word that a turn in fifty says or so."""
        word = self._random.choice(self._between(MIDDLE))
        return BenchQuery(Kind.MIDDLE_WORD, word, fts5.all_words([word]))

    def common_word(self) -> BenchQuery:
        """One word that a turn in five says, or many more."""
        word = self._random.choice(self._between(COMMON))
        return BenchQuery(Kind.COMMON_WORD, word, fts5.all_words([word]))

    def three_words(self) -> BenchQuery:
        """Three words of one turn, none of them rare, none a function word."""
        words = self._random.sample(self._turn_with(3), 3)
        return BenchQuery(Kind.THREE_WORDS, " ".join(words), fts5.all_words(words))

    def phrase(self) -> BenchQuery:
        """Two or three words that stand side by side in some turn, none of them rare."""
        length = self._random.choice((2, 3))
        while True:
            stretches = plain_stretches(self._random.choice(self._texts))
            runs = [words[at : at + length] for words in stretches for at in range(len(words) - length + 1)]
            usual = [run for run in runs if len(set(run)) == length and all(self.share(word) >= ORDINARY[0] for word in run)]
            if usual:
                run = self._random.choice(usual)
                return BenchQuery(Kind.PHRASE, f'"{" ".join(run)}"', fts5.phrase(run))

    def one_agent(self) -> BenchQuery:
        """A common word, searched by one agent in its own turns."""
        common = set(self._between(COMMON))
        while True:
            turn = self._random.choice(self._sample)
            said = sorted(common & set(plain_words(turn.text)))
            if said and turn.agent_id not in BIGGEST_AGENTS:
                word = self._random.choice(said)
                expression = fts5.of_agent(fts5.all_words([word]), turn.agent_id)
                return BenchQuery(Kind.ONE_AGENT, word, expression, turn.agent_id)

    def rare_word(self) -> BenchQuery:
        """One word that a single sampled turn says."""
        word = self._random.choice(self._between((1 / len(self._texts), 1.5 / len(self._texts))))
        return BenchQuery(Kind.RARE_WORD, word, fts5.all_words([word]))

    def question(self) -> BenchQuery:
        """Four words of one turn and question words around them, which FTS5 is not asked for."""
        words = self._random.sample(self._turn_with(4), 4)
        asked = self._random.sample(QUESTION_WORDS, 3)
        text = f"{asked[0]} {asked[1]} {words[0]} {words[1]} {asked[2]} {words[2]} {words[3]}?"
        return BenchQuery(Kind.QUESTION, text, fts5.any_word(words))

    def newest_middle(self) -> BenchQuery:
        """A middle word by time."""
        return replace(self.middle_word(), kind=Kind.NEWEST_MIDDLE, newest=True)

    def newest_common(self) -> BenchQuery:
        """A common word by time."""
        return replace(self.common_word(), kind=Kind.NEWEST_COMMON, newest=True)

    def _between(self, shares: tuple[float, float]) -> list[str]:
        # Sorted: the order of a Counter is that of sets of str, which changes from process to process.
        return sorted(word for word in self._turns_of if shares[0] <= self.share(word) <= shares[1])

    def _turn_with(self, words: int) -> list[str]:
        """Draws a turn and gives its ordinary words, at least so many."""
        while True:
            said = sorted(set(plain_words(self._random.choice(self._texts))) - set(FUNCTION))
            ordinary = [word for word in said if ORDINARY[0] <= self.share(word) <= ORDINARY[1]]
            if len(ordinary) >= words:
                return ordinary


def plain_words(text: str) -> list[str]:
    """Gives the words of a text in order that are nothing but three letters and more, so no part of an identifier or a path."""
    return [word for stretch in plain_stretches(text) for word in stretch]


def plain_stretches(text: str) -> list[list[str]]:
    """Gives the same words in stretches with nothing else between them."""
    tokens = (token.rstrip(".,?:") for token in text.split())
    stretches = groupby(tokens, key=lambda token: bool(PLAIN.fullmatch(token)))
    return [[token.lower() for token in stretch] for plain, stretch in stretches if plain]
