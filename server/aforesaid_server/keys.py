"""The keys of a deployment: one secret in the data folder, made on first use, and what is derived from it.

Whoever has the secret can read page tokens and rewrite the audit log unseen; the file is its owner's alone. Losing it makes old
page tokens and all bearer tokens worthless and the audit log unverifiable, nothing else.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

_BYTES = 32
_USES = (b"aforesaid cursors", b"aforesaid audit", b"aforesaid tokens", b"aforesaid deployment")


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of 32 bytes, one for each of _USES. Nothing hangs on `check`: it may be shown, and tells whether two secrets are one."""

    cursors: bytes
    audit: bytes
    tokens: bytes
    check: bytes


def keys_in(path: Path) -> Keys:
    """Reads the secret, or makes it. Raises ValueError if the file holds something else."""
    if not path.exists():
        # A command may make it at the moment when a server does: each writes a file of its own.
        made = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
        try:
            _write(made, new_secret())
            with contextlib.suppress(FileExistsError):
                os.link(made, path)  # never replaces a secret, and is there whole or not at all
        finally:
            made.unlink(missing_ok=True)
    secret = path.read_bytes()
    if len(secret) != _BYTES:
        raise ValueError(f"{path.name} holds {len(secret)} bytes where a secret has {_BYTES}")
    return keys_of(secret)


def new_secret() -> bytes:
    """Returns a secret that nobody has yet."""
    return secrets.token_bytes(_BYTES)


def keys_of(secret: bytes) -> Keys:
    """Returns what is derived from a secret."""
    return Keys(*(hmac.digest(secret, use, "sha256") for use in _USES))


def _write(path: Path, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, data)
        os.fsync(file)
    finally:
        os.close(file)
