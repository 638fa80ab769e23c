"""What the commands on tokens and grants share: the store, open beside a server or without one, times and scopes.

They are for the owner of the data folder: whoever can write its files needs no other right.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from aforesaid_server.commands import in_one_line, refuse
from aforesaid_server.errors import AforesaidError, StartError
from aforesaid_server.settings import Folder
from aforesaid_server.store import Scope, Store, StoredAgent

MOST_PAIRS, LONGEST_KEY, LONGEST_VALUE, LONGEST_ID = 16, 256, 1024, 512
"""As in the proto; bytes."""
_SPAN = re.compile(r"([0-9]{1,6})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def scope_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the flag that names pairs of a scope."""
    told = "A pair of the scope, such as user_id=ada. May be given several times."
    return click.option("--scope", "pairs", multiple=True, metavar="KEY=VALUE", help=told)(command)


@contextmanager
def opened(folder: Folder, *, create: bool = False) -> Iterator[tuple[Store, Path]]:
    """Opens the store, which servers may be serving, and tells the data folder; ends the program if anything is wrong.

    `create` makes the folder and the store where there are none.
    """
    # Loads SQLAlchemy, a third of a second of it: not for --help.
    from aforesaid_server.store.opening import open_store

    os.umask(0o077)
    try:
        if create and not folder.data.exists():
            folder.data.mkdir(mode=0o700, parents=True)
            click.echo(f"made a new data folder: {folder.data}", err=True)
        store = open_store(folder, create=create)
    except OSError as error:
        refuse(f"data folder {folder.data}: {os.strerror(error.errno or 0).lower()}")
    except StartError as error:
        refuse(str(error))
    except AforesaidError as error:
        refuse(error.message)
    try:
        yield store, folder.data
    except StartError as error:
        refuse(str(error))
    except AforesaidError as error:
        refuse(error.message)
    finally:
        store.close()


def now() -> int:
    """Returns this moment, in microseconds."""
    return round(datetime.now(UTC).timestamp() * 1_000_000)


def moment(flag: str, given: str) -> int:
    """Returns the microseconds of a time to come: `90d` from now (m, h, d, w), or a date or time as ISO 8601 has it, in UTC unless
    it says otherwise; a date is its first moment. Ends the program for any other, and for one that has passed.
    """
    span = _SPAN.fullmatch(given)
    try:
        if span is not None:
            found = datetime.now(UTC) + timedelta(**{_UNITS[span[2]]: int(span[1])})
        else:
            found = datetime.fromisoformat(given)
            found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        microseconds = round(found.timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        refuse(f"{flag} {given}: is neither a span such as 90d, 12h or 2w nor a date such as 2030-01-31")
    if microseconds <= now():
        refuse(f"{flag} {given}: has passed")
    return microseconds


def shown_time(microseconds: int | None) -> str:
    """Returns a time to the second, in UTC."""
    if microseconds is None:
        return "never"
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def scope_of(pairs: Sequence[str]) -> Scope:
    """Returns the scope that pairs make; ends the program for what is none."""
    scope: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            refuse(f"--scope {pair}: is not KEY=VALUE")
        if scope.get(key, value) != value:
            refuse(f"--scope {pair}: {key} is given twice")
        if len(key.encode()) > LONGEST_KEY or len(value.encode()) > LONGEST_VALUE:
            refuse(f"--scope {key[:40]}: at most {LONGEST_KEY} bytes of a key and {LONGEST_VALUE} of a value are allowed")
        scope[key] = value
    if len(scope) > MOST_PAIRS:
        refuse(f"--scope: {len(scope)} pairs, at most {MOST_PAIRS} are allowed")
    return scope


def shown_scope(scope: Scope) -> str:
    """Returns a scope for people."""
    return " ".join(f"{key}={value}" for key, value in sorted(scope.items())) or "none"


def agent_named(store: Store, agent_id: str, scope: Scope) -> StoredAgent | None:
    """Returns the agent of an id within a scope, None if there is none; where there are several, the one with exactly that scope.

    Ends the program where that leaves several.
    """
    if not agent_id or len(agent_id.encode()) > LONGEST_ID:
        refuse(f"agent {agent_id[:40]}: an id has 1 to {LONGEST_ID} bytes")
    return the_one(store.agents_with_id(agent_id, scope), agent_id, scope)


def the_one(found: Sequence[StoredAgent], agent_id: str, scope: Scope) -> StoredAgent | None:
    """Returns the agent meant by a scope among those of one id, None if there is none; ends the program where several may be."""
    if len(found) > 1:
        found = [agent for agent in found if agent.scope == scope] or found
    if len(found) > 1:
        refuse(f"{len(found)} agents have the id {agent_id}: name the scope", *(f"  {shown_scope(one.scope)}" for one in found))
    return found[0] if found else None


def table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints rows as a table, each as wide as it must be; texts on one line each. Nothing for no rows."""
    if not rows:
        return
    lines = [[name.replace("_", " ") for name in rows[0]]]
    lines += [[in_one_line(str(value)) for value in row.values()] for row in rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def tell(text: str, *, err: bool = False) -> None:
    """Prints a line that holds ids and names, which whoever made the agents chose."""
    click.echo(in_one_line(text), err=err)


def tell_json(fields: Mapping[str, Any]) -> None:
    """Prints a JSON object on a line, in ASCII: no terminal takes any of it for a command."""
    click.echo(json.dumps(fields))
