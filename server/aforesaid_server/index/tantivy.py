"""The tantivy engine: turns as words joined by blanks, queries as Query objects. index.md of the design tells why each field is
there.

User text never reaches tantivy's own parser or tokenizers. Nothing is stored: a search ordered by `key` returns the key, which
holds the turn's number. A damaged or foreign index raises `Damaged` on opening; whoever owns the folder then builds a new one
beside.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import tantivy
from tantivy import FieldType, Occur, Order, Query, SchemaBuilder, Searcher, TextAnalyzerBuilder, Tokenizer

from aforesaid_server.index import (
    BEST_STEP,
    BEST_TIER,
    MOST_PARTIAL,
    Batch,
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
from aforesaid_server.text.words import SHORTEST_PART, TurnWords

SCHEMA = "tantivy-2"
_HEAP = 50_000_000
_PLACEHOLDER = CUT
"""Stands for a word that is too long for the dictionary, so that phrases around it still hold, and for a GAP."""
_WITH, _WITHOUT = 1, 2
"""The two documents of a turn with calls of search tools, as `own_search` tells them apart; other turns are one, without it."""
_HEAD = "head"
_FEW = 24
"""Words up to which asking for each costs less than a set (0.2 ms a set, before its words)."""
_FEW_NUMBERS = 80
"""The same of numbers: 21 of them, a page, cost 0.08 ms, as a set 0.3 ms."""


class Damaged(Exception):
    """The folder holds no usable index."""


def _schema() -> tantivy.Schema:
    builder = SchemaBuilder()
    builder.add_text_field("exact", tokenizer_name="words", index_option="position")
    builder.add_text_field("stem", tokenizer_name="words", index_option="position")
    for name in ("symbols", "parts", "pieces"):
        builder.add_text_field(name, tokenizer_name="words", index_option="basic")
    for name in ("scope", "role", "project", "marker"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("key", indexed=True, fast=True)
    for name in ("agent", "conversation", "own_search"):  # never unsigned: deleting by term on such a field deletes nothing
        builder.add_integer_field(name, indexed=True)
    for name in ("number", "ts"):
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


def _variants(document: Document) -> Iterator[tuple[TurnWords, int]]:
    """Yields what a turn says as often as it is put: mostly once. Where nothing is left without own searches, nothing finds it."""
    if document.without is None:
        yield document.words, 0
        return
    yield document.words, _WITH
    if document.without.exact:
        yield document.without, _WITHOUT


def _has_twins(searcher: Searcher) -> bool:
    """Tells whether any turn is two documents, or was since segments were last merged."""
    return searcher.doc_freq("own_search", _WITH) > 0


class TantivyIndex:
    """The turn index and its vocabulary in one folder. One thread writes; any may search."""

    def __init__(self, folder: Path) -> None:
        """Opens or makes the index. Raises Damaged if what is there cannot be opened."""
        turns = folder / "turns"
        self._schema = _schema()
        try:
            turns.mkdir(parents=True, exist_ok=True)
            self._index = tantivy.Index(self._schema, path=str(turns))
            # Tokenizers must be registered after every open, before the writer.
            self._index.register_tokenizer("words", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
            self._writer = self._index.writer(_HEAP, 1)
            self.vocabulary = Vocabulary(folder / "vocabulary")
            self._lock = threading.Lock()
            self._searcher: Searcher = self._index.searcher()
            self._has_twins = _has_twins(self._searcher)
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
        """How many documents are held, the mark of the head aside; a turn with calls of search tools is two."""
        return max(0, int(self._searcher.num_docs) - 1)

    def lists(self) -> tuple[int, TantivyLists]:
        """Returns the lists of now with the head that they show."""
        with self._lock:
            return self._head, TantivyLists(self._schema, self._searcher, self.vocabulary, self._has_twins)

    def apply(self, batch: Batch) -> None:
        """Takes a batch in one commit: the words are committed first, then the turns with the head."""
        try:
            self._take(batch)
        except BaseException:
            self._writer.rollback()
            raise
        self._index.reload()
        searcher = self._index.searcher()
        has_twins = _has_twins(searcher)
        with self._lock:
            self._searcher, self._has_twins = searcher, has_twins
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
            for said, own_search in _variants(document):
                words.update(said.exact)
                self._writer.add_document(self._as_tantivy(document, said, own_search))
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

    def _as_tantivy(self, document: Document, words: TurnWords, own_search: int) -> tantivy.Document:
        made = tantivy.Document()
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
        if own_search:
            made.add_integer("own_search", own_search)
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

    def __init__(self, schema: tantivy.Schema, searcher: Searcher, vocabulary: Vocabulary, has_twins: bool) -> None:
        self._schema = schema
        self._searcher = searcher
        self._vocabulary = vocabulary
        self._has_twins = has_twins

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

    # -- their pieces

    def _occurs(self, stem: str, reach: Reach) -> bool:
        query = self._only([self._phrase("stem", [stem]), *self._narrow(reach)], [*self._twins(reach)])
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
        hits = self._searcher.search(self._only([says, these], [*self._twins(reach)]), limit=len(numbers), count=False).hits
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
        yield from self._twins(reach)

    def _twins(self, reach: Reach) -> Iterator[Query]:
        """Of turns that are two documents, the one that is not asked for: few are, and to exclude them costs less than to ask for
        the others. Most indexes have none.
        """
        if self._has_twins:
            yield self._term("own_search", _WITHOUT if reach.own_searches else _WITH)

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
