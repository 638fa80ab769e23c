"""The commands of `aforesaid-server`, one file each, and what they share: a flag for each setting, and how they refuse.

Flags go over the environment (`AFORESAID_*`), which goes over the defaults; all are declared once, in settings.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, get_args

import click
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import SettingsError

from aforesaid_server.settings import Folder, Settings

CANNOT_START = 2


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds a flag for each setting."""
    for name, field in reversed(Settings.model_fields.items()):
        command = _option(name, field)(command)
    return command


def _option(name: str, field: FieldInfo) -> Callable[[Callable[..., None]], Callable[..., None]]:
    default: Any = field.default
    text = f"{field.description}  [AFORESAID_{name.upper()}; {shown(default)}]"
    if isinstance(default, frozenset):
        return click.option(flags_of(name, default), name, multiple=True, default=None, help=f"{text} May be given several times.")
    metavar = None if isinstance(default, bool) else _metavar(field)
    return click.option(flags_of(name, default), name, default=None, metavar=metavar, help=text)


def flags_of(name: str, default: object) -> str:
    """Returns the flag of a setting, for one that is on or off the two with a slash between."""
    flag = name.replace("_", "-")
    return f"--{flag}/--no-{flag}" if isinstance(default, bool) else f"--{flag}"


def shown(default: object) -> str:
    """Returns a default as people read it."""
    if isinstance(default, frozenset):
        default = ", ".join(sorted(default))
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return "none" if text in {"None", ""} else text


def _metavar(field: FieldInfo) -> str:
    """Returns what stands for the value of a setting in the help: its type when it is set, or what it may be."""
    if field.annotation is SecretStr:
        return "URL"
    kinds = [kind for kind in get_args(field.annotation) or (field.annotation,) if kind is not type(None)]
    return "|".join(kind.__name__.upper() if isinstance(kind, type) else str(kind) for kind in kinds)


def given_settings(flags: dict[str, Any]) -> Settings:
    """Returns the settings from the flags of a command, those that were not given aside, and the environment."""
    return read_settings({name: value for name, value in flags.items() if value is not None and value != ()})


def folder_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags that say where the data lies, `data` and `store`."""
    for name, field in reversed(Folder.model_fields.items()):
        command = _option(name, field)(command)
    return command


def folder_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds these flags, and gives the command what they and the environment say, as `folder`."""

    @wraps(command)
    def given(*arguments: Any, data: str | None, store: str | None, **others: Any) -> None:
        command(*arguments, folder=folder_of(data, store), **others)

    return folder_flags(given)


def folder_of(data: str | Path | None = None, store: str | None = None) -> Folder:
    """Returns where the data lies that a command works on: as its flags say, else the environment, else the defaults."""
    flags = {"data": data, "store": store}
    return Folder(**{name: value for name, value in flags.items() if value is not None})  # type: ignore[arg-type]


def read_settings(given: dict[str, Any]) -> Settings:
    """Returns the settings from flags and environment; ends the program with a line for each that is wrong."""
    try:
        return Settings(**given)
    except ValidationError as error:
        refuse(*(_told(wrong["loc"], wrong["msg"], wrong["input"]) for wrong in error.errors(include_url=False)))
    except SettingsError as error:
        refuse(*(_no_list(name) for name in Settings.model_fields if f'"{name}"' in str(error)))


def _no_list(name: str) -> str:
    """Says what is wrong with a list of the environment; pydantic's own words hold neither the variable nor its value."""
    variable = f"AFORESAID_{name.upper()}"
    return f"{variable}: must be a list as JSON, such as '[\"reviewer\"]': {os.environ.get(variable, '')}"


def _told(place: tuple[int | str, ...], problem: str, given: object) -> str:
    said = problem.removeprefix("Value error, ")
    if said != problem:
        return said
    # What our own rules say holds the value, what pydantic's say does not.
    return f"{str(place[0]).replace('_', '-') if place else 'settings'}: {said[:1].lower()}{said[1:]}: {given}"


def refuse(*problems: str) -> NoReturn:
    """Ends the program with a line for each problem."""
    for problem in problems:
        click.echo(f"aforesaid-server: {in_one_line(problem)}", err=True)
    sys.exit(CANNOT_START)


def in_one_line(text: str) -> str:
    """Returns a text without what would move the cursor of a terminal."""
    return "".join(character if character.isprintable() else "�" for character in text)
