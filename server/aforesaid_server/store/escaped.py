"""Texts in a database that refuses the character NUL, as PostgreSQL does: nothing that was said is stripped or refused.

    U+0000 -> U+0001 U+0002        U+0001 -> U+0001 U+0003        all others stay

No two texts become the same one, and the smaller text stays the smaller one, so that a database compares and sorts what is written
so as it would compare and sort the texts themselves. Both characters are rare: nearly every text is stored as it is.
"""

from __future__ import annotations

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

_NUL, _SIGN = "\x00", "\x01"
_NUL_WRITTEN, _SIGN_WRITTEN = "\x01\x02", "\x01\x03"  # the second is never _SIGN, so each can be looked for by itself


def escaped(text: str) -> str:
    """Returns a text as it is written into the database."""
    if _NUL not in text and _SIGN not in text:
        return text
    return text.replace(_SIGN, _SIGN_WRITTEN).replace(_NUL, _NUL_WRITTEN)


def unescaped(written: str) -> str:
    """Returns the text that was written so."""
    if _SIGN not in written:
        return written
    return written.replace(_NUL_WRITTEN, _NUL).replace(_SIGN_WRITTEN, _SIGN)


class EscapedText(TypeDecorator[str]):
    """A text compared byte by byte, escaped on its way in, also as the value of a condition, and back on its way out."""

    impl = Text
    cache_ok = True

    def __init__(self) -> None:
        super().__init__(collation="C")

    def process_bind_param(self, value: str | None, _: Dialect) -> str | None:
        """Escapes a value."""
        return None if value is None else escaped(value)

    def process_result_value(self, value: str | None, _: Dialect) -> str | None:
        """Takes a value back."""
        return None if value is None else unescaped(value)
