"""The words that `partial` does not count, unless nothing else is left. docs/query-syntax.md shows the same list, and a test
compares them.

They are what people put around the words that matter when they ask in plain language: question words, auxiliaries, articles,
pronouns, the commonest prepositions and conjunctions, and the pieces of contractions (`don't` is `don` and `t`).
"""

from __future__ import annotations

QUESTION_WORDS = frozenset(
    """
    a about an and any are as at be been but by can could d did do does doing don done for from get got had has have having
    he her his how i if in into is it its just ll m may me might must my no not of on or our please re s shall she should
    so some t tell than that the their them then there these they this those to us ve was we were what when where which who
    whom whose why will with would you your
    """.split()
)
