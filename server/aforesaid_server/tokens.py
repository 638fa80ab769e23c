"""Bearer tokens: what one looks like, how it is made, and who a call with one is by.

    aforesaid_<id>_<secret>     id: 16 hexadecimal digits, no secret; secret: 256 random bits in base32, 52 characters

A token is found by its id. Of the whole an HMAC-SHA256 under a key of the deployment is kept, and compared in constant time. No
slow hash: those are for what people think up, and nobody guesses 256 random bits, while each call would pay for it. The key is
there so that whoever can write the store, but not read the secret beside it, makes no tokens.

Nothing is remembered between calls: the store is asked each time, which costs 0.14 ms, so that a token which was revoked a moment
ago is worth nothing.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from aforesaid.model import EMPTY_SCOPE
from aforesaid_server.access import Call, no_good_token
from aforesaid_server.store import NewToken, Scope, Store, StoredAgent

_TOKEN = re.compile(r"aforesaid_([0-9a-f]{16})_[a-z2-7]{52}")
_BEARER = re.compile(rf"[Bb][Ee][Aa][Rr][Ee][Rr] +({_TOKEN.pattern})")
_ID_BYTES, _SECRET_BYTES = 8, 32
_NOBODYS = bytes(32)


def _now() -> int:
    return time.time_ns() // 1_000


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a token is: `kind` "agent" with the agent, or "user" or "service" with a name and a scope."""

    kind: str
    agent: StoredAgent | None = None
    name: str = ""
    scope: Scope = field(default_factory=lambda: EMPTY_SCOPE)


class Tokens:
    """Makes tokens, and tells whose a call is."""

    def __init__(self, store: Store, key: bytes, *, now: Callable[[], int] = _now) -> None:
        self._store = store
        self._key = key
        self._now = now

    def make(self, owner: Owner, expires_at: int | None) -> tuple[str, str]:
        """Makes a token that is good until a time in microseconds; returns its id, and all of it, which is kept nowhere."""
        token_id = secrets.token_hex(_ID_BYTES)
        secret = base64.b32encode(secrets.token_bytes(_SECRET_BYTES)).decode().rstrip("=").lower()
        token = f"aforesaid_{token_id}_{secret}"
        agent_pk = owner.agent.pk if owner.agent is not None else None
        kept = NewToken(token_id, self._digest(token), owner.kind, expires_at, agent_pk, owner.name, owner.scope)
        self._store.add_token(kept, now=self._now())
        return token_id, token

    def authenticated(self, call: Call, authorization: Sequence[str]) -> Call:
        """Returns a call as made by whom its token is bound to. `authorization` are the values of the header, as they came.

        Raises Unauthenticated, with one message whatever is wrong.
        """
        # Blanks around the value of a header are no part of it (RFC 9110, 5.5).
        given = _BEARER.fullmatch(authorization[0].strip(" \t")) if len(authorization) == 1 else None
        if given is None:
            raise no_good_token()
        stored = self._store.token(given[2])
        same = hmac.compare_digest(stored.digest if stored is not None else _NOBODYS, self._digest(given[1]))
        if stored is None or not same or not stored.good_at(self._now()):
            raise no_good_token()
        if stored.agent is None:
            return replace(call, token_id=stored.token_id, scope=stored.scope)
        agent = stored.agent
        return replace(call, token_id=stored.token_id, scope=agent.scope, agent_id=agent.agent_id, agent_pk=agent.pk)

    def _digest(self, token: str) -> bytes:
        return hmac.digest(self._key, token.encode(), "sha256")
