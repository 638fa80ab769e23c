"""The commands of `aforesaid-server`, one file each, and what they share: a flag for each setting, and how they refuse.

Flags go over the environment (`AFORESAID_*`), which goes over the defaults; all are declared once, in settings.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import SettingsError

from aforesaid_server.settings import Settings

CANNOT_START = 2


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds a flag for each setting."""
    for name, field in reversed(Settings.model_fields.items()):
        command = _option(name, field)(command)
    return command


def _option(name: str, field: FieldInfo) -> Callable[[Callable[..., None]], Callable[..., None]]:
    default: Any = field.default
    flag = f"--{name.replace('_', '-')}"
    text = f"{field.description}  [AFORESAID_{name.upper()}; {_shown(default) or 'none'}]"
    if isinstance(default, bool):
        return click.option(f"{flag}/--no-{flag.removeprefix('--')}", name, default=None, help=text)
    if isinstance(default, frozenset):
        return click.option(flag, name, multiple=True, default=None, help=f"{text} May be given several times.")
    return click.option(flag, name, default=None, metavar=type(default).__name__.upper().removeprefix("POSIX"), help=text)


def _shown(default: Any) -> str:
    return ", ".join(sorted(default)) if isinstance(default, frozenset) else str(default)


def given_settings(flags: dict[str, Any]) -> Settings:
    """Returns the settings from the flags of a command, those that were not given aside, and the environment."""
    return read_settings({name: value for name, value in flags.items() if value is not None and value != ()})


def read_settings(given: dict[str, Any]) -> Settings:
    """Returns the settings from flags and environment; ends the program with a line for each that is wrong."""
    try:
        return Settings(**given)
    except ValidationError as error:
        refuse(*(_told(wrong["loc"], wrong["msg"], wrong["input"]) for wrong in error.errors(include_url=False)))
    except SettingsError as error:
        refuse(f"environment: {error}; lists are JSON, such as '[\"reviewer\"]'")


def _told(place: tuple[int | str, ...], problem: str, given: object) -> str:
    said = problem.removeprefix("Value error, ")
    if said != problem:
        return said
    # What our own rules say holds the value, what pydantic's say does not.
    return f"{str(place[0]).replace('_', '-') if place else 'settings'}: {said[:1].lower()}{said[1:]}: {given}"


def refuse(*problems: str) -> NoReturn:
    """Ends the program with a line for each problem."""
    for problem in problems:
        click.echo(f"aforesaid-server: {problem}", err=True)
    sys.exit(CANNOT_START)
