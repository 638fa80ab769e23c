"""The searches letter by letter that are measured, drawn from the corpus itself: words and parts of them, what stands between
words, scripts without spaces, two letters, and letters that stand nowhere.

Nothing is asked for that stands across a line's end, or holds a backslash: the files of `grep.py` hold these otherwise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

from bench.corpus import PLANTED_WORDS, SCATTERED_PHRASE, Corpus
from bench.queries import COMMON, MIDDLE, SAMPLE, plain_words

SEPARATED = re.compile(r"(?<![\w/.-])[\w./-]*[./_-][\w./-]*(?![\w/.-])")
SPACELESS = re.compile("[\u3040-\u30ff\u4e00-\u9fff]{2,}")


class Kind(Enum):
    """A kind of search, in the order of the report."""

    COMMON_WORD = "common word"
    MIDDLE_WORD = "middle word"
    RARE_WORD = "rare word"
    PART = "part of a word"
    SEPARATED = "part of a path or an identifier"
    ACROSS = "across two words"
    SENTENCE = "40 letters of a turn"
    SPACELESS = "two characters of Han or Kana"
    TWO_LETTERS = "two letters"
    MISSING = "letters that stand nowhere"


@dataclass(frozen=True, slots=True)
class LettersQuery:
    """One search: the letters, and what kind of search it is."""

    kind: Kind
    text: str

    @property
    def finds(self) -> bool:
        """Whether it finds anything."""
        return self.kind is not Kind.MISSING


def known(turns: int) -> list[tuple[str, int]]:
    """Lists letters with how many of the first `turns` turns hold them: the planted words, and parts of them in another case."""
    words = [(plant.text, plant.turns(turns)) for plant in PLANTED_WORDS]
    parts = [(plant.text[2:-2].upper(), plant.turns(turns)) for plant in PLANTED_WORDS]
    scattered = SCATTERED_PHRASE.text[3:-3]
    return [*words, *parts, (scattered, SCATTERED_PHRASE.turns(turns))]


def queries(corpus: Corpus, each: int, sample: int = SAMPLE) -> list[LettersQuery]:
    """Draws `each` searches of every kind from the first `sample` turns: the same ones for every corpus that is no smaller."""
    beginning = Corpus(corpus.seed, min(sample, corpus.turns), corpus.agents)
    draw = Draw(Random(f"letters/{corpus.seed}"), [turn.text for turn in beginning])
    makers: dict[Kind, Callable[[], str]] = {
        Kind.COMMON_WORD: lambda: draw.word(COMMON),
        Kind.MIDDLE_WORD: lambda: draw.word(MIDDLE),
        Kind.RARE_WORD: draw.rare_word,
        Kind.PART: draw.part,
        Kind.SEPARATED: draw.separated,
        Kind.ACROSS: draw.across,
        Kind.SENTENCE: draw.sentence,
        Kind.SPACELESS: draw.spaceless,
        Kind.TWO_LETTERS: draw.two_letters,
        Kind.MISSING: draw.missing,
    }
    return [LettersQuery(kind, makers[kind]()) for kind in Kind for _ in range(each)]


class Draw:
    """Draws letters from texts."""

    def __init__(self, random: Random, texts: Sequence[str]) -> None:
        self._random = random
        self._texts = texts
        self._turns_of = Counter(word for text in texts for word in set(plain_words(text)))

    def word(self, shares: tuple[float, float]) -> str:
        """A word that so large a share of the turns says."""
        return self._random.choice(self._between(shares))

    def rare_word(self) -> str:
        """A word that a single turn says."""
        return self.word((1 / len(self._texts), 1.5 / len(self._texts)))

    def part(self) -> str:
        """Three to six letters out of the middle of a word that is neither rare nor common."""
        long_ones = [word for word in self._between(MIDDLE) if len(word) > 7]
        word, size = self._random.choice(long_ones), self._random.randrange(3, 7)
        begin = self._random.randrange(1, len(word) - size)
        return word[begin : begin + size]

    def separated(self) -> str:
        """Letters of a path, a number or an identifier, with a sign among them."""
        found = [match[0] for match in SEPARATED.finditer(self._random.choice(self._texts)) if len(match[0]) > 7]
        if not found:
            return self.separated()
        part = self._random.choice(found)
        sign = self._random.choice([at for at, char in enumerate(part) if not char.isalnum()])
        begin = max(0, sign - 4)
        return part[begin : begin + 8]

    def across(self) -> str:
        """The end of one word, a blank and the beginning of the next."""
        return self._cut(lambda line: re.search(r"[a-z]{3} [a-z]{3}", line[self._random.randrange(len(line)) :]))

    def sentence(self) -> str:
        """Forty letters from anywhere."""
        return self._cut(lambda line: re.search(r"\S.{38}\S", line[self._random.randrange(len(line)) :]))

    def spaceless(self) -> str:
        """Two characters that stand side by side."""
        return self._cut(SPACELESS.search)[:2]

    def two_letters(self) -> str:
        """Two letters of a common word."""
        return self.word(COMMON)[:2]

    def missing(self) -> str:
        """Letters that no text can be expected to hold."""
        return "".join(self._random.choices("qxzjvk", k=self._random.randrange(8, 14)))

    def _cut(self, wanted: Callable[[str], re.Match[str] | None]) -> str:
        while True:
            line = self._random.choice(self._random.choice(self._texts).splitlines() or [""])
            if line and "\\" not in line and (found := wanted(line)):
                return str(found[0])

    def _between(self, shares: tuple[float, float]) -> list[str]:
        # Sorted: the order of a Counter is that of sets of str, which changes from process to process.
        return sorted(word for word, turns in self._turns_of.items() if shares[0] <= turns / len(self._texts) <= shares[1])
