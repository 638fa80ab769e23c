"""Spellings close to a word: what somebody may have meant who mistyped one letter. Pure, and knows no vocabulary: whether anybody
says such a word has to be asked within what the caller may read.
"""

from __future__ import annotations

from collections.abc import Iterator

SHORTEST, LONGEST = 4, 16
"""Code points of a word that has close spellings: shorter ones are close to everything, longer ones have over a thousand."""
_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдеёжзийклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνοπρστυφχψω")


def close_spellings(word: str) -> Iterator[str]:
    """Yields, the likeliest kind of mistake first, the words that a folded word differs from by two neighbours swapped, a letter
    forgotten, a letter too many, or one letter for another; none for what is no word of one alphabet.
    """
    alphabet = next((letters for letters in _ALPHABETS if set(word) <= set(letters)), "")
    if not alphabet or not SHORTEST <= len(word) <= LONGEST:
        return
    cuts = [(word[:at], word[at:]) for at in range(len(word), -1, -1)]
    found = dict.fromkeys([word])
    for spelling in (
        *(f"{before}{after[1]}{after[0]}{after[2:]}" for before, after in cuts if len(after) > 1),
        *(f"{before}{letter}{after}" for before, after in cuts for letter in alphabet),
        *(f"{before}{after[1:]}" for before, after in cuts if after),
        *(f"{before}{letter}{after[1:]}" for before, after in cuts if after for letter in alphabet),
    ):
        if spelling not in found:
            found[spelling] = None
            yield spelling
