"""Pages: how long they are, and the sealed tokens between them, good for one request of one caller.

A token is AES-GCM over what the method needs to go on, bound to the request and the caller: it shows no query text and no number
of the store, and one that was altered, or comes with another request, does not open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from aforesaid_server.errors import InvalidArgument

DEFAULT_LIMIT = 20
LARGEST_LIMIT = 100
LONGEST_CURSOR = 2_048
_NONCE_BYTES = 12
_FIELD = "pagination.cursor"
_NOT_OURS = "not a next_page_token of this request by this caller"


@dataclass(frozen=True, slots=True)
class Page:
    """Which page: `limit` 0 means 20, more than 100 is capped; `cursor` empty for the first."""

    limit: int = 0
    cursor: str = ""


def limit_of(limit: int) -> int:
    """Returns how long a page is: 20 by default, 100 at most. Raises InvalidArgument for a negative one."""
    if limit < 0:
        raise InvalidArgument("pagination.limit", f"{limit} is less than 0")
    return min(limit or DEFAULT_LIMIT, LARGEST_LIMIT)


def binding(*what: object) -> bytes:
    """Returns what a token is bound to, from anything that JSON can write; mappings in any order."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")).digest()


class Seal:
    """Seals and opens tokens with one key of 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def close(self, payload: bytes, bound_to: bytes) -> str:
        """Returns a token, URL-safe."""
        nonce = os.urandom(_NONCE_BYTES)
        return _as_token(nonce + self._cipher.encrypt(nonce, payload, bound_to))

    def open(self, token: str, bound_to: bytes) -> bytes:
        """Returns what was sealed. Raises InvalidArgument for anything but a token made here for the same search."""
        if len(token) > LONGEST_CURSOR:
            raise InvalidArgument(_FIELD, f"{len(token)} characters, at most {LONGEST_CURSOR} are allowed")
        try:
            data = base64.b64decode(token.encode("ascii") + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
            payload = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], bound_to)
        except (ValueError, binascii.Error, InvalidTag):
            raise InvalidArgument(_FIELD, _NOT_OURS) from None
        if _as_token(data) != token:  # the same bytes written another way
            raise InvalidArgument(_FIELD, _NOT_OURS)
        return payload


def _as_token(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
