"""The command `aforesaid-server`: flags over environment (`AFORESAID_*`) over defaults, all declared once, in settings.py."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
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


def _print_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"aforesaid-server {version('aforesaid')}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version.")
def commands() -> None:
    """Keep and search what was said in the conversations of AI agents."""


@commands.command()
@settings_options
@click.option(
    "--import",
    "imports",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Take the transcripts under this path (a file, a project folder, ~/.claude) while serving. May be given several times.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path),
    help="Write this file (JSON: url, grpc, pid) once both ports listen and all is imported.",
)
def serve(imports: tuple[Path, ...], ready_file: Path | None, **given: Any) -> None:
    """Serve until SIGTERM or Ctrl-C, which let calls in flight end."""
    settings = read_settings({name: value for name, value in given.items() if value is not None and value != ()})
    # gRPC's C core, which reads this when it is loaded, would write lines of its own between those of the log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Loads the whole service, half a second of it: not for --help.
    from aforesaid_server import app

    try:
        app.serve(settings, imports, ready_file)
    except app.StartError as error:
        _refuse(str(error))


def read_settings(given: dict[str, Any]) -> Settings:
    """Returns the settings from flags and environment; ends the program with a line for each that is wrong."""
    try:
        return Settings(**given)
    except ValidationError as error:
        _refuse(*(_told(wrong["loc"], wrong["msg"], wrong["input"]) for wrong in error.errors(include_url=False)))
    except SettingsError as error:
        _refuse(f"environment: {error}; lists are JSON, such as '[\"reviewer\"]'")


def _told(place: tuple[int | str, ...], problem: str, given: object) -> str:
    said = problem.removeprefix("Value error, ")
    if said != problem:
        return said
    # What our own rules say holds the value, what pydantic's say does not.
    return f"{str(place[0]).replace('_', '-') if place else 'settings'}: {said[:1].lower()}{said[1:]}: {given}"


def _refuse(*problems: str) -> NoReturn:
    for problem in problems:
        click.echo(f"aforesaid-server: {problem}", err=True)
    sys.exit(CANNOT_START)


def main() -> None:
    """Is the program."""
    commands(prog_name="aforesaid-server")


if __name__ == "__main__":
    main()
