"""The vocabulary: in which distinct words the letters of a term stand. Kept in a small tantivy index of trigrams.

That letters begin, end or stand inside a word is a property of the pair (word, term), so it is looked up among the words and not
among the turns. Words come in before the turns that say them: a surplus word is harmless, a missing one loses hits. A word may
stand here twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tantivy import Document, Index, Occur, Query, SchemaBuilder, Searcher, TextAnalyzerBuilder, Tokenizer

LONGEST_WORD = 16_000
"""Code points; with a CUT on each side they are less than the 65,530 bytes that tantivy takes of a word. A longer one is kept in
overlapping pieces, each marked with CUT where it was cut; no query holds so long a word.
"""
_OVERLAP = 4_096
CUT = "\x01"
_HEAP = 15_000_000
_MOST_WORDS = 5_000_000


def pieces_of(word: str) -> Iterator[str]:
    """Yields the pieces of a word longer than LONGEST_WORD, which begin and end as it does where it begins and ends."""
    step = LONGEST_WORD - _OVERLAP
    last = max(0, len(word) - _OVERLAP - 1) // step
    for at in range(last + 1):
        piece = word[at * step : at * step + LONGEST_WORD]
        yield (CUT if at else "") + piece + (CUT if at < last else "")


@dataclass(frozen=True, slots=True)
class Holders:
    """The words that hold a term: those that begin with it, end with it, hold it inside. Disjoint."""

    begins: tuple[str, ...]
    ends: tuple[str, ...]
    inside: tuple[str, ...]


class Vocabulary:
    """All distinct folded words, three code points and more; in memory without a folder."""

    def __init__(self, folder: Path | None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        builder = SchemaBuilder()
        builder.add_text_field("word", stored=True, tokenizer_name="trigrams", index_option="basic")
        self._schema = builder.build()
        self._index = Index(self._schema, path=None if folder is None else str(folder))
        self._index.register_tokenizer("trigrams", TextAnalyzerBuilder(Tokenizer.ngram(3, 3, False)).build())
        self._writer = self._index.writer(_HEAP, 1)
        self._searcher: Searcher = self._index.searcher()
        self._lock = threading.Lock()
        self._holders = lru_cache(256)(self._look_up)

    def add(self, words: Iterable[str]) -> None:
        """Adds words and commits them."""
        for word in words:
            document = Document()
            document.add_text("word", word)
            self._writer.add_document(document)
        self._writer.commit()
        self._index.reload()
        with self._lock:
            self._searcher = self._index.searcher()
            self._holders = lru_cache(256)(self._look_up)

    @property
    def size(self) -> int:
        """How many words and pieces of words are held."""
        return int(self._searcher.num_docs)

    def holders(self, term: str) -> Holders:
        """Returns the words that hold a term of three code points and more."""
        with self._lock:
            look_up = self._holders
        return look_up(term)

    def _look_up(self, term: str) -> Holders:
        searcher = self._searcher
        grams = dict.fromkeys(term[at : at + 3] for at in range(len(term) - 2))
        query = Query.boolean_query([(Occur.Must, Query.term_query(self._schema, "word", gram, "basic")) for gram in grams])
        begins: set[str] = set()
        ends: set[str] = set()
        inside: set[str] = set()
        hits = searcher.search(Query.const_score_query(query, 0.0), limit=_MOST_WORDS, count=False).hits
        for _, address in hits:
            word = str(searcher.doc(address).get_first("word"))
            if word.startswith(term):
                begins.add(word)
            elif word.endswith(term):
                ends.add(word)
            elif term in word:
                inside.add(word)
        return Holders(tuple(begins), tuple(ends), tuple(inside))

    def release(self) -> None:
        """Lets go of the lock at once; look-ups go on."""
        del self._writer

    def close(self) -> None:
        """Waits for merges and lets go of the lock."""
        self._writer.wait_merging_threads()
