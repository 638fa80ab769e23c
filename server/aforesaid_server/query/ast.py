"""A query as a value: what must be said, what must not, what was ignored. It prints itself: `parse(str(query)) == query`."""

from __future__ import annotations

from dataclasses import dataclass, field

from aforesaid_server.text.words import fold, is_spaceless, signed_tokens


@dataclass(frozen=True, slots=True)
class Clause:
    """A word or a phrase: one token or one quotation. `words` are folded, `stems` theirs; `raw` is what was typed, quotes aside."""

    raw: str
    quoted: bool
    words: tuple[str, ...]
    stems: tuple[str, ...]

    @property
    def is_phrase(self) -> bool:
        """Tells whether it must be said as it stands: several words, or quoted."""
        return self.quoted or len(self.words) > 1

    def __str__(self) -> str:
        if not self.quoted:
            return self.raw
        return f'"{self.raw}"' if '"' not in self.raw else f"“{self.raw}”"


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked for. `ignored` holds the tokens without a letter or digit."""

    wanted: tuple[Clause, ...]
    excluded: tuple[Clause, ...] = ()
    ignored: tuple[str, ...] = ()
    symbols: frozenset[str] = field(init=False)
    order: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        raw = " ".join(clause.raw for clause in self.wanted)
        object.__setattr__(self, "symbols", frozenset(t for t in signed_tokens(fold(raw)) if any(map(str.isalnum, t))))
        object.__setattr__(self, "order", tuple(word for clause in self.wanted for word in clause.words))

    def __str__(self) -> str:
        return " ".join([*map(str, self.wanted), *(f"-{clause}" for clause in self.excluded), *self.ignored])

    @property
    def several(self) -> bool:
        """Tells whether two different words are wanted."""
        return len(set(self.order)) > 1


@dataclass(frozen=True, slots=True)
class Optional:
    """What a turn may say to stand in `partial`: a word or a phrase by its words and stems."""

    words: tuple[str, ...]
    stems: tuple[str, ...]


def optionals(clause: Clause) -> list[Optional]:
    """Returns what an unquoted clause counts as in `partial`: a run of a spaceless script as its overlapping pairs, other words
    as one.
    """
    found: list[Optional] = []
    start = 0
    words, stems = clause.words, clause.stems
    while start < len(words):
        spaceless = is_spaceless(words[start])
        end = start + 1
        while end < len(words) and is_spaceless(words[end]) == spaceless:
            end += 1
        if spaceless and end - start > 1:
            found += [Optional(words[at : at + 2], stems[at : at + 2]) for at in range(start, end - 1)]
        else:
            found.append(Optional(words[start:end], stems[start:end]))
        start = end
    return found
