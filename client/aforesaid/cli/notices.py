"""The service's notices, which name the fields of a request, in the words of the command line."""

from __future__ import annotations

import re

# A query between backticks is what somebody typed.
_QUOTED = re.compile("(`[^`]*`)")
_FLAGS = {
    "conversation_id": "--conversation",
    "roles": "--role",
    "part_kinds": "--kind",
    "project": "--project",
    "since": "--since",
    "until": "--until",
}
_FIELD = "|".join(_FLAGS)
# Some of them are words that may stand anywhere: only in a list of fields they are fields.
_FIELDS = re.compile(rf"\b(?:within|without) (?:{_FIELD})(?:(?:, | and )(?:{_FIELD}))*\b(?![-\w])")
_WAYS = {
    "with words WORDS_STEMMED": "without --as-typed",
    "with match MATCH_ALL_WORDS": "without --substring",
    "include_own_searches": "--own-searches",
    "WORDS_AS_TYPED": "--as-typed",
    "MATCH_SUBSTRING": "--substring",
    "next_page_token": "--all",
}
_WAY = re.compile("|".join(_WAYS))


def in_flags(notice: str) -> str:
    """Returns a notice with flags in place of fields; what it quotes stays as it is."""
    return "".join(piece if piece.startswith("`") else _told(piece) for piece in _QUOTED.split(notice))


def _told(piece: str) -> str:
    piece = _FIELDS.sub(lambda fields: re.sub(_FIELD, lambda field: _FLAGS[field[0]], fields[0]), piece)
    return _WAY.sub(lambda way: _WAYS[way[0]], piece)
