"""A service that demands tokens, in this process, and the owner of its data folder, who runs `aforesaid-server` beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from pydantic import SecretStr

from aforesaid_server.__main__ import commands
from aforesaid_server.house import House, build_core
from aforesaid_server.settings import Settings
from tests.api.callers import Caller
from tests.api.doors import ConnectDoor, Json, Service, running
from tests.faults.serving import readyz, wait_until


@dataclass(frozen=True, slots=True)
class Told:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Owner:
    """Whoever may write the files of a data folder."""

    data: Path

    def run(self, *arguments: str) -> Told:
        """Runs `aforesaid-server` with this data folder."""
        outcome = CliRunner().invoke(commands, [*arguments, "--data", str(self.data)], catch_exceptions=False)
        return Told(outcome.exit_code, outcome.stdout, outcome.stderr)

    def does(self, *arguments: str) -> str:
        """Runs a command that must succeed; returns what it printed, without the newline at its end."""
        told = self.run(*arguments)
        assert told.code == 0, told.err
        return told.out.removesuffix("\n")

    def token(self, *arguments: str, scope: Mapping[str, str] | None = None) -> str:
        """Makes a token."""
        return self.does("token", "new", *arguments, *pairs(scope or {}))

    def grant(self, reader: str, target: str, *arguments: str, until: str = "1d") -> int:
        """Gives a grant; returns its number."""
        said = self.does("grant", reader, "--read", target, "--until", until, "--why", "a test", *arguments)
        return int(said.split()[1].rstrip(":"))

    def listed(self, what: str) -> list[Json]:
        """Lists all tokens, or all grants."""
        return [json.loads(line) for line in self.does(what, "list", "--json").splitlines()]


def pairs(scope: Mapping[str, str]) -> list[str]:
    """A scope as flags."""
    return [part for key, value in scope.items() for part in ("--scope", f"{key}={value}")]


@dataclass(frozen=True, slots=True)
class Guarded:
    """A service that runs and demands tokens."""

    service: Service
    house: House
    door: ConnectDoor
    owner: Owner

    def by(self, *arguments: str, scope: Mapping[str, str] | None = None) -> Caller:
        """A caller with a token that is made with these arguments."""
        return Caller(self.door, token=self.owner.token(*arguments, scope=scope))


@contextmanager
def guarded(data: Path, *, verify: Path | None = None, **settings: Any) -> Iterator[Guarded]:
    """Serves a data folder to who has a token; searches are answered when it begins. `verify` is the CA to trust over TLS."""
    data.mkdir(exist_ok=True, mode=0o700)
    house = build_core(Settings(data=data, store=settings.get("store", SecretStr("")), port=0, grpc_port=0, auth="token"))
    try:
        with running(house, auth="token", **settings) as service:
            door = ConnectDoor(service.url, verify)
            try:
                wait_until(lambda: readyz(door.http)[0] == 200)
                yield Guarded(service, house, door, Owner(data))
            finally:
                door.close()
    finally:
        house.close()
