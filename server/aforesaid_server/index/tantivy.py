"""The tantivy engine: turns as words joined by blanks, queries as Query objects. index.md of the design tells why each field is
there.

User text never reaches tantivy's own parser or tokenizers. Nothing is stored: a search ordered by `key` returns the key, which
holds the turn's number. A damaged or foreign index raises `Damaged` on opening; whoever owns the folder then builds a new one
beside.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

import tantivy
from tantivy import FieldType, Occur, Order, Query, SchemaBuilder, Searcher, TextAnalyzerBuilder, Tokenizer

from aforesaid_server.index import (
    BEST_STEP,
    BEST_TIER,
    MOST_PARTIAL,
    SHORTEST_LETTERS,
    Batch,
    Candidate,
    Document,
    Found,
    Lists,
    Reach,
    Weighed,
    number_of,
)
from aforesaid_server.index.vocabulary import CUT, LONGEST_WORD, Vocabulary, pieces_of
from aforesaid_server.query.ast import Clause, Optional
from aforesaid_server.query.ast import Query as WordQuery
from aforesaid_server.query.judge import Question
from aforesaid_server.text.transcript import SAYING, Kind
from aforesaid_server.text.words import SHORTEST_PART, TurnWords

SCHEMA = "tantivy-3"
_HEAP = 50_000_000
_PLACEHOLDER = CUT
"""Stands for a word that is too long for the dictionary, so that phrases around it still hold, and for a GAP."""
_MOST_LETTERS = 8
"""Of what is looked for, the rarest so many: more of them leave hardly fewer turns to read."""
_TELLING = re.compile(r"[^\s\x00-\u0dff]+")
"""Letters of scripts of which one or two are a word, and signs as rare: those from Thai on, blanks aside."""
_MOST_BEYOND_ASCII = 2_000_000
"""Bytes that the letters of a turn may have more than it has letters: past that they are not known, and it is read each time. Of
so many scripts each three letters may be new ones: 11 million Han characters at random took 80 s and 2.4 GB.
"""
_HEAD, _UNKNOWN = "head", "unknown"
"""What `marker` holds: of the one document that tells how far the index has come; of a turn whose letters are not known."""
_FEW = 24
"""Words up to which asking for each costs less than a set (0.2 ms a set, before its words)."""
_MOST_TURNS = 5_000_000
"""More than a conversation has: the list of hits grows with what is found, not with this."""
_FEW_NUMBERS = 80
"""The same of numbers: 21 of them, a page, cost 0.08 ms, as a set 0.3 ms."""


class Damaged(Exception):
    """The folder holds no usable index."""


def _schema() -> tantivy.Schema:
    builder = SchemaBuilder()
    builder.add_text_field("exact", tokenizer_name="words", index_option="position")
    builder.add_text_field("stem", tokenizer_name="words", index_option="position")
    for name in ("symbols", "parts", "pieces", "asked", "few_letters"):
        builder.add_text_field(name, tokenizer_name="words", index_option="basic")
    builder.add_text_field("letters", tokenizer_name="letters", index_option="basic")
    for name in ("scope", "role", "project", "marker"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("key", indexed=True, fast=True)
    for name in ("agent", "kind", "hidden"):  # never unsigned: deleting by term on such a field deletes nothing
        builder.add_integer_field(name, indexed=True)
    for name in ("conversation", "number", "ts"):
        builder.add_integer_field(name, indexed=True, fast=True)
    builder.add_integer_field("head", stored=True)
    return builder.build()


def _pair(key: str, value: str) -> str:
    return json.dumps([key, value], ensure_ascii=False)


def _short(words: Sequence[str]) -> str:
    """Joins words, each too long one replaced, and each GAP."""
    joined = " ".join(words)
    if "  " in joined or (len(joined) > LONGEST_WORD and max(map(len, words)) > LONGEST_WORD):
        joined = " ".join(word if 0 < len(word) <= LONGEST_WORD else _PLACEHOLDER for word in words)
    return joined


class _Mode(IntEnum):
    """How turns are looked at. A turn may be several documents, of which each mode shows one at most: the others bear its number in
    their field `hidden`, so that a search has one exclusion more at most.
    """

    WHOLE = 1
    WITHOUT_OWN = 2
    OF_KINDS = 3
    OF_KINDS_WITHOUT_OWN = 4

    @classmethod
    def of(cls, reach: Reach) -> _Mode:
        """Returns the mode of a search."""
        if reach.kinds:
            return cls.OF_KINDS if reach.own_searches else cls.OF_KINDS_WITHOUT_OWN
        return cls.WHOLE if reach.own_searches else cls.WITHOUT_OWN


_WITH_OWN = frozenset({_Mode.WHOLE, _Mode.OF_KINDS})
_WITHOUT_OWN = frozenset({_Mode.WITHOUT_OWN, _Mode.OF_KINDS_WITHOUT_OWN})
_OF_ALL_KINDS = frozenset({_Mode.WHOLE, _Mode.WITHOUT_OWN})


@dataclass(frozen=True, slots=True)
class _Variant:
    """One of the documents of a turn: what it says, in the parts of which of its kinds, and in which modes it is hidden."""

    words: TurnWords
    kinds: Kind
    hidden: frozenset[_Mode] = frozenset()

    @property
    def is_first(self) -> bool:
        """Tells of the one that each turn has: the whole of it."""
        return _Mode.WHOLE not in self.hidden


def _variants(document: Document) -> Iterator[_Variant]:
    """Yields what a turn says as often as it is put, first the whole: mostly that is all.

    Without own searches it may say something else, and in the parts of each choice of its kinds. Where nothing is left, nothing
    finds it.
    """
    kinds, without = document.kinds & SAYING, document.without
    yield _Variant(document.words, kinds, _WITHOUT_OWN if without is not None else frozenset())
    if without is not None and without.exact:
        yield _Variant(without, kinds, _WITH_OWN)
    if document.narrowed is None:
        return
    for some in _choices(kinds):
        words = document.narrowed(some, True)
        left = words if without is None else document.narrowed(some, False)
        if left == words:
            variants = [_Variant(words, some, _OF_ALL_KINDS)]
        else:
            variants = [_Variant(words, some, _OF_ALL_KINDS | _WITHOUT_OWN), _Variant(left, some, _OF_ALL_KINDS | _WITH_OWN)]
        yield from (variant for variant in variants if variant.words.exact)


@lru_cache
def _choices(kinds: Kind) -> tuple[Kind, ...]:
    """Returns all sets of some of several kinds, but neither none nor all."""
    return tuple(Kind(some) for some in range(1, kinds) if some & kinds == some)


@lru_cache
def _asked_by(kinds: Kind, chosen: Kind) -> str:
    """Returns the sets of kinds that a search may ask for which choose these of the kinds of a turn, as numbers: what the field
    `asked` holds. To look up the one that is asked for costs half to a quarter of joining all that it chooses.
    """
    return " ".join(str(asked) for asked in range(1, SAYING + 1) if chosen and asked & kinds == chosen)


def _few_letters(letters: str) -> set[str]:
    """Returns the telling letters of a text, one by one and each with the one that follows it."""
    if letters.isascii():
        return set()
    runs = _TELLING.findall(letters)
    return {run[at : at + size] for run in runs for at in range(len(run)) for size in (1, 2)}


def _hidden_modes(searcher: Searcher) -> frozenset[_Mode]:
    """Returns the modes in which documents are hidden, or were since segments were last merged."""
    return frozenset(mode for mode in _Mode if searcher.doc_freq("hidden", int(mode)) > 0)


class TantivyIndex:
    """The turn index and its vocabulary in one folder, or in memory without one. One thread writes; any may search."""

    def __init__(self, folder: Path | None) -> None:
        """Opens or makes the index. Raises Damaged if what is there cannot be opened."""
        turns, vocabulary = (None, None) if folder is None else (folder / "turns", folder / "vocabulary")
        self._schema = _schema()
        try:
            if turns is not None:
                turns.mkdir(parents=True, exist_ok=True)
            self._index = tantivy.Index(self._schema, path=None if turns is None else str(turns))
            # Tokenizers must be registered after every open, before the writer.
            self._index.register_tokenizer("words", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
            self._index.register_tokenizer(
                "letters", TextAnalyzerBuilder(Tokenizer.ngram(SHORTEST_LETTERS, SHORTEST_LETTERS, False)).build()
            )
            self._writer = self._index.writer(_HEAP, 1)
            self.vocabulary = Vocabulary(vocabulary)
            self._lock = threading.Lock()
            self._searcher: Searcher = self._index.searcher()
            self._hidden_modes = _hidden_modes(self._searcher)
            self._head = self._read_head()
        except (ValueError, OSError, BaseException) as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            raise Damaged(type(error).__name__) from error

    def _read_head(self) -> int:
        query = Query.term_query(self._schema, "marker", _HEAD, "basic")
        hits = self._searcher.search(query, limit=1, count=False).hits
        return int(self._searcher.doc(hits[0][1]).get_first("head") or 0) if hits else 0

    @property
    def head(self) -> int:
        """The number of the last change that is in the index."""
        return self._head

    @property
    def documents(self) -> int:
        """How many turns are held; one of several kinds, or with calls of search tools, is several documents and counts once."""
        with self._lock:
            searcher, hidden = self._searcher, self._hidden_modes
        more = 0
        if _Mode.WHOLE in hidden:
            others = Query.term_query(self._schema, "hidden", int(_Mode.WHOLE), "basic")
            found: Any = searcher.search(others, limit=1, count=True)
            more = found.count or 0
        return max(0, int(searcher.num_docs) - more - 1)

    def lists(self) -> tuple[int, TantivyLists]:
        """Returns the lists of now with the head that they show."""
        with self._lock:
            return self._head, TantivyLists(self._schema, self._searcher, self.vocabulary, self._hidden_modes)

    def apply(self, batch: Batch) -> None:
        """Takes a batch in one commit: the words are committed first, then the turns with the head."""
        try:
            self._take(batch)
        except BaseException:
            self._writer.rollback()
            raise
        self._index.reload()
        searcher = self._index.searcher()
        hidden_modes = _hidden_modes(searcher)
        with self._lock:
            self._searcher, self._hidden_modes = searcher, hidden_modes
            self._head = batch.head

    def _take(self, batch: Batch) -> None:
        for number in batch.forget:
            self._writer.delete_documents_by_term("number", number)
        for conversation in batch.forget_conversations:
            self._writer.delete_documents_by_term("conversation", conversation)
        words: set[str] = set()
        for document in batch.documents:
            if self._searcher.doc_freq("number", document.number):  # 0.3 µs; deleting what is not there costs more
                self._writer.delete_documents_by_term("number", document.number)
            for variant in _variants(document):
                words.update(variant.words.exact)
                self._writer.add_document(self._as_tantivy(document, variant))
        self._writer.delete_documents_by_term("marker", _HEAD)
        marker = tantivy.Document()
        marker.add_text("marker", _HEAD)
        marker.add_integer("head", batch.head)
        self._writer.add_document(marker)
        if new := list(self._new_words(words)):
            self.vocabulary.add(new)
        self._writer.commit()

    def _new_words(self, words: set[str]) -> Iterator[str]:
        """Yields the words that the vocabulary may lack. A word that some turn says came in before that turn (0.3 µs to ask)."""
        for word in words:
            if len(word) > LONGEST_WORD:
                yield from pieces_of(word)
            elif len(word) >= SHORTEST_PART and not self._searcher.doc_freq("exact", word):
                yield word

    def _as_tantivy(self, document: Document, variant: _Variant) -> tantivy.Document:
        made, words = tantivy.Document(), variant.words
        exact = _short(words.exact)
        made.add_text("exact", exact)
        made.add_text("stem", _short(words.stems))
        if words.symbols:
            made.add_text("symbols", " ".join(words.symbols))
        if words.parts:
            made.add_text("parts", " ".join(words.parts))
        if _PLACEHOLDER in exact and (long := {word for word in words.exact if len(word) > LONGEST_WORD}):
            made.add_text("pieces", " ".join(piece for word in long for piece in pieces_of(word)))
        for key, value in document.scope.items():
            made.add_text("scope", _pair(key, value))
        made.add_text("role", document.role)
        made.add_text("project", document.project)
        made.add_integer("key", document.key)
        made.add_integer("number", document.number)
        made.add_integer("agent", document.agent_pk)
        made.add_integer("conversation", document.conversation_pk)
        made.add_integer("ts", document.created_at)
        for mode in variant.hidden:
            made.add_integer("hidden", int(mode))
        made.add_text("asked", _asked_by(document.kinds & SAYING, variant.kinds))
        if variant.is_first:
            for kind in document.kinds:
                made.add_integer("kind", int(kind))
            letters = document.letters
            if letters is None or len(letters.encode()) - len(letters) > _MOST_BEYOND_ASCII:
                made.add_text("marker", _UNKNOWN)
            elif letters:
                made.add_text("letters", letters)
                made.add_text("few_letters", " ".join(_few_letters(letters)))
        return made

    def answers(self) -> bool:
        """Tells whether a search that any sound index answers is answered."""
        try:
            self._index.reload()
            self._index.searcher().search(Query.term_query(self._schema, "marker", _HEAD, "basic"), limit=1)
            self.vocabulary.holders("aforesaid")
        except BaseException as error:  # panics are no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return False
        return True

    def release(self) -> None:
        """Lets go of the locks at once, so that the folder can be opened anew; searches go on."""
        del self._writer
        self.vocabulary.release()

    def close(self) -> None:
        """Waits for merges and lets go of the locks."""
        self._writer.wait_merging_threads()
        self.vocabulary.close()


class TantivyLists(Lists):
    """The lists that one searcher shows."""

    def __init__(self, schema: tantivy.Schema, searcher: Searcher, vocabulary: Vocabulary, hidden_modes: frozenset[_Mode]) -> None:
        self._schema = schema
        self._searcher = searcher
        self._vocabulary = vocabulary
        self._hidden_modes = hidden_modes

    # -- the lists

    def matches(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` matches in order: the tiers are asked for in turn until there are enough."""
        query = question.query
        typed, exactly = self._typed(query), self._exactly(query)
        bars = [*self._barred(question, reach)]
        tiers = {
            3: self._only([exactly, *self._narrow(reach)], bars),
            2: self._only([typed, *self._narrow(reach)], [*bars, exactly]),
        }
        if not question.as_typed:
            tiers[1] = self._only([self._said_all(question), *self._narrow(reach)], [*bars, typed])
        return self._ranked(BEST_TIER, tiers, after, limit)

    def newest(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` matches by time and number, the latest first.

        The engine orders by time alone: turns of one time are asked for by themselves where a page begins or ends among them.
        """
        query = self._only([self._said_all(question), *self._narrow(reach)], [*self._barred(question, reach)])
        found: list[tuple[int, int]] = []
        if after is not None and after.at is not None:
            found = self._of_time(query, after.at, after.number, limit)
        if len(found) < limit:
            found += self._latest(query, after.at if after is not None else None, limit - len(found))
        tiers = self._tiers_of(question, reach, [number_of(key) for _, key in found])
        return [Found(tiers[number_of(key)], key, at) for at, key in found]

    def near(self, question: Question, reach: Reach, after: Found | None, limit: int) -> list[Found]:
        """Returns up to `limit` turns of `near` in order: the steps are asked for in turn until there are enough."""
        at_least = self._near_levels(question)
        if not at_least:
            return []
        bars = [*self._barred(question, reach), self._said_all(question)]
        if after is None:  # mostly there is none, which one search tells
            any_step = self._only([at_least[1], *self._narrow(reach)], bars)
            if not self._searcher.search(any_step, limit=1, count=False, order_by_field="key").hits:
                return []
        steps: dict[int, Query] = {}
        for step in range(BEST_STEP, 0, -1):
            better = [at_least[step + 1]] if step < BEST_STEP else []
            steps[step] = self._only([at_least[step], *self._narrow(reach)], [*bars, *better])
        return self._ranked(BEST_STEP, steps, after, limit)

    def partial(self, question: Question, reach: Reach, *, every_word: bool, near: frozenset[int] | None = None) -> list[Weighed]:
        """Returns the best MOST_PARTIAL turns by tantivy's BM25 over stems; filters and bars do not weigh."""
        bound = [self._said(question, clause) for clause in question.bound]
        counted = [self._said(question, optional) for optional in question.counted(every_word=every_word)]
        clauses = [(Occur.Must, query) for query in bound]
        if counted and bound:
            clauses += [(Occur.Should, query) for query in counted]
        elif counted:
            clauses.append((Occur.Must, Query.boolean_query([(Occur.Should, query) for query in counted])))
        clauses += [(Occur.Must, Query.const_score_query(query, 0.0)) for query in self._narrow(reach)]
        bars = [*self._barred(question, reach)]
        if not every_word:
            bars.append(self._said_all(question))
            if near is None and (levels := self._near_levels(question)):
                bars.append(levels[1])
        clauses += [(Occur.MustNot, query) for query in bars]
        hits = self._searcher.search(Query.boolean_query(clauses), limit=MOST_PARTIAL + len(near or ()), count=False).hits
        addresses = [address for _, address in hits]
        keys, times = (self._searcher.fast_field_values(name, addresses) for name in ("key", "ts"))
        found = [
            Weighed(number_of(int(key or 0)), float(weight), int(at or 0))
            for (weight, _), key, at in zip(hits, keys, times, strict=True)
        ]
        found = [one for one in found if one.number not in near] if near else found
        return sorted(found, key=lambda one: (-one.weight, -one.number))[:MOST_PARTIAL]

    def occurring(self, stems: Collection[str], reach: Reach) -> frozenset[str]:
        """Returns which of the stems some turn says: those that no turn at all says cost 0.3 µs each."""
        return frozenset(stem for stem in stems if self._searcher.doc_freq("stem", stem) and self._occurs(stem, reach))

    def holding(self, letters: str, reach: Reach, after: int | None, limit: int) -> list[Candidate]:
        """Returns the turns that may hold folded letters, of whole conversations, below one that came before: those in which the
        rarest runs of three of the letters all stand somewhere. Of fewer letters, unless they tell a word, it is every turn.
        """
        asked = [*self._within(reach), *self._may_hold(letters)]
        if reach.kinds:
            asked.append(self._any(self._term("kind", int(kind)) for kind in reach.kinds))
        if after is not None:
            before = Query.range_query(self._schema, "conversation", FieldType.Integer, None, after, include_upper=False)
            asked.append(before)
        bars = [self._term("hidden", int(_Mode.WHOLE)), self._term("marker", _HEAD), *self._without_roles(reach)]
        query = self._only(asked or [Query.all_query()], bars)
        found = self._by_conversation(query, max(1, limit))
        if len(found) < max(1, limit):
            return found
        last = found[-1].conversation_pk
        return [one for one in found if one.conversation_pk != last] + self._of_conversation(query, last)

    # -- their pieces

    def _may_hold(self, letters: str) -> Iterator[Query]:
        """What every turn has that holds some letters; nothing where they are too few."""
        if len(letters) < SHORTEST_LETTERS:
            yield from self._may_hold_few(letters)
            return
        runs = dict.fromkeys(letters[at : at + SHORTEST_LETTERS] for at in range(len(letters) - SHORTEST_LETTERS + 1))
        rarest = sorted(runs, key=lambda run: self._searcher.doc_freq("letters", run))[:_MOST_LETTERS]
        yield self._or_unknown(self._all(self._term("letters", run) for run in rarest))

    def _may_hold_few(self, letters: str) -> Iterator[Query]:
        """The same of one letter or two: of other than telling ones nothing is known."""
        runs = _TELLING.findall(letters)
        if runs:
            yield self._or_unknown(self._all(self._term("few_letters", run) for run in runs))

    def _or_unknown(self, holds: Query) -> Query:
        unknown = self._searcher.doc_freq("marker", _UNKNOWN) > 0
        return self._any([holds, self._term("marker", _UNKNOWN)]) if unknown else holds

    def _by_conversation(self, query: Query, limit: int) -> list[Candidate]:
        """Returns up to `limit` turns, the conversation of the highest key first; of the last one maybe not all."""
        hits = self._searcher.search(query, limit=limit, count=False, order_by_field="conversation", order=Order.Desc).hits
        numbers = self._searcher.fast_field_values("number", [address for _, address in hits])
        found = (Candidate(int(pk), int(number or 0)) for (pk, _), number in zip(hits, numbers, strict=True))
        return sorted(found, key=lambda one: (-one.conversation_pk, one.number))

    def _of_conversation(self, query: Query, conversation_pk: int) -> list[Candidate]:
        """Returns the turns of one conversation, by number."""
        of_it = self._all([query, self._term("conversation", conversation_pk)])
        hits = self._searcher.search(Query.const_score_query(of_it, 0.0), limit=_MOST_TURNS, count=False).hits
        numbers = self._searcher.fast_field_values("number", [address for _, address in hits])
        return [Candidate(conversation_pk, number) for number in sorted(int(number or 0) for number in numbers)]

    def _occurs(self, stem: str, reach: Reach) -> bool:
        query = self._only([self._phrase("stem", [stem]), *self._narrow(reach)], [*self._hidden(reach)])
        return bool(self._searcher.search(query, limit=1, count=False).hits)

    def _ranked(self, best: int, queries: dict[int, Query], after: Found | None, limit: int) -> list[Found]:
        found: list[Found] = []
        for rank in range(best if after is None else after.rank, 0, -1):
            query = queries.get(rank)
            if query is None or len(found) >= limit:
                break
            if after is not None and rank == after.rank:
                later = Query.range_query(self._schema, "key", FieldType.Integer, after.key, None, include_lower=False)
                query = self._all([query, later])
            hits = self._searcher.search(query, limit=limit - len(found), count=False, order_by_field="key", order=Order.Asc).hits
            found += [Found(rank, int(key)) for key, _ in hits]
        return found

    def _latest(self, query: Query, before: int | None, limit: int) -> list[tuple[int, int]]:
        """Returns up to `limit` (time, key) of the turns before a time, the latest first."""
        if before is not None:
            earlier = Query.range_query(self._schema, "ts", FieldType.Integer, None, before, include_upper=False)
            query = self._all([query, earlier])
        hits = self._searcher.search(query, limit=limit, count=False, order_by_field="ts", order=Order.Desc).hits
        keys = self._searcher.fast_field_values("key", [address for _, address in hits])
        found = [(int(at), int(key or 0)) for (at, _), key in zip(hits, keys, strict=True)]
        if len(found) == limit:  # of the last time there may be more, which the engine left out in no order of ours
            edge = found[-1][0]
            found = [one for one in found if one[0] != edge]
            found += self._of_time(query, edge, None, limit - len(found))
        return sorted(found, key=lambda one: (-one[0], -number_of(one[1])))

    def _of_time(self, query: Query, at: int, below: int | None, limit: int) -> list[tuple[int, int]]:
        """Returns up to `limit` (time, key) of the turns of one time, the highest number first, below a number."""
        asked = [query, self._term("ts", at)]
        if below is not None:
            asked.append(Query.range_query(self._schema, "number", FieldType.Integer, None, below, include_upper=False))
        hits = self._searcher.search(self._all(asked), limit=limit, count=False, order_by_field="number", order=Order.Desc).hits
        keys = self._searcher.fast_field_values("key", [address for _, address in hits])
        return [(at, int(key or 0)) for key in keys]

    def _tiers_of(self, question: Question, reach: Reach, numbers: Sequence[int]) -> dict[int, int]:
        """Returns the tiers of matches, by number."""
        query = question.query
        tiers = dict.fromkeys(self._among(numbers, self._exactly(query), reach), 3)
        left = [number for number in numbers if number not in tiers]
        if question.as_typed:
            return tiers | dict.fromkeys(left, 2)
        if len(query.order) > 1 or query.symbols:  # one word without signs is tier 3 when typed
            tiers |= dict.fromkeys(self._among(left, self._typed(query), reach), 2)
        return dict.fromkeys(left, 1) | tiers

    def _among(self, numbers: Sequence[int], says: Query, reach: Reach) -> list[int]:
        """Returns which of some turns say it."""
        if not numbers:
            return []
        few = len(numbers) <= _FEW_NUMBERS
        these = self._any(self._term("number", number) for number in numbers) if few else self._one_of("number", numbers)
        query = self._only([says, these, *self._asked(reach)], [*self._hidden(reach)])
        hits = self._searcher.search(query, limit=len(numbers), count=False).hits
        found = self._searcher.fast_field_values("number", [address for _, address in hits])
        return [int(number or 0) for number in found]

    def _near_levels(self, question: Question) -> dict[int, Query]:
        """Returns for each step the query of the turns that reach it, matches not yet taken away; empty if no term may stand
        inside words.
        """
        terms = question.terms
        if not terms:
            return {}
        must = [self._said(question, clause) for clause in question.query.wanted if clause not in terms]
        reached = {term: self._term_levels(question, term) for term in terms}
        return {step: self._all([*must, *(levels[step] for levels in reached.values())]) for step in range(1, BEST_STEP + 1)}

    def _term_levels(self, question: Question, term: Clause) -> dict[int, Query]:
        letters = term.words[0]
        holders = self._vocabulary.holders(letters)
        ways = [self._said(question, term), self._term("parts", letters)]
        levels = {4: self._any(ways)}
        for step, words in ((3, holders.begins), (2, holders.ends), (1, holders.inside)):
            ways += self._word_sets(words)
            levels[step] = self._any(ways)
        return levels

    def _word_sets(self, words: Sequence[str]) -> Iterator[Query]:
        whole = [word for word in words if CUT not in word]
        pieces = [word for word in words if CUT in word]
        if len(whole) > _FEW:
            yield Query.term_set_query(self._schema, "exact", whole)
        else:
            yield from (self._term("exact", word) for word in whole)
        if pieces:
            yield Query.term_set_query(self._schema, "pieces", pieces)

    def _exactly(self, query: WordQuery) -> Query:
        """What tier 3 says."""
        return self._all([self._phrase("exact", query.order), *(self._term("symbols", token) for token in sorted(query.symbols))])

    def _typed(self, query: WordQuery) -> Query:
        """What tier 2 says, and tier 3 too."""
        return self._all(self._phrase("exact", clause.words) for clause in query.wanted)

    def _said_all(self, question: Question) -> Query:
        """What every match says."""
        return self._all(self._said(question, clause) for clause in question.query.wanted)

    def _barred(self, question: Question, reach: Reach) -> Iterator[Query]:
        """What no turn of any list says, and the documents that are not asked for."""
        for clause in question.query.excluded:
            yield self._phrase("stem", clause.stems)
        yield from self._hidden(reach)

    def _hidden(self, reach: Reach) -> Iterator[Query]:
        """Of turns that are several documents, those that are not asked for: mostly fewer than the others, so that to exclude them
        costs less than to ask for the others. Many indexes have none.
        """
        mode = _Mode.of(reach)
        if mode in self._hidden_modes:
            yield self._term("hidden", int(mode))
        yield from self._without_roles(reach)

    def _without_roles(self, reach: Reach) -> Iterator[Query]:
        for role in sorted(reach.except_roles):
            yield self._term("role", role)

    def _said(self, question: Question, clause: Clause | Optional) -> Query:
        return self._phrase("exact" if question.as_typed else "stem", question.sought(clause))

    def _phrase(self, field: str, words: Sequence[str]) -> Query:
        """A phrase; of one word a term, since phrase_query panics on it."""
        return Query.phrase_query(self._schema, field, list(words)) if len(words) > 1 else self._term(field, words[0], "position")

    def _term(self, field: str, value: str | int, index_option: str = "basic") -> Query:
        return Query.term_query(self._schema, field, value, index_option)

    def _all(self, queries: Iterable[Query]) -> Query:
        given = list(queries)
        return given[0] if len(given) == 1 else Query.boolean_query([(Occur.Must, query) for query in given])

    def _any(self, queries: Iterable[Query]) -> Query:
        given = list(queries)
        return given[0] if len(given) == 1 else Query.boolean_query([(Occur.Should, query) for query in given])

    def _only(self, wanted: Sequence[Query], barred: Sequence[Query]) -> Query:
        return Query.boolean_query([*((Occur.Must, query) for query in wanted), *((Occur.MustNot, query) for query in barred)])

    def _narrow(self, reach: Reach) -> Iterator[Query]:
        """What the turns that are looked at have, as searched by words."""
        yield from self._within(reach)
        yield from self._asked(reach)

    def _asked(self, reach: Reach) -> Iterator[Query]:
        """Of turns of several kinds, the document of those that are asked for; of files alone, which say nothing, there is none."""
        if reach.kinds:
            yield self._term("asked", str(int(reach.kinds & SAYING)))

    def _within(self, reach: Reach) -> Iterator[Query]:
        """What the turns of a reach have, their kinds aside."""
        for key, value in reach.scope.items():
            yield self._term("scope", _pair(key, value))
        if reach.agents is not None:
            yield self._one_of("agent", sorted(reach.agents))
        if reach.conversation_pks is not None:
            yield self._one_of("conversation", sorted(reach.conversation_pks))
        if reach.roles:
            yield self._one_of("role", sorted(reach.roles))
        if reach.project:
            yield self._term("project", reach.project)
        if reach.since is not None or reach.until is not None:
            bounded = reach.until is not None
            yield Query.range_query(self._schema, "ts", FieldType.Integer, reach.since, reach.until, include_upper=not bounded)

    def _one_of(self, field: str, values: Sequence[str] | Sequence[int]) -> Query:
        if not values:
            return Query.empty_query()
        return self._term(field, values[0]) if len(values) == 1 else Query.term_set_query(self._schema, field, values)
